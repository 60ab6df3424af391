"""Bytes from the kernel to the browser per byte of streamed text: a table, run by hand.

``python tests/bench/wire.py``: a text of 16 KB streamed into the panel at several speeds, counted
on the comms as JSON; beside it a widget that re-sends its value on every piece, and the same ten
times a second. What is sent to open the panel, and to show the finished text, stands apart.

A message has some 130 bytes of JSON around its text. So few pieces are worth a message of their
own: those of a slow stream wait for each other, four times a second. The last column adds what
Jupyter puts around every message, which no design changes but by sending fewer.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from counting_comm import Sent
from jupyter_client.session import Session, json_packer
from tables import Table

from ipyrefine.core.events import DraftReady, Event, RunStarted, StageStarted, TextDelta
from ipyrefine.core.model import Setup, Stage, Task
from ipyrefine.core.reducer import apply
from ipyrefine.core.run import Run
from ipyrefine.notebook.panel import Panel

LINE = "A line of a text that is neither short nor long, as such lines are.\n"
TEXT = (LINE * (16_384 // len(LINE) + 1))[:16_384]
PIECE = 16  # characters, about four tokens
SPEEDS = (25, 100, 500)  # tokens a second
PER_SECOND = 10


class Watch:
    """A clock that goes faster, so that a slow stream need not be waited for."""

    def __init__(self, wait_s: float) -> None:
        self.now, self._wait = 0.0, wait_s

    def __call__(self) -> float:
        return self.now

    def tick(self) -> None:
        self.now += self._wait


def pieces() -> list[str]:
    return [TEXT[at : at + PIECE] for at in range(0, len(TEXT), PIECE)]


async def into_panel(sent: Sent, tokens_per_second: int) -> dict[str, tuple[int, int]]:
    """What each part of a run sends to a page: messages and bytes."""
    watch = Watch(PIECE / 4 / tokens_per_second)
    asyncio.get_running_loop().time = watch  # type: ignore[method-assign]  # its timers go faster too
    found: dict[str, tuple[int, int]] = {}
    marks = [(sent.messages, sent.bytes)]

    def mark(what: str) -> None:
        before = marks[-1]
        marks.append((sent.messages, sent.bytes))
        found[what] = (sent.messages - before[0], sent.bytes - before[1])

    panel = Panel(
        decide=lambda _: None, stop=lambda: None, close=lambda: None,
        interval=1 / PER_SECOND, clock=watch,
    )  # fmt: skip
    panel.widget._handle_custom_msg({"action": "hello"}, [])
    setup = Setup(task=Task(text="Write."))
    run = Run.begin(setup)

    async def show(event: Event) -> None:
        nonlocal run
        run = apply(run, event)
        panel.show(event, run)
        watch.tick()
        await asyncio.sleep(0)

    await show(RunStarted(setup=setup))
    await show(StageStarted(stage=Stage.DRAFT, iteration=0))
    mark("open")
    for piece in pieces():
        await show(TextDelta(stage=Stage.DRAFT, iteration=0, text=piece))
    mark("stream")
    await show(DraftReady(text=TEXT))
    watch.now += 1 / PER_SECOND
    for _ in range(2):  # one turn finds the timer that is due, the next runs it
        await asyncio.sleep(0)
    mark("text")
    panel.close()
    return found


def naive(sent: Sent, every: int) -> tuple[int, int]:
    """A widget whose whole value is sent again with every so many pieces."""
    from ipywidgets import HTML

    widget, messages, already = HTML(), sent.messages, sent.bytes
    parts = pieces()
    for count in range(every, len(parts) + every, every):
        widget.value = "".join(parts[:count])
    return sent.messages - messages, sent.bytes - already


def envelope() -> int:
    """Bytes around a message's content on its way to a page: three headers, as JSON."""
    asked = Session().msg("execute_request", {})
    message = Session().msg("comm_msg", {}, parent=asked["header"])
    return len(json_packer(message))


def main() -> None:
    sent, around = Sent().install(), envelope()
    title = f"{len(TEXT):,} bytes of text in pieces of {PIECE}, up to {PER_SECOND} updates a second"
    columns = ("messages", "bytes", "bytes/byte", "and envelopes")
    table = Table(title, "what", "tokens/s", *columns)

    def row(what: str, speed: object, counted: tuple[int, int]) -> None:
        messages, size = counted
        ratios = (size / len(TEXT), (size + messages * around) / len(TEXT))
        table.row(what, speed, messages, size, *ratios)

    row("naive: the value on every piece", "any", naive(sent, 1))
    for speed in SPEEDS:
        every = max(1, speed * 4 // PIECE // PER_SECOND)
        row("naive, ten times a second", speed, naive(sent, every))
        found = asyncio.run(into_panel(sent, speed))
        row("panel: while the text streams", speed, found["stream"])
    row("panel: to open it", "", found["open"])
    row("panel: the finished text", "", found["text"])


if __name__ == "__main__":
    main()
