"""A run as one table: a row for each thing that texts are held to, a column for each text.

It is a view: the run holds it in other records. A verdict is computed from a column alone, with
what a reader said of the text.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ipyrefine.core.expectations import Expectation, in_force, is_open_claim
from ipyrefine.core.model import (
    FEEDBACK,
    LOW_SCORE,
    NO_SOURCE,
    NOT_READY,
    SUITE,
    Basis,
    Evidence,
    Finding,
    Outcome,
    Record,
    Severity,
    Status,
    TestResult,
)
from ipyrefine.core.run import Iteration, Run

# Who says it; `run`: that code ran, which may block and proves nothing.
Source = Literal["you", "tests", "task", "critic", "evaluator", "run"]
Kind = Literal["example", "test", "rule", "remark", "question", "reading", "result"]
_BY_BASIS: dict[Basis, tuple[Source, Kind]] = {
    "tests": ("tests", "test"),
    "function": ("you", "test"),
    "schema": ("you", "rule"),
    "constraints": ("task", "rule"),
    "confirmed": ("you", "example"),
    "examples": ("task", "example"),
    "critique": ("critic", "test"),
    "run": ("run", "result"),
}
BASES = {kind: basis for basis, kind in _BY_BASIS.items()} | {("evaluator", "reading"): "function"}


class Point(Record):
    """One thing that every text is held to: a row."""

    id: str
    source: Source
    kind: Kind
    words: str  # in its author's words; shown, never parsed
    blocking: bool = True  # False: it only asks, or only suggests
    quote: str = ""  # the task's words behind it
    disputed: bool = False  # whether critic and reviser could not agree, so that the user decides
    waits: bool = False  # whether the critic has still to answer the reviser


class Result(Record):
    """What running or reading a text showed on a point: a cell."""

    passed: bool | None  # None: it could not be tried, or there is nothing to pass
    shows: str = ""  # for people and prompts
    says: Outcome | None = None  # the verdict that a function of the user's gave
    counts: bool = True  # False: a text that does nothing passes it, too


class Cell(NamedTuple):
    """A result with its point."""

    point: Point
    result: Result

    @property
    def missed(self) -> bool:
        """Whether it keeps its text from passing."""
        settled = not (self.point.disputed or self.point.waits)
        return self.point.blocking and settled and self.result.passed is False


def column(run: Run, text: Iteration, findings: Iterable[Finding]) -> list[Cell]:
    """Return what a text is held to and what came of it, in the order in which it was said.

    Args:
        run: the run.
        text: the text; a point that it was not tried on yet has no cell.
        findings: those that bear on it, as they stand now.
    """
    # What a check that could not run found before may be gone.
    untried = {one.name for one in text.evidence if one.not_run}
    ids = {one.criterion: one.id for one in findings if one.check == SUITE}
    results = {one.name: one for one in text.tests}
    tests = (one for one in in_force(run.expectations) if one.name in results)
    return [
        *(_checked(one) for one in text.evidence if one.name != SUITE),
        *(_tested(ids.get(one.name, one.name), one, results[one.name]) for one in tests),
        *(_remarked(one) for one in findings if _is_remark(one) and one.check not in untried),
    ]


def _checked(evidence: Evidence) -> Cell:
    source, kind = _BY_BASIS.get(evidence.basis, ("run", "result"))
    if evidence.evaluates:
        source, kind = "evaluator", "reading"
    # A check that found nothing to try holds a text to nothing.
    blocking = evidence.required and (evidence.passed is not None or evidence.not_run)
    return Cell(
        Point(id=evidence.name, source=source, kind=kind, words=evidence.name, blocking=blocking),
        Result(passed=evidence.passed, shows=evidence.detail, says=evidence.stated),
    )


def _tested(id_: str, test: Expectation, result: TestResult) -> Cell:
    return Cell(
        Point(
            id=id_,
            source="critic",
            kind="test",
            words=test.name,
            blocking=is_open_claim(test),
            quote=test.quote,
            disputed=test.disputed,
            waits=test.unanswered,
        ),
        Result(passed=result.passed, shows=result.line, counts=result.counts),
    )


def _is_remark(finding: Finding) -> bool:
    """Return True if a reader or the user says it; others are what a result or a reading shows."""
    said = finding.author != "check" or finding.check == NO_SOURCE
    shown = (FEEDBACK, LOW_SCORE, NOT_READY)
    return said and finding.check not in shown and finding.status is not Status.DISMISSED


def _remarked(finding: Finding) -> Cell:
    yours = finding.author == "user" or (finding.check == NO_SOURCE and not finding.asks)
    return Cell(
        Point(
            id=finding.id,
            source="you" if yours else "critic",
            kind="question" if finding.asks else "remark",
            words=finding.problem,
            blocking=finding.severity is Severity.BLOCKING,
            quote=finding.demand,
            disputed=finding.disputed,
            waits=finding.unanswered,
        ),
        Result(passed=None if finding.asks else not finding.is_open, shows=finding.problem),
    )
