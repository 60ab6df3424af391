"""Assemble a reply from the chunks of a chat completion stream."""

from typing import Any, Literal

from ipyrefine.core.model import Finish, Usage
from ipyrefine.core.ports import Delta, Reply, Request

_OPEN = "<think>"
_CLOSE = "</think>"
_MAX_COUNT = 10**12
_MAX_DOLLARS = 10_000  # for one call; more is a mistake
_CHARS_PER_TOKEN = 4

# Every other reason a server gives (``eos``, ``tool_calls``, …) is a reply that ended by itself.
_FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
    "safety": "filtered",
    "refusal": "refused",
    "error": "incomplete",
    "abort": "incomplete",
}


class Assembly:
    """A reply under construction; it accepts whatever JSON objects a server sends as chunks.

    Attributes:
        progress: grows with every chunk that adds to the reply or ends it, and with no other.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._splitter = ThinkingSplitter()
        self._parts: dict[str, list[str]] = {"text": [], "thinking": []}
        self._refused = False
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self.progress = 0

    def feed(self, chunk: dict[str, Any]) -> list[Delta]:
        """Take one chunk and return what it adds to the reply."""
        self._usage = _object(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        # Azure's first chunk and every final usage chunk hold no choice.
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        delta = _object(choice.get("delta")) or _object(choice.get("message"))  # or a whole reply
        thinking = _string(delta.get("reasoning_content")) or _string(delta.get("reasoning"))
        refusal = _string(delta.get("refusal"))
        self._refused |= bool(refusal)
        reason = _string(choice.get("finish_reason"))
        self.progress += _adds(delta) or bool(reason and self._reason is None)
        self._reason = reason or self._reason
        deltas = [Delta(kind="thinking", text=thinking)] if thinking else []
        return self._keep(deltas + self._splitter.feed(_string(delta.get("content")) + refusal))

    def close(self) -> list[Delta]:
        """End the stream and return what was held back."""
        return self._keep(self._splitter.close())

    def reply(self, seconds: float) -> Reply:
        """Return the finished reply; tokens the server did not count are estimated.

        Args:
            seconds: wall time of the call.
        """
        return Reply(
            text="".join(self._parts["text"]),
            thinking="".join(self._parts["thinking"]).strip(),
            finish=self._finish(),
            usage=self._count(seconds),
        )

    def _keep(self, deltas: list[Delta]) -> list[Delta]:
        for delta in deltas:
            self._parts[delta.kind].append(delta.text)
        return deltas

    def _finish(self) -> Finish:
        if self._refused:
            return "refused"
        if self._reason is None:
            return "incomplete"
        return _FINISHES.get(self._reason.lower(), "stop")

    def _count(self, seconds: float) -> Usage:
        prompt_chars = sum(len(message.content) for message in self._request.messages)
        reply_chars = sum(len(part) for parts in self._parts.values() for part in parts)
        prompt = _token_count(self._usage.get("prompt_tokens"))
        completion = _token_count(self._usage.get("completion_tokens"))
        details = _object(self._usage.get("prompt_tokens_details"))
        return Usage(
            calls=1,
            prompt_tokens=estimate_tokens(prompt_chars) if prompt is None else prompt,
            cached_tokens=_token_count(details.get("cached_tokens")),
            completion_tokens=estimate_tokens(reply_chars) if completion is None else completion,
            seconds=seconds,
            cost=_dollars(self._usage.get("cost")),
        )


class ThinkingSplitter:
    """Split streamed text into thinking and text; a tag may be cut anywhere between chunks.

    Only ``<think>`` blocks that open a reply count: the same tag further on is part of the text,
    which may well be code about such tags.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "thinking", "after", "text"] = "start"
        self._buffer = ""

    def feed(self, chunk: str) -> list[Delta]:
        """Take the next chunk and return what is certain by now."""
        self._buffer += chunk
        deltas: list[Delta] = []
        while self._buffer:
            before = (self._state, self._buffer)
            deltas += self._thinking() if self._state == "thinking" else self._text()
            if (self._state, self._buffer) == before:
                break
        return deltas

    def close(self) -> list[Delta]:
        """End the stream and return what was held back."""
        rest, self._buffer = self._buffer, ""
        if self._state == "after":
            rest = rest.lstrip()
        return _deltas("thinking" if self._state == "thinking" else "text", rest)

    def _thinking(self) -> list[Delta]:
        thinking, tag, rest = self._buffer.partition(_CLOSE)
        if tag:
            self._state, self._buffer = "after", rest
            return _deltas("thinking", thinking)
        cut = len(self._buffer) - _overlap(self._buffer, _CLOSE)
        thinking, self._buffer = self._buffer[:cut], self._buffer[cut:]
        return _deltas("thinking", thinking)

    def _text(self) -> list[Delta]:
        if self._state != "text":
            stripped = self._buffer.lstrip()
            if _OPEN.startswith(stripped):
                return []
            if stripped.startswith(_OPEN):
                self._state, self._buffer = "thinking", stripped.removeprefix(_OPEN)
                return []
            if self._state == "after":
                self._buffer = stripped
            self._state = "text"
        text, self._buffer = self._buffer, ""
        return _deltas("text", text)


def estimate_tokens(chars: int) -> int:
    """Return about how many tokens `chars` characters are: a quarter of them, at least 1."""
    return max(1, round(chars / _CHARS_PER_TOKEN))


def _deltas(kind: Literal["text", "thinking"], text: str) -> list[Delta]:
    return [Delta(kind=kind, text=text)] if text else []


def _overlap(text: str, tag: str) -> int:
    """Return the length of the longest end of `text` that begins `tag`."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)


def _adds(delta: dict[str, Any]) -> bool:
    """Return whether a delta holds anything but its role; a model may think in any field."""
    return any(
        value.strip() if isinstance(value, str) else value
        for name, value in delta.items()
        if name != "role" and isinstance(value, str | list | dict)
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _token_count(value: object) -> int | None:
    # Whatever a server sends, a count stays a number that can be added and shown.
    return value if type(value) is int and 0 <= value < _MAX_COUNT else None


def _dollars(value: object) -> float | None:
    """Return the price of the call if the server bills it itself (OpenRouter's ``usage.cost``)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MAX_DOLLARS else None  # nor is NaN
