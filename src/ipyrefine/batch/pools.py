"""Where many tasks run: side by side in this event loop, or in the workers of a pool."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

import cloudpickle

from ipyrefine.errors import PoolError, UsageError

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[T], Awaitable[R]]


def in_pool(executor: Any, work: Work[T, R]) -> Work[T, R]:
    """Return the same work, done by the workers of a pool.

    The returned function raises `PoolError` when a worker dies or cannot take the task.

    Args:
        executor: None for this event loop; else a pool with ``submit``, as of
            `concurrent.futures`, or a Dask ``distributed.Client``.
        work: what to do with a task; an importable function.

    Raises:
        UsageError: it is not a pool.
    """
    if executor is None:
        return work
    if hasattr(executor, "get_executor"):  # a Dask client; its own futures cannot be awaited here
        executor = executor.get_executor(pure=False)
    if not hasattr(executor, "submit"):
        raise UsageError(
            "executor must be a pool with submit(), as of concurrent.futures, or a Dask Client, "
            f"not {type(executor).__name__}."
        )

    async def submit(task: T) -> R:
        try:
            # A pool's own pickler knows a notebook's functions by name only.
            future = executor.submit(_finish, cloudpickle.dumps((work, task)))
            result: R = await asyncio.wrap_future(future)
            return result
        except Exception as error:  # a pool raises what it likes: broken, killed, not picklable
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise PoolError(
                f"A worker of the pool died or could not take its task ({reason[:200]}). "
                "Call refine_many with the same name to continue."
            ) from error

    return submit


def _finish(job: bytes) -> Any:
    """Do work in a pool's worker, in an event loop of its own."""
    work, task = cloudpickle.loads(job)

    async def finish() -> Any:
        return await work(task)

    return asyncio.run(finish())


async def run_all(tasks: Iterable[T], at_once: int, work: Work[T, R]) -> AsyncGenerator[R, None]:
    """Run tasks, some at a time, and yield each result as soon as it is there.

    Closing the generator cancels the tasks under way.

    Args:
        tasks: the tasks.
        at_once: how many run at a time.
        work: what to do with a task.
    """
    free = asyncio.Semaphore(at_once)

    async def run(task: T) -> R:
        async with free:
            return await work(task)

    running = [asyncio.ensure_future(run(task)) for task in tasks]
    try:
        for result in asyncio.as_completed(running):
            yield await result
    finally:
        for future in running:
            future.cancel()
        await asyncio.gather(*running, return_exceptions=True)
