"""The forecast of a run: its worst case holds for every run, and its next revision is likely."""

import random
from collections.abc import Callable, Iterator

import pytest
from kit import TASK, critique, finding, finish, judgement, refinement, text

from ipyrefine.core.events import CallEnded
from ipyrefine.core.model import Budget, Limits, Price, Setup, Stage, Usage
from ipyrefine.core.policy import forecast
from ipyrefine.core.ports import Reply, Request
from ipyrefine.core.run import Iteration, Run


def begin(limits: Limits, draft: str | None = None, price: Price | None = None) -> Run:
    return Run.begin(
        Setup(task=TASK, limits=limits, model="m", judge="m", draft=draft, price=price)
    )


def whimsical(seed: int) -> Iterator[Callable[[Request], str | Reply]]:
    """Replies that may be anything, readable or not, as long as they are allowed to be."""
    dice = random.Random(seed)

    def reply(request: Request) -> str | Reply:
        if dice.random() < 0.3:
            return ""
        if dice.random() < 0.2:  # it thought, up to the limit
            read = sum(len(message.content) for message in request.messages) // 4
            usage = Usage(calls=1, prompt_tokens=read, completion_tokens=request.max_tokens)
            return Reply(text="", finish="length", usage=usage)
        severities = dice.choices(["blocking", "minor"], k=dice.randrange(4))
        weak = [finding(f"p{dice.random()}", severity=severity) for severity in severities]
        match request.purpose:
            case Stage.JUDGE:
                return judgement(dice.randrange(11), *weak)
            case Stage.CRITIQUE:
                return critique(*weak)
        return text(str(dice.random()))

    while True:
        yield reply


@pytest.mark.parametrize("seed", range(12))
async def test_no_run_takes_more_than_was_forecast(seed: int) -> None:
    dice = random.Random(seed)
    limits = Limits(
        max_revisions=dice.randrange(5),
        patience=9,
        target=0.99,
        min_findings=dice.choice([0, 3]),
        candidates=dice.choice([1, 1, 3]),
        max_tokens=dice.choice([2_048, None]),
    )
    draft = dice.choice([None, "Hi there."])
    loop = refinement(whimsical(seed), limits=limits, draft=draft, clock=lambda: 0.0)
    most = forecast(begin(limits, draft))
    used = [event.usage for event in await finish(loop) if isinstance(event, CallEnded)]
    assert sum(usage.calls for usage in used) <= most.calls
    assert sum(usage.tokens for usage in used) <= most.tokens


def test_a_budget_bounds_what_is_forecast() -> None:
    budget = Budget(calls=5, tokens=9_000, cost=0.01)
    most = forecast(begin(Limits(budget=budget), price=Price(prompt=1, completion=10)))
    assert (most.calls, most.tokens, most.cost) == (5, 9_000, 0.01)


def test_without_a_price_the_cost_is_unknown_and_not_nothing() -> None:
    most = forecast(begin(Limits()))
    assert (most.cost, most.revision_cost) == (None, None)
    free = forecast(begin(Limits(), price=Price(prompt=0, completion=0)))
    assert (free.cost, free.revision_cost) == (0, 0)


def test_the_next_revision_is_estimated_from_those_before_it() -> None:
    usage = Usage(calls=2, prompt_tokens=900, completion_tokens=100)
    run = begin(Limits()).model_copy(
        update={
            "iterations": (
                Iteration(number=0, text="a"),
                Iteration(number=1, parent=0, text="b", usage=usage),
                Iteration(number=2, parent=1, text="c", usage=usage),
            )
        }
    )
    assert forecast(run).revision == 1_000
