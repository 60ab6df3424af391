"""What the calls of a task's examples come to for a text, each in a process that cannot lie."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from ipyrefine.checks import comparing
from ipyrefine.checks.sandbox import Ran, run_python
from ipyrefine.checks.stated import Example

_PROGRAM = Path(__file__).parent / "programs" / "examples.py"
_SHARE = 4  # one example may take this part of the whole time
_WIDTH = 200

Outcome = dict[str, Any]


class Evaluation:
    """Evaluates examples with a text.

    Args:
        text: the code.
        seconds: wall time for all examples together; one may take a quarter of it.
        files: put beside it; the user's variables (`ipyrefine.checks.variables.furnished`).

    Attributes:
        fault: why the text does not load, or empty.
        reach: what a person should know of what the code could reach.
    """

    def __init__(self, text: str, *, seconds: float, files: Mapping[str, bytes]) -> None:
        self._text, self._seconds, self._files = text, seconds, dict(files)
        self.fault = self.reach = ""

    async def outcomes(self, examples: tuple[Example, ...]) -> list[Outcome]:
        """Run all examples in one process, and after one that ends it, the rest in another."""
        outcomes: list[Outcome] = [{"error": "was not run: no time was left"} for _ in examples]
        deadline = monotonic() + self._seconds
        at = 0
        while at < len(examples) and (left := deadline - monotonic()) > 0:
            ran, events = await self._run(examples, at, left)
            loaded = next((e for e in events if e["event"] == "loaded"), None)
            if loaded is None or "error" in loaded:
                why = failed(loaded) if loaded else _ended(ran, self._seconds)
                self.fault = f"The code does not load: {short(why)}"
                return [{"error": why}] * len(examples)
            for event in events:
                if event["event"] == "done":
                    outcomes[event["index"]] = event
                    at = event["index"] + 1
            if at < len(examples):
                outcomes[at] = {"error": _ended(ran, self._seconds / _SHARE)}
                at += 1
        return outcomes

    async def _run(
        self, examples: tuple[Example, ...], start: int, seconds: float
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
            "candidate.py": self._text,
            "request.json": json.dumps(request),
        }
        source = _PROGRAM.read_text("utf-8")
        ran = await run_python(source, seconds=seconds, files=files, collect=report)
        self.reach = ran.reach
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


def failed(outcome: Outcome) -> str:
    """What an outcome raised, with the line of the text."""
    line = outcome.get("line")
    return str(outcome["error"]) + (f" (line {line})" if line else "")


def short(text: str) -> str:
    """A text in one line of at most 200 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
