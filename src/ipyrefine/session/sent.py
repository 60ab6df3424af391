"""What was sent to the models of a run, kept in memory for the user to read."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from ipyrefine.core.ports import Delta, Model, Notice, Reply, Request
from ipyrefine.render import labels

_MOST = 100  # requests that are kept


class SentLog:
    """The latest requests, in order."""

    def __init__(self) -> None:
        self._requests: deque[tuple[int, str, Request]] = deque(maxlen=_MOST)
        self._count = 0

    def watch(self, model: Model) -> Model:
        """Return a model that does what the given one does, and keeps its requests here."""
        return _Watched(model, self)

    def add(self, name: str, request: Request) -> None:
        """Keep a request to the model of a name."""
        self._count += 1
        self._requests.append((self._count, name, request))

    @property
    def prompts(self) -> list[tuple[str, str]]:
        """The requests as title and text, the earliest first."""
        return [
            (
                f"{number} · {labels.STAGES.get(request.purpose, request.purpose)} · {name}",
                "\n\n".join(f"[{one.role}]\n{one.content}" for one in request.messages),
            )
            for number, name, request in self._requests
        ]


class _Watched:
    """A model whose requests are kept."""

    def __init__(self, model: Model, log: SentLog) -> None:
        self._model, self._log = model, log
        self.name = model.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
        """Stream the model's reply."""
        self._log.add(self._model.name, request)
        async with aclosing(self._model.stream(request)) as parts:  # type: ignore[type-var]
            async for part in parts:
                yield part
