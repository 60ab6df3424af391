"""The live panel: one widget that shows a run and takes what the user decides.

Python renders the HTML of each part (`render.html`); the page, `panel.js`, puts it in place and
sends every click back as one message. Nothing of the state is a trait: a page that opens says
hello and is sent the whole of it, and from then on what changed. Messages to the page:

- ``{page}``: the whole panel;
- ``{parts}``: the HTML of the parts that changed, by name;
- ``{at, text}``: a piece of the text that is written, and how many UTF-16 units stand before it; a
  page that has missed a piece says hello again;
- ``{rate}``: how fast the model writes; ``{copy}``: a text for the clipboard; ``{focus}``: the name
  of the field to type in.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Required

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from ipyrefine.core.decisions import (
    Accept,
    Add,
    Branch,
    Continue,
    Decision,
    Destination,
    Dismiss,
    Drop,
    Edit,
    Expect,
    Guide,
    Override,
    Retract,
    Select,
)
from ipyrefine.core.events import (
    CallEnded,
    Decided,
    Event,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
)
from ipyrefine.core.findings import answer
from ipyrefine.core.model import Finding, Outcome, Price, Row, Severity
from ipyrefine.core.ports import Clock
from ipyrefine.core.results import expect, rows
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import Sharing, is_computed, next_level, withheld
from ipyrefine.errors import UsageError
from ipyrefine.notebook.cell_target import CellTarget
from ipyrefine.render import document, labels
from ipyrefine.render.diff import revert
from ipyrefine.render.document import SILENCE, WRITING, Progress, seconds_of
from ipyrefine.render.escape import plain
from ipyrefine.render.html import View, about_number, panel_html, panel_parts, style
from ipyrefine.session.commands import change_criteria, predict, question_in
from ipyrefine.session.export import kept_suite

_HERE = Path(__file__).parent
_PIECE, _PATIENCE = 80, 0.25  # characters that are worth a message, and seconds they may wait
_RATE = 1.0  # seconds between two updates of the pace
_STALE_PAGE = "This page doesn't fit the kernel's ipyrefine. Reload it."


class Click(TypedDict, total=False):
    """What a page sends: what was clicked, with the words typed with it."""

    action: Required[str]  # what is asked for; the other fields go with it
    iteration: int  # the text that it is about
    other: int  # the text it is compared with
    hunk: int  # the change to take back
    number: int  # the iteration typed into a field
    row: str  # the result that it is about
    choice: int  # which of the results at hand; 0 for the one that the text gives
    revisions: int  # how many more revisions Continue allows
    place: Destination  # where the accepted text goes
    name: str  # a form, a fold, or the check of a demand
    open: bool  # whether the fold is open
    sure: int  # whether it was asked for twice
    words: str  # guidance, or the reason for a decision
    reason: str  # why a finding is dismissed
    result: str  # what the user says it should be
    text: str  # the user's own text
    findings: list[str]  # the ids of the ticked findings
    finding: str  # the id of a finding; its fields follow
    problem: str
    quote: str
    fix: str
    severity: str
    criterion: str
    criteria: str  # of the changed ones, and their target
    target: float
    model: str  # to continue with


_CLICK: TypeAdapter[Click] = TypeAdapter(Click)


class Panel:
    """A run on screen; a consumer of events.

    A failing callback becomes a note in the panel, as a front-end would swallow the error.

    Args:
        decide: called with each decision.
        stop: called to stop the run.
        close: called when the user is done with the panel; it should end in `Panel.close`.
        cell_target: where an accepted text goes, for the user to choose; None offers no choice.
        change_model: called with a model's name and guidance, to continue with it; None where
            that can't be done.
        models: returns the models at hand, with their prices where these are known.
        switch: called to start again as the other kind of text; None where that can't be done.
        see: called with a name of the notebook, to start again with it, or without it where the
            model sees it; None where that can't be done.
        unseen: returns the names that were left out.
        unconfined: called with the user's answer on code that can't be shut in, or None; returns
            whether that is still asked.
        prompts: returns what was sent to models, as title and text.
        share: called with the user's answer on what servers are sent; returns a sentence.
        sharing: returns what they are sent.
        add_tests: called to put the run's tests into a cell; None where that can't be done.
        explain: called with a question and the text that it is about.
        reads_behind: whether a critic still reads the text that was accepted.
        interval: seconds between two messages to the page, at least.
        clock: monotonic seconds.

    Attributes:
        id: what the record next to the panel knows it by.
        widget: the widget to display.
    """

    def __init__(
        self,
        *,
        decide: Callable[[Decision], None],
        stop: Callable[[], None],
        close: Callable[[], None],
        cell_target: CellTarget | None = None,
        change_model: Callable[[str, str], None] | None = None,
        models: Callable[[], Mapping[str, Price | None]] = dict,
        switch: Callable[[], None] | None = None,
        see: Callable[[str], None] | None = None,
        unseen: Callable[[], Sequence[str]] = tuple,
        unconfined: Callable[[bool | None], bool] = bool,
        prompts: Callable[[], Sequence[tuple[str, str]]] = tuple,
        share: Callable[[str], str] = str,
        sharing: Callable[[], Sharing] = Sharing,
        add_tests: Callable[[], None] | None = None,
        explain: Callable[[str, int], None] | None = None,
        reads_behind: Callable[[], bool] = bool,
        interval: float = 0.1,
        clock: Clock = time.monotonic,
    ) -> None:
        self._decide, self._stop, self._close = decide, stop, close
        self._target, self._change_model, self._prompts = cell_target, change_model, prompts
        self._switch, self._add_tests = switch, add_tests
        self._see, self._unseen, self._unconfined = see, unseen, unconfined
        self._share, self._sharing, self._reads_behind = share, sharing, reads_behind
        self._explain, self._models = explain, models
        self._interval, self._clock = interval, clock
        self._run: Run | None = None
        self._view = View()
        self._note = ""
        self._waiting: list[Expect | Retract] = []  # until the run takes them up
        self._closed = self._has_page = self._stale = False
        self._parts: dict[str, str] = {}
        self._updated = self._sent = self._rated = clock()
        self._pending: asyncio.Handle | None = None
        self._listening: asyncio.Handle | None = None
        self._loop = Loop()
        self._stream, self._progress = Stream(), Progress(clock)
        self.id = uuid.uuid4().hex
        self.widget: Any = _widget_class()()
        self.widget.on_msg(
            lambda _widget, content, _buffers: self._loop.hand_over(lambda: self._take(content))
        )

    def show(self, event: Event, run: Run) -> None:
        """Show an event."""
        if self._closed:
            return
        self._loop.attach()
        self._progress.take(event, run)
        self._stale = self._stale or bool(self._view.silence)
        if self._listening is None:
            self._listening = self._loop.later(SILENCE, self._listen)
        if isinstance(event, TextDelta):
            self._add(event)
            return
        self._run, self._updated = run, self._clock()
        if isinstance(event, RunStarted):  # perhaps not the first, where the user switched
            self._view = View()
            self._waiting.clear()
        if isinstance(event, Decided) and event.decision in self._waiting:
            self._waiting.remove(event.decision)
        if isinstance(event, StageStarted):
            self._stream.start("")
            self._view = self._view._replace(under_way=event.iteration)
            if event.stage in WRITING:
                self._view = self._view._replace(iteration=None)
        if isinstance(event, Stopped):
            self._note = ""
            self._stream.start("")
        self._draw_soon(now=not isinstance(event, CallEnded))

    def note(self, text: str) -> None:
        """Show a short message below the header; an empty one clears it."""
        self._note = text
        self._draw_soon()

    def close(self) -> None:
        """Take the panel off the screen; nothing is shown after."""
        if self._closed:
            return
        self._closed = True
        self._cancel()
        if self._listening:
            self._listening.cancel()
        self.widget.layout.close()
        self.widget.close()

    # To the page

    def _add(self, event: TextDelta) -> None:
        """Take a piece of a reply; an evaluator's reply and a critic's are counted only."""
        kind = event.kind
        visible = kind == "thinking" or event.stage in WRITING
        # Thinking is shown only while there is no text.
        if visible and not (kind == "thinking" and self._stream.kind == "text"):
            if self._stream.kind != kind:
                self._stream.start(kind)
                self._stale = True
            self._stream.add(event.text)
        self._draw_soon(now=False)

    def _listen(self) -> None:
        """Say so when no reply has come for long; the next event starts the wait again."""
        silence, self._listening = self._progress.silence, None
        if silence is None:
            return
        if silence < SILENCE:
            self._listening = self._loop.later(SILENCE - silence, self._listen)
        else:
            self._draw_soon()

    def _draw_soon(self, *, now: bool = True) -> None:
        """Bring the page up to date, at once or together with what follows."""
        self._stale = self._stale or now
        if not self._has_page:
            return
        worth = self._stale or self._stream.waiting >= _PIECE
        due = self._sent + (self._interval if worth else _PATIENCE)
        self._cancel()
        wait = due - self._clock()
        if wait > 0:
            self._pending = self._loop.later(wait, self._flush)
        if self._pending is None:
            self._flush()

    def _flush(self, *, always: bool = False, **more: Any) -> None:
        self._cancel()
        if self._closed:
            return
        message: dict[str, Any] = dict(more)
        if self._stale:
            self._stale = False
            parts = self._render()
            changed = {name: html for name, html in parts.items() if html != self._parts.get(name)}
            self._parts = parts
            message |= {"parts": changed} if changed else {}
        elif self._clock() - self._rated >= _RATE and (rate := self._rate()) != self._view.rate:
            self._rated = self._clock()
            self._view = self._view._replace(rate=rate)
            message["rate"] = rate
        if self._stream.waiting:
            message |= self._stream.take()
        if message or always:
            self._sent = self._clock()
            self.widget.send(message)

    def _send_all(self) -> None:
        """Send the whole panel, which a new page needs and the others lose nothing by."""
        self._has_page, self._stale = True, False
        self._parts = self._render()
        message: dict[str, Any] = {"page": panel_html(self._parts, self.id)}
        if self._stream.kind:
            message |= self._stream.whole()
        self._cancel()
        self._sent = self._clock()
        self.widget.send(message)

    def _render(self) -> dict[str, str]:
        run = self._run
        seconds = run.seconds if run else 0.0
        if run and labels.running(run):
            seconds += self._clock() - self._updated
        prompts, silence = self._prompts(), self._progress.silence or 0.0
        sharing = self._sharing()
        more = next_level(run, sharing.level) if run and sharing.servers else None
        sharing = sharing if more or (run and is_computed(run)) else Sharing()
        asks = sharing.asks or self._view.form == "share"
        self._view = self._view._replace(
            sharing=sharing,
            withheld=withheld(run, sharing.level) if run and asks and more else "",
            more=more or "",
            seconds=seconds,
            silence=silence if silence >= SILENCE else 0.0,
            rate=self._rate(),
            stage_seconds=self._progress.seconds,
            usual=self._progress.usual(run) if run else 0.0,
            streaming=self._stream.kind,
            waiting=tuple(self._waiting),
            has_prompts=bool(prompts),
            prompts=tuple(prompts) if self._view.form == "sent" else (),
            can_change_model=self._change_model is not None,
            models=self._choices() if self._view.form == "model" else (),
            can_switch=self._switch is not None,
            asks_to_run=self._unconfined(None),
            can_see=self._see is not None,
            unseen=tuple(self._unseen()),
            reads_behind=self._reads_behind(),
            has_tests=bool(self._add_tests and run and any(kept_suite(run))),
        )
        if self._target is not None:
            place, to_run = self._target.place, self._target.place_to_run
            self._view = self._view._replace(place=place, place_to_run=to_run)
        return panel_parts(run, self._view, self._note)

    def _choices(self) -> tuple[tuple[str, str], ...]:
        """Return the models at hand, each with its usual seconds and its price."""
        return tuple(
            (name, labels.model_facts(seconds_of(name), price))
            for name, price in self._models().items()
        )

    def _rate(self) -> str:
        rate = self._progress.rate
        return f" · {labels.count(rate, 'token')}/s" if rate else ""

    def _cancel(self) -> None:
        if self._pending:
            self._pending.cancel()
            self._pending = None

    # From the page

    def _take(self, content: Any) -> None:
        """Do what a page asks for; a failure becomes a note."""
        if self._closed:
            return
        try:
            click = _CLICK.validate_python(content)
        except ValidationError:
            self._note = _STALE_PAGE
            self._stale = True
            self._flush(always=True)
            return
        if click["action"] == "hello":
            self._send_all()
            return
        more: dict[str, Any] = {}
        try:
            more = self._act(click) or {}
        except Exception as error:  # whatever it is, a front-end would swallow it
            self._note = str(error) or type(error).__name__
        self._stale = True
        self._flush(always=True, **more)

    def _act(self, click: Click) -> dict[str, Any] | None:
        view, action = self._view, click["action"]
        self._note = ""
        match action:
            case "show":
                self._view = view._replace(iteration=click.get("iteration", click.get("number")))
            case "follow":
                self._view = view._replace(iteration=None)
            case "compare":
                self._view = view._replace(best=not view.best)
            case "sides":
                self._view = view._replace(sides=not view.sides)
            case "fold":
                name = {click.get("name", "")}
                folds = view.folds | name if click.get("open") else view.folds - name
                self._view = view._replace(folds=folds)
            case "open":
                return self._open(click.get("name", ""), click.get("finding", ""))
            case "copy":
                return {"copy": self._text(click.get("iteration"))}
            case "share":
                self._note = self._share(click.get("name", ""))
                self._view = view._replace(form="" if view.form == "share" else view.form)
            case "stop":
                self._stop()
                self._note = "Stopping…"
            case "close":
                self._close()
            case "switch":
                assert self._switch is not None, "its button is offered only then"
                self._switch()
            case "see":
                assert self._see is not None, "its button is offered only then"
                self._see(click.get("name", ""))
                self._view = view._replace(form="")
            case "unconfined":
                self._unconfined(click.get("name") == "yes")
                self._note = "This holds from the next text on."
            case "tests":
                assert self._add_tests is not None, "its button is offered only then"
                self._add_tests()
            case "needs-work" if not (click.get("words", "").strip() or click.get("sure")):
                return self._open("needs-work", "")
            case "model":
                assert self._change_model is not None, "its form is offered only then"
                self._change_model(click.get("model", "").strip(), click.get("words", "").strip())
                self._settle()
            case _:
                decision = self._decision(click)
                if self._explain and self._run and (asked := question_in(self._run, decision)):
                    self._explain(*asked)
                    self._view = view._replace(revision=view.revision + 1)
                    self._note = "Waiting for the answer…"
                    return None
                self._decide(decision)
                if isinstance(decision, Expect | Retract):
                    self._waiting.append(decision)
                else:
                    self._settle()
        return None

    def _open(self, form: str, finding: str) -> dict[str, Any] | None:
        """Open a form, or close it when it is open; return where the cursor goes."""
        before = (self._view.form, self._view.finding)
        if (form, finding) == before:
            form = finding = ""
        self._view = self._view._replace(form=form, finding=finding)
        fields = {
            "edit": "text", "finding": "problem", "criteria": "criteria", "model": "model",
            "dismiss": "reason", "needs-work": "words",
        }  # fmt: skip
        return {"focus": fields[form]} if form in fields else None

    def _settle(self) -> None:
        """Close the form whose words were taken, and empty the field for guidance."""
        view = self._view
        self._view = view._replace(form="", finding="", iteration=None, revision=view.revision + 1)

    def _decision(self, click: Click) -> Decision:
        action = click["action"]
        words = click.get("words", "").strip()
        iteration, finding = click.get("iteration"), click.get("finding", "")
        more = max(1, click.get("revisions", 1))
        match action:
            case "accept":
                place = click.get("place")
                return Accept(iteration=iteration, reason=words, destination=place)
            case "pass" | "needs-work":
                outcome = Outcome.PASS if action == "pass" else Outcome.NEEDS_IMPROVEMENT
                return Override(iteration=iteration, outcome=outcome, reason=words)
            case "continue" if iteration is None:
                return Continue(revisions=more, guidance=words)
            case "continue":
                return Branch(iteration=iteration, revisions=more, guidance=words)
            case "guide":
                return Guide(guidance=words)
            case "act" | "select":
                ids = (finding,) if action == "act" else tuple(click.get("findings", ()))
                return Select(iteration=iteration, findings=ids, guidance=words)
            case "dismiss":
                return Dismiss(findings=(finding,), reason=click.get("reason", "").strip())
            case "drop":
                return Drop(demand=click.get("name", ""))
            case "answer" if self._run is not None:
                question = next(one for one in self._run.findings if one.id == finding)
                words = question.options[click.get("choice", 1) - 1]
                return Add(finding=answer(question, words))
            case "add":
                return Add(iteration=iteration, finding=_finding(click))
            case "edit":
                return Edit(iteration=iteration, text=click.get("text", ""))
            case "revert":
                return Edit(iteration=iteration, text=self._reverted(click))
            case "expect":
                return self._expectation(click)
            case "predict":
                return predict(click.get("result", ""))
            case "retract":
                row = self._row(click)
                return Retract(call=row.call, setup=row.setup)
            case "criteria" if self._run is not None:
                return change_criteria(self._run, click.get("criteria", ""), click.get("target"))
        raise ValueError(_STALE_PAGE)

    def _expectation(self, click: Click) -> Expect:
        row, number = self._row(click), click.get("choice")
        if number is None:
            return expect(row, click.get("result", ""))
        return expect(row, document.row_choices(row)[number - 1].result if number else None)

    def _row(self, click: Click) -> Row:
        run = self._run
        number = about_number(run, self._view) if run else None
        found = rows(run, run.iterations[number]) if run and number is not None else ()
        for row in found:
            if document.row_key(row) == click.get("row"):
                return row
        raise UsageError("This result is not shown any more.")

    def _reverted(self, click: Click) -> str:
        assert self._run is not None, "a change is shown only then"
        new, old = self._text(click.get("iteration")), self._text(click.get("other"))
        return revert(old, new, self._run.task.form, click.get("hunk", -1))

    def _text(self, number: int | None) -> str:
        run = self._run
        if number is None and run:
            number = about_number(run, self._view)
        return run.iterations[number].text if run and number is not None else ""


def _finding(click: Click) -> Finding:
    return Finding(
        id=click.get("finding", ""),
        criterion=click.get("criterion", ""),
        severity=Severity(click.get("severity", Severity.BLOCKING)),
        quote=click.get("quote", ""),
        problem=click.get("problem", "").strip(),
        fix=click.get("fix", "").strip(),
        author="user",
    )


class Stream:
    """A growing text on its way to the page, each piece of it sent once."""

    def __init__(self) -> None:
        self.start("")

    def start(self, kind: str) -> None:
        """Begin a new text; pages learn of it with its first piece."""
        self.kind = kind
        self._parts: list[str] = []
        self._held, self._at, self._waiting = "", 0, list[str]()

    @property
    def waiting(self) -> int:
        """How many characters are not sent yet."""
        return sum(map(len, self._waiting))

    def add(self, text: str) -> None:
        """Take a piece, with invisible characters made visible."""
        # A line break may arrive in two pieces; the first alone looks like a control character.
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        if piece := plain(text.removesuffix("\r")):
            self._waiting.append(piece)

    def take(self) -> dict[str, Any]:
        """Return the waiting text as a message."""
        piece, at = "".join(self._waiting), self._at
        self._parts += self._waiting
        self._waiting = []
        self._at += len(piece.encode("utf-16-le")) // 2
        return {"at": at, "text": piece}

    def whole(self) -> dict[str, Any]:
        """Return the whole text as a message."""
        self.take()
        return {"at": 0, "text": "".join(self._parts)}


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
        """Run an action after some seconds; return None where there is no loop to do it."""
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


@cache
def _widget_class() -> Any:
    """Return the widget's class; anywidget is imported only when a panel is shown."""
    from anywidget import AnyWidget

    class RefinePanel(AnyWidget):
        _esm = (_HERE / "panel.js").read_text("utf-8")
        _css = style() + (_HERE / "panel.css").read_text("utf-8")

    return RefinePanel
