"""The journal's tables, their versions, and how a connection to them is made."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ipyrefine.errors import JournalError
from ipyrefine.journal.files import make_private

BUSY_SECONDS = 10.0
_TRY_AGAIN_SECONDS = 0.01
_TAKEN = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_MEANWHILE = {
    False: "This run goes on in another kernel, which has written to the journal meanwhile: "
    "stop it there, then `%refine resume` it here.",
    True: "This run was erased from the journal while it went on: start it anew to have it there.",
}

# One tuple of statements for each version; a change of the tables is a new tuple at the end.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # `task` is last: a listing then never reads its overflow pages.
        """CREATE TABLE runs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            started REAL NOT NULL,
            updated REAL NOT NULL,
            title TEXT NOT NULL,
            model TEXT NOT NULL,
            outcome TEXT,
            score REAL,
            stop_reason TEXT,
            iterations INTEGER NOT NULL,
            tokens INTEGER NOT NULL,
            cost REAL,
            settings TEXT NOT NULL,
            origin TEXT,
            task TEXT NOT NULL
        )""",
        "CREATE INDEX runs_by_name ON runs (name)",
        "CREATE INDEX runs_by_time ON runs (updated)",
        """CREATE TABLE events (
            run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            sequence INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (run, sequence)
        ) WITHOUT ROWID""",
        """CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never changed'); END""",
    ),
)


def connect(path: Path) -> sqlite3.Connection:
    """Open the journal, created or brought up to date first; the caller closes it.

    Raises:
        JournalError: it cannot be opened, or a newer ipyrefine wrote it.
    """
    with told(path):
        return opened(path, BUSY_SECONDS)


def opened(path: Path, patience: float) -> sqlite3.Connection:
    """Open the journal as `connect` does, in SQLite's own words when that fails.

    Args:
        path: the file.
        patience: seconds to wait, now and with every statement, for another process to be done.

    Raises:
        sqlite3.Error: it cannot be opened.
        OSError: its folder cannot be made private.
        JournalError: a newer ipyrefine wrote it.
    """
    make_private(path)
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        _use_wal(connection, patience)
        # What was shown has to survive a power cut. That takes six times as long as leaving the
        # moment to the system (NORMAL), but 2 ms for an event are little beside a model's reply.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


async def once_free(work: Callable[[], None]) -> None:
    """Do something with a journal, tried again while another process writes to it.

    Between the tries the event loop goes on; SQLite's own waiting would hold it up.

    Args:
        work: does all or nothing, without patience of its own.

    Raises:
        sqlite3.Error: it failed, or the other process was not done in `BUSY_SECONDS`.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            taken = error.sqlite_errorcode & 0xFF in _TAKEN
            if not taken or time.monotonic() > deadline:
                raise
        await asyncio.sleep(_TRY_AGAIN_SECONDS)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; begun as a writer, so that it waits its turn instead of failing midway."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # The failed statement may have ended the transaction itself (a full disk does).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say into a sentence for the user.

    Raises:
        JournalError: instead of their errors.
    """
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise JournalError(_MEANWHILE["FOREIGN KEY" in str(error)]) from None
    except (sqlite3.Error, OSError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise JournalError(
            f"The journal {path} cannot be used ({why}): make room or another place for it "
            "(IPYREFINE_HOME), or run with --no-journal."
        ) from error


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Let readers and a writer work at once.

    The switch asks for the file alone and does not wait for it, so it is tried until it is free.
    """
    deadline = time.monotonic() + patience
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return  # SQLite keeps another mode where a file system cannot do this one
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_TRY_AGAIN_SECONDS)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    with transaction(connection):
        version = _version(connection)  # another process may have been faster
        if version > len(MIGRATIONS):
            raise JournalError(
                f"The journal {path} was written by a newer ipyrefine: update this one, or set "
                "IPYREFINE_HOME to another folder."
            )
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
