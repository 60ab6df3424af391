"""Runs that are killed with SIGKILL at a given moment, and then resumed: each in its own process.

``python killed_runs.py BASE_URL FOLDER``; prints the events of a run that is left alone as a JSON
list, then reads lines ``NUMBER WHEN`` (``before`` or ``after`` that event is on disk, or as a share
of the time that a whole run takes) and answers each with ``ok`` once the killed run has been
resumed to its end, or ``lost`` where something was shown that its journal does not hold. The
journal of a run is ``NUMBER-WHEN.db``, its model has the same name.
"""

import asyncio
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

import ipyrefine.providers.openai  # noqa: F401 - imported before the forks, once for all
from ipyrefine import api
from ipyrefine.core.decisions import Continue
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, TextDelta
from ipyrefine.core.model import Limits, Task
from ipyrefine.core.run import Run
from ipyrefine.core.table import Result
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import Recorder
from ipyrefine.session.session import Session


class Looks:
    """A check that leaves the verdict to the judge."""

    name = "looks"

    async def __call__(self, text: str, task: Task) -> Result:
        return Result(name=self.name, passed=None, shows=f"{len(text)} characters")


class Listing(Recorder):
    """A recorder that lists all events; it hears of pieces of a reply as a display."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path, self.kinds = path, list[str]()

    async def __call__(self, event: Event, run: Run) -> None:
        self.kinds.append(event.type)
        await super().__call__(event, run)

    def display(self, event: Event, run: Run) -> None:
        if isinstance(event, TextDelta):
            self.kinds.append(event.type)


class Killing(Listing):
    """A recorder whose process dies at one event."""

    def __init__(self, path: Path, number: int, when: str) -> None:
        super().__init__(path)
        self._number, self._when = number, when

    async def __call__(self, event: Event, run: Run) -> None:
        if len(self.kinds) + 1 == self._number and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await super().__call__(event, run)
        self._die_at_its_event()

    def display(self, event: Event, run: Run) -> None:
        super().display(event, run)
        self._die_at_its_event()

    def _die_at_its_event(self) -> None:
        if len(self.kinds) == self._number:
            os.kill(os.getpid(), signal.SIGKILL)


def begin(base_url: str, model: str) -> Refinement:
    limits = Limits(max_revisions=1, min_findings=1)
    return api.build(
        "Write a greeting.", model=model, base_url=base_url, checks=[Looks()], limits=limits,
        profile="prose", criteria=["tone"],
    )  # fmt: skip


async def run_to_end(loop: Refinement, journal: Recorder) -> None:
    """Run to the loop's stop, and on once more as a user's decision allows."""
    session = Session(loop, [journal.display] if isinstance(journal, Listing) else [], journal)
    await session.go()
    if not session.run.decisions:
        session.decide(Continue(guidance="Warmer."))
        await session.go()


class Showing(Listing):
    """A recorder that writes down when the latest event was that a display was shown."""

    def display(self, event: Event, run: Run) -> None:
        if not isinstance(event, TextDelta):
            self.path.with_suffix(".shown").write_text(str(event.at))


def loses(path: Path) -> bool:
    """Return whether an event was shown that the journal does not hold."""
    shown = path.with_suffix(".shown")
    if not shown.exists() or not (text := shown.read_text()):
        return False
    return not path.exists() or Journal(path).get().run.seconds < float(text)


# The certificates of the machine are read before the forks, too.
httpx2.create_ssl_context = functools.cache(httpx2.create_ssl_context)


def fork(work: Callable[[], None], seconds: float | None = None) -> int:
    """Do something in a process of its own, killed after some seconds; return its exit status."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(base_url: str, folder: Path) -> None:
    whole = Listing(folder / "whole.db")
    asyncio.run(run_to_end(begin(base_url, "whole"), whole))
    began = time.monotonic()
    fork(lambda: asyncio.run(run_to_end(begin(base_url, "timed"), Recorder(folder / "timed.db"))))
    usual = time.monotonic() - began
    print(json.dumps(whole.kinds), flush=True)
    for line in sys.stdin:
        number, when = line.split()
        name = f"{number}-{when}"
        path = folder / f"{name}.db"

        def kill(
            path: Path = path, name: str = name, at: int = int(number), when: str = when
        ) -> None:
            listing = Killing(path, at, when) if when.isalpha() else Showing(path)
            asyncio.run(run_to_end(begin(base_url, name), listing))

        def resume(path: Path = path, name: str = name) -> None:
            if not path.exists() or not Journal(path).runs():
                loop, journal = begin(base_url, name), Recorder(path)
            else:
                stored = Journal(path).get()
                loop = api.resume(stored.run, base_url=base_url, checks=[Looks()])
                journal = stored.journal
            asyncio.run(run_to_end(loop, journal))

        died = fork(kill, None if when.isalpha() else usual * float(when))
        lost = loses(path)
        ended = fork(resume)
        fine = died == -signal.SIGKILL or not (when.isalpha() or died)
        print("lost" if lost else "ok" if fine and ended == 0 else f"{died} {ended}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
