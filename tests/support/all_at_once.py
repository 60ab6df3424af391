"""A model that shows whether its requests are made at once."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from ipyrefine.core.engine import Refinement
from ipyrefine.core.ports import Delta, Reply, Request


class AllAtOnce:
    """Answers only when as many requests wait as were announced, the last first.

    Args:
        waiting: how many.
        reply: what the nth request is answered with.
    """

    name = "patient"

    def __init__(self, waiting: int, reply: Callable[[int], str]) -> None:
        self.requests: list[Request] = []
        self._waiting, self._full, self._reply = waiting, asyncio.Event(), reply
        self.asked = asyncio.Semaphore(0)

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        self.requests.append(request)
        self.asked.release()
        number = len(self.requests) - 1
        if len(self.requests) == self._waiting:
            self._full.set()
        await self._full.wait()
        for _ in range(3 * (self._waiting - number)):
            await asyncio.sleep(0)
        yield Delta(text=self._reply(number))
        yield Reply(text=self._reply(number))


async def cancel(loop: Refinement, model: AllAtOnce, requests: int) -> None:
    """Cancel a run once so many requests wait; no task of it may be left."""
    task = asyncio.create_task(loop.run())
    for _ in range(requests):
        await model.asked.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}
