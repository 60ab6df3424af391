"""Scenarios as plain JSON: played through the engine, with the outcome as plain JSON again.

Only this file knows the classes of the loop; the scenarios and their expected events do not.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from ipyrefine import errors
from ipyrefine.core.decisions import DECISION, Decision
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Decided, Event, TextDelta
from ipyrefine.core.model import Limits, Setup, Task, Usage
from ipyrefine.core.ports import Check, Reply, Request
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.core.table import Result
from ipyrefine.providers.scripted import Scripted, ScriptedModel

INPUTS = ("about", "task", "limits", "prompts", "checks", "draft", "replies", "judge", "rounds")
OUTPUTS = ("events", "requests")
FOLDER = Path(__file__).parent.parent / "golden"
SCENARIOS = sorted(FOLDER.glob("*.json"))
PROMPT_TOKENS = 100  # of each call, so that no wording of ours changes what is counted


class ScriptedCheck:
    """A check that gives scripted evidence, one after another."""

    def __init__(self, name: str, evidence: Iterable[dict[str, Any]]) -> None:
        self.name = name
        self._evidence = iter(evidence)

    async def __call__(self, text: str, task: Task) -> Result:
        evidence = next(self._evidence, None)
        assert evidence is not None, f"the check {self.name} is asked once more than scripted"
        return Result.model_validate({"name": self.name, **evidence})


class Script:
    """A scripted model made of JSON that counts the replies nobody asked for."""

    def __init__(self, replies: Sequence[Any], name: str = "scripted") -> None:
        self._left = list(replies)
        self.model = ScriptedModel(self._items(), name=name, chunk=1_000_000)

    @property
    def left(self) -> int:
        return len(self._left)

    @property
    def requests(self) -> list[Request]:
        return self.model.requests

    def _items(self) -> Iterator[Scripted]:
        while self._left:
            yield _scripted(self._left.pop(0))


class Outcome(NamedTuple):
    """What a scenario led to."""

    events: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    run: Run


def checks(scripts: Iterable[dict[str, Any]]) -> list[Check]:
    return [ScriptedCheck(script["name"], script["evidence"]) for script in scripts]


def decisions(items: dict[str, Any] | list[dict[str, Any]]) -> list[Decision]:
    """Return what is decided at one stop: a decision, or several."""
    each = items if isinstance(items, list) else [items]
    return [DECISION.validate_python(one) for one in each]


def build(scenario: dict[str, Any], writer: Any, judge: Any) -> Refinement:
    """The refinement of a scenario, with a clock that moves by a millisecond at each look."""
    ticks = count()
    prompts = Prompts.build(scenario["prompts"]) if "prompts" in scenario else None
    return Refinement(
        Setup(
            task=Task.model_validate(scenario["task"]),
            limits=Limits.model_validate(scenario.get("limits", {})),
            draft=scenario.get("draft"),
            prompts=prompts.own() if prompts else {},
        ),
        model=writer,
        judge=judge,
        checks=checks(scenario.get("checks", ())),
        clock=lambda: next(ticks) / 1000,
    )


async def play(scenario: dict[str, Any]) -> Outcome:
    """Run a scenario through all its rounds; a script of the wrong length is its own fault."""
    asked: list[Request] = []
    writer = Script(scenario["replies"])
    judge = Script(scenario["judge"], "judge") if "judge" in scenario else None
    for script in filter(None, (writer, judge)):
        _watch(script.model, asked)
    loop = build(scenario, writer.model, judge and judge.model)
    events: list[Event] = []
    for step in [[], *scenario.get("rounds", [])]:
        for decision in decisions(step):
            loop.decide(decision)
        await loop.run(lambda event, _: events.append(event))
        if isinstance(loop.error, errors.UsageError):
            raise loop.error
    left = writer.left + (judge.left if judge else 0)
    assert not left, f"{left} replies were not asked for"
    shown = [_event(e) for e in events if not isinstance(e, TextDelta)]
    return Outcome(shown, [_request(r) for r in asked], loop.state)


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def write(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with a line for each item of a list, so that a difference is one line."""
    parts = [f" {json.dumps(key)}: {_written(value)}" for key, value in content.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def _written(value: Any) -> str:
    if not (isinstance(value, list) and value):
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(f"  {json.dumps(v, ensure_ascii=False)}" for v in value) + "\n ]"


def _scripted(reply: Any) -> Scripted:
    if isinstance(reply, str):
        reply = {"text": reply}
    if "error" in reply:
        error: errors.ModelError = getattr(errors, reply["error"])(reply["message"])
        return error
    wrote = len(reply["text"]) + len(reply.get("thinking", ""))
    usage = Usage(calls=1, prompt_tokens=PROMPT_TOKENS, completion_tokens=wrote // 4)
    return Reply.model_validate({"usage": usage, **reply})


def _watch(model: ScriptedModel, asked: list[Request]) -> None:
    """Note a model's requests in one list with those of others, in the order of the calls."""
    stream = model.stream

    def watched(request: Request) -> Any:
        asked.append(request)
        return stream(request)

    model.stream = watched  # type: ignore[method-assign]


def _event(event: Event) -> dict[str, Any]:
    """An event without defaults, so that a new option changes no scenario, and without times."""
    content = {"type": event.type, **event.model_dump(mode="json", exclude_defaults=True)}
    if isinstance(event, Decided):
        content["decision"]["kind"] = event.decision.kind
    content.pop("at", None)
    content.get("usage", {}).pop("seconds", None)
    return content


def _request(request: Request) -> dict[str, Any]:
    warmth = {} if request.temperature is None else {"temperature": request.temperature}
    return {
        "purpose": request.purpose,
        **warmth,
        "seed": request.seed,
        "schema": request.json_schema is not None,
        "inputs": [
            re.sub(r"(?<=material-)[0-9a-f]+", "NONCE", text) for text in request.inputs if text
        ],
    }
