"""How a cell waits for its run: what it shows until its panel is there, and callers that block."""

import asyncio
import contextlib
import contextvars
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from importlib import import_module
from types import FrameType
from typing import Any

from ipyrefine.errors import Interrupted, UsageError

STARTING = "Starting…"
_STARTING = {
    "text/html": f'<p role="status" style="font: 13px system-ui, sans-serif">{STARTING}</p>',
    "text/plain": STARTING,
}
# It is also what an export of a notebook shows in the panel's place.
NO_FRONT_END = (
    "The panel needs widgets and a live kernel. `%refine` works without them, "
    "and the run's record follows."
)
NO_ANYWIDGET = (
    "The panel needs anywidget (`pip install anywidget`). Without it you get a plain record "
    "when the run stops, and the `%refine` commands."
)
PANEL_OFF = {"quiet=yes", "--set=quiet=yes", "--plain"}  # as options are typed
# In the order in which a cell needs them; each import is one pause of the kernel's loop.
_MODULES = (
    "ipyrefine.session.commands", "ipyrefine.notebook.cell_start", "anywidget",
    "ipyrefine.notebook.panel", "httpx2", "openai", "ipyrefine.providers.openai",
)  # fmt: skip
_PAUSE = 0.1  # seconds between two imports

AWAIT_IT = "%%refine can't block here. Put `await` before the call, or use a cell of its own."
TIMEIT = "%%timeit would refine the cell several times. Use %%time."


class Placeholder:
    """A panel's place in a cell's output, which holds one line until the panel is there.

    Attributes:
        before: takes away the widget that is there, before another one takes its place.
    """

    def __init__(self) -> None:
        self._handle: Any = None
        self.before: Callable[[], None] | None = None

    def show(self) -> None:
        """Show that the cell starts; takes milliseconds, where the panel can take a second."""
        from IPython.display import display

        self._handle = display(_STARTING, raw=True, display_id=True)

    def fill(self, widget: Any) -> None:
        """Put a widget there; a front-end that cannot show it says what to do instead."""
        from IPython.display import display

        if self.before and self._handle:
            # JupyterLab would hide a view together with one whose place it takes.
            self._handle.update(_STARTING, raw=True)
            self.before()
        data, metadata = widget._repr_mimebundle_()  # the metadata is Colab's
        data |= {"text/plain": NO_FRONT_END}
        if self._handle is None:
            self._handle = display(data, raw=True, metadata=metadata, display_id=True)
        else:
            self._handle.update(data, raw=True, metadata=metadata)

    def clear(self) -> None:
        """Remove what is there: a static page would show a closed panel's sentence for ever."""
        if self._handle is not None:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)
            self._handle = None


def warm_up() -> None:
    """Import what the first cell will need, piece by piece, while the kernel is idle."""
    if not (loop := running_loop()):
        return  # a plain shell is never idle
    names = iter(_MODULES)

    def import_next() -> None:
        if name := next(names, ""):
            # An error is reported where the module is needed.
            with contextlib.suppress(Exception):
                import_module(name)
            loop.call_later(_PAUSE, import_next)

    loop.call_later(_PAUSE, import_next)


# Callers that cannot await


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread; None where there is none."""
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


def caller_waits() -> bool:
    """Return True if the code that runs now has a caller that waits for it without an event loop.

    Such a caller hears no answer of a front-end and no click until the code has ended.
    """
    from ipyrefine.kernel.snapshot import CALLER_WAITS  # lazy: loading must stay light

    return CALLER_WAITS.get()


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
    from ipyrefine.kernel.snapshot import CALLER_WAITS

    context = contextvars.copy_context()
    context.run(CALLER_WAITS.set, True)
    if running_loop():
        _run_in_thread(work, context)
    else:
        context.run(_run_here, work)


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
    """Return True if the cell that is being transformed may hold ``await``.

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
            awaits = awaits and not nested and not (name == "_run_cell" and running_loop())
        frame = frame.f_back
    return awaits
