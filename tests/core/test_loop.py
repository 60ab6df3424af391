"""The loop on a scripted model: which stages run, and why it stops."""

import pytest
from kit import (
    NO_FINDINGS,
    critique,
    finding,
    finish,
    judgement,
    prompts,
    refinement,
    requests,
    scored,
    stages,
    text,
)

from ipyrefine.core.decisions import Accept, Continue, Override
from ipyrefine.core.events import TextDelta
from ipyrefine.core.model import (
    LOW_SCORE,
    Budget,
    Finish,
    Limits,
    Outcome,
    Stage,
    Status,
    StopReason,
)
from ipyrefine.core.ports import Reply
from ipyrefine.core.reducer import replay
from ipyrefine.errors import Unreachable, UsageError


async def test_a_passing_score_after_one_revision_stops_as_passed() -> None:
    loop = scored(0.5, 0.95, target=0.9)
    await finish(loop)
    assert loop.state.score_history == (0.5, 0.95)
    assert loop.state.stop_reason is StopReason.PASSED
    assert loop.state.converged


async def test_a_draft_that_reaches_the_target_is_not_revised() -> None:
    loop = scored(0.9, target=0.9)
    assert stages(await finish(loop)) == ["draft", "check"]


async def test_a_constant_score_stops_on_a_plateau_and_has_not_converged() -> None:
    loop = scored(0.5, 0.5, 0.5, 0.5, target=1, patience=3)
    await finish(loop)
    assert loop.state.score_history == (0.5,) * 4
    assert loop.state.stop_reason is StopReason.PLATEAU
    assert not loop.state.converged


async def test_the_best_text_is_kept_not_the_last() -> None:
    loop = scored(0.4, 0.7, 0.5, 0.3, target=1, max_revisions=3, patience=9)
    await finish(loop)
    assert loop.state.text == "version 1"
    assert loop.state.stop_reason is StopReason.REVISIONS


async def test_no_iterations_means_one_draft_and_one_verdict() -> None:
    loop = scored(0.4, target=1, max_revisions=0)
    await finish(loop)
    assert loop.state.score_history == (0.4,)
    assert loop.state.message.startswith("No revisions were allowed. Still open: ")


async def test_a_draft_that_only_a_judge_passed_is_criticised_before_it_may_pass() -> None:
    weak = [finding(f"too {word}") for word in ("stiff", "long", "cold")]
    loop = refinement(
        [
            text("Dear Sir"),
            judgement(9),
            critique(*weak),
            text("Hi!", "f1: softer"),
            judgement(9, fixed=("f1", "f2", "f3")),
        ]
    )
    assert stages(await finish(loop)) == ["draft", "judge", "critique", "revise", "judge"]
    assert loop.state.text == "Hi!"
    assert loop.state.iterations[1].changes[0].finding == "f1"


async def test_a_low_score_is_explained_by_one_critique_before_it_is_acted_on() -> None:
    loop = refinement(
        [text("Dear Sir"), judgement(5, finding("stiff")), text("Hi!"), judgement(9, fixed=("f1",))]
    )
    assert stages(await finish(loop)) == ["draft", "judge", "critique", "revise", "judge"]
    low, named = loop.state.iterations[1].findings
    assert (low.check, low.problem) == (LOW_SCORE, "tone 0.50, target 0.80.")
    assert (named.problem, named.status) == ("stiff", Status.RESOLVED)


async def test_a_finding_whose_quote_is_not_in_the_text_is_not_acted_on() -> None:
    loop = refinement(
        [
            text("Dear Sir"),
            judgement(9),
            critique(*[finding(p, "Oi!") for p in ("rude", "odd", "loud")]),
        ]
    )
    await finish(loop)
    assert {f.verified for f in loop.state.iterations[0].findings} == {"no"}
    assert loop.state.iterations[0].actionable == ()
    assert loop.state.stop_reason is StopReason.PASSED


async def test_a_judge_that_cannot_be_read_twice_leaves_the_text_not_judged() -> None:
    loop = refinement([text("Hi"), "PASS", "PASS!"], limits=Limits(max_revisions=0))
    await finish(loop)
    verdict = loop.state.iterations[0].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis) == (Outcome.NOT_JUDGED, "none")
    assert verdict.score is None
    assert "the reply could not be read" in verdict.reason
    assert loop.state.stop_reason is StopReason.UNJUDGED


async def test_a_failed_check_reaches_the_reviser_with_its_evidence() -> None:
    loop = scored(0.5, 0.95, target=0.9)
    await finish(loop)
    prompt = prompts(loop)[1]
    assert "scores: FAILED" in prompt
    assert "(blocking, scores): scored" in prompt
    assert prompt.count("scored") == 1  # what a finding says the evidence need not say again


async def test_a_revision_cut_off_at_the_token_limit_keeps_the_text_before_it() -> None:
    loop = refinement(
        [text("Hi"), judgement(5, finding("short")), Reply(text="<text>\nHal", finish="length")],
        limits=Limits(max_revisions=1),
    )
    await finish(loop)
    assert loop.state.text == "Hi"
    assert "cut off" in loop.state.iterations[1].failure


CIRCLES = Reply(text="1. A count, and a count of the count he was.\n" * 20, finish="length")


async def test_a_draft_that_repeats_itself_up_to_the_limit_is_sampled_once_instead() -> None:
    """A small model at temperature 0 goes round in circles, and would again."""
    loop = refinement([CIRCLES, text("Hi"), judgement(9), *NO_FINDINGS])
    await finish(loop)
    assert loop.state.text == "Hi"
    first, second = requests(loop, Stage.DRAFT)
    assert first.messages == second.messages
    assert first.temperature == 0 < second.temperature
    assert "Asked scripted again: the reply repeats itself up to the token limit." in (
        loop.state.warnings
    )


async def test_a_draft_that_repeats_itself_twice_ends_the_run_with_what_to_do() -> None:
    loop = refinement([CIRCLES, CIRCLES])
    await finish(loop)
    assert loop.state.stop_reason is StopReason.FAILED
    assert loop.state.message == (
        "scripted gave no draft: the reply repeats itself up to the token limit. "
        "Word the task differently, or use a larger model."
    )


async def test_the_thoughts_of_the_next_reply_are_not_shown_as_text() -> None:
    """Though the reply before it broke off in the middle of its text."""
    cut = Reply(text=f"<text>\n{CIRCLES.text}and on", finish="length")
    loop = refinement([cut, Reply(text="A plan.\n<text>\nHi\n</text>"), judgement(9), *NO_FINDINGS])
    shown = [event for event in await finish(loop) if isinstance(event, TextDelta)]
    assert ("thinking", "A plan.\n") in [(event.kind, event.text) for event in shown]


async def test_a_long_draft_that_is_cut_off_is_not_asked_for_again() -> None:
    words = " ".join(f"word{number}" for number in range(500))
    loop = refinement([Reply(text=f"<text>\n{words}", finish="length"), text("Hi")])
    await finish(loop)
    assert loop.state.usage.calls == 1
    assert "Raise --max-tokens" in loop.state.message


async def test_one_of_several_drafts_that_repeats_itself_is_left_out() -> None:
    loop = refinement(
        [CIRCLES, text("Hi"), judgement(9), *NO_FINDINGS], limits=Limits(candidates=2)
    )
    await finish(loop)
    assert loop.state.text == "Hi"
    assert len(requests(loop, Stage.DRAFT)) == 2


async def test_a_model_that_fails_ends_the_run_with_the_best_text_kept() -> None:
    loop = refinement([text("Hi"), judgement(5, finding("short")), Unreachable("No server.")])
    await finish(loop)
    assert loop.state.stop_reason is StopReason.FAILED
    assert loop.state.text == "Hi"
    assert isinstance(loop.error, Unreachable)


async def test_a_call_the_budget_does_not_allow_is_never_made() -> None:
    loop = refinement([text("Hi"), judgement(5)], limits=Limits(budget=Budget(calls=1)))
    await finish(loop)
    assert len(requests(loop)) == 1
    assert loop.state.stop_reason is StopReason.BUDGET


async def test_the_events_fold_to_the_run() -> None:
    loop = refinement(
        [text("Dear Sir"), judgement(5, finding("stiff")), text("Hi!"), judgement(9, fixed=("f1",))]
    )
    assert replay(await finish(loop)) == loop.state


async def test_going_on_with_guidance_revises_a_text_that_had_passed() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(9, finding("x", severity="minor")),
            text("Hallo"),
            judgement(9, fixed=("f1", "f2")),
        ]
    )
    await finish(loop)
    assert loop.state.stop_reason is StopReason.PASSED
    loop.decide(Continue(revisions=1, guidance="in German"))
    await finish(loop)
    assert loop.state.text == "Hallo"
    assert "in German" in prompts(loop, Stage.REVISE)[0]


async def test_overriding_a_verdict_to_pass_stops_the_run_as_overridden() -> None:
    loop = scored(0.5, target=1, max_revisions=0)
    await finish(loop)
    loop.decide(Override(outcome=Outcome.PASS, reason="good enough"))
    await finish(loop)
    assert loop.state.stop_reason is StopReason.OVERRIDDEN
    verdict = loop.state.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis) == (Outcome.PASS, "user")


async def test_any_iteration_can_be_accepted() -> None:
    loop = scored(0.4, 0.7, target=1, max_revisions=1)
    await finish(loop)
    loop.decide(Accept(iteration=0))
    await finish(loop)
    assert (loop.state.text, loop.state.stop_reason) == ("version 0", StopReason.ACCEPTED)


@pytest.mark.parametrize("ended", ["length", "refused", "filtered", "incomplete"])
async def test_a_draft_that_never_came_fails_with_a_sentence(ended: Finish) -> None:
    loop = refinement([Reply(text="", finish=ended)])
    await finish(loop)
    assert loop.state.stop_reason is StopReason.FAILED
    assert "gave no draft" in loop.state.message


async def test_a_bound_in_dollars_that_cannot_be_kept_stops_the_run_with_its_text() -> None:
    loop = refinement(
        [text("Hi"), judgement(5, finding("short"))], limits=Limits(budget=Budget(cost=1))
    )
    await finish(loop)
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.BUDGET)
    assert "dollars cannot be kept" in loop.state.message


async def test_a_call_that_failed_before_any_word_is_counted_and_costs_nothing() -> None:
    loop = refinement([Unreachable("No server.")])
    await finish(loop)
    assert (loop.state.usage.calls, loop.state.usage.cost) == (1, 0.0)


async def test_a_run_stopped_before_its_first_draft_is_continued() -> None:
    loop = refinement([text("Hello"), judgement(9), *NO_FINDINGS])
    await loop.end()
    assert loop.state.stop_reason is StopReason.CANCELLED
    with pytest.raises(UsageError, match="no text yet"):
        loop.decide(Continue(guidance="shorter"))
    loop.decide(Continue())
    await finish(loop)
    assert loop.state.text == "Hello"
