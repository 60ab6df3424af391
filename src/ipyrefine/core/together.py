"""Several streams of events at once, as one."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from ipyrefine.core.events import Event, TextDelta


class Taken(NamedTuple):
    """What one of the streams gave: an event; or neither, or an error, when it has ended."""

    stream: int
    event: Event | None
    error: Exception | None = None


async def in_turn(streams: Sequence[AsyncGenerator[Event]]) -> AsyncGenerator[Taken]:
    """Give the events of several streams as they come, but only one's text at a time.

    The pieces of text, and that a stream has ended, are given in the streams' order.

    Args:
        streams: the streams; an item names its stream by its place.
    """
    held = [deque[Taken]() for _ in streams]
    turn = 0
    async with aclosing(together(streams)) as items:
        async for item in items:
            if item.event is not None and not isinstance(item.event, TextDelta):
                yield item
                continue
            held[item.stream].append(item)
            while turn < len(held) and held[turn]:
                first = held[turn].popleft()
                turn += first.event is None
                yield first


async def together(streams: Sequence[AsyncGenerator[Event]]) -> AsyncGenerator[Taken]:
    """Give the events of several streams as they come.

    A stream goes on only after its event was taken, so that what it reads next of the run holds
    that event already. All are closed when this iterator is.

    Args:
        streams: the streams; an item names its stream by its place.
    """
    inbox = asyncio.Queue[tuple[Taken, asyncio.Event]]()
    tasks = [asyncio.create_task(_drain(n, s, inbox)) for n, s in enumerate(streams)]
    left = len(tasks)
    try:
        while left:
            item, taken = await inbox.get()
            left -= item.event is None
            yield item
            taken.set()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _drain(
    number: int, stream: AsyncGenerator[Event], inbox: asyncio.Queue[tuple[Taken, asyncio.Event]]
) -> None:
    error: Exception | None = None
    try:
        async with aclosing(stream) as events:
            async for event in events:
                taken = asyncio.Event()
                inbox.put_nowait((Taken(number, event), taken))
                await taken.wait()
    except Exception as fault:  # told to whoever takes the events
        error = fault
    inbox.put_nowait((Taken(number, None, error), asyncio.Event()))
