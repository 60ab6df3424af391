"""Runs that are killed with SIGKILL at a given moment, and then resumed: each in its own process.

``python killed_runs.py BASE_URL FOLDER``; prints the events of a run that is left alone as a JSON
list, then reads lines ``NUMBER WHEN`` (``before`` or ``after`` that event is on disk) and answers
each with ``ok`` once the killed run has been resumed to its end. The journal of a run is
``NUMBER-WHEN.db``, its model has the same name.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import ipyrefine.providers.openai  # noqa: F401 - imported before the forks, once for all
from ipyrefine.compose import compose
from ipyrefine.core import pieces
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event
from ipyrefine.core.records import Evidence, Task
from ipyrefine.core.runs import Decision, Limits, Run
from ipyrefine.journal.recorder import Recorder
from ipyrefine.journal.store import Journal
from ipyrefine.resuming import go_on
from ipyrefine.session.session import Session

# Every piece is an event: how many there are, and so each one's number, is then no matter of time.
pieces.FRAME = 0.0


class Looks:
    """A check that leaves the verdict to the judge."""

    name = "looks"

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=None, detail=f"{len(text)} characters")


class Killing(Recorder):
    """A recorder whose process dies at one event."""

    def __init__(self, path: Path, number: int, when: str) -> None:
        super().__init__(path)
        self._left, self._when = number, when

    async def __call__(self, event: Event, run: Run) -> None:
        self._left -= 1
        if self._left == 0 and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await super().__call__(event, run)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def begun(base_url: str, model: str) -> Refinement:
    limits = Limits(max_iterations=1, min_findings=1)
    return compose(
        "Write a greeting.", model=model, base_url=base_url, checks=[Looks()], limits=limits,
        profile="prose", criteria=["tone"],
    )  # fmt: skip


async def to_the_end(loop: Refinement, journal: Recorder) -> None:
    """Run to the loop's stop, and on once more as a user's decision allows."""
    session = Session(loop, [], journal)
    await session.go()
    if not session.run.decisions:
        session.decide(Decision(kind="continue", rounds=1, text="Warmer."))
        await session.go()


def forked(work: Callable[[], None]) -> int:
    """Do something in a process of its own; how that ended."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(base_url: str, folder: Path) -> None:
    whole = folder / "whole.db"
    seen: list[str] = []

    class Listing(Recorder):
        async def __call__(self, event: Event, run: Run) -> None:
            seen.append(event.type)
            await super().__call__(event, run)

    asyncio.run(to_the_end(begun(base_url, "whole"), Listing(whole)))
    print(json.dumps(seen), flush=True)
    for line in sys.stdin:
        number, when = line.split()
        name = f"{number}-{when}"
        path = folder / f"{name}.db"

        def begin(
            path: Path = path, name: str = name, at: int = int(number), when: str = when
        ) -> None:
            asyncio.run(to_the_end(begun(base_url, name), Killing(path, at, when)))

        def resume(path: Path = path, name: str = name) -> None:
            if not path.exists() or not Journal(path).runs():
                loop, journal = begun(base_url, name), Recorder(path)
            else:
                stored = Journal(path).get()
                loop = go_on(stored.run, base_url=base_url, checks=[Looks()])
                journal = Journal(path).recorder(stored)
            asyncio.run(to_the_end(loop, journal))

        died, ended = forked(begin), forked(resume)
        print("ok" if (died, ended) == (-signal.SIGKILL, 0) else f"{died} {ended}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
