"""Making a call of the user's code stoppable, though it blocks the event loop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class TimeUp(BaseException):
    """The call took too long; no `Exception`, so that the call does not swallow it."""


@contextmanager
def stoppable(seconds: float | None) -> Iterator[None]:
    """Let the body be ended by a time limit, and by an interrupt at once.

    The handlers of a kernel or an event loop only take note of an interrupt and wait for their
    turn, which a body that hangs never gives them. It works in the main thread, and the time
    limit on POSIX; elsewhere the body runs as it is. Code that runs outside of Python cannot be
    ended before it comes back.

    Args:
        seconds: wall time the body may take; None for any.

    Raises:
        TimeUp: it took longer.
        KeyboardInterrupt: the user interrupted it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with _alarm(seconds):
            yield
    finally:
        if interrupt is not None:  # it was not installed from Python: it cannot be put back
            signal.signal(signal.SIGINT, interrupt)


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _time_up)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        if before is not None:
            signal.signal(signal.SIGALRM, before)


def _time_up(*_: Any) -> NoReturn:
    raise TimeUp
