"""A growing text on its way to the page: every piece is sent once, and the page puts it together.

The page's half is `labextension/static/live.js`. The kernel opens a comm with the target
`ipyrefine.live`, whose id is also what the page finds the text's place by. It sends
``{at, text}``: a piece, and how many UTF-16 units stand before it, as JavaScript counts them; 0
starts a new text. A page that listens, or has missed a piece, sends anything at all, and is sent
the whole text. One without our half closes the comm or says nothing.
"""

from collections.abc import Callable
from typing import Any

from ipyrefine.notebook.channel import Channel, open_channel
from ipyrefine.notebook.looping import Loop
from ipyrefine.render.escape import plain

TARGET = "ipyrefine.live"


class Stream:
    """A text that grows, in every page that listens.

    Args:
        loop: where messages are taken.
        changed: what to call when a page is there, or is gone.
        comm_factory: as for `open_channel`.

    Attributes:
        id: what a page knows the text by; empty where there is no kernel.
        heard: whether a page listens.
    """

    def __init__(
        self,
        loop: Loop,
        changed: Callable[[], None],
        comm_factory: Callable[..., Channel] | None = None,
    ) -> None:
        self._changed, self.heard = changed, False
        self._channel = open_channel(TARGET, {}, comm_factory)
        self.id = ""
        self.start()
        if self._channel is not None:
            self.id = self._channel.comm_id
            self._channel.on_msg(lambda _: loop.hand_over(self._answer))
            self._channel.on_close(lambda _: loop.hand_over(self._lose))

    def start(self) -> None:
        """Begin a new text; pages learn of it with its first piece."""
        self._parts: list[str] = []
        self._at, self._held = 0, ""

    def add(self, text: str) -> None:
        """Send a piece of the text, with what cannot be seen made visible."""
        # A line break may come in two pieces, of which the first alone looks like a stray control.
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        shown = plain(text.removesuffix("\r"))
        if self.heard:
            self._send(self._at, shown)
        self._parts.append(shown)
        self._at += len(shown.encode("utf-16-le")) // 2

    def close(self) -> None:
        """Let the pages forget the text."""
        self._changed, channel = _nothing, self._channel
        self._lose()
        if channel is not None:
            channel.close()

    def _send(self, at: int, text: str) -> None:
        data: dict[str, Any] = {"at": at, "text": text}
        if self._channel is not None:
            self._channel.send(data)

    def _answer(self) -> None:
        """Send all of the text: to a page that is new, while the others lose nothing by it."""
        self._send(0, "".join(self._parts))
        if self._channel is not None and not self.heard:
            self.heard = True
            self._changed()

    def _lose(self) -> None:
        self._channel, self.heard = None, False
        self._changed()


def _nothing() -> None:
    """Nothing is left to change."""
