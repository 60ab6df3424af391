"""The live pane: the stage under way, the time it takes, and the text as it is written.

The text goes to the page piece by piece (`streaming`). Where no page puts the pieces together, its
last lines are sent as a widget's value: less of the text, and each line several times.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ipyrefine.core.events import StageStarted, TextDelta
from ipyrefine.core.ports import Clock
from ipyrefine.core.runs import Run
from ipyrefine.notebook.channel import Channel
from ipyrefine.notebook.looping import Loop
from ipyrefine.notebook.streaming import Stream
from ipyrefine.render import labels as words
from ipyrefine.render.live import TAIL_CHARACTERS, stage_html, stream_html, tail_html, time_html

# A message costs about as much as so many characters, so that fewer are not worth one; but nobody
# is kept waiting for longer (seconds) than makes a text seem to stand still.
_PIECE, _PATIENCE = 64, 0.25
_TAIL_PIECE, _TAIL_PATIENCE = TAIL_CHARACTERS // 4, 0.5


class Live:
    """What is being written; nothing between runs.

    Args:
        loop: the loop of the panel.
        interval: seconds between two updates of the text, at least.
        tick: seconds between two updates of the time shown.
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
        self._run, self._heard, self._iteration = Run(), clock(), 0
        self._pending: asyncio.Handle | None = None
        self._ticking: asyncio.Handle | None = None
        self._stream = Stream(loop, self._draw_text, comm_factory)
        self._stage = HTML()
        # One look for all three: each further one is sent too when the panel opens.
        look = {"layout": self._stage.layout, "style": self._stage.style}
        self._time, self._text = HTML(**look), HTML(**look)
        self._text.add_class("rf-written")
        self.widget: Any = Box([self._stage, self._time, self._text])
        self.widget.add_class("rf-live")
        self._start("")

    def begin(self, event: StageStarted) -> None:
        """Forget the text of the stage before."""
        self._iteration = event.iteration
        self._start("")

    def add(self, event: TextDelta) -> None:
        """Take a piece; it is shown now, or together with those that follow."""
        self._iteration = event.iteration
        if event.kind != self._kind:
            if self._kind == "text":
                return  # thoughts are shown only while there is no text
            self._start(event.kind)
        self._waiting.append(event.text)
        self._length += len(event.text)
        self._draw_soon()

    def update(self, run: Run) -> None:
        """Bring every part up to date with a run."""
        self._run, self._heard = run, self._clock()
        running = words.running(run)
        self.widget.layout.display = None if running else "none"
        if not running:
            self._cancel()
            self._start("")
            self._stage.value = self._time.value = self._text.value = ""
            return
        self._stage.value = stage_html(run.stage, self._iteration, run.allowed)
        self._draw_time()
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
        """Show what waits, when it is worth a message or has waited for long enough."""
        piece, patience = (
            (_PIECE, _PATIENCE) if self._stream.heard else (_TAIL_PIECE, _TAIL_PATIENCE)
        )
        due = self._drawn + (self._interval if self._length >= piece else patience)
        wait = due - self._clock()
        if self._pending:
            self._pending.cancel()
        self._pending = self._loop.later(wait, self._draw_text) if wait > 0 else None
        if self._pending is None:
            self._draw_text()

    def _draw_text(self) -> None:
        """Show what has been written so far, or nothing while that is nothing."""
        if self._pending:
            self._pending.cancel()
            self._pending = None
        if self._waiting:
            text = "".join(self._waiting)
            self._waiting, self._length, self._drawn = [], 0, self._clock()
            self._stream.add(text)
            # Kept longer than the tail that is shown, so that the tail is seen to be one.
            self._tail = (self._tail + text)[-2 * TAIL_CHARACTERS :]
        thinking = self._kind == "thinking"
        if not self._kind:
            self._text.value = ""
        elif self._stream.heard:
            self._text.value = stream_html(self._stream.id, thinking=thinking)
        else:
            self._text.value = tail_html(self._tail, thinking=thinking)

    def _draw_time(self) -> None:
        """Show how long the run has taken, and again each second."""
        if self._ticking:
            self._ticking.cancel()
        seconds = self._run.seconds + self._clock() - self._heard
        self._time.value = time_html(self._run.model_copy(update={"seconds": seconds}))
        self._ticking = self._loop.later(self._tick, self._draw_time)

    def _cancel(self) -> None:
        """Forget the updates that are due."""
        for handle in (self._pending, self._ticking):
            if handle:
                handle.cancel()
        self._pending = self._ticking = None
