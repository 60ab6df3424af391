"""The live panel: a run as core ipywidgets, with the controls that steer it."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipyrefine.core.decisions import Accept, Branch, Continue, Decision, Override
from ipyrefine.core.events import (
    BestChanged,
    CallEnded,
    DraftReady,
    Event,
    EvidenceReady,
    RevisionReady,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
)
from ipyrefine.core.model import Outcome, Task
from ipyrefine.core.ports import Clock
from ipyrefine.core.run import Iteration, Run
from ipyrefine.notebook.cell_target import CellTarget
from ipyrefine.notebook.controls import (
    Actions,
    DiffOptions,
    EditForms,
    FindingList,
    QuestionForm,
    dispose,
)
from ipyrefine.notebook.streaming import Live, Loop
from ipyrefine.render import labels
from ipyrefine.render.escape import html_prose, html_text
from ipyrefine.render.html import (
    INLINE,
    View,
    iteration_html,
    notices_html,
    score_html,
    spent_html,
    summary_line,
    task_html,
)
from ipyrefine.render.style import STYLE

if TYPE_CHECKING:
    import ipywidgets

_CSS = Path(__file__).with_name("panel.css").read_text("utf-8")
PANEL_STYLE = re.sub(r"/\*.*?\*/\n", "", _CSS, flags=re.DOTALL)
# Events that another follows at once: they are drawn together with it.
_FOLLOWED = (CallEnded, DraftReady, RevisionReady, EvidenceReady, VerdictReached, BestChanged)
_GROUP = 50  # iterations in a box: one more lists only the last box anew, and not all there are


class Panel:
    """A run on screen, with buttons; a consumer of events.

    A failing callback becomes a note below the buttons, as a front-end would swallow the error.

    Args:
        decide: called with each decision of the user's.
        stop: called to stop the run.
        close: called when the user is done with the panel; it should end in `Panel.close`.
        cell_target: where an accepted text goes, for the user to choose; None offers no choice.
        interval: seconds between two updates of the streaming text, at least, and seconds that an
            event waits to be drawn together with the next one.
        tick: seconds between two updates of the time.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        decide: Callable[[Decision], None],
        stop: Callable[[], None],
        close: Callable[[], None],
        cell_target: CellTarget | None = None,
        interval: float = 0.1,
        tick: float = 1.0,
        clock: Clock = time.monotonic,
    ) -> None:
        from ipywidgets import HTML, VBox

        self._decide, self._interval = decide, interval
        self._run: Run | None = None
        self._closed = False
        self._loop = Loop()
        self._pending: asyncio.Handle | None = None
        style = HTML(value=f"<style>{STYLE}{PANEL_STYLE}</style>")
        style.layout.display = "none"
        self._top, self._notices, self._scores, self._task = HTML(), HTML(), HTML(), HTML()
        self._live = Live(self._loop, interval=interval, tick=tick, clock=clock)
        self._note = HTML()
        self._iterations, self._actions = IterationList(), Actions(cell_target)
        self._diff_options = DiffOptions(self._draw_iterations)
        self._top.add_class("rf-top")
        parts = [style, self._top, self._notices, self._scores, self._task]
        parts += [self._diff_options.widget, self._iterations.widget]
        self._findings = FindingList(self._on_click, self._decide, self._send_with_words)
        self._edit_forms = EditForms(self._on_click, self._decide, self._number)
        self._question = QuestionForm(self._on_click, self._decide)
        self._actions.iteration.observe(self._draw_findings, "value")
        controls = [
            self._question.widget,
            self._findings.widget,
            self._actions.widget,
            self._edit_forms.widget,
        ]
        self.widget: Any = VBox([*parts, self._live.widget, *controls, self._note])
        for name in ("ipyrefine", "rf-panel", "mathjax_ignore", "tex2jax_ignore"):
            self.widget.add_class(name)
        self._connect_buttons(stop, close)
        self._draw()

    def show(self, event: Event, run: Run) -> None:
        """Show an event.

        Args:
            event: what happened.
            run: the run with the event applied.
        """
        if self._closed:
            return
        self._loop.attach()
        if isinstance(event, TextDelta):
            self._live.add(event)
            return
        self._run = run
        if isinstance(event, StageStarted):
            self._live.begin(event)
        if isinstance(event, CallEnded):
            self._live.end_call(event)
        if isinstance(event, Stopped):
            self.note("")
        if isinstance(event, _FOLLOWED):
            self._draw_soon()
        else:
            self._draw()

    def note(self, text: str) -> None:
        """Show a short message below the buttons; an empty one clears it."""
        line = f'<p role="status" aria-live="polite">{html_prose(text)}</p>'
        self._note.value = line if text else ""

    def close(self) -> None:
        """Take the panel off the screen and close all its widgets; nothing is shown after."""
        if self._closed:
            return
        self._closed = True
        self._cancel()
        self._live.close()
        dispose(self.widget)

    def _connect_buttons(self, stop: Callable[[], None], close: Callable[[], None]) -> None:
        actions, send = self._actions, self._send_with_words

        def stop_run() -> None:
            stop()
            self.note("Stopping…")

        def override(outcome: Outcome) -> Callable[[], None]:
            return lambda: send(
                lambda words: Override(iteration=self._number(), outcome=outcome, reason=words)
            )

        self._on_click(actions.stop, stop_run)
        self._on_click(
            actions.accept,
            lambda: send(lambda words: Accept(iteration=self._number(), reason=words)),
        )
        self._on_click(actions.mark_pass, override(Outcome.PASS))
        self._on_click(actions.needs_work, override(Outcome.NEEDS_IMPROVEMENT))
        self._on_click(actions.continue_, lambda: send(self._more_revisions))
        self._on_click(actions.close, close)

    def _more_revisions(self, words: str) -> Decision:
        """Return what Continue decides: a branch when the user chose an iteration."""
        iteration, revisions = self._actions.iteration.value, self._actions.revisions.value
        if iteration is None:
            return Continue(revisions=revisions, guidance=words)
        return Branch(iteration=iteration, revisions=revisions, guidance=words)

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
        """Return the iteration that the buttons are about; the best, or the latest without one."""
        run, number = self._run, self._actions.iteration.value
        if number is not None:
            return int(number)
        if run is None or not run.iterations:
            return None
        return len(run.iterations) - 1 if run.best is None else run.best

    def _send_with_words(self, build: Callable[[str], Decision]) -> None:
        """Hand over a decision built with the user's words, and clear them; a failure keeps them.

        Args:
            build: returns the decision for these words.
        """
        self._decide(build(self._actions.words.value.strip()))
        self._actions.words.value = ""

    def _draw(self) -> None:
        """Bring every part up to date; parts that did not change send nothing."""
        self._cancel()
        run = self._run
        if run is None:
            line = "<p>Starting…</p>"
        else:
            words = html_text(labels.interpretation(run.setup))
            line = f'<p class="rf-quiet">Interpreted as: <strong>{words}</strong></p>'
            line += summary_line(run)
            self._notices.value = notices_html(run)
            self._scores.value = score_html(run) + spent_html(run)
            self._task.value = task_html(run)
        self._top.value = f'<div role="status" aria-live="polite">{line}</div>'
        self._draw_iterations()
        self._actions.update(run)
        self._edit_forms.update(run)
        self._question.update(run)
        self._draw_findings()
        self._live.update(run)

    def _draw_findings(self, _: object = None) -> None:
        self._findings.update(self._run, self._number())

    def _draw_iterations(self) -> None:
        self._diff_options.update(self._run)
        if self._run is not None:
            self._iterations.update(self._run, self._diff_options.view)

    def _draw_soon(self) -> None:
        """Draw together with the next event, where something can wait for it."""
        if self._pending is None:
            self._pending = self._loop.later(self._interval, self._draw)
        if self._pending is None:
            self._draw()

    def _cancel(self) -> None:
        """Forget the update that is due."""
        if self._pending:
            self._pending.cancel()
            self._pending = None


class IterationList:
    """The iterations of a run, a block each; the latest and the best are unfolded.

    What did not change is neither drawn nor sent again.
    """

    def __init__(self) -> None:
        from ipywidgets import VBox

        self.widget: ipywidgets.VBox = VBox()
        self._blocks: list[ipywidgets.HTML] = []
        self._drawn: tuple[Iteration, ...] = ()
        self._unfolded: tuple[int | None, int | None] = (None, None)  # the best, the latest
        self._task: Task | None = None
        self._view = INLINE

    def update(self, run: Run, view: View) -> None:
        """Show a run.

        Args:
            run: the run.
            view: how its texts are compared.
        """
        unfolded = (run.best, len(run.iterations) - 1)
        if len(run.iterations) < len(self._blocks):
            self._clear()
        self._grow(len(run.iterations))
        for number in self._outdated(run, view, unfolded):
            html = iteration_html(run, number, open=number in unfolded, view=view)
            self._blocks[number].value = html
        self._drawn, self._unfolded = run.iterations, unfolded
        self._task, self._view = run.task, view

    def _clear(self) -> None:
        """Drop every block, as the run was started over."""
        boxes, self.widget.children = self.widget.children, ()
        for box in boxes:
            dispose(box)
        self._blocks, self._drawn, self._unfolded = [], (), (None, None)

    def _grow(self, count: int) -> None:
        from ipywidgets import HTML, VBox

        if count == len(self._blocks):
            return
        self._blocks += [HTML() for _ in range(count - len(self._blocks))]
        groups = [self._blocks[start : start + _GROUP] for start in range(0, count, _GROUP)]
        boxes = self.widget.children
        if boxes:
            boxes[-1].children = groups[len(boxes) - 1]
        if len(groups) > len(boxes):
            self.widget.children = (*boxes, *map(VBox, groups[len(boxes) :]))

    def _outdated(self, run: Run, view: View, unfolded: tuple[int | None, int]) -> Iterable[int]:
        """Return the iterations that look different now."""
        toggled = {*self._unfolded} ^ {*unfolded}
        if self._unfolded[0] != run.best:
            toggled |= {self._unfolded[0], run.best}  # the star moves, also between unfolded ones
        all_changed = (run.task, view) != (self._task, self._view)
        if all_changed or (view.best and run.best in toggled):
            return range(len(run.iterations))
        pairs = zip_longest(run.iterations, self._drawn)
        changed = {number for number, (now, before) in enumerate(pairs) if now is not before}
        compared = {i.number for i in run.iterations if i.parent in changed} if changed else set()
        return sorted(changed | compared | {n for n in toggled if n is not None and n >= 0})
