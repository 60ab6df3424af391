"""`ipyrefine run`: a notebook executed without a browser, its verdicts as the exit status."""

import argparse
import ast
import json
import keyword
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ipyrefine.core.runs import Run
from ipyrefine.errors import UsageError
from ipyrefine.render import labels as words
from ipyrefine.session.record import recorded

PASSED, UNMET, FAILED = 0, 1, 2
STATUS = (
    "Exit status: 0 when every %%refine cell passed or its text was accepted, 1 when one did not, "
    "2 when a cell failed or there was nothing to refine."
)
_INJECTED = "injected-parameters"


def add_run(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of `run`."""
    parser.add_argument("notebook", type=Path, help="the notebook to execute")
    parser.add_argument("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE",
        help="set a variable after the cell tagged `parameters`, else first; a Python literal, or "
        "text; may be repeated")  # fmt: skip
    parser.add_argument("-o", "--output", type=Path,
        help="where the executed notebook goes (NOTEBOOK.refined.ipynb)")  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Execute a notebook, write it with its outputs, and say what came of its runs.

    Returns:
        The exit status, as `STATUS` has it.

    Raises:
        UsageError: the notebook or a parameter cannot be used, a cell failed, or it refined
            nothing; the notebook is written as far as it got.
    """
    notebook = _read(options.notebook)
    values = dict(map(_parameter, options.parameter))
    if values:
        _inject(notebook, values)
    output = options.output or options.notebook.with_suffix(".refined.ipynb")
    try:
        _execute(notebook, options.notebook.parent)
    finally:
        _write(notebook, output)
    runs = [one.run for one in recorded(json.loads(json.dumps(notebook)), output)]
    if not runs:
        raise UsageError(f"{options.notebook} has no %%refine cell that left a record.")
    print(_told(runs, output))
    return PASSED if all(one.converged for one in runs) else UNMET


def _read(path: Path) -> Any:
    import nbformat

    form: Any = nbformat
    try:
        return form.read(path, as_version=4)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error}).") from None
    except Exception as error:  # nbformat has an error of its own for each defect of a file
        raise UsageError(f"{path} is not a notebook ({type(error).__name__}).") from None


def _write(notebook: Any, path: Path) -> None:
    import nbformat

    form: Any = nbformat
    try:
        path.write_text(form.writes(notebook) + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}).") from None


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()) or keyword.iskeyword(name):
        raise UsageError(f"-p {text!r}: write NAME=VALUE with the name of a variable.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, value


def _inject(notebook: Any, values: dict[str, Any]) -> None:
    """Put the parameters into a cell of their own, as papermill does."""
    from nbformat import v4

    make: Any = v4
    source = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    cell = make.new_code_cell(source, metadata={"tags": [_INJECTED]})
    if "id" not in (notebook.cells or [cell])[0]:
        del cell["id"]  # older notebooks have none
    kept = [one for one in notebook.cells if _INJECTED not in _tags(one)]
    tagged = [n for n, one in enumerate(kept, start=1) if "parameters" in _tags(one)]
    kept.insert(tagged[0] if tagged else 0, cell)
    notebook.cells = kept


def _tags(cell: Any) -> Iterable[str]:
    return list(cell.metadata.get("tags", ()))


def _execute(notebook: Any, folder: Path) -> None:
    try:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, DeadKernelError
    except ImportError:
        raise UsageError(
            'Executing notebooks needs nbclient and ipykernel: `pip install "ipyrefine[run]"`.'
        ) from None
    from jupyter_client.kernelspec import NoSuchKernel
    from tqdm import tqdm

    with tqdm(total=len(notebook.cells), unit="cell", desc="Executing") as bar:
        done = {"cell": 0}

        def complete(cell: Any, cell_index: int) -> None:
            done["cell"] = cell_index + 1
            bar.update(cell_index + 1 - bar.n)

        client = NotebookClient(
            notebook,
            on_cell_complete=complete,
            resources={"metadata": {"path": str(folder)}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            raise UsageError(f"Cell {done['cell']} failed: {error.evalue or error.ename}") from None
        except DeadKernelError:
            raise UsageError(f"The kernel died in cell {done['cell']}.") from None
        except NoSuchKernel as error:
            raise UsageError(f"There is no kernel {error.name!r} here: install it.") from None
        bar.update(len(notebook.cells) - bar.n)


def _told(runs: list[Run], output: Path) -> str:
    lines = [
        f"{number}: {words.verdict_label(run.verdict)} {words.score(run.score)}, "
        + (words.STOPS[run.stop_reason] if run.stop_reason else "unfinished")
        for number, run in enumerate(runs)
    ]
    return "\n".join([*lines, f"Written to {output}."])
