"""What a server takes: the structured output ladder, and fields it may not know.

Each rung asks for less of the server. A step down is made only when the server names the field
it rejects, and what it then takes is remembered per server and model for the life of the process.
"""

import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ipyrefine.core.ports import Request

_RUNGS = ("a strict JSON schema", "a JSON schema", "JSON mode", "the prompt alone")
_STRICT, _SCHEMA, _OBJECT, _PROMPT = range(len(_RUNGS))

# How servers name a field in an error; the plain name where they all do.
_NAMED = {
    "response_format": re.compile(
        r"response.?format|json.?schema|json.?object|json.?mode|json.?validate|generate json"
        r"|structured.?output|additionalproperties|\bstrict\b|\bgrammar\b|\$ref",
        re.IGNORECASE,
    ),
    "stream_options": re.compile(r"stream_options|include_usage", re.IGNORECASE),
}


class Dialect(NamedTuple):
    """What one server takes for one model.

    Attributes:
        rung: how a JSON reply is asked for, 0 (strictest) to 3 (by the prompt alone).
        limits: names the completion limit may go by; the first is used.
        dropped: fields the server rejected, left out from then on.
    """

    rung: int = _STRICT
    limits: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    dropped: frozenset[str] = frozenset()

    def arguments(self, request: Request) -> dict[str, Any]:
        """Build the optional fields of a chat completion request."""
        fields: dict[str, Any] = {
            self.limits[0]: request.max_tokens,
            "temperature": request.temperature,
            "stream_options": {"include_usage": True},
        }
        if request.seed is not None:
            fields["seed"] = request.seed
        if request.json_schema is not None and self.rung < _PROMPT:
            fields["response_format"] = _response_format(self.rung, request)
        return {name: value for name, value in fields.items() if name not in self.dropped}


class Step(NamedTuple):
    """A step down: what to speak next, and what to tell the user."""

    dialect: Dialect
    notice: str


_KNOWN: dict[tuple[str, str], Dialect] = {}


def recall(base_url: str, model: str) -> Dialect:
    """Return what the server took last, or the fullest dialect for a server not met before."""
    known = _KNOWN.get((base_url, model))
    if known is not None:
        return known
    if is_openai(base_url):
        # OpenAI's reasoning models know the new name alone; other servers may ignore it silently.
        return Dialect(limits=("max_completion_tokens", "max_tokens"))
    return Dialect()


def remember(base_url: str, model: str, dialect: Dialect) -> None:
    """Keep what a server has just taken."""
    _KNOWN[base_url, model] = dialect


def is_openai(base_url: str) -> bool:
    """Tell whether an address is OpenAI's own."""
    host = urlsplit(base_url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def step_down(dialect: Dialect, sent: dict[str, Any], complaint: str) -> Step | None:
    """Find what to leave out after a 400 or 422.

    Args:
        dialect: what the rejected request was made from.
        sent: its optional fields.
        complaint: the server's error: parameter, code and message.

    Returns:
        The step, or None when the error names nothing that can be left out.
    """
    field = _named_field(sent, complaint)
    if field is None:
        return None
    if field == "response_format":
        rung = dialect.rung + 1
        told = f"The server does not take {_RUNGS[dialect.rung]}; using {_RUNGS[rung]} instead."
        return Step(dialect._replace(rung=rung), told)
    if field in dialect.limits:
        others = dialect.limits[1:]
        told = f"The server does not take `{field}`; using `{''.join(others[:1])}` instead."
        return Step(dialect._replace(limits=others), told) if others else None
    told = f"The server does not take `{field}`; asking without it."
    return Step(dialect._replace(dropped=dialect.dropped | {field}), told)


def _named_field(sent: dict[str, Any], complaint: str) -> str | None:
    """Find the sent field named first: servers that quote the whole request do so at the end."""
    found = {
        field: match.start()
        for field in sent
        if (match := _NAMED.get(field, re.compile(rf"\b{field}\b")).search(complaint))
    }
    return min(found, key=found.__getitem__) if found else None


def _response_format(rung: int, request: Request) -> dict[str, Any]:
    if rung == _OBJECT:
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": request.schema_name, "schema": request.json_schema}
    if rung == _STRICT:
        schema["strict"] = True
    return {"type": "json_schema", "json_schema": schema}
