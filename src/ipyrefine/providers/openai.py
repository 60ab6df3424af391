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
import re
import ssl
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2
import openai

from ipyrefine.core.model import Price
from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.errors import AccessDenied, ModelError, RefineError, UsageError
from ipyrefine.providers.faults import (
    LEAST_SECRET,
    MAX_ERROR_BYTES,
    MAX_REPLY_BYTES,
    MAX_WAIT,
    Compressed,
    NotCompletions,
    Refusal,
    Refused,
    ReplyTooLong,
    chain,
    decode,
    find_error,
    find_refusal,
    model_error,
    read_refusal,
    root,
    safe_url,
)
from ipyrefine.providers.keys import find_key
from ipyrefine.providers.servers import (
    ASKED,
    FORMATS,
    LIMITS,
    Capabilities,
    Key,
    is_openai,
    left_out,
    listed_cost,
    listed_price,
    recall,
    remember,
)
from ipyrefine.providers.stream import Assembly

_OPENAI_URL = "https://api.openai.com/v1"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NO_KEY = "none"  # local servers want no key, but the client insists on one
# All the headers that a server gets which the environment does not name.
_HEADERS = {
    *("host", "connection", "authorization", "user-agent"),
    *("accept", "accept-encoding", "content-type", "content-length"),
}
_OURS = ("messages", "model", "stream")  # fields that a user cannot set
_AZURE_KEY = "api-key"  # the header
_NAME = re.compile(r"[^\s<>\"'][ -~]{0,199}")  # a model's
_API_VERSION = re.compile(r"api-version=[\w.-]{1,40}")

TIMEOUT = 600.0  # seconds; models that think in silence take minutes
_CONNECT_SECONDS = 10.0
_ERROR_SECONDS = 10.0  # for the body of an error answer
_LIST_SECONDS = 20.0  # for the list of models
_BUSY = frozenset({408, 409, 429, 503, 529})
_TRANSIENT = _BUSY | {0}  # and every 5xx
_LOADING = 503  # what a server on this machine answers while it loads a model
_POLL = 2.0  # seconds between two looks whether it is loaded
_MAX_LOADING = 300  # seconds
_FIRST_DELAY = 0.5  # seconds
_MAX_DELAY = 8.0
_END = object()  # of a stream; None may be a chunk


class _Stream(openai.AsyncStream[Any]):
    """A stream that ends at its end mark, whatever follows, and decodes its chunks as we do.

    A reply that is not streamed, as some servers send it to every request, is its only chunk.
    """

    async def _iter_events(self) -> AsyncIterator[Any]:
        if self.response.headers.get("content-type", "").startswith("application/json"):
            completion = decode(await self.response.aread())
            self._check(completion)
            if not (isinstance(completion, dict) and "choices" in completion):
                raise NotCompletions
            yield SimpleNamespace(event=None, data="", json=lambda: completion)
            return
        async with aclosing(super()._iter_events()) as events:  # type: ignore[type-var]
            async for event in events:
                if event.data.startswith("[DONE]"):
                    break
                if event.data.strip() and event.data.lstrip()[0] != ":":  # else a sign of life
                    chunk = decode(event.data)
                    self._check(chunk, event.event)
                    event.json = lambda chunk=chunk: chunk  # type: ignore[method-assign,misc]
                    yield event

    def _check(self, chunk: object, event: str | None = None) -> None:
        if (error := find_error(chunk, event)) is not None:
            raise Refused(read_refusal(error, 0, self.response.headers))


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    A request is retried only before its reply has begun. Tokens a server does not count are
    estimated as a quarter of the characters.

    Args:
        model: the name the server knows it by.
        base_url: the server's address, up to ``/v1``, or Azure's with its ``api-version``; None for
            ``OPENAI_BASE_URL`` or OpenAI.
        api_key: the key, or a callable that returns it, called before every request. Without one,
            the one that was entered for this address (`keys`) goes to it; ``OPENAI_API_KEY`` goes
            to the server of ``OPENAI_BASE_URL`` (OpenAI if unset), and any other gets no key.
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
        self._base_url, self._query, self._login = _read_address(address)
        host = urlsplit(self._base_url).hostname or ""
        self._is_loopback = host in _LOOPBACK
        self._is_azure = bool(self._query) or host.endswith((".azure.com", ".azure-api.net"))
        self._timeout = TIMEOUT if timeout is None else timeout
        if not 0 < self._timeout < math.inf:
            raise UsageError(f"The timeout must be a number of seconds above 0, not {timeout}.")
        self._extra = _read_extra(extra)
        self._secrets = (*self._login, *_long_texts(self._extra))
        self._announced = set[str]()
        self._max_retries = max_retries
        self._sleep = sleep
        try:
            self._tls = httpx2.create_ssl_context()
        except OSError as error:
            raise UsageError(
                f"The certificates of SSL_CERT_FILE can't be read ({error.strerror or error}). Set "
                "it to a file that is there, or unset it."
            ) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={self.base_url!r})"

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self._model

    @property
    def base_url(self) -> str:
        """The server's address, without user, password and query."""
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
        key, begun = self._current_key(), False
        async with aclosing(self._ask(request, key)) as items:
            while True:
                try:
                    item = await anext(items, None)
                except RefineError:
                    raise
                except BaseException as error:
                    raise self._without_frames(error, key, begun=begun) from None
                if item is None:
                    return
                begun = begun or isinstance(item, Delta)
                yield item

    async def list_models(self) -> list[str]:
        """Return the names of the models that the server lists, sorted.

        Raises:
            ModelError: the server failed, or lists none in this protocol.
        """
        key = self._current_key()
        try:
            async with self._client() as client, asyncio.timeout(_LIST_SECONDS):
                response = await client.get(
                    "/models", cast_to=httpx2.Response, options={"headers": self._headers(key)}
                )
                return _read_names(decode(await response.aread()))
        except BaseException as error:
            raise self._without_frames(error, key) from None

    async def _ask(
        self, request: Request, key: Key
    ) -> AsyncGenerator[Delta | Notice | Reply, None]:
        start, retries, settled = time.monotonic(), 0, False
        taken = known = recall(self.base_url, self._model)
        extra = dict(self._extra)
        async with self._client() as client:
            while True:
                assembly = Assembly(request)
                fields = taken.fields(request)
                if not extra.keys().isdisjoint(LIMITS):
                    del fields[taken.limit]
                fields |= extra
                try:
                    stream = await self._send(client, taken.messages(request), fields, key)
                    async with aclosing(self._read(stream, assembly)) as deltas:
                        async for delta in deltas:
                            for text in (
                                () if settled else self._learn(known, taken, request, extra)
                            ):
                                yield Notice(text=text)
                            settled = True
                            yield delta
                    break
                except Exception as error:
                    refusal = find_refusal(error)
                    if assembly.has_begun:
                        raise
                    if refusal is not None:
                        field = taken.find_refused(refusal, request, fields)
                        own = {field, *(LIMITS if field in LIMITS else ())} & extra.keys()
                        less = taken if own else taken.without(field, refusal, request)
                        if own or less != taken:
                            extra = {n: value for n, value in extra.items() if n not in own}
                            taken = less
                            continue
                    wait = self._retry(error, refusal, retries)
                    if wait is None:
                        raise
                retries += 1
                yield wait
                await self._sleep(wait.wait)
        for text in self._learn(known, taken, request, extra):
            yield Notice(text=text)
        reply = assembly.reply(time.monotonic() - start)
        if assembly.thinks_aloud:
            refused = taken.refused.union(FORMATS)  # a grammar leaves no room for its thoughts
            remember(self.base_url, self._model, taken._replace(refused=refused))
        usage = reply.usage
        allowed = taken.token_limit(request)
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

    def _learn(
        self, known: Capabilities, taken: Capabilities, request: Request, extra: dict[str, Any]
    ) -> Iterator[str]:
        """Remember what the server took, and yield a sentence for each thing that it refused."""
        if taken != known:
            remember(self.base_url, self._model, taken)
        own = [name for name in self._extra if name not in extra]
        for name in own:  # for this run: the next may set another value
            self._extra.pop(name, None)
        before = known._replace(refused=known.refused - ASKED)
        for text in (*map(left_out, own), *taken.notices(before, request)):
            if text not in self._announced:
                self._announced.add(text)
                yield text

    def _retry(self, error: Exception, refusal: Refusal | None, retries: int) -> Notice | None:
        """Return the wait before a retry; None if the request cannot succeed."""
        text = ""  # without an answer: if it stays away, the error says so once
        if refusal is None:
            # A server that took the request and fell silent may be at work on it: asking again
            # would only slow it down. A certificate does not get better by waiting.
            silent = isinstance(error, openai.APITimeoutError) and not isinstance(
                error.__cause__, httpx2.ConnectTimeout
            )
            if silent or isinstance(root(error), ssl.SSLCertVerificationError):
                return None
            wait = backoff(retries) if isinstance(error, openai.APIConnectionError) else math.inf
        else:
            status, delay = refusal.status, refusal.delay
            polls = status == _LOADING and self._is_loopback and delay is None
            if polls and retries * _POLL < _MAX_LOADING:
                text = f"The server isn't ready yet. Waiting up to {_MAX_LOADING // 60} minutes."
                return Notice(text="" if retries else text, wait=_POLL)
            wait = backoff(retries) if delay is None else delay
            transient = status in _TRANSIENT or status >= 500 or (status == 402 and delay)
            if not transient or refusal.headers.get("x-should-retry") == "false":
                return None
            code = f" (HTTP {status})" if status else ""
            reason = "is busy" if status in _BUSY else f"failed{code}"
            count = f"({retries + 1} of {self._max_retries})"
            text = f"The server {reason}; trying again in {math.ceil(wait)} s {count}."
        again = retries < self._max_retries and wait <= MAX_WAIT
        return Notice(text=text, wait=wait) if again else None

    async def _send(
        self,
        client: openai.AsyncOpenAI,
        messages: Sequence[Any],
        fields: Mapping[str, Any],
        key: Key,
    ) -> _Stream:
        # A server that sends its headers byte by byte is silent too.
        async with asyncio.timeout(self._timeout + _CONNECT_SECONDS):
            # Plain JSON both ways: the client's `create` makes a type of every field and chunk.
            stream: _Stream = await client.post(
                "/chat/completions",
                cast_to=object,
                body={"model": self._model, "messages": messages, **fields},
                options={"headers": self._headers(key)},
                stream=True,
                stream_cls=_Stream,
            )
        return stream

    async def _read(self, stream: _Stream, assembly: Assembly) -> AsyncGenerator[Delta, None]:
        """Read a stream to its end and yield what it adds to the reply; close it in any case.

        Raises:
            TimeoutError: nothing new came in `timeout` seconds.
            NotCompletions: it holds no chunk, or anything else than JSON objects.
        """
        clock = asyncio.get_running_loop().time
        count, deadline = 0, clock() + self._timeout
        try:
            while True:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(stream, _END)
                if chunk is _END:
                    break
                if not isinstance(chunk, dict):  # servers may send any JSON here
                    raise NotCompletions
                count += 1
                before = assembly.progress
                for delta in assembly.feed(chunk):
                    yield delta
                if assembly.progress > before:
                    deadline = clock() + self._timeout
                elif clock() > deadline:  # a flood of empty chunks leaves the timer no chance
                    raise TimeoutError
            if count == 0:
                raise NotCompletions
        finally:
            await stream.close()

    def _headers(self, key: Key) -> dict[str, str]:
        login = f"Basic {self._login[-1]}" if self._login else f"Bearer {key()}"
        azure = {_AZURE_KEY: key()} if self._is_azure and key() != _NO_KEY else {}
        return {"Authorization": login, **azure}

    def _client(self) -> openai.AsyncOpenAI:
        """Return a client for one request: one that stays would be bound to its event loop."""
        return openai.AsyncOpenAI(
            api_key=_NO_KEY,  # the real one goes with the request
            base_url=self.base_url,
            default_query=self._query,
            max_retries=0,  # ours are announced, and the budget may refuse their wait
            http_client=openai.DefaultAsyncHttpxClient(
                base_url=self.base_url,
                timeout=httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS),
                verify=self._tls,
                # A proxy cannot reach this machine's own loopback.
                trust_env=not self._is_loopback,
                # A small reply could grow to any size: nothing is ever decompressed.
                headers={"Accept-Encoding": "identity"},
                # The task and the key go to the configured server and to no other.
                follow_redirects=False,
                event_hooks={"request": [self._drop_headers], "response": [_receive]},
            ),
        )

    async def _drop_headers(self, request: httpx2.Request) -> None:
        """Drop what the client adds from the environment (``OPENAI_CUSTOM_HEADERS``) elsewhere."""
        if not self._is_configured():
            kept = _HEADERS | {_AZURE_KEY} if self._is_azure else _HEADERS
            for name in {*request.headers} - kept:
                del request.headers[name]

    def _is_configured(self) -> bool:
        """Return True if the environment names this server; its keys go nowhere else."""
        configured = os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        return _origin(self.base_url) == _origin(configured)

    def _current_key(self) -> Key:
        """Return the key for one request; `api_key` is asked only here.

        Raises:
            AccessDenied: it cannot be read, is missing, or cannot stand in a header.
        """
        try:
            ours = self._is_configured()
            environment = partial(os.environ.get, "OPENAI_API_KEY") if ours else Key()
            key = Key(self._api_key() or find_key(self.base_url) or environment())
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
            else "Name the variable with its key: --set api_key_env=NAME (in Python, api_key=)."
        )
        return AccessDenied(f"{self.base_url} got no key. {advice}")

    def _without_frames(
        self, error: BaseException, key: Key, *, begun: bool = False
    ) -> BaseException:
        """Return our error for an exception; a cancel or an interrupt passes on as it is."""
        ours = error
        if isinstance(error, Exception):
            ours = self._model_error(error, key)
            final = (TimeoutError, openai.APITimeoutError, ReplyTooLong)
            mends = not (
                400 <= ours.status < 500 or any(isinstance(e, final) for e in chain(error))
            )
            ours.broke_off = begun and mends
        _drop_frames(error)
        return ours

    def _model_error(self, error: Exception, key: Key) -> ModelError:
        refusal = find_refusal(error)
        without_key = key() == _NO_KEY and not self._login and not self._is_configured()
        if refusal is not None and refusal.status in (401, 403) and without_key:
            return self._no_key_error()
        secrets = (key().removeprefix(_NO_KEY), *self._secrets)
        return model_error(error, server=self.base_url, model=self._model, secrets=secrets)


def _read_address(base_url: str) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """Return a base URL, its query, and what else it held: the password and the encoded login.

    Raises:
        UsageError: it is not an http or https address, or more than Azure's ``api-version`` follows
            its path.
    """
    try:
        parts = urlsplit(base_url)
        url = safe_url(base_url) if parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        url = ""
    if not url:  # not quoted: a malformed address may hold a password
        raise UsageError("The base URL is not an address. Write it as http://HOST:PORT/v1.")
    url, query = url.removesuffix("/chat/completions"), dict(parse_qsl(parts.query))
    if parts.fragment or (parts.query and not _API_VERSION.fullmatch(parts.query)):
        raise UsageError(
            f"The base URL of {url} goes on after its path. Leave out what follows the ? or #, "
            "and keep a key in an environment variable."
        )
    if parts.username is None:
        return url, query, ()
    password = unquote(parts.password or "")
    login = f"{unquote(parts.username)}:{password}"
    return url, query, (password, base64.b64encode(login.encode()).decode())


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return an address's scheme, host and port; None where it is not an address."""
    try:
        parts = httpx2.URL(url)  # which knows the default ports
    except httpx2.InvalidURL:
        return None
    return parts.scheme, parts.host, parts.port


def backoff(attempt: int) -> float:
    """Return the seconds to wait before a retry if the server names none.

    It is exponential backoff with full jitter (AWS Architecture Blog, "Exponential Backoff And
    Jitter", 2015), so that many notebooks that wait for one server do not come back together.
    """
    return random.uniform(0, min(_MAX_DELAY, _FIRST_DELAY * 2**attempt))


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


def _read_names(listed: object) -> list[str]:
    """Return the names in a list of models.

    Raises:
        NotCompletions: it is no such list.
    """
    rows = listed
    if isinstance(listed, dict):
        rows = next((listed[name] or [] for name in ("data", "models") if name in listed), None)
    if not isinstance(rows, list):
        raise NotCompletions
    names = (row.get("id") or row.get("name") if isinstance(row, dict) else row for row in rows)
    return sorted({name for name in names if isinstance(name, str) and _NAME.fullmatch(name)})


def _long_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value that may be secrets."""
    if isinstance(value, str) and len(value) >= LEAST_SECRET:
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _long_texts(item)


async def _receive(response: httpx2.Response) -> None:
    """Bound what is read of a response; an event hook of the client, before anything is read.

    Raises:
        Refused: the server answered with an error, or leads elsewhere.
        Compressed: the reply is compressed.
    """
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream), "an asynchronous client's"
    compressed = response.headers.get("content-encoding", "identity").strip().lower() != "identity"
    if response.is_success:
        if compressed:
            raise Compressed
        response.stream = _BoundedStream(stream)
        return
    body = bytearray()
    with suppress(Exception):  # whatever happens to its body, an error has a status
        async with asyncio.timeout(_ERROR_SECONDS):
            async for data in stream:
                body += data
                if compressed or len(body) >= MAX_ERROR_BYTES:
                    break
    text = "" if compressed else body[:MAX_ERROR_BYTES].decode("utf-8", "replace").strip()
    try:
        content = decode(text)
    except NotCompletions:
        content = text
    raise Refused(read_refusal(content, response.status_code, response.headers))


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of a reply, `MAX_REPLY_BYTES` at most; other coroutines run between its pieces."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
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
    """Remove the frames that an exception and its causes passed through.

    The client's frames hold the request with its key, and a traceback may show their variables.
    """
    for link in chain(error):
        link.__traceback__ = None
