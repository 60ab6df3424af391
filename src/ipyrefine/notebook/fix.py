"""`%refine fix`: from the cell that failed to a run that mends it on copies of its variables."""

import builtins
import difflib
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Fault, Material, Task
from ipyrefine.core.ports import Check
from ipyrefine.core.sharing import fault_sentence, is_type
from ipyrefine.core.syntax import try_parse
from ipyrefine.core.table import Result
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.kernel.cells import UNDEFINED
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.names import names_defined, names_in_draft
from ipyrefine.kernel.redaction import redact, secret_values
from ipyrefine.notebook import options
from ipyrefine.notebook.cell_run import CellRun
from ipyrefine.notebook.cell_source import (
    LEFT_BY_US,
    CellSource,
    cell_key,
    read_code_cell,
    visible_names,
)
from ipyrefine.notebook.cell_start import make_run, show_decided
from ipyrefine.notebook.cell_target import Origin, is_cell_id, read_cell
from ipyrefine.notebook.failure import Failure
from ipyrefine.notebook.waiting import Placeholder

_TASK = (
    "Fix this code from a notebook: it fails with {kind}. Change only what the error asks for, and "
    "keep what the code is for, the names it defines and what it prints."
)
_LINE = re.compile(r"\s*(?:%\w|!(?!=))")  # for IPython, in a cell that is not Python yet


async def start_fix(magics: Any, words: list[str], placeholder: Placeholder) -> CellRun | None:
    """Build the run that fixes the cell that failed; None where its decided record was shown.

    Raises:
        UsageError: no such cell has failed, it has changed, it holds no Python, or an
            option cannot be used.
        NoModel: no model is configured.
    """
    args, own = options.parse(words, magics.set), options.parse(words)
    for name in ("task", "language"):
        if getattr(own, name):
            raise UsageError(
                f"{options.spell(name)} is not for %refine fix, which takes Python that failed."
            )
    key = cell_key(["fix", *words])
    failure = await _find_failure(magics, args)
    if failure is None:
        if await show_decided(magics, args, key, anywhere=bool(own.cell)):
            return None
        if args.cell:
            raise UsageError("This cell is not known to have failed. Run it again, then fix it.")
        raise UsageError("No failed cell is known. Run the cell again, then %refine fix.")
    source = _read_source(failure, magics.shell)
    args.cell = args.cell or (failure.cell_id if is_cell_id(failure.cell_id) else None)
    run = next((name for name in args.check if name.split()[:1] == ["run"]), "run")
    others = [name for name in args.check if name != run]
    # Prompts name the check, and recordings know them by their words.
    args.check = [run if "decisive" in run else f"{run} decisive", *others]
    args.critique = args.critique or "never"  # the change is small, and the person reads it
    args.profile = args.profile or "code"
    lines, warnings = _ipython_lines(source.text), []
    # A class made as the code ran may be named after a value.
    is_public = is_type(failure.kind) or failure.kind in source.text
    goal = _TASK.format(kind=failure.kind if is_public else "an error")
    if lines and not python_part(source.text).lines:  # it is not Python yet
        goal += "\n\nKeep these lines for IPython as they are:\n" + "\n".join(lines)
        warnings.append(f"Kept as they are, and never run by checks: {', '.join(lines)}")
    # A name like an undefined one may go, and the user's own goal may ask for others.
    undefined = UNDEFINED.match(failure.summary)
    misspelt = [undefined[1]] if undefined else []
    defined = [] if args.goal else names_defined(source.text)
    keeps = [name for name in defined if not difflib.get_close_matches(name, misspelt)]
    args.goal = f"{goal}\n\n{args.goal}" if args.goal else goal
    cells = [_traceback(failure, source.text)]
    near = _near_names(source.text, visible_names(magics.shell))
    origin = Origin(args.cell, failure.source, source.head) if args.cell else None
    source = source._replace(origin=origin)
    made = make_run(
        magics, args, source, key, near=near, keeps=keeps, cells=cells, warnings=warnings
    )
    made.refinement.checks = await _rerun(made.refinement, failure, lines)
    return CellRun(magics, args, made, placeholder, origin=origin, key=key)


# The cell


async def _find_failure(magics: Any, args: Namespace) -> Failure | None:
    """Return the failure to fix, without secrets; None where even the front-end knows of none.

    Raises:
        UsageError: the cell has changed since.
    """
    failure: Failure | None = magics.failures.find(args.cell)
    cell_id = args.cell or (failure.cell_id if failure else None)
    cell = await read_cell(cell_id)
    if failure and cell and cell.text != failure.source:
        raise UsageError("The cell has changed since it failed. Run it again, then fix it.")
    if failure is None and cell and cell.errors:  # as after a kernel's restart
        kind, message = (cell.errors[-1].get(one, "") for one in ("ename", "evalue"))
        kind = kind if kind.isidentifier() else "an error"
        failure = Failure(cell.text or "", cell_id, kind, message)
    if failure is None:
        return None
    secrets = secret_values(magics.shell.user_ns)
    frames = tuple(redact(frame, secrets) for frame in failure.frames)
    return failure._replace(message=redact(failure.message, secrets), frames=frames)


def _read_source(failure: Failure, shell: Any) -> CellSource:
    """Return the failed cell as a draft.

    Raises:
        UsageError: it holds no Python.
    """
    source = read_code_cell(failure.source, shell)
    if source.language:
        name = failure.source.split(maxsplit=1)[0]
        raise UsageError(f"A {name} cell can't be fixed: checks run Python only.")
    if not source.is_draft:
        raise UsageError("The cell holds words, not code. Put %%refine above them.")
    if {line.strip()[:1] for line in source.text.splitlines()} <= {"", "%", "!", "#"}:
        raise UsageError(
            "The cell holds only lines for IPython, which checks don't run. Fix it by hand."
        )
    return source._replace(text=source.text.strip("\n"))


def _ipython_lines(text: str) -> tuple[str, ...]:
    """Return a cell's magics and shell lines, also where the rest is not Python yet."""
    part = python_part(text)
    if part.lines or try_parse(text):
        return part.lines
    return tuple(line.strip() for line in text.splitlines() if _LINE.match(line))


# The prompt's context


def _traceback(failure: Failure, code: str) -> Material:
    raised = f"{failure.kind}: {failure.message}".rstrip(": ")
    head = "[what the code to fix raised in the notebook]"
    text = "\n".join([head, *failure.frames, raised])
    return Material(
        kind="cells",
        name="traceback",
        phrase="the traceback",
        text=text,
        computed=True,
        structure=f"{head}\n{fault_sentence(_as_data(failure), code)}",
    )


def _as_data(failure: Failure) -> Fault:
    return Fault(raised=failure.kind, line=failure.line or 0)


def _near_names(text: str, namespace: Mapping[str, Any]) -> list[str]:
    """Return the notebook's names that resemble the code's undefined ones."""
    if not try_parse(python_part(text).code):
        return []
    names = [name for name in namespace if name[:1] != "_" and name not in LEFT_BY_US]
    builtin = dir(builtins)
    unknown = [n for n in names_in_draft(text) if n not in namespace and n not in builtin]
    near = [m for name in unknown for m in difflib.get_close_matches(name, names, n=3)]
    # Without a near one any may be meant; the latest first.
    return near or (names[::-1] if unknown else [])


# The check


async def _rerun(
    refinement: Refinement, failure: Failure, lines: tuple[str, ...]
) -> tuple[Check, ...]:
    run, *others = refinement.checks
    draft, summary = refinement.state.setup.draft or "", failure.summary
    try:
        evidence = await run(draft, refinement.state.task)
    except CheckNotRun as error:
        evidence = Result(name=run.name, not_run=True, shows=str(error))
    faults = (_as_data(failure), *evidence.faults)
    runs = bool(evidence.passed and not evidence.conditions)
    if runs:
        words = "In the sandbox it does not fail."
        failed = _failed(run, f"{summary}\n{words} {evidence.shows}", *faults, Fault(words=words))
    elif evidence.passed is False and failure.kind in evidence.shows.partition(":")[0]:
        failed = evidence
    else:
        failed = _failed(run, f"{summary}\n{evidence.shows}", *faults)
    return (Rerun(run, draft, failed, lines, runs), *others)


def _failed(check: Check, detail: str, *faults: Fault) -> Result:
    return Result(
        name=check.name, passed=False, shows=detail, basis="run", computed=True, faults=faults
    )


@dataclass
class Rerun:
    """The check `run` for a cell whose failure is known already.

    A text that lacks one of the cell's lines for IPython fails. One that runs where the cell does,
    too, is not judged.

    Attributes:
        check: runs a text.
        draft: the cell's code.
        evidence: what is known of it.
        lines: its lines for IPython.
        runs: whether it runs in the sandbox.
    """

    check: Check
    draft: str
    evidence: Result
    lines: tuple[str, ...]
    runs: bool

    @property
    def name(self) -> str:
        """The check's name."""
        return self.check.name

    async def __call__(self, text: str, task: Task) -> Result:
        """Run a text, unless that is the cell itself."""
        if text == self.draft:
            return self.evidence
        missing = list(Counter(self.lines) - Counter(_ipython_lines(text)))
        if missing:
            line = f"It must keep this line for IPython: {missing[0]}"
            return _failed(self.check, line, Fault(words=line))
        evidence = await self.check(text, task)
        if not (evidence.passed and self.runs):
            return evidence
        detail = "Not tried: the failed cell does not fail in the sandbox either. Run it here."
        return evidence.replace(passed=None, not_run=True, shows=detail)
