"""Replies that end at the token limit: asked for once more with a higher one, or said to be cut."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from kit import evaluated, finish, judgement, requests, text

from ipyrefine.core.events import CallEnded
from ipyrefine.core.model import Budget, Limits, Stage, StopReason, Usage
from ipyrefine.core.ports import Delta, Reply, Request

DEFAULT = Limits(max_tokens=None, max_revisions=0, critique="never")
SPENT = Usage(calls=1, prompt_tokens=100, completion_tokens=16_384)
THOUGHT = Reply(text="", finish="length", usage=SPENT)
HALF = Reply(text="<text>\nHel", finish="length", usage=SPENT)


@pytest.mark.parametrize("cut", [THOUGHT, HALF], ids=["empty", "half"])
async def test_a_cut_reply_is_asked_for_once_more_with_four_times_the_limit(cut: Reply) -> None:
    loop = evaluated([cut, text("Hello"), judgement(9)], limits=DEFAULT)
    events = await finish(loop)
    assert loop.state.text == "Hello"
    assert loop.state.stop_reason is StopReason.PASSED
    asked = requests(loop, Stage.DRAFT)
    assert [one.max_tokens for one in asked] == [16_384, 65_536]
    assert asked[0].messages == asked[1].messages
    assert sum(event.usage.calls for event in events if isinstance(event, CallEnded)) == 3


async def test_a_limit_that_the_user_set_stands() -> None:
    loop = evaluated([THOUGHT], limits=DEFAULT.model_copy(update={"max_tokens": 16_384}))
    await finish(loop)
    assert loop.state.message.endswith("Raise --max-tokens.")


async def test_a_limit_of_the_servers_is_not_run_into_twice() -> None:
    loop = evaluated([HALF.model_copy(update={"capped": True})], limits=DEFAULT)
    await finish(loop)
    assert "the longest that the server allows" in loop.state.message
    assert "another model" in loop.state.message


@pytest.mark.parametrize(
    "budget", [Budget(tokens=20_000), Budget(completion_tokens=9_000), Budget(calls=1)]
)
async def test_a_higher_limit_is_not_asked_for_where_the_budget_does_not_hold_it(
    budget: Budget,
) -> None:
    loop = evaluated([THOUGHT], limits=DEFAULT.model_copy(update={"budget": budget}))
    await finish(loop)
    assert loop.state.usage.calls == 1
    assert "--budget" in loop.state.message
    assert not loop.state.warnings


async def test_a_long_text_has_room_for_three_of_its_length() -> None:
    draft = "Hello, dear friend. " * 5_000
    loop = evaluated([judgement(9)], limits=DEFAULT, draft=draft)
    await finish(loop)
    assert requests(loop)[0].max_tokens >= 3 * len(draft) // 4


class Silent:
    """A model that takes the request and says nothing."""

    name = "silent"

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        await asyncio.Event().wait()
        yield Delta(text="never")


async def test_the_seconds_of_the_budget_end_the_wait_for_a_silent_server() -> None:
    limits = Limits(budget=Budget(seconds=0.2))
    loop = evaluated(Silent(), limits=limits)
    async with asyncio.timeout(10):
        await finish(loop)
    assert loop.state.stop_reason is StopReason.BUDGET
