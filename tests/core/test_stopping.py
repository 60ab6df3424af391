"""When a run stops: never over a bound, and always with a sentence."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from loop_scripts import finish, refinement
from loop_strategies import budgets, checks, limits, runs, scripts, usages

from ipyrefine.core.ports import Request
from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Budget, Limits, Run, StopReason
from ipyrefine.core.stopping import (
    Stop,
    completion_allowance,
    finished,
    next_step,
    over_budget,
    stalled,
)
from ipyrefine.core.usage import Usage


@given(run=runs())
def test_a_revision_is_never_asked_for_beyond_those_allowed(run: Run) -> None:
    if next_step(run) == "revise":
        assert len(run.iterations) - 1 < run.allowed
        assert stalled(run) < run.limits.patience


@given(run=runs())
def test_every_stop_says_why(run: Run) -> None:
    step = next_step(run)
    if isinstance(step, Stop):
        assert step.message.endswith(".") or step.message.endswith(" ")
        assert (step.reason is StopReason.PASSED) == (
            run.iterations[run.best or 0].verdict.outcome is Outcome.PASS  # type: ignore[union-attr]
        )


@given(run=runs())
def test_an_unverified_text_is_verified_before_anything_else(run: Run) -> None:
    if run.iterations[-1].verdict is None:
        assert next_step(run) in ("check", "judge")
    else:
        assert next_step(run) not in ("check", "judge", "draft")


@given(run=runs())
def test_a_larger_allowance_never_stops_a_run_sooner(run: Run) -> None:
    more = run.model_copy(update={"allowed": run.allowed + 1})
    if finished(run) is None:
        assert finished(more) is None


@given(used=usages, budget=budgets, seconds=st.floats(0, 2), estimate=st.integers(0, 500))
def test_a_call_is_allowed_only_while_every_bound_has_room(
    used: Usage, budget: Budget, seconds: float, estimate: int
) -> None:
    run = Run(limits=Limits(budget=budget), usage=used)
    spent = (
        used.cost if used.calls else used.cost or 0.0
    )  # None once a call was made at an unknown price
    room = [
        budget.calls is None or used.calls < budget.calls,
        budget.tokens is None or used.tokens + estimate < budget.tokens,
        budget.cost is None or (spent is not None and spent < budget.cost),
        budget.seconds is None or seconds < budget.seconds,
    ]
    assert (over_budget(run, seconds, estimate) is None) == all(room)
    if all(room) and budget.tokens is not None:
        assert used.tokens + estimate + completion_allowance(run, estimate) <= budget.tokens


@given(
    replies=scripts,
    tests=checks,
    limits=limits,
    budget=budgets,
)
async def test_no_call_is_ever_made_over_budget(
    replies: Any, tests: Any, limits: Any, budget: Budget
) -> None:
    loop = refinement([], checks=tests, limits=limits.model_copy(update={"budget": budget}))
    model: Any = loop._crew.model
    calls: Counter[str] = Counter()

    def watched(turn: Any) -> Any:
        def answer(request: Request) -> Any:
            calls["made"] += 1
            used = loop.run.usage
            assert budget.calls is None or calls["made"] <= budget.calls
            assert budget.tokens is None or used.tokens < budget.tokens
            assert budget.tokens is None or request.max_tokens <= budget.tokens - used.tokens
            assert budget.cost is None or (used.cost or 0) < budget.cost
            assert budget.seconds is None or loop.run.seconds < budget.seconds
            return turn(request)

        return answer

    model._replies = map(watched, replies)
    await finish(loop)
    assert calls["made"] == loop.run.usage.calls


@given(replies=scripts, tests=checks, limits=limits)
async def test_no_run_writes_more_than_it_may(replies: Any, tests: Any, limits: Any) -> None:
    loop = refinement(replies, checks=tests, limits=limits)
    await finish(loop)
    run = loop.run
    most = limits.max_iterations + limits.candidates
    assert len(run.iterations) <= most
    # A text costs at most: writing, judging, two comparisons and its critics, each asked twice.
    assert run.usage.calls <= 2 * ((4 if limits.gate else 2) + limits.critics) * most
