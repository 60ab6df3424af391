"""Assemble a reply from the chunks of a chat completion stream."""

from typing import Any, Literal

from ipyrefine.core.model import Finish, Usage
from ipyrefine.core.ports import Delta, Reply, Request

_OPEN = "<think>"
_CLOSE = "</think>"
_MAX_COUNT = 10**12
_MAX_DOLLARS = 10_000  # for one call; more is a mistake
_CHARS_PER_TOKEN = 4
_COUNTS = ("prompt_tokens", "completion_tokens")

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
        self._splitter = _ThinkingSplitter()
        self._parts: dict[str, list[str]] = {"text": [], "thinking": []}
        self._refused = False
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self.progress = 0

    def feed(self, chunk: dict[str, Any]) -> list[Delta]:
        """Take one chunk and return what it adds to the reply."""
        self._usage = _object(chunk.get("usage")) or self._usage
        if reading := _reading(_object(chunk.get("prompt_progress"))):
            self.progress += 1
            return [Delta(kind="thinking", text=f"{reading}\n")]  # no part of the reply
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
        text = self._splitter.feed(_string(delta.get("content")) + refusal)
        return self._keep([*_deltas("thinking", thinking), *text])

    def close(self) -> list[Delta]:
        """End the stream and return what was held back."""
        return self._keep(self._splitter.close())

    def reply(self, seconds: float) -> Reply:
        """Return the finished reply; tokens the server did not count are estimated.

        Args:
            seconds: wall time of the call.
        """
        estimate = estimate_usage(
            self._request, sum(len("".join(parts)) for parts in self._parts.values())
        )
        counts = {name: _count(self._usage.get(name)) for name in _COUNTS}
        details = _object(self._usage.get("prompt_tokens_details"))
        usage = {
            **{name: count for name, count in counts.items() if count is not None},
            "cached_tokens": _count(details.get("cached_tokens")),
            "seconds": seconds,
            "cost": _dollars(self._usage.get("cost")),
        }
        return Reply(
            text="".join(self._parts["text"]),
            thinking="".join(self._parts["thinking"]).strip(),
            finish=self._finish(),
            usage=estimate.model_copy(update=usage),
        )

    def _keep(self, deltas: list[Delta]) -> list[Delta]:
        for delta in deltas:
            self._parts[delta.kind].append(delta.text)
        return deltas

    def _finish(self) -> Finish:
        if self._refused:
            return "refused"
        return "incomplete" if self._reason is None else _FINISHES.get(self._reason.lower(), "stop")


class _ThinkingSplitter:
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
        # The longest end that may begin the tag is held back.
        held = next((n for n in range(len(_CLOSE) - 1, 0, -1) if thinking.endswith(_CLOSE[:n])), 0)
        cut = len(thinking) - held
        self._buffer = thinking[cut:]
        return _deltas("thinking", thinking[:cut])

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


def estimate_usage(request: Request, chars: int) -> Usage:
    """Return the usage of a call whose tokens nobody counted: a quarter of the characters.

    Args:
        request: the call.
        chars: characters of its reply.
    """
    prompt = sum(len(message.content) for message in request.messages)
    tokens = (max(1, round(count / _CHARS_PER_TOKEN)) for count in (prompt, chars))
    return Usage(calls=1, **dict(zip(_COUNTS, tokens, strict=True)))


def _reading(progress: dict[str, Any]) -> str:
    """Return how far llama.cpp has read a prompt, in words; empty where it says nothing of it."""
    done, total = (_count(progress.get(name)) for name in ("processed", "total"))
    if done is None or total is None or done >= total:
        return ""
    return f"Reading the prompt: {done:,} of {total:,} tokens"


def _deltas(kind: Literal["text", "thinking"], text: str) -> list[Delta]:
    return [Delta(kind=kind, text=text)] if text else []


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


def _count(value: object) -> int | None:
    # Whatever a server sends, a count stays a number that can be added and shown.
    return value if type(value) is int and 0 <= value < _MAX_COUNT else None


def _dollars(value: object) -> float | None:
    """Return the price of the call if the server bills it itself (OpenRouter's ``usage.cost``)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MAX_DOLLARS else None  # nor is NaN
