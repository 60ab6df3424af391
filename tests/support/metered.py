"""What the embedded server reads of prompts, and what it had in its cache, as replies are scripted.

So a run goes the way it is meant to, whatever a small model would write.
"""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from ipyrefine.core.model import Usage
from ipyrefine.core.ports import Delta, Message, Reply, Request
from ipyrefine.providers.local import LocalModel


class Metered:
    """A model whose prompts are read by the embedded server, and whose replies are scripted.

    Args:
        path: the server's weights.
        answer: gives the reply to a request.
        remember: whether a reply gets into the server's cache, as one does that it wrote itself.
    """

    name = "metered"

    def __init__(
        self, path: Path, answer: Callable[[Request], str], *, remember: bool = False
    ) -> None:
        self._server = LocalModel(path, name="server")
        self._answer, self._remember = answer, remember

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Reply, None]:
        usage, said = await self._read(request), self._answer(request)
        if self._remember:
            written = (*request.messages, Message(role="assistant", content=said))
            await self._read(Request(messages=written))
        yield Delta(text=said)
        yield Reply(text=said, usage=usage)

    async def _read(self, request: Request) -> Usage:
        usage = Usage()
        async for part in self._server.stream(request.model_copy(update={"max_tokens": 1})):
            usage = part.usage if isinstance(part, Reply) else usage
        return usage
