"""Check a notebook: run it from top to bottom, and compare what is saved with what it gives now.

Its cells run for real, in a fresh kernel and in the notebook's own folder. Where something differs,
they run again with another seed for Python's hashes: what differs between these runs is chance.
"""

import ast
import asyncio
import base64
import builtins
import io
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, get_args

import nbformat
from pydantic import ValidationError

from ipyrefine.agents import ask
from ipyrefine.checks.evaluation import Examples
from ipyrefine.checks.suite import Suite
from ipyrefine.core.effects import has_to_be_wanted, told
from ipyrefine.core.model import Record, cut, one_line
from ipyrefine.core.points import first_line
from ipyrefine.core.run import Run
from ipyrefine.core.same import is_same
from ipyrefine.core.scopes import names_needed
from ipyrefine.core.stored import OtherVersion, read_record
from ipyrefine.core.syntax import names_at_top, names_used, tree_of
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.kernel.cells import explain
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.names import names_defined
from ipyrefine.kernel.variables import Copies
from ipyrefine.looks import SECONDS, Look
from ipyrefine.render.escape import strip_colours
from ipyrefine.session.export import kept_suite
from ipyrefine.session.record import (
    MIME,
    Stored,
    read_content,
    read_json,
    read_one,
    stored_records,
    text_of,
)

State = Literal[
    "as saved", "differs", "chance", "failed", "never run", "nothing saved", "not run", "holds"
]  # fmt: skip
NOT_RUN = 2  # the exit status where a notebook could not be run
CELL_SECONDS = 600
_MOST_RUNS = 5  # of a notebook in which what differs may be an order
_SHOWN = 160  # characters of a difference
_TOLD = ("read", "caught", "input", "unfollowed", "file")
_CLOCK = re.compile(
    r"\b(?:time|now|today|utcnow|perf_counter|process_time|monotonic|localtime|gmtime|ctime|"
    r"strftime)(?:_ns)?\s*\(|^\s*%%?time(?:it)?\b",
    re.MULTILINE,
)
# Of a time or a date: figures, with their units, and the names of days and months.
_TIME = re.compile(
    r"[-+.:\d]*\d[-+.:\d]*|\b(?:ns|[µu]s|ms|s|min|h|[ap]m)\b"
    r"|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    re.IGNORECASE,
)
_INSTALL = re.compile(r"\s*[!%]{1,2}\s*(?:pip3?|conda|mamba|uv|apt(?:-get)?|brew)\b")
_ASKS_MODEL = re.compile(r"\s*%%?refine\b")
SKIPPED = "skip-execution"  # the tag of cells that nbclient passes over
_WIDGET = "application/vnd.jupyter.widget-view+json"
_nbformat: Any = nbformat  # it carries no types


class CellCheck(Record):
    """What came of one code cell, or of the record of a run in its output.

    Attributes:
        cell: its number among all cells, from 1; 0 for a record that no cell shows.
        state: how what it gives now stands to what is saved; ``chance`` differs from run to run. Of
            a record, whether what was tried ``holds``.
        why: where it differs, why it failed or did not run; empty where the state says it all.
        effects: what it did to data, in sentences, as a look just before it told them.
    """

    cell: int
    state: State
    why: str = ""
    effects: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"cell {self.cell}: {self.state}" + (f" ({self.why})" if self.why else "")
        return "\n".join([f"  {head}", *(f"    {one}" for one in self.effects)])


class NotebookCheck(Record):
    """What came of a notebook; ``str(check)`` says it in words.

    Attributes:
        cells: what came of each cell that holds code.
        records: of each record of a run, whether its examples and tests still hold.
    """

    cells: tuple[CellCheck, ...]
    records: tuple[CellCheck, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing differs or failed."""
        return not {one.state for one in (*self.cells, *self.records)} & {"differs", "failed"}

    def __str__(self) -> str:
        counts = Counter(one.state for one in self.cells)
        states = [f"{counts[state]} {state}" for state in get_args(State) if counts[state]]
        told = [one for one in self.cells if one.state != "as saved" or one.why or one.effects]
        lines = [", ".join(states) or "no cell with code", *map(str, told)]
        return "\n".join([*lines, *(f"  record in {str(one).strip()}" for one in self.records)])


async def check(
    path: str | Path, *, seconds: float = CELL_SECONDS, account: bool = True
) -> NotebookCheck:
    """Run a notebook's cells for real and return what came of them, and of its records.

    Outputs are compared exactly, but for addresses and the last digits of floats: texts and tables
    as text, pictures by their pixels, records of ours by what they hold. Widgets, and what was
    written to standard error, are not compared.

    Args:
        path: the notebook.
        seconds: that a cell may run.
        account: whether a look before each cell tells what it does to data.

    Raises:
        UsageError: it can't be read, or nbclient or the kernel is missing.
    """
    file = Path(path)
    cells = read_notebook(file).cells
    runs = [await run_cells(file, 0, seconds, account=account)]
    found = compare(cells, runs)
    while any(one.state == "differs" for one in found) and len(runs) < _MOST_RUNS:
        if len(runs) > 1 and not _may_be_order(cells, runs, found):
            break
        runs.append(await run_cells(file, len(runs), seconds))
        found = compare(cells, runs)
    return NotebookCheck(cells=tuple(found), records=tuple(await check_records(file)))


async def check_records(path: Path) -> list[CellCheck]:
    """Try the examples and tests of each record again, on what the text's cell holds now.

    Raises:
        UsageError: the file can't be read.
    """
    found = []
    for stored in stored_records(read_content(path)):
        try:
            state, why = await _try_again(stored, read_one(stored, path))
        except (CheckNotRun, UsageError) as error:
            older = isinstance(error.__context__, OtherVersion)
            state = "not run" if older or isinstance(error, CheckNotRun) else "failed"
            why = str(error)
        found.append(CellCheck(cell=stored.cell, state=state, why=why))
    return found


async def _try_again(stored: Stored, run: Run) -> tuple[State, str]:
    text = stored.text_now(run) or run.text
    examples, tests = kept_suite(run)
    if not (stored.whole and (examples or tests)):
        return "not run", "it has no examples and no tests" if stored.whole else "its texts are cut"
    code = python_part(text).code
    sources = [code, *(one.code for one in examples), *(one.code for one in tests)]
    read = set[str]().union(*map(names_needed, sources))
    lacking = read - {*dir(builtins)} - names_at_top(tree_of(code).body)
    copies = Copies(absent=dict.fromkeys(lacking, "no variables of the notebook are here"))
    tried = [
        await Examples(copies=copies)(text, run.task),
        *(await Suite(copies)(tests, text, run.task)).values(),
    ]
    if failed := [one for one in tried if one.passed is False]:
        return "failed", first_line(failed[0].shows)
    held = any(one.passed for one in tried)
    return ("holds", "") if held else ("not run", first_line(tried[0].shows))


def read_notebook(path: Path) -> Any:
    """Return a notebook as nbformat reads it.

    Raises:
        UsageError: it can't be read, or is none.
    """
    content = json.dumps(read_json(path))
    try:
        return _nbformat.reads(content, as_version=4)
    except Exception:  # nbformat has an error of its own for each defect of a file
        raise UsageError(f"{path} is no notebook, or is damaged. Save it in JupyterLab.") from None


def encrypted() -> Any:
    """Return the settings that encrypt what is sent to a kernel; it warns about anything else."""
    import zmq
    from jupyter_client.manager import KernelManager
    from traitlets.config import Config

    if zmq.has("curve") and hasattr(KernelManager, "transport_encryption"):
        return Config({"KernelManager": {"transport_encryption": "auto"}})
    return Config()


# Running


class CellRan(Record):
    """A cell in one run: its outputs, or why it did not run; and what a look told before it."""

    outputs: tuple[Any, ...] = ()
    not_run: str = ""
    effects: tuple[str, ...] = ()


async def run_cells(
    path: Path, seed: int, seconds: float = CELL_SECONDS, *, account: bool = False
) -> list[CellRan]:
    """Return what each cell of a notebook gives in a fresh kernel.

    Args:
        path: the notebook.
        seed: of Python's hashes.
        seconds: that a cell may run.
        account: whether a look tells before each cell what it does to data.

    Raises:
        UsageError: it can't be read, or nbclient or the kernel is missing.
    """
    try:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellTimeoutError, DeadKernelError
    except ImportError:
        raise UsageError(
            'Running notebooks needs nbclient and ipykernel: `pip install "ipyrefine[run]"`.'
        ) from None
    from jupyter_client.kernelspec import NoSuchKernel

    notebook, ran = read_notebook(path), []
    client = NotebookClient(
        notebook,
        timeout=seconds,
        interrupt_on_timeout=True,
        allow_errors=True,
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
        config=encrypted(),
    )
    try:
        async with client.async_setup_kernel(env=os.environ | {"PYTHONHASHSEED": str(seed)}):
            for number, cell in enumerate(notebook.cells):
                source = _source_to_run(cell)
                if not source.strip():
                    ran.append(CellRan(not_run=_why_not(cell)))
                    continue
                cell.source, cell.outputs = source, []
                effects = await _effects(client, source) if account else ()
                with suppress(CellTimeoutError):
                    await client.async_execute_cell(cell, number)
                ran.append(CellRan(outputs=tuple(cell.outputs), effects=effects))
    except NoSuchKernel as error:
        raise UsageError(f"There is no kernel {error.name!r} here. Install it.") from None
    except DeadKernelError:
        died = {"output_type": "error", "ename": "The kernel died", "evalue": ""}
        ran += [CellRan(outputs=(died,))] * (len(notebook.cells) - len(ran))
    return ran


def _source_to_run(cell: Any) -> str:
    if cell.cell_type != "code" or _why_not(cell, installs=False):
        return ""
    lines = str(cell.source).splitlines()
    if _INSTALL.match(lines[0] if lines else "") and lines[0].startswith("%%"):
        return ""
    return "\n".join("" if _INSTALL.match(one) else one for one in lines)


def _why_not(cell: Any, *, installs: bool = True) -> str:
    if tag := next(
        (one for one in cell.metadata.get("tags", ()) if one in (SKIPPED, "nbval-skip")), ""
    ):
        return f"it has the tag {tag}"
    if any(map(_ASKS_MODEL.match, str(cell.source).splitlines())):
        return "it may ask a model"
    return "it only installs packages" if installs else ""


async def _effects(client: Any, source: str) -> tuple[str, ...]:
    """Return what a look at a cell tells of its effects; nothing where the kernel has none."""
    asked = f"__import__('ipyrefine').look({source!r}, get_ipython().user_ns).model_dump_json()"
    with suppress(Exception):  # a kernel may be of any language, and die of anything
        async with asyncio.timeout(3 * SECONDS):
            found = (await ask(client.kc, asked))["data"]["text/plain"]
        effects = Look.model_validate_json(ast.literal_eval(found)).effects
        return tuple(told(one) for one in effects if has_to_be_wanted(one) or one.kind in _TOLD)
    return ()


# Comparing


def compare(cells: Sequence[Any], runs: Sequence[Sequence[CellRan]]) -> list[CellCheck]:
    """Return how what cells give stands to what is saved; what differs between runs is chance."""
    clocks, found = set[str](), list[CellCheck]()
    sources = [str(one.source) * (one.cell_type == "code") for one in cells]
    for number, cell in enumerate(cells):
        if cell.cell_type != "code" or not str(cell.source).strip():
            continue
        code = python_part(cell.source).code
        reads_clock = bool(_CLOCK.search(cell.source)) or not clocks.isdisjoint(
            names_used(tree_of(code))
        )
        clocks |= {*names_defined(code)} if reads_clock else set()
        state, why = _state(cell, [one[number] for one in runs], clock=reads_clock)
        effects = runs[0][number].effects
        why = explain(why, sources)
        found.append(CellCheck(cell=number + 1, state=state, why=why, effects=effects))
    return found


def _state(cell: Any, runs: Sequence[CellRan], *, clock: bool) -> tuple[State, str]:
    if why := runs[0].not_run:
        return "not run", why
    saved, now = _flat(cell.outputs), _flat(runs[0].outputs)
    tags = {*cell.metadata.get("tags", ())}
    error = next((what for kind, what in now if kind == "error"), "")
    if error.startswith("StdinNotImplementedError"):
        return "not run", "it asks for input"
    may_raise = {"raises-exception", "nbval-raises-exception"} & tags
    if error and not may_raise and not any(kind == "error" for kind, _ in saved):
        return "failed", error
    if "nbval-ignore-output" in tags:
        return "as saved", "its outputs are not compared, by its tag"
    if not cell.outputs and cell.execution_count is None:
        return "never run", ""
    if not cell.outputs and now:
        return "nothing saved", ""
    state: State = "as saved"
    for one, other, *more in zip_longest(saved, now, *(_flat(one.outputs) for one in runs[1:])):
        if _same(one, other):
            continue
        if any(not _same(other, again) for again in more) or (
            clock and _timeless(one) == _timeless(other)
        ):
            state = "chance"
        else:
            return "differs", _difference(one, other)
    return state, ""


def _flat(outputs: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    """Return what is compared of outputs: each with its kind; a stream's parts are one."""
    found = list[tuple[str, Any]]()
    for one in outputs:
        if one["output_type"] == "stream":
            if one["name"] == "stdout":
                text = "".join(what for kind, what in found if kind == "printed text")
                found = [it for it in found if it[0] != "printed text"]
                found.append(("printed text", text + text_of(one["text"])))
        elif one["output_type"] == "error":
            found.append(("error", f"{one['ename']}: {one['evalue']}".rstrip(": ")))
        elif _WIDGET not in one["data"]:
            found.append(_value(one["data"]))
    return found


def _value(data: Mapping[str, Any]) -> tuple[str, Any]:
    if MIME in data:
        return "record", _record(data[MIME])
    for kind in ("image/png", "image/jpeg"):
        if kind in data:
            return "picture", _pixels(data[kind])
    text = text_of(data.get("text/plain", ""))
    if not text or text.startswith("<"):
        rich = {kind: one for kind, one in data.items() if kind != "text/plain"}
        return "value", json.dumps(rich, sort_keys=True) if rich else text
    return "value", text


def _pixels(picture: Any) -> Any:
    content = base64.b64decode(text_of(picture))
    with suppress(Exception):  # without Pillow, or of a broken picture, its bytes are compared
        from PIL import Image

        shown = Image.open(io.BytesIO(content)).convert("RGBA")
        return shown.size, shown.tobytes()
    return content


def _record(stored: Any) -> Any:
    """Return what a record says of each text, without its times and its ids."""
    with suppress(ValidationError, ValueError, TypeError):
        run = read_record({k: v for k, v in stored.items() if k not in ("cut", "cell", "asked")})
        return [
            (one.text, one.verdict and one.verdict.outcome, [e.outputs for e in one.evidence])
            for one in run.iterations
        ]
    return stored


def _same(one: tuple[str, Any] | None, other: tuple[str, Any] | None) -> bool:
    if one is None or other is None or one[0] != other[0] or not isinstance(one[1], str):
        return one == other
    return is_same(_plain(one[1]), _plain(other[1]))


def _plain(text: str) -> str:
    lines = (line.rpartition("\r")[2].rstrip() for line in strip_colours(text).split("\n"))
    return "\n".join(lines).strip("\n")


def _timeless(output: tuple[str, Any] | None) -> tuple[str, Any] | None:
    """Return an output of a cell that reads a clock without times."""
    if output is None or not isinstance(output[1], str):
        return output
    return output[0], _TIME.sub("", output[1]).split()


def _may_be_order(
    cells: Sequence[Any], runs: Sequence[Sequence[CellRan]], found: Sequence[CellCheck]
) -> bool:
    """Return True if what differs anywhere has the same characters in another order."""
    numbers = (one.cell - 1 for one in found if one.state == "differs")
    return any(
        Counter(str(_flat(cells[n].outputs))) == Counter(str(_flat(runs[0][n].outputs)))
        for n in numbers
    )


def _difference(one: tuple[str, Any] | None, other: tuple[str, Any] | None) -> str:
    if one is None or other is None or one[0] != other[0]:
        was, now = (each[0] if each else "nothing" for each in (one, other))
        return f"saved: {was}, now: {now}"
    if not (isinstance(one[1], str) and isinstance(other[1], str)):
        return f"now it is another {one[0]}"
    lines = zip_longest(_plain(one[1]).split("\n"), _plain(other[1]).split("\n"), fillvalue="")
    was, now = next(pair for pair in lines if not _same(("", pair[0]), ("", pair[1])))
    was, now = (cut(one_line(one), _SHOWN, " …") for one in (was, now))
    return f"saved “{was}”, now “{now}”"
