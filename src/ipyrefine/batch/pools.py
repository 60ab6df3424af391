"""Where many tasks run: side by side in this event loop, or in the workers of a pool."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

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
            result: R = await asyncio.wrap_future(executor.submit(Job(work, task)))
            return result
        except Exception as error:  # a pool raises what it likes: broken, killed, not picklable
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise PoolError(
                f"A worker of the pool died or could not take its task ({reason[:200]}). "
                "Call refine_many with the same name to continue."
            ) from error

    return submit


class Job(Generic[T, R]):
    """A task to be called in a pool's worker; it carries the notebook's functions with it.

    Args:
        work: what to do with the task.
        task: the task.
    """

    def __init__(self, work: Work[T, R], task: T) -> None:
        self._work, self._task = work, task

    def __call__(self) -> R:
        """Do the work in an event loop of its own."""

        async def finish() -> R:
            return await self._work(self._task)

        return asyncio.run(finish())

    def __reduce__(self) -> tuple[Any, ...]:
        # A pool's own pickler knows a notebook's functions by name only.
        return _unpack, (cloudpickle.dumps((self._work, self._task)),)


def _unpack(data: bytes) -> Job[Any, Any]:
    return Job(*cloudpickle.loads(data))


async def run_all(tasks: Iterable[T], at_once: int, work: Work[T, R]) -> AsyncGenerator[R, None]:
    """Run tasks, some at a time, and yield each result as soon as it is there.

    Closing the generator cancels the tasks under way.

    Args:
        tasks: the tasks.
        at_once: how many run at a time.
        work: what to do with a task.
    """
    waiting, running = iter(tasks), set[asyncio.Future[R]]()

    def fill() -> None:
        for task in waiting:
            running.add(asyncio.ensure_future(work(task)))
            if len(running) >= at_once:
                return

    try:
        fill()
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            running -= done
            fill()
            for future in done:
                yield future.result()
    finally:
        for future in running:
            future.cancel()
        await asyncio.gather(*running, return_exceptions=True)
