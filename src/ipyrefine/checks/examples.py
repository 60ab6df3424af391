"""The check ``examples``: what the task states as examples holds for the text."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from ipyrefine.checks import comparing
from ipyrefine.checks.sandbox import Ran, run_python
from ipyrefine.checks.stated import Example, extract
from ipyrefine.loop.records import Evidence, Task

__all__ = ["Example", "Examples", "extract"]

_PROGRAM = Path(__file__).with_name("examples_program.py")
_WIDTH = 200
_SHARE = 4  # one example may take this part of the whole time

Outcome = dict[str, Any]


class Examples:
    """The examples that the task states hold.

    Args:
        seconds: wall time for all examples together; one may take a quarter of it.
        files: put beside it; the user's variables (`ipyrefine.checks.variables.furnished`).
    """

    name = "examples"

    def __init__(self, *, seconds: float = 10.0, files: Mapping[str, bytes] | None = None) -> None:
        self._seconds, self._files = seconds, dict(files or {})
        self._reach = ""

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the text, and every example with it, in a process of its own."""
        examples = extract(task.text)
        if not examples:
            return Evidence(name=self.name, passed=None, detail="The task states no examples.")
        began = monotonic()
        fault, outcomes = await self._outcomes(text, examples)
        held = [comparing.meets(e, o) for e, o in zip(examples, outcomes, strict=True)]
        told = [_told(e, o) for e, o in zip(examples, outcomes, strict=True)]
        failing = [line for line, good in zip(told, held, strict=True) if not good]
        passing = [line for line, good in zip(told, held, strict=True) if good]
        summary = f"{len(passing)} of {len(examples)} stated examples hold."
        lines = [fault] if fault else [*failing, *passing]
        return Evidence(
            name=self.name,
            passed=not failing,
            score=len(passing) / len(examples),
            detail="\n".join([*lines, summary, self._reach]).rstrip(),
            seconds=monotonic() - began,
        )

    async def _outcomes(
        self, text: str, examples: tuple[Example, ...]
    ) -> tuple[str, list[Outcome]]:
        """Run all examples in one process, and after one that ends it, the rest in another."""
        outcomes: list[Outcome] = [{"error": "was not run: no time was left"} for _ in examples]
        deadline = monotonic() + self._seconds
        at = 0
        while at < len(examples) and (left := deadline - monotonic()) > 0:
            ran, events = await self._run(text, examples, at, left)
            loaded = next((e for e in events if e["event"] == "loaded"), None)
            if loaded is None or "error" in loaded:
                why = _failed(loaded) if loaded else _ended(ran, self._seconds)
                return f"The code does not load: {_short(why)}", [{"error": why}] * len(examples)
            for event in events:
                if event["event"] == "done":
                    outcomes[event["index"]] = event
                    at = event["index"] + 1
            if at < len(examples):
                outcomes[at] = {"error": _ended(ran, self._seconds / _SHARE)}
                at += 1
        return "", outcomes

    async def _run(
        self, text: str, examples: tuple[Example, ...], start: int, seconds: float
    ) -> tuple[Ran, list[Outcome]]:
        token, report = secrets.token_hex(16), secrets.token_hex(16)
        request = {
            "token": token,
            "report": report,
            "seconds": self._seconds / _SHARE,
            "examples": [_asked(i, e) for i, e in enumerate(examples) if i >= start],
        }
        files: dict[str, str | bytes] = {
            **self._files,
            "candidate.py": text,
            "request.json": json.dumps(request),
        }
        source = _PROGRAM.read_text("utf-8")
        ran = await run_python(source, seconds=seconds, files=files, collect=report)
        self._reach = ran.reach
        return ran, _events(ran.collected, token, range(start, len(examples)))


def _asked(index: int, example: Example) -> dict[str, Any]:
    # What the process is not told it cannot pretend.
    told = example.kind == "doctest" or comparing.is_literal(example.expected)
    return {
        "index": index,
        "kind": example.kind,
        "setup": example.setup,
        "source": example.source,
        "expected": None if told else example.expected,
    }


def _events(report: str, token: str, expected: range) -> list[Outcome]:
    """Read the program's own lines, in order; any that the text may have written do not count."""
    events: list[Outcome] = []
    following = iter(expected)
    for line in report.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(event, dict) or event.get("token") != token:
            continue
        kind = event.get("event")
        if kind == "loaded" or (kind == "done" and event.get("index") == next(following, None)):
            events.append(event)
    return events


def _ended(ran: Ran, seconds: float) -> str:
    if ran.timed_out or "Timeout (" in ran.stderr:
        return f"gave no answer within {seconds:.3g} s"
    if ran.stopped == "output":
        return "was stopped: it printed without end"
    if ran.stopped == "processes":
        return "was stopped: it started too many processes"
    if ran.exit_code is not None and ran.exit_code < 0:
        return f"was killed by signal {-ran.exit_code}"
    return f"ended the process with status {ran.exit_code}"


def _failed(outcome: Outcome) -> str:
    line = outcome.get("line")
    return str(outcome["error"]) + (f" (line {line})" if line else "")


def _told(example: Example, outcome: Outcome) -> str:
    asked = f"{_short(example.source)}: expected {_short(example.expected)}"
    if "error" in outcome:
        # An outcome of the program is an exception; the others already are a sentence's end.
        raised = "raised " if "event" in outcome else ""
        return f"{asked}, {raised}{_short(_failed(outcome))}"
    got = comparing.shown(outcome) if example.kind == "doctest" else outcome.get("shown", "")
    text = _short(str(got).strip()) or "nothing"
    if text == _short(example.expected) and not comparing.meets(example, outcome):
        # Its repr claims to be what it is not.
        text += f" as the repr of another value, of type {_short(str(outcome.get('type')))}"
    return f"{asked}, got {text}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
