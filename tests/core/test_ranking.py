"""Best, not last, on every exit."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kit import TASK, finish, refinement
from loop_strategies import checks, limits, rates, scripts

from ipyrefine.core.model import Evidence, Outcome, Setup, StopReason, Verdict
from ipyrefine.core.policy import MAX_REPAIRS, standing
from ipyrefine.core.run import Iteration, Run


@given(replies=scripts, checks=checks, limits=limits)
async def test_every_run_ends_with_a_reason_and_the_text_that_stands_highest(
    replies: Any, checks: Any, limits: Any
) -> None:
    loop = refinement(replies, checks=checks, limits=limits)
    events = await finish(loop)
    run = loop.state
    assert events[-1].type == "stopped"
    assert run.stop_reason is not None
    assert run.message
    texts = [iteration.text for iteration in run.iterations]
    assert all(text.strip() for text in texts)
    assert texts or run.stop_reason in (StopReason.FAILED, StopReason.BUDGET)
    assert run.text == (texts[run.best or 0] if texts else "")
    places = {i.number: place for i in run.iterations if (place := standing(run, i))}
    assert (run.best is None) is not bool(places)
    assert run.best is None or places[run.best] == max(places.values())
    for iteration in run.iterations:
        if iteration.verdict and iteration.verdict.passed:
            assert iteration.verdict.basis not in ("user", "none", "run")
            assert iteration.verdict.required_passed
            assert not [f for f in iteration.findings if f.blocks]
    most = limits.max_revisions + limits.candidates
    assert len(texts) <= most
    assert run.usage.calls <= 2 * most + MAX_REPAIRS


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
