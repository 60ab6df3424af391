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
SECRETS = tomllib.loads((HERE / "secrets.toml").read_text("utf-8").replace("~", ""))
# A line each, and then those of several lines.
SHORT, *LONG = (HERE / "ordinary_cells.txt").read_text("utf-8").rstrip("\n").split("\n# %%\n")
# A secret is looked for within 21,000 characters of the words that tell of one.
PROSE = "The author of the key to it designs a token, and passes on: see (auth) or risk-free.\n"
BEFORE, AFTER = PROSE * 300, PROSE * 20
KEY = "-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----"


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


@pytest.mark.parametrize("place", SECRETS)
async def test_a_secret_reaches_no_model(place: str, subtests: pytest.Subtests) -> None:
    for marked in SECRETS[place]:
        text, secret = marked.replace("«", "").replace("»", ""), marked.split("«")[1].split("»")[0]
        with subtests.test(text):
            if place == "cell":
                sent, reply, streamed = await sent_and_received(text, echo)
                assert reply.text == streamed == text
                assert "MASKED_SECRET_1" in sent
                assert count_secrets(text) > 0
                in_long = await sent_and_received(f"{BEFORE}\n{text}\n{AFTER}", echo, 5_000)
                assert in_long[0].startswith(BEFORE), "nothing else is hidden"
                assert in_long[0].endswith(AFTER)
                assert in_long[1].text == f"{BEFORE}\n{text}\n{AFTER}"
                sent += in_long[0]
            elif place == "variable":
                pandas = pytest.importorskip("pandas")
                sent = describe("x", eval(text, {"pd": pandas}), values=True)
            else:
                sent = redact(text)
            assert secret not in sent


async def test_an_ordinary_cell_reaches_a_model_as_it_is(subtests: pytest.Subtests) -> None:
    for text in (*SHORT.splitlines(), *LONG):
        with subtests.test(text):
            sent, _, _ = await sent_and_received(text, "")
            assert (sent, count_secrets(text)) == (text, 0)


async def test_a_key_of_many_lines_is_masked_whole() -> None:
    key = KEY.format("MIIEowIBAAKCAQEAx7qZ\n" * 1_000)
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
    key = KEY.format("MIIEowIBAAKCAQEAx7\n")

    def reply(asked: Request) -> str:
        return json.dumps({"text": echo(asked)})

    _, answer, streamed = await sent_and_received(key, reply, json_schema={})
    assert json.loads(answer.text) == json.loads(streamed) == {"text": key}


async def test_a_secret_is_masked_wherever_a_later_request_holds_it() -> None:
    inner = ScriptedModel(["", ""])
    model = Masked(inner)
    for text in ('password = "corr-ect 7 horses"', "It printed: corr-ect 7 horses"):
        async for _ in model.stream(request(text)):
            pass
    sent = [echo(one) for one in inner.requests]
    assert sent == ['password = "MASKED_SECRET_1"', "It printed: MASKED_SECRET_1"]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            'password = "test"  # the test suite has its own',
            'password = "MASKED_SECRET_1"  # the test suite has its own',
        ),
        (
            'password = "hunter2-and-3"  # MASKED_SECRET_1',
            'password = "MASKED_SECRET_2"  # MASKED_SECRET_1',
        ),
    ],
    ids=["a word that is a password", "a placeholder"],
)
async def test_what_is_like_a_secret_but_none_stays(text: str, masked: str) -> None:
    sent, reply, _ = await sent_and_received(text, echo)
    assert (sent, reply.text) == (masked, text)
