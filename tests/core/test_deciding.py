"""What a user may decide, and what each decision makes of a run."""

from typing import Any

import pytest
from loop_scripts import (
    NO_MORE,
    finish,
    found,
    judged,
    refinement,
    requests,
    scored,
    stages,
    text,
)

from ipyrefine.core.engine import Refinement
from ipyrefine.core.records import Criterion, Finding, Outcome, Severity, Status
from ipyrefine.core.runs import Decision, Limits, StopReason
from ipyrefine.errors import UsageError

WARMTH = Criterion(name="warmth", definition="It is warm.")


async def decided(loop: Refinement, kind: Any, **fields: Any) -> list[str]:
    """Decide, run on to the next stop, and give the stages that ran."""
    loop.decide(Decision(kind=kind, **fields))
    return stages(await finish(loop))


async def stopped(*more: Any, **limits: Any) -> Refinement:
    """A run that stopped at its first text, judged 5 with two findings f1 and f2."""
    weak = [found("stiff", quote="Dear Sir"), found("no name given", severity="minor")]
    loop = refinement(
        [text("Dear Sir"), judged(5, *weak), *more], limits=Limits(max_iterations=0, **limits)
    )
    await finish(loop)
    return loop


def last_prompt(loop: Refinement) -> str:
    return str(requests(loop)[-1].messages[-1].content)


async def test_a_hand_edit_is_an_iteration_of_the_users_that_is_judged_like_any() -> None:
    loop = await stopped(judged(9, fixed=("f1", "f2")))
    assert await decided(loop, "edit", text="Hi Ann") == ["judge"]
    edited = loop.run.iterations[1]
    assert (edited.author, edited.parent, edited.text) == ("user", 0, "Hi Ann")
    assert (loop.run.text, loop.run.stop_reason) == ("Hi Ann", StopReason.PASSED)


async def test_a_revision_after_a_hand_edit_starts_from_it_even_if_it_scored_less() -> None:
    loop = await stopped(judged(3, found("dull")), text("Hi!"), judged(9, fixed=("f1", "f2", "f3")))
    await decided(loop, "edit", text="Hallo")
    assert loop.run.best == 0
    await decided(loop, "continue", rounds=1, iteration=1)
    assert loop.run.iterations[2].parent == 1


async def test_a_hand_edit_during_the_run_costs_none_of_the_revisions() -> None:
    loop = refinement(
        [text("Dear Sir"), judged(5, found("stiff")), judged(6), *NO_MORE, text("Hi!"),
         judged(9, fixed=("f1",))],
        limits=Limits(max_iterations=1),
    )  # fmt: skip
    async for event in loop:
        if event.type == "verdict_reached" and event.iteration == 0:
            loop.decide(Decision(kind="edit", text="Dear Ann"))
    assert [i.author for i in loop.run.iterations] == ["model", "user", "model"]
    assert loop.run.iterations[2].parent == 1


async def test_a_dismissed_finding_is_not_acted_on_and_never_raised_again() -> None:
    again = found("It is too STIFF.", quote="Dear Sir")
    loop = await stopped(text("Dear Sir!"), judged(6, again, fixed=("f2",)))
    await decided(loop, "dismiss", findings=("f1",), text="it is a bank")
    assert loop.run.stop_reason in (StopReason.ROUNDS, StopReason.PAUSED)
    await decided(loop, "continue", rounds=1)
    statuses = {f.id: f.status for f in loop.run.iterations[1].findings}
    assert statuses == {"f1": Status.DISMISSED, "f2": Status.RESOLVED}
    revision, judging = (r.messages[-1].content for r in requests(loop)[-2:])
    assert "f1 (" not in revision
    assert "- stiff (because: it is a bank)" in judging


async def test_dismissing_what_blocked_a_text_lets_it_pass_without_a_call() -> None:
    loop = refinement(
        [text("Dear Sir"), judged(9, found("stiff"))], limits=Limits(max_iterations=0)
    )
    await finish(loop)
    assert loop.run.stop_reason is StopReason.ROUNDS
    assert await decided(loop, "dismiss", findings=("f1",)) == []
    assert loop.run.stop_reason is StopReason.PASSED


async def test_a_users_finding_keeps_the_text_from_passing_until_it_is_met() -> None:
    loop = refinement(
        [text("Hi"), judged(9, found("x", severity="minor")), *NO_MORE, text("Hi Ann"),
         judged(9, fixed=("f1", "f2"))],
    )  # fmt: skip
    await finish(loop)
    assert loop.run.stop_reason is StopReason.PASSED
    finding = Finding(
        id="", criterion="tone", severity=Severity.BLOCKING, quote="Hi", problem="Name her."
    )
    assert await decided(loop, "add", finding=finding) == []
    verdict = loop.run.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.user_met) == (Outcome.NEEDS_IMPROVEMENT, False)
    await decided(loop, "continue", rounds=1)
    assert (loop.run.text, loop.run.stop_reason) == ("Hi Ann", StopReason.PASSED)


async def test_adding_a_finding_with_a_known_id_rewrites_that_one() -> None:
    loop = await stopped()
    finding = Finding(id="f1", criterion="tone", severity=Severity.MINOR, problem="A bit stiff.")
    await decided(loop, "add", finding=finding)
    rewritten = loop.run.iterations[0].findings[0]
    assert (rewritten.id, rewritten.problem, rewritten.author) == ("f1", "A bit stiff.", "user")
    assert len(loop.run.iterations[0].findings) == 2


async def test_the_next_revision_acts_on_the_findings_that_were_chosen() -> None:
    loop = await stopped(text("Dear Ann"), judged(6, fixed=("f2",)))
    await decided(loop, "select", findings=("f2",))
    asked = requests(loop)[2].messages[-1].content
    assert "f2 (minor" in asked
    assert "f1 (" not in asked
    assert loop.run.selected == ()


async def test_branching_goes_on_from_the_chosen_text_and_keeps_the_others() -> None:
    loop = scored(0.5, 0.7, 0.9, target=0.9, max_iterations=1)
    await finish(loop)
    await decided(loop, "branch", iteration=0)
    assert [i.parent for i in loop.run.iterations] == [None, 0, 0]
    assert loop.run.text == "version 2"


async def test_new_criteria_rescore_the_history_with_one_judge_call_a_text() -> None:
    loop = refinement(
        [text("Dear Sir"), judged(5, found("stiff")), text("Hi"), judged(7, found("terse")),
         judged(9, names=("warmth",)), judged(2, names=("warmth",))],
        limits=Limits(max_iterations=1),
    )  # fmt: skip
    await finish(loop)
    assert loop.run.best == 1
    assert await decided(loop, "rubric", criteria=(WARMTH,)) == ["judge", "judge"]
    assert loop.run.score_history == (0.9, 0.2)
    assert (loop.run.best, loop.run.text) == (0, "Dear Sir")
    assert loop.run.stop_reason is StopReason.PASSED


async def test_findings_of_a_dropped_criterion_no_longer_count() -> None:
    loop = await stopped(judged(9, names=("warmth",)))
    await decided(loop, "rubric", criteria=(WARMTH,))
    assert {f.status for f in loop.run.iterations[0].findings} == {Status.DISMISSED}


async def test_a_new_target_is_applied_to_the_history_without_a_call() -> None:
    loop = await stopped()
    await decided(loop, "dismiss", findings=("f1",))
    assert await decided(loop, "rubric", target=0.5) == []
    assert loop.run.stop_reason is StopReason.PASSED


async def test_overriding_a_pass_makes_the_reason_a_finding_and_the_loop_goes_on() -> None:
    loop = refinement(
        [text("Hi"), judged(9, found("x", severity="minor")), *NO_MORE, text("Hallo"),
         judged(9, fixed=("f1", "f2"))],
    )  # fmt: skip
    await finish(loop)
    why = "It has to be German."
    ran = await decided(loop, "override", outcome=Outcome.NEEDS_IMPROVEMENT, text=why)
    assert ran == ["revise", "judge"]
    assert loop.run.iterations[0].findings[-1].author == "user"
    assert loop.run.text == "Hallo"


async def test_a_later_judge_is_shown_the_override_as_a_precedent() -> None:
    loop = await stopped(text("Dear Ann"), judged(6))
    await decided(loop, "override", outcome=Outcome.NEEDS_IMPROVEMENT, text="no names")
    judging = last_prompt(loop)
    assert "It is not there yet: no names" in judging
    assert "Dear Sir" in judging


async def test_an_overridden_verdict_outlives_a_new_rubric() -> None:
    loop = await stopped(judged(1, names=("warmth",)))
    await decided(loop, "override", outcome=Outcome.PASS, text="fine by me")
    assert loop.run.stop_reason is StopReason.OVERRIDDEN
    await decided(loop, "rubric", criteria=(WARMTH,))
    verdict = loop.run.iterations[0].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.score, verdict.author) == (Outcome.PASS, 0.1, "user")


async def test_step_mode_pauses_after_every_verdict_and_continue_leaves_the_pause() -> None:
    loop = scored(0.4, 0.5, 0.6, target=1, max_iterations=2, step=True)
    for written in (1, 2):
        await finish(loop)
        assert loop.run.stop_reason is StopReason.PAUSED
        assert len(loop.run.iterations) == written
        loop.decide(Decision(kind="continue"))
    await finish(loop)
    assert loop.run.stop_reason is StopReason.ROUNDS


async def test_a_paused_run_stays_paused_until_the_user_goes_on() -> None:
    loop = scored(0.4, 0.5, target=1, max_iterations=2, step=True)
    await finish(loop)
    assert stages(await finish(loop)) == []
    assert await decided(loop, "guide", text="warmer") == []
    assert loop.run.stop_reason is StopReason.PAUSED


async def test_a_remark_on_a_stopped_run_makes_no_call_and_takes_no_acceptance_back() -> None:
    loop = scored(0.4, 0.7, target=1, max_iterations=1)
    await finish(loop)
    await decided(loop, "accept", iteration=0)
    assert await decided(loop, "guide", text="shorter next time") == []
    assert (loop.run.stop_reason, loop.run.text) == (StopReason.ACCEPTED, "version 0")


async def test_guidance_given_while_a_revision_is_written_is_not_lost() -> None:
    loop = refinement(
        [text("Dear Sir"), judged(5, found("stiff")), text("Hi"), judged(7, fixed=("f1",)),
         text("Hallo"), judged(9, fixed=("f2",))],
    )  # fmt: skip
    async for event in loop:
        if event.type == "stage_started" and event.stage == "revise" and event.iteration == 1:
            loop.decide(Decision(kind="guide", text="in German"))
    assert "in German" in requests(loop)[4].messages[-1].content
    assert loop.run.text == "Hallo"


IMPOSSIBLE = {
    "no such iteration": Decision(kind="branch", iteration=7),
    "branch from nowhere": Decision(kind="branch"),
    "no such finding": Decision(kind="dismiss", findings=("f9",)),
    "nothing chosen": Decision(kind="select"),
    "an override without a verdict": Decision(kind="override"),
    "an empty edit": Decision(kind="edit", text="  "),
    "an empty finding": Decision(kind="add"),
    "an empty rubric": Decision(kind="rubric"),
    "a quote that is not there": Decision(
        kind="add",
        finding=Finding(
            id="", criterion="tone", severity=Severity.MINOR, quote="Moin", problem="rude"
        ),
    ),
}


@pytest.mark.parametrize("decision", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
async def test_an_impossible_decision_is_refused_before_anything_happens(
    decision: Decision,
) -> None:
    loop = await stopped()
    before = loop.run
    with pytest.raises(UsageError):
        loop.decide(decision)
    with pytest.raises(ValueError, match="There is no text yet"):
        refinement([]).decide(Decision(kind="accept"))
    assert await finish(loop)
    assert loop.run.iterations == before.iterations


async def test_a_checks_own_finding_cannot_be_dismissed() -> None:
    loop = scored(0.5, target=1, max_iterations=0)
    await finish(loop)
    with pytest.raises(UsageError, match="override the verdict"):
        loop.decide(Decision(kind="dismiss", findings=("f1",)))
