"""Failures in the user's words: which error each becomes, and its one sentence."""

import re
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

from ipyrefine import errors
from ipyrefine.providers.refusals import Refusal
from ipyrefine.providers.retries import is_out_of_credit

Secret = str | tuple[str, ...]

_LONGEST_QUOTE = 300
_BUSY = (503, 529)
_TOO_LONG = re.compile(r"context.{0,3}(length|size|window)|too many tokens", re.IGNORECASE)


def safe_url(url: str) -> str:
    """Return an address without credentials, query and fragment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def checked_url(url: str) -> str:
    """Check a base URL and return it as `safe_url` does.

    Raises:
        UsageError: it is not an http or https address.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return safe_url(url)
    except ValueError:
        pass  # a malformed port or address, which may hold a password: not quoted
    raise errors.UsageError("The base URL is not an address: write it as http://HOST:PORT/v1.")


def quoted(message: str, secret: Secret = "") -> str:
    """Return a server's message as a clause: one line, cut short, without the key; or nothing."""
    if "<html" in message.lower() or "<!doctype" in message.lower():
        return ""
    for known in (secret,) if isinstance(secret, str) else secret:
        message = message.replace(known, "…") if known else message
    line = " ".join(message.split()).rstrip(".")
    if len(line) > _LONGEST_QUOTE:
        line = line[: _LONGEST_QUOTE - 1] + "…"
    return f" ({line})" if line else ""


def root(error: BaseException) -> BaseException:
    """Return the first cause of an error."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def hindrance(refusal: Refusal | None) -> str:
    """Say why a request is about to be repeated; None means that nothing answered."""
    if refusal is None:
        return "No connection to the server"
    if refusal.status >= 500 and refusal.status not in _BUSY:
        return f"The server failed (HTTP {refusal.status})"
    return "The server is busy"


def not_the_protocol(server: str) -> errors.ServerFailed:
    """Make the error for an answer that is no chat completion."""
    return errors.ServerFailed(
        f"{server} did not answer in the chat completions protocol: check the base URL, which "
        "often ends in /v1."
    )


def too_long(server: str, most: int) -> errors.ServerFailed:
    """Make the error for an answer without an end."""
    return errors.ServerFailed(
        f"{server} sent more than {most // 2**20} MB for one reply: run the cell again, or choose "
        "another model."
    )


def timed_out(server: str) -> errors.Unreachable:
    """Make the error for a server that fell silent."""
    return errors.Unreachable(
        f"{server} sent nothing for too long: check that it is running and not overloaded."
    )


def unreachable(server: str, error: Exception) -> errors.Unreachable:
    """Make the error for a connection that was not made, or broke."""
    cause = root(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"its certificate: {cause.verify_message}"
    elif isinstance(cause, OSError):
        why = cause.strerror or str(cause)
    else:
        why = "the connection broke"
    return errors.Unreachable(
        f"No connection to {server}{quoted(why)}: check the address and that the server is running."
    )


def broke_off(server: str, message: str, secret: Secret) -> errors.ServerFailed:
    """Make the error for anything else the server or its client reports."""
    return errors.ServerFailed(
        f"{server} broke off with an error{quoted(message, secret)}: run the cell again, or "
        "choose another model."
    )


def from_status(refusal: Refusal, *, server: str, model: str, secret: Secret) -> errors.ModelError:
    """Make the error for an HTTP status.

    Args:
        refusal: the server's answer.
        server: its address, safe to show.
        model: the model asked for.
        secret: the key, taken out of the server's message.
    """
    said = quoted(refusal.message, secret)
    kind = _KINDS.get(refusal.status)
    if kind is None:
        kind = _failed if refusal.status >= 500 else _rejected
    return kind(refusal, said, server, model)


_Kind = Callable[[Refusal, str, str, str], errors.ModelError]


def _unauthorized(_: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    # What the server says here may hold a piece of the key.
    return errors.AccessDenied(
        f"{server} does not accept the key: set OPENAI_API_KEY to a key of this server."
    )


def _forbidden(_: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    return errors.AccessDenied(
        f"{server} does not allow this key to use {model!r}{said}: check what the key may do."
    )


def _not_found(_: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    return errors.ModelNotFound(
        f"{server} does not know the model {model!r}{said}: check the model's name and the base "
        "URL, which often ends in /v1."
    )


def _no_credit(_: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    return errors.RateLimited(
        f"The account at {server} has no credit left{said}: top it up or choose another model."
    )


def _limited(refusal: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    if is_out_of_credit(refusal.complaint):
        return _no_credit(refusal, said, server, model)
    return errors.RateLimited(
        f"{server} takes no more requests for now{said}: wait a little and run the cell again."
    )


def _moved(refusal: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    target = refusal.headers.get("location", "").partition("?")[0]
    where = quoted(f"to {safe_url(target)}") if target.startswith("http") else ""
    return errors.RequestRejected(
        f"{server} sends requests on to another address{where}: give that one as the base URL."
    )


def _timed_out(_: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    return errors.Unreachable(
        f"{server} gave up waiting for the request{said}: run the cell again."
    )


def _rejected(refusal: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    if _TOO_LONG.search(refusal.complaint):
        return errors.RequestRejected(
            f"The request is too long for {model!r}{said}: shorten the cell or choose a model "
            "with a longer context."
        )
    return errors.RequestRejected(
        f"{server} rejected the request (HTTP {refusal.status}){said}: change the cell or the "
        "options, or choose another model."
    )


def _failed(refusal: Refusal, said: str, server: str, model: str) -> errors.ModelError:
    return errors.ServerFailed(
        f"{server} failed (HTTP {refusal.status}){said}: run the cell again, or choose another "
        "model."
    )


_KINDS: dict[int, _Kind] = {
    **dict.fromkeys((301, 302, 303, 307, 308), _moved),
    401: _unauthorized,
    402: _no_credit,
    403: _forbidden,
    404: _not_found,
    408: _timed_out,
    429: _limited,
}
