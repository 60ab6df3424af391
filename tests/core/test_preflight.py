"""What a run may come to, said before it starts and held by what it then does."""

import json
import random

import pytest

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import BudgetUsed, RunStarted
from ipyrefine.core.fold import fold
from ipyrefine.core.preflight import Forecast, dearest, forecast
from ipyrefine.core.records import Task
from ipyrefine.core.runs import Budget, Iteration, Limits, Run
from ipyrefine.core.usage import Price, Usage
from ipyrefine.providers.scripted import ScriptedModel

TASK = Task(text="Write a greeting.")


def started(limits: Limits, draft: str | None = None, price: Price | None = None) -> Run:
    opening = RunStarted(task=TASK, limits=limits, model="m", judge="m", draft=draft, price=price)
    return fold([opening])


def whimsical(seed: int):
    """A model that may give any reply, readable or not, as long as it is allowed to be."""
    dice = random.Random(seed)

    def finding() -> dict:
        return {"criterion": "correctness", "quote": "", "fix": "", "severity":
                dice.choice(["blocking", "minor"]), "problem": f"p{dice.random()}"}  # fmt: skip

    def reply(request) -> str:
        if dice.random() < 0.3:
            return ""
        if request.json_schema is None:
            return f"<text>\n{dice.random()}\n</text>"
        found = [finding() for _ in range(dice.randrange(4))]
        scores = [{"name": "correctness", "score": dice.randrange(11)}]
        return json.dumps({"findings": found} | (
            {"criteria": scores} if "criteria" in request.json_schema["properties"] else {}
        ))  # fmt: skip

    while True:
        yield reply


@pytest.mark.parametrize("seed", range(60))
async def test_no_run_takes_more_than_was_foreseen(seed):
    dice = random.Random(seed)
    limits = Limits(max_iterations=dice.randrange(5), patience=9, target=0.99,
                    min_findings=dice.choice([0, 3]), critics=dice.choice([1, 1, 3]))  # fmt: skip
    draft = dice.choice([None, "Hi there."])
    loop = Refinement(TASK, model=ScriptedModel(whimsical(seed)), limits=limits, draft=draft,
                      clock=lambda: 0.0)  # fmt: skip
    most = forecast(started(limits, draft))
    used = [event.usage async for event in loop if isinstance(event, BudgetUsed)]
    assert sum(usage.calls for usage in used) <= most.calls
    assert sum(usage.tokens for usage in used) <= most.tokens


def test_the_worst_case_counts_every_stage_twice():
    """A draft, five judgements, four critiques, four revisions; each reply asked for twice."""
    assert forecast(started(Limits(max_iterations=4))).calls == 28
    assert forecast(started(Limits(max_iterations=4), draft="Hi")).calls == 26
    assert forecast(started(Limits(max_iterations=0, min_findings=0))).calls == 4
    assert forecast(started(Limits(max_iterations=4, critics=3))).calls == 28 + 4 * 2 * 2


def test_a_budget_bounds_what_is_foreseen():
    budget = Budget(calls=5, tokens=9_000, cost=0.01)
    most = forecast(started(Limits(budget=budget), price=Price(prompt=1, completion=10)))
    assert (most.calls, most.tokens, most.cost) == (5, 9_000, 0.01)


def test_a_bound_on_each_side_of_the_tokens_bounds_what_is_foreseen():
    budget = Budget(prompt_tokens=4_000, completion_tokens=1_000)
    most = forecast(started(Limits(budget=budget), price=Price(prompt=1, completion=10)))
    assert (most.tokens, most.cost) == (5_000, pytest.approx(0.014))


def test_without_a_price_the_cost_is_unknown_and_not_nothing():
    most = forecast(started(Limits()))
    assert (most.cost, most.revision_cost) == (None, None)
    free = forecast(started(Limits(), price=Price(prompt=0, completion=0)))
    assert (free.cost, free.revision_cost) == (0, 0)


def test_the_next_revision_is_estimated_from_those_before_it():
    usage = Usage(calls=2, prompt_tokens=900, completion_tokens=100)
    run = started(Limits()).model_copy(update={
        "iterations": (Iteration(number=0, text="a"),
                       Iteration(number=1, parent=0, text="b", usage=usage),
                       Iteration(number=2, parent=1, text="c", usage=usage)),
    })  # fmt: skip
    assert forecast(run).revision == 1_000


def test_a_longer_text_makes_for_a_dearer_revision():
    short, long = (forecast(started(Limits(), draft="x" * n)).revision for n in (100, 20_000))
    assert long > short + 10_000


def test_nothing_is_foreseen_of_a_run_without_a_task_but_it_does_not_fail():
    assert isinstance(forecast(Run()), Forecast)


def test_the_dearest_of_two_prices_bounds_both():
    a, b = Price(prompt=1, completion=10), Price(prompt=2, completion=5)
    assert dearest(a, b) == Price(prompt=2, completion=10)
    assert dearest(a, None) is None
