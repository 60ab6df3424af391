"""The driver of one run: starts, stops and continues it as a person decides."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ipyrefine.core.decisions import Decision
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event
from ipyrefine.core.model import StopReason
from ipyrefine.core.ports import Consumer, Model
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.journal.writer import Recorder
from ipyrefine.render import say

_Work = Callable[..., Coroutine[Any, Any, Run]]  # a refinement's, which displays hear of


class Session:
    """Runs a refinement to its stop, and continues after each decision of a user.

    Args:
        refinement: what runs.
        displays: each called with every event and the run after it.
        journal: stores every event before a display hears of it; None for a run that is not kept.

    Attributes:
        interrupted: whether the latest stop came from outside (Interrupt, Ctrl-C).
    """

    def __init__(
        self,
        refinement: Refinement,
        displays: list[Consumer],
        journal: Recorder | None = None,
    ) -> None:
        self.refinement = refinement
        self.displays = displays
        self.journal = journal
        self.interrupted = False
        self._stop_requested = False
        self._next: tuple[Refinement, Recorder | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._aside: asyncio.Task[Run] | None = None  # what is done next to the stopped run

    @property
    def run(self) -> Run:
        """The run so far."""
        return self.refinement.state

    @property
    def running(self) -> bool:
        """Whether the loop runs at the moment."""
        return self._task is not None and not self._task.done()

    async def go(self) -> Run:
        """Run to the next stop; an interrupt ends it with the best text kept."""
        if not self.running:
            self.start()
        assert self._task is not None
        with _interrupt_cancels(self._task):
            await self._task
        return self.run

    def start(self) -> None:
        """Start the loop as a task of the running event loop."""
        self._start(self.refinement.run)

    def stop(self) -> None:
        """Stop now, or let a pause be the end; the best text so far is kept."""
        if self._aside:
            self._aside.cancel()
        if self.running and self._task:
            self._stop_requested = True
            self._task.cancel()
        elif self.run.stop_reason is StopReason.PAUSED:
            self._start(self.refinement.end)

    def restart(self, refinement: Refinement, journal: Recorder | None) -> None:
        """Stop the run and run another one; whoever waits for the first waits for the second."""
        if not self.running:
            self.refinement, self.journal = refinement, journal
            self.start()
            return
        self._next = refinement, journal
        if not self._stop_requested:
            self.stop()

    async def explain(self, number: int, question: str) -> Run:
        """Ask about a text of the run, which stays stopped; any further decision ends the call.

        Raises:
            UsageError: the run goes on at the moment, or there is no question or no budget.
            ModelError: the model failed, or gave no answer.
        """
        if self.running or (self._aside and not self._aside.done()):
            raise UsageError("Stop the run first, then ask about its text.")
        return await self._do_aside(self.refinement.explain, number, question)

    async def add(self, event: Event) -> Run:
        """Add what happened to the accepted text, once nothing runs."""
        await self.settle()
        return await self._do_aside(self.refinement.add, event)

    async def settle(self) -> None:
        """Wait until nothing runs, neither the loop nor what is done next to it."""
        if self.running and self._task:
            await asyncio.wait([self._task])
        await self._finish_aside()

    async def _finish_aside(self) -> None:
        if self._aside and not self._aside.done():
            await asyncio.wait([self._aside])

    def decide(self, decision: Decision) -> None:
        """Take a decision: at once if it ends the run, else before the next stage.

        Raises:
            UsageError: it cannot be carried out; nothing has changed.
        """
        self.refinement.decide(decision)
        if not self.running:
            self.start()
        elif decision.settles:
            self.stop()

    async def _do_aside(self, work: _Work, *what: Any) -> Run:
        self._aside = asyncio.ensure_future(work(*what, *self.displays, journal=self.journal))
        return await self._aside

    def _start(self, work: _Work) -> None:
        if self._aside:
            self._aside.cancel()
        self.interrupted = self._stop_requested = False
        self._next = None
        self._task = asyncio.ensure_future(self._drive(work))

    async def _drive(self, work: _Work) -> None:
        try:
            await self._finish_aside()
            await work(*self.displays, journal=self.journal)
            # Those made while the stop was shown.
            while self.refinement.inbox and self.refinement.error is None:
                await self.refinement.run(*self.displays, journal=self.journal)
        except asyncio.CancelledError:
            # The one place where a cancel ends: the loop has stopped by then, its best text kept.
            self.interrupted = not self._stop_requested
            if self._task:
                self._task.uncancel()
        if self._next and not self.interrupted:
            (self.refinement, self.journal), self._next = self._next, None
            self._stop_requested = False
            await self._drive(self.refinement.run)


@contextlib.contextmanager
def _interrupt_cancels(task: "asyncio.Task[Any]") -> Iterator[None]:
    """Let an interrupt cancel a task at once, however quiet the event loop is.

    In a terminal it would tear down the event loop's call. A kernel's own handler cancels the
    cell without waking the loop, which may sleep until a silent server's next byte.
    """
    loop = asyncio.get_running_loop()
    on_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if on_main else None
    if before in (None, signal.SIG_IGN):
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(task.cancel))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def sent_prompts(model: Model) -> list[tuple[str, str]]:
    """Return the latest requests to the models of a run as title and text, the earliest first.

    Args:
        model: one of them.
    """
    secrets = getattr(model, "secrets", None)
    return [
        (
            f"{number} · {say.STAGES.get(request.purpose, request.purpose)} · {name}",
            "\n\n".join(f"[{one.role}]\n{one.content}" for one in request.messages),
        )
        for number, name, request in (secrets.sent if secrets else ())
    ]
