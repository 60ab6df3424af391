"""Run models behind OpenAI and every server that speaks its chat completions protocol.

This file makes the request, retries it and reads the connection. `servers` knows which fields a
server takes, `stream` assembles the reply, `faults` maps what goes wrong.

A server may be hostile. Whatever it sends, `OpenAIModel.stream` is the one place where an exception
becomes an error of ours; none leaves it with a frame that holds the key.
"""

import asyncio
import base64
import json
import math
import os
import random
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2

from ipyrefine.core.model import Price
from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.errors import AccessDenied, ModelError, RefineError, UsageError
from ipyrefine.providers.faults import (
    MAX_ERROR_BYTES,
    MAX_REPLY_BYTES,
    Compressed,
    NotCompletions,
    Refused,
    ReplyTooLong,
    chain,
    decode,
    model_error,
    read_refusal,
    root,
)
from ipyrefine.providers.servers import (
    LIMITS,
    Capabilities,
    Key,
    find_refused,
    is_openai,
    listed_cost,
    listed_price,
    recall,
    remember,
    safe_url,
)
from ipyrefine.providers.stream import Assembly

_OPENAI_URL = "https://api.openai.com/v1"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NO_KEY = "none"  # what a server gets that wants no key
_OURS = ("messages", "model", "stream")  # fields that a user cannot set
_LEAST_SECRET = 7  # characters of a text in `extra` that no error repeats

TIMEOUT = 600.0  # seconds; models that think in silence take minutes
_CONNECT_SECONDS = 10.0
_ERROR_SECONDS = 10.0  # for the body of an error answer
_TRANSIENT = frozenset({408, 409, 429})  # and every 5xx
_FIRST_DELAY = 0.5  # seconds
_MAX_DELAY = 8.0
_MAX_RETRY_AFTER = 60.0


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    A request is retried only before its reply has begun. Tokens a server does not count are
    estimated as a quarter of the characters.

    Args:
        model: the name the server knows it by.
        base_url: the server's address, up to ``/v1``; None for ``OPENAI_BASE_URL`` or OpenAI.
        api_key: the key, or a callable that returns it, called before every request. Without one,
            ``OPENAI_API_KEY`` goes to the server of ``OPENAI_BASE_URL`` (OpenAI if unset), and
            any other server gets no key.
        price: what it charges; by default as the price list knows it for this server.
        timeout: seconds without anything new of the reply after which the server counts as gone
            (600); signs of life that add nothing to it do not count.
        extra: further fields of every request, such as ``reasoning_effort``; one that the server
            refuses is left out, with a notice.
        max_retries: how often a request is repeated when the server is busy or unreachable.
        sleep: waits a number of seconds between retries.

    Raises:
        UsageError: `base_url` is not an http or https address, `timeout` is not positive, or
            `extra` sets a field that is not the user's to set.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | Callable[[], str] | None = None,
        price: Price | None = None,
        timeout: float | None = None,
        extra: Mapping[str, Any] | None = None,
        max_retries: int = 2,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        api_key = Key(api_key)
        address = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        self._model, self._api_key, self._price = model, api_key, price
        self._base_url, self._login = _read_address(address)
        self._timeout = TIMEOUT if timeout is None else timeout
        if not 0 < self._timeout < math.inf:
            raise UsageError(f"The timeout must be a number of seconds above 0, not {timeout}.")
        self._extra = _read_extra(extra)
        self._secrets = (*self._login, *_long_texts(self._extra))
        self._announced = set[str]()
        self._max_retries = max_retries
        self._sleep = sleep
        self._tls = httpx2.create_ssl_context()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={self.base_url!r})"

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self._model

    @property
    def base_url(self) -> str:
        """The server's address, without user and password."""
        return self._base_url

    @property
    def price(self) -> Price | None:
        """What it charges; None when neither the user nor the price list knows."""
        return self._price or listed_price(self._model, self.base_url)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Answer a request; closing the generator closes the connection at once.

        Raises:
            ModelError: the model or its server failed; one subclass for each kind of failure.
        """
        key = self._current_key()
        async with aclosing(self._ask(request, key)) as items:
            while True:
                try:
                    item = await anext(items, None)
                except RefineError:
                    raise
                except Exception as error:
                    failure = self._model_error(error, key)
                    _drop_frames(error)
                    raise failure from None
                except BaseException as error:  # a cancel or an interrupt passes on
                    _drop_frames(error)
                    raise
                if item is None:
                    return
                yield item

    async def _ask(
        self, request: Request, key: Key
    ) -> AsyncGenerator[Delta | Notice | Reply, None]:
        start = time.monotonic()
        assembly = Assembly(request)
        async with self._client() as client:
            async with aclosing(self._open(client, request, key)) as items:
                async for item in items:
                    if isinstance(item, Notice):
                        yield item
                    else:
                        response = item
            async with aclosing(self._read(response, assembly)) as deltas:
                async for delta in deltas:
                    yield delta
        reply = assembly.reply(time.monotonic() - start)
        usage = reply.usage
        allowed = recall(self.base_url, self._model).token_limit(request)
        update: dict[str, Any] = {
            "capped": reply.finish == "length" and allowed < request.max_tokens
        }
        if usage.cost is None:
            cost = (
                self._price.cost(usage.prompt_tokens, usage.completion_tokens)
                if self._price
                else listed_cost(usage, self._model, self.base_url)
            )
            update["usage"] = usage.model_copy(update={"cost": cost})
        yield reply.model_copy(update=update)

    async def _open(
        self, client: httpx2.AsyncClient, request: Request, key: Key
    ) -> AsyncGenerator[Notice | httpx2.Response, None]:
        """Send the request until a reply begins: yield notices on the way, then the response."""
        before = capabilities = recall(self.base_url, self._model)
        retries = 0
        while True:
            extra = dict(self._extra)  # a call at the same time may take one of them out
            fields = capabilities.fields(request)
            if not extra.keys().isdisjoint(LIMITS):
                fields = {name: value for name, value in fields.items() if name not in LIMITS}
            try:
                response = await self._send(client, request, fields | extra, key)
                break
            except Exception as error:
                refused = error if isinstance(error, Refused) else None
                less = self._ask_less(capabilities, request, fields, extra, refused)
                delay = _retry_delay(error, retries) if retries < self._max_retries else None
                if less is None and delay is None:
                    raise
            if less is not None:
                capabilities, notice = less
                if notice not in self._announced:
                    self._announced.add(notice)
                    yield Notice(text=notice)
            elif delay is not None:
                retries += 1
                notice = ""  # without an answer: if it stays away, the error says so once
                if refused is not None:
                    failed = refused.status >= 500 and refused.status not in (503, 529)
                    reason = f"failed (HTTP {refused.status})" if failed else "is busy"
                    count = f"({retries} of {self._max_retries})"
                    notice = f"The server {reason}; trying again in {math.ceil(delay)} s {count}."
                yield Notice(text=notice, wait=delay)
                await self._sleep(delay)
        if capabilities != before:
            remember(self.base_url, self._model, capabilities)
        yield response

    def _ask_less(
        self,
        capabilities: Capabilities,
        request: Request,
        fields: dict[str, Any],
        extra: dict[str, Any],
        refused: Refused | None,
    ) -> tuple[Capabilities, str] | None:
        """Return what to ask for after an answer that refuses a field, and a notice."""
        if refused is None or not refused.may_name_a_field:
            return None
        field = find_refused(fields | extra, refused.complaint)
        if field is None:
            return None
        if field in extra:
            self._extra.pop(field, None)
            return capabilities, f"The server doesn't take `{field}`. Asking without it."
        return capabilities.without(field, request, refused.complaint)

    async def _send(
        self, client: httpx2.AsyncClient, request: Request, fields: Mapping[str, Any], key: Key
    ) -> httpx2.Response:
        """Send a request and return its response, of which nothing is read yet.

        Raises:
            Refused: the server answered with an error, or leads elsewhere.
            Compressed: the reply is compressed.
        """
        messages = [message.model_dump() for message in request.messages]
        sent = client.build_request(
            "POST",
            f"{self.base_url}/chat/completions",
            json={"model": self._model, "messages": messages, **fields},
            headers=self._headers(key),
        )
        # A server that sends its headers byte by byte is silent too.
        async with asyncio.timeout(self._timeout + _CONNECT_SECONDS):
            response = await client.send(sent, stream=True)
        is_compressed = response.headers.get("content-encoding", "identity").strip() != "identity"
        if not response.is_success:
            raise await _read_refusal(response, is_compressed=is_compressed)
        if is_compressed:
            raise Compressed
        return response

    def _headers(self, key: Key) -> dict[str, str]:
        """Return a request's headers; those that the environment adds go to its server alone."""
        headers = {}
        if self._is_configured():
            named = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
            found = ((header, os.environ.get(name)) for header, name in named.items())
            headers = {header: value for header, value in found if value}
            lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
            custom = (line.partition(":") for line in lines if ":" in line)
            headers |= {name.strip(): value.strip() for name, _, value in custom}
        login = f"Basic {self._login[-1]}" if self._login else f"Bearer {key()}"
        # A small reply could grow to any size: nothing is ever decompressed.
        return headers | {"Accept-Encoding": "identity", "Authorization": login}

    async def _read(
        self, response: httpx2.Response, assembly: Assembly
    ) -> AsyncGenerator[Delta, None]:
        """Read a reply to its end and yield what it adds; close the connection in any case.

        Raises:
            TimeoutError: nothing new came in `timeout` seconds.
            NotCompletions: it holds no chunk, or anything else than JSON objects.
        """
        clock = asyncio.get_running_loop().time
        deadline, chunk = clock() + self._timeout, None
        async with aclosing(response), aclosing(_chunks(response)) as chunks:
            while True:
                async with asyncio.timeout_at(deadline):
                    following = await anext(chunks, None)
                if following is None:
                    break
                chunk, before = following, assembly.progress
                for delta in assembly.feed(chunk):
                    yield delta
                if assembly.progress > before:
                    deadline = clock() + self._timeout
                elif clock() > deadline:  # a flood of empty chunks leaves the timer no chance
                    raise TimeoutError
        if chunk is None:
            raise NotCompletions
        for delta in assembly.close():
            yield delta

    def _client(self) -> httpx2.AsyncClient:
        """Return a client for one request: one that stays would be bound to its event loop."""
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS),
            verify=self._tls,
            # A proxy cannot reach this machine's own loopback.
            trust_env=urlsplit(self.base_url).hostname not in _LOOPBACK,
            # The task and the key go to the configured server and to no other.
            follow_redirects=False,
        )

    def _is_configured(self) -> bool:
        """Return whether the environment names this server, to which alone its keys go."""
        configured = os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        return _origin(self.base_url) == _origin(configured)

    def _current_key(self) -> Key:
        """Return the key for one request; `api_key` is asked only here.

        Raises:
            AccessDenied: it cannot be read, is missing, or cannot stand in a header.
        """
        try:
            ours = self._is_configured()
            key = Key(self._api_key() or (os.environ.get("OPENAI_API_KEY") if ours else None))
        except Exception as error:
            kind = type(error).__name__
            _drop_frames(error)
            raise AccessDenied(f"The key could not be read ({kind}). Check `api_key`.") from None
        if not key() and is_openai(self.base_url):
            raise self._no_key_error()
        if not (key().isascii() and key().isprintable()):
            raise AccessDenied("The key has characters that no key has. Set OPENAI_API_KEY.")
        return key if key() else Key(_NO_KEY)

    def _no_key_error(self) -> AccessDenied:
        advice = (
            "Set OPENAI_API_KEY, or choose another server."
            if self._is_configured()
            else "Name the variable that holds its key: --api-key-env NAME (in Python, api_key=)."
        )
        return AccessDenied(f"{self.base_url} got no key. {advice}")

    def _model_error(self, error: Exception, key: Key) -> ModelError:
        without_key = key() == _NO_KEY and not self._login and not self._is_configured()
        if isinstance(error, Refused) and error.status in (401, 403) and without_key:
            return self._no_key_error()
        secrets = (key().removeprefix(_NO_KEY), *self._secrets)
        return model_error(error, server=self.base_url, model=self._model, secrets=secrets)


def _read_address(base_url: str) -> tuple[str, tuple[str, ...]]:
    """Return a base URL without user and password, and those apart: password, encoded login.

    Raises:
        UsageError: it is not an http or https address, or something follows its path.
    """
    try:
        parts = urlsplit(base_url)
        url = safe_url(base_url) if parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        url = ""
    if not url:  # not quoted: a malformed address may hold a password
        raise UsageError("The base URL is not an address. Write it as http://HOST:PORT/v1.")
    if parts.query or parts.fragment:
        raise UsageError(
            f"The base URL of {url} goes on after its path. Leave out what follows the ? or #, "
            "and keep a key in an environment variable."
        )
    if parts.username is None:
        return url, ()
    password = unquote(parts.password or "")
    login = f"{unquote(parts.username)}:{password}"
    return url, (password, base64.b64encode(login.encode()).decode())


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return an address's scheme, host and port; None where it is not an address."""
    try:
        parts = httpx2.URL(url)  # which knows the default ports
    except httpx2.InvalidURL:
        return None
    return parts.scheme, parts.host, parts.port


def backoff(attempt: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait before a retry; None if the server asks for over a minute.

    Without ``Retry-After`` it is exponential backoff with full jitter (AWS Architecture Blog,
    "Exponential Backoff And Jitter", 2015), so that many notebooks that wait for one server do
    not come back together.

    Args:
        attempt: retries made so far.
        headers: the answer's headers; empty if there was none.
    """
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return random.uniform(0, min(_MAX_DELAY, _FIRST_DELAY * 2**attempt))
    return max(0.0, seconds) if seconds <= _MAX_RETRY_AFTER else None


def _retry_delay(error: Exception, attempt: int) -> float | None:
    """Return the seconds to wait before a retry; None if the request cannot succeed."""
    if isinstance(error, Refused):
        final = error.headers.get("x-should-retry") == "false" or error.is_out_of_credit
        transient = error.status in _TRANSIENT or 500 <= error.status < 600
        return backoff(attempt, error.headers) if transient and not final else None
    # A server that took the request and fell silent may be at work on it: asking again would
    # only slow it down. A certificate does not get better by waiting.
    silent = isinstance(error, httpx2.TimeoutException)
    silent = silent and not isinstance(error, httpx2.ConnectTimeout)
    final = silent or isinstance(root(error), ssl.SSLCertVerificationError)
    return backoff(attempt, {}) if isinstance(error, httpx2.TransportError) and not final else None


def _read_extra(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the request fields that a user adds.

    Raises:
        UsageError: it is not a dict of JSON values, or sets a field that ipyrefine sets.
    """
    try:
        fields: dict[str, Any] = json.loads(json.dumps(dict(extra or {}), allow_nan=False))
    except (TypeError, ValueError, RecursionError):  # its words may quote a secret
        raise UsageError('extra must be a dict of JSON values, as {"top_k": 20}.') from None
    for name in _OURS:
        if name in fields:
            raise UsageError(f"extra can't set `{name}`: ipyrefine sets it for every request.")
    return fields


def _long_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value that may be secrets."""
    if isinstance(value, str) and len(value) >= _LEAST_SECRET:
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _long_texts(item)


async def _read_refusal(response: httpx2.Response, *, is_compressed: bool) -> Refused:
    """Return an error answer, of whose body a part is read; whatever happens, it has a status."""
    body = bytearray()
    with suppress(Exception):
        async with asyncio.timeout(_ERROR_SECONDS), aclosing(response):
            async for data in response.aiter_raw():
                body += data
                if is_compressed or len(body) >= MAX_ERROR_BYTES:
                    break
    text = "" if is_compressed else body[:MAX_ERROR_BYTES].decode("utf-8", "replace").strip()
    try:
        content = decode(text)
    except NotCompletions:
        content = text
    return read_refusal(content, response.status_code, response.headers)


async def _chunks(response: httpx2.Response) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the chunks of a reply.

    One that is not streamed, as some servers send it to every request, is its only chunk.

    Raises:
        NotCompletions: there is anything else than JSON objects.
        Refused: the server sent an error in place of a chunk.
    """
    response.stream = _BoundedStream(response.stream)
    if response.headers.get("content-type", "").startswith("application/json"):
        completion = _read_chunk(await response.aread())
        if "choices" not in completion:
            raise NotCompletions
        yield completion
        return
    response.headers["content-type"] = "text/event-stream"  # whatever the server calls it
    async for event in httpx2.EventSource(response, None):
        if event.data.startswith("[DONE]"):
            return  # whatever follows
        if event.data.strip():  # else it is a sign of life
            yield _read_chunk(event.data)


def _read_chunk(data: str | bytes) -> dict[str, Any]:
    chunk = decode(data)
    if not isinstance(chunk, dict):  # servers may send any JSON here
        raise NotCompletions
    if chunk.get("error"):
        raise read_refusal(chunk, 0, {})
    return chunk


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of a reply, `MAX_REPLY_BYTES` at most; other coroutines run between its pieces."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_REPLY_BYTES
        async for data in self._stream:
            left -= len(data)
            if left < 0:
                raise ReplyTooLong
            yield data
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _drop_frames(error: BaseException) -> None:
    """Take the frames that an exception and its causes passed through out of them.

    The client's frames hold the request with its key, and a traceback may show their variables.
    """
    for link in chain(error):
        link.__traceback__ = None
