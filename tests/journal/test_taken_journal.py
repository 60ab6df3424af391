"""While another process writes to the journal, the kernel goes on and nothing is shown early."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import greeting as refinement
from kit import stored_events as events_of
from kit import turns

from ipyrefine.core.events import Event, TextDelta
from ipyrefine.core.model import StopReason
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.journal import writer
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import Recorder
from ipyrefine.session.session import Session


class Other:
    """Another process's connection, which can take the journal for itself."""

    def __init__(self, path: Path) -> None:
        self.path, self.has_it = path, False
        self.connection = writer.connect(path)

    def take(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.has_it = True

    def give_back(self) -> None:
        self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Other]:
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0)
    other = Other(tmp_path / "runs.db")
    yield other
    other.close()


class Watched(Recorder):
    """A recorder that tells which event it is writing."""

    event: Event | None = None

    async def __call__(self, event: Event, run: Run) -> None:
        self.event = event
        await super().__call__(event, run)
        self.event = None


class Display:
    """A display; once it has shown a kind of event, the other process takes the journal."""

    def __init__(self, other: Other, kind: str, iteration: int | None) -> None:
        self.events: list[Event] = []
        self.other, self._after = other, (kind, iteration)

    def __call__(self, event: Event, _: object) -> None:
        if not isinstance(event, TextDelta):
            self.events.append(event)
        if (event.type, getattr(event, "iteration", None)) == self._after:
            self.other.take()


def session_with(other: Other, kind: str, iteration: int | None = None) -> tuple[Session, Display]:
    display = Display(other, kind, iteration)
    return Session(refinement(), [display], Watched(other.path)), display


async def event_in_hand(session: Session, display: Display) -> Event:
    """Wait until the session has an event that it may not show yet, and return it."""
    journal = session.journal
    assert isinstance(journal, Watched)
    async with asyncio.timeout(5):
        # What is waited for sets no event.
        while journal.event is None or not display.other.has_it:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert journal.event not in display.events
    return journal.event


@pytest.mark.parametrize("written", [0, 1])
async def test_an_event_waits_for_its_commit_and_the_event_loop_does_not(other, written):
    events = await events_of(refinement())
    recorder = Recorder(other.path)
    if written:
        await recorder(events[0], replay(events[:1]))
    other.take()
    waiting = asyncio.ensure_future(recorder(events[written], replay(events[: written + 1])))
    await turns()
    assert not waiting.done()
    assert len(Journal(other.path).runs()) == written
    other.give_back()
    await waiting
    assert Journal(other.path).get().run == replay(events[: written + 1])
    recorder.close()


async def test_a_run_stopped_while_its_journal_is_taken_is_shown_and_kept_whole(other):
    session, display = session_with(other, "draft_ready")
    session.start()
    await event_in_hand(session, display)
    session.stop()
    await turns()
    other.give_back()
    await session.go()
    assert session.run.stop_reason is StopReason.CANCELLED
    assert session.run.text == "Version 0"
    assert Journal(other.path).get().run == session.run == replay(display.events)


async def test_a_second_interrupt_waits_for_nothing_and_still_shows_the_best(other):
    session, display = session_with(other, "draft_ready")
    driving = asyncio.ensure_future(session.go())
    await event_in_hand(session, display)
    driving.cancel()
    await turns()
    assert not driving.done()
    driving.cancel()
    async with asyncio.timeout(1):
        await driving
    assert session.interrupted
    assert display.events[-1].type == "stopped"
    assert session.run.text == "Version 0"
    other.give_back()


async def test_a_journal_that_stays_taken_ends_the_run_with_its_text(other, monkeypatch):
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.05)
    session, display = session_with(other, "draft_ready")
    await session.go()
    assert session.run.stop_reason is StopReason.FAILED
    assert "--set journal=no" in session.run.message
    assert session.run.text == "Version 0"
    assert display.events[-1].type == "stopped"
    other.give_back()


async def test_each_commit_is_told_to_reach_the_disk(other):
    """2 is FULL: the write-ahead log is synced at every commit."""
    assert other.connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert other.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
