"""Best, not last: the first of those that rank highest, on every exit."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from loop_scripts import finish, refinement, scored
from loop_strategies import checks, limits, rates, scripts, verdicts

from ipyrefine.core.records import Outcome, Verdict
from ipyrefine.core.runs import Run, StopReason
from ipyrefine.core.stopping import contender


@given(
    replies=scripts,
    tests=checks,
    limits=limits,
)
async def test_best_is_always_the_first_of_the_highest_rank(
    replies: Any, tests: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=tests, limits=limits)
    await finish(loop)
    verified = [i for i in loop.run.iterations if i.verdict]
    if limits.gate and contender(loop.run) is None:  # stopped before the comparison was made
        verified = [i for i in verified if not i.barred]
    elif limits.gate:
        verified = [i for i in verified if i.number == loop.run.best]
    ranks = [i.verdict.rank for i in verified if i.verdict]
    best = verified[ranks.index(max(ranks))].number if ranks else None
    assert loop.run.best == best


@given(scores=st.lists(rates, min_size=1, max_size=6))
async def test_a_scored_loop_returns_the_earliest_of_its_highest_scores(
    scores: list[float],
) -> None:
    loop = scored(*scores, target=1, max_iterations=len(scores) - 1, patience=9)
    await finish(loop)
    given_scores = [score for score in loop.run.score_history if score is not None]
    assert loop.run.text == f"version {given_scores.index(max(given_scores))}"


@given(
    replies=scripts,
    tests=checks,
    limits=limits,
)
async def test_every_run_ends_with_a_reason_and_its_best_text(
    replies: Any, tests: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=tests, limits=limits)
    events = await finish(loop)
    run: Run = loop.run
    assert events[-1].type == "stopped"
    assert run.stop_reason is not None
    assert run.message
    if run.iterations:
        assert run.text == run.iterations[run.best or 0].text
        assert run.text.strip()
    else:
        assert run.stop_reason in (StopReason.FAILED, StopReason.BUDGET)


@given(
    replies=scripts,
    tests=checks,
    limits=limits,
)
async def test_a_text_passes_only_at_the_target_with_nothing_blocking(
    replies: Any, tests: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=tests, limits=limits)
    await finish(loop)
    for iteration in loop.run.iterations:
        verdict = iteration.verdict
        if verdict and verdict.outcome is Outcome.PASS:
            assert verdict.verified
            assert verdict.required_passed
            assert verdict.score is not None
            assert verdict.score >= limits.target
            assert not [f for f in iteration.actionable if f.severity == "blocking"]


@given(one=verdicts, other=verdicts)
def test_a_failed_required_check_is_never_outranked_by_a_score(
    one: Verdict, other: Verdict
) -> None:
    if one.required_passed and not other.required_passed:
        assert one.rank > other.rank
    if (one.required_passed, one.user_met) == (other.required_passed, other.user_met):
        both = one.outcome is other.outcome is Outcome.PASS
        if both and one.score is not None and (other.score is None or one.score > other.score):
            assert one.rank > other.rank
