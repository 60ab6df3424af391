"""A generator and an evaluator with prompts of their own, as people with another loop have them."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from kit import told

from ipyrefine import refine
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel

STACK = "Implement a stack with push(x), pop() and getMin(), all in O(1)."
GENERATOR = (
    "Solve the task. Reflect on feedback, if there is any.\n\nThoughts: a plan\nResponse: it"
)
EVALUATOR = (
    "Is this right, fast and clean? Say PASS, NEEDS_IMPROVEMENT or FAIL, and why. Only JSON."
)


class Looped(NamedTuple):
    """A run at its stop, and what its generator and its evaluator were sent, request by request."""

    run: Run
    writer: list[str]
    judge: list[str]


def said(outcome: str, feedback: str = "") -> dict[str, str]:
    """An evaluation."""
    return {"evaluation": outcome, "feedback": feedback}


async def looped(
    texts: Iterable[str], evaluations: Iterable[Any], task: str = STACK, **options: Any
) -> Looped:
    """Run a generator's replies and an evaluator's, who have prompts of their own.

    Args:
        texts: what the generator replies.
        evaluations: what the evaluator replies: words, or objects that become JSON.
        task: what is asked.
        **options: as for `refine`; ``prompts`` stand beside the two of their own.
    """
    words = (one if isinstance(one, str) else json.dumps(one) for one in evaluations)
    writer, judge = ScriptedModel(texts, name="writer"), ScriptedModel(words, name="evaluator")
    own = {"draft": GENERATOR, "judge": EVALUATOR, **options.pop("prompts", {})}
    run = await refine(task, model=writer, judge=judge, prompts=own, **options)
    return Looped(run, sent(writer), sent(judge))


def sent(model: ScriptedModel) -> list[str]:
    """The words of each request that a model got."""
    return ["\n".join(message.content for message in one.messages) for one in model.requests]


def problems(run: Run, number: int = -1) -> list[str]:
    """What is to be acted on in a text."""
    return [one.words for one in told(run, number) if one.actionable]


def outcomes(run: Run) -> list[str]:
    """What each text was judged to be."""
    return [str(i.verdict.outcome) for i in run.iterations if i.verdict]
