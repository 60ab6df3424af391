"""Seconds to PASS with what shortens a round switched on and off: a table, run by hand.

``python tests/bench/round.py [--reply SECONDS] [--check SECONDS] [--model NAME]``: by default a
scripted server whose every reply takes the stated seconds, to any number of requests at once; with
``--model``, that one, the embedded one's name included, which answers one request at a time. The
check holds a text to few words and takes its stated seconds. Ratios within one run, as seconds
vary with what else the machine does.

"Calls in a row" is how long the same calls take one after another, as the server timed them; what
a run spends in checks while no call is under way bounds what running them beside the judge could
save.
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from kit import opinion, text
from openai_server import Answer, Body, ScriptedServer
from tables import Table

import ipyrefine
from ipyrefine.core.events import Event, EvidenceReady, StageStarted
from ipyrefine.core.model import Evidence, Limits, Task
from ipyrefine.core.ports import Check
from ipyrefine.core.run import Run

TASK = "Answer this complaint in at most 30 friendly words: my parcel came late."
WORDS = 30
WEAK = {"criterion": "tone", "quote": "", "severity": "blocking"}
LIMITS = Limits(min_findings=1, seed=0)


class FewWords:
    """A check that takes its time; by itself it settles the verdict, or leaves it to the judge."""

    name = "few words"

    def __init__(self, seconds: float, *, settles: bool) -> None:
        self._seconds, self._settles = seconds, settles

    async def __call__(self, text: str, task: Task) -> Evidence:
        await asyncio.sleep(self._seconds)
        count = len(text.split())
        return Evidence(
            name=self.name,
            passed=count <= WORDS,
            score=min(1.0, WORDS / count),
            detail=f"{count} of at most {WORDS} words",
            seconds=self._seconds,
            decisive=self._settles,
        )


class Writer:
    """Says too much at first, until a critic names that, which its judge does not."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._count = seconds, itertools.count()

    def __call__(self, body: Body) -> Answer:
        time.sleep(self._seconds)
        said, number = json.dumps(body["messages"]), next(self._count)
        wanted = (body.get("response_format") or {}).get("json_schema", {}).get("name")
        if wanted == "critique":
            finding = {**WEAK, "problem": f"Weakness number {number:x}.", "fix": f"Mend {number}."}
            reply = json.dumps({"findings": [finding]})
        elif wanted:
            scores = json.loads(opinion(10 if "Better" in said else 4))
            reply = json.dumps({**scores, "findings": []})
        else:
            revising = "best so far" in said
            reply = text("Better, and short." if revising else f"Much {number} " + "too long " * 20)
        return Answer(reply, chunk=10_000)


class Took(NamedTuple):
    """What one run took."""

    run: Run
    seconds: float
    checking: float


async def timed(given: dict[str, Any], limits: Limits, checks: list[Check]) -> Took:
    """Run the task to its stop."""
    checking, since = 0.0, 0.0

    def hear(event: Event, run: Run) -> None:
        nonlocal checking, since
        if isinstance(event, StageStarted):
            since = time.perf_counter()
        elif isinstance(event, EvidenceReady):
            checking += time.perf_counter() - since

    began = time.perf_counter()
    run = await ipyrefine.refine(
        TASK, limits=limits, checks=checks, on_event=hear, journal=False, profile="prose",
        criteria=["tone"], **given,
    )  # fmt: skip
    return Took(run, time.perf_counter() - began, checking)


async def measured(given: dict[str, Any], check_s: float) -> None:
    """Print a row for each way, beside the row it is compared with."""
    table = Table(
        TASK, "what", "seconds", "x off", "calls", "calls in a row", "in checks", "stopped as"
    )
    open_, settling = (FewWords(check_s, settles=settles) for settles in (False, True))
    more: list[tuple[str, dict[str, int], list[Check]]] = [
        ("all off", {}, []),
        ("--candidates 3, all judged", {"candidates": 3}, []),
        ("--candidates 3, checked, then the best judged", {"candidates": 3}, [open_]),
        ("a check that leaves a pass to the judge", {}, [open_]),
        ("a check that settles it: no judge", {}, [settling]),
    ]
    await timed(given, LIMITS, [])  # connections, imports, and a model's own start
    off = 0.0
    for what, limits, checks in more:
        took = await timed(given, LIMITS.model_copy(update=limits), checks)
        off = off or took.seconds
        used = took.run.usage
        table.row(
            what, took.seconds, took.seconds / off, used.calls, used.seconds, took.checking,
            took.run.stop_reason or "",
        )  # fmt: skip


@contextmanager
def served(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The model to ask: the one that is named, or a scripted server's."""
    if chosen.model:
        yield {"model": chosen.model}
        return
    print(f"Scripted server, {chosen.reply:g} s a reply, {chosen.check:g} s a check")
    with ScriptedServer(Writer(chosen.reply)) as server:
        yield {"model": "scripted", "base_url": server.base_url, "api_key": "none"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reply", type=float, default=0.5, help="seconds of a scripted reply")
    parser.add_argument("--check", type=float, default=0.2, help="seconds of the check")
    parser.add_argument("--model", help="a real model instead of the scripted server")
    chosen = parser.parse_args()
    with served(chosen) as given:
        asyncio.run(measured(given, chosen.check))


if __name__ == "__main__":
    main()
