"""What an iteration costs outside the model: tables of CPU milliseconds, run by hand.

``python tests/bench/overhead.py [--iterations N] [--profile]``: a scripted model that writes texts
of 4 KB, three checks that return at once, a judge; without the panel, with the journal, with the
panel. The model's own share is measured apart and taken off. ``--profile`` shows where it goes.
"""

import argparse
import asyncio
import cProfile
import itertools
import pstats
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from counting_comm import Sent
from kit import greeting, opinion, text
from tables import Table

from ipyrefine.core.events import Event, VerdictReached
from ipyrefine.core.model import Evidence, Limits, Task
from ipyrefine.core.ports import Journal, Message, Request
from ipyrefine.core.run import Run
from ipyrefine.journal.writer import Recorder
from ipyrefine.notebook.panel import Panel
from ipyrefine.providers.scripted import ScriptedModel

CHARACTERS = 4_096
Show = Callable[[Event, Run], Awaitable[None] | None]


class Quick:
    """A check that returns at once and leaves the verdict to the judge."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=True, detail="fine")


def replies() -> Iterator[str]:
    """Texts of 4 KB that differ in a few lines, none of which passes."""
    line = "This is line {} of a text, neither short nor long, as such lines are.\n"
    lines = [line.format(n) for n in range(CHARACTERS // len(line))]
    for number in itertools.count():
        body = list(lines)
        body[number % len(body)] = f"This line is new in version {number} of the text.\n"
        yield text("".join(body))
        yield opinion(4)


async def model_share(count: int) -> float:
    """CPU seconds the scripted model itself takes for so many iterations."""
    model = ScriptedModel(replies(), chunk=16)
    request = Request(messages=(Message(role="user", content="Write."),))
    used = time.process_time()
    for _ in range(2 * count):
        async with aclosing(model.stream(request)) as parts:
            async for _ in parts:
                pass
    return time.process_time() - used


async def stamps(count: int, shows: list[Show], journal: Journal | None) -> list[float]:
    """CPU seconds since the start, at every verdict."""
    limits = Limits(max_revisions=count - 1, critique="never", patience=count)
    checks = [Quick(name) for name in ("first", "second", "third")]
    loop = greeting(limits=limits, replies=replies(), checks=checks)
    used, found = time.process_time(), [0.0]

    def stamp(event: Event, run: Run) -> None:
        if isinstance(event, VerdictReached):
            found.append(time.process_time() - used)

    await loop.run(*shows, stamp, journal=journal)
    return found


def measured(
    what: str,
    table: Table,
    count: int,
    shows: list[Show],
    model_s: float,
    journal: Journal | None = None,
) -> None:
    at = asyncio.run(stamps(count, shows, journal))
    cuts = sorted({1, min(10, count), min(100, count), count})
    values = [
        1000 * ((at[end] - at[start]) / (end - start) - model_s)
        for start, end in itertools.pairwise([0, *cuts])
        if end > start
    ]
    table.row(what, *values, values[-1] / values[1])


def panel() -> Panel:
    return Panel(decide=lambda _: None, stop=lambda: None, close=lambda: None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=1_000)
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    chosen = parser.parse_args()
    count = max(11, chosen.iterations)
    Sent().install()
    share = asyncio.run(model_share(50)) / 50
    cuts = sorted({1, 10, min(100, count), count})
    spans = [f"{a + 1}-{b}" if b > a + 1 else f"{b}" for a, b in itertools.pairwise([0, *cuts])]
    title = f"CPU ms an iteration outside the model, whose own {1000 * share:.1f} are taken off"
    table = Table(title, "iterations", *spans, "last / 2nd")
    with tempfile.TemporaryDirectory() as folder:
        rows: dict[str, Callable[[], tuple[list[Show], Journal | None]]] = {
            "loop": lambda: ([], None),
            "loop and journal": lambda: ([], Recorder(Path(folder) / "runs.db")),
            "loop and panel": lambda: ([panel().show], None),
        }
        for what, parts in rows.items():
            profiler = cProfile.Profile()
            if chosen.profile:
                profiler.enable()
            shows, journal = parts()
            measured(what, table, count, shows, share, journal)
            if chosen.profile:
                profiler.disable()
                pstats.Stats(profiler).sort_stats("cumulative").print_stats(28)


if __name__ == "__main__":
    main()
