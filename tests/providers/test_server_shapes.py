"""Twelve servers by their shapes, as public documents and threads have them.

None of them was tried with the real thing: a loopback server replays ``server_shapes.toml``, and
for each server a whole run that meets its shapes in turn.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import READY, critique, finding
from openai_server import Answer, Behaviour, Body, Failure

import ipyrefine
from ipyrefine.checks.schema import Schema
from ipyrefine.core.model import Limits, Outcome, StopReason, Task
from ipyrefine.core.table import Result
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.servers import LIMITS

SERVERS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("server_shapes.toml").read_text("utf-8")
)
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


def shapes(server: str, kind: str) -> list[Shape]:
    return [*SERVERS[server].get(kind, {}).values()]


def replay(shape: Shape, words: str = WORDS, *, whole: bool = False) -> Behaviour:
    """What the server sends for a shape; ``whole`` for a stream as one JSON body."""
    if status := next(filter(str.isdigit, shape), ""):
        return Failure(int(status), shape[status].encode(), shape.get("headers", {}))
    if whole:  # it was asked for no stream
        usage = {"prompt_tokens": 19, "completion_tokens": 10}
        choice = {"index": 0, "message": {"content": words}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice], "usage": usage})
        return Answer(raw=body.encode(), content_type="application/json")
    body, half = "".join(events(shape["stream"])), len(words) // 2
    for mark, part in (("<HEAD>", words[:half]), ("<TAIL>", words[half:])):
        body = body.replace(mark, json.dumps(part)[1:-1])
    return Answer(raw=body.encode())


def events(stream: str) -> Iterator[str]:
    """A stream as it is sent; a line that is JSON, or the end mark, is an event's data."""
    for line in (*stream.strip().splitlines(), "[DONE]"):
        yield f"data: {line}\n\n" if line[0] in "{[" else f"{line}\n\n"


def refused_by(body: Body, shape: Shape) -> bool:
    """Whether a request has what a server refuses."""
    name, takes = shape["refuses"], shape.get("takes")
    if name == "system":
        return any(message["role"] == name for message in body["messages"])
    if takes:
        return any(body.get(limit, 0) > takes for limit in LIMITS)
    return name in body


class Held(Schema):
    """A schema that each text holds to, for which no sandbox is started."""

    async def __call__(self, text: str, task: Task) -> Result:
        return Result(name=self.name, passed=True)


@pytest.mark.parametrize("name", SERVERS)
async def test_a_whole_run_with_a_server_passes_at_the_first_try(server, name):
    """It refuses its fields, streams and thinks its way, and may be busy once; then it is known."""
    (reply,), refused = shapes(name, "reply"), shapes(name, "refused")
    script, busy, waits = list(SCRIPT), shapes(name, "failure"), list[float]()

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    def answer(body: Body) -> Behaviour:
        for shape in refused:
            if refused_by(body, shape):
                return replay(shape)
        if len(script) < len(SCRIPT) and busy:
            return replay(busy.pop())
        return replay(reply, script.pop(0), whole=not body.get("stream"))

    server.default = answer

    async def refine() -> ipyrefine.Run:
        return await ipyrefine.refine(
            "Greet the world, as JSON.",
            model=OpenAIModel("m", base_url=server.base_url, sleep=wait),
            checks=[Held(GREETING, decisive=False)],
            limits=Limits(temperature=0.2, seed=7, max_tokens=16_384),
            profile="prose",
            journal=False,
        )

    run = await refine()
    assert run.usage.prompt_tokens == len(SCRIPT) * 19, "as it counts them"
    assert (run.stop_reason, run.text) == (StopReason.PASSED, '{"greeting": "Hello, dear world!"}')
    verdict = run.iterations[-1].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis) == (Outcome.PASS, "critique")
    failures = shapes(name, "failure")
    assert len(waits) == len(failures)
    assert all(1 <= body.get(one, 1) <= 16_384 for body in server.bodies for one in LIMITS)
    assert all(any(one in body for one in LIMITS) for body in server.bodies), (
        "a limit is never dropped"
    )
    assert "Greet the world" in str(server.bodies[-1]["messages"])
    assert all(seconds >= one.get("wait", 0) for seconds, one in zip(waits, failures, strict=True))
    server.requests.clear()
    script[:] = SCRIPT
    again = await refine()  # what it refuses is known
    assert (again.text, len(server.requests)) == (run.text, len(SCRIPT))
    asked = ("`temperature`", "`seed`")
    assert all(any(name in warning for name in asked) for warning in again.warnings)
