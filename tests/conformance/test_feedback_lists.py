"""B. Self-refine with feedback lists, until done or three refinements."""

from kit import NO_FINDINGS, finding, finish, judgement, refinement, requests, text

from ipyrefine.core.model import Limits, StopReason
from ipyrefine.core.ports import Reply

THREE = Limits(max_revisions=3, patience=9)


async def test_feedback_is_a_list_of_actions_and_nothing_left_means_done() -> None:
    actions = [finding("dull"), finding("no name", severity="minor")]
    loop = refinement(
        [text("Hi"), judgement(5, *actions), text("Hi Ann"), judgement(9, fixed=("f1", "f2"))],
        limits=THREE,
    )
    await finish(loop)
    assert [(f.problem, f.fix) for f in loop.state.iterations[0].findings] == [
        ("dull", "mend it"),
        ("no name", "mend it"),
    ]
    assert loop.state.stop_reason is StopReason.PASSED
    assert loop.state.iterations[1].actionable == ()


async def test_the_history_holds_response_feedback_and_refined_response() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Hi Ann", "f1: her name"),
            judgement(9, fixed=("f1",)),
        ],
        limits=THREE,
    )
    await finish(loop)
    first, refined = loop.state.iterations
    assert (first.text, first.findings[0].problem) == ("Hi", "dull")
    assert (refined.parent, refined.text) == (0, "Hi Ann")
    assert [(c.finding, c.summary) for c in refined.changes] == [("f1", "her name")]


async def test_three_refinements_by_one_model_cost_at_most_eight_calls() -> None:
    replies = [text("v0"), judgement(2, finding("problem one"))]
    for number in (1, 2, 3):
        replies += [text(f"v{number}"), judgement(2 + number, finding(f"trouble{number} again"))]
    loop = refinement(replies, limits=THREE)
    await finish(loop)
    assert len(loop.state.iterations) == 4
    assert loop.state.usage.calls == 8
    assert loop.state.stop_reason is StopReason.REVISIONS


async def test_eight_calls_are_enough_even_if_the_first_text_has_to_be_criticised() -> None:
    loop = refinement(
        [text("v0"), judgement(9), *NO_FINDINGS, text("v1"), judgement(9)], limits=THREE
    )
    await finish(loop)
    assert loop.state.usage.calls <= 8


async def test_an_invalid_reply_is_sent_back_once_with_the_error_and_counted() -> None:
    loop = refinement([text("Hi"), '{"criteria": []}', judgement(9)], limits=Limits(min_findings=0))
    await finish(loop)
    again = requests(loop)[2].messages
    assert again[-2].content == '{"criteria": []}'
    assert "no score for tone" in again[-1].content
    assert loop.state.usage.calls == 3
    assert any(w.startswith("Asked scripted again") for w in loop.state.warnings)


async def test_a_truncated_reply_is_never_asked_for_again_blindly() -> None:
    cut = Reply(text=judgement(9)[:-9], finish="length")
    loop = refinement([text("Hi"), cut], limits=Limits(max_revisions=0))
    await finish(loop)
    assert len(requests(loop)) == 2
    assert loop.state.verdict is not None
    assert "cut off" in loop.state.verdict.reason
