"""The live panel: a run as core ipywidgets, and the buttons that steer it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Literal

from ipyrefine.core.events import (
    BestChanged,
    BudgetUsed,
    DraftReady,
    Event,
    EvidenceReady,
    RevisionReady,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
)
from ipyrefine.core.ports import Clock
from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Decision, Run
from ipyrefine.notebook.actions import Actions, Reading
from ipyrefine.notebook.blocks import Blocks
from ipyrefine.notebook.ledger import Ledger, dispose
from ipyrefine.notebook.live import Live
from ipyrefine.notebook.looping import Loop
from ipyrefine.notebook.panel_style import PANEL_STYLE
from ipyrefine.notebook.placing import Home
from ipyrefine.notebook.rewriting import Rewriting
from ipyrefine.render.escape import html_prose
from ipyrefine.render.html import notices_html, score_html, spent_html, summary_line, task_html
from ipyrefine.render.style import STYLE

# The next event is on its heels, so that drawing both would be drawing twice.
_FOLLOWED = (BudgetUsed, DraftReady, RevisionReady, EvidenceReady, VerdictReached, BestChanged)


class Panel:
    """A run on screen, with buttons; a consumer of events.

    A failing callback is told in the note line, never raised into the front-end.

    Args:
        decide: what to call with a decision of the user's.
        stop: what to call to interrupt the run.
        close: what to call when the user is done with the panel; it should end in `Panel.close`.
        home: where an accepted text goes, for the user to choose; None offers no choice.
        interval: seconds between two updates of the streaming text, at least, and seconds that an
            event waits for the next one on its heels, to be drawn together.
        tick: seconds between two updates of the time shown.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        decide: Callable[[Decision], None],
        stop: Callable[[], None],
        close: Callable[[], None],
        home: Home | None = None,
        interval: float = 0.1,
        tick: float = 1.0,
        clock: Clock = time.monotonic,
    ) -> None:
        from ipywidgets import HTML, VBox

        self._decide, self._interval = decide, interval
        self._run, self._closed = Run(), False
        self._loop = Loop()
        self._pending: asyncio.Handle | None = None
        style = HTML(value=f"<style>{STYLE}{PANEL_STYLE}</style>")
        style.layout.display = "none"
        self._top, self._notices, self._scores, self._task = HTML(), HTML(), HTML(), HTML()
        self._live = Live(self._loop, interval=interval, tick=tick, clock=clock)
        self._note = HTML()
        self._iterations, self._actions = Blocks(), Actions(home)
        self._reading = Reading(self._draw_iterations)
        self._top.add_class("rf-top")
        shown = [style, self._top, self._notices, self._scores, self._task]
        shown += [self._reading.widget, self._iterations.widget]
        self._ledger = Ledger(self._on_click, self._send)
        self._rewriting = Rewriting(self._on_click, self._send, self._number)
        self._actions.which.observe(self._draw_ledger, "value")
        controls = [self._ledger.widget, self._actions.widget, self._rewriting.widget]
        self.widget: Any = VBox([*shown, self._live.widget, *controls, self._note])
        for name in ("ipyrefine", "rf-panel", "mathjax_ignore", "tex2jax_ignore"):
            self.widget.add_class(name)
        self._wire(stop, close)
        self._draw()

    def show(self, event: Event, run: Run) -> None:
        """Show an event.

        Args:
            event: what happened.
            run: the run with the event applied.
        """
        if self._closed:
            return
        self._loop.notice()
        if isinstance(event, TextDelta):
            self._live.add(event)
            return
        self._run = run
        if isinstance(event, StageStarted):
            self._live.begin(event)
        if isinstance(event, Stopped):
            self.note("")
        if isinstance(event, _FOLLOWED):
            self._draw_soon()
        else:
            self._draw()

    def note(self, text: str) -> None:
        """Show a short message below the buttons; an empty one clears it."""
        shown = html_prose(text)
        self._note.value = f'<p role="status" aria-live="polite">{shown}</p>' if text else ""

    def close(self) -> None:
        """Take the panel off the screen and close all its widgets; nothing is shown after."""
        if self._closed:
            return
        self._closed = True
        self._cancel()
        self._live.close()
        dispose(self.widget)

    def _wire(self, stop: Callable[[], None], close: Callable[[], None]) -> None:
        """Say what each button leads to."""

        def stopping() -> None:
            stop()
            self.note("Stopping…")

        def accept() -> None:
            self._send(Decision(kind="accept", iteration=self._number()))

        def override(outcome: Outcome) -> Callable[[], None]:
            return lambda: self._send(
                Decision(kind="override", iteration=self._number(), outcome=outcome)
            )

        def more() -> None:
            chosen = actions.which.value
            kind: Literal["branch", "continue"] = "continue" if chosen is None else "branch"
            self._send(Decision(kind=kind, iteration=chosen, rounds=actions.rounds.value))

        actions = self._actions
        self._on_click(actions.stop, stopping)
        self._on_click(actions.accept, accept)
        self._on_click(actions.passed, override(Outcome.PASS))
        self._on_click(actions.not_yet, override(Outcome.NEEDS_IMPROVEMENT))
        self._on_click(actions.more, more)
        self._on_click(actions.close, close)

    def _on_click(self, button: Any, action: Callable[[], None]) -> None:
        """Run an action per click, on the loop's thread; a failure becomes a note."""

        def guarded() -> None:
            if self._closed:
                return
            try:
                action()
            except Exception as error:  # whatever it is, a front-end would swallow it
                self.note(str(error) or type(error).__name__)

        button.on_click(lambda _: self._loop.hand_over(guarded))

    def _number(self) -> int | None:
        """The iteration that the buttons are about; the best, or the latest while none is."""
        run, chosen = self._run, self._actions.which.value
        if chosen is not None:
            return int(chosen)
        if run.best is not None:
            return run.best
        return len(run.iterations) - 1 if run.iterations else None

    def _send(self, decision: Decision, *, words: bool = True) -> None:
        """Hand a decision over, with the user's words if it takes any; a failure keeps them."""
        if words:
            text = self._actions.words.value.strip()
            decision = decision.model_copy(update={"text": text})
        self._decide(decision)
        if words:
            self._actions.words.value = ""

    def _draw_ledger(self, _: object = None) -> None:
        self._ledger.update(self._run, self._number())

    def _draw(self) -> None:
        """Bring every part up to date; parts that did not change send nothing."""
        self._cancel()
        run = self._run
        kind = "Draft to improve" if run.draft is not None else "Task"
        taken = f'<p class="rf-quiet">Your cell was taken as: <strong>{kind}</strong></p>'
        line = f"{taken}{summary_line(run)}" if run.task else "<p>Starting…</p>"
        self._top.value = f'<div role="status" aria-live="polite">{line}</div>'
        self._notices.value = notices_html(run)
        self._scores.value = score_html(run) + spent_html(run)
        self._task.value = task_html(run)
        self._draw_iterations()
        self._actions.update(run)
        self._rewriting.update(run)
        self._draw_ledger()
        self._live.update(run)

    def _draw_iterations(self) -> None:
        self._reading.update(self._run)
        self._iterations.update(self._run, self._reading.view)

    def _draw_soon(self) -> None:
        """Draw together with what follows on the heels, where something can wait for it."""
        if self._pending is None:
            self._pending = self._loop.later(self._interval, self._draw)
        if self._pending is None:
            self._draw()

    def _cancel(self) -> None:
        """Forget the update that is due."""
        if self._pending:
            self._pending.cancel()
            self._pending = None
