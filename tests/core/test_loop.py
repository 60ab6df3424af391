"""The loop on a scripted model: which stages run, and why it stops."""

import pytest
from kit import NO_FINDINGS, finding, finish, judgement, refinement, requests, text

from ipyrefine.core.decisions import Continue
from ipyrefine.core.events import TextDelta
from ipyrefine.core.model import Limits, Stage, StopReason
from ipyrefine.core.ports import Reply
from ipyrefine.errors import UsageError

CIRCLES = Reply(text="1. A count, and a count of the count he was.\n" * 20, finish="length")


async def test_a_draft_that_repeats_itself_up_to_the_limit_is_sampled_once_instead() -> None:
    """A small model at temperature 0 goes round in circles, and would again."""
    loop = refinement([CIRCLES, text("Hi"), judgement(9), *NO_FINDINGS], weak_editor=True)
    await finish(loop)
    assert loop.state.text == "Hi"
    first, second = requests(loop, Stage.DRAFT)
    assert first.messages == second.messages
    assert first.temperature == 0 < second.temperature
    assert "Asked scripted again: the reply repeats itself up to the token limit." in (
        loop.state.warnings
    )


async def test_a_revision_of_the_user_s_text_without_a_new_text_is_named_as_one() -> None:
    weak = finding("Flat.")
    replies = {Stage.CRITIQUE: [judgement(4, weak)] * 2, Stage.REVISE: [CIRCLES] * 4}
    loop = refinement(replies, draft="Hi", weak_editor=True, limits=Limits(max_revisions=1))
    await finish(loop)
    assert any(one.startswith("Revision 1 has no new text:") for one in loop.state.warnings)


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


async def test_one_of_several_drafts_that_repeats_itself_is_left_out() -> None:
    loop = refinement(
        [CIRCLES, text("Hi"), judgement(9), *NO_FINDINGS], limits=Limits(candidates=2)
    )
    await finish(loop)
    assert loop.state.text == "Hi"
    assert len(requests(loop, Stage.DRAFT)) == 2


async def test_a_run_stopped_before_its_first_draft_is_continued() -> None:
    loop = refinement([text("Hello"), judgement(9), *NO_FINDINGS])
    await loop.end()
    assert loop.state.stop_reason is StopReason.CANCELLED
    with pytest.raises(UsageError, match="no text yet"):
        loop.decide(Continue(guidance="shorter"))
    loop.decide(Continue())
    await finish(loop)
    assert loop.state.text == "Hello"
