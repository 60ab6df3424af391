"""Read the error answers of servers, and map each failure to one of our errors, without keys.

One table, `_faults`, holds the HTTP statuses, the client's exceptions and the message for each. A
server's words are quoted and never interpreted: its status, its headers and the fields that it
names decide.
"""

import functools
import json
import math
import re
import ssl
import time
from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ipyrefine import errors

MAX_REPLY_BYTES = 16 * 2**20  # a reply of a hundred thousand tokens, each in a chunk of its own
MAX_ERROR_BYTES = 64 * 2**10  # read of an error answer; the rest is left unread
_MAX_QUOTE_CHARS = 300
MAX_WAIT = 60.0  # seconds that a run waits for a server at a time
LEAST_SECRET = 7  # characters; a shorter key is none (`x`, `none`, `EMPTY`), but a part of words

_WORDS = ("", "error", "message", "msg", "detail", "raw")  # where an error answer holds its words
_CODES = ("code", "status")
_MOST_PARTS = 9  # of a list
_DELAY = re.compile(r'"retryDelay": ?"([\d.]+)s"')  # as Google has it
_STATUS = re.compile(r"[45][0-9]{2}")


class NotCompletions(Exception):
    """A server's answer is not a chat completion."""


class ReplyTooLong(Exception):
    """A server sent more than `MAX_REPLY_BYTES`."""


class Refused(Exception):
    """A server's error answer in one shape, whatever the server's own shape is.

    Args:
        body: the decoded JSON, or text that is not JSON.
        status: the HTTP status; 0 for an error within a reply, whose code is used instead.
        headers: the answer's headers.

    Attributes:
        status: as above; 0 where there is none.
        message: the server's own words.
        delay: the seconds it asks to wait; None if it doesn't.
    """

    def __init__(self, body: object, status: int, headers: Mapping[str, str] = {}) -> None:
        super().__init__(status)
        parts = [(0, "", body)]
        for depth, name, value in parts:  # it grows meanwhile
            inner = _unfold(value)
            if isinstance(inner, dict):  # an ``input`` repeats the request
                parts += [(depth + 1, str(k).lower(), v) for k, v in inner.items() if k != "input"]
            elif isinstance(inner, list):
                parts += [(depth + 1, name, one) for one in inner[:_MOST_PARTS]]
        leaves = [one for one in parts if isinstance(one[2], str | int | float)]
        codes = (str(value) for _, name, value in leaves if name in _CODES)
        self.status = status or int(next(filter(_STATUS.fullmatch, codes), 0))
        words = (
            str(value)
            # The innermost first: a gateway wraps what the server behind it says.
            for _, name, value in sorted(leaves, key=lambda leaf: -leaf[0])
            if name in _WORDS and _unfold(value) is value and value != ""
        )
        self.message, self.headers = next(words, ""), headers
        asked = headers.get("retry-after") or "".join(_DELAY.findall(str(body))[:1])
        self.delay = _seconds(asked)

    def find(self, names: Collection[str]) -> str | None:
        """Return the first of some names that stands in it, perhaps with spaces for underscores."""
        found = {
            name: re.search(
                rf"(?<![\w/-]){re.escape(name).replace('_', '[ _]')}(?![\w-])",
                self.message,
                re.IGNORECASE,
            )
            for name in names
        }
        return min(((m.start(), name) for name, m in found.items() if m), default=(0, None))[1]


class Fault(NamedTuple):
    """One row of the table: how to recognise a failure, and what it becomes.

    Attributes:
        error: our error.
        message: its message, a format string with the fields ``server``, ``model``, ``quote`` (the
            server's own message) and, with a status, ``status`` and ``target`` (where it redirects
            to), without one ``cause`` (what the system reports).
        statuses: HTTP statuses of this failure.
        exceptions: exception classes of this failure.
        asks_setup: whether another key, address or model would help.
    """

    error: type[errors.ModelError]
    message: str
    statuses: Container[int] = ()
    exceptions: tuple[type[Exception], ...] = ()
    asks_setup: bool = False


@functools.cache
def _faults() -> tuple[Fault, ...]:
    """Return the table; the first row that fits a failure applies."""
    # Imported on first use: a cell's options need `safe_url` alone.
    import httpx2

    rejected, failed = errors.RequestRejected, errors.ServerFailed
    return (
        # The server answered.
        Fault(
            errors.RateLimited,
            "The account at {server} has no credit left{quote}. Top it up, or choose another "
            "model.",
            statuses=(402,),
        ),
        Fault(
            rejected,
            "The request is too long for {model!r}{quote}. Shorten the cell, or choose a model "
            "with a longer context.",
            statuses=(413,),
        ),
        Fault(
            rejected,
            "{server} redirects to another address{target}. Give that one as the base URL.",
            statuses=(301, 302, 303, 307, 308),
            asks_setup=True,
        ),
        Fault(
            errors.AccessDenied,  # without a quote, which may hold a piece of the key
            "{server} doesn't accept the key. Set OPENAI_API_KEY, or the variable that "
            "--set api_key_env names, to a key of this server.",
            statuses=(401,),
        ),
        Fault(
            errors.AccessDenied,
            "{server} doesn't allow this key to use {model!r}{quote}. Check what the key may do.",
            statuses=(403,),
        ),
        Fault(
            errors.ModelNotFound,
            "{server} doesn't know the model {model!r}{quote}. Check the model's name and the "
            "base URL, which often ends in /v1.",
            statuses=(404,),
        ),
        Fault(
            errors.RateLimited,
            "{server} accepts no more requests for now{quote}. Wait {time} and run the cell again.",
            statuses=(429,),
        ),
        Fault(
            failed,
            "{server} failed (HTTP {status}){quote}. Run the cell again, or choose another model.",
            statuses=(408, *range(500, 1000)),
        ),
        Fault(
            rejected,
            "{server} rejected the request (HTTP {status}){quote}. Change the cell or the options, "
            "or choose another model.",
            statuses=range(1, 500),
        ),
        # It did not answer, or not to the end.
        Fault(
            failed,
            "{server} doesn't answer in the chat completions protocol. Check the base URL, which "
            "often ends in /v1.",
            exceptions=(NotCompletions,),
            asks_setup=True,
        ),
        Fault(
            failed,
            f"{{server}} sent more than {MAX_REPLY_BYTES // 2**20} MB for one reply. Run the cell "
            "again, or choose another model.",
            exceptions=(ReplyTooLong, httpx2.SSEError),
        ),
        Fault(
            errors.Unreachable,
            "{server} sent nothing new for too long. Check that it runs, or raise --set timeout.",
            exceptions=(httpx2.TimeoutException, TimeoutError),
        ),
        Fault(
            errors.Unreachable,
            "No connection to {server}{cause}. If your company signs its own certificates, set "
            "SSL_CERT_FILE to the file that holds them.",
            exceptions=(ssl.SSLCertVerificationError,),
        ),
        Fault(
            errors.Unreachable,
            "No connection to {server}{cause}. Check the address, and that the server is running.",
            exceptions=(httpx2.TransportError,),
            asks_setup=True,
        ),
        Fault(
            failed,
            "{server} reported an error{quote}. Run the cell again, or choose another model.",
            statuses=(0,),
        ),
        Fault(  # whatever else a reply may break
            failed,
            "{server} sent what cannot be read. Run the cell again, or choose another model.",
            exceptions=(Exception,),
        ),
    )


def model_error(
    error: Exception, *, server: str, model: str, secrets: tuple[str, ...] = ()
) -> errors.ModelError:
    """Return our error for any exception of a request or its reply; no secret is in its message."""
    refusal, cause = error if isinstance(error, Refused) else None, root(error)
    if refusal:
        fault = next(row for row in _faults() if refusal.status in row.statuses)
        message = refusal.message
    else:
        error = cause if isinstance(cause, ssl.SSLCertVerificationError) else error
        fault = next(row for row in _faults() if isinstance(error, row.exceptions))
        message = str(error)
    wait = (refusal and refusal.delay) or 0
    target = refusal.headers.get("location", "") if refusal else ""
    with suppress(ValueError):
        target = f"to {safe_url(target)}" if target.startswith("http") else ""
    ours = fault.error(
        fault.message.format(
            server=server,
            model=model,
            status=refusal and refusal.status,
            quote=_quote(message, secrets),
            time="a little, or check the account's quota,"
            if wait < MAX_WAIT
            else f"{math.ceil(wait / 60)} min",
            target=_quote(target, secrets),
            cause=_quote(_system_message(cause), secrets),
        )
    )
    ours.status = refusal.status if refusal else 0
    ours.asks_setup = ours.asks_setup or fault.asks_setup
    if fault is _faults()[-1]:
        ours.add_note(f"The cause was a {type(error).__name__}.")  # for a report, not the sentence
    return ours


def find_error(chunk: object, event: str | None) -> object:
    """Return the error in a chunk or in a whole reply, if there is one."""
    if not isinstance(chunk, dict):
        return None
    named = "error" in (event, chunk.get("object"), chunk.get("type"), *chunk)
    return chunk if named and chunk.get("error", True) else None


def _unfold(value: object) -> object:
    """Return a value, decoded where it is JSON within a text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return decode(value)
        except NotCompletions:
            return value
    return value


def _seconds(text: str) -> float | None:
    """Return the seconds in ``20`` or a date; None for none."""
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError, OverflowError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def decode(data: str | bytes) -> Any:
    """Return the JSON value that a server sent.

    Raises:
        NotCompletions: it is not JSON, or nested too deep.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise NotCompletions from None


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, each once, the first cause last."""
    seen, link = set(), error
    while id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__ or link


def root(error: BaseException) -> BaseException:
    """Return the first cause of an exception."""
    *_, first = chain(error)
    return first


def safe_url(url: str) -> str:
    """Return an address without credentials, query and fragment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _quote(message: str, secrets: tuple[str, ...]) -> str:
    """Return a message in brackets, on one line, shortened; empty for a web page or nothing."""
    if message.startswith("<"):
        return ""
    for word in (secret for secret in secrets if len(secret) >= LEAST_SECRET):
        message = re.sub(re.escape(word), "…", message, flags=re.IGNORECASE)
    line = " ".join(message.split()).rstrip(".")
    if len(line) > _MAX_QUOTE_CHARS:
        line = line[: _MAX_QUOTE_CHARS - 1] + "…"
    return f" ({line})" if line else ""


def _system_message(cause: BaseException) -> str:
    """Return what the operating system or the TLS library reports about a connection."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate: {cause.verify_message}"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"  # asyncio's own words name the address once more
    if isinstance(cause, OSError):
        return cause.strerror or str(cause)
    return "the connection broke"
