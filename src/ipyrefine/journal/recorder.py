"""Writes one run into the journal, event by event, before anything else hears of them."""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.runs import Run
from ipyrefine.journal import names
from ipyrefine.journal.files import default_path
from ipyrefine.journal.schema import told
from ipyrefine.journal.writer import Writer, writer

TITLE_CHARACTERS = 120
OFF = ("0", "off", "no", "false")


class Recorder:
    """A consumer of a run's events that commits each one; the pieces of a reply are not kept.

    Events that could not be written are tried again together with the next one; one that was
    cut short by a cancel may be given again, and is written once.

    Args:
        path: the journal's file.
        name: the run's name; made from its task by default.
        settings: what resuming the run needs besides its events: JSON, and never a secret.
        origin: a run that the events go on from, when it is not in the journal.
        number: the journal's number of a run to go on with; None for a new one.
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
        self._name = names.checked(name) if name else ""
        self._settings = dict(settings or {})
        self._sequence = sequence
        self._unwritten: list[Event] = []
        self._written: Event | None = None
        self._begun = number
        self._run = Run()
        self._writer: Writer | None = None

    async def __call__(self, event: Event, run: Run) -> None:
        """Commit an event; others may go on while another process holds the journal.

        Args:
            event: what happened.
            run: the run with the event applied.

        Raises:
            JournalError: it could not be written; the event waits for the next one.
        """
        if isinstance(event, TextDelta):
            return
        self.miss(event)
        if self._unwritten:
            self._run = run
            self._writer = self._writer or writer(self._path)
            with told(self._path):
                await self._writer.write(self)
        if isinstance(event, Stopped):
            self.close()

    def miss(self, event: Event) -> None:
        """Keep an event for the next write, unless it waits for that or is written already."""
        if event is not self._written and not any(waits is event for waits in self._unwritten):
            self._unwritten.append(event)

    def close(self) -> None:
        """Close the file, unless other runs use it; a further event opens it again."""
        if self._writer is not None:
            self._writer.leave(self)
            self._writer = None

    def put(self, connection: sqlite3.Connection) -> None:
        """Write the events that wait, inside a transaction of the `Writer`."""
        self._begun = self.number or self._begin(connection, self._run)
        self._write(connection, self._begun, self._run)

    def done(self) -> None:
        """Hear of their commit."""
        self.number = self._begun
        self._sequence += len(self._unwritten)
        self._written = self._unwritten[-1]
        self._unwritten.clear()

    def _begin(self, connection: sqlite3.Connection, run: Run) -> int:
        task = run.task.text if run.task else ""
        title = next((line.strip() for line in task.splitlines() if line.strip()), "")
        now = self._now()
        row = {
            "name": self._name or names.made_from(title),
            "started": now,
            "updated": now,
            "title": title[:TITLE_CHARACTERS],
            "model": run.model,
            "iterations": 0,
            "tokens": 0,
            "settings": json.dumps(self._settings),
            "origin": self._origin.model_dump_json() if self._origin else None,
            "task": task,
        }
        marks = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO runs ({', '.join(row)}) VALUES ({marks})"
        number = connection.execute(statement, row).lastrowid
        assert number is not None, "an INSERT gives its row a number"
        return number

    def _write(self, connection: sqlite3.Connection, number: int, run: Run) -> None:
        connection.executemany(
            "INSERT INTO events (run, sequence, body) VALUES (?, ?, ?)",
            [
                (number, sequence, event.model_dump_json())
                for sequence, event in enumerate(self._unwritten, start=self._sequence)
            ],
        )
        verdict = run.verdict
        connection.execute(
            "UPDATE runs SET updated = ?, outcome = ?, score = ?, stop_reason = ?, "
            "iterations = ?, tokens = ?, cost = ? WHERE id = ?",
            (
                self._now(),
                verdict.outcome.value if verdict and verdict.verified else None,
                run.score,
                run.stop_reason.value if run.stop_reason else None,
                len(run.iterations),
                run.usage.tokens,
                run.cost,
                number,
            ),
        )


def recorder(
    journal: bool = True,
    *,
    name: str = "",
    settings: Mapping[str, Any] | None = None,
    origin: Run | None = None,
) -> Recorder | None:
    """Make what writes a new run into the journal; None where that is not wanted.

    Args:
        journal: whether the run is to be kept; ``IPYREFINE_JOURNAL=off`` overrules it.
        name: the run's name; made from its task by default.
        settings: what resuming it needs, as for `Recorder`.
        origin: a run it goes on from, as for `Recorder`.

    Raises:
        UsageError: the name cannot be used.
    """
    if not journal or os.environ.get("IPYREFINE_JOURNAL", "").lower() in OFF:
        return None
    return Recorder(default_path(), name=name, settings=settings, origin=origin)
