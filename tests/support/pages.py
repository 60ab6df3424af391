"""A fake page at the other end of the stream comm."""

from collections.abc import Callable
from typing import Any


class Page:
    """A comm and its page, which joins the pieces as live.js does.

    Attributes:
        pieces: every message, in order.
        text: the text on the page.
        closed: whether the kernel has closed the comm.
    """

    comm_id = "the-comm"

    def __init__(self) -> None:
        self.target = ""
        self.pieces: list[dict[str, Any]] = []
        self.text = ""
        self.closed = False
        self._on_msg: Callable[[dict[str, Any]], None] = print
        self._on_close: Callable[[dict[str, Any]], None] = print

    def __call__(self, *, target_name: str, data: dict[str, Any]) -> "Page":
        self.target = target_name
        return self

    def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self._on_msg = callback

    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self._on_close = callback

    def send(self, data: dict[str, Any]) -> None:
        assert not self.closed
        self.pieces.append(data)
        if data["at"] == 0:
            self.text = data["text"]
            return
        assert data["at"] == len(self.text.encode("utf-16-le")) // 2, "a piece is missing"
        self.text += data["text"]

    def close(self) -> None:
        self.closed = True

    def ask(self) -> None:
        """Announce the page to the kernel."""
        self._on_msg({"content": {"data": {}}})

    def hang_up(self) -> None:
        """Close the comm, as a page without our extension does."""
        self._on_close({"content": {"data": {}}})
