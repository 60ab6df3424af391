"""Best, not last, on every exit."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kit import TASK, finish, refinement
from loop_strategies import checks, limits, rates, scripts

from ipyrefine.core.model import Evidence, Outcome, Setup, StopReason, Verdict
from ipyrefine.core.policy import standing
from ipyrefine.core.run import Iteration, Run


@given(replies=scripts, checks=checks, limits=limits)
async def test_best_is_always_one_of_the_highest_rank(
    replies: Any, checks: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=checks, limits=limits)
    await finish(loop)
    places = {i.number: standing(loop.state, i) for i in loop.state.iterations}
    ranks = {number: place for number, place in places.items() if place}
    assert (loop.state.best is None) is not bool(ranks)
    if loop.state.best is not None:
        assert ranks[loop.state.best] == max(ranks.values())


@given(replies=scripts, checks=checks, limits=limits)
async def test_every_run_ends_with_a_reason_and_its_best_text(
    replies: Any, checks: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=checks, limits=limits)
    events = await finish(loop)
    run = loop.state
    assert events[-1].type == "stopped"
    assert run.stop_reason is not None
    assert run.message
    texts = [iteration.text for iteration in run.iterations]
    assert run.text == (texts[run.best or 0] if texts else "")
    assert all(text.strip() for text in texts)
    assert texts or run.stop_reason in (StopReason.FAILED, StopReason.BUDGET)


@given(replies=scripts, checks=checks, limits=limits)
async def test_a_text_passes_only_with_nothing_blocking(
    replies: Any, checks: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=checks, limits=limits)
    await finish(loop)
    passed = [
        (iteration, iteration.verdict)
        for iteration in loop.state.iterations
        if iteration.verdict and iteration.verdict.outcome is Outcome.PASS
    ]
    for iteration, verdict in passed:
        assert verdict.basis not in ("user", "none", "run")
        assert verdict.required_passed
        assert not [f for f in iteration.findings if f.blocks]


@given(scores=st.tuples(rates, rates))
def test_a_failed_required_check_is_never_outranked_by_a_score(scores: tuple[float, float]) -> None:
    run = Run.begin(Setup(task=TASK))
    kept, failed = (
        Iteration(
            number=number,
            text="Hi",
            verdict=Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=score),
            evidence=(Evidence(name="it", passed=passed),),
        )
        for number, (passed, score) in enumerate(zip((True, False), scores, strict=True))
    )
    assert standing(run, kept) > standing(run, failed)
