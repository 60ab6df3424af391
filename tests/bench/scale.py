"""How long and wide runs may grow: a table of seconds and memory, run by hand.

``python tests/bench/scale.py [--quick]``: 10,000 runs in the journal, 1,000 iterations in one run,
200 concurrent `refine()` calls of which 16 run at a time; scripted models, a journal of its own.
"""

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from kit import finish, greeting, opinion, stored_events, text

from ipyrefine.api import refine
from ipyrefine.core.model import Limits
from ipyrefine.core.reducer import replay
from ipyrefine.journal.schema import connect
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import Recorder
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.record import bundle


def timed(what: str, work: Callable[[], Any]) -> Any:
    """Do something once for its seconds, on the clock and of the processor; its result."""
    started, used = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - started, time.process_time() - used
    row(what, f"{wall:9.3f} s  {cpu:9.3f} s CPU")
    return result


def row(what: str, value: str) -> None:
    print(f"{what:<58} {value}", flush=True)


def peak(what: str, work: Callable[[], Any]) -> None:
    """Do something for the memory it needs at most, printed as a row."""
    tracemalloc.start()
    work()
    row(f"{what}, peak memory", f"{tracemalloc.get_traced_memory()[1] / 2**20:9.1f} MiB")
    tracemalloc.stop()


def many_runs(folder: Path, count: int) -> None:
    """List, search and read a journal of many runs."""
    path = folder / "many.db"
    events = asyncio.run(
        stored_events(greeting("Write a greeting that is warm.\n" + "More. " * 200))
    )
    run = replay(events)

    def write() -> None:
        # As where another kernel is at work: who closes the file last also tidies it up.
        open_elsewhere = connect(path)
        for number in range(count):
            recorder = Recorder(path, name=f"run-x{number}")
            for event in events[:-1]:
                recorder.postpone(event)
            asyncio.run(recorder(events[-1], run))
        open_elsewhere.close()

    timed(f"{count:,} runs of {len(events)} events written, one commit each", write)
    row("the journal's file", f"{path.stat().st_size / 2**20:9.1f} MiB")
    journal = Journal(path)
    timed(f"open and list all {count:,}", journal.runs)
    timed("open and list the latest 20", lambda: journal.runs(limit=20))
    timed("search them for two words", lambda: journal.runs("greeting x77"))
    timed("filter by verdict", lambda: journal.runs(verdict="pass"))
    timed("read one back", lambda: journal.get("run-x77"))


def long_run(folder: Path, count: int) -> None:
    """One run of many iterations: written, folded, shown."""
    path = folder / f"long{count}.db"

    def replies() -> Iterator[str]:
        for number in itertools.count():
            yield text(f"Version {number}\n" + "A line of text.\n" * 20)
            yield opinion(4)

    async def go() -> None:
        limits = Limits(max_revisions=count - 1, critique="never", patience=count)
        await finish(greeting(limits=limits, replies=replies()), journal=Recorder(path))

    timed(f"{count:,} iterations in one run, journalled", lambda: asyncio.run(go()))
    stored = timed("  read back and folded", Journal(path).get)
    data = timed("  its record in a notebook rendered", lambda: bundle(stored.run))
    row("  its record's size", f"{sum(len(str(part)) for part in data.values()) / 2**20:9.2f} MiB")
    peak("  read back and folded", Journal(path).get)


def many_at_once(count: int, at_once: int) -> None:
    """Concurrent `refine()` calls in one event loop, each in the journal."""

    async def one(number: int, gate: asyncio.Semaphore) -> str:
        async with gate:
            replies = [text(f"Version {number}"), opinion(4), text("Better"), opinion(10)]
            run = await refine(
                f"Write greeting {number}.", model=ScriptedModel(replies, delay=0.001),
                profile="prose", criteria=["tone"], limits=Limits(critique="never"),
            )  # fmt: skip
            return str(run.stop_reason)

    async def all_of_them() -> list[str]:
        gate = asyncio.Semaphore(at_once)
        return await asyncio.gather(*(one(number, gate) for number in range(count)))

    what = f"{count} refine() calls, {at_once} at a time, journalled"
    assert set(timed(what, lambda: asyncio.run(all_of_them()))) == {"passed"}
    peak(f"{count} refine() calls", lambda: asyncio.run(all_of_them()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    part = 10 if parser.parse_args().quick else 1
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYREFINE_HOME"] = folder
        many_runs(Path(folder), 10_000 // part)
        for count in (250, 500, 1_000):
            long_run(Path(folder), count // part)
        for count in (50, 100, 200):
            many_at_once(count // part, 16)


if __name__ == "__main__":
    main()
