"""Runs kept earlier: list them, with how often the user agreed with verdicts, and resume one."""

import contextlib
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ipyrefine.core import rank
from ipyrefine.core.decisions import Accept, Override
from ipyrefine.core.model import Outcome, StopReason, Verdict
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.journal.store import Journal, Stored, Summary, UnreadableRun
from ipyrefine.journal.writer import open_journal
from ipyrefine.render import say
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import align, clip, wrap
from ipyrefine.session.record import load_whole

MAX_LISTED = 20

_HEAD = ("no.", "last used", "verdict", "texts")
_HINT = "resume, export and forget take a number, or a name for its latest run."
_ENDS = {"accepted": ", accepted", "cancelled": ", interrupted", "failed": ", an error"}


def history(search: str = "", number: int = MAX_LISTED) -> str:
    """Return a table of runs in the journal, and how often the user agreed with their verdicts.

    The words of `search` must all be in the name or the task.
    """
    number = min(max(1, number), 10**6)
    runs = Journal().runs(search, limit=number + 1)
    if not runs:
        return "No run in the journal matches." if search else "The journal is empty."
    listed, columns = runs[:number], shutil.get_terminal_size().columns
    cells = [
        (
            str(one.number),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(one.updated)),
            _verdict(one),
            str(one.iterations),
        )
        for one in listed
    ]
    head, *rows = align([_HEAD, *cells], columns)
    tasks = []
    for one in listed:  # after the run's name, unless that was made from the task
        made = "-".join(re.findall(r"\w+", one.title.lower())).startswith(one.name)
        title = one.title if made else f"{one.name} · {one.title}"
        tasks.append(clip(f"     {plain(title)}", columns))
    lines = [line for pair in zip(rows, tasks, strict=True) for line in pair]
    more = ["There are more. Name a word of the task to find one."] if len(runs) > number else []
    notes = filter(None, [agreement(_readable(listed)), _HINT])
    return "\n".join([head, *lines, *(n for note in notes for n in wrap(note, columns)), *more])


def _readable(listed: Iterable[Summary]) -> Iterator[Run]:
    for one in listed:
        with contextlib.suppress(UnreadableRun, UsageError):  # one may be erased meanwhile
            yield Journal().get(str(one.number)).run


def _verdict(one: Summary) -> str:
    """Return a run's verdict with its basis, and how it ended if that says more."""
    if one.outcome is None:
        return say.STOPS[StopReason(one.stop_reason)] if one.stop_reason else "unfinished"
    verdict = Verdict.model_validate(
        {"outcome": one.outcome, "score": None, "basis": one.basis or "none"}
    )
    label = say.Words(say.label_of(verdict), say.SOURCES.get(verdict.basis, ""))
    return str(label) + _ENDS.get(one.stop_reason or "", "")


# Resuming


def find_earlier(words: Sequence[str], *, journal: bool) -> Stored:
    """Find the run to resume.

    That is ``[NAME]`` for a run in the journal, the latest by default, or ``FILE [k]`` for one in a
    notebook or an exported file. If `journal`, its next events are kept.

    Raises:
        UsageError: there is no such run, or it cannot be resumed.
        JournalError: the journal cannot be read.
    """
    which = words[0] if words else ""
    if which.lower().endswith((".ipynb", ".json")):
        run = load_whole(Path(which).expanduser(), *words[1:2])
        return Stored(run, {}, open_journal(journal, origin=run))
    if len(words) > 1:
        raise UsageError("Name one run: %refine resume NAME, or %refine resume FILE.ipynb 0.")
    stored = Journal().get(which)
    return stored if journal else stored._replace(journal=None)


# Agreement


def agreement(runs: Iterable[Run]) -> str:
    """Return how often the user agreed with verdicts, in a line; empty for no ruling on one.

    Accepting a text, or marking it as passed, says that it is good; sending it back says that it
    is not. The latest word on a text counts, and NOT JUDGED says nothing to agree with.
    """
    rulings = [ruling for run in runs for ruling in _rulings(run)]
    if not rulings:
        return ""
    agreed = sum(passed is good for passed, good in rulings)
    return f"You agreed with {agreed} of {say.count(len(rulings), 'verdict')} that you ruled on."


def _rulings(run: Run) -> Iterator[tuple[bool, bool]]:
    """Yield whether texts that the user ruled on had passed, and whether the user took them."""
    decisions = [one for one in run.decisions if isinstance(one, Accept | Override)]
    words = {run.best if d.iteration is None else d.iteration: d.settles for d in decisions}
    for number, good in words.items():
        text = run.iterations[number] if number is not None else None
        if text is None or text.verdict is None:
            continue  # there was no verdict to agree with
        shown = rank.verdict(run, text.replace(override=None)) if text.override else text.verdict
        if shown.outcome is not Outcome.NOT_JUDGED:
            yield shown.passed, good
