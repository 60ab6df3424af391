"""A model that plays back given replies: for tests, demonstrations and teaching."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Literal

from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.core.usage import Usage
from ipyrefine.errors import ModelError, UsageError
from ipyrefine.providers.tokens import estimate_tokens

Scripted = str | Reply | ModelError | Callable[[Request], str | Reply]


class ScriptedModel:
    """Answers each request with the next of its replies, streamed in pieces.

    Args:
        replies: one item a call: a text; a whole `Reply`; an error to raise; or a callable that
            makes a text or `Reply` from the request. May be endless.
        name: name for people and records.
        chunk: characters per piece.
        delay: seconds before each piece.

    Attributes:
        requests: every request made so far.

    Raises:
        UsageError: `chunk` is not positive.
    """

    def __init__(
        self,
        replies: Iterable[Scripted],
        *,
        name: str = "scripted",
        chunk: int = 16,
        delay: float = 0.0,
    ) -> None:
        if chunk < 1:
            raise UsageError(f"chunk must be at least 1 character, not {chunk}.")
        self.requests: list[Request] = []
        self._replies = iter(replies)
        self._given = 0
        self._name = name
        self._chunk = chunk
        self._delay = delay

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self._name

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Stream the next reply; tokens of a plain text are estimated, a quarter of its characters.

        Raises:
            ModelError: the next item is that error.
            UsageError: all replies were used.
        """
        reply = self._next(request)
        parts: tuple[tuple[Literal["thinking", "text"], str], ...]
        parts = (("thinking", reply.thinking), ("text", reply.text))
        for kind, text in parts:
            for start in range(0, len(text), self._chunk):
                # Even without a delay the event loop gets its turn, as with a real model.
                await asyncio.sleep(self._delay)
                yield Delta(kind=kind, text=text[start : start + self._chunk])
        yield reply

    def _next(self, request: Request) -> Reply:
        self.requests.append(request)
        try:
            item = next(self._replies)
        except StopIteration:
            raise UsageError(
                f"{self._name} was given {self._given} replies and asked for one more: "
                "give it another."
            ) from None
        self._given += 1
        if isinstance(item, ModelError):
            raise item
        if callable(item):
            item = item(request)
        return item if isinstance(item, Reply) else _reply(item, request)


def _reply(text: str, request: Request) -> Reply:
    asked = sum(len(message.content) for message in request.messages)
    usage = Usage(
        calls=1,
        prompt_tokens=estimate_tokens(asked),
        completion_tokens=estimate_tokens(len(text)),
    )
    return Reply(text=text, usage=usage)
