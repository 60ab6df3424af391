"""A process killed at any event of its run costs at most the reply that was on its way."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
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

KILLS = int(os.environ.get("IPYREFINE_KILLS", "6"))  # at random moments

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


class Killed:
    """Runs that are killed and resumed, and the one that is left alone; journals in a folder."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, asked: Any) -> None:
        self.process, self.folder, self.asked = process, folder, asked
        self.events = json.loads(process.stdout.readline())
        self.whole = self.run("whole")

    def run(self, name: str) -> Run:
        return Journal(self.folder / f"{name}.db").get().run

    def asked_again(self, number: int, when: str) -> int:
        """Kill a run, resume it, and return how many requests were made a second time."""
        name = f"{number}-{when}"
        self.process.stdin.write(f"{number} {when}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n", name
        assert same(self.run(name)) == same(self.whole), name
        return (self.asked[name] - self.asked["whole"]).total()


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    script = Path(__file__).parents[1] / "support" / "killed_runs.py"
    remembering = Remembering()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a kill takes no disk along
    with (
        tempfile.TemporaryDirectory(dir=memory) as folder,
        ScriptedServer(remembering) as server,
        subprocess.Popen(
            [sys.executable, "-W", "error", str(script), server.base_url, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"HOME": folder, "IPYREFINE_HOME": folder},
            text=True,
        ) as process,
    ):
        yield Killed(process, Path(folder), remembering.asked)
        process.stdin.close()


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


def test_killed_anywhere_a_run_ends_the_same_and_nothing_paid_for_is_asked_again(killed):
    assert len(killed.whole.iterations) == 3
    assert killed.whole.iterations[0].reading
    assert killed.whole.stop_reason == "passed"
    assert killed.asked["whole"].total() == len(REPLIES) == killed.whole.usage.calls
    every = [*moments(killed.events)]
    assert len(every) > 40
    for number, when in every:
        in_flight = when == "before" or killed.events[number - 1] == "text_delta"
        assert killed.asked_again(number, when) == in_flight, (number, when)


def test_killed_at_a_random_moment_nothing_shown_is_lost_and_at_most_one_reply_is_paid_twice(
    killed,
):
    dice = random.Random(8)
    for number in range(KILLS):
        # The reply on its way when the process died is the one that may be asked for again.
        assert killed.asked_again(number, f"{dice.uniform(0.0, 1.1):.4f}") <= 1, number
    assert len(list(killed.folder.glob("*.shown"))) > KILLS / 2
