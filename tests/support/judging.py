"""What a judge of the code profile says, as the JSON it is asked for."""

import json

CRITERIA = ("correctness", "efficiency", "clarity")
REASONS = ("Every example holds.", "Each method is O(1).", "Names and docstrings read well.")


def judged(*scores: int) -> str:
    """A judgement: no findings, the checklist answered with yes, a score 0..10 a criterion."""
    rows = [
        {"name": name, "quote": "", "reason": reason, "score": score}
        for name, reason, score in zip(CRITERIA, REASONS, scores, strict=True)
    ]
    answers = [{"item": item, "yes": True} for item in (1, 2, 3)]
    return json.dumps({"findings": [], "earlier": [], "checklist": answers, "criteria": rows})
