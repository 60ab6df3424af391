"""Runs kept earlier: list them, resume one, and count how often judge and user agreed."""

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ipyrefine.core.decisions import Accept, Override
from ipyrefine.core.model import Basis, Outcome, StopReason
from ipyrefine.core.policy import settled
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.verdicts import basis_of
from ipyrefine.errors import UsageError
from ipyrefine.journal.store import Journal, Summary
from ipyrefine.journal.writer import Recorder, open_journal
from ipyrefine.render import labels
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import cells
from ipyrefine.session.record import load_whole

MAX_LISTED = 20
MAX_COUNTED = 500  # runs that agreement is counted over
VERDICT = "the verdict"

_HEAD = (
    "",
    "name",
    "verdict",
    "basis",
    "score",
    "stopped",
    "texts",
    "tokens",
    "last",
    "model",
    "task",
)


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
    table = _align([_HEAD, *(_row(one, now) for one in runs[:number])])
    more = f"\nThere are more. List them with -n {number * 5}." if len(runs) > number else ""
    return table + more


def _row(one: Summary, now: float) -> tuple[str, ...]:
    stop = labels.STOPS[StopReason(one.stop_reason)] if one.stop_reason else "unfinished"
    return (
        str(one.number),
        plain(one.name),
        (one.outcome or labels.NONE).replace("_", " "),
        labels.NONE if one.basis in (None, "none") else str(one.basis),
        labels.score(one.score),
        stop,
        str(one.iterations),
        f"{one.tokens:,}",
        _format_age(now - one.updated),
        plain(one.model),
        plain(one.title)[:60],
    )


def _format_age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "now"


def _align(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


# Resuming


class Earlier(NamedTuple):
    """A run to resume.

    Attributes:
        run: the run.
        settings: the options it was started with, as the journal keeps them.
        journal: what writes its next events; None for a run that is not kept.
    """

    run: Run
    settings: dict[str, Any]
    journal: Recorder | None


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
    return Earlier(stored.run, stored.settings, Journal().recorder(stored) if journal else None)


# Statistics


class Ruling(NamedTuple):
    """One verdict that the user confirmed or overruled.

    Attributes:
        judge: who gave it; empty where nobody did.
        basis: what it rested on.
        subject: the verdict as a whole, or one criterion.
        agreed: whether the user agreed; None where nothing was judged.
    """

    judge: str
    basis: Basis
    subject: str
    agreed: bool | None


def rulings(run: Run) -> Iterator[Ruling]:
    """Yield what the user's decisions say about the verdicts of a run.

    Accepting a text, or marking it as passed, says that it is good; sending it back says that it
    is not. A criterion agrees with that when its score is on the same side of the target.
    """
    judge = run.setup.judge or run.setup.model
    for number, good in _opinions(run).items():
        iteration = run.iterations[number]
        verdict = iteration.verdict
        if verdict is None:
            continue
        basis = _basis_before(iteration)
        if basis == "none" and verdict.score is None:
            yield Ruling("", basis, VERDICT, None)
        else:
            opinion = basis == "judge" or (basis == "constraints" and verdict.opinion is not None)
            agreed = _was_pass(iteration, good) is good
            yield Ruling(judge if opinion else "checks", basis, VERDICT, agreed)
        for one in verdict.criteria:
            yield Ruling(judge, "judge", one.name, (one.score >= run.limits.target) is good)


def _basis_before(iteration: Iteration) -> Basis:
    """Return what a verdict rested on before the user overrode it."""
    verdict = iteration.verdict
    assert verdict is not None, "only a text with a verdict rests on something"
    if verdict.basis != "user":
        return verdict.basis
    failed = next((e.basis for e in iteration.evidence if e.failed), None)
    if failed is not None:
        return failed
    if any(e.contested for e in iteration.evidence):
        return "agreement"
    if not settled(iteration) and (verdict.criteria or verdict.stated or verdict.opinion):
        return "judge"
    basis = basis_of(iteration)
    return "judge" if basis == "none" and verdict.score is not None else basis


def stats() -> str:
    """Return the agreement of judge and user over the latest runs in the journal."""
    journal = Journal()
    return agreement(journal.get(str(one.number)).run for one in journal.runs(limit=MAX_COUNTED))


def agreement(runs: Iterable[Run]) -> str:
    """Return a table of how often each judge and the user agreed, by basis and criterion."""
    counts: dict[tuple[str, str, str], Counter[bool | None]] = {}
    for run in runs:
        for ruling in rulings(run):
            key = (ruling.judge or labels.NONE, ruling.basis, ruling.subject)
            counts.setdefault(key, Counter())[ruling.agreed] += 1
    if not counts:
        return "No verdict in the journal has been accepted or overridden yet."
    rows = []
    for (judge, basis, subject), answers in sorted(counts.items()):
        total = answers[True] + answers[False]
        cell = f"{answers[True]} of {total} ({answers[True] / total:.0%})" if total else labels.NONE
        rows.append((judge, basis, subject, cell, str(answers[None]) if answers[None] else ""))
    return _align([("judge", "basis", "about", "agreed with you", "not judged"), *rows])


def _opinions(run: Run) -> dict[int, bool]:
    """Return whether the user called a text good, by iteration; the latest word counts."""
    opinions = {}
    for decision in run.decisions:
        if isinstance(decision, Accept | Override):
            number = run.best if decision.iteration is None else decision.iteration
            if number is not None:
                opinions[number] = decision.settles
    return opinions


def _was_pass(iteration: Iteration, good: bool) -> bool:
    """Return whether the verdict was PASS before the user decided; an override reversed it."""
    assert iteration.verdict is not None, "only a text with a verdict was judged"
    if iteration.override is not None:
        return not good
    return iteration.verdict.outcome is Outcome.PASS
