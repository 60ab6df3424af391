"""The loop on a scripted model: which stages run, and why it stops."""

from typing import Any

import pytest
from loop_scripts import (
    NO_MORE,
    criticised,
    finish,
    found,
    judged,
    refinement,
    scored,
    stages,
    text,
)

from ipyrefine.core.fold import fold
from ipyrefine.core.ports import Reply
from ipyrefine.core.records import Outcome, Status
from ipyrefine.core.runs import Budget, Decision, Limits, StopReason
from ipyrefine.errors import Unreachable, UsageError


async def test_a_passing_score_after_one_revision_stops_as_passed() -> None:
    loop = scored(0.5, 0.95, target=0.9)
    await finish(loop)
    assert loop.run.score_history == (0.5, 0.95)
    assert loop.run.stop_reason is StopReason.PASSED
    assert loop.run.converged


async def test_a_first_text_that_reaches_the_target_is_not_revised() -> None:
    loop = scored(0.9, target=0.9)
    assert stages(await finish(loop)) == ["draft", "check"]


async def test_a_constant_score_stops_on_a_plateau_and_has_not_converged() -> None:
    loop = scored(0.5, 0.5, 0.5, 0.5, target=1, patience=3)
    await finish(loop)
    assert loop.run.score_history == (0.5,) * 4
    assert loop.run.stop_reason is StopReason.PLATEAU
    assert not loop.run.converged


async def test_the_best_text_is_kept_not_the_last() -> None:
    loop = scored(0.4, 0.7, 0.5, 0.3, target=1, max_iterations=3, patience=9)
    await finish(loop)
    assert loop.run.text == "version 1"
    assert loop.run.stop_reason is StopReason.ROUNDS


async def test_no_iterations_means_one_draft_and_one_verdict() -> None:
    loop = scored(0.4, target=1, max_iterations=0)
    await finish(loop)
    assert loop.run.score_history == (0.4,)
    assert loop.run.message.startswith("No revisions were allowed. Unmet in the best text")


async def test_a_first_text_only_a_judge_passed_is_criticised_before_it_may_pass() -> None:
    weak = [found(f"too {word}") for word in ("stiff", "long", "cold")]
    loop = refinement(
        [text("Dear Sir"), judged(9), criticised(*weak), text("Hi!", "f1: softer"),
         judged(9, fixed=("f1", "f2", "f3"))]
    )  # fmt: skip
    assert stages(await finish(loop)) == ["draft", "judge", "critique", "revise", "judge"]
    assert loop.run.text == "Hi!"
    assert loop.run.iterations[1].changes[0].finding == "f1"


async def test_the_judges_findings_are_reused_so_that_a_later_iteration_costs_two_calls() -> None:
    loop = refinement([text("Dear Sir"), judged(5, found("stiff")), text("Hi!"),
                       judged(9, fixed=("f1",))])  # fmt: skip
    assert stages(await finish(loop)) == ["draft", "judge", "revise", "judge"]
    assert loop.run.iterations[1].findings[0].status is Status.RESOLVED


async def test_a_finding_whose_quote_is_not_in_the_text_is_not_acted_on() -> None:
    loop = refinement(
        [
            text("Dear Sir"),
            judged(9),
            criticised(*[found(p, "Oi!") for p in ("rude", "odd", "loud")]),
        ]
    )
    await finish(loop)
    assert not loop.run.iterations[0].findings[0].grounded
    assert loop.run.stop_reason is StopReason.PASSED


async def test_a_judge_that_cannot_be_read_twice_leaves_the_text_not_verified() -> None:
    loop = refinement([text("Hi"), "PASS", "PASS!"], limits=Limits(max_iterations=0))
    await finish(loop)
    verdict = loop.run.iterations[0].verdict
    assert verdict is not None
    assert (verdict.verified, verdict.score) == (False, None)
    assert verdict.outcome is Outcome.NEEDS_IMPROVEMENT


async def test_a_failed_check_reaches_the_reviser_with_its_evidence() -> None:
    loop = scored(0.5, 0.95, target=0.9)
    await finish(loop)
    model: Any = loop._crew.model
    said = model.requests[1].messages[-1].content
    assert "scores: FAILED" in said
    assert "(blocking, scores): scored" in said
    assert said.count("scored") == 1  # what a finding says the evidence need not say again


async def test_a_revision_cut_off_at_the_token_limit_keeps_the_text_before_it() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("short")), Reply(text="<text>\nHal", finish="length")],
        limits=Limits(max_iterations=1),
    )
    await finish(loop)
    assert loop.run.text == "Hi"
    assert "cut off" in loop.run.iterations[1].flaw


async def test_a_model_that_fails_ends_the_run_with_the_best_text_kept() -> None:
    loop = refinement([text("Hi"), judged(5, found("short")), Unreachable("No server.")])
    await finish(loop)
    assert loop.run.stop_reason is StopReason.FAILED
    assert loop.run.text == "Hi"
    assert isinstance(loop.error, Unreachable)


async def test_a_call_the_budget_does_not_allow_is_never_made() -> None:
    loop = refinement([text("Hi"), judged(5)], limits=Limits(budget=Budget(calls=1)))
    await finish(loop)
    model: Any = loop._crew.model
    assert len(model.requests) == 1
    assert loop.run.stop_reason is StopReason.BUDGET


async def test_the_events_fold_to_the_run() -> None:
    loop = refinement([text("Dear Sir"), judged(5, found("stiff")), text("Hi!"),
                       judged(9, fixed=("f1",))])  # fmt: skip
    assert fold(await finish(loop)) == loop.run


async def test_going_on_with_guidance_revises_a_text_that_had_passed() -> None:
    loop = refinement([text("Hi"), judged(9, found("x", severity="minor")), *NO_MORE,
                       text("Hallo"), judged(9, fixed=("f1", "f2"))])  # fmt: skip
    await finish(loop)
    assert loop.run.stop_reason is StopReason.PASSED
    loop.decide(Decision(kind="continue", rounds=1, text="in German"))
    await finish(loop)
    assert loop.run.text == "Hallo"
    model: Any = loop._crew.model
    assert "in German" in model.requests[4].messages[-1].content


async def test_overriding_a_verdict_to_pass_stops_the_run_as_overridden() -> None:
    loop = scored(0.5, target=1, max_iterations=0)
    await finish(loop)
    loop.decide(Decision(kind="override", outcome=Outcome.PASS, text="good enough"))
    await finish(loop)
    assert loop.run.stop_reason is StopReason.OVERRIDDEN
    verdict = loop.run.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.author) == (Outcome.PASS, "user")


async def test_any_iteration_can_be_accepted() -> None:
    loop = scored(0.4, 0.7, target=1, max_iterations=1)
    await finish(loop)
    loop.decide(Decision(kind="accept", iteration=0))
    await finish(loop)
    assert (loop.run.text, loop.run.stop_reason) == ("version 0", StopReason.ACCEPTED)


@pytest.mark.parametrize("finish_reason", ["length", "refused", "filtered", "incomplete"])
async def test_a_first_text_that_never_came_fails_with_a_sentence(finish_reason: Any) -> None:
    loop = refinement([Reply(text="", finish=finish_reason)])
    await finish(loop)
    assert loop.run.stop_reason is StopReason.FAILED
    assert "gave no first text" in loop.run.message


async def test_a_bound_in_dollars_that_cannot_be_kept_stops_the_run_with_its_text() -> None:
    loop = refinement([text("Hi"), judged(5, found("short"))], limits=Limits(budget=Budget(cost=1)))
    await finish(loop)
    assert (loop.run.text, loop.run.stop_reason) == ("Hi", StopReason.BUDGET)
    assert "dollars cannot be kept" in loop.run.message


async def test_a_call_that_failed_before_any_word_is_counted_and_costs_nothing() -> None:
    loop = refinement([Unreachable("No server.")])
    await finish(loop)
    assert (loop.run.usage.calls, loop.run.usage.cost) == (1, 0.0)


async def test_a_run_stopped_before_its_first_text_is_continued() -> None:
    loop = refinement([text("Hello"), judged(9), criticised(), criticised()])
    async for _ in loop:
        break
    loop.close()
    assert loop.run.stop_reason is StopReason.CANCELLED
    with pytest.raises(UsageError, match="no text yet"):
        loop.decide(Decision(kind="continue", text="shorter"))
    loop.decide(Decision(kind="continue", rounds=1))
    await finish(loop)
    assert loop.run.text == "Hello"
