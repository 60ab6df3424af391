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
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any

import httpx2
import openai

from ipyrefine.core.model import Price
from ipyrefine.core.ports import Delta, Notice, Request, Stream
from ipyrefine.errors import AccessDenied, RefineError, UsageError
from ipyrefine.providers.faults import (
    LEAST_SECRET,
    MAX_ERROR_BYTES,
    MAX_REPLY_BYTES,
    MAX_WAIT,
    NotCompletions,
    Refused,
    ReplyTooLong,
    chain,
    decode,
    find_error,
    model_error,
    root,
    safe_url,
)
from ipyrefine.providers.keys import find_key
from ipyrefine.providers.servers import (
    FORMAT,
    LIMITS,
    Key,
    KeyLike,
    is_loopback,
    is_openai,
    listed_cost,
    listed_price,
    recall,
    remember,
)
from ipyrefine.providers.stream import Assembly

_OPENAI_URL = "https://api.openai.com/v1"
# All the headers that a server gets which the environment does not name.
_HEADERS = {
    "host", "connection", "authorization", "user-agent",
    "accept", "accept-encoding", "content-type", "content-length",
}  # fmt: skip
_OURS = ("messages", "model", "stream", *LIMITS)  # fields that a user cannot set
_NAME = re.compile(r"[^\s<>\"'][ -~]{0,199}")  # a model's

_SECRET = re.compile(rf'"([^"\\]{{{LEAST_SECRET},}})"(?!:)')  # as a value in JSON

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
# Worth a second try. A server that took the request and fell silent may be at work on it: asking
# again would only slow it down.
_LOST = (
    httpx2.NetworkError, httpx2.ConnectTimeout,
    httpx2.RemoteProtocolError, httpx2.ProxyError,
)  # fmt: skip
_FINAL = (TimeoutError, httpx2.TimeoutException, ReplyTooLong, httpx2.SSEError)  # not worth one
_END = object()  # of a stream; None may be a chunk


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    A request is retried only before its reply has begun. Tokens a server does not count are
    estimated as a quarter of the characters.

    Args:
        model: the name the server knows it by.
        base_url: the server's address, up to ``/v1``; None for ``OPENAI_BASE_URL`` or OpenAI.
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
        api_key: KeyLike = None,
        price: Price | None = None,
        timeout: float | None = None,
        extra: Mapping[str, Any] | None = None,
        max_retries: int = 2,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model, self._api_key, self._price = model, Key(api_key), price
        address = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL
        self._base_url, self._login, password = _read_address(address)
        self._is_loopback = is_loopback(self._base_url)
        self._timeout = TIMEOUT if timeout is None else timeout
        if not 0 < self._timeout < math.inf:
            raise UsageError(f"The timeout must be a number of seconds above 0, not {timeout}.")
        self._extra = _read_extra(extra)
        self._place = (self._base_url, model, json.dumps(self._extra, sort_keys=True))
        self._secrets = (
            password,
            self._login,
            *_SECRET.findall(json.dumps(self._extra, ensure_ascii=False)),
        )
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

    async def stream(self, request: Request) -> Stream:
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
            async with (
                asyncio.timeout(_LIST_SECONDS),
                self._client() as client,
                self._open(client, key, "/models") as response,
            ):
                return _read_names(decode(await _receive(response, MAX_REPLY_BYTES)))
        except BaseException as error:
            raise self._without_frames(error, key) from None

    async def _ask(self, request: Request, key: Key) -> Stream:
        start, retries = time.monotonic(), 0
        taken = known = recall(*self._place)
        async with self._client() as client:
            while True:
                assembly = Assembly(request)
                body = {"model": self._model, **taken.body(request, self._extra)}
                try:
                    async with aclosing(self._read(client, key, body, assembly)) as deltas:
                        async for delta in deltas:
                            yield delta
                    break
                except Exception as error:
                    refusal = error if isinstance(error, Refused) else None
                    if assembly.has_begun:
                        raise
                    if refusal and (less := taken.without(refusal, request, self._extra)) != taken:
                        taken = less
                        continue
                    wait = self._retry(error, refusal, retries)
                    if wait is None:
                        raise
                retries += 1
                yield wait
                await self._sleep(wait.wait)
        for text in taken.notices(known, request, self._extra):
            if text not in self._announced:
                self._announced.add(text)
                yield Notice(text=text)
        reply = assembly.reply(time.monotonic() - start)
        if assembly.thinks_aloud:  # a grammar leaves no room for its thoughts
            taken = taken.leaving(FORMAT)
        remember(*self._place, taken=taken)
        usage = reply.usage
        capped = reply.finish == "length" and taken.token_limit(request) < request.max_tokens
        if usage.cost is None:
            cost = (
                self._price.cost(usage.prompt_tokens, usage.completion_tokens)
                if self._price
                else listed_cost(usage, self._model, self.base_url)
            )
            usage = usage.model_copy(update={"cost": cost})
        yield reply.model_copy(update={"capped": capped, "usage": usage})

    def _retry(self, error: Exception, refusal: Refused | None, retries: int) -> Notice | None:
        """Return the wait before a retry; None if the request cannot succeed."""
        text = ""  # without an answer: if it stays away, the error says so once
        if refusal is None:
            certificate = isinstance(root(error), ssl.SSLCertVerificationError)
            if certificate or not isinstance(error, _LOST):
                return None
            wait = backoff(retries)
        else:
            status, delay = refusal.status, refusal.delay
            polls = status == _LOADING and self._is_loopback and delay is None
            if polls and retries * _POLL < _MAX_LOADING:
                text = f"The server isn't ready yet. Waiting up to {_MAX_LOADING // 60} minutes."
                return Notice(text="" if retries else text, wait=_POLL)
            wait = backoff(retries) if delay is None else delay
            if status not in _TRANSIENT and status < 500:
                return None
            reason = "is busy" if status in _BUSY else "failed"
            count = f"({retries + 1} of {self._max_retries})"
            text = f"The server {reason}; trying again in {math.ceil(wait)} s {count}."
        again = retries < self._max_retries and wait <= MAX_WAIT
        return Notice(text=text, wait=wait) if again else None

    async def _read(
        self, client: openai.AsyncOpenAI, key: Key, body: object, assembly: Assembly
    ) -> AsyncGenerator[Delta, None]:
        """Ask, read the answer to its end and yield what it adds to the reply.

        Raises:
            TimeoutError: nothing new came in `timeout` seconds.
            NotCompletions: it holds no chunk, or anything else than JSON objects.
        """
        clock = asyncio.get_running_loop().time
        async with (
            self._open(client, key, "/chat/completions", body) as response,
            aclosing(_chunks(response)) as chunks,
        ):
            count, deadline = 0, clock() + self._timeout
            while True:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(chunks, _END)
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
            if count == 0:
                raise NotCompletions

    @asynccontextmanager
    async def _open(
        self, client: openai.AsyncOpenAI, key: Key, path: str, body: object = None
    ) -> AsyncGenerator[httpx2.Response, None]:
        """Send a request, and close its answer in the end.

        Raises:
            Refused: the server answered with an error, or leads elsewhere.
        """
        send = client.get if body is None else partial(client.post, body=body)
        login = f"Basic {self._login}" if self._login else key() and f"Bearer {key()}"
        # A server that sends its headers byte by byte is silent too.
        async with asyncio.timeout(self._timeout + _CONNECT_SECONDS):
            lost = None
            try:
                # Plain JSON both ways: the client's `create` makes a type of every field and chunk.
                stream = await send(
                    path,
                    cast_to=object,
                    options={"headers": {"Authorization": login or openai.Omit()}},
                    stream=True,
                    stream_cls=openai.AsyncStream[Any],
                )
            except openai.APIConnectionError as error:
                lost = error.__cause__ or error
        if lost:
            raise lost
        async with aclosing(stream.response) as response:
            # A small reply could grow to any size: nothing is ever decompressed.
            response.headers.pop("Content-Encoding", None)
            yield response

    def _client(self) -> openai.AsyncOpenAI:
        """Return a client for one request: one that stays would be bound to its event loop."""
        return openai.AsyncOpenAI(
            api_key="none",  # the real one goes with the request
            base_url=self.base_url,
            max_retries=0,  # ours are announced, and the budget may refuse their wait
            http_client=httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS),
                verify=self._tls,
                # A proxy cannot reach this machine's own loopback.
                trust_env=not self._is_loopback,
                headers={"Accept-Encoding": "identity"},
                event_hooks={"request": [self._drop_headers], "response": [_refuse]},
            ),
        )

    async def _drop_headers(self, request: httpx2.Request) -> None:
        """Drop what the client adds from the environment (``OPENAI_CUSTOM_HEADERS``) elsewhere."""
        if not self._is_configured():
            for name in {*request.headers} - _HEADERS:
                del request.headers[name]

    def _is_configured(self) -> bool:
        """Return True if the environment names this server; its keys go nowhere else."""
        with suppress(httpx2.InvalidURL, ValueError):
            configured = httpx2.URL(os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL)
            return httpx2.URL(self.base_url).origin == configured.origin
        return False

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
        return key

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
            refusal = error if isinstance(error, Refused) else None
            has_key = key() or self._login or self._is_configured()
            if refusal and refusal.status in (401, 403) and not has_key:
                ours = self._no_key_error()
            else:
                secrets = (key(), *self._secrets)
                ours = model_error(error, server=self.base_url, model=self._model, secrets=secrets)
            mends = not (400 <= ours.status < 500 or isinstance(error, _FINAL))
            ours.broke_off = begun and mends
        _drop_frames(error)
        return ours


def _read_address(address: str) -> tuple[str, str, str]:
    """Return a base URL, the encoded login that it held, and its password.

    Raises:
        UsageError: it is not an http or https address, or something follows its path.
    """
    try:
        url = httpx2.URL(address)
        base_url = safe_url(address).removesuffix("/chat/completions")
    except (httpx2.InvalidURL, ValueError):
        url = httpx2.URL()
    if url.scheme not in ("http", "https") or not url.host:
        # Not quoted: a malformed address may hold a password.
        raise UsageError("The base URL is not an address. Write it as http://HOST:PORT/v1.")
    if url.query or url.fragment:
        raise UsageError(
            f"The base URL of {base_url} goes on after its path. Leave out what follows the ? or "
            "#, and keep a key in an environment variable."
        )
    login = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
    return base_url, login if url.userinfo else "", url.password


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
    if isinstance(listed, dict) and "data" in listed:
        rows = listed["data"] or []  # null for none, as Ollama has it
    if not isinstance(rows, list):
        raise NotCompletions
    names = (row.get("id") for row in rows if isinstance(row, dict))
    return sorted({name for name in names if isinstance(name, str) and _NAME.fullmatch(name)})


async def _receive(response: httpx2.Response, most: int) -> bytes:
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) >= most:
            break
    return bytes(body[:most])


async def _refuse(response: httpx2.Response) -> None:
    """Raise for an error answer; whatever happens to its body, it has a status."""
    if response.is_success:
        return
    response.headers.pop("Content-Encoding", None)
    body = b""
    with suppress(Exception):
        async with asyncio.timeout(_ERROR_SECONDS):
            body = await _receive(response, MAX_ERROR_BYTES)
    raise Refused(body.decode("utf-8", "replace").strip(), response.status_code, response.headers)


async def _chunks(response: httpx2.Response) -> AsyncGenerator[object, None]:
    """Yield the chunks of a stream up to its end mark, or a reply that isn't streamed as one.

    Raises:
        Refused: there is an error in it.
    """
    if response.headers.get("Content-Type", "").startswith("application/json"):
        completion = decode(await _receive(response, MAX_REPLY_BYTES))
        _check(completion, response)
        if not (isinstance(completion, dict) and "choices" in completion):
            raise NotCompletions
        yield completion
        return
    response.headers["Content-Type"] = "text/event-stream"  # whatever it calls it
    async for event in httpx2.EventSource(response, MAX_REPLY_BYTES):
        if response.num_bytes_downloaded > MAX_REPLY_BYTES:
            raise ReplyTooLong
        if event.data.startswith("[DONE]"):
            return
        if event.data.strip():
            chunk = decode(event.data)
            _check(chunk, response, event.event)
            yield chunk


def _check(chunk: object, response: httpx2.Response, event: str = "") -> None:
    if (error := find_error(chunk, event)) is not None:
        raise Refused(error, 0, response.headers)


def _drop_frames(error: BaseException) -> None:
    """Remove the frames that an exception and its causes passed through.

    The client's frames hold the request with its key, and a traceback may show their variables.
    """
    for link in chain(error):
        link.__traceback__ = None
