"""Where many tasks run: side by side in this event loop, or in the workers of a pool."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any

from ipyrefine.batch.items import Asked, Item
from ipyrefine.batch.working import Job, work
from ipyrefine.errors import PoolError, UsageError

Place = Callable[[Asked], Awaitable[Item]]


def place(executor: Any) -> Place:
    """Say where a task runs.

    Args:
        executor: None for this event loop; else a pool with ``submit``, as of
            `concurrent.futures`, or a Dask ``distributed.Client``.

    Raises:
        UsageError: it is not a pool.
    """
    if executor is None:
        return work
    if hasattr(executor, "get_executor"):  # a Dask client; its own futures cannot be awaited here
        executor = executor.get_executor(pure=False)
    if not hasattr(executor, "submit"):
        raise UsageError(
            f"executor must be a pool with submit(), as of concurrent.futures, or a Dask Client, "
            f"not {type(executor).__name__}."
        )

    async def submitted(asked: Asked) -> Item:
        try:
            item: Item = await asyncio.wrap_future(executor.submit(Job(asked)))
            return item
        except Exception as error:  # a pool raises what it likes: broken, killed, not picklable
            why = (str(error) or type(error).__name__).splitlines()[0]
            return asked.ended(
                None,
                PoolError(
                    f"A worker of the pool died or could not be given its task ({why[:200]}): "
                    "refine_many with the same name goes on with what is left."
                ),
            )

    return submitted


async def each(tasks: Iterable[Asked], at_once: int, run: Place) -> AsyncGenerator[Item, None]:
    """Run tasks, so many at a time, and give each as soon as it has ended.

    Closing the generator cancels those under way.
    """
    waiting, running = iter(tasks), set[asyncio.Task[Item]]()

    def fill() -> None:
        for asked in waiting:
            running.add(asyncio.ensure_future(run(asked)))
            if len(running) >= at_once:
                return

    try:
        fill()
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            running -= done
            fill()
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
