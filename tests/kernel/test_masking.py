"""No secret of a notebook reaches a model, an ordinary cell reaches it unchanged, and replies come
back whole."""

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ipyrefine.core.ports import Delta, Message, Reply, Request
from ipyrefine.kernel.describe import describe
from ipyrefine.kernel.masking import Masked, count_secrets
from ipyrefine.kernel.redaction import redact
from ipyrefine.providers.scripted import ScriptedModel

HERE = Path(__file__).parent
SECRETS: list[tuple[str, str, str]] = [
    (place, one["text"].replace("~", ""), one["secret"].replace("~", ""))
    for place, held in tomllib.loads((HERE / "secrets.toml").read_text("utf-8")).items()
    for one in held
]
ORDINARY = (HERE / "ordinary_cells.txt").read_text("utf-8").rstrip("\n").split("\n# %%\n")


def request(text: str, **more: Any) -> Request:
    return Request(messages=(Message(role="user", content=text),), **more)


async def sent_and_received(
    text: str, reply: Any, chunk: int = 3, **more: Any
) -> tuple[str, Reply, str]:
    """Return what a model is sent of a text, its reply, and what was streamed of that."""
    inner = ScriptedModel([reply], chunk=chunk)
    parts = [part async for part in Masked(inner).stream(request(text, **more))]
    streamed = "".join(part.text for part in parts if isinstance(part, Delta))
    assert isinstance(parts[-1], Reply)
    return inner.requests[0].messages[0].content, parts[-1], streamed


def echo(asked: Request) -> str:
    return asked.messages[0].content


@pytest.mark.parametrize(("place", "text", "secret"), SECRETS)
async def test_a_secret_reaches_no_model(place: str, text: str, secret: str) -> None:
    assert secret in text
    if place == "cell":
        sent, reply, streamed = await sent_and_received(text, echo)
        assert reply.text == streamed == text
        assert "MASKED_SECRET_1" in sent
        assert count_secrets(text) > 0
    elif place == "variable":
        pandas = pytest.importorskip("pandas")
        sent = describe("x", eval(text, {"pd": pandas}), values=True)
    else:
        sent = redact(text)
    assert secret not in sent


@pytest.mark.parametrize("text", ORDINARY)
async def test_an_ordinary_cell_reaches_a_model_as_it_is(text: str) -> None:
    sent, _, _ = await sent_and_received(text, "")
    assert sent == text
    assert count_secrets(text) == 0


# A secret is looked for within 21,000 characters of the words that tell of one.
PROSE = "The author of the key to it designs a token, and passes on: see (auth) or risk-free.\n"
BEFORE = PROSE * 300


@pytest.mark.parametrize(("place", "text", "secret"), [one for one in SECRETS if one[0] == "cell"])
async def test_a_secret_in_a_long_text_reaches_no_model(place: str, text: str, secret: str) -> None:
    long = f"{BEFORE}\n{text}\n{PROSE * 20}"
    sent, reply, _ = await sent_and_received(long, echo, 5_000)
    assert secret not in sent
    assert reply.text == long
    assert sent.startswith(BEFORE)  # nothing else is hidden
    assert sent.endswith(PROSE * 20)


async def test_a_key_of_many_lines_is_masked_whole() -> None:
    lines = "MIIEowIBAAKCAQEAx7qZ\n" * 1_000
    key = f"-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----"
    sent, reply, _ = await sent_and_received(f'KEY = """{key}"""', echo, 5_000)
    assert (sent, "MIIE" in reply.text) == ('KEY = """MASKED_SECRET_1"""', True)


async def test_the_event_loop_gets_its_turn_before_each_message_is_masked() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    working = asyncio.ensure_future(others())
    messages = tuple(Message(role="user", content=f"{n}") for n in range(5))
    async for _ in Masked(ScriptedModel([""])).stream(Request(messages=messages)):
        pass
    working.cancel()
    assert turns >= len(messages)


async def test_a_secret_is_put_back_into_json_as_json() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7\n-----END PRIVATE KEY-----"

    def reply(asked: Request) -> str:
        return json.dumps({"text": asked.messages[0].content})

    _, answer, streamed = await sent_and_received(key, reply, json_schema={})
    assert json.loads(answer.text) == json.loads(streamed) == {"text": key}


async def test_a_secret_is_masked_wherever_a_later_request_holds_it() -> None:
    inner = ScriptedModel(["", ""])
    model = Masked(inner)
    for text in ('password = "corr-ect 7 horses"', "It printed: corr-ect 7 horses"):
        async for _ in model.stream(request(text)):
            pass
    assert [one.messages[0].content for one in inner.requests] == [
        'password = "MASKED_SECRET_1"',
        "It printed: MASKED_SECRET_1",
    ]


async def test_a_word_that_is_a_password_masks_no_other_word() -> None:
    text = 'password = "test"  # the test suite has its own'
    sent, reply, _ = await sent_and_received(text, echo)
    assert sent == 'password = "MASKED_SECRET_1"  # the test suite has its own'
    assert reply.text == text


async def test_a_text_that_holds_a_placeholder_keeps_it() -> None:
    text = 'password = "hunter2-and-3"  # MASKED_SECRET_1'
    sent, reply, _ = await sent_and_received(text, echo)
    assert sent == 'password = "MASKED_SECRET_2"  # MASKED_SECRET_1'
    assert reply.text == text
