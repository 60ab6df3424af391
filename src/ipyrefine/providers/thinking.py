"""Telling a model's ``<think>`` block from its text while both stream."""

from typing import Literal

from ipyrefine.core.ports import Delta

_OPEN = "<think>"
_CLOSE = "</think>"


class ThinkSplitter:
    """Splits streamed text into thinking and text; a tag may be cut anywhere between pieces.

    Only blocks that open a reply count: the same tag further on is part of the text, which may
    well be code about such tags.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "thinking", "after", "text"] = "start"
        self._held = ""

    def feed(self, piece: str) -> list[Delta]:
        """Take the next piece; return what is certain by now."""
        self._held += piece
        deltas: list[Delta] = []
        while self._held:
            before = (self._state, self._held)
            deltas += self._thinking() if self._state == "thinking" else self._text()
            if (self._state, self._held) == before:
                break
        return deltas

    def close(self) -> list[Delta]:
        """End the stream; return what was held back."""
        held, self._held = self._held, ""
        if self._state == "after":
            held = held.lstrip()
        return _deltas("thinking" if self._state == "thinking" else "text", held)

    def _thinking(self) -> list[Delta]:
        thought, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._state, self._held = "after", rest
            return _deltas("thinking", thought)
        keep = _overlap(self._held, _CLOSE)
        cut = len(self._held) - keep
        thought, self._held = self._held[:cut], self._held[cut:]
        return _deltas("thinking", thought)

    def _text(self) -> list[Delta]:
        if self._state != "text":
            words = self._held.lstrip()
            if _OPEN.startswith(words):
                return []
            if words.startswith(_OPEN):
                self._state, self._held = "thinking", words.removeprefix(_OPEN)
                return []
            if self._state == "after":
                self._held = words
            self._state = "text"
        text, self._held = self._held, ""
        return _deltas("text", text)


def _deltas(kind: Literal["text", "thinking"], text: str) -> list[Delta]:
    return [Delta(kind=kind, text=text)] if text else []


def _overlap(text: str, tag: str) -> int:
    """Length of the longest end of `text` that begins `tag`."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)
