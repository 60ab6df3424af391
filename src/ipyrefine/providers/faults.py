"""Map each failure of a model's server to one of our errors, without keys and passwords.

`_explain_refusal` has every HTTP status, and `_explain` every exception of the client's.
"""

import json
import re
import ssl
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

from ipyrefine import errors
from ipyrefine.providers.servers import REQUEST_TOO_LARGE, TOO_LONG, safe_url

MAX_REPLY_BYTES = 16 * 2**20  # a reply of a hundred thousand tokens, each in a chunk of its own
MAX_ERROR_BYTES = 64 * 2**10  # read of an error answer; the rest is left unread
_MAX_QUOTE_CHARS = 300
_NO_CREDIT = re.compile(r"insufficient_quota|billing|no credit|insufficient credit", re.IGNORECASE)


class NotCompletions(Exception):
    """A server's answer is not a chat completion."""


class ReplyTooLong(Exception):
    """A server sent more than `MAX_REPLY_BYTES`."""


class Compressed(Exception):
    """A server compressed a reply, although it was asked not to."""


class Refused(Exception):
    """A server answered with an error, with a status or in place of a chunk.

    Attributes:
        status: the HTTP status; within a stream, the error's code, or 0 without one.
        complaint: the request field it names, its error code and its message.
        message: its message alone.
        headers: the answer's headers.
    """

    def __init__(
        self, status: int, complaint: str, message: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(status)
        self.status, self.complaint = status, complaint
        self.message, self.headers = message, headers

    @property
    def is_out_of_credit(self) -> bool:
        """Whether the account is used up, which no waiting mends."""
        return bool(_NO_CREDIT.search(self.complaint))

    @property
    def may_name_a_field(self) -> bool:
        """Whether it may be about a field that was sent: any 4xx that waiting does not mend."""
        if self.status in (402, 408, 409, 429):
            return bool(REQUEST_TOO_LARGE.search(self.message))
        return 400 <= self.status < 500


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
    refused = error if isinstance(error, Refused) else None
    kind, message = _explain_refusal(refused) if refused else _explain(error)
    ours = kind(
        message.format(
            server=server,
            model=model,
            status=refused and refused.status,
            quote=_quote(refused.message if refused else str(error), secrets),
            target=_quote(_redirect_target(refused) if refused else "", secrets),
            cause=_quote(_system_message(root(error)), secrets),
        )
    )
    if message is _UNREADABLE:
        ours.add_note(f"The cause was a {type(error).__name__}.")  # for a report, not the sentence
    return ours


_UNREADABLE = "{server} sent what cannot be read. Run the cell again, or choose another model."


def _explain_refusal(refused: Refused) -> tuple[type[errors.ModelError], str]:
    """Return the error for an error answer, and its message as a format string."""
    match refused.status:
        case 0:
            return errors.ServerFailed, (
                "{server} reported an error{quote}. Run the cell again, or choose another model."
            )
        case 301 | 302 | 303 | 307 | 308:
            return errors.RequestRejected, (
                "{server} redirects to another address{target}. Give that one as the base URL."
            )
        case 401:  # without a quote, which may hold a piece of the key
            return errors.AccessDenied, (
                "{server} doesn't accept the key. Set OPENAI_API_KEY, or the variable that "
                "--api-key-env names, to a key of this server."
            )
        case 403:
            return errors.AccessDenied, (
                "{server} doesn't allow this key to use {model!r}{quote}. Check what the key may "
                "do."
            )
        case 404:
            return errors.ModelNotFound, (
                "{server} doesn't know the model {model!r}{quote}. Check the model's name and the "
                "base URL, which often ends in /v1."
            )
        case 408:
            return errors.Unreachable, (
                "{server} gave up waiting for the request{quote}. Run the cell again."
            )
        case status if status == 402 or (status == 429 and refused.is_out_of_credit):
            return errors.RateLimited, (
                "The account at {server} has no credit left{quote}. Top it up, or choose another "
                "model."
            )
        case 429:
            return errors.RateLimited, (
                "{server} accepts no more requests for now{quote}. Wait a little and run the cell "
                "again."
            )
        case status if status >= 500:
            return errors.ServerFailed, (
                "{server} failed (HTTP {status}){quote}. Run the cell again, or choose another "
                "model."
            )
        case _ if TOO_LONG.search(refused.complaint):
            return errors.RequestRejected, (
                "The request is too long for {model!r}{quote}. Shorten the cell, or choose a model "
                "with a longer context."
            )
    return errors.RequestRejected, (
        "{server} rejected the request (HTTP {status}){quote}. Change the cell or the options, or "
        "choose another model."
    )


def _explain(error: Exception) -> tuple[type[errors.ModelError], str]:
    """Return the error for a request or a reply that broke off, and its message, likewise."""
    match error:
        case NotCompletions() | UnicodeDecodeError() | httpx2.DecodingError():
            return errors.ServerFailed, (
                "{server} doesn't answer in the chat completions protocol. Check the base URL, "
                "which often ends in /v1."
            )
        case ReplyTooLong():
            return errors.ServerFailed, (
                f"{{server}} sent more than {MAX_REPLY_BYTES // 2**20} MB for one reply. Run the "
                "cell again, or choose another model."
            )
        case Compressed():
            return errors.ServerFailed, (
                "{server} compresses its replies, although it was asked not to. Switch that off, "
                "or choose another server."
            )
        case TimeoutError() | httpx2.TimeoutException():
            return errors.Unreachable, (
                "{server} sent nothing new for too long. Check that it is running, or raise "
                "--timeout."
            )
        case httpx2.TransportError():
            return errors.Unreachable, (
                "No connection to {server}{cause}. Check the address, and that the server is "
                "running."
            )
        case httpx2.InvalidURL():
            return errors.Unreachable, (
                "{server} is not a valid address{quote}. Check the base URL."
            )
    return errors.ServerFailed, _UNREADABLE


def read_refusal(body: object, status: int, headers: Mapping[str, str]) -> Refused:
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
    return Refused(status, " ".join([*words, message]), message, headers)


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


def _redirect_target(refused: Refused) -> str:
    """Return where a redirect leads; empty for a relative or malformed address."""
    location = refused.headers.get("location", "")
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
