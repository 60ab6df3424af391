"""The words for what checks and judges say of a text."""

from collections.abc import Sequence

from ipyrefine.core.records import Answer, Evidence
from ipyrefine.render import labels as words

CITED = 160  # characters of a quote that stand beside what rests on it


def evidence_label(evidence: Evidence) -> words.Label:
    """Symbol and word of a check's result."""
    if evidence.passed is None:
        return words.Label("?", "nothing to check", "quiet")
    return (
        words.Label("✓", "passed", "good") if evidence.passed else words.Label("✗", "failed", "bad")
    )


def evidence_notes(evidence: Evidence) -> list[str]:
    """What else there is to say about a check's result: score, whether it counts, time."""
    notes = [] if evidence.score is None else [f"score {words.score(evidence.score)}"]
    notes += [] if evidence.required else ["advisory"]
    return [*notes, words.seconds(evidence.seconds)]


def answer_label(yes: bool) -> words.Label:
    """Symbol and word of an answer to a checklist's question."""
    return words.Label("✓", "yes", "good") if yes else words.Label("✗", "no", "bad")


def met(answers: Sequence[Answer]) -> str:
    """How much of a checklist is met, like ``2 of 3 met``."""
    return f"{sum(one.yes for one in answers)} of {len(answers)} met"


def cited(quote: str) -> str:
    """A quote beside what rests on it: in one line, in marks, its start only if it is long."""
    flat = " ".join(quote.split())
    return f"“{flat if len(flat) <= CITED else flat[: CITED - 1] + '…'}”" if flat else ""
