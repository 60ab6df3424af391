"""The check ``run``: the code runs without an exception."""

import ast
import asyncio
import copy
import functools
import re
import signal
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Self

from ipyrefine.checks.functions import flaw, not_python
from ipyrefine.checks.outputs import IMPORT_SECONDS, imports_of, read_fault, read_outputs
from ipyrefine.checks.refusals import explain_paths, explain_refusal
from ipyrefine.checks.reported import find_lost_store, find_unwanted, read_effects
from ipyrefine.checks.undefined import NameReader, name_errors
from ipyrefine.core.effects import sentence, told
from ipyrefine.core.model import Condition, Effect, Fault, Task, on_conditions
from ipyrefine.core.same import differ
from ipyrefine.core.syntax import has_steps, is_literal, try_parse, try_parse_expression
from ipyrefine.core.table import Result
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.cells import UNDEFINED
from ipyrefine.kernel.held import MAX_HELD, read_held
from ipyrefine.kernel.magics import PythonPart, python_part
from ipyrefine.kernel.masking import run_without_secrets
from ipyrefine.kernel.names import names_defined, names_in_code
from ipyrefine.kernel.redaction import is_secret_name, redact
from ipyrefine.kernel.variables import NOT_RUN_HERE, Copies, wants_rows
from ipyrefine.sandbox.programs.overlay import FILE
from ipyrefine.sandbox.sandbox import (
    Event,
    FileContent,
    ProcessResult,
    compiled_program,
    describe_failure,
    field_of,
)

_NO_PYTHON = "Not run: its first line is for IPython, which checked code does not have."
_LINE = 400
_PROGRAMS = ("capture", "account", "reading")
_CHEAP = 3.0  # seconds of processor time of a run that is worth another, to see what is chance
_NO_MEMORY = re.compile(
    r"(?:[\w.]*MemoryError\b|\w+: .*failed to map segment|OpenBLAS error: Memory allocation)"
)
_NO_HEAP = "memory allocation of "  # what Rust says before it aborts
_MAX_NAME = 60  # characters of a line for IPython in a sentence
_SETTING = r"(?!%%?(?:autoreload|capture|config|matplotlib|precision|prun|time|timeit)\b)"
# The lines for IPython that may bind names, install packages or fetch files, by what lacks them.
_MAY_NEED = {
    "NameError": re.compile(rf"{_SETTING}%(?!%|pip\b|conda\b)"),
    "ImportError": re.compile(rf"{_SETTING}[%!]"),
    "ModuleNotFoundError": re.compile(rf"{_SETTING}[%!]"),
    "KeyError": re.compile(r"%(?:set_)?env\b"),
    "FileNotFoundError": re.compile(rf"{_SETTING}[%!]"),
}


class RunsCleanly(NameReader):
    """The text is Python that compiles and runs to its end without an exception.

    A failure blocks. A pass settles nothing, as code that does nothing runs too.

    An exit before the last statement fails, whatever its status, and so does an exception in a
    thread. So does one that reads a name which nothing defines, in a function that nobody calls
    too. A text written against this very check can still pretend to have ended well.

    Its effects say what the text did to data. Its outputs are what it printed, the value of its
    last expression, and its first figure. It fails, too, where pandas leaves what it stores into as
    it was.

    A text that fails because it needs what only the notebook has (a variable without a copy, the
    network, files elsewhere, its input, IPython) is not judged, and the detail says what that is.
    Nor is one that may fail only as further rows of a large frame are not there. One that does not
    end in time is stopped, which says nothing either; the run's later texts are then not tried.

    Args:
        seconds: processor time it may take, its imports apart, and seconds it may wait.
        decisive: has no effect; it is taken because other checks take it.
        copies: copies of the notebook's variables for it.
    """

    name = "run"
    _unasked = _looks = False

    def __init__(
        self,
        *,
        seconds: float = 30.0,
        decisive: bool = False,
        copies: Copies | None = None,
    ) -> None:
        super().__init__(copies)
        self._seconds = seconds
        self._names: tuple[str, ...] = ()
        self._stopped = False

    def requiring(self, names: Iterable[str]) -> Self:
        """Return this check for texts that also have to define some names."""
        other = copy.copy(self)
        other._names = tuple(names)
        return other

    async def __call__(
        self, text: str, task: Task, files: Mapping[str, FileContent] | None = None
    ) -> Result:
        """Run the text as a cell in the sandbox, with what it uses as it is now, or as it was."""
        if task.is_foreign:
            return not_python(self.name, task)
        code = python_part(text).code
        tree = try_parse(code) if self._unasked else None
        is_idle = tree and all(isinstance(one, ast.Pass) for one in tree.body)
        if tree and (is_idle if self._looks else not has_steps(tree)):  # not worth running
            return await self.or_undefined(Result(name=self.name, counts=False), text, task)
        if self._stopped or (text.lstrip().startswith("%%") and code == text):
            detail = self._too_long("Not run: an earlier draft") if self._stopped else _NO_PYTHON
            return Result(name=self.name, not_run=True, shows=detail, basis="run")
        undefined = await self.undefined(text, task)
        if self._unasked and not await self._copies.may_run():
            return Result(name=self.name, not_run=True, shows=NOT_RUN_HERE)
        programs = {f"{name}-program.pyc": compiled_program(name) for name in _PROGRAMS}
        nests = ("nest_asyncio", "nest_asyncio2") if hasattr(asyncio, "_nest_patched") else ()
        files = await self._copies.files(code) if files is None else files
        run = functools.partial(
            run_without_secrets,
            "cell",
            {**files, **programs, "candidate.py": code},
            seconds=self._seconds,
            each=self._seconds,
            startup=IMPORT_SECONDS,
            imports=imports_of(code),
            waits=self._seconds,
            nested=next((n for n in nests if n in sys.modules), ""),
            names=(*self._names, *(one.name for one in undefined)),
            binds=names_defined(code)[:MAX_HELD],
            looks=self._looks,
        )
        result, events = await run()
        defined = field_of(events, "defined")
        undefined = [one for one in undefined if one.name not in (defined or ())]
        fault = _find_fault(events, result, self._seconds)
        missing = [n for n in self._names if defined is not None and n not in defined]
        static = ""  # what the text alone shows
        if missing and not fault:
            fault = static = f"It ends without defining {', '.join(missing)}."
        absence = self._copies.explain_absence(fault, result.stderr) if fault else ""
        tried = field_of(events, "tried")
        if result.timed_out or field_of(events, "waited"):
            self._stopped, absence = True, self._too_long("Stopped: it")
        elif fault and not absence:
            absence = _explain_absence(fault, python_part(text)) or explain_refusal(
                None if result.limit else tried, fault, code, offline=result.protection.network
            )
        elif not fault:
            absence = explain_paths(tried)
        if undefined and (absence or not fault):
            fault = static = name_errors(undefined)
            absence = ""
        partial = self._copies.conditions(code)
        if fault and partial and not absence:
            first, *more = fault.split("\n")
            fault = "\n".join([f"{first.rstrip('.')}, {on_conditions(partial)}.", *more])
            if wants_rows(fault):
                absence = f"Not tried on all rows: {fault}"
        # Copies take memory that the notebook's own values do not.
        name = UNDEFINED.match(fault)
        wants = (name and name[1] in {one.name for one in task.materials}) or (
            result.limit in ("memory", "processes")
            or (result.exit_code == -signal.SIGABRT and _NO_HEAP in result.stderr)
            or _NO_MEMORY.match(fault)
        )
        tells = not (fault and wants and (self._unasked or files.keys() - {FILE}))
        prefix = "" if tells or absence else "Nothing can be said in the sandbox: "
        outputs = read_outputs(events, result.stdout) if fault or not absence else ()
        kept = not absence and (self._looks or not fault)
        effects = read_effects(events, outputs, partial, result.files) if kept else ()
        known, held = self._copies.names, read_held(events)  # also those that it does not use
        effects = tuple(
            one.replace(cause="replaced") if one.kind == "new" and one.name in known else one
            for one in effects
        )
        draws = field_of(events, "draws") and result.processor_seconds < _CHEAP
        if draws and not (fault or absence):
            with suppress(CheckNotRun):  # what gives the same again has set its seed
                differing = differ(held, read_held((await run())[1]))
                effects += tuple(Effect(kind="chance", name=one.name) for one in differing[:1])
        faults = (_as_data(events, result, self._seconds, static),) if fault else ()
        points = []
        if (store := find_lost_store(effects)) and not self._looks:
            why = f"`{store.name}` is unchanged: pandas warned, {store.cause}"
            fault, line = f"{why} (line {store.line}).", ["", *code.splitlines()][store.line :][:1]
            points.append(flaw("run", why).replace(place="".join(line).strip(), effect=store))
            faults = (Fault(raised=store.cause, line=store.line),)
        if (unwanted := find_unwanted(effects)) and not self._looks:
            fault = told(unwanted)
            points.insert(0, flaw("run", sentence(unwanted)).replace(effect=unwanted))
        fault = await self._copies.explain(fault, text)
        whole = not (fault or absence)
        lines = [fault or self._success(text, partial), result.protection_note]
        return Result(
            name=self.name,
            passed=None if absence or not tells else not fault,
            not_run=bool(absence),
            shows=absence or prefix + "\n".join(filter(None, lines)),
            basis="run",
            points=tuple(points),
            outputs=outputs,
            effects=effects,
            rows=tuple(
                row.replace(conditions=self._copies.conditions(code, row.call))
                for row in (_changes(events, task) if whole else ())
            ),
            held=held if whole else (),
            computed=self._copies.may_compute(code),
            conditions=partial,
            faults=faults,
        )

    def _too_long(self, what: str) -> str:
        more = "" if self._looks else f" To allow more: -c 'run seconds={4 * self._seconds:g}'."
        return f"{what} did not end in {self._seconds:g} seconds.{more}"

    def _success(self, text: str, partial: tuple[Condition, ...]) -> str:
        cut = {one.name for one in partial}
        copied = [name for name in self._copies.copied(names_in_code(text)) if name not in cut]
        copies = f"copies of {', '.join(copied)}" if copied else ""
        found = " and ".join(filter(None, [copies, *map(str, partial)]))
        return f"It runs on {found}." if found else "It runs without an error."


class RunOnCopies(RunsCleanly):
    """The text runs on copies of the notebook's variables; code that uses them is run unasked.

    A failure blocks, unless a copy or memory was missing. Arguments as for `RunsCleanly`.
    """

    name = "run on copies"
    _unasked = True

    def looking(self) -> Self:
        """Return this check for a cell that is run to see it, also if it only defines names."""
        other = copy.copy(self)
        other._looks = True
        return other


def _as_data(events: list[Event], result: ProcessResult, seconds: float, static: str) -> Fault:
    if static or result.timed_out or result.limit:
        return Fault(words=static or describe_failure(result, seconds))
    event = next((event for event in events if "raised" in event), {})
    return read_fault(event)


def _find_fault(events: list[Event], result: ProcessResult, seconds: float) -> str:
    for event in events:
        place = f" (line {event['line']})" if event.get("line") else ""
        if "exit" in event:
            return f"It exited with status {event['exit']} before its end{place}."
        if "failure" in event and result.exit_code == 0:
            return f"{event['failure']}{place}, next to the main thread."
    if result.exit_code != 0:
        return describe_failure(result, seconds)
    return "" if field_of(events, "end") else "It ended the process before its end."


def _changes(events: list[Event], task: Task) -> list[Result]:
    """Return what the code defined or changed, first what the task names; no intermediate steps.

    None if the code tampered with the report.
    """
    found = []
    reported = field_of(events, "changes")
    for one in reported if isinstance(reported, list) else ():
        match one:
            case [str(call), str(before), str(now)] if try_parse_expression(call):
                secret = any(is_secret_name(name, now) for name in re.findall(r"\w+", call))
                readable = all(redact(x) == x and len(x) <= _LINE for x in (call, before, now))
                if readable and is_literal(now) and not secret:
                    found.append(Result(call=call, before=before, gives=now, source="cell"))
    words = set(re.findall(r"\w+", task.text))
    return sorted(found, key=lambda row: words.isdisjoint(names_in_code(row.call)))


def _explain_absence(fault: str, part: PythonPart) -> str:
    """Return why code that needs the result of an IPython line cannot be judged; else nothing."""
    undefined = UNDEFINED.match(fault)
    if undefined and undefined[1] in part.names:
        return f"Not run: it needs {undefined[1]}, which only a line for IPython gives."
    needs = _MAY_NEED.get(fault.partition(":")[0])
    line = next((one for one in part.lines if needs and needs.match(one)), "")
    what = f"what {redact(line[:_MAX_NAME])} does, which only IPython runs."
    return line and f"Not run: it may need {what}"
