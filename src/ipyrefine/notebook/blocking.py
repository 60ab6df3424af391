"""Run a coroutine to its end for a caller that cannot await, and tell such callers apart."""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from types import FrameType
from typing import Any

from ipyrefine.errors import Interrupted, UsageError

AWAIT_IT = "%%refine can't block here. Put `await` before the call, or use a cell of its own."
TIMEIT = "%%timeit would refine the cell several times. Use %%time."

_BLOCKING = contextvars.ContextVar("ipyrefine_blocking", default=False)


def caller_waits() -> bool:
    """Return whether the code that runs now has a caller that waits for it without an event loop.

    Such a caller hears no answer of a front-end and no click until the code has ended.
    """
    return _BLOCKING.get()


class _Finished:
    """A result that is harmless to await, and displays nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()

    def __repr__(self) -> str:
        return ""

    def _ipython_display_(self) -> None:
        """Display nothing."""


FINISHED = _Finished()


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine while the caller waits: in this thread, or next to its running event loop.

    Raises:
        Interrupted: an interrupt came before the work could take it.
        UsageError: an event loop runs here, and there are no threads.
    """
    context = contextvars.copy_context()
    context.run(_BLOCKING.set, True)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        context.run(_run_here, work)
    else:
        _run_in_thread(work, context)


def _run_here(work: Coroutine[Any, Any, None]) -> None:
    # A loop of its own: `asyncio.run` would leave the thread without the one that is set.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(work)


def _run_in_thread(work: Coroutine[Any, Any, None], context: contextvars.Context) -> None:
    """Run a coroutine in a thread; an interrupt of this one cancels it there."""
    running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    ended: Future[None] = Future()

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None, "a coroutine that runs has a task"
        running.set_result((asyncio.get_running_loop(), task))
        await work

    def run() -> None:
        try:
            _run_here(main())
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    try:
        threading.Thread(target=context.run, args=(run,), daemon=True).start()
    except RuntimeError:  # a browser's Python has no threads
        work.close()
        raise UsageError(AWAIT_IT) from None
    while True:
        try:
            return ended.result()
        except asyncio.CancelledError:
            raise Interrupted("Interrupted.") from None
        except KeyboardInterrupt:
            if ended.done():
                raise
            loop, task = running.result()
            loop.call_soon_threadsafe(task.cancel)


def can_await() -> bool:
    """Return whether the cell that is being transformed may hold ``await``.

    Not where another magic (``%%time``, ``%%capture``, ``%run``) has it transformed, or a
    synchronous ``run_cell`` within a running event loop, nor where the shell does not await
    (`IPython.embed`).

    Raises:
        UsageError: ``%%timeit`` would run it many times.
    """
    from IPython import get_ipython
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.magics.execution import ExecutionMagics

    frame: FrameType | None = sys._getframe()
    awaits = bool(getattr(get_ipython(), "autoawait", True))
    while frame is not None:
        name, owner = frame.f_code.co_name, frame.f_locals.get("self")
        if name == "timeit" and isinstance(owner, ExecutionMagics):
            raise UsageError(TIMEIT)
        if isinstance(owner, InteractiveShell):
            nested = name in ("run_cell_magic", "run_line_magic")
            awaits = awaits and not nested and not (name == "_run_cell" and _loop_runs())
        frame = frame.f_back
    return awaits


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
