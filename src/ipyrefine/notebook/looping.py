"""The event loop that a panel lives on, as far as there is one."""

import asyncio
import threading
from collections.abc import Callable


class Loop:
    """The loop and the thread that a panel is drawn on."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self.notice()

    def notice(self) -> None:
        """Take the loop and the thread this runs on for the panel's, from now on."""
        self._thread = threading.get_ident()
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # a plain shell between two runs; the loop of the last one may still live

    def later(self, seconds: float, action: Callable[[], None]) -> asyncio.Handle | None:
        """Run an action in so many seconds; None where there is no loop to do it."""
        loop = self._alive()
        return loop.call_later(seconds, action) if loop else None

    def hand_over(self, action: Callable[[], None]) -> None:
        """Run an action on the panel's thread: at once if that is this one.

        Some front-ends deliver clicks and messages on a thread of their own.
        """
        loop = self._alive()
        if loop is None or threading.get_ident() == self._thread:
            action()
        else:
            loop.call_soon_threadsafe(action)

    def _alive(self) -> asyncio.AbstractEventLoop | None:
        return None if self._loop is None or self._loop.is_closed() else self._loop
