"""Play back scripted replies: a model for tests, demonstrations and teaching."""

import asyncio
from collections.abc import Callable, Iterable

from ipyrefine.core.ports import Delta, Reply, Request, Stream, estimate_usage
from ipyrefine.errors import ModelError, UsageError
from ipyrefine.providers.stream import split_thoughts

Scripted = str | Reply | ModelError | Callable[[Request], str | Reply]


class ScriptedModel:
    """Answer each request with the next of its replies, streamed in chunks.

    Args:
        replies: one item per call: a text; a whole `Reply`; an error to raise; or a callable that
            makes a text or `Reply` from the request. May be endless.
        name: name for people and records.
        chunk: characters per chunk.
        delay: seconds before each chunk.

    Attributes:
        requests: every request so far.
    """

    def __init__(
        self,
        replies: Iterable[Scripted],
        *,
        name: str = "scripted",
        chunk: int = 16,
        delay: float = 0.0,
    ) -> None:
        self.requests: list[Request] = []
        self._replies = iter(replies)
        self._name = name
        self._chunk = chunk
        self._delay = delay

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self._name

    async def stream(self, request: Request) -> Stream:
        """Stream the next reply; a plain text counts a quarter of its characters as tokens.

        Raises:
            ModelError: the next item is that error.
            UsageError: all replies were used.
        """
        reply = self._next(request)
        for one in reply.pieces:
            for start in range(0, len(one.text), self._chunk):
                # Even without a delay the event loop gets its turn, as with a real model.
                await asyncio.sleep(self._delay)
                yield Delta(kind=one.kind, text=one.text[start : start + self._chunk])
        yield reply

    def _next(self, request: Request) -> Reply:
        self.requests.append(request)
        try:
            item = next(self._replies)
        except StopIteration:
            raise UsageError(
                f"{self._name} has {len(self.requests) - 1} replies and was asked for one more. "
                "Add another reply."
            ) from None
        if isinstance(item, ModelError):
            raise item
        if callable(item):
            item = item(request)
        if isinstance(item, Reply):
            return item
        thinking, text = split_thoughts(item)
        return Reply(text=text, thinking=thinking, usage=estimate_usage(request, len(item)))
