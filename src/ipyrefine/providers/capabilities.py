"""Remember which request fields a server takes, and ask for less when it rejects one.

There are four levels of asking for a JSON reply, from a strict schema to the prompt alone, and
three of asking for log-probabilities. The next one is tried only when the server's error names the
field. What the server then takes is remembered per address and model for the life of the process.
"""

import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ipyrefine.core.ports import Request
from ipyrefine.providers.answers import answer_grammar

_LEVELS = ("a strict JSON schema", "a JSON schema", "JSON mode", "the prompt alone")
_STRICT, _SCHEMA, _OBJECT, _PROMPT = range(len(_LEVELS))

# OpenAI, vLLM, Ollama and llama.cpp give 20; older vLLM and Azure, Fireworks and xAI 5 or 8.
_TABLE_SIZES = (20, 5, 0)

# Room for "1. yes" on a line of its own each, and for a few words before. A model that explains
# its answers would only cost time.
_TOKENS_PER_ANSWER, _TOKENS_BESIDE = 4, 16

# How servers name a field in an error; the plain name where they all do.
_FIELD_NAMES = {
    "response_format": re.compile(
        r"response.?format|json.?schema|json.?object|json.?mode|json.?validate|generate json"
        r"|structured.?output|additionalproperties|\bstrict\b|\bgrammar\b|\$ref",
        re.IGNORECASE,
    ),
    "stream_options": re.compile(r"stream_options|include_usage", re.IGNORECASE),
    "logprobs": re.compile(r"log.?prob", re.IGNORECASE),
}


class Capabilities(NamedTuple):
    """What one server takes for one model.

    Attributes:
        response_format_level: how a JSON reply is asked for, 0 (strictest) to 3 (by the prompt
            alone).
        token_limit_fields: names of the completion limit; the first is used.
        rejected_fields: fields that are left out.
        table_size: how many log-probabilities are asked for at each token of an answer.
        thinks: whether the model thinks before it answers, so that answers need more tokens.
    """

    response_format_level: int = _STRICT
    token_limit_fields: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    rejected_fields: frozenset[str] = frozenset()
    table_size: int = _TABLE_SIZES[0]
    thinks: bool = False

    def optional_fields(self, request: Request, *, grammar: bool = False) -> dict[str, Any]:
        """Return the optional fields of a chat completion request.

        Args:
            request: what is asked.
            grammar: whether the server knows llama.cpp's ``grammar``; others may reject it.
        """
        fields: dict[str, Any] = {
            self.token_limit_fields[0]: self.token_limit(request),
            "temperature": request.temperature,
            "stream_options": {"include_usage": True},
        }
        if request.seed is not None:
            fields["seed"] = request.seed
        if request.json_schema is not None and self.response_format_level < _PROMPT:
            fields["response_format"] = _response_format(self.response_format_level, request)
        if request.answers and self.table_size:
            fields |= {"logprobs": True, "top_logprobs": self.table_size}
        if request.answers and grammar:
            # A space of its own would take a token, and its table the place of the answer's.
            fields |= {"grammar": answer_grammar(request), "logit_bias": [[" ", False]]}
        return {name: value for name, value in fields.items() if name not in self.rejected_fields}

    def token_limit(self, request: Request) -> int:
        """Return the completion tokens to allow: few where answers alone are asked for."""
        if not request.answers or self.thinks:
            return request.max_tokens
        return min(request.max_tokens, _TOKENS_PER_ANSWER * request.answers + _TOKENS_BESIDE)


class Fallback(NamedTuple):
    """What to ask for next, and the notice for the user."""

    capabilities: Capabilities
    notice: str


BY_SERVER: dict[tuple[str, str], Capabilities] = {}
"""What servers take, by address and model."""


def recall(base_url: str, model: str) -> Capabilities:
    """Return what the server took last; everything for a server not met before."""
    if (base_url, model) in BY_SERVER:
        return BY_SERVER[base_url, model]
    if is_openai(base_url):
        # OpenAI's reasoning models know only the new name; other servers may ignore it silently.
        return Capabilities(token_limit_fields=("max_completion_tokens", "max_tokens"))
    return Capabilities()


def remember(base_url: str, model: str, capabilities: Capabilities) -> None:
    """Keep what a server has just taken."""
    BY_SERVER[base_url, model] = capabilities


def is_openai(base_url: str) -> bool:
    """Return whether an address is OpenAI's own."""
    host = urlsplit(base_url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def fall_back(
    capabilities: Capabilities, fields: dict[str, Any], complaint: str
) -> Fallback | None:
    """Return what to ask for after HTTP 400 or 422, with one field less or weaker.

    Args:
        capabilities: what the rejected request was made from.
        fields: the optional fields of that request.
        complaint: the server's error: parameter, code and message.

    Returns:
        The fallback, or None if the error names no field that can be left out.
    """
    field = _rejected_field(fields, complaint)
    if field is None:
        return None
    if field == "response_format":
        level = capabilities.response_format_level
        notice = f"The server doesn't take {_LEVELS[level]}. Using {_LEVELS[level + 1]} instead."
        return Fallback(capabilities._replace(response_format_level=level + 1), notice)
    if field in ("logprobs", "top_logprobs"):
        fewer = _TABLE_SIZES[_TABLE_SIZES.index(capabilities.table_size) + 1]
        instead = f"Asking for {fewer}" if fewer else "Asking without them"
        notice = (
            f"The server doesn't give {capabilities.table_size} log-probabilities a token. "
            f"{instead}."
        )
        return Fallback(capabilities._replace(table_size=fewer), notice)
    if field in capabilities.token_limit_fields:
        others = capabilities.token_limit_fields[1:]
        if not others:
            return None
        notice = f"The server doesn't take `{field}`. Using `{others[0]}` instead."
        return Fallback(capabilities._replace(token_limit_fields=others), notice)
    rejected = capabilities.rejected_fields | {field}
    notice = f"The server doesn't take `{field}`. Asking without it."
    return Fallback(capabilities._replace(rejected_fields=rejected), notice)


def _rejected_field(fields: dict[str, Any], complaint: str) -> str | None:
    """Return the field named first: servers that quote the whole request do so at the end."""
    starts = {
        field: match.start()
        for field in fields
        if (match := _FIELD_NAMES.get(field, re.compile(rf"\b{field}\b")).search(complaint))
    }
    return min(starts, key=starts.__getitem__) if starts else None


def _response_format(level: int, request: Request) -> dict[str, Any]:
    if level == _OBJECT:
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": request.schema_name, "schema": request.json_schema}
    if level == _STRICT and request.strict:
        schema["strict"] = True
    return {"type": "json_schema", "json_schema": schema}
