"""How often the judge and the user agreed, over the runs in the journal."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Iteration, Run

WHOLE = "the verdict"


class Ruling(NamedTuple):
    """One verdict that the user confirmed or overruled.

    Attributes:
        judge: who had given it.
        about: the whole verdict, or one criterion of it.
        agreed: whether the user was of the same mind.
    """

    judge: str
    about: str
    agreed: bool


def rulings(run: Run) -> Iterator[Ruling]:
    """What the user's decisions say of the verdicts of a run.

    Accepting a text, or passing it, says that it is good; sending it back says that it is not. A
    criterion agrees with that when its score is on the same side of the target.
    """
    for number, good in _said(run).items():
        iteration = run.iterations[number]
        verdict = iteration.verdict
        if verdict is None:
            continue
        judge = "checks" if verdict.author == "check" else run.judge or run.model
        yield Ruling(judge, WHOLE, _judged_good(iteration, good) is good)
        for one in verdict.criteria:
            yield Ruling(judge, one.name, (one.score >= run.limits.target) is good)


def table(runs: Iterable[Run]) -> str:
    """The share of agreement per judge and criterion, as lines."""
    agreed, of = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for run in runs:
        for ruling in rulings(run):
            of[ruling.judge, ruling.about] += 1
            agreed[ruling.judge, ruling.about] += ruling.agreed
    if not of:
        return "No verdict was accepted or overridden yet in the journal's runs."
    rows = [("judge", "about", "agreed with you")]
    rows += [
        (judge, about, f"{agreed[judge, about]} of {count} ({agreed[judge, about] / count:.0%})")
        for (judge, about), count in sorted(of.items())
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _said(run: Run) -> dict[int, bool]:
    """By iteration, whether the user called it good; the last word counts."""
    said = {}
    for decision in run.decisions:
        number = decision.iteration if decision.iteration is not None else run.best
        if number is not None and decision.kind in ("accept", "override"):
            said[number] = decision.kind == "accept" or decision.outcome is Outcome.PASS
    return said


def _judged_good(iteration: Iteration, good: bool) -> bool:
    """What the verdict was before the user spoke; an override shows that it was otherwise."""
    assert iteration.verdict is not None, "only a text with a verdict was judged"
    if iteration.overridden is not None:
        return not good
    return iteration.verdict.outcome is Outcome.PASS
