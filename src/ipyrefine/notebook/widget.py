"""A run's panel as a widget, for layouts of a notebook's own: `ipyrefine.Panel`."""

from collections.abc import Awaitable, Callable
from typing import Any

from ipywidgets import VBox

from ipyrefine import api
from ipyrefine.core.actions import Fields
from ipyrefine.core.decisions import Decision
from ipyrefine.core.events import Event, Stopped
from ipyrefine.core.model import StopReason
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError, describe
from ipyrefine.journal.writer import open_journal
from ipyrefine.notebook.panel import Host
from ipyrefine.notebook.panel import Panel as _View
from ipyrefine.session.session import Session


class Panel(VBox):  # type: ignore[misc]
    """Refine a task in a panel that fits wherever a widget does.

    Args:
        task: the task in words.
        on_accept: called with the text that the user accepts.
        journal: whether the run is kept in the journal.
        name: its name there; made from the task by default.
        **options: the options and limits of `ipyrefine.refine`.

    Raises:
        UsageError: an option cannot be used.
        NoModel: no model is configured.
    """

    def __init__(
        self,
        task: str,
        *,
        on_accept: Callable[[str], Any] | None = None,
        journal: bool = True,
        name: str = "",
        **options: Any,
    ) -> None:
        self._panel: Any = None  # a widget that could not be made is closed, too
        api.require_kinds(on_accept=on_accept, journal=journal, name=name)
        super().__init__()
        self._on_accept = on_accept
        self._session = Session(api.build(task, **options), [], open_journal(journal, name=name))
        self._panel = _View(_Host(self._session, self.close))
        self._session.displays += [self._panel.show, self._update]
        self.children = (self._panel.widget,)

    @property
    def run(self) -> Run:
        """The run so far; its `text` is the best one."""
        return self._session.run

    def start(self) -> None:
        """Start the loop; the kernel stays free."""
        self._session.start()

    def decide(self, decision: Decision) -> None:
        """Take a decision, as a click does.

        Raises:
            UsageError: it cannot be carried out; nothing has changed.
        """
        self._session.decide(decision)

    async def wait(self) -> Run:
        """Wait until the loop stops, and return the run."""
        await self._session.settle()
        return self.run

    def close(self) -> None:
        """Stop the loop and remove the panel from the page."""
        if self._panel:
            if self._session.running:
                self._session.stop()
            self._panel.close()
        super().close()

    def _update(self, event: Event, run: Run) -> None:
        accepted = isinstance(event, Stopped) and event.reason is StopReason.ACCEPTED
        if accepted and self._on_accept:
            try:
                self._on_accept(run.text)
            except Exception as error:  # a front-end would swallow it
                self._panel.note(describe(error))


class _Host(Host):
    """What a panel outside of a cell can do."""

    def __init__(self, session: Session, close: Callable[[], None]) -> None:
        self._session, self._close = session, close

    def decide(self, decision: Decision) -> None:
        self._session.decide(decision)

    def act(self, action: str, fields: Fields) -> str | Awaitable[str | None]:
        match action:
            case "stop":
                self._session.stop()
                return "Stopping…"
            case "close":
                self._close()
            case "ask":
                return self._explain(fields["words"], fields["iteration"])
            case _:
                raise UsageError("This works in a %%refine cell only.")
        return ""

    async def _explain(self, question: str, number: int) -> str:
        await self._session.explain(number, question)
        return "Nothing was revised. Leave out the question mark to have it revised."

    def offers(self, form: str) -> dict[str, Any]:
        return {"place": "none"}
