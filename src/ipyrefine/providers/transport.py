"""How far a server is trusted on the wire: where requests go, and how much is read from it."""

import base64
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import httpx2

from ipyrefine import errors
from ipyrefine.providers import errors as faults

MOST_BYTES = 16 * 2**20  # a reply of a hundred thousand tokens, each in a chunk of its own
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Endpoint(NamedTuple):
    """A server's address, apart from the secrets that were written into it.

    Attributes:
        url: where requests go; it holds no secret, so that logs may show it.
        login: the ``Authorization`` header made of the address's user and password, or empty.
        password: the address's password, for taking it out of a server's words.
    """

    url: str
    login: str = ""
    password: str = ""

    @property
    def secrets(self) -> tuple[str, str]:
        """What must never be shown, though a server may repeat it."""
        return self.password, self.login.removeprefix("Basic ")

    @property
    def on_this_machine(self) -> bool:
        """Whether it is loopback, which no proxy can reach."""
        return urlsplit(self.url).hostname in _LOOPBACK


def endpoint(base_url: str) -> Endpoint:
    """Read a base URL.

    Raises:
        UsageError: it is not an http or https address up to ``/v1``.
    """
    url = faults.checked_url(base_url)
    parts = urlsplit(base_url)
    if parts.query or parts.fragment:
        raise errors.UsageError(
            f"The base URL of {url} goes on after its path: leave out what follows the ? or #, "
            "and give a key as OPENAI_API_KEY."
        )
    if parts.username is None:
        return Endpoint(url)
    password = unquote(parts.password or "")
    login = base64.b64encode(f"{unquote(parts.username)}:{password}".encode()).decode()
    return Endpoint(url, f"Basic {login}", password)


class TooLong(Exception):
    """A server sent more than any reply may hold."""


async def bound(response: httpx2.Response) -> None:
    """Let a response's body end in `TooLong` after `MOST_BYTES`; an event hook for a client."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for data in self._stream:
            read += len(data)
            if read > MOST_BYTES:
                raise TooLong
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
