"""Reading a server's error answer, in the shapes that different servers give it."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Refusal(NamedTuple):
    """An error answer: HTTP status, what the server says, and its headers."""

    status: int
    param: str
    code: str
    message: str
    headers: Mapping[str, str]

    @property
    def complaint(self) -> str:
        """Everything the server says, the field it names first."""
        return f"{self.param} {self.code} {self.message}"


def read_refusal(body: object, status: int | None, headers: Mapping[str, str]) -> Refusal | None:
    """Read an error answer; total over any body.

    Args:
        body: decoded JSON, or the text that is none.
        status: HTTP status; None for an error within a stream, whose code then serves.
        headers: the answer's headers.

    Returns:
        The refusal, or None when there is no status to go by.
    """
    fields = _fields(body)
    status = _status(fields.get("code")) if status is None else status
    if status is None:
        return None
    words = fields.get("message") or fields.get("detail") or fields.get("error") or ""
    return Refusal(
        status=status,
        param=str(fields.get("param") or ""),
        code=f"{fields.get('code') or ''} {fields.get('type') or ''}".strip(),
        message=words if isinstance(words, str) else json.dumps(words),
        headers=headers,
    )


def _fields(body: object) -> dict[str, Any]:
    """Unwrap ``[{"error": {…}}]``, ``{"error": {…}}`` and bare texts."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    return body if isinstance(body, dict) else {"message": body}


def _status(code: object) -> int | None:
    text = str(code)
    return int(text) if text.isdecimal() and 400 <= int(text) < 600 else None
