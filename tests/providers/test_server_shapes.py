"""Twelve servers by their shapes, as public documents and threads have them.

None of them was tried with the real thing: a loopback server replays ``server_shapes.toml``, one
shape after another, and for each server a whole run that meets its shapes in turn.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import READY, critique, finding
from openai_server import Answer, Behaviour, Body, Failure, ScriptedServer
from test_servers import level_of

import ipyrefine
from ipyrefine import errors
from ipyrefine.checks.schema import Schema
from ipyrefine.core.model import Limits, Outcome, StopReason, Task
from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.core.table import Evidence
from ipyrefine.providers import servers
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.servers import Capabilities

SERVERS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("server_shapes.toml").read_text("utf-8")
)
NAMES = """OpenAI, chat models · OpenAI, reasoning models · Azure OpenAI ·
Anthropic's compatible endpoint · Gemini's compatible endpoint · OpenRouter · Groq · Mistral ·
DeepSeek · vLLM · llama.cpp server · Ollama · LM Studio"""
KEY = "sk-of-the-test"
WORDS = 'Say "hi"\nto <world>, twice.'
GREETING = {
    "type": "object",
    "properties": {"greeting": {"type": "string"}},
    "required": ["greeting"],
    "additionalProperties": False,
}
SCRIPT = (
    '{"greeting": "Hello"}',
    critique(finding("Too curt.", quote="Hello")),
    '{"greeting": "Hello, dear world!"}',
    READY,
)

Shape = dict[str, Any]


def shapes(kind: str) -> list[Any]:
    """The shapes of a kind, each with its server's and its own name."""
    return [
        pytest.param(shape, id=f"{server['name']}: {shape['name']}")
        for server in SERVERS.values()
        for shape in server.get(kind, ())
    ]


def said(template: str, words: str) -> str:
    """A template with the halves of a text in it, as they stand in JSON."""
    half = len(words) // 2
    for mark, part in (("<HEAD>", words[:half]), ("<TAIL>", words[half:])):
        template = template.replace(mark, json.dumps(part)[1:-1])
    return template


def events(stream: str) -> Iterator[str]:
    """A stream as it is sent; a line that is JSON, or the end mark, is an event's data."""
    for line in stream.strip().splitlines():
        if line.startswith("event:"):
            yield f"{line}\n"
        else:
            yield f"data: {line}\n\n" if line[0] in "{[" else f"{line}\n\n"


def replay(shape: Shape, words: str = WORDS, *, whole: bool = False) -> Behaviour:
    """What the server sends for a shape; ``whole`` for a stream as one JSON body."""
    if "status" in shape:
        return Failure(shape["status"], shape["body"].encode(), shape.get("headers", {}))
    if "whole" in shape or whole:
        body = said(shape["whole"], words) if "whole" in shape else completion(shape, words)
        return Answer(raw=body.encode(), content_type="application/json")
    return Answer(raw="".join(events(said(shape["stream"], words))).encode())


def completion(shape: Shape, words: str) -> str:
    """A stream's text and end as one JSON body, for a client that asked for no stream."""
    message = {"role": "assistant", "content": words, "refusal": None}
    usage = {"prompt_tokens": shape["prompt_tokens"], "completion_tokens": 10}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage})


def holds(body: Body, when: Shape) -> bool:
    """Whether a request has what a server refuses."""
    if "format" in when:
        return level_of(body) in (when["format"], "strict" * (when["format"] == "json_schema"))
    if "role" in when:
        return any(message["role"] == when["role"] for message in body["messages"])
    value = body.get(when["field"])
    return value is not None and ("above" not in when or value > when["above"])


class Waits(list[float]):
    """The seconds that were waited, without waiting."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def request_all(request_json: Request) -> Request:
    """A request with every field that servers refuse."""
    system = request_json.messages[0].replace(role="system", content="Be brief.")
    messages = (system, *request_json.messages)
    return request_json.replace(messages=messages, temperature=0.2, max_tokens=16_384)


async def ask(
    server: ScriptedServer, request: Request, waits: Waits, extra: Shape | None = None
) -> tuple[list[str], Reply]:
    """Return the notices and the reply."""
    model = OpenAIModel("m", base_url=server.base_url, api_key=KEY, extra=extra, sleep=waits)
    items = [item async for item in model.stream(request)]
    reply = items[-1]
    assert isinstance(reply, Reply)
    streamed = [item.text for item in items if isinstance(item, Delta) and item.kind == "text"]
    assert "".join(streamed).endswith(reply.text)
    return [item.text for item in items if isinstance(item, Notice)], reply


def test_the_table_has_twelve_servers_and_a_source_for_each_shape():
    assert [server["name"] for server in SERVERS.values()] == " ".join(NAMES.split()).split(" · ")
    for server in SERVERS.values():
        kinds = ("reply", "refused", "failure")
        assert any(shape.get("run") for shape in server["reply"])
        assert any(shape.get("run") for shape in server["failure"])
        assert all(shape["source"] for kind in kinds for shape in server.get(kind, ()))


@pytest.mark.parametrize("shape", shapes("reply"))
async def test_a_reply_is_read_in_a_server_s_own_shape(server, request_text, waits, shape):
    server.then(replay(shape))
    notices, reply = await ask(server, request_text, waits)
    assert (notices, waits, len(server.requests)) == ([], [], 1)
    assert reply.text == shape.get("text", WORDS)
    assert reply.finish == shape.get("finish", "stop")
    assert reply.thinking == shape.get("thinking", "")
    if "prompt_tokens" in shape:
        assert reply.usage.prompt_tokens == shape["prompt_tokens"]
    assert reply.usage.cost == shape.get("cost")


@pytest.mark.parametrize("shape", shapes("refused"))
async def test_a_field_that_a_server_refuses_costs_one_request_and_is_remembered(
    server, request_all, waits, shape
):
    refuse, known = replay(shape), frozenset(shape.get("known", ()))
    servers.BY_SERVER[server.base_url, "m"] = Capabilities(refused=known)
    server.default = lambda body: refuse if holds(body, shape["when"]) else "{}"
    notices, reply = await ask(server, request_all, waits, shape.get("extra"))
    before, after = server.bodies
    assert (reply.text, waits) == ("{}", [])
    assert holds(before, shape["when"])
    named = {"format": level_of(after), **after}
    assert {name: named[name] for name in shape.get("then", {})} == shape.get("then", {})
    assert not after.keys() & set(shape.get("gone", ()))
    asked = "".join(message["content"] for message in after["messages"])
    assert asked.index("Be brief.") < asked.index("Say hello")
    (notice,) = notices
    assert shape.get("notice", "") in notice
    server.requests.clear()
    again, _ = await ask(server, request_all, waits, shape.get("extra"))
    extra = len(shape.get("extra", ()))  # the user's own, tried in every run
    assert (len(again), len(server.requests)) == (extra, 1 + extra)


@pytest.mark.parametrize("shape", shapes("failure"))
async def test_a_failure_is_waited_for_or_ends_with_the_server_s_words(
    server, request_all, waits, shape
):
    again = "wait" in shape or "again" in shape
    server.then(replay(shape), "{}" if again else replay(shape))
    if not again:
        with pytest.raises(getattr(errors, shape["error"])) as caught:
            await ask(server, request_all, waits)
        assert shape["says"] in str(caught.value)
        assert (len(server.requests), waits) == (1, [])
        return
    notices, reply = await ask(server, request_all, waits)
    assert reply.text == "{}"
    assert (len(server.requests), len(notices), len(waits)) == (2, 1, 1)
    least = shape.get("wait", 0)
    assert least <= waits[0] <= least + (1 if "wait" in shape else 60)
    assert "trying again in" in notices[0] or "loading" in notices[0].lower()


class Held(Schema):
    """A schema that each text holds to, for which no sandbox is started."""

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=True)


@pytest.mark.parametrize("server_shapes", SERVERS.values(), ids=lambda one: one["name"])
async def test_a_whole_run_with_a_server_passes_at_the_first_try(server, waits, server_shapes):
    """It refuses its fields, streams and thinks its way, and is busy once; then it is known."""
    kinds = {
        kind: [shape for shape in server_shapes.get(kind, ()) if shape.get("run")]
        for kind in ("reply", "refused", "failure")
    }
    (reply,), (busy,) = kinds["reply"], kinds["failure"]
    script, limit = list(SCRIPT), [replay(busy)]

    def answer(body: Body) -> Behaviour:
        for shape in kinds["refused"]:
            if holds(body, shape["when"]):
                return replay(shape)
        if len(script) < len(SCRIPT) and limit:
            return limit.pop()
        return replay(reply, script.pop(0), whole=not body.get("stream"))

    server.default = answer

    async def refine() -> ipyrefine.Run:
        model = OpenAIModel("m", base_url=server.base_url, api_key=KEY, sleep=waits)
        return await ipyrefine.refine(
            "Greet the world, as JSON.",
            model=model,
            checks=[Held(GREETING, decisive=False)],
            limits=Limits(temperature=0.2, seed=7),
            profile="prose",
            journal=False,
        )

    run = await refine()
    assert (run.stop_reason, run.text) == (StopReason.PASSED, '{"greeting": "Hello, dear world!"}')
    verdict = run.iterations[-1].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis) == (Outcome.PASS, "critique")
    assert len(server.requests) == len(SCRIPT) + len(kinds["refused"]) + 1
    assert len(waits) == 1
    assert waits[0] >= busy.get("wait", 0)
    notices = sorted(shape["notice"] for shape in kinds["refused"])
    said_of_fields = [text for text in run.warnings if "trying again in" not in text]
    assert len(run.warnings) == len(notices) + 1
    assert all(any(notice in text for text in said_of_fields) for notice in notices)
    assert run.usage.prompt_tokens == len(SCRIPT) * reply["prompt_tokens"]
    server.requests.clear()
    script[:] = SCRIPT
    again = await refine()  # what it refuses is known
    assert (again.text, again.warnings) == (run.text, ())
    assert len(server.requests) == len(SCRIPT)
