"""Models behind OpenAI and every server that speaks its chat completions; all of `openai` is here.

What a server does not take is found out by asking for less (`ladder`); what goes wrong becomes
one of `ipyrefine.errors` in `as_model_error` and nowhere else.
"""

import asyncio
import json
import math
import os
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

import httpx2
import openai

from ipyrefine import errors
from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.core.usage import Price
from ipyrefine.providers import capabilities as ladder
from ipyrefine.providers import errors as faults
from ipyrefine.providers import prices, retries, transport
from ipyrefine.providers.refusals import Refusal, read_refusal
from ipyrefine.providers.stream import Assembly

_OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_S = 10.0
_NO_KEY = "none"  # local servers want no key, but the client insists on one

_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError)
_FAULTS = (
    openai.OpenAIError,
    httpx2.HTTPError,
    httpx2.StreamError,
    transport.TooLong,
    TimeoutError,
    *_UNREADABLE,
)

_Stream = openai.AsyncStream[Any]


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    Only a request that has not been answered yet is retried, never one whose reply has begun.
    Tokens a server does not count are estimated as a quarter of the characters.

    Args:
        model: the name the server knows it by.
        base_url: the server's address, up to ``/v1``; None for ``OPENAI_BASE_URL`` or OpenAI.
        api_key: the key, or a callable that returns it, asked before every call; None for
            ``OPENAI_API_KEY``. Servers other than OpenAI may need none.
        price: what it charges; by default as the price list knows it for this server.
        timeout: seconds without a piece of the reply after which the server counts as gone.
        max_retries: how often a request is repeated when the server is busy or unreachable.
        sleep: waits a number of seconds between retries.

    Raises:
        UsageError: `base_url` is not an http or https address.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | Callable[[], str] | None = None,
        price: Price | None = None,
        timeout: float = 120.0,
        max_retries: int = 2,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        self._endpoint = transport.endpoint(base_url)
        self._url = self._endpoint.url
        self._api_key = api_key
        self._price = price
        self._timeout = timeout
        self._max_retries = max_retries
        self._sleep = sleep
        # A client is bound to the event loop it was first used on.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.AsyncOpenAI]
        self._clients = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={self._url!r})"

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self._model

    @property
    def price(self) -> Price | None:
        """What it charges; None when neither the user nor the price list says so."""
        return self._price or prices.listed(self._model, self._url)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Answer a request; closing the generator closes the connection at once.

        Raises:
            ModelError: the model or its server failed; one subclass for each way.
        """
        started = time.monotonic()
        key = self._key()
        assembly = Assembly(request)
        async with aclosing(self._open(request, key)) as steps:
            async for step in steps:
                if isinstance(step, Notice):
                    yield step
                    continue
                async with aclosing(self._chunks(step, key)) as chunks:
                    async for chunk in chunks:
                        for delta in assembly.feed(chunk):
                            yield delta
        for delta in assembly.close():
            yield delta
        yield self._priced(assembly.reply(time.monotonic() - started))

    async def aclose(self) -> None:
        """Close the client of the running event loop, with everything it has open."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    async def _open(self, request: Request, key: str) -> AsyncGenerator[Notice | _Stream, None]:
        """Ask until a reply begins: yield notices on the way, then the stream."""
        dialect = ladder.recall(self._url, self._model)
        tries = 0
        while True:
            sent = dialect.arguments(request)
            try:
                stream = await self._create(request, sent, key)
                break
            except _FAULTS as error:
                step = _step_down(dialect, sent, error)
                wait = _pause(error, tries) if tries < self._max_retries else None
                if step is None and wait is None:
                    raise self._failure(error, key) from None
                why = faults.hindrance(_refusal(error))
            if step is not None:
                dialect = step.dialect
                yield Notice(text=step.notice)
            elif wait is not None:
                tries += 1
                count = f"({tries} of {self._max_retries})"
                told = f"{why}; trying again in {math.ceil(wait)} s {count}."
                yield Notice(text=told, wait=wait)
                await self._sleep(wait)
        ladder.remember(self._url, self._model, dialect)
        yield stream

    async def _create(self, request: Request, sent: dict[str, Any], key: str) -> _Stream:
        messages = [message.model_dump() for message in request.messages]
        # Plain JSON both ways: `create` makes types of the SDK of every field and chunk first.
        stream: _Stream = await self._client().post(
            "/chat/completions",
            cast_to=object,
            body={"model": self._model, "messages": messages, "stream": True, **sent},
            options={"headers": {"Authorization": self._endpoint.login or f"Bearer {key}"}},
            stream=True,
            stream_cls=openai.AsyncStream[Any],
        )
        return stream

    async def _chunks(self, stream: _Stream, key: str) -> AsyncGenerator[dict[str, Any], None]:
        """Yield a stream's chunks as plain objects, and close it whatever happens."""
        empty = True
        try:
            while True:
                async with asyncio.timeout(self._timeout):  # empty signs of life are no reply
                    chunk = await anext(stream, None)
                if chunk is None:
                    break
                empty = False
                if not isinstance(chunk, dict):  # servers may send any JSON here
                    raise faults.not_the_protocol(self._url)
                yield chunk
            if empty:
                raise faults.not_the_protocol(self._url)
        except _FAULTS as error:
            raise self._failure(error, key) from None
        finally:
            await stream.close()

    def _client(self) -> openai.AsyncOpenAI:
        """Return the running loop's client, made on first use."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = openai.AsyncOpenAI(
                api_key=_NO_KEY,  # the real one goes with each request
                base_url=self._url,
                max_retries=0,
                http_client=openai.DefaultAsyncHttpxClient(
                    base_url=self._url,
                    timeout=httpx2.Timeout(self._timeout, connect=_CONNECT_S),
                    # No idle connections: they would outlive the cell and its event loop.
                    limits=httpx2.Limits(max_keepalive_connections=0),
                    # A proxy cannot reach this machine's own loopback.
                    trust_env=not self._endpoint.on_this_machine,
                    # The task goes to the server that was configured, and to no other.
                    follow_redirects=False,
                    event_hooks={"response": [transport.bound]},
                ),
            )
        return client

    def _key(self) -> str:
        given = self._api_key
        if callable(given):
            try:
                given = given()
            except Exception as error:
                told = f"The key could not be read ({type(error).__name__}): check `api_key`."
                raise errors.AccessDenied(told) from None
        key = (given or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not key and ladder.is_openai(self._url):
            raise errors.AccessDenied(
                f"{self._url} needs a key: set OPENAI_API_KEY, or choose another server."
            )
        if not (key.isascii() and key.isprintable()):
            raise errors.AccessDenied("The key holds characters no key has: set OPENAI_API_KEY.")
        return key or _NO_KEY

    def _priced(self, reply: Reply) -> Reply:
        """Add the cost, unless the server itself said it."""
        if reply.usage.cost is not None:
            return reply
        cost = prices.cost_of(reply.usage, self._model, self._url, self._price)
        return reply.model_copy(update={"usage": reply.usage.model_copy(update={"cost": cost})})

    def _failure(self, error: Exception, key: str) -> errors.ModelError:
        secrets = (key.removeprefix(_NO_KEY), *self._endpoint.secrets)
        return as_model_error(error, server=self._url, model=self._model, secret=secrets)


def as_model_error(
    error: Exception, *, server: str, model: str, secret: faults.Secret = ""
) -> errors.ModelError:
    """Turn whatever the OpenAI client raises into one of ours.

    Args:
        error: what was raised.
        server: the server's address, safe to show.
        model: the model asked for.
        secret: the key, or all there are, taken out of the server's own words.
    """
    refusal = _refusal(error)
    if refusal is not None:
        return faults.from_status(refusal, server=server, model=model, secret=secret)
    unreadable = (openai.APIResponseValidationError, httpx2.DecodingError, *_UNREADABLE)
    if isinstance(error, unreadable) or isinstance(faults.root(error), unreadable):
        return faults.not_the_protocol(server)
    if isinstance(error, transport.TooLong) or isinstance(faults.root(error), transport.TooLong):
        return faults.too_long(server, transport.MOST_BYTES)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError):
        return faults.timed_out(server)
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        return faults.unreachable(server, error)
    return faults.broke_off(server, str(error), secret)


def _refusal(error: Exception) -> Refusal | None:
    """Return the error answer behind an error, also one sent in place of a chunk."""
    if isinstance(error, openai.APIStatusError):
        return read_refusal(error.body, error.status_code, error.response.headers)
    if isinstance(error, openai.APIError):
        return read_refusal(error.body, None, {})
    return None


def _step_down(
    dialect: ladder.Dialect, sent: dict[str, Any], error: Exception
) -> ladder.Step | None:
    refusal = _refusal(error)
    if refusal is None or refusal.status not in (400, 422):
        return None
    return ladder.step_down(dialect, sent, refusal.complaint)


def _pause(error: Exception, tries: int) -> float | None:
    """Seconds to wait before the request is worth repeating; None when it is not."""
    refusal = _refusal(error)
    if refusal is not None:
        transient = retries.is_transient(refusal.status, refusal.complaint, refusal.headers)
        return retries.pause(tries, refusal.headers) if transient else None
    # A server that took the request and fell silent may be at work on it: asking again would
    # only make it slower. A certificate does not get better by waiting.
    silent = isinstance(error, openai.APITimeoutError) and not isinstance(
        error.__cause__, httpx2.ConnectTimeout
    )
    hopeless = silent or isinstance(faults.root(error), ssl.SSLCertVerificationError)
    if hopeless or not isinstance(error, openai.APIConnectionError):
        return None
    return retries.pause(tries, {})
