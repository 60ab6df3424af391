"""Everything ipyrefine raises, as one tree below `RefineError`.

A message says in one sentence what went wrong, and what to do.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

_LONGEST = 1_000  # characters of a sentence


class RefineError(Exception):
    """Base of all errors; its message says what happened, then what to do.

    Attributes:
        run: the run as far as it got (an `ipyrefine.Run`), or None when none was started.
    """

    run: Any = None

    def __str__(self) -> str:
        # It may quote a server or a model, and a terminal obeys what it prints.
        return "".join(c if c.isprintable() or c == "\n" else "�" for c in super().__str__())

    def _render_traceback_(self) -> list[str]:
        # IPython asks an exception for this first: the user needs the sentence, not our stack.
        return [f"{type(self).__name__}: {self}"]


class UsageError(RefineError, ValueError):
    """An option, an argument or the cell's body cannot be used; a long one is quoted in part."""

    def __str__(self) -> str:
        whole, half = super().__str__(), _LONGEST // 2
        return whole if len(whole) <= _LONGEST else f"{whole[:half]}…{whole[-half:]}"


class NoModel(RefineError):
    """No model is configured, or an optional package for it is not installed."""


class NoModelYet(NoModel):
    """No model is configured, and the cell holds code that can be looked at without one."""


class WeightsError(RefineError):
    """The embedded model's file is missing, damaged, or could not be fetched."""


class ReplyError(RefineError):
    """A model's reply cannot be read as what was asked for."""


class JournalError(RefineError):
    """The journal of runs cannot be written or read."""


class CheckError(RefineError):
    """A check broke, instead of finding a fault in the text."""


class CheckNotRun(CheckError):
    """A check could not be run, so it says nothing about the text; the run goes on without it.

    Attributes:
        report: what the check had reported before it was ended.
        events: the same, as the events of `sandbox.run_parts`.
    """

    report: str = ""
    events: Sequence[dict[str, Any]] = ()


class InternalError(RefineError):
    """ipyrefine itself broke; the best text so far was kept."""


class Interrupted(RefineError):
    """The user interrupted the run; the best text so far was kept."""


class ModelError(RefineError):
    """The model or the server behind it failed.

    Attributes:
        status: the HTTP status of the server's answer; 0 for none.
        asks_setup: whether another key, address or model would help.
        broke_off: whether the reply had begun, so that asking again may help.
    """

    status = 0
    asks_setup = False
    broke_off = False


class Unreachable(ModelError):
    """No connection to the server, a connection that broke, or a timeout."""


class AccessDenied(ModelError):
    """The key is missing, wrong, or not allowed to do this (HTTP 401, 403)."""

    asks_setup = True


class ModelNotFound(ModelError):
    """The server does not know the model (HTTP 404)."""

    asks_setup = True


class RateLimited(ModelError):
    """Too many requests, or no credit left (HTTP 429), after the retries."""


class RequestRejected(ModelError):
    """The server cannot take this request (HTTP 400, 409, 413, 422 and other 4xx)."""


class ServerFailed(ModelError):
    """The server broke (HTTP 5xx), or what it sends is not the protocol."""


_MEANT = {  # what other loops call an option
    "max_iterations": "max_revisions",
    "max_cost": "budget",
    "evaluator": "checks",
    "checklist": "profile",
    "target_score": "target",
    "delta_threshold": "delta",
}


def describe(error: BaseException) -> str:
    """Return an exception's kind and message on one line, at most 300 characters."""
    try:
        message = " ".join(str(error).split()).rstrip(".")
    except Exception:  # it is a stranger's, and may fail at that too
        message = ""
    return f"{type(error).__name__}: {message}"[:300] if message else type(error).__name__


def nearest(word: str, known: Iterable[str], n: int = 1) -> list[str]:
    """Return the `n` nearest known words, or the one that is called so in other loops.

    Names that begin with an underscore are nobody's to use.
    """
    names, meant = [one for one in known if one[:1] != "_"], _MEANT.get(word, "")
    return [meant] if meant in names else difflib.get_close_matches(word, names, n=n)


def did_you_mean(word: str, known: Iterable[str], n: int = 1) -> str:
    """Return ``" Did you mean x?"`` for the `n` nearest known words, or an empty string."""
    near = nearest(word, known, n)
    return f" Did you mean {' or '.join(near)}?" if near else ""
