"""The journal's file, its tables, and how a connection to them is made."""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from ipyrefine.errors import JournalError
from ipyrefine.folders import home

BUSY_SECONDS = 10.0
_RETRY_SECONDS = 0.01
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_HEADER = b"SQLite format 3\0"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600

_ERASED = "This run was erased from the journal while it ran. Start it again to keep it."
_CONTINUED = "Another kernel has continued this run. Stop it there, then `%refine resume` it here."

VERSION = 3  # of the tables; a change of them needs a new one
_TABLES = (
    # `task` is last: a listing then never reads its overflow pages.
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        started REAL NOT NULL,
        updated REAL NOT NULL,
        title TEXT NOT NULL,
        model TEXT NOT NULL,
        outcome TEXT,
        basis TEXT,
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
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, sequence)
    ) WITHOUT ROWID""",
    """CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END""",
)


def default_path() -> Path:
    """Return the journal's file; its folder is private, whatever `home` is."""
    return home() / "journal" / "runs.db"


def connect(path: Path) -> sqlite3.Connection:
    """Open the journal, created first if there is none; the caller closes it.

    Raises:
        JournalError: it cannot be opened, another version of ipyrefine wrote it, or it was damaged.
    """
    with sentences(path):
        return open_database(path, BUSY_SECONDS)


class _Damage(sqlite3.DatabaseError):
    """A file is a database, but its tables are not a journal's."""


def open_database(path: Path, patience: float) -> sqlite3.Connection:
    """Open the journal as `connect` does, with SQLite's own errors when that fails.

    Args:
        path: the file.
        patience: seconds to wait, now and with every statement, for another process to be done.

    Raises:
        sqlite3.Error: it cannot be opened.
        OSError: its folder cannot be made private.
        JournalError: another version of ipyrefine wrote it.
    """
    _make_private(path)
    _require_header(path)
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        _use_wal(connection, patience)
        # What was shown has to survive a power cut. That takes six times as long as leaving the
        # moment to the system (NORMAL), but 2 ms for an event are little next to a model's reply.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = _decode
        _create_tables(connection, path)
        _require_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


async def retry_while_busy(work: Callable[[], None]) -> None:
    """Do something with a journal, again while another process writes to it.

    Other work continues between the attempts; SQLite's own waiting would block the event loop.

    Args:
        work: does all or nothing, without waiting.

    Raises:
        sqlite3.Error: it failed, or the other process was not done in `BUSY_SECONDS`.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if not _has_code(error, _BUSY) or time.monotonic() > deadline:
                raise
        await asyncio.sleep(_RETRY_SECONDS)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all or nothing, as a writer from the start, so that it waits instead of failing midway."""
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
def sentences(path: Path, close: Callable[[], None] | None = None) -> Iterator[None]:
    """Turn the errors of SQLite and the file system into a sentence for the user.

    A damaged journal is set aside, with all that is in it, so that the next use begins a new one.

    Args:
        path: the journal's file.
        close: closes this process's connection to it, before it is set aside.

    Raises:
        JournalError: instead of their errors.
    """
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise JournalError(_ERASED if "FOREIGN KEY" in str(error) else _CONTINUED) from None
    except (sqlite3.Error, OSError) as error:
        if _is_damage(error):
            if close:
                close()
            raise JournalError(_set_aside(path)) from None
        if _has_code(error, _BUSY):
            raise JournalError(
                f"The journal {path} is in use by another program. Try again when that is done, or "
                "run with --no-journal."
            ) from None
        why = getattr(error, "strerror", None) or str(error)
        raise JournalError(
            f"The journal {path} cannot be used ({why}). Make room, choose another place with "
            "IPYREFINE_HOME, or run with --no-journal."
        ) from error


def _has_code(error: Exception, codes: tuple[int, ...]) -> bool:
    # Errors of Python's own module have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _is_damage(error: Exception) -> bool:
    return isinstance(error, _Damage) or _has_code(error, _DAMAGED)


def _set_aside(path: Path) -> str:
    """Rename a damaged journal, unless another process has done so, and return a sentence."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(f"{path}.lock", timeout=BUSY_SECONDS):
            if not _damaged(path):
                return f"The journal {path} was being replaced. Try again."
            aside = _free_name(path)
            # The log goes first: SQLite would replay it into a new database of the same name.
            for ending in ("-wal", "-shm", ""):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{path}{ending}", f"{aside}{ending}")
    except (OSError, Timeout) as error:
        why = getattr(error, "strerror", None) or str(error)
        return (
            f"The journal {path} is damaged and cannot be set aside ({why}). Move it away, or "
            "choose another place with IPYREFINE_HOME."
        )
    return f"The journal was damaged and is kept as {aside}. Try again, and a new one begins."


def _damaged(path: Path) -> bool:
    """Return whether a journal is damaged, by reading all of it."""
    if not path.exists():
        return False
    try:
        connection = open_database(path, BUSY_SECONDS)
    except sqlite3.Error as error:
        return _is_damage(error)
    try:
        return bool(connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",))
    except sqlite3.Error as error:
        return _is_damage(error)
    finally:
        connection.close()


def _free_name(path: Path) -> Path:
    """Return a free name next to a journal."""
    stem = f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
    number = 1
    while (free := path.with_name(f"{stem}-{number}{path.suffix}")).exists():
        number += 1
    return free


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Let readers and a writer work at once.

    The switch needs the file to itself and does not wait for it, so it is tried until it succeeds.
    """
    deadline = time.monotonic() + patience
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return  # SQLite keeps another mode where a file system cannot do this one
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == VERSION:
        return
    with transaction(connection):
        version = _version(connection)  # another process may have been faster
        if version == VERSION:
            return
        if version > 0:
            raise JournalError(
                f"The journal {path} was written by another version of ipyrefine. Move the folder "
                f"{path.parent} away to begin a new one, or set IPYREFINE_HOME."
            )
        filled = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,)
        if version < 0 or filled:
            raise _Damage("its tables have no version")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _require_header(path: Path) -> None:
    """Refuse a file that is not a database before SQLite opens it and deletes its log.

    Raises:
        _Damage: it is none; an empty one is, unless there is a log next to it.
    """
    with path.open("rb") as file:
        header = file.read(len(_HEADER))
    log = Path(f"{path}-wal")
    if header != _HEADER and (header or (log.exists() and log.stat().st_size)):
        raise _Damage("it does not start as a database does")


def _require_tables(connection: sqlite3.Connection) -> None:
    """Refuse a database that lacks a journal's tables or columns.

    Raises:
        _Damage: it does.
    """
    for name, columns in _columns().items():
        if not columns <= _columns_of(connection, name):
            raise _Damage(f"the table {name} is not a journal's")


@cache
def _columns() -> dict[str, frozenset[str]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in _TABLES:
            connection.execute(statement)
        return {name: _columns_of(connection, name) for name in ("runs", "events")}


def _columns_of(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the columns of a table; none where it is missing or a view."""
    query = "SELECT c.name FROM sqlite_master m, pragma_table_info(m.name) c "
    rows = connection.execute(f"{query} WHERE m.type = 'table' AND m.name = ?", (table,))
    return frozenset(name for (name,) in rows)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make_private(path: Path) -> None:
    """Create a file and its folder for this user alone, or make them so.

    SQLite gives the files it puts next to a database the permissions of the database.
    """
    path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    _restrict(path.parent, _FOLDER_MODE)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, _FILE_MODE))
    _restrict(path, _FILE_MODE)


def _restrict(path: Path, mode: int) -> None:
    if path.stat().st_mode & 0o777 & ~mode:
        path.chmod(mode)
