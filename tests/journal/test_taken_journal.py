"""While another process writes to the journal, the kernel goes on and nothing is shown early."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from refining import events_of, refinement

from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.fold import fold
from ipyrefine.core.runs import StopReason
from ipyrefine.journal import schema
from ipyrefine.journal.recorder import Recorder
from ipyrefine.journal.store import Journal
from ipyrefine.session.session import Session


class Other:
    """Another process's connection, which can take the journal for itself."""

    def __init__(self, path: Path) -> None:
        self.path, self.has_it = path, False
        self._connection = schema.connect(path)

    def take(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self.has_it = True

    def give_back(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    other = Other(tmp_path / "runs.db")
    yield other
    other.close()


class Shown:
    """A display; once it has shown a kind of event, the other process takes the journal."""

    def __init__(self, other: Other, kind: str, iteration: int | None) -> None:
        self.events: list[Event] = []
        self.other, self._after = other, (kind, iteration)

    def __call__(self, event: Event, _: object) -> None:
        if not isinstance(event, TextDelta):
            self.events.append(event)
        if (event.type, getattr(event, "iteration", None)) == self._after:
            self.other.take()


def session_with(other: Other, kind: str, iteration: int | None = None) -> tuple[Session, Shown]:
    shown = Shown(other, kind, iteration)
    return Session(refinement(), [shown], Recorder(other.path)), shown


async def waits_for_the_journal(session: Session, shown: Shown) -> None:
    """Wait until the session has an event in hand that it may not show yet."""
    async with asyncio.timeout(5):
        # What is waited for sets no event.
        while session._unshown is None or not shown.other.has_it:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert session._unshown not in shown.events


async def test_an_event_waits_for_its_commit_and_the_event_loop_does_not(other: Other) -> None:
    events = await events_of(refinement())
    recorder = Recorder(other.path)
    await recorder(events[0], fold(events[:1]))
    other.take()
    waiting = asyncio.ensure_future(recorder(events[1], fold(events[:2])))
    for _ in range(50):
        await asyncio.sleep(0.001)
        assert not waiting.done()
        assert Journal(other.path).get().sequence == 1
    other.give_back()
    await waiting
    assert Journal(other.path).get().sequence == 2
    recorder.close()


async def test_a_journal_that_is_taken_before_the_first_event_is_waited_for_too(
    other: Other,
) -> None:
    events = await events_of(refinement())
    recorder = Recorder(other.path)
    other.take()
    waiting = asyncio.ensure_future(recorder(events[0], fold(events[:1])))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    other.give_back()
    await waiting
    recorder.close()
    assert Journal(other.path).get().sequence == 1


async def test_a_run_stopped_while_its_journal_is_taken_is_shown_and_kept_whole(
    other: Other,
) -> None:
    session, shown = session_with(other, "draft_ready")
    session.start()
    await waits_for_the_journal(session, shown)
    session.stop()
    await asyncio.sleep(0.03)
    other.give_back()
    await session.go()
    assert session.run.stop_reason is StopReason.CANCELLED
    assert session.run.text == "Version 0"
    assert Journal(other.path).get().run == session.run == fold(shown.events)


async def test_a_stop_that_comes_after_the_run_s_own_changes_nothing(other: Other) -> None:
    session, shown = session_with(other, "best_changed", 1)
    session.start()
    await waits_for_the_journal(session, shown)
    assert isinstance(session._unshown, Stopped)
    session.stop()
    await asyncio.sleep(0.03)
    other.give_back()
    await session._task  # type: ignore[misc]
    assert session.run.stop_reason is StopReason.PASSED
    assert Journal(other.path).get().run == session.run == fold(shown.events)


async def test_a_second_interrupt_waits_for_nothing_and_still_shows_the_best(
    other: Other,
) -> None:
    session, shown = session_with(other, "draft_ready")
    driving = asyncio.ensure_future(session.go())
    await waits_for_the_journal(session, shown)
    driving.cancel()
    await asyncio.sleep(0.03)
    assert not driving.done()
    driving.cancel()
    async with asyncio.timeout(1):
        await driving
    assert session.interrupted
    assert shown.events[-1].type == "stopped"
    assert session.run.text == "Version 0"
    other.give_back()


async def test_a_journal_that_stays_taken_ends_the_run_with_its_text(
    other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.05)
    session, shown = session_with(other, "draft_ready")
    await session.go()
    assert session.run.stop_reason is StopReason.FAILED
    assert "--no-journal" in session.run.message
    assert session.run.text == "Version 0"
    assert shown.events[-1].type == "stopped"
    other.give_back()


async def test_each_commit_is_told_to_reach_the_disk(other: Other) -> None:
    """2 is FULL: the write-ahead log is synced at every commit."""
    assert other._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert other._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
