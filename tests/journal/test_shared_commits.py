"""Runs of one event loop that have an event at the same time share the wait for the disk."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from refining import events_of, refinement

from ipyrefine.core.events import Event, Stopped
from ipyrefine.core.reducer import replay
from ipyrefine.errors import JournalError
from ipyrefine.journal import tables, writer
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import Recorder

NAMES = ("one", "two", "three")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def recorders(path: Path) -> Iterator[list[Recorder]]:
    made = [Recorder(path, name=name) for name in NAMES]
    yield made
    for recorder in made:
        recorder.close()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The connections that recorders have opened."""
    opened: list[sqlite3.Connection] = []

    def open_database(path: Path, patience: float) -> sqlite3.Connection:
        opened.append(tables.open_database(path, patience))
        return opened[-1]

    monkeypatch.setattr(writer, "open_database", open_database)
    return opened


async def all_at_once(recorders: list[Recorder], events: list[Event]) -> list[object]:
    """Give each recorder the latest event, in one turn of the event loop."""
    writes = (recorder(events[-1], replay(events)) for recorder in recorders)
    return list(await asyncio.gather(*writes, return_exceptions=True))


async def test_events_that_come_at_once_are_committed_together(
    path: Path, recorders: list[Recorder], connections: list[sqlite3.Connection]
) -> None:
    events = await events_of(refinement())
    await all_at_once(recorders, events[:1])
    statements: list[str] = []
    [connection] = connections
    connection.set_trace_callback(statements.append)
    await all_at_once(recorders, events[:2])
    assert statements.count("COMMIT") == 1
    assert sum("INSERT INTO events" in statement for statement in statements) == len(NAMES)
    for name in NAMES:
        assert Journal(path).get(name).run == replay(events[:2])


async def test_a_run_that_was_erased_fails_alone(path: Path, recorders: list[Recorder]) -> None:
    events = await events_of(refinement())
    await all_at_once(recorders, events[:1])
    Journal(path).forget("two")
    first, second, third = await all_at_once(recorders, events[:2])
    assert first is third is None
    assert isinstance(second, JournalError)
    assert "erased" in str(second)
    assert {run.name for run in Journal(path).runs()} == {"one", "three"}
    assert Journal(path).get("three").sequence == 2


async def test_nothing_is_committed_together_that_is_not_committed(
    path: Path, recorders: list[Recorder], connections: list[sqlite3.Connection]
) -> None:
    """A full disk fails all of them, and each writes what it missed with its next event."""
    events = await events_of(refinement())
    await all_at_once(recorders, events[:1])
    [connection] = connections
    connection.execute("PRAGMA query_only = ON")
    assert all(isinstance(e, JournalError) for e in await all_at_once(recorders, events[:2]))
    connection.execute("PRAGMA query_only = OFF")
    assert await all_at_once(recorders, events[:3]) == [None] * len(NAMES)
    for name in NAMES:
        assert Journal(path).get(name).run == replay(events[:3])


async def test_an_event_another_commit_took_along_before_a_cancel_is_written_once(
    path: Path, recorders: list[Recorder], connections: list[sqlite3.Connection]
) -> None:
    events = await events_of(refinement())
    await all_at_once(recorders, events[:1])
    first, second, _ = recorders
    run = replay(events[:2])
    leading = asyncio.ensure_future(first(events[1], run))
    cut_short = asyncio.ensure_future(second(events[1], run))
    await asyncio.sleep(0)  # both have handed theirs in
    assert Journal(path).get("two").sequence == 1
    [connection] = connections
    connection.set_trace_callback(lambda sql: sql == "COMMIT" and cut_short.cancel())
    await leading
    connection.set_trace_callback(None)
    with pytest.raises(asyncio.CancelledError):
        await cut_short
    assert Journal(path).get("two").sequence == 2
    await second(events[1], run)
    await second(events[2], replay(events[:3]))
    assert Journal(path).get("two").run == replay(events[:3])


async def test_the_file_is_open_as_long_as_a_run_writes_to_it(
    recorders: list[Recorder], connections: list[sqlite3.Connection]
) -> None:
    events = await events_of(refinement())
    await all_at_once(recorders, events[:1])
    [connection] = connections
    for recorder in recorders[:2]:
        recorder.close()
    connection.execute("SELECT 1")
    assert isinstance(events[-1], Stopped)
    await recorders[2](events[-1], replay(events))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
