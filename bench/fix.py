"""Let the model repair cells that fail: by ``%refine fix``, and by asking once with the traceback.

``python bench/fix.py [--tasks A-B] [--ask]`` (needs the extras ``local`` and ``bench``).
``broken_cells.jsonl`` holds 40 cells: eleven with a wrong column, nine with a wrong dtype, and five
each with a name error, a shape that does not fit, a missing import, and an off by one that raises.
The last ten came later, and nothing was shaped on them. Each comes with the cells above it and a
hidden check.

- fix: ``%refine fix --plain --apply none --share all`` in an IPython shell in which the cells
  above and the broken one have just run.
- re-ask: one greedy call with the cell and its traceback, as somebody pastes it into a chat.

What comes of either is run in the sandbox after the cells above, as after a restart: a cell is
repaired if it runs and the hidden check passes below it.

Every reply is kept at once, so that a bench that was stopped goes on where it was. Without
``--ask`` no model is asked: a reply that is missing ends the bench. ``--validate`` tests the cells
instead: each must fail as it says, its own fix must pass the hidden check, and swallowing the error
must not.
"""

import argparse
import asyncio
import json
import re
import secrets
import sys
import textwrap
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import arms
import measure
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from measure import Meter
from tqdm import tqdm
from traitlets.config import Config

from ipyrefine import api
from ipyrefine.core.model import Task, Usage
from ipyrefine.core.ports import Message, Model, Request
from ipyrefine.errors import Interrupted, UsageError
from ipyrefine.kernel.magics import python_part
from ipyrefine.sandbox.sandbox import describe_failure, run_python

_HERE = Path(__file__).parent
_MAX_TOKENS = 1_024  # completion tokens that a repaired cell may take
_CONFIG = Config({"HistoryManager": {"enabled": False}, "Refine": {"journal": False}})
_LIBRARY = re.compile(r'(?<=File ")[^"]*?/site-packages/')  # where packages are on this machine
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
_REASK = """\
This notebook cell fails:

```python
{cell}```

{traceback}
Return the corrected cell: all of it, in one block that starts with ```python and ends with ```."""


class Case(NamedTuple):
    """A cell that fails."""

    name: str
    kind: str  # what is wrong with it
    error: str  # the exception that it raises
    setup: Sequence[str]  # the cells above it
    cell: str
    fix: str  # a cell that does what it should
    check: str  # asserts that hold below a right one

    async def run(self, text: str) -> "Result":
        """Return what comes of another text in the cell's place."""
        done, error = await run_cells([*self.setup, text, self.check])
        runs = bool(text.strip()) and done > len(self.setup)
        return Result(runs, runs and done == len(self.setup) + 2, error)


class Result(NamedTuple):
    """What came of a repaired cell."""

    runs: bool  # to its end
    right: bool  # the hidden check passes below it
    error: str  # what ended it or the check


async def run_cells(cells: Sequence[str]) -> tuple[int, str]:
    """Run cells in one namespace; return how many ran to their end, and what ended the next."""
    report = secrets.token_hex(8)
    sources = json.dumps([python_part(cell).code for cell in cells])
    result = await run_python(
        _RUNNER.format(report=report),
        seconds=_SECONDS,
        memory_mb=_MEMORY_MB,
        files={"cells.json": sources},
        report=report,
    )
    lines = result.report.splitlines()
    done, error = json.loads(lines[-1]) if lines else (0, "")
    if not error and done < len(cells):
        error = describe_failure(result, _SECONDS)
    return done, error


class Repair(NamedTuple):
    """What an arm came to on a cell; `ran` is whether it was tried and ran, None if never tried."""

    result: Result
    ran: bool | None
    usage: Usage


class Row(NamedTuple):
    """What came of one cell."""

    case: Case
    reask: Repair
    fix: Repair


# The arms.


async def run_case(case: Case, model: measure.Replies) -> Row:
    """Let the model repair a cell in both arms, and run what it gives."""
    asked, fixing = Meter(model), Meter(model)
    async with failed_cell(case, fixing) as (shell, error):
        reply = await measure.complete(asked, reask_request(case, error))
        text, ran = await fix(shell, model.name)
    reasked = await case.run(arms.read_text(reply, Task(text="", form="code")))
    fixed = await case.run(text)
    return Row(case, Repair(reasked, None, asked.usage), Repair(fixed, ran, fixing.usage))


@asynccontextmanager
async def failed_cell(case: Case, model: Model) -> AsyncIterator[tuple[Any, BaseException]]:
    """Yield a shell in which a cell has just failed, and its error.

    Args:
        case: the cell.
        model: is every model there, whatever the name.

    Raises:
        AssertionError: a cell above it fails, or it does not.
    """
    main = sys.modules["__main__"]
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=_CONFIG)
    try:
        with mock.patch.object(api, "choose_model", return_value=model):
            shell.extension_manager.load_extension("ipyrefine")
            for cell in case.setup:
                error = await _run_cell(shell, cell)
                assert error is None, f"{case.name}: a cell above it fails: {error!r}"
            error = await _run_cell(shell, case.cell)
            assert error is not None, f"{case.name}: it does not fail"
            yield shell, error
    finally:
        InteractiveShell.clear_instance()
        sys.modules["__main__"] = main  # which the shell had replaced


async def _run_cell(shell: Any, cell: str) -> BaseException | None:
    """Run a cell and return what it raised; what it shows is dropped."""
    with capture_output():
        result = await shell.run_cell_async(
            cell, store_history=True, transformed_cell=shell.transform_cell(cell)
        )
        shell.events.trigger("post_run_cell", result)  # as a kernel does
    return result.error_before_exec or result.error_in_exec  # type: ignore[no-any-return]


async def fix(shell: Any, model: str) -> tuple[str, bool]:
    """Return what ``%refine fix`` makes of the cell that failed last, and whether that ran there.

    Raises:
        UsageError: the command cannot be used.
        KeyboardInterrupt: the user stopped it.
    """
    error = await _run_cell(shell, f"%refine fix --plain --apply none --share all -m {model}")
    if isinstance(error, UsageError):
        raise error
    if isinstance(error, KeyboardInterrupt | Interrupted):
        raise KeyboardInterrupt
    run = shell.user_ns.get("refined_run")
    return (run.text, bool(run.verdict and run.verdict.only_ran)) if run else ("", False)


def reask_request(case: Case, error: BaseException) -> Request:
    """Return the request of a plain re-ask: the cell, its traceback, and nothing else."""
    prompt = _REASK.format(cell=case.cell, traceback=format_traceback(error))
    return Request(
        messages=(Message(role="user", content=prompt),),
        max_tokens=_MAX_TOKENS,
        temperature=0.0,
        seed=0,
        purpose="re-ask",
    )


def format_traceback(error: BaseException) -> str:
    """Return a cell's traceback as Python writes it, the same on every machine."""
    trace = error.__traceback__
    while trace and "ipython-input" not in trace.tb_frame.f_code.co_filename:
        trace = trace.tb_next  # IPython's own frames
    text = "".join(traceback.format_exception(type(error), error, trace))
    return _LIBRARY.sub("", text)


# The cases.


def load() -> list[Case]:
    """Return the cells."""
    return [Case(**fields) for fields in measure.load_cases(_HERE, "broken_cells")]


async def validate(cases: Sequence[Case]) -> None:
    """Run each cell, its fix, and one that swallows the error."""
    faults = []
    for case in tqdm(cases, unit="cell"):
        if not (fixed := await case.run(case.fix)).right:
            faults.append(f"{case.name}: its fix fails, {fixed.error}")
        broken = await case.run(case.cell)
        if broken.runs or not broken.error.startswith(f"{case.error}:"):
            faults.append(f"{case.name}: it ends with {broken.error!r}, not {case.error}")
        if (swallowed := await case.run(swallow(case.cell))).right or not swallowed.runs:
            faults.append(f"{case.name}: without its error it passes")
    print("\n".join([*faults, f"{len(cases)} cells validated, {len(faults)} faults."]))
    sys.exit(bool(faults))


def swallow(cell: str) -> str:
    """Return a cell that ends quietly where another one fails."""
    return f"try:\n{textwrap.indent(cell, '    ')}\nexcept Exception:\n    pass\n"


# The tables.


def report(rows: Sequence[Row], model: str) -> str:
    """Return the tables on some rows."""

    def reask(row: Row) -> Repair:
        return row.reask

    def fixed(row: Row) -> Repair:
        return row.fix

    def counted(name: str, holds: Callable[[Repair], bool]) -> tuple[str, ...]:
        both = [lambda row, arm=arm: holds(arm(row)) for arm in (reask, fixed)]
        pairs = measure.paired(rows, both[1], both[0])
        return name, *(measure.share(rows, one) for one in both), pairs

    def used(name: str, read: Callable[[Usage], float | None]) -> tuple[str, ...]:
        sums = (sum(read(arm(row).usage) or 0 for row in rows) for arm in (reask, fixed))
        return name, *(f"{one:,.0f}" for one in sums), ""

    ran = [row for row in rows if row.fix.ran]
    lines = [
        counted("repaired", lambda repair: repair.result.right),
        counted("runs", lambda repair: repair.result.runs),
        ("ran on copies", "-", f"{len(ran)} of {len(rows)}", ""),
        ("wrong among these", "-",
         measure.share(ran, lambda row: not row.fix.result.right), ""),
        used("calls", lambda usage: usage.calls),
        used("prompt tokens", lambda usage: usage.prompt_tokens),
        used("completion tokens", lambda usage: usage.completion_tokens),
        used("seconds", lambda usage: usage.seconds),
    ]  # fmt: skip
    kinds = dict.fromkeys(row.case.kind for row in rows)
    by_kind = [
        (kind, *(_count([arm(row) for row in rows if row.case.kind == kind]) for arm in both))
        for kind in kinds
        for both in [(reask, fixed)]
    ]
    heads = ["", "re-ask", "fix", "fix, against re-ask"]
    cells = [(row.case.name, _outcome(row.reask), _outcome(row.fix)) for row in rows]
    return "\n\n".join(
        [
            f"## Broken cells, {model}, {len(rows)} cells",
            measure.table(heads, lines),
            "Intervals: 95 %, exact.",
            measure.table(["repaired, by kind", "re-ask", "fix"], by_kind),
            measure.table(["cell", "re-ask", "fix"], cells),
        ]
    )


def _count(repairs: Sequence[Repair]) -> str:
    return f"{sum(repair.result.right for repair in repairs)} of {len(repairs)}"


def _outcome(repair: Repair) -> str:
    runs, right, error = repair.result
    if right:
        return "repaired"
    return f"{'runs, ' if runs else ''}{measure.short(error)}"


def main() -> None:
    """Run the cells and print the tables."""
    parser = measure.parser(__doc__)
    parser.add_argument("--validate", action="store_true", help="test the cells instead")
    options: argparse.Namespace = parser.parse_args()
    cases = load()
    last = len(cases) - 1
    cases = [cases[place] for place in measure.task_range(options.tasks, f"0-{last}", last)]
    if options.validate:
        asyncio.run(validate(cases))
    replies = measure.kept_replies("fix", options)

    def note(rows: Sequence[Row]) -> str:
        reasked, fixed = (_count([row[n] for row in rows]) for n in (1, 2))
        return f"repaired {reasked} by re-ask, {fixed} by fix"

    rows = measure.collect(
        "Broken cells", cases, replies, lambda case: run_case(case, replies), note
    )
    if rows:
        print(f"\n{report(rows, options.model)}\n")
    measure.stop(replies, len(rows), len(cases))


if __name__ == "__main__":
    main()
