"""What a judge of the code profile says."""

from kit import judgement

REASONS = {
    "correctness": "Every example holds.",
    "efficiency": "Each method is O(1).",
    "clarity": "Names and docstrings read well.",
}


def judged(*scores: int) -> str:
    """A judgement without findings: a score 0..10 a criterion, the checklist answered with yes."""
    by_name = dict(zip(REASONS, scores, strict=True))
    return judgement(by_name, answers=[True] * 3, reason=REASONS)
