"""Best, not last, on every exit."""

from typing import Any

from hypothesis import assume, given
from kit import finish, refinement
from loop_strategies import checks, limits, scripts, verdicts

from ipyrefine.core.model import Outcome, StopReason, Verdict


@given(replies=scripts, checks=checks, limits=limits)
async def test_best_is_always_one_of_the_highest_rank(
    replies: Any, checks: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=checks, limits=limits)
    await finish(loop)
    ranks = {i.number: i.verdict.rank for i in loop.state.iterations if i.verdict}
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


@given(one=verdicts, other=verdicts)
def test_a_failed_required_check_is_never_outranked_by_a_score(
    one: Verdict, other: Verdict
) -> None:
    assume(one.required_passed and not other.required_passed)
    assert one.rank > other.rank
