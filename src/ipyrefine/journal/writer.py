"""The journal's file, and what writes runs into it, event by event, before they are shown."""

import asyncio
import contextlib
import errno
import json
import os
import re
import sqlite3
import time
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.points import first_line
from ipyrefine.core.run import Run
from ipyrefine.core.stored import VERSION
from ipyrefine.errors import JournalError, UsageError
from ipyrefine.folders import home

BUSY_SECONDS = 10.0  # to wait for another process to be done
TABLES_VERSION = 4  # a change of the tables needs a new one
RETRY_SECONDS = 0.01
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# The first says that a table lacks, or holds what it cannot.
_DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TITLE_CHARACTERS = 120
_NAME = re.compile(r"(?!\d+$)\w[\w.-]{0,63}")
_FILE_NAME = re.compile(r".*\.(ipynb|json|md)", re.IGNORECASE)
_NAME_WORDS, _NAME_CHARACTERS = 5, 40
_OFF = ("0", "off", "no", "false")

_ERASED = "This run was erased from the journal while it ran. Start it again to keep it."
_CONTINUED = "Another kernel has continued this run. Stop it there, then `%refine resume` it here."

_TABLES = (
    # `task` is last: a listing then never reads its overflow pages.
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        updated REAL NOT NULL,
        title TEXT NOT NULL,
        model TEXT NOT NULL,
        outcome TEXT,
        basis TEXT,
        stop_reason TEXT,
        iterations INTEGER NOT NULL,
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
)


def default_path() -> Path:
    """Return the journal's file; its folder is private, whatever `home` is."""
    return home() / "journal" / "runs.db"


def connect(path: Path, patience: float | None = None) -> sqlite3.Connection:
    """Open the journal, created first if there is none; the caller closes it.

    Args:
        path: the file.
        patience: seconds to wait, now and with every statement, for another process to be done;
            `BUSY_SECONDS` by default.

    Raises:
        sqlite3.Error: it cannot be opened.
        OSError: its folder cannot be made private.
        JournalError: another version of ipyrefine wrote it.
    """
    patience = BUSY_SECONDS if patience is None else patience
    _make_private(path)
    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        # What was shown has to survive a power cut. That takes six times as long as leaving the
        # moment to the system (NORMAL), but 2 ms for an event are little next to a model's reply.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        if _version(connection) != TABLES_VERSION:
            _create_tables(connection, path)
        # Readers and a writer work at once then. SQLite does not wait for others here; where it
        # fails because they are opening the file too, whoever opens it next succeeds.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    # SQLite gives the files it puts next to a database the permissions of the database.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # To close a file that exists would drop the locks of this process's other connections.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if not path.is_file():  # a pipe would be waited for without end
        raise OSError(errno.EINVAL, "it is not a plain file")
    for place, mode in ((path.parent, 0o700), (path, 0o600)):
        if place.stat().st_mode & 0o777 & ~mode:
            place.chmod(mode)


def _create_tables(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        version = _version(connection)  # another process may have been faster
        if version == TABLES_VERSION:
            return
        if version:
            raise JournalError(
                f"The journal {path} was written by another version of ipyrefine. Move the folder "
                f"{path.parent} away to begin a new one, or set IPYREFINE_HOME."
            )
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {TABLES_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


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
def sentences(path: Path) -> Iterator[None]:
    """Raise the errors of SQLite and the file system as `JournalError`; the file stays as it is.

    Raises:
        JournalError: instead of their errors.
    """
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise JournalError(_ERASED if "FOREIGN KEY" in str(error) else _CONTINUED) from None
    except (sqlite3.Error, OSError) as error:
        why = getattr(error, "strerror", None) or str(error)
        code = _code(error)
        if code in _BUSY:
            words = "is in use by another program. Try again when that is done"
        elif code in _DAMAGED:
            words = f"is damaged ({why}). Move the folder {path.parent} away to begin a new one"
        else:
            words = f"cannot be used ({why}). Make room, choose another place with IPYREFINE_HOME"
        raise JournalError(f"The journal {path} {words}, or run with --set journal=no.") from None


def _code(error: Exception) -> int:
    # Errors of Python's own module have none.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def open_journal(
    journal: bool = True,
    *,
    name: str = "",
    settings: Mapping[str, Any] | None = None,
    origin: Run | None = None,
) -> "Recorder | None":
    """Return the writer of a new run in the user's journal; None where none is kept.

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
    ) -> None:
        self.number = number
        self._path, self._origin, self._sequence = path, origin, sequence
        if name and (not _NAME.fullmatch(name) or _FILE_NAME.fullmatch(name)):
            raise UsageError(
                f"{name[:80]!r} cannot name a run. Use up to 64 letters, digits, dots and dashes, "
                "starting with a letter, and no file ending."
            )
        self._name = name
        self._settings = dict(settings or {})
        self._unwritten: list[Event] = []
        self._latest: Event | None = None  # the latest that was written
        self._connection: sqlite3.Connection | None = None

    async def __call__(self, event: Event, run: Run) -> None:
        """Commit an event; other work continues while another process holds the journal.

        Raises:
            JournalError: it could not be written; the event waits for the next one.
        """
        if isinstance(event, TextDelta):
            return
        self.postpone(event)
        try:
            with sentences(self._path):
                await self._write_when_free(run)
        except JournalError:
            self.close()
            raise
        if isinstance(event, Stopped):
            self.close()

    def postpone(self, event: Event) -> None:
        """Keep an event for the next write, unless it is kept or written already."""
        if event is not self._latest and not any(event is kept for kept in self._unwritten):
            self._unwritten.append(event)

    def close(self) -> None:
        """Close the file; a further event opens it again."""
        if self._connection is not None:
            self._closer()
            self._connection = None

    async def _write_when_free(self, run: Run) -> None:
        # SQLite's own waiting would block the event loop.
        deadline = time.monotonic() + BUSY_SECONDS
        while self._unwritten:
            try:
                self._write(run)
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    def _write(self, run: Run) -> None:
        if self._connection is None:
            self._connection = connect(self._path, patience=0)
            # A run may be forgotten as it waits; Python 3.13 warns of what nobody closes.
            self._closer = weakref.finalize(self, self._connection.close)
        connection = self._connection
        with transaction(connection):
            number = self.number or self._insert_run(connection, run)
            connection.executemany(
                "INSERT INTO events (run, sequence, body, version) VALUES (?, ?, ?, ?)",
                [
                    (number, sequence, event.model_dump_json(), VERSION)
                    for sequence, event in enumerate(self._unwritten, start=self._sequence)
                ],
            )
            verdict, stop = run.verdict, run.stop_reason
            connection.execute(
                "UPDATE runs SET updated = ?, outcome = ?, basis = ?, stop_reason = ?, "
                "iterations = ? WHERE id = ?",
                (
                    time.time(),
                    verdict and verdict.outcome.value,
                    verdict and verdict.basis,
                    stop and stop.value,
                    len(run.iterations),
                    number,
                ),
            )
        self.number = number
        self._sequence += len(self._unwritten)
        self._latest = self._unwritten[-1]
        self._unwritten.clear()

    def _insert_run(self, connection: sqlite3.Connection, run: Run) -> int:
        task, origin = run.setup.subject, self._origin
        title = first_line(task)
        words = re.findall(r"\w+", title.lower())[:_NAME_WORDS]
        name = "-".join(words)[:_NAME_CHARACTERS].rstrip("-")
        name = name if _NAME.fullmatch(name) else f"run-{name}".rstrip("-")
        row = {
            "name": self._name or name,
            "updated": time.time(),
            "title": title[:_TITLE_CHARACTERS],
            "model": run.setup.model,
            "iterations": 0,
            "settings": json.dumps(self._settings),
            "origin": origin and json.dumps({"version": VERSION, **origin.model_dump(mode="json")}),
            "task": task,
        }
        places = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO runs ({', '.join(row)}) VALUES ({places})"
        number = connection.execute(statement, row).lastrowid
        assert number is not None, "an INSERT gives its row a number"
        return number
