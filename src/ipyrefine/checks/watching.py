"""Watching a sandboxed process: what it says, within bounds, and the limits that end it."""

import asyncio
from contextlib import suppress
from typing import Literal

from ipyrefine.checks import processes

Stopped = Literal["time", "output", "processes"]

_FLOOD = 16  # output beyond this many times what is kept ends the run
_LOOK_S = 0.05
_LEAVE_S = 2.0


class Capped:
    """The first and the last half of what a stream said, within a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.seen = 0

    def add(self, data: bytes) -> None:
        """Take in what was said."""
        self.seen += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]

    def text(self) -> str:
        """What was kept, with a note of what was not."""
        missing = self.seen - len(self._head) - len(self._tail)
        gap = f"\n[… {missing} bytes left out …]\n".encode() if missing else b""
        return bytes(self._head + gap + self._tail).decode(errors="replace")


class Watched(asyncio.SubprocessProtocol):
    """A process's output and end; it ends when it exits, even if a child holds its pipes."""

    def __init__(self, output_limit: int) -> None:
        self.streams = {1: Capped(output_limit), 2: Capped(output_limit)}
        self.ended = asyncio.Event()
        self.flooded = False
        self._most = _FLOOD * output_limit
        self._closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep what it said; a flood ends it."""
        self.streams[fd].add(data)
        if self.streams[fd].seen > self._most:
            self.flooded = True
            self.ended.set()

    def process_exited(self) -> None:
        """It is over, whoever still holds its pipes."""
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Its pipes have been read to their end."""
        self._closed.set()

    async def until(self, seconds: float, folder: str) -> Stopped | None:
        """Wait for the end, or for a limit, and say which limit it was."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        crowd = processes.Crowd(folder)
        while not self.ended.is_set():
            left = deadline - clock()
            if left <= 0:
                return "time"
            if crowd.too_many():
                return "processes"
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), min(left, _LOOK_S))
        return "output" if self.flooded else None

    async def close(self) -> None:
        """Wait, not for long, until it has exited and its pipes have been read."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), _LEAVE_S)
