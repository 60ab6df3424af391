"""A process killed at any event of its run costs at most the reply that was on its way."""

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import READY, critique, finding, text
from openai_server import Answer, Body, Failure, ScriptedServer

from ipyrefine.core.run import Run
from ipyrefine.journal.store import Journal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL and fork are POSIX's")

KILLS = int(os.environ.get("IPYREFINE_KILLS", "12"))  # at random moments

REPLIES = [
    text("Hello"), critique(finding("short", "Hello")),
    text("Hello there"), critique(finding("no name")),
    text("Hello there, friend"), READY,  # after the user's Continue
]  # fmt: skip


class Remembering:
    """Gives each request the reply that its like got in the first run, and counts them."""

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.asked: dict[str, Counter[str]] = {}

    def __call__(self, body: Body) -> Answer | Failure:
        request = re.sub(r"\b[0-9a-f]{8}\b", "NONCE", json.dumps(body["messages"]))
        model = body["model"]
        if model == "whole":
            self.replies[request] = REPLIES[len(self.replies)]
        if request not in self.replies:
            return Failure(400, {"error": {"message": f"never asked before: {request}"}})
        self.asked.setdefault(model, Counter())[request] += 1
        return Answer(self.replies[request])


@pytest.fixture
def remembering() -> Remembering:
    return Remembering()


@pytest.fixture
def folder(own_world: Path) -> Path:
    """Where the journals are: in memory, as a process that is killed takes no disk along."""
    return own_world


@pytest.fixture
def process(remembering: Remembering, folder: Path) -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).parents[1] / "support" / "killed_runs.py"
    with ScriptedServer(remembering) as server:
        child = subprocess.Popen(
            [sys.executable, "-W", "error", str(script), server.base_url, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with child:
            yield child
            child.stdin.close()


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(part) for key, part in value.items() if key != "seconds"}
    return [timeless(part) for part in value] if isinstance(value, list) else value


def same(run: Run) -> Any:
    """What two runs of the same replies share: all but the seconds and the model's name."""
    return timeless(json.loads(run.model_dump_json().replace(run.setup.model, "NAME")))


def moments(events: list[str]) -> Iterator[tuple[int, str]]:
    """After every event, before every reply is on disk, and while each reply arrives."""
    for number, kind in enumerate(events, start=1):
        if kind == "text_delta":
            if events[number - 2] != "text_delta":
                yield number, "after"
            continue
        yield number, "after"
        if kind == "call_ended":
            yield number, "before"


def test_killed_anywhere_a_run_ends_the_same_and_nothing_paid_for_is_asked_again(
    process: subprocess.Popen[str], remembering: Remembering, folder: Path
) -> None:
    assert process.stdin
    events = json.loads(process.stdout.readline())
    whole = Journal(folder / "whole.db").get().run
    assert len(whole.iterations) == 3
    assert whole.iterations[0].reading
    assert whole.stop_reason == "passed"
    assert remembering.asked["whole"].total() == len(REPLIES) == whole.usage.calls
    tried = 0
    for number, when in moments(events):
        process.stdin.write(f"{number} {when}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ok\n", (number, when)
        name = f"{number}-{when}"
        run = Journal(folder / f"{name}.db").get().run
        assert same(run) == same(whole), name
        in_flight = when == "before" or events[number - 1] == "text_delta"
        again = remembering.asked[name] - remembering.asked["whole"]
        assert again.total() == in_flight, (name, again)
        tried += 1
    assert tried > 40


def test_killed_at_a_random_moment_nothing_shown_is_lost_and_at_most_one_reply_is_paid_twice(
    process: subprocess.Popen[str], remembering: Remembering, folder: Path
) -> None:
    assert process.stdin
    json.loads(process.stdout.readline())
    whole = Journal(folder / "whole.db").get().run
    dice = random.Random(8)
    for number in range(KILLS):
        name = f"{number}-{dice.uniform(0.0, 1.1):.4f}"
        process.stdin.write(f"{name.replace('-', ' ')}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ok\n", name
        run = Journal(folder / f"{name}.db").get().run
        assert same(run) == same(whole), name
        # The reply on its way when the process died is the one that may be asked for again.
        assert (remembering.asked[name] - remembering.asked["whole"]).total() <= 1, name
    assert len(list(folder.glob("*.shown"))) > KILLS / 2
