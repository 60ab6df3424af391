"""Runs kept earlier: list them, resume one, and count how often the user agreed with verdicts."""

import argparse
import contextlib
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from ipyrefine.core.decisions import Accept, Override
from ipyrefine.core.model import Outcome, StopReason, Verdict
from ipyrefine.core.run import Run
from ipyrefine.core.verdicts import recompute
from ipyrefine.errors import UsageError
from ipyrefine.journal.store import Journal, Summary, UnreadableRun
from ipyrefine.journal.writer import Recorder, open_journal
from ipyrefine.render import labels
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import align, clip, wrap
from ipyrefine.session.record import load_whole

MAX_LISTED = 20
MAX_COUNTED = 500  # runs that agreement is counted over

_HEAD = ("no.", "last used", "verdict", "texts")
_HINT = "resume, export and forget take a number, or a name for its latest run."
_ENDS = {"accepted": ", accepted", "cancelled": ", interrupted", "failed": ", an error"}
_RECENT = 180 * 86_400  # seconds; older dates have their year


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `history` to a parser."""
    add = parser.add_argument
    add("search", nargs="*", help="words in the name or the task")
    add(
        "--verdict",
        default="",
        help="pass, needs_improvement, fail or not_judged; or a stop reason, such as plateau",
    )
    add("-m", "--model", default="", help="part of the model's name")
    add("-n", "--number", type=int, default=MAX_LISTED, help=f"runs to list ({MAX_LISTED})")


def history(options: argparse.Namespace, *, now: float | None = None) -> str:
    """Return a table of runs in the journal.

    Args:
        options: what `add_arguments` reads.
        now: seconds since 1970.
    """
    number = max(1, options.number)
    runs = Journal().runs(
        " ".join(options.search),
        verdict=options.verdict,
        model=options.model,
        limit=number + 1,
    )
    if not runs:
        filtered = options.search or options.verdict or options.model
        return "No run in the journal matches." if filtered else "The journal is empty."
    now = time.time() if now is None else now
    listed, columns = runs[:number], shutil.get_terminal_size().columns
    head, *rows = align([_HEAD, *(_row(one, now) for one in listed)], columns)
    tasks = [clip(f"     {_title(one)}", columns) for one in listed]
    lines = [line for pair in zip(rows, tasks, strict=True) for line in pair]
    more = [f"There are more: -n {number * 5} lists them."] if len(runs) > number else []
    return "\n".join([head, *lines, *wrap(_HINT, columns), *more])


def _row(one: Summary, now: float) -> tuple[str, ...]:
    return str(one.number), _format_date(one.updated, now), _verdict(one), str(one.iterations)


def _title(one: Summary) -> str:
    """Return the task's first line, after the run's name unless that was made from it."""
    made = "-".join(re.findall(r"\w+", one.title.lower())).startswith(one.name)
    return plain(one.title if made else f"{one.name} · {one.title}")


def _verdict(one: Summary) -> str:
    """Return a run's verdict with its basis, and how it ended if that says more."""
    if one.outcome is None:
        return labels.STOPS[StopReason(one.stop_reason)] if one.stop_reason else "unfinished"
    verdict = Verdict.model_validate(
        {"outcome": one.outcome, "score": None, "basis": one.basis or "none"}
    )
    label, basis = labels.outcome_label(verdict), labels.BASES[verdict.basis][0]
    end = _ENDS.get(one.stop_reason or "", "")
    return f"{label}{' · ' if basis else ''}{basis}{end}"


def _format_date(then: float, now: float) -> str:
    """Return a time in short: ``today 07:12``, ``21 Nov 18:03`` or ``3 Jan 2025``."""
    date, today = time.localtime(then), time.localtime(now)
    if date[:3] == today[:3]:
        return time.strftime("today %H:%M", date)
    day = f"{date.tm_mday} {time.strftime('%b', date)}"
    recent = now - then < _RECENT
    return f"{day} {time.strftime('%H:%M' if recent else '%Y', date)}"


# Resuming


class Earlier(NamedTuple):
    """A run to resume."""

    run: Run
    settings: dict[str, Any]  # the options it was started with, as the journal keeps them
    journal: Recorder | None  # what writes its next events; None for a run that is not kept
    began_here: bool = False  # as for `Stored`


def find_earlier(words: Sequence[str], *, journal: bool = True) -> Earlier:
    """Find the run to resume.

    Args:
        words: ``[NAME]`` for a run in the journal, the latest by default, or ``FILE [k]`` for one
            in a notebook or an exported file.
        journal: whether its next events are kept.

    Raises:
        UsageError: there is no such run, or it cannot be resumed.
        JournalError: the journal cannot be read.
    """
    which = words[0] if words else ""
    if which.lower().endswith((".ipynb", ".json")):
        run = load_whole(Path(which).expanduser(), *words[1:2])
        return Earlier(run, {}, open_journal(journal, origin=run))
    if len(words) > 1:
        raise UsageError("Name one run: %refine resume NAME, or %refine resume FILE.ipynb 0.")
    stored = Journal().get(which)
    recorder = Journal().recorder(stored) if journal else None
    return Earlier(stored.run, stored.settings, recorder, stored.began_here)


# Statistics


def stats() -> str:
    """Return how often the user agreed with verdicts, over the latest runs in the journal."""
    journal, runs = Journal(), list[Run]()
    for one in journal.runs(limit=MAX_COUNTED):
        with contextlib.suppress(UnreadableRun):
            runs.append(journal.get(str(one.number)).run)
    return agreement(runs)


def agreement(runs: Iterable[Run]) -> str:
    """Return a table of how often the user agreed with verdicts, by what they rest on.

    Accepting a text, or marking it as passed, says that it is good; sending it back says that it
    is not. The latest word on a text counts. The intervals are Wilson's, of 95%.
    """
    counts: dict[Verdict, Counter[bool]] = {}
    for verdict, good in (ruling for run in runs for ruling in _rulings(run)):
        counts.setdefault(verdict, Counter())[good] += 1
    if not counts:
        return "Nothing to compare yet. Accept a text or mark one as needs work, and look again."
    total = sum(counts.values(), Counter[bool]())
    rows = []
    for passed, name in ((True, "all that passed"), (False, "all rejected")):
        judged = [v for v in counts if v.passed is passed and v.outcome is not Outcome.NOT_JUDGED]
        found = {_name_verdict(v): counts[v] for v in sorted(judged, key=_name_verdict)}
        if len(found) > 1:
            found[name] = sum(found.values(), Counter[bool]())
        rows += [
            (name, _share(one[passed], one.total()), _share(one[passed], total[passed]))
            for name, one in found.items()
        ]
    for verdict, one in counts.items():
        if verdict.outcome is Outcome.NOT_JUDGED:
            rows.append((_name_verdict(verdict), f"you took {one[True]} of {one.total()}", ""))
    head = ("verdict", "you agreed (precision)", "of all that you took or sent back (recall)")
    columns = shutil.get_terminal_size().columns
    note = f"Over {labels.count(total.total(), 'text')} that you decided on; 95% Wilson intervals."
    return "\n".join([*align([head, *rows], max(columns, 100)), *wrap(note, columns)])


def _rulings(run: Run) -> Iterator[tuple[Verdict, bool]]:
    """Yield the verdicts of texts that the user decided on, and whether the text was good."""
    decisions = [one for one in run.decisions if isinstance(one, Accept | Override)]
    words = {run.best if d.iteration is None else d.iteration: d.settles for d in decisions}
    for number, good in words.items():
        text = run.iterations[number] if number is not None else None
        if text is None or text.verdict is None or text.read_late:
            continue  # there was no verdict to agree with
        outcome, basis = text.verdict.outcome, text.verdict.basis
        if text.overruled:
            outcome = text.overruled
            basis = recompute(run, text.replace(override=None)).verdict.basis
        known = "none" if outcome is Outcome.NOT_JUDGED else basis
        yield Verdict(outcome=outcome, score=None, basis=known), good


def _name_verdict(verdict: Verdict) -> str:
    basis = labels.BASES[verdict.basis][0]
    return " · ".join(filter(None, [labels.outcome_label(verdict).word, basis]))


def _share(count: int, of: int) -> str:
    """Return a share with its interval: ``8 of 9, 89% (57% to 98%)``."""
    if not of:
        return "none"
    share, z2 = count / of, 1.96**2
    middle, spread = share + z2 / (2 * of), sqrt(z2 * (share * (1 - share) + z2 / (4 * of)) / of)
    low, high = ((middle + sign * spread) / (1 + z2 / of) for sign in (-1, 1))
    return f"{count} of {of}, {share:.0%} ({max(low, 0):.0%} to {min(high, 1):.0%})"
