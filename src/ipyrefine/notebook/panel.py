"""The panel: a consumer of events made of core ipywidgets, with the user's buttons."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

from ipyrefine.loop.events import Event, RunStarted, StageStarted, Stopped, TextDelta
from ipyrefine.loop.records import Decision, Outcome, Run
from ipyrefine.render import html
from ipyrefine.render.escape import html_text
from ipyrefine.render.style import STYLE
from ipyrefine.render.words import budget_left

TAIL = 4_000  # characters of streamed text on screen; the browser is sent no more than these
PANEL_STYLE = """
.ipyrefine-actions { flex-wrap: wrap; gap: 4px; }
.ipyrefine-actions .widget-button { min-width: 5.5em; }
.ipyrefine-says { flex-wrap: wrap; }
"""


class Panel:
    """Shows a run as it happens and hands the user's decisions on.

    Args:
        decide: takes a decision.
        stop: stops the run.
        close: called when the user closes the panel.
        interval: seconds between two updates of streamed text, at the least.
    """

    def __init__(
        self,
        *,
        decide: Callable[[Decision], None],
        stop: Callable[[], None],
        close: Callable[[], None],
        interval: float = 0.1,
    ) -> None:
        import ipywidgets

        self._w = ipywidgets
        self._decide, self._interval = decide, interval
        self._run = Run()
        self._texts: dict[str, str] = {"text": "", "thinking": ""}
        self._stage: StageStarted | None = None
        self._since = monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._style = self._html(f"<style>{STYLE}{PANEL_STYLE}</style>")
        self._summary, self._score, self._task = self._html(), self._html(), self._html()
        self._live, self._note = self._html(), self._html()
        self._iterations: list[Any] = []
        self._rows = ipywidgets.VBox()
        self._make_actions(stop, close)
        self.widget = ipywidgets.VBox(
            [
                self._style,
                self._summary,
                self._score,
                self._task,
                self._rows,
                self._live,
                self._says,
                self._actions,
                self._note,
            ]
        )
        self.widget.add_class("ipyrefine-panel")
        self._enable()

    def show(self, event: Event, run: Run) -> None:
        """Show an event; ``run`` has it applied."""
        before, self._run = self._run, run
        if isinstance(event, TextDelta):
            self._texts[event.kind] = (self._texts[event.kind] + event.text)[-TAIL:]
            self._soon()
            return
        if isinstance(event, StageStarted):
            self._stage, self._since = event, monotonic()
            self._texts = {"text": "", "thinking": ""}
        if isinstance(event, RunStarted):
            self._task.value = _wrap(html.task_html(run))
        self._paint(before)
        if isinstance(event, StageStarted | Stopped):
            self._enable()

    def note(self, text: str) -> None:
        """Show a short message below the buttons."""
        self._note.value = _wrap(f'<span role="status">{html_text(text)}</span>')

    def close(self) -> None:
        """Close every widget of the panel, with its layout and style."""
        if self._timer:
            self._timer.cancel()
        for widget in _descendants(self.widget):
            for part in (widget, getattr(widget, "layout", None), getattr(widget, "style", None)):
                if hasattr(part, "close"):
                    part.close()

    def _make_actions(self, stop: Callable[[], None], close: Callable[[], None]) -> None:
        w = self._w
        self._words = w.Text(
            placeholder="Guidance for the next revision, or why you override (optional)",
            layout=w.Layout(width="auto", flex="1 1 16em"),
            tooltip="Guidance or reason",
        )
        self._which = w.Dropdown(options=[("Best", -1)], layout=w.Layout(width="9em"))
        self._rounds = w.BoundedIntText(value=1, min=1, max=9, layout=w.Layout(width="4em"))
        self._stop = self._button("Stop", "danger", "Stop now and keep the best text", stop)
        self._accept = self._button(
            "Accept", "success", "Take this text into a cell", lambda: self._send("accept")
        )
        self._pass = self._button(
            "Pass anyway", "", "Override: it passes", lambda: self._send("override", Outcome.PASS)
        )
        self._fail = self._button(
            "Not yet",
            "",
            "Override: it does not pass yet",
            lambda: self._send("override", Outcome.NEEDS_IMPROVEMENT),
        )
        self._more = self._button(
            "Continue", "primary", "Revise further, with your guidance", self._continue
        )
        self._close = self._button("Close", "", "Close the panel; the record stays", close)
        self._says = w.HBox([self._words])
        self._actions = w.HBox(
            [
                self._stop,
                self._accept,
                self._which,
                self._pass,
                self._fail,
                self._more,
                self._rounds,
                self._close,
            ]
        )
        self._says.add_class("ipyrefine-says")
        self._actions.add_class("ipyrefine-actions")

    def _button(self, label: str, kind: str, tip: str, act: Callable[[], None]) -> Any:
        button = self._w.Button(
            description=label, button_style=kind, tooltip=tip, layout=self._w.Layout(width="auto")
        )
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None

        def clicked(_: Any) -> None:
            # Some front-ends deliver clicks on a thread of their own.
            if loop is None or _on(loop):
                self._guarded(act)
            else:
                loop.call_soon_threadsafe(self._guarded, act)

        button.on_click(clicked)
        return button

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # a click must never vanish into the kernel's log
            self.note(f"{type(error).__name__}: {error}")

    def _send(self, kind: str, outcome: Outcome | None = None) -> None:
        number = self._which.value
        if number < 0:
            number = self._run.chosen.number if self._run.chosen else 0
        words, self._words.value = self._words.value.strip(), ""
        self._decide(
            Decision.model_validate(
                {"kind": kind, "iteration": number, "outcome": outcome, "text": words}
            )
        )

    def _continue(self) -> None:
        words, self._words.value = self._words.value.strip(), ""
        number = self._which.value if self._which.value >= 0 else None
        self._decide(
            Decision(kind="continue", iteration=number, rounds=self._rounds.value, text=words)
        )

    def _paint(self, before: Run) -> None:
        """Send what changed, and nothing else: each iteration is a widget of its own."""
        run = self._run
        taken = "Draft to improve" if run.draft is not None else "Task"
        self._summary.value = _wrap(
            f'<div role="status" aria-live="polite"><b>{taken}</b> · {html.summary_line(run)}</div>'
        )
        self._score.value = _wrap(html.score_html(run)) if len(run.score_history) > 1 else ""
        for number, iteration in enumerate(run.iterations):
            known = number < len(self._iterations)
            old = before.iterations[number] if number < len(before.iterations) else None
            if known and old == iteration and before.best == run.best and not run.stop_reason:
                continue
            if not known:
                self._iterations.append(self._html())
                self._rows.children = tuple(self._iterations)
                self._which.options = [("Best", -1)] + [
                    (f"Iteration {i}", i) for i in range(number + 1)
                ]
            opened = number in (run.best, len(run.iterations) - 1)
            self._iterations[number].value = _wrap(html.iteration_html(run, number, open=opened))
        self._paint_live()

    def _paint_live(self) -> None:
        self._timer = None
        stage = self._stage
        if stage is None or self._run.stop_reason is not None:
            self._live.value = ""
            return
        self._live.value = _wrap(
            html.live_html(
                stage.stage,
                stage.iteration,
                self._run.allowed,
                self._texts["text"],
                self._texts["thinking"],
                seconds=monotonic() - self._since,
                left=budget_left(self._run),
            )
        )

    def _soon(self) -> None:
        """Paint streamed text at most once per interval."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._paint_live)

    def _enable(self) -> None:
        run = self._run
        running = run.task is not None and run.stop_reason is None
        verified = any(iteration.verdict for iteration in run.iterations)
        self._stop.disabled = not running
        self._accept.disabled = not run.iterations
        self._pass.disabled = self._fail.disabled = not verified
        self._more.disabled = not verified

    def _html(self, value: str = "") -> Any:
        return self._w.HTML(value=value)


def _wrap(body: str) -> str:
    return f'<div class="ipyrefine">{body}</div>'


def _on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _descendants(widget: Any) -> list[Any]:
    below = [d for child in getattr(widget, "children", ()) for d in _descendants(child)]
    return [*below, widget]
