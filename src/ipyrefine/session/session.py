"""One refinement as it runs in a shell: drives the engine, feeds the displays, takes decisions."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, Stopped
from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Decision, Run, StopReason
from ipyrefine.errors import JournalError
from ipyrefine.journal.recorder import Recorder

Show = Callable[[Event, Run], None]


class Session:
    """Runs a refinement to its stop, and on again after each of the user's decisions.

    Args:
        refinement: what runs.
        shows: displays, each called with every event and the run after it.
        journal: keeps every event before a display hears of it; None for a run that leaves none.

    Attributes:
        interrupted: whether the latest stop came from outside (Interrupt, Ctrl-C).
    """

    def __init__(
        self, refinement: Refinement, shows: list[Show], journal: Recorder | None = None
    ) -> None:
        self.refinement = refinement
        self.shows = shows
        self.journal = journal
        self.interrupted = False
        self._asked = False
        self._unshown: Event | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def run(self) -> Run:
        """The run as far as it got."""
        return self.refinement.run

    @property
    def running(self) -> bool:
        """Whether the loop runs at the moment."""
        return self._task is not None and not self._task.done()

    async def go(self) -> Run:
        """Run to the next stop; an interrupt ends it with the best text kept."""
        if not self.running:
            self.start()
        assert self._task is not None
        with _ctrl_c_cancels(self._task):
            await self._task
        return self.run

    def start(self) -> None:
        """Start the loop as a task of the running event loop."""
        self._start(self._run_to_stop)

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        self.interrupted, self._asked, self._unshown = False, False, None
        self._task = asyncio.ensure_future(self._drive(work))

    def stop(self) -> None:
        """Stop now; the call under way is cancelled and the best text kept."""
        if self.running and self._task:
            self._asked = True
            self._task.cancel()

    def end_pause(self) -> None:
        """Let a run that waits for the user be over, with the best text kept."""
        if not self.running and self.run.stop_reason is StopReason.PAUSED:
            self._start(self._end)

    async def settle(self) -> None:
        """Wait for what runs to end, if anything does."""
        if self.running and self._task:
            await asyncio.wait([self._task])

    def decide(self, decision: Decision) -> None:
        """Take a decision: at once if it ends the run, else before the next stage."""
        self.refinement.decide(decision)
        if not self.running:
            self.start()
        elif decision.kind == "accept" or decision.outcome is Outcome.PASS:
            self.stop()

    async def _drive(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except JournalError as error:
            # What cannot be kept is shown all the same: the best text has to reach the user.
            self._show_unwritten(self.refinement.fail(error))
        finally:
            if self.journal:
                self.journal.close()

    async def _run_to_stop(self) -> None:
        try:
            async with aclosing(aiter(self.refinement)) as events:  # type: ignore[type-var]
                async for event in events:
                    await self._publish(event)
        except asyncio.CancelledError:
            # The one place where a cancelled run ends: its best text outlives it.
            self.interrupted = not self._asked
            await self._end()

    async def _end(self) -> None:
        """Publish what the cancel kept from being published, then what ends the run."""
        late = [] if self._unshown is None else [self._unshown]
        if not late or not isinstance(late[0], Stopped):
            late += self.refinement.close()
        for number, event in enumerate(late):
            try:
                await self._publish(event)
            except asyncio.CancelledError:  # told twice: now not even the journal is waited for
                for unwritten in late[number:]:
                    self._show_unwritten(unwritten)
                return

    async def _publish(self, event: Event) -> None:
        self._unshown = event
        if self.journal:
            await self.journal(event, self.run)
        self._unshown = None
        self._show(event)

    def _show_unwritten(self, event: Event) -> None:
        if self.journal:
            self.journal.miss(event)
        self._show(event)

    def _show(self, event: Event) -> None:
        for show in self.shows:
            show(event, self.run)


@contextlib.contextmanager
def _ctrl_c_cancels(task: "asyncio.Task[Any]") -> Iterator[None]:
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
