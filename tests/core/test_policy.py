"""When a run stops: never over a bound or what was forecast, and always with a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from kit import TASK, finish, refinement
from loop_strategies import budgets, checks, limits, runs, scripts

from ipyrefine.core import rank
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Stopped
from ipyrefine.core.model import Budget, Limits, Price, Setup, Stage, StopReason, Usage
from ipyrefine.core.policy import (
    forecast,
    next_step,
    over_budget,
    revisions_without_improvement,
)
from ipyrefine.core.ports import Request
from ipyrefine.core.run import Call, Iteration, Run
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.say import bounds


@given(run=runs())
def test_a_revision_is_never_asked_for_beyond_those_allowed_and_every_stop_says_why(run):
    step, patience = next_step(run), run.limits.patience
    patient = patience is None or revisions_without_improvement(run) < patience
    if not (run.revisions < run.allowed_revisions and patient):
        assert step is not Stage.REVISE
    if isinstance(step, Stopped):
        assert step.message
        best = run.iterations[run.best or 0]
        verdict = best.verdict or rank.verdict(run, best)
        assert (step.reason is StopReason.PASSED) == verdict.passed


def run_within(budget: Budget, used: Usage) -> Run:
    run = Run.begin(Setup(task=TASK, limits=Limits(budget=budget)))
    return run.model_copy(update={"calls": (Call(stage=Stage.DRAFT, iteration=0, usage=used),)})


@pytest.mark.parametrize(
    ("budget", "used", "sentence"),
    [
        (Budget(tokens=2_000), Usage(calls=3, prompt_tokens=1_500, completion_tokens=400),
         "1,900 of 2,000 tokens; the next call needs about 750"),
        (Budget(cost=0.001), Usage(calls=1, cost=0.0009),
         "$0.0009 of $0.0010"),
        (Budget(calls=2), Usage(calls=2), "2 of 2 calls"),
    ],
)  # fmt: skip
def test_a_used_up_budget_says_what_the_next_call_would_have_needed(budget, used, sentence):
    run = run_within(budget, used)
    setup = run.setup.model_copy(update={"price": Price(prompt=1, completion=2)})
    stop = over_budget(run.model_copy(update={"setup": setup}), 0, 350)
    assert stop.message.startswith(f"The budget is used up ({sentence}). The best text")


@settings(max_examples=30)
@given(replies=scripts, checks=checks, limits=limits, budget=budgets)
async def test_no_call_is_ever_made_over_budget(replies, checks, limits, budget):
    made, over = [], []
    loops: list[Refinement] = []

    def watch(turn: Callable[[Request], Any]) -> Callable[[Request], Any]:
        def answer(request: Request) -> Any:
            made.append(request)
            run, used = loops[0].state, loops[0].state.usage
            within = (
                budget.calls is None or len(made) <= budget.calls,
                budget.tokens is None or used.tokens < budget.tokens,
                budget.tokens is None or request.max_tokens <= budget.tokens - used.tokens,
                budget.cost is None or (used.cost or 0) < budget.cost,
                budget.seconds is None or run.seconds < budget.seconds,
            )
            over.extend([request] * (not all(within)))
            return turn(request)

        return answer

    model = ScriptedModel(map(watch, replies))
    bounded = limits.model_copy(update={"budget": budget})
    loops.append(refinement(model, checks=checks, limits=bounded))
    await finish(loops[0])
    assert not over
    assert len(made) == loops[0].state.usage.calls


# The forecast: its worst case holds for every run, and its next revision is likely


def begin(limits: Limits, draft: str | None = None) -> Run:
    return Run.begin(Setup(task=TASK, limits=limits, model="m", judge="m", draft=draft))


def test_what_a_run_takes_at_most_is_its_calls_and_the_rest_of_its_budget():
    budget = Budget(calls=5, tokens=9_000, cost=0.01)
    run = begin(Limits(max_revisions=3, budget=budget))
    assert forecast(run)[:2] == (5, 0)
    assert bounds(run) == "at most 3 revisions, 5 calls, 9,000 tokens, $0.0100"


def test_a_run_that_asks_nobody_has_no_reply_to_ask_for_again():
    most = forecast(begin(Limits(max_revisions=0, critique="never"), "Hi."))
    assert most[:2] == (0, 0)


def test_the_next_revision_is_estimated_from_those_before_it():
    usage = Usage(calls=2, prompt_tokens=900, completion_tokens=100)
    texts = (
        Iteration(number=0, text="a"),
        Iteration(number=1, parent=0, text="b"),
        Iteration(number=2, parent=1, text="c"),
    )
    calls = tuple(Call(stage=Stage.REVISE, iteration=n, usage=usage) for n in (1, 2))
    run = begin(Limits()).replace(iterations=texts, calls=calls)
    assert forecast(run)[2] == 1_000
