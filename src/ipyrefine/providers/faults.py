"""Map each failure of a model's server to one of our errors, without keys and passwords.

One table, `_faults`, holds the HTTP statuses, the client's exceptions and the message for each.
"""

import functools
import json
import re
import ssl
from collections import deque
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ipyrefine import errors

MAX_REPLY_BYTES = 16 * 2**20  # a reply of a hundred thousand tokens, each in a chunk of its own
MAX_ERROR_BYTES = 64 * 2**10  # read of an error answer; the rest is left unread
_MAX_QUOTE_CHARS = 300
_TOO_LARGE = re.compile(r"request too large.{0,200}tokens", re.IGNORECASE)
_TOO_LONG = re.compile(r"context.{0,3}(length|size|window)|too many tokens", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient_quota|billing|no credit|insufficient credit", re.IGNORECASE)


class NotCompletions(Exception):
    """A server's answer is not a chat completion."""


class ReplyTooLong(Exception):
    """A server sent more than `MAX_REPLY_BYTES`."""


class Compressed(Exception):
    """A server compressed a reply, although it was asked not to."""


class Refusal(NamedTuple):
    """An error answer of a server.

    Attributes:
        status: the HTTP status; within a stream, the error's code, or 0 without one.
        complaint: the request field it names, its error code and its message.
        message: its message alone.
        headers: the answer's headers.
    """

    status: int
    complaint: str
    message: str
    headers: Mapping[str, str]

    @property
    def is_out_of_credit(self) -> bool:
        """Whether the account is used up, which no waiting mends."""
        return bool(_NO_CREDIT.search(self.complaint))

    @property
    def may_name_a_field(self) -> bool:
        """Whether it may be about a field that was sent: any 4xx that waiting does not mend."""
        if self.status in (402, 408, 409, 429):
            return bool(_TOO_LARGE.search(self.message))
        return 400 <= self.status < 500


class Refused(Exception):
    """A server answered with an error status; its argument is the `Refusal`."""


class Fault(NamedTuple):
    """One row of the table: how to recognise a failure, and what it becomes.

    Attributes:
        error: our error.
        message: its message, a format string with the fields ``server``, ``model``, ``quote`` (the
            server's own message) and, with a status, ``status`` and ``target`` (where it redirects
            to), without one ``cause`` (what the system reports).
        statuses: HTTP statuses of this failure.
        complaint: what the server's answer has to contain; None for any answer.
        exceptions: exception classes of this failure.
    """

    error: type[errors.ModelError]
    message: str
    statuses: Container[int] = ()
    complaint: re.Pattern[str] | None = None
    exceptions: tuple[type[Exception], ...] = ()


@functools.cache
def _faults() -> tuple[Fault, ...]:
    """Return the table; the first row that fits a failure applies."""
    # Imported on first use: a cell's options need `safe_url`, not a second of imports.
    import httpx2
    import openai

    rejected, failed = errors.RequestRejected, errors.ServerFailed
    no_credit = (
        "The account at {server} has no credit left{quote}. Top it up, or choose another model."
    )
    return (
        # The server answered with a status.
        Fault(
            rejected,
            "{server} redirects to another address{target}. Give that one as the base URL.",
            statuses=(301, 302, 303, 307, 308),
        ),
        Fault(
            errors.AccessDenied,  # without a quote, which may hold a piece of the key
            "{server} doesn't accept the key. Set OPENAI_API_KEY, or the variable that "
            "--api-key-env names, to a key of this server.",
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
            errors.Unreachable,
            "{server} gave up waiting for the request{quote}. Run the cell again.",
            statuses=(408,),
        ),
        Fault(errors.RateLimited, no_credit, statuses=(402,)),
        Fault(errors.RateLimited, no_credit, statuses=(429,), complaint=_NO_CREDIT),
        Fault(
            errors.RateLimited,
            "{server} accepts no more requests for now{quote}. Wait a little and run the cell "
            "again.",
            statuses=(429,),
        ),
        Fault(
            rejected,
            "The request is too long for {model!r}{quote}. Shorten the cell, or choose a model "
            "with a longer context.",
            statuses=range(500),
            complaint=_TOO_LONG,
        ),
        Fault(
            rejected,
            "{server} rejected the request (HTTP {status}){quote}. Change the cell or the options, "
            "or choose another model.",
            statuses=range(500),
        ),
        Fault(
            failed,
            "{server} failed (HTTP {status}){quote}. Run the cell again, or choose another model.",
            statuses=range(500, 1000),
        ),
        # It did not answer, or not to the end.
        Fault(
            failed,
            "{server} doesn't answer in the chat completions protocol. Check the base URL, which "
            "often ends in /v1.",
            exceptions=(NotCompletions, UnicodeDecodeError, httpx2.DecodingError),
        ),
        Fault(
            failed,
            f"{{server}} sent more than {MAX_REPLY_BYTES // 2**20} MB for one reply. Run the cell "
            "again, or choose another model.",
            exceptions=(ReplyTooLong,),
        ),
        Fault(
            failed,
            "{server} compresses its replies, although it was asked not to. Switch that off, or "
            "choose another server.",
            exceptions=(Compressed,),
        ),
        Fault(
            errors.Unreachable,
            "{server} sent nothing new for too long. Check that it is running, or raise --timeout.",
            exceptions=(openai.APITimeoutError, httpx2.TimeoutException, TimeoutError),
        ),
        Fault(
            errors.Unreachable,
            "No connection to {server}{cause}. Check the address, and that the server is running.",
            exceptions=(openai.APIConnectionError, httpx2.TransportError),
        ),
        Fault(
            errors.Unreachable,
            "{server} is not a valid address{quote}. Check the base URL.",
            exceptions=(httpx2.InvalidURL,),
        ),
        Fault(
            failed,
            "{server} reported an error{quote}. Run the cell again, or choose another model.",
            exceptions=(openai.OpenAIError,),
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
    """Return our error for any exception of a request or its reply.

    Args:
        error: the exception.
        server: the server's address, safe to show.
        model: the requested model.
        secrets: the keys and passwords to remove from the server's message.
    """
    refusal, cause = find_refusal(error), root(error)
    if refusal is not None:
        fault = next(
            row
            for row in _faults()
            if refusal.status in row.statuses
            and (row.complaint is None or row.complaint.search(refusal.complaint))
        )
        message = refusal.message
    else:
        # The client may wrap what was raised while it read the answer.
        wrapped = (NotCompletions, ReplyTooLong, Compressed, UnicodeDecodeError)
        error = cause if isinstance(cause, wrapped) else error
        fault = next(row for row in _faults() if isinstance(error, row.exceptions))
        message = str(error)
    ours = fault.error(
        fault.message.format(
            server=server,
            model=model,
            status=refusal and refusal.status,
            quote=_quote(message, secrets),
            target=_quote(_redirect_target(refusal), secrets),
            cause=_quote(_system_message(cause), secrets),
        )
    )
    if fault is _faults()[-1]:
        ours.add_note(f"The cause was a {type(error).__name__}.")  # for a report, not the sentence
    return ours


def find_refusal(error: Exception) -> Refusal | None:
    """Return the error answer behind an exception, also one sent in place of a chunk."""
    import openai

    if isinstance(error, Refused):
        answer: Refusal = error.args[0]
        return answer
    if isinstance(error, openai.APIError):
        refusal = read_refusal(error.body, 0, {})
        return refusal if refusal.status else None
    return None


def read_refusal(body: object, status: int, headers: Mapping[str, str]) -> Refusal:
    """Return an error answer in one shape, whatever the server's own shape is.

    Args:
        body: the decoded JSON, or text that is not JSON: ``[{"error": {…}}]``, ``{"error": {…}}``,
            or the message itself.
        status: the HTTP status; 0 for an error within a stream, whose code is used instead.
        headers: the answer's headers.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    fields: dict[str, Any] = body if isinstance(body, dict) else {"message": body}
    words = [_word(fields.get(name)) for name in ("param", "code", "type")]
    if not status and re.fullmatch(r"[45][0-9]{2}", words[1]):
        status = int(words[1])
    message = fields.get("message") or fields.get("detail") or fields.get("error") or ""
    try:
        message = message if isinstance(message, str) else json.dumps(message)
    except RecursionError:
        message = ""
    return Refusal(status, " ".join([*words, message]), message, headers)


def _word(value: object) -> str:
    """Return a field that should be a word; a server may send anything else instead."""
    return str(value) if value and isinstance(value, str | int | float) else ""


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
    seen, link = set[int](), error
    while id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__ or link


def root(error: BaseException) -> BaseException:
    """Return the first cause of an exception."""
    return deque(chain(error), maxlen=1)[0]


def safe_url(url: str) -> str:
    """Return an address without credentials, query and fragment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _quote(message: str, secrets: tuple[str, ...]) -> str:
    """Return a message in brackets, on one line, shortened; empty for a web page or nothing."""
    if "<html" in message.lower() or "<!doctype" in message.lower():
        return ""
    for word in filter(None, secrets):
        message = re.sub(re.escape(word), "…", message, flags=re.IGNORECASE)
    line = " ".join(message.split()).rstrip(".")
    if len(line) > _MAX_QUOTE_CHARS:
        line = line[: _MAX_QUOTE_CHARS - 1] + "…"
    return f" ({line})" if line else ""


def _redirect_target(refusal: Refusal | None) -> str:
    """Return where a redirect leads; empty for a relative or malformed address."""
    location = refusal.headers.get("location", "") if refusal else ""
    try:
        return f"to {safe_url(location)}" if location.startswith("http") else ""
    except ValueError:
        return ""


def _system_message(cause: BaseException) -> str:
    """Return what the operating system or the TLS library reports about a connection."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate: {cause.verify_message}"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"  # asyncio's own words name the address once more
    if isinstance(cause, OSError):
        return cause.strerror or str(cause)
    return "the connection broke"
