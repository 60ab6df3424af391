"""Run the cells of a notebook in the sandbox, one after another, and say how far they get."""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ipyrefine.kernel.magics import python_part
from ipyrefine.sandbox.sandbox import describe_failure, run_python

_SECONDS = 30.0  # processor time of all cells; the import of pandas is most of it
_MEMORY_MB = 4_096  # of address space, of which polars reserves much

# Reports after each cell, so that the last line stands where one ends the process.
_RUNNER = """\
import json, sys, types
sys.path.insert(0, "")
with open("cells.json") as file:
    cells = json.load(file)
main = sys.modules["__main__"] = types.ModuleType("__main__")
def tell(done, error):
    with open({report!r}, "a") as file:
        file.write(json.dumps([done, error]) + "\\n")
tell(0, "")
for number, source in enumerate(cells, start=1):
    try:
        exec(compile(source, f"cell {{number}}", "exec"), vars(main))
    except BaseException as error:
        tell(number - 1, f"{{type(error).__name__}}: {{error}}")
        break
    tell(number, "")
"""


class Progress(NamedTuple):
    """How far the cells got.

    Attributes:
        cells: how many of them ran to their end.
        error: what ended the next one; empty where all ran.
    """

    cells: int
    error: str


async def run_cells(cells: Sequence[str], files: Mapping[str, str] | None = None) -> Progress:
    """Run cells in one namespace, as a notebook does; what they print is dropped.

    Args:
        cells: their sources; lines of IPython's own are left out.
        files: files to put beside them, by name; they can be imported.
    """
    report = secrets.token_hex(8)
    sources = json.dumps([python_part(cell).code for cell in cells])
    result = await run_python(
        _RUNNER.format(report=report),
        seconds=_SECONDS,
        memory_mb=_MEMORY_MB,
        files={**(files or {}), "cells.json": sources},
        report=report,
    )
    lines = result.report.splitlines()
    done, error = json.loads(lines[-1]) if lines else (0, "")
    if not error and done < len(cells):
        error = describe_failure(result, _SECONDS)
    return Progress(done, error)
