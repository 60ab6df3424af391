"""Commits what runs hand in: one connection and one commit for all that come at once.

Every commit waits for the disk, and the event loop with it. So the runs of an event loop that
have an event in the same turn of it share theirs.
"""

import asyncio
import sqlite3
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from ipyrefine.journal.schema import once_free, opened, transaction


class Writes(Protocol):
    """What hands something in to be written, one thing at a time."""

    def put(self, connection: sqlite3.Connection) -> None:
        """Write it, inside a transaction that may still be undone and tried again."""

    def done(self) -> None:
        """Hear that it was committed."""


class Writer:
    """A connection to a journal, open while somebody uses it.

    Args:
        path: the journal's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._users = set[Writes]()
        self._waiting: list[Writes] = []
        self._connection: sqlite3.Connection | None = None

    async def write(self, own: Writes) -> None:
        """Commit what one hands in, with what others hand in during the same turn.

        Raises:
            sqlite3.Error: it could not be written.
            OSError: the journal's folder cannot be made private.
            JournalError: a newer ipyrefine wrote the journal.
        """
        self._users.add(own)
        self._waiting.append(own)
        try:
            await asyncio.sleep(0)  # the others' turn to hand theirs in
            await once_free(lambda: self._commit(own))
        finally:
            if own in self._waiting:
                self._waiting.remove(own)

    def leave(self, user: Writes) -> None:
        """Close the file, when its last user leaves; what is handed in next opens it again."""
        self._users.discard(user)
        if self._connection is not None and not self._users:
            self._connection.close()
            self._connection = None

    def _commit(self, own: Writes) -> None:
        if own not in self._waiting:
            return  # in another's commit
        if self._connection is None:
            self._connection = opened(self._path, patience=0)
        batch = list(self._waiting)
        try:
            _put(self._connection, batch)
        except sqlite3.IntegrityError:  # one of them cannot be written: not the others' fault
            batch = [own]
            _put(self._connection, batch)
        for one in batch:
            self._waiting.remove(one)
            one.done()


def _put(connection: sqlite3.Connection, batch: list[Writes]) -> None:
    with transaction(connection):
        for one in batch:
            one.put(connection)


_WRITERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, Writer]] = WeakKeyDictionary()


def writer(path: Path) -> Writer:
    """The writer of a journal that all runs of the running event loop share."""
    known = _WRITERS.setdefault(asyncio.get_running_loop(), {})
    return known.setdefault(path, Writer(path))
