"""Twelve servers by their shapes, as public documents and threads have them.

None of them was tried with the real thing: a loopback server replays ``server_shapes.toml``, one
shape after another, and for each server a whole run that meets its shapes in turn.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import READY, critique, finding
from openai_server import Answer, Behaviour, Body, Failure, ScriptedServer, items_of
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
FORMS = {"json_schema": "a JSON schema", "json_object": "JSON mode", "prompt": "the prompt alone"}
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


def shapes(kind: str) -> Iterator[tuple[str, Shape]]:
    for server in SERVERS.values():
        for name, shape in server.get(kind, {}).items():
            yield f"{server['name']}: {name}", shape


def replay(shape: Shape, words: str = WORDS, *, whole: bool = False) -> Behaviour:
    """What the server sends for a shape; ``whole`` for a stream as one JSON body."""
    if status := next(filter(str.isdigit, shape), ""):
        return Failure(int(status), shape[status].encode(), shape.get("headers", {}))
    if whole:  # it was asked for no stream
        usage = {"prompt_tokens": prompt_tokens(shape), "completion_tokens": 10}
        choice = {"index": 0, "message": {"content": words}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice], "usage": usage})
    else:
        body, half = shape.get("whole") or "".join(events(shape["stream"])), len(words) // 2
        for mark, part in (("<HEAD>", words[:half]), ("<TAIL>", words[half:])):
            body = body.replace(mark, json.dumps(part)[1:-1])
    kind = "application/json" if whole or "whole" in shape else "text/event-stream"
    return Answer(raw=body.encode(), content_type=kind)


def events(stream: str) -> Iterator[str]:
    """A stream as it is sent; a line that is JSON, or the end mark, is an event's data."""
    for line in (*stream.strip().splitlines(), "[DONE]"):
        if line.startswith("event:"):
            yield f"{line}\n"
        else:
            yield f"data: {line}\n\n" if line[0] in "{[" else f"{line}\n\n"


def prompt_tokens(shape: Shape) -> int | None:
    counted = re.search(r'"prompt_tokens":(\d+)', shape.get("stream") or shape["whole"])
    return int(counted[1]) if counted else None


def refused_by(body: Body, shape: Shape) -> bool:
    """Whether a request has what a server refuses."""
    name, takes = shape["refuses"], shape.get("takes")
    if name in ("strict", *FORMS):
        return level_of(body) in (name, "strict" * (name == "json_schema"))
    if name == "system":
        return any(message["role"] == name for message in body["messages"])
    value = body.get(name)
    return value is not None and (not isinstance(takes, int) or value > takes)


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
    """Return the notices and the reply; nothing else was asked or waited for before."""
    server.requests.clear()
    waits.clear()
    model = OpenAIModel("m", base_url=server.base_url, api_key="k", extra=extra, sleep=waits)
    items = await items_of(model, request)
    reply = items[-1]
    assert isinstance(reply, Reply)
    streamed = [item.text for item in items if isinstance(item, Delta) and item.kind == "text"]
    assert "".join(streamed).endswith(reply.text)
    return [item.text for item in items if isinstance(item, Notice)], reply


async def test_a_reply_is_read_in_a_server_s_own_shape(server, request_text, waits, subtests):
    for name, shape in shapes("reply"):
        with subtests.test(name):
            server.then(replay(shape))
            notices, reply = await ask(server, request_text, waits)
            assert (notices, waits, len(server.requests)) == ([], [], 1)
            assert reply.text == shape.get("text", WORDS)
            assert reply.finish == shape.get("finish", "stop")
            assert reply.thinking == shape.get("thinking", "")
            assert prompt_tokens(shape) in (None, reply.usage.prompt_tokens)
            assert reply.usage.cost == shape.get("cost")


async def test_a_field_that_a_server_refuses_costs_one_request_and_is_remembered(
    server, request_all, waits, subtests
):
    for name, shape in shapes("refused"):
        with subtests.test(name):
            refuses, takes, extra = shape["refuses"], shape.get("takes"), shape.get("extra", {})
            known = {"strict", "json_schema"} if refuses == "json_object" else ()
            servers.BY_SERVER[server.base_url, "m"] = Capabilities(refused=frozenset(known))
            server.default = lambda body, one=shape: replay(one) if refused_by(body, one) else "{}"
            (notice,), reply = await ask(server, request_all, waits, extra)
            before, after = server.bodies
            assert (reply.text, waits) == ("{}", [])
            assert refused_by(before, shape)
            if takes in FORMS:
                assert level_of(after) == takes
                assert f"Using {FORMS[takes]} instead" in notice
            elif isinstance(takes, int):
                assert after["max_tokens"] == takes
                assert f"{takes:,}" in notice
            elif takes:
                assert (after[takes], f"Using `{takes}` instead" in notice) == (16_384, True)
            elif refuses != "system":
                assert f"doesn't take `{refuses}`" in notice
            assert ("stream" in after) or ("stream_options" not in after)
            asked = "".join(message["content"] for message in after["messages"])
            assert asked.index("Be brief.") < asked.index("Say hello")
            again, _ = await ask(server, request_all, waits, extra)
            own = len(extra)  # the user's own fields are tried in every run
            assert (len(again), len(server.requests)) == (own, 1 + own)


async def test_a_failure_is_waited_for_or_ends_with_the_server_s_words(
    server, request_all, waits, subtests
):
    for name, shape in shapes("failure"):
        with subtests.test(name):
            server.queue.clear()
            if ends := shape.get("ends"):
                kind, _, words = ends.partition(": ")
                server.then(replay(shape), replay(shape))
                with pytest.raises(getattr(errors, kind)) as caught:
                    await ask(server, request_all, waits)
                assert words in str(caught.value)
                assert (len(server.requests), waits) == (1, [])
                continue
            server.then(replay(shape), "{}")
            (notice,), reply = await ask(server, request_all, waits)
            assert (reply.text, len(server.requests), len(waits)) == ("{}", 2, 1)
            least = shape.get("wait", 0)
            assert least <= waits[0] <= least + (1 if "wait" in shape else 60)
            assert "trying again in" in notice or "loading" in notice.lower()


class Held(Schema):
    """A schema that each text holds to, for which no sandbox is started."""

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=True)


@pytest.mark.parametrize("shapes", SERVERS.values(), ids=SERVERS)
async def test_a_whole_run_with_a_server_passes_at_the_first_try(server, waits, shapes):
    """It refuses its fields, streams and thinks its way, and is busy once; then it is known."""
    reply, busy = (next(iter(shapes[kind].values())) for kind in ("reply", "failure"))
    refused = [shape for shape in shapes.get("refused", {}).values() if shape.get("run")]
    script, limit = list(SCRIPT), [replay(busy)]

    def answer(body: Body) -> Behaviour:
        for shape in refused:
            if refused_by(body, shape):
                return replay(shape)
        if len(script) < len(SCRIPT) and limit:
            return limit.pop()
        return replay(reply, script.pop(0), whole=not body.get("stream"))

    server.default = answer

    async def refine() -> ipyrefine.Run:
        return await ipyrefine.refine(
            "Greet the world, as JSON.",
            model=OpenAIModel("m", base_url=server.base_url, sleep=waits),
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
    assert len(server.requests) == len(SCRIPT) + len(refused) + 1
    assert len(waits) == 1
    assert waits[0] >= busy.get("wait", 0)
    assert len(run.warnings) == len(refused) + 1
    assert run.usage.prompt_tokens == len(SCRIPT) * prompt_tokens(reply)
    server.requests.clear()
    script[:] = SCRIPT
    again = await refine()  # what it refuses is known
    assert (again.text, again.warnings) == (run.text, ())
    assert len(server.requests) == len(SCRIPT)
