"""Remember which request fields a server takes, and ask for less when it refuses one.

Any HTTP 4xx that names a field that was sent is a step down for that field. There are four levels
of asking for a JSON reply, from a strict schema to the prompt alone; a token limit is lowered, or
sent under its other name; every other field is left out. What a server refused is remembered per
address and model, across kernels too, and tried again after `_DAYS`.
"""

import datetime
import re
from collections.abc import Container
from typing import Any, Literal, NamedTuple, Self, get_args
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from ipyrefine.core.model import Record
from ipyrefine.core.ports import Request
from ipyrefine.providers.servers import facts_about, remember_about

_LEVELS = ("a strict JSON schema", "a JSON schema", "JSON mode", "the prompt alone")
_STRICT, _SCHEMA, _OBJECT, _PROMPT = range(len(_LEVELS))

TokenLimit = Literal["max_tokens", "max_completion_tokens"]
TOKEN_LIMITS: tuple[TokenLimit, ...] = get_args(TokenLimit)
_LIMIT_NAME = re.compile(r"\bmax_(?:completion_|new_|output_)?tokens\b", re.IGNORECASE)
# Where prompt and reply share a window, or a minute's tokens, the limit is not always named.
_SHARED = re.compile(r"context.{0,3}(?:length|size|window)|too many tokens", re.IGNORECASE)
_TOO_LARGE = re.compile(r"request too large.{0,200}tokens", re.IGNORECASE)
_LESS = re.compile(
    r"too (?:large|big|high|many|long)|at most|maximum|less than|exceed|range|must be|<|>|≤",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.-])(?:\d{1,3}(?:,\d{3}){1,2}|\d{1,9})(?!\w|[,-]\w)")
_LEAST_NAMED = 512  # smaller numbers in an error are statuses and versions
_LEAST = 2_048  # halving goes no further: then it is the prompt that is too long

# How servers name a field in an error; the plain name where they all do.
_FIELD_NAMES: dict[str, re.Pattern[str]] = {
    "response_format": re.compile(
        r"response.?format|json.?schema|json.?object|json.?mode|json.?validate|generate json"
        r"|structured.?output|additionalproperties|\bstrict\b|\bgrammar\b|\$ref",
        re.IGNORECASE,
    ),
    "stream_options": re.compile(r"stream_options|include_usage", re.IGNORECASE),
    "reasoning_effort": re.compile(r"reasoning.?effort", re.IGNORECASE),
    "max_tokens": _LIMIT_NAME,
    "max_completion_tokens": _LIMIT_NAME,
}

_DAYS = 30  # that a refusal holds: accounts are verified, servers updated


class Capabilities(Record):
    """What one server takes for one model.

    Attributes:
        response_format_level: how a JSON reply is asked for, 0 (strictest) to 3 (by the prompt
            alone).
        token_limit_fields: names of the completion limit; the first is used.
        max_tokens: the highest completion limit that it takes; None where none was refused.
        rejected_fields: fields that are left out.
    """

    response_format_level: int = Field(default=_STRICT, ge=_STRICT, le=_PROMPT)
    token_limit_fields: tuple[TokenLimit, ...] = Field(default=TOKEN_LIMITS, min_length=1)
    max_tokens: int | None = Field(default=None, ge=_LEAST_NAMED)
    rejected_fields: frozenset[str] = frozenset()

    def optional_fields(self, request: Request) -> dict[str, Any]:
        """Return the fields of a chat completion request besides model and messages."""
        fields: dict[str, Any] = {
            self.token_limit_fields[0]: self.token_limit(request),
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.seed is not None:
            fields["seed"] = request.seed
        if request.json_schema is not None and self.response_format_level < _PROMPT:
            fields["response_format"] = _response_format(self.response_format_level, request)
        rejected = self.rejected_fields
        if "stream" in rejected:
            rejected |= {"stream_options"}
        return {name: value for name, value in fields.items() if name not in rejected}

    def token_limit(self, request: Request) -> int:
        """Return the completion tokens to ask for: the request's, or what the server takes."""
        return min(request.max_tokens, self.max_tokens or request.max_tokens)

    def joined(self, other: Self) -> Self:
        """Return what both leave: concurrent calls may each have learnt something."""
        caps = [one.max_tokens for one in (self, other) if one.max_tokens is not None]
        return self.model_copy(
            update={
                "response_format_level": max(
                    self.response_format_level, other.response_format_level
                ),
                "token_limit_fields": min(
                    self.token_limit_fields, other.token_limit_fields, key=len
                ),
                "max_tokens": min(caps, default=None),
                "rejected_fields": self.rejected_fields | other.rejected_fields,
            }
        )


class Fallback(NamedTuple):
    """What to ask for after a field was refused, and the notice for the user."""

    field: str
    capabilities: Capabilities
    notice: str


BY_SERVER: dict[tuple[str, str], Capabilities] = {}
"""What servers take, by address and model."""


def recall(base_url: str, model: str) -> Capabilities:
    """Return what the server took last; everything for a server not met before."""
    known = BY_SERVER.get((base_url, model))
    if known is None:
        fact = _fact(base_url, model)
        known = _begin(base_url) if _is_old(fact) else _read(base_url, fact)
        BY_SERVER[base_url, model] = known
    return known


def remember(
    base_url: str, model: str, capabilities: Capabilities, *, across_kernels: bool = True
) -> None:
    """Keep what a server has just taken, after it refused more.

    Args:
        base_url: its address.
        model: the name it knows the model by.
        capabilities: what it took.
        across_kernels: whether later kernels know it too.
    """
    known = BY_SERVER[base_url, model] = recall(base_url, model).joined(capabilities)
    if not across_kernels:
        return
    begin = _begin(base_url).model_dump(mode="json")
    fact = {name: v for name, v in known.model_dump(mode="json").items() if v != begin[name]}
    fact["since"] = datetime.date.today().isoformat()
    remember_about(base_url, models={**_facts(base_url), model: fact})


def is_news(base_url: str, model: str, capabilities: Capabilities) -> bool:
    """Return whether a server refuses more than it was ever seen to."""
    known = _read(base_url, _fact(base_url, model)).joined(recall(base_url, model))
    return known.joined(capabilities) != known


def _begin(base_url: str) -> Capabilities:
    """Return what a server is asked for first."""
    # OpenAI's reasoning models know only the new name; other servers may ignore it silently.
    names = TOKEN_LIMITS[::-1] if is_openai(base_url) else TOKEN_LIMITS
    return Capabilities(token_limit_fields=names)


def _facts(base_url: str) -> dict[str, Any]:
    facts = facts_about(base_url).get("models")
    return facts if isinstance(facts, dict) else {}


def _fact(base_url: str, model: str) -> dict[str, Any]:
    fact = _facts(base_url).get(model)
    return fact if isinstance(fact, dict) else {}


def _is_old(fact: dict[str, Any]) -> bool:
    try:
        since = datetime.date.fromisoformat(fact["since"])
    except (LookupError, TypeError, ValueError):
        return True
    return abs((datetime.date.today() - since).days) > _DAYS


def _read(base_url: str, fact: dict[str, Any]) -> Capabilities:
    """Return the capabilities in a fact; of a damaged one, those to begin with."""
    begin = _begin(base_url)
    known = {name: value for name, value in fact.items() if name != "since"}
    try:
        return Capabilities.model_validate({**begin.model_dump(), **known})
    except ValidationError:
        return begin


def is_openai(base_url: str) -> bool:
    """Return whether an address is OpenAI's own."""
    host = urlsplit(base_url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def is_too_large(complaint: str) -> bool:
    """Return whether an error of any status says that fewer tokens have to be asked for."""
    return _TOO_LARGE.search(complaint) is not None


def fall_back(
    capabilities: Capabilities, fields: dict[str, Any], complaint: str, own: Container[str] = ()
) -> Fallback | None:
    """Return what to ask for after an error, with one field less or weaker.

    Args:
        capabilities: what the rejected request was made from.
        fields: the optional fields of that request.
        complaint: the server's error: parameter, code and message.
        own: those of the fields that the user adds; the capabilities say nothing about them.

    Returns:
        The fallback, or None if the error names no field that can be left out.
    """
    field = _rejected_field(fields, complaint)
    if field is None:
        return None
    without = f"The server doesn't take `{field}`. Asking without it."
    if field in own:
        return Fallback(field, capabilities, without)
    if field in TOKEN_LIMITS:
        return _other_limit(capabilities, field, fields[field], complaint)
    less: dict[str, Any] = {"rejected_fields": capabilities.rejected_fields | {field}}
    notice = without
    if field == "response_format":
        level = capabilities.response_format_level
        less = {"response_format_level": level + 1}
        notice = f"The server doesn't take {_LEVELS[level]}. Using {_LEVELS[level + 1]} instead."
    return Fallback(field, capabilities.model_copy(update=less), notice)


def _rejected_field(fields: dict[str, Any], complaint: str) -> str | None:
    """Return which of the fields that were sent an error names; None for none of them.

    The one that is named first counts: servers that quote the whole request do so at the end.
    """
    starts = {
        field: match.start()
        for field in fields
        if (match := _name_of(field).search(complaint)) is not None
    }
    if starts:
        return min(starts, key=starts.__getitem__)
    is_limit = _SHARED.search(complaint) or _TOO_LARGE.search(complaint)
    return next((field for field in TOKEN_LIMITS if field in fields), None) if is_limit else None


def _name_of(field: str) -> re.Pattern[str]:
    return _FIELD_NAMES.get(field) or re.compile(rf"\b{re.escape(field)}\b")


def _other_limit(
    capabilities: Capabilities, field: str, limit: int, complaint: str
) -> Fallback | None:
    """Return a lower completion limit, or its other name, whichever an error is about."""
    shared = _SHARED.search(complaint)
    if shared or _LESS.search(complaint) or _TOO_LARGE.search(complaint):
        numbers = (int(number.replace(",", "")) for number in _NUMBER.findall(complaint))
        named = max((n for n in numbers if _LEAST_NAMED <= n < limit), default=0)
        # A context's length is the prompt's too: half of what was asked for is tried instead.
        lower = named if named and not shared else max(limit // 2, _LEAST)
        if lower < limit:
            notice = f"The server allows fewer tokens a reply. Asking for {lower:,}."
            return Fallback(field, capabilities.model_copy(update={"max_tokens": lower}), notice)
    others = capabilities.token_limit_fields[1:]
    if shared or not others:
        return None
    notice = f"The server doesn't take `{field}`. Using `{others[0]}` instead."
    less = {"token_limit_fields": others}
    return Fallback(field, capabilities.model_copy(update=less), notice)


def _response_format(level: int, request: Request) -> dict[str, Any]:
    if level == _OBJECT:
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": request.schema_name, "schema": request.json_schema}
    if level == _STRICT and request.strict:
        schema["strict"] = True
    return {"type": "json_schema", "json_schema": schema}
