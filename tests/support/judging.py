"""What a judge of the code profile says, and what a judge on a server answers."""

import json
import re

from kit import Judgement, judgement
from openai_server import Answer, Body, answer_line

_COUNT = re.compile(r"Reply with (\d+) words")


def _count(asked: str) -> int:
    """How many questions a judge's prompt asks."""
    match = _COUNT.search(asked)
    return int(match[1]) if match else 1


def all_yes(body: Body) -> str:
    """The reply of a judge that answers every question of a request with yes, in letters."""
    return " ".join(["yes"] * _count(body["messages"][-1]["content"]))


CRITERIA = ("correctness", "efficiency", "clarity")


def judged(*scores: int) -> Judgement:
    """A judgement: a score 0..10 a criterion, the checklist answered with yes."""
    return judgement(dict(zip(CRITERIA, scores, strict=True)))


def is_judge(body: Body) -> bool:
    """Whether a request asks for yes or no."""
    return bool(body.get("logprobs"))


def server_answers(body: Body, probability: float) -> Answer:
    """The same probability of yes, 0..1, to every question of a request."""
    return answer_line(*[probability] * _count(json.dumps(body["messages"])))
