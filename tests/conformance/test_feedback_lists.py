"""B. Self-refine with feedback lists, until done or three refinements."""

from loop_scripts import NO_MORE, finish, found, judged, refinement, requests, text

from ipyrefine.core.ports import Reply
from ipyrefine.core.runs import Limits, StopReason

THREE = Limits(max_iterations=3, patience=9)


async def test_feedback_is_a_list_of_actions_and_nothing_left_means_done() -> None:
    actions = [found("dull"), found("no name", severity="minor")]
    loop = refinement([text("Hi"), judged(5, *actions), text("Hi Ann"),
                       judged(9, fixed=("f1", "f2"))], limits=THREE)  # fmt: skip
    await finish(loop)
    assert [(f.problem, f.fix) for f in loop.run.iterations[0].findings] == [
        ("dull", "mend it"), ("no name", "mend it"),
    ]  # fmt: skip
    assert loop.run.stop_reason is StopReason.PASSED
    assert loop.run.iterations[1].actionable == ()


async def test_the_history_holds_response_feedback_and_refined_response() -> None:
    loop = refinement([text("Hi"), judged(5, found("dull")), text("Hi Ann", "f1: her name"),
                       judged(9, fixed=("f1",))], limits=THREE)  # fmt: skip
    await finish(loop)
    first, refined = loop.run.iterations
    assert (first.text, first.findings[0].problem) == ("Hi", "dull")
    assert (refined.parent, refined.text) == (0, "Hi Ann")
    assert [(c.finding, c.summary) for c in refined.changes] == [("f1", "her name")]


async def test_three_refinements_by_one_model_cost_at_most_eight_calls() -> None:
    replies = [text("v0"), judged(2, found("problem one"))]
    for number in (1, 2, 3):
        replies += [text(f"v{number}"), judged(2 + number, found(f"trouble{number} again"))]
    loop = refinement(replies, limits=THREE)
    await finish(loop)
    assert len(loop.run.iterations) == 4
    assert loop.run.usage.calls == 8
    assert loop.run.stop_reason is StopReason.ROUNDS


async def test_eight_calls_are_enough_even_if_the_first_text_has_to_be_criticised() -> None:
    loop = refinement([text("v0"), judged(9), *NO_MORE, text("v1"), judged(9)], limits=THREE)
    await finish(loop)
    assert loop.run.usage.calls <= 8


async def test_an_invalid_reply_is_sent_back_once_with_the_error_and_counted() -> None:
    loop = refinement([text("Hi"), '{"criteria": []}', judged(9)],
                      limits=Limits(min_findings=0))  # fmt: skip
    await finish(loop)
    again = requests(loop)[2].messages
    assert again[-2].content == '{"criteria": []}'
    assert "no score for tone" in again[-1].content
    assert loop.run.usage.calls == 3
    assert any(w.startswith("Asked scripted again") for w in loop.run.warnings)


async def test_a_truncated_reply_is_never_asked_for_again_blindly() -> None:
    cut = Reply(text=judged(9)[:-9], finish="length")
    loop = refinement([text("Hi"), cut], limits=Limits(max_iterations=0))
    await finish(loop)
    assert len(requests(loop)) == 2
    assert loop.run.verdict is not None
    assert "cut off" in loop.run.verdict.why
