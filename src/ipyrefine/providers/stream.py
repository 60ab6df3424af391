"""Putting a reply together from the chunks of a chat completion stream."""

import math
from typing import Any, Literal

from ipyrefine.core.ports import Delta, Reply, Request
from ipyrefine.core.usage import Usage
from ipyrefine.providers.thinking import ThinkSplitter
from ipyrefine.providers.tokens import estimate_tokens

_MOST_TOKENS = 10**12

Finish = Literal["stop", "length", "refused", "filtered", "incomplete"]

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
    """A reply under way; total over whatever JSON objects a server may send as chunks."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._splitter = ThinkSplitter()
        self._parts: dict[str, list[str]] = {"text": [], "thinking": []}
        self._refused = False
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}

    def feed(self, chunk: dict[str, Any]) -> list[Delta]:
        """Take one chunk; return what it adds to the reply."""
        self._usage = _object(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        # Azure's first chunk and every final usage chunk hold no choice.
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        delta = _object(choice.get("delta"))
        thinking = _string(delta.get("reasoning_content")) or _string(delta.get("reasoning"))
        refusal = _string(delta.get("refusal"))
        self._refused |= bool(refusal)
        self._reason = _string(choice.get("finish_reason")) or self._reason
        deltas = [Delta(kind="thinking", text=thinking)] if thinking else []
        return self._keep(deltas + self._splitter.feed(_string(delta.get("content")) + refusal))

    def close(self) -> list[Delta]:
        """End the stream; return what was held back."""
        return self._keep(self._splitter.close())

    def reply(self, seconds: float) -> Reply:
        """Return the finished reply; a server that did not count gets estimated tokens.

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
        asked = sum(len(message.content) for message in self._request.messages)
        written = sum(len(part) for parts in self._parts.values() for part in parts)
        prompt = _count_of(self._usage.get("prompt_tokens"))
        completion = _count_of(self._usage.get("completion_tokens"))
        details = _object(self._usage.get("prompt_tokens_details"))
        return Usage(
            calls=1,
            prompt_tokens=estimate_tokens(asked) if prompt is None else prompt,
            cached_tokens=_count_of(details.get("cached_tokens")),
            completion_tokens=estimate_tokens(written) if completion is None else completion,
            seconds=seconds,
            cost=_dollars(self._usage.get("cost")),
        )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count_of(value: object) -> int | None:
    # Whatever a server says, a count stays a number that can be added and shown.
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else None


def _dollars(value: object) -> float | None:
    """Price of the call where the server itself bills it (OpenRouter's ``usage.cost``)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None
