"""Reads the journal: list, find and forget runs."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

from ipyrefine.core.model import Basis, Outcome, StopReason
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run, require_consistent
from ipyrefine.core.stored import OtherVersion, parse_json, read_event, read_record
from ipyrefine.errors import JournalError, UsageError, did_you_mean
from ipyrefine.journal.tables import connect, default_path, sentences, transaction
from ipyrefine.journal.writer import Recorder

_MAX_EVENTS = 200_000  # of a run
_MOST = 1e15  # of a number in a list
_SUMMARY = (
    "id, name, started, updated, title, model, outcome, basis, score, stop_reason, iterations, "
    "tokens, cost"
)


class Summary(NamedTuple):
    """One run as a line of a list; times are seconds since 1970, cost is US dollars."""

    number: int
    name: str
    started: float
    updated: float
    title: str
    model: str
    outcome: str | None
    basis: str | None
    score: float | None
    stop_reason: str | None
    iterations: int
    tokens: int
    cost: float | None


class UnreadableRun(JournalError):
    """One run in the journal cannot be read; the others can."""


class Stored(NamedTuple):
    """A run as the journal holds it, with what continuing it needs."""

    number: int
    name: str
    run: Run
    settings: dict[str, Any]
    sequence: int


class Journal:
    """The runs of this user, on this machine; every call opens the file and closes it again.

    Args:
        path: the journal's file; the user's own by default.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()

    def runs(
        self, search: str = "", *, verdict: str = "", model: str = "", limit: int | None = None
    ) -> list[Summary]:
        """List runs, the latest first.

        Args:
            search: words that the name or the task must all contain.
            verdict: an outcome (``not_judged``) or a stop reason (``plateau``); any by default.
            model: part of the model's name.
            limit: how many at most.

        Raises:
            JournalError: the journal cannot be read.
        """
        where, values = ["1"], list[str | int]()
        for word in search.split():
            where.append(r"(name LIKE ? ESCAPE '\' OR task LIKE ? ESCAPE '\')")
            values += [_like(word)] * 2
        if verdict:
            where.append("(outcome = ? OR stop_reason = ?)")
            values += [verdict.upper().replace(" ", "_"), verdict.lower()]
        if model:
            where.append(r"model LIKE ? ESCAPE '\'")
            values.append(_like(model))
        values.append(-1 if limit is None else limit)
        query = (
            f"SELECT {_SUMMARY} FROM runs WHERE {' AND '.join(where)} "
            "ORDER BY updated DESC, id DESC LIMIT ?"
        )
        with self._open() as connection:
            return [_summary(row) for row in connection.execute(query, values)]

    def get(self, name: str = "") -> Stored:
        """Read a run.

        Args:
            name: its number, or its name (the latest of that name); by default the latest run.

        Raises:
            UsageError: there is none.
            JournalError: it cannot be read.
        """
        with self._open() as connection:
            return self._read(connection, self._number(connection, name))

    def find(self, name: str) -> Stored | None:
        """Read the latest run of a name; None when there is none.

        Raises:
            JournalError: it cannot be read.
        """
        with self._open() as connection:
            number = _latest(connection, "WHERE name = ?", (name,))
            return None if number is None else self._read(connection, number)

    def find_setting(self, name: str, value: str) -> Stored | None:
        """Read the latest run that was started with a setting; None when there is none.

        Args:
            name: the setting.
            value: what it is set to.

        Raises:
            JournalError: it cannot be read.
        """
        with self._open() as connection:
            where = "WHERE CASE WHEN json_valid(settings) THEN json_extract(settings, ?) END = ?"
            number = _latest(connection, where, (f"$.{name}", value))
            return None if number is None else self._read(connection, number)

    def recorder(self, stored: Stored) -> Recorder:
        """Return the recorder that continues where a stored run ends."""
        return Recorder(self.path, number=stored.number, sequence=stored.sequence)

    def forget(self, name: str) -> int:
        """Erase the run of a number, or all runs of a name, and return how many.

        Raises:
            UsageError: there is none.
            JournalError: the journal cannot be written.
        """
        with self._open() as connection:
            number = self._number(connection, name)
            column, value = ("id", number) if _is_number(name) else ("name", name)
            return _erase(connection, f"WHERE {column} = ?", (value,))

    def forget_all(self) -> int:
        """Erase every run and return how many there were.

        Raises:
            JournalError: the journal cannot be written.
        """
        with self._open() as connection:
            return _erase(connection, "", ())

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = connect(self.path)
        try:
            with sentences(self.path, connection.close):
                yield connection
        finally:
            connection.close()

    def _read(self, connection: sqlite3.Connection, number: int) -> Stored:
        rows = connection.execute(
            "SELECT sequence, body, version FROM events WHERE run = ? ORDER BY sequence LIMIT ?",
            (number, _MAX_EVENTS),
        ).fetchall()
        name, settings, origin = connection.execute(
            "SELECT name, settings, origin FROM runs WHERE id = ?", (number,)
        ).fetchone()
        try:
            run = _replay(rows, origin)
            sequence = rows[-1][0] + 1 if rows else 0
        except OtherVersion:
            raise UnreadableRun(
                f"Run {number} was written by another version of ipyrefine and can't be continued. "
                "Its notebook still shows it; run its cell with --again to start over."
            ) from None
        except Exception:  # what stands in a damaged row may break any rule
            raise UnreadableRun(
                f"Run {number} in the journal {self.path} is damaged and can't be read."
            ) from None
        return Stored(number, _text(name), run, _settings(settings), sequence)

    def _number(self, connection: sqlite3.Connection, name: str) -> int:
        column, value = ("id", int(name)) if _is_number(name) else ("name", name)
        where, values = (f"WHERE {column} = ?", (value,)) if name else ("", ())
        found = _latest(connection, where, values)
        if found is not None:
            return found
        if not name:
            raise UsageError("The journal is empty. Start a run with a %%refine cell.")
        known = [_text(row[0]) for row in connection.execute("SELECT DISTINCT name FROM runs")]
        raise UsageError(
            f"There is no run {name[:80]!r} in the journal.{did_you_mean(name, known)} "
            "`%refine history` lists them."
        )


def _replay(rows: list[Any], origin: str | None) -> Run:
    """Return the run that stored events lead to, from the one that they continue, if any.

    Raises:
        Exception: of any kind, where what is stored is damaged.
    """
    run = read_record(parse_json(origin)) if origin else None
    run = replay((read_event(parse_json(body), version) for _, body, version in rows), run)
    require_consistent(run)
    return run


def _summary(row: tuple[Any, ...]) -> Summary:
    """Return a row as a line of a list, without what no journal writes there."""
    one = Summary(*row)
    outcomes, stops = (*Outcome,), (*StopReason,)
    return Summary(
        number=one.number,
        name=_text(one.name),
        started=_number(one.started) or 0.0,
        updated=_number(one.updated) or 0.0,
        title=_text(one.title),
        model=_text(one.model),
        outcome=one.outcome if one.outcome in outcomes else None,
        basis=one.basis if one.basis in get_args(Basis) else None,
        score=_number(one.score),
        stop_reason=one.stop_reason if one.stop_reason in stops else None,
        iterations=int(_number(one.iterations) or 0),
        tokens=int(_number(one.tokens) or 0),
        cost=_number(one.cost),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    """Return a number that can be written out; None for anything else."""
    return value if isinstance(value, int | float) and 0 <= value <= _MOST else None


def _settings(stored: object) -> dict[str, Any]:
    """Return the settings of a run; none where they cannot be read."""
    try:
        settings = parse_json(stored)
    except (ValueError, TypeError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _latest(
    connection: sqlite3.Connection, where: str, values: tuple[str | int, ...]
) -> int | None:
    """Return the number of the latest run that a condition holds for."""
    found = connection.execute(
        f"SELECT id FROM runs {where} ORDER BY updated DESC, id DESC LIMIT 1", values
    ).fetchone()
    return int(found[0]) if found else None


def _erase(connection: sqlite3.Connection, where: str, values: tuple[str | int, ...]) -> int:
    """Delete runs with their events, and leave no copy of them in the write-ahead log."""
    with transaction(connection):
        count = connection.execute(f"DELETE FROM runs {where}", values).rowcount
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count


def _is_number(name: str) -> bool:
    return name.isdecimal() and len(name) <= 18  # more than SQLite's integers hold


def _like(word: str) -> str:
    for special in "\\%_":
        word = word.replace(special, f"\\{special}")
    return f"%{word}%"
