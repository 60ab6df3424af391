"""The shipped test double."""

import pytest
from openai_server import items_of

from ipyrefine.core.model import Usage
from ipyrefine.core.ports import Delta, Message, Reply, Request
from ipyrefine.errors import ServerFailed, UsageError
from ipyrefine.providers.scripted import ScriptedModel

ASK = Request(messages=(Message(role="user", content="x" * 40),))


async def test_streams_a_text_in_chunks_and_then_the_whole_reply():
    model = ScriptedModel(["abcdefghij"], chunk=4)
    usage = Usage(calls=1, prompt_tokens=10, completion_tokens=2)
    assert await items_of(model, ASK) == [
        Delta(text="abcd"),
        Delta(text="efgh"),
        Delta(text="ij"),
        Reply(text="abcdefghij", usage=usage),
    ]
    assert model.name == "scripted"


async def test_a_whole_reply_is_played_as_given_thinking_first():
    reply = Reply(text="no", thinking="hm", finish="length", usage=Usage(calls=3))
    items = await items_of(ScriptedModel([reply]), ASK)
    assert items == [Delta(kind="thinking", text="hm"), Delta(text="no"), reply]


async def test_an_error_is_raised_and_the_next_call_goes_on():
    model = ScriptedModel([ServerFailed("It broke."), "fine"])
    with pytest.raises(ServerFailed, match="It broke"):
        await items_of(model, ASK)
    assert (await items_of(model, ASK))[-1].text == "fine"


async def test_it_keeps_every_request_and_names_how_many_replies_there_were():
    model = ScriptedModel(["one", "two"], name="play")
    other = ASK.model_copy(update={"seed": 3})
    await items_of(model, ASK)
    await items_of(model, other)
    assert model.requests == [ASK, other]
    with pytest.raises(UsageError, match="play has 2 replies"):
        await items_of(model, ASK)
