"""When to ask again, and how long to wait first."""

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_FIRST_S = 0.5
_LONGEST_S = 8.0
_LONGEST_ASKED_S = 60.0
_STATUSES = frozenset({408, 409, 429})
_NO_CREDIT = ("insufficient_quota", "billing", "no credit", "insufficient credit")


def is_transient(status: int, complaint: str, headers: Mapping[str, str]) -> bool:
    """Tell whether the same request may well succeed a moment later.

    Args:
        status: HTTP status of the answer.
        complaint: the server's code and message.
        headers: the answer's headers.
    """
    if headers.get("x-should-retry") == "false" or is_out_of_credit(complaint):
        return False
    return status in _STATUSES or 500 <= status < 600


def is_out_of_credit(complaint: str) -> bool:
    """Tell a used-up account, which no waiting mends, from too many requests."""
    return any(words in complaint.lower() for words in _NO_CREDIT)


def pause(attempt: int, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait before a retry; None when the server asks for more than a minute.

    Without ``Retry-After`` it is exponential backoff with full jitter, so that many notebooks
    held up by the same server do not come back in step.

    Args:
        attempt: retries made so far.
        headers: the answer's headers; empty when there was none.
    """
    asked = _retry_after(headers)
    if asked is None:
        return random.uniform(0, min(_LONGEST_S, _FIRST_S * 2**attempt))
    return asked if asked <= _LONGEST_ASKED_S else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from ``Retry-After`` (a number or a date); None when absent or unreadable."""
    value = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
