"""Wait for what may hang, as a locked keyring or a firewalled name does, no longer than it may."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any


def within(seconds: float, action: Callable[[], Any]) -> Any:
    """Return what an action gives; a thread in which it hangs for longer is left behind.

    Raises:
        TimeoutError: it took longer.
        RuntimeError: there are no threads, as in a browser's Python.
        Exception: what the action raised.
    """
    answer = Future[Any]()

    def work() -> None:
        try:
            answer.set_result(action())
        except Exception as error:
            answer.set_exception(error)

    Thread(target=work, name="ipyrefine-within", daemon=True).start()
    return answer.result(seconds)
