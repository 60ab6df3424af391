"""The live panel: one widget that shows a run and takes what the user decides.

Python renders the HTML of each part (`render.html`); the page, `panel.js`, puts it in place and
sends every click back as one message. Nothing of the state is a trait: a page that opens says
hello and is sent the whole of it, and from then on what changed. Messages to the page:

- ``{page}``: the whole panel;
- ``{parts}``: the HTML of the parts that changed, by name;
- ``{at, text}``: a piece of the text that is written, and how many UTF-16 units stand before it; a
  page that has missed a piece says hello again;
- ``{copy}``: a text for the clipboard; ``{focus}``: the form to type in;
- ``{origin}``: the cell that the text is from, and what it would change there.
"""

import asyncio
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from ipyrefine.core.actions import ACTIONS, Fields, decision
from ipyrefine.core.decisions import Decision, Expect, Retract
from ipyrefine.core.events import (
    CallEnded,
    Decided,
    Event,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
)
from ipyrefine.core.ports import Clock
from ipyrefine.core.run import Run
from ipyrefine.errors import describe
from ipyrefine.notebook.waiting import running_loop
from ipyrefine.render import say
from ipyrefine.render.escape import plain
from ipyrefine.render.html import NOTHING, View, about_number, panel_html, panel_parts, style
from ipyrefine.render.progress import SILENCE, WRITING, Progress
from ipyrefine.session.commands import question_in

_HERE = Path(__file__).parent
_PIECE, _PATIENCE = 80, 0.25  # characters that are worth a message, and seconds they may wait
_STALE_PAGE = "This page doesn't fit the kernel's ipyrefine. Reload it."


class Host(Protocol):
    """What stands behind a panel: a run's cell, or something that can do less."""

    def decide(self, decision: Decision) -> None:
        """Take a decision; where there is no run, there is none."""
        return None

    def act(self, action: str, fields: Fields) -> str | Awaitable[str | None]:
        """Do one of `ACTIONS` that is no decision; return what there is to say, now or later."""
        return ""

    def offers(self, form: str) -> dict[str, Any]:
        """Return what can be done now, as `NOTHING` has it, and which form is open."""
        return {}

    def origin(self, number: int | None) -> dict[str, Any] | None:
        """Return the cell that the texts are from, and what one of them would change there."""
        return None


class Panel:
    """A run on screen; a consumer of events.

    A failing callback becomes a note in the panel, as a front-end would swallow the error.

    Args:
        host: does what is clicked.
        interval: seconds between two messages to the page, at least.
        clock: monotonic seconds.
        widget: what shows it; a new widget by default.

    Attributes:
        id: what the record next to the panel knows it by.
        widget: the widget to display.
    """

    def __init__(
        self,
        host: Host,
        *,
        interval: float = 0.1,
        clock: Clock = time.monotonic,
        widget: Any = None,
    ) -> None:
        self._host = host
        self._interval, self._clock = interval, clock
        self._run: Run | None = None
        self._view = View()
        self._note = ""
        self._waiting: list[Expect | Retract] = []  # until the run takes them up
        self._closed = self._has_page = self._stale = False
        self._parts: dict[str, str] = {}
        self._origin: dict[str, Any] | None = None  # what it was at the last stop
        self._told: dict[str, Any] | None = None  # what the pages know of it
        self._sent = clock()
        self._pending: asyncio.Handle | None = None
        self._listening: asyncio.Handle | None = None
        self._loop = Loop()
        self._stream, self._progress = Stream(), Progress(clock)
        self.id = uuid.uuid4().hex
        self.widget: Any = widget or _widget_class()()
        self.widget.on_msg(
            lambda _widget, content, _buffers: self._loop.hand_over(lambda: self._take(content))
        )

    def show(self, event: Event, run: Run) -> None:
        """Show an event."""
        if self._closed:
            return
        self._loop.attach()
        self._stale = self._stale or (self._progress.silence or 0.0) >= SILENCE
        self._progress.take(event)
        if self._listening is None:
            self._listening = self._loop.later(SILENCE, self._listen)
        if isinstance(event, TextDelta):
            self._add(event)
            return
        self._run = run
        if isinstance(event, RunStarted):  # perhaps not the first, where the user switched
            self._view = View()
            self._origin = self._host.origin(None)
            self._waiting.clear()
        if isinstance(event, Decided) and event.decision in self._waiting:
            self._waiting.remove(event.decision)
        if isinstance(event, StageStarted):
            self._stream.start("")
            if event.stage in WRITING:
                self._view = self._view._replace(iteration=None)
        if isinstance(event, Stopped):
            self._note = ""
            self._stream.start("")
        self.draw(now=not isinstance(event, CallEnded))

    def note(self, text: str) -> None:
        """Show a short message below the header; an empty one clears it."""
        self._note = text
        self.draw()

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
        self.draw(now=False)

    def _listen(self) -> None:
        """Say so when no reply has come for long; the next event starts the wait again."""
        silence, self._listening = self._progress.silence, None
        if silence is None:
            return
        if silence < SILENCE:
            self._listening = self._loop.later(SILENCE - silence, self._listen)
        else:
            self.draw()

    def draw(self, *, now: bool = True) -> None:
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

    def _flush(self, *, page: bool = False, always: bool = False, **more: Any) -> None:
        """Send what is new, or the whole `page`, by which the pages that are open lose nothing."""
        self._cancel()
        if self._closed:
            return
        message = dict(more)
        if self._stale or page:
            self._stale, before = False, self._parts
            self._parts = self._render()
            changed = {name: html for name, html in self._parts.items() if html != before.get(name)}
            if page:
                message["page"] = panel_html(self._parts, self.id)
            elif changed:
                message["parts"] = changed
            if page or self._told != self._origin:
                message["origin"] = self._told = self._origin
        if self._stream.waiting or (page and self._stream.kind):
            message |= self._stream.take(whole=page)
        if message or always:
            self._sent = self._clock()
            self.widget.send(message)

    def _render(self) -> dict[str, str]:
        run = self._run
        if run and not say.running(run):
            self._origin = self._host.origin(about_number(run, self._view))
        offers = self._host.offers(self._view.form)
        self._view = self._view._replace(
            progress=self._progress,
            streaming=self._stream.kind,
            waiting=tuple(self._waiting),
            form=offers.get("form", self._view.form),
            offers={**NOTHING, **offers},
        )
        return panel_parts(run, self._view, self._note)

    def _cancel(self) -> None:
        if self._pending:
            self._pending.cancel()
            self._pending = None

    # From the page

    def _take(self, content: Any) -> None:
        """Do what a page asks for; a failure becomes a note."""
        if self._closed:
            return
        more = {}
        try:
            match content:
                case {"action": "hello"}:
                    self._has_page = True
                    self._flush(page=True)
                    return
                case {"action": str(action), **rest}:
                    fields: Any = rest.get("fields", {})
                    self._note = ""
                    more = self._act(action, fields) or {}
                case _:
                    self._note = _STALE_PAGE
        except ValidationError:
            self._note = _STALE_PAGE
        except Exception as error:  # whatever it is, a front-end would swallow it
            self._note = str(error) or type(error).__name__
        self._stale = True
        self._flush(always=True, **more)

    def _act(self, action: str, fields: Fields) -> dict[str, Any] | None:
        view, name = self._view, fields.get("name", "")
        match action:
            case "show":
                number = fields.get("iteration")
                self._view = view._replace(iteration=None if number is None else int(number))
            case "fold":
                folds = view.folds | {name} if fields.get("open") else view.folds - {name}
                self._view = view._replace(folds=folds)
            case "open":
                return self._open(name, fields.get("finding", ""))
            case "copy":
                return {"copy": self._text(fields.get("iteration"))}
            case _ if action not in ACTIONS:
                raise ValueError(_STALE_PAGE)
            case _ if ACTIONS[action].record is None:
                self._perform(action, fields)
                if action == "model":
                    self._settle()
                elif view.form == action:
                    self._view = self._view._replace(form="")
            case _ if self._run:
                self._decide(self._run, action, fields)
        return None

    def _decide(self, run: Run, action: str, fields: Fields) -> None:
        taken = decision(run, action, {**fields, "shown": about_number(run, self._view)})
        if asked := question_in(run, taken):
            self._note = "Waiting for the answer…"
            self._perform("ask", dict(zip(("words", "iteration"), asked, strict=True)))
            self._view = self._view._replace(revision=self._view.revision + 1)
            return
        self._host.decide(taken)
        if isinstance(taken, Expect | Retract):
            self._waiting.append(taken)
        else:
            self._settle()

    def _perform(self, action: str, fields: Fields) -> None:
        said = self._host.act(action, fields)
        if isinstance(said, str):
            self._note = said or self._note
        else:
            self._clicked = asyncio.ensure_future(self._see_to_end(said))

    async def _see_to_end(self, action: Awaitable[str | None]) -> None:
        """Wait for what a click asked for, and show the result, or why it failed."""
        note = ""
        try:
            note = await action or ""
        except asyncio.CancelledError:  # by a decision, or a stop
            pass
        except Exception as error:  # nobody awaits this
            note = str(error) or describe(error)
        self.note(note)

    def _open(self, form: str, finding: str) -> dict[str, Any]:
        """Open a form, or close it when it is open; return where the cursor goes."""
        if (form, finding) == (self._view.form, self._view.finding):
            form = finding = ""
        self._view = self._view._replace(form=form, finding=finding)
        return {"focus": form}

    def _settle(self) -> None:
        """Close the form whose words were taken, and empty the field for guidance."""
        view = self._view
        self._view = view._replace(form="", finding="", iteration=None, revision=view.revision + 1)

    def _text(self, number: int | None) -> str:
        run = self._run
        if number is None and run:
            number = about_number(run, self._view)
        return run.iterations[number].text if run and number is not None else ""


class Stream:
    """A growing text on its way to the page, each piece of it sent once."""

    def __init__(self) -> None:
        self.start("")

    def start(self, kind: str) -> None:
        """Begin a new text; pages learn of it with its first piece."""
        self.kind = kind
        self._text = self._held = ""
        self._sent = 0

    @property
    def waiting(self) -> int:
        """How many characters are not sent yet."""
        return len(self._text) - self._sent

    def add(self, text: str) -> None:
        """Take a piece, with invisible characters made visible."""
        # A line break may arrive in two pieces; the first alone looks like a control character.
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self._text += plain(text.removesuffix("\r"))

    def take(self, *, whole: bool = False) -> dict[str, Any]:
        """Return the waiting text, or the whole of it, as a message."""
        start, self._sent = 0 if whole else self._sent, len(self._text)
        at = len(self._text[:start].encode("utf-16-le")) // 2
        return {"at": at, "text": self._text[start:]}


class Loop:
    """The event loop and the thread that a panel is drawn on."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self.attach()

    def attach(self) -> None:
        """Make the running loop and this thread the panel's from now on."""
        self._thread = threading.get_ident()
        # In a plain shell between two runs the loop of the last one may still live.
        self._loop = running_loop() or self._loop

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


def page_code() -> tuple[str, str]:
    """Return the script and the style sheet of the page's half."""
    sheets = [(_HERE / name).read_text("utf-8") for name in ("panel.css", "setup.css")]
    return (_HERE / "panel.js").read_text("utf-8"), "".join([style(), *sheets])


@cache
def _widget_class() -> Any:
    """Return the widget's class; anywidget is imported only when a panel is shown."""
    from anywidget import AnyWidget

    class RefinePanel(AnyWidget):
        _esm, _css = page_code()

    return RefinePanel
