"""Writes runs into the journal, event by event, before anything else hears of them.

Every commit waits for the disk, and the event loop with it. So the runs of an event loop that have
an event in the same turn of it share one connection and one commit.
"""

import asyncio
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.run import Run
from ipyrefine.core.stored import VERSION
from ipyrefine.errors import UsageError
from ipyrefine.journal.tables import (
    default_path,
    open_database,
    retry_while_busy,
    sentences,
    transaction,
)

_TITLE_CHARACTERS = 120
_NAME = re.compile(r"(?!\d+$)\w[\w.-]{0,63}")
_FILE_NAME = re.compile(r".*\.(ipynb|json|md)", re.IGNORECASE)
_NAME_WORDS, _NAME_CHARACTERS = 5, 40
_OFF = ("0", "off", "no", "false")


def open_journal(
    journal: bool = True,
    *,
    name: str = "",
    settings: Mapping[str, Any] | None = None,
    origin: Run | None = None,
) -> "Recorder | None":
    """Return what writes a new run into the user's journal; None where none is kept.

    Args:
        journal: whether the run is kept; ``IPYREFINE_JOURNAL=off`` overrules it.
        name: the run's name; made from its task by default.
        settings: what resuming it needs, as for `Recorder`.
        origin: a run that it continues, as for `Recorder`.

    Raises:
        UsageError: the name cannot be used.
    """
    if not journal or os.environ.get("IPYREFINE_JOURNAL", "").lower() in _OFF:
        return None
    return Recorder(default_path(), name=name, settings=settings, origin=origin)


class Recorder:
    """Commits each event of one run; the pieces of a reply are not kept.

    Events that could not be written are written together with the next one. An event whose write
    was cut short may come again, and is written once.

    Args:
        path: the journal's file.
        name: the run's name; made from its task by default.
        settings: what resuming the run needs besides its events: JSON, and never a secret.
        origin: a run that the events continue, when it is not in the journal.
        number: the journal's number of a run to continue; None for a new one.
        sequence: the number of that run's next event.
        now: seconds since 1970.

    Attributes:
        number: the journal's number of the run; None before its first event.

    Raises:
        UsageError: the name cannot be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str = "",
        settings: Mapping[str, Any] | None = None,
        origin: Run | None = None,
        number: int | None = None,
        sequence: int = 0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.number = number
        self._path, self._now, self._origin = path, now, origin
        self._name = _check_name(name) if name else ""
        self._settings = dict(settings or {})
        self._sequence = sequence
        self._unwritten: list[Event] = []
        self._latest: Event | None = None  # the latest that was written
        self._row = number
        self._run: Run | None = None
        self._writer: Writer | None = None

    async def __call__(self, event: Event, run: Run) -> None:
        """Commit an event; other work continues while another process holds the journal.

        Args:
            event: what happened.
            run: the run with the event applied.

        Raises:
            JournalError: it could not be written; the event waits for the next one.
        """
        if isinstance(event, TextDelta):
            return
        self.postpone(event)
        if self._unwritten:
            self._run = run
            self._writer = self._writer or _shared_writer(self._path)
            with sentences(self._path, self._writer.close):
                await self._writer.write(self)
        if isinstance(event, Stopped):
            self.close()

    def postpone(self, event: Event) -> None:
        """Keep an event for the next write, unless it is kept or written already."""
        if event is not self._latest and not any(event is kept for kept in self._unwritten):
            self._unwritten.append(event)

    def close(self) -> None:
        """Close the file, unless other runs use it; a further event opens it again."""
        if self._writer is not None:
            self._writer.leave(self)
            self._writer = None

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the events that wait, inside a transaction that may still be undone."""
        assert self._run is not None, "events come with their run"
        self._row = self.number or self._insert_run(connection, self._run)
        connection.executemany(
            "INSERT INTO events (run, sequence, body, version) VALUES (?, ?, ?, ?)",
            [
                (self._row, sequence, event.model_dump_json(), VERSION)
                for sequence, event in enumerate(self._unwritten, start=self._sequence)
            ],
        )
        self._update_run(connection, self._row, self._run)

    def committed(self) -> None:
        """Take note that what was written is on disk."""
        self.number = self._row
        self._sequence += len(self._unwritten)
        self._latest = self._unwritten[-1]
        self._unwritten.clear()

    def _insert_run(self, connection: sqlite3.Connection, run: Run) -> int:
        task = run.task.text
        title = next((line.strip() for line in task.splitlines() if line.strip()), "")
        now, origin = self._now(), self._origin
        row = {
            "name": self._name or _make_name(title),
            "started": now,
            "updated": now,
            "title": title[:_TITLE_CHARACTERS],
            "model": run.setup.model,
            "iterations": 0,
            "tokens": 0,
            "settings": json.dumps(self._settings),
            "origin": origin and json.dumps({"version": VERSION, **origin.model_dump(mode="json")}),
            "task": task,
        }
        places = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO runs ({', '.join(row)}) VALUES ({places})"
        number = connection.execute(statement, row).lastrowid
        assert number is not None, "an INSERT gives its row a number"
        return number

    def _update_run(self, connection: sqlite3.Connection, number: int, run: Run) -> None:
        verdict = run.verdict
        connection.execute(
            "UPDATE runs SET updated = ?, outcome = ?, basis = ?, score = ?, stop_reason = ?, "
            "iterations = ?, tokens = ?, cost = ? WHERE id = ?",
            (
                self._now(),
                verdict.outcome.value if verdict else None,
                verdict.basis if verdict else None,
                run.score,
                run.stop_reason.value if run.stop_reason else None,
                len(run.iterations),
                run.usage.tokens,
                run.cost,
                number,
            ),
        )


class Writer:
    """A connection to a journal, open while a run uses it.

    Args:
        path: the journal's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._users = set[Recorder]()
        self._waiting: list[Recorder] = []
        self._connection: sqlite3.Connection | None = None

    async def write(self, user: Recorder) -> None:
        """Commit what a run has to write, with what other runs have in the same turn.

        Raises:
            sqlite3.Error: it could not be written.
            OSError: the journal's folder cannot be made private.
            JournalError: another version of ipyrefine wrote the journal.
        """
        self._users.add(user)
        self._waiting.append(user)
        try:
            await asyncio.sleep(0)  # the others' turn to queue theirs
            await retry_while_busy(lambda: self._commit(user))
        finally:
            if user in self._waiting:
                self._waiting.remove(user)

    def leave(self, user: Recorder) -> None:
        """Close the file when its last user leaves; the next write opens it again."""
        self._users.discard(user)
        if not self._users:
            self.close()

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _commit(self, user: Recorder) -> None:
        if user not in self._waiting:
            return  # it was in another's commit
        if self._connection is None:
            self._connection = open_database(self._path, patience=0)
        batch = list(self._waiting)
        try:
            _write(self._connection, batch)
        except sqlite3.IntegrityError:  # one of them cannot be written: not the others' fault
            batch = [user]
            _write(self._connection, batch)
        for one in batch:
            self._waiting.remove(one)
            one.committed()


def _write(connection: sqlite3.Connection, batch: list[Recorder]) -> None:
    with transaction(connection):
        for one in batch:
            one.write(connection)


_WRITERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, Writer]] = WeakKeyDictionary()


def _shared_writer(path: Path) -> Writer:
    """Return the writer of a journal that all runs of the running event loop share."""
    known = _WRITERS.setdefault(asyncio.get_running_loop(), {})
    return known.setdefault(path, Writer(path))


def _check_name(name: str) -> str:
    """Return a name that a user chose.

    Raises:
        UsageError: it could be taken for something else: a number, an option, a path, a file.
    """
    if not _NAME.fullmatch(name) or _FILE_NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} cannot name a run. Use up to 64 letters, digits, dots and dashes, "
            "starting with a letter, and no file ending."
        )
    return name


def _make_name(title: str) -> str:
    """Make a name from the first words of a task."""
    words = re.findall(r"\w+", title.lower())[:_NAME_WORDS]
    name = "-".join(words)[:_NAME_CHARACTERS].rstrip("-")
    return name if _NAME.fullmatch(name) else f"run-{name}".rstrip("-")
