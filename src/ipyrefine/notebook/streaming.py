"""The live pane: the stage under way, its time, and the text as it is written.

Each piece of the text is sent once, and the page puts the pieces together; its half is
`labextension/static/live.js`. The kernel opens a comm with the target `ipyrefine.live`, whose id
is also how the page finds the text's place. It sends ``{at, text}``: a piece, and how many UTF-16
units stand before it, as JavaScript counts them; 0 starts a new text. A page that listens, or has
missed a piece, sends any message and gets the whole text. A page without our half closes the comm
or stays silent: then the text's last lines are sent as a widget's value.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from ipyrefine.core.events import CallEnded, StageStarted, TextDelta
from ipyrefine.core.ports import Clock
from ipyrefine.core.run import Run
from ipyrefine.notebook.cell_target import Channel, open_channel
from ipyrefine.render import labels
from ipyrefine.render.escape import plain
from ipyrefine.render.html import TAIL_CHARACTERS, stage_html, stream_html, tail_html, time_html
from ipyrefine.render.progress import WRITING, Progress

COMM_TARGET = "ipyrefine.live"
# A message costs about as much as so many characters, so fewer wait for more; but no longer than
# this many seconds, or the text would seem to stand still.
_PIECE, _PATIENCE = 64, 0.25
_TAIL_PIECE, _TAIL_PATIENCE = TAIL_CHARACTERS // 4, 0.5


class Loop:
    """The event loop and the thread that a panel is drawn on."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self.attach()

    def attach(self) -> None:
        """Make the running loop and this thread the panel's from now on."""
        self._thread = threading.get_ident()
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # a plain shell between two runs; the loop of the last one may still live

    def later(self, seconds: float, action: Callable[[], None]) -> asyncio.Handle | None:
        """Run an action in so many seconds; return None where there is no loop to do it."""
        loop = self._alive()
        return loop.call_later(seconds, action) if loop else None

    def hand_over(self, action: Callable[[], None]) -> None:
        """Run an action on the panel's thread: at once if that is this one.

        Some front-ends deliver clicks and messages on a thread of their own.
        """
        loop = self._alive()
        if loop is None or threading.get_ident() == self._thread:
            action()
        else:
            loop.call_soon_threadsafe(action)

    def _alive(self) -> asyncio.AbstractEventLoop | None:
        return None if self._loop is None or self._loop.is_closed() else self._loop


class Stream:
    """A growing text in every page that listens.

    Args:
        loop: where messages are taken.
        on_change: called when a page starts to listen, or is gone.
        comm_factory: as for `open_channel`.

    Attributes:
        id: what a page knows the text by; empty where there is no kernel.
        has_listener: whether a page listens.
    """

    def __init__(
        self,
        loop: Loop,
        on_change: Callable[[], None],
        comm_factory: Callable[..., Channel] | None = None,
    ) -> None:
        self._on_change, self.has_listener = on_change, False
        self._channel = open_channel(COMM_TARGET, {}, comm_factory)
        self.id = ""
        self.start()
        if self._channel is not None:
            self.id = self._channel.comm_id
            self._channel.on_msg(lambda _: loop.hand_over(self._answer))
            self._channel.on_close(lambda _: loop.hand_over(self._lose))

    def start(self) -> None:
        """Begin a new text; pages learn of it with its first piece."""
        self._parts: list[str] = []
        self._at, self._held = 0, ""

    def add(self, text: str) -> None:
        """Send a piece of the text, with invisible characters made visible."""
        # A line break may come in two pieces, of which the first alone looks like a stray control.
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        piece = plain(text.removesuffix("\r"))
        if self.has_listener:
            self._send(self._at, piece)
        self._parts.append(piece)
        self._at += len(piece.encode("utf-16-le")) // 2

    def close(self) -> None:
        """Let the pages forget the text."""
        self._on_change, channel = _do_nothing, self._channel
        self._lose()
        if channel is not None:
            channel.close()

    def _send(self, at: int, text: str) -> None:
        data: dict[str, Any] = {"at": at, "text": text}
        if self._channel is not None:
            self._channel.send(data)

    def _answer(self) -> None:
        """Send the whole text, which a new page needs and the others lose nothing by."""
        self._send(0, "".join(self._parts))
        if self._channel is not None and not self.has_listener:
            self.has_listener = True
            self._on_change()

    def _lose(self) -> None:
        self._channel, self.has_listener = None, False
        self._on_change()


def _do_nothing() -> None:
    """Do nothing."""


class Live:
    """The live pane; empty between runs.

    Args:
        loop: the loop of the panel.
        interval: seconds between two updates of the text, at least.
        tick: seconds between two updates of the time.
        clock: monotonic seconds.
        comm_factory: as for `open_channel`.
    """

    def __init__(
        self,
        loop: Loop,
        *,
        interval: float,
        tick: float,
        clock: Clock,
        comm_factory: Callable[..., Channel] | None = None,
    ) -> None:
        from ipywidgets import HTML, Box

        self._loop, self._interval, self._tick, self._clock = loop, interval, tick, clock
        self._updated, self._iteration, self._progress = clock(), 0, Progress(clock)
        self._pending: asyncio.Handle | None = None
        self._ticking: asyncio.Handle | None = None
        self._stream = Stream(loop, self._draw_text, comm_factory)
        self._stage = HTML()
        # One layout and style for all three: each further one is sent too when the panel opens.
        look = {"layout": self._stage.layout, "style": self._stage.style}
        self._time, self._text = HTML(**look), HTML(**look)
        self._text.add_class("rf-written")
        self.widget: Any = Box([self._stage, self._time, self._text])
        self.widget.add_class("rf-live")
        self._start("")

    def begin(self, event: StageStarted) -> None:
        """Forget the text of the stage before."""
        self._iteration = event.iteration
        self._progress.take(event)
        self._start("")

    def end_call(self, event: CallEnded) -> None:
        """Count what a call wrote."""
        self._progress.take(event)

    def add(self, event: TextDelta) -> None:
        """Take a piece; it is shown now, or together with those that follow.

        A judge's answers and a critic's JSON are counted only.
        """
        self._iteration = event.iteration
        self._progress.take(event)
        if event.kind == "text" and event.stage not in WRITING:
            return
        if event.kind != self._kind:
            if self._kind == "text":
                return  # thinking is shown only while there is no text
            self._start(event.kind)
        self._waiting.append(event.text)
        self._length += len(event.text)
        self._draw_soon()

    def update(self, run: Run | None) -> None:
        """Bring every part up to date with a run; None before its first event."""
        self._updated = self._clock()
        if run is None or run.stage is None or not labels.running(run):
            self.widget.layout.display = "none"
            self._cancel()
            self._start("")
            self._stage.value = self._time.value = self._text.value = ""
            return
        self.widget.layout.display = None
        self._stage.value = stage_html(run.stage, self._iteration, run.allowed_revisions)
        self._draw_time(run)
        self._draw_text()

    def close(self) -> None:
        """Show nothing more; the widgets are the panel's to close."""
        self._cancel()
        self._stream.close()

    def _start(self, kind: str) -> None:
        self._kind, self._tail = kind, ""
        self._waiting: list[str] = []
        self._length = 0
        self._drawn = float("-inf")  # the first piece of a text does not wait for a second
        self._stream.start()

    def _draw_soon(self) -> None:
        """Draw what waits once it is worth a message or has waited long enough."""
        piece, patience = (
            (_PIECE, _PATIENCE) if self._stream.has_listener else (_TAIL_PIECE, _TAIL_PATIENCE)
        )
        due = self._drawn + (self._interval if self._length >= piece else patience)
        wait = due - self._clock()
        if self._pending:
            self._pending.cancel()
        self._pending = self._loop.later(wait, self._draw_text) if wait > 0 else None
        if self._pending is None:
            self._draw_text()

    def _draw_text(self) -> None:
        """Draw the text so far, or nothing while there is none."""
        if self._pending:
            self._pending.cancel()
            self._pending = None
        if self._waiting:
            text = "".join(self._waiting)
            self._waiting, self._length, self._drawn = [], 0, self._clock()
            self._stream.add(text)
            # Longer than the tail on screen, which so can say that something comes before it.
            self._tail = (self._tail + text)[-2 * TAIL_CHARACTERS :]
        thinking = self._kind == "thinking"
        if not self._kind:
            self._text.value = ""
        elif self._stream.has_listener:
            self._text.value = stream_html(self._stream.id, thinking=thinking)
        else:
            self._text.value = tail_html(self._tail, thinking=thinking)

    def _draw_time(self, run: Run) -> None:
        """Draw how long the run has taken, and again each tick."""
        if self._ticking:
            self._ticking.cancel()
        seconds = run.seconds + self._clock() - self._updated
        now = run.model_copy(update={"seconds": seconds})
        self._time.value = time_html(now, self._progress.tokens)
        self._ticking = self._loop.later(self._tick, lambda: self._draw_time(run))

    def _cancel(self) -> None:
        """Forget the updates that are due."""
        for handle in (self._pending, self._ticking):
            if handle:
                handle.cancel()
        self._pending = self._ticking = None
