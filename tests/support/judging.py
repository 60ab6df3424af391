"""What a judge of the code profile says, and what a judge or a critic on a server answers."""

import json
import re

from kit import READY, Judgement, critique, finding, judgement
from openai_server import Answer, Body, answer_line

_COUNT = re.compile(r"Reply with (\d+) words")


def _count(asked: str) -> int:
    """How many questions a judge's prompt asks."""
    match = _COUNT.search(asked)
    return int(match[1]) if match else 1


def all_yes(body: Body) -> str:
    """The reply of a critic who finds nothing, or of a judge who says yes to every question."""
    if is_critic(body):
        return READY
    return " ".join(["yes"] * _count(body["messages"][-1]["content"]))


CRITERIA = ("correctness", "efficiency", "clarity")


def judged(*scores: int) -> Judgement:
    """A judgement: a score 0..10 a criterion, the checklist answered with yes."""
    return judgement(dict(zip(CRITERIA, scores, strict=True)))


def is_judge(body: Body) -> bool:
    """Whether a request asks what a text is worth: a critic's, or one for yes or no."""
    return is_critic(body) or bool(body.get("logprobs"))


def is_critic(body: Body) -> bool:
    """Whether a request asks for a critique."""
    asked = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
    return '"ready"' in asked[0]


def server_answers(body: Body, probability: float) -> Answer:
    """The same probability of yes, 0..1, to every question; a critic finds nothing from 0.5 on."""
    if is_critic(body):
        return Answer(READY if probability >= 0.5 else critique(finding("It is not there yet.")))
    return answer_line(*[probability] * _count(json.dumps(body["messages"])))
