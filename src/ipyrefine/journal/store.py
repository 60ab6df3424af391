"""Reads the journal: list, find and forget runs."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from ipyrefine.core.model import Basis, Outcome, StopReason
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run, require_consistent
from ipyrefine.core.stored import OtherVersion, parse_json, read_event, read_record
from ipyrefine.errors import JournalError, UsageError, did_you_mean
from ipyrefine.journal.writer import Recorder, connect, default_path, sentences, transaction


class Summary(NamedTuple):
    """One run as a line of a list; ``updated`` is in seconds since 1970."""

    number: int
    name: str
    updated: Annotated[float, Field(ge=0, lt=2**38)]
    title: str
    outcome: Outcome | None
    basis: Basis | None
    stop_reason: StopReason | None
    iterations: int


_SUMMARY = TypeAdapter(Summary)


class UnreadableRun(JournalError):
    """One run in the journal cannot be read; the others can."""


class Stored(NamedTuple):
    """An earlier run, with what continuing it needs."""

    run: Run
    settings: dict[str, Any]  # the options it was started with, as the journal keeps them
    journal: Recorder | None  # what writes its next events; None for a run that is not kept
    began_here: bool = False  # not in a file, which may be somebody else's


class Journal:
    """The runs of this user, on this machine; every call opens the file and closes it again.

    Args:
        path: the journal's file; the user's own by default.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()

    def runs(self, search: str = "", *, limit: int | None = None) -> list[Summary]:
        """List runs, the latest first, but for those whose row was changed by hand.

        Args:
            search: words that the name or the task must all contain.
            limit: how many at most.

        Raises:
            JournalError: the journal cannot be read.
        """
        where, values = ["1"], list[str | int]()
        for word in _storable(search).split():
            where.append(r"(name LIKE ? ESCAPE '\' OR task LIKE ? ESCAPE '\')")
            values += ["%{}%".format(re.sub(r"[\\%_]", r"\\\g<0>", word))] * 2
        values.append(-1 if limit is None else limit)
        query = (
            "SELECT id, name, updated, title, outcome, basis, stop_reason, iterations FROM runs "
            f"WHERE {' AND '.join(where)} ORDER BY updated DESC, id DESC LIMIT ?"
        )
        with self._open() as connection:
            rows = connection.execute(query, values).fetchall()
        found = list[Summary]()
        for row in rows:
            with contextlib.suppress(ValidationError):
                found.append(_SUMMARY.validate_python(row))
        return found

    def get(self, name: str = "") -> Stored:
        """Read a run.

        Args:
            name: its number, or its name (the latest of that name); by default the latest run.

        Raises:
            UsageError: there is none.
            JournalError: it cannot be read.
        """
        with self._open() as connection:
            return self._read(connection, _require(connection, name))

    def find(self, name: str) -> Stored | None:
        """Read the latest run of a name; None when there is none.

        Raises:
            JournalError: it cannot be read.
        """
        with self._open() as connection:
            number = _latest(connection, "name = ?", name)
            return None if number is None else self._read(connection, number)

    def find_setting(self, name: str, value: str) -> list[Stored]:
        """Read the latest run of each cell that was started with a setting, the latest first.

        Raises:
            JournalError: one cannot be read.
        """
        with self._open() as connection:
            found = connection.execute(
                "SELECT id, MAX(updated) FROM runs WHERE json_extract(settings, ?) = ? "
                "GROUP BY json_extract(settings, '$.key') ORDER BY updated DESC",
                (f"$.{name}", value),
            ).fetchall()
            return [self._read(connection, number) for number, _ in found]

    def forget(self, name: str) -> int:
        """Erase the run of a number, or all runs of a name, and return how many.

        Raises:
            UsageError: there is none.
            JournalError: the journal cannot be written.
        """
        with self._open() as connection:
            _require(connection, name)
            where, *values = _condition(name)
            return _erase(connection, where, *values)

    def forget_all(self) -> int:
        """Erase every run and return how many there were.

        Raises:
            JournalError: the journal cannot be written.
        """
        with self._open() as connection:
            return _erase(connection, "1")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with sentences(self.path), contextlib.closing(connect(self.path)) as connection:
            yield connection

    def _read(self, connection: sqlite3.Connection, number: int) -> Stored:
        rows = connection.execute(
            "SELECT body, version FROM events WHERE run = ? ORDER BY sequence", (number,)
        ).fetchall()
        settings, origin = connection.execute(
            "SELECT settings, origin FROM runs WHERE id = ?", (number,)
        ).fetchone()
        try:
            run = read_record(parse_json(origin)) if origin else None
            run = replay((read_event(parse_json(body), version) for body, version in rows), run)
            require_consistent(run)
            recorder = Recorder(self.path, number=number, sequence=len(rows))
            return Stored(run, parse_json(settings), recorder, origin is None)
        except OtherVersion:
            raise UnreadableRun(
                f"Run {number} was written by another version of ipyrefine and can't be continued. "
                "Its notebook still shows it; run its cell with --again to start over."
            ) from None
        except Exception:  # what stands in a damaged row may break any rule
            raise UnreadableRun(
                f"Run {number} in the journal {self.path} is damaged and can't be read."
            ) from None


def _require(connection: sqlite3.Connection, name: str) -> int:
    where, *values = _condition(name)
    found = _latest(connection, where, *values)
    if found is not None:
        return found
    if not name:
        raise UsageError("The journal is empty. Start a run with a %%refine cell.")
    names = [row[0] for row in connection.execute("SELECT DISTINCT name FROM runs")]
    raise UsageError(
        f"There is no run {name[:80]!r} in the journal.{did_you_mean(name, names)} "
        "`history` lists them."
    )


def _condition(name: str) -> tuple[str, ...]:
    """Return the condition for a run's number or name, or for any run, and its values."""
    if not name:
        return ("1",)
    return ("CAST(id AS TEXT) = ?" if name.isdecimal() else "name = ?"), _storable(name)


def _storable(word: str) -> str:
    """Return a word that a database takes; one from a command line may be no Unicode."""
    return word.encode("utf-8", "replace").decode()


def _latest(connection: sqlite3.Connection, where: str, *values: str) -> int | None:
    found = connection.execute(
        f"SELECT id FROM runs WHERE {where} ORDER BY updated DESC, id DESC LIMIT 1", values
    ).fetchone()
    return int(found[0]) if found else None


def _erase(connection: sqlite3.Connection, where: str, *values: str) -> int:
    """Delete runs with their events, and leave no copy of them in the write-ahead log."""
    with transaction(connection):
        count = connection.execute(f"DELETE FROM runs WHERE {where}", values).rowcount
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count
