"""Know of a server: its key, what it charges, what it refuses, and what may be sent to it.

A request field that a server refuses is left out, sent in another form, or lowered. That is
remembered per address and model in ``servers.json``, in the user's folder, and tried again after
`_DAYS`. Whatever is wrong with that file, a server is then one not met before.
"""

import datetime
import re
from collections.abc import Callable, Collection
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from filelock import FileLock, Timeout
from pydantic import Field, TypeAdapter

from ipyrefine.core.model import Price, Record, Usage
from ipyrefine.core.ports import Request
from ipyrefine.core.sharing import Level
from ipyrefine.errors import UsageError
from ipyrefine.folders import home
from ipyrefine.providers.complaints import TOO_LONG, Refusal


class Key:
    """A key, or a callable that returns it; calling it returns the key, printing it shows none.

    Tracebacks may show the variables of every frame (``%xmode Verbose``), so a frame that can
    raise holds this object and never the key itself.

    Args:
        source: the key, a callable that returns it, or None for no key.
    """

    __slots__ = ("_source",)

    def __init__(self, source: str | Callable[[], str] | None = None) -> None:
        if not (isinstance(source, str | None) or callable(source)):
            raise UsageError("api_key is a text, or a function that returns it.")
        self._source = source

    def __call__(self) -> str:
        """Return the key, or an empty string; raises what the callable raises."""
        source = self._source
        return str.strip((source() if callable(source) else source) or "")

    def __bool__(self) -> bool:
        """Return True if there may be a key."""
        return bool(self._source)

    def __repr__(self) -> str:
        return "Key(…)"


# What a server refuses

LIMITS = ("max_tokens", "max_completion_tokens")  # names of the completion limit
_FORMATS = {
    "strict": "a strict JSON schema",
    "json_schema": "a JSON schema",
    "json_object": "JSON mode",
    "": "the prompt alone",
}
SYSTEM = "system"  # what stands for the role of system messages among refused fields
_LIMIT_NAME = re.compile(r"\bmax_(?:completion_|new_|output_)?tokens\b", re.IGNORECASE)
_NO_SCHEMA = re.compile(  # the server has no kind of JSON schema, be it strict or not
    r"type is unavailable|json_object|n.t support[^.]{0,40}json_schema"
    r"|json_schema\W{0,3}(?:is )?(?:not|un|enabled only)",
    re.IGNORECASE,
)
_TOO_HIGH = re.compile(
    r"too (?:large|big|high|many|long)|at most|maximum|less than|exceed|range|must be|<|>|≤",
    re.IGNORECASE,
)
_LEAST = 1_024  # halving a limit goes no further: then it is the prompt that is too long
_LEAST_KEPT = 2_048
_LEAST_USEFUL = 256  # tokens of a reply; where a server states that it has room for fewer, none is
_FIELD_NAMES = {  # how servers name a field in an error, where they don't all use its plain name
    "response_format": re.compile(
        r"response.?format|json.?schema|json.?object|json.?mode|json.?validate|generate json"
        r"|structured.?output|additionalproperties|\bstrict\b|\bgrammar\b|\$ref",
        re.IGNORECASE,
    ),
    "stream_options": re.compile(r"stream_options|include_usage", re.IGNORECASE),
    "reasoning_effort": re.compile(r"reasoning.?effort", re.IGNORECASE),
    **dict.fromkeys(LIMITS, _LIMIT_NAME),
}
_DAYS = 30  # that a refusal holds: accounts are verified, servers updated


class Step(NamedTuple):
    """What to do after an answer that refused something.

    Attributes:
        notice: a sentence for the user; empty for none.
        refused: what is not sent any more.
        max_tokens: the completion limit to ask for; None to leave it.
        lasts: whether it holds for later requests, too.
        wait: seconds after which to ask again; None for at once.
    """

    notice: str
    refused: frozenset[str] = frozenset()
    max_tokens: int | None = None
    lasts: bool = True
    wait: float | None = None


class Capabilities(Record):
    """What one server takes for one model.

    Attributes:
        refused: fields, forms of ``response_format`` and roles that are not sent.
        max_tokens: the highest completion limit that is asked for; None for no limit.
        room: the same for what a prompt or a credit left room for, which no later kernel is told.
        since: the day this was learnt.
    """

    refused: frozenset[str] = frozenset()
    max_tokens: int | None = Field(default=None, ge=_LEAST_USEFUL)
    room: int | None = Field(default=None, exclude=True)
    since: datetime.date = Field(default_factory=datetime.date.today)

    def fields(self, request: Request) -> dict[str, Any]:
        """Return the fields of a chat completion request besides model and messages."""
        limit = next((name for name in LIMITS if name not in self.refused), LIMITS[0])
        streams = "stream" not in self.refused
        fields: dict[str, Any] = {
            limit: self.token_limit(request),
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True} if streams else None,
            "seed": request.seed,
            "response_format": self._response_format(request),
        }
        return {
            name: value
            for name, value in fields.items()
            if value is not None and name not in self.refused
        }

    def token_limit(self, request: Request) -> int:
        """Return the completion tokens to ask for: the request's, or what the server takes."""
        limits = (request.max_tokens, self.max_tokens, self.room)
        return min(limit for limit in limits if limit is not None)

    def messages(self, request: Request) -> list[dict[str, str]]:
        """Return the messages; where it takes none of the system's, its words go to the user's."""
        turns = [message.model_dump() for message in request.messages]
        if SYSTEM not in self.refused:
            return turns
        merged: list[dict[str, str]] = []
        for turn in turns:
            role = "user" if turn["role"] == SYSTEM else turn["role"]
            if merged and merged[-1]["role"] == role:
                merged[-1]["content"] += f"\n\n{turn['content']}"
            else:
                merged.append({"role": role, "content": turn["content"]})
        return merged

    def step(self, field: str, refusal: Refusal, request: Request) -> Step | None:
        """Return what to ask for less after a field was refused; None for nothing."""
        if field in LIMITS:
            limit = self.token_limit(request)
            room, lasts = refusal.room(limit)
            if room is not None and room < _LEAST_USEFUL:
                return None
            if room is None or room >= limit:
                high = refusal.kind == "long" or _TOO_HIGH.search(refusal.complaint)
                room = max(limit // 2, _LEAST) if high else limit
            if room < limit:
                notice = f"The server allows fewer tokens a reply. Asking for {room:,}."
                if refusal.is_short_of_credit:
                    notice = f"The account affords only {room:,} tokens a reply. Asking for those."
                return Step(notice, max_tokens=room, lasts=lasts)
            if field == LIMITS[-1] or not _LIMIT_NAME.search(refusal.complaint):
                return None
            notice = f"The server doesn't take `{field}`. Using `{LIMITS[-1]}` instead."
        elif field == SYSTEM:
            notice = "The server doesn't take system messages. Sending their words as the user's."
        elif field == "response_format":
            field = self._format(request)
            refused = {field}
            if field == "strict" and _NO_SCHEMA.search(refusal.complaint):
                refused.add("json_schema")
            step = Step("", frozenset(refused), lasts="validate_failed" not in refusal.complaint)
            if not step.lasts:  # the model wrote what the form forbids
                return step
            instead = _FORMATS[self.after(step)._format(request)]
            notice = f"The server doesn't take {_FORMATS[field]}. Using {instead} instead."
            return step._replace(notice=notice)
        else:
            notice = f"The server doesn't take `{field}`. Asking without it."
        return Step(notice, frozenset({field}))

    def after(self, step: Step) -> "Capabilities":
        """Return the capabilities left after a step."""
        update: dict[str, Any] = {"refused": self.refused | step.refused}
        if step.max_tokens is not None:
            update["max_tokens" if step.lasts else "room"] = step.max_tokens
        return self.model_copy(update=update)

    def _format(self, request: Request) -> str:
        """Return the strictest form of asking for JSON that the server hasn't refused, if any."""
        refused = self.refused if request.strict else {*self.refused, "strict"}
        return next((form for form in _FORMATS if form not in refused), "")

    def _response_format(self, request: Request) -> dict[str, Any] | None:
        form = self._format(request)
        if request.json_schema is None or not form:
            return None
        if form == "json_object":
            return {"type": form}
        schema: dict[str, Any] = {"name": request.schema_name, "schema": request.json_schema}
        if form == "strict":
            schema["strict"] = True
        return {"type": "json_schema", "json_schema": schema}


def find_field(refusal: Refusal, request: Request, fields: Collection[str]) -> str | None:
    """Return the field that an answer is about, perhaps `SYSTEM`; None if less won't help."""
    if refusal.refuses_system and any(message.role == SYSTEM for message in request.messages):
        return SYSTEM
    if refusal.is_short_of_credit:
        return next((field for field in fields if field in LIMITS), None)
    waiting_helps = refusal.status in (402, 408, 409, 429) and refusal.kind != "long"
    if not 400 <= refusal.status < 500 or waiting_helps:
        return None
    return find_refused(fields, refusal.complaint)


def find_refused(fields: Collection[str], complaint: str) -> str | None:
    """Return the sent field that an error is about, if any.

    The one that is named first counts: servers that quote the whole request do so at the end.
    """
    starts = {
        field: match.start()
        for field in fields
        if (match := _name_of(field).search(complaint)) is not None
    }
    if starts:
        return min(starts, key=starts.__getitem__)
    is_limit = TOO_LONG.search(complaint)
    return next((field for field in fields if field in LIMITS), None) if is_limit else None


def _name_of(field: str) -> re.Pattern[str]:
    return _FIELD_NAMES.get(field) or re.compile(rf"\b{re.escape(field)}\b")


def is_openai(base_url: str) -> bool:
    """Return True if an address is OpenAI's own."""
    host = urlsplit(base_url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


# What is remembered


class Facts(Record):
    """The facts remembered about a server.

    Attributes:
        share: what the user lets be sent to it; None until then.
        in_keyring: whether the system's keyring holds its key.
        models: what it takes, by model.
    """

    share: Level | None = None
    in_keyring: bool = False
    models: dict[str, Capabilities] = Field(default_factory=dict)


BY_SERVER: dict[tuple[str, str], Capabilities] = {}
"""What servers take, by address and model, as far as this process has asked."""

_FILE = TypeAdapter(dict[str, Facts])
_LOCK_SECONDS = 2.0


def facts_about(base_url: str) -> Facts:
    """Return the facts remembered about the server at an address."""
    return _read(_path()).get(base_url, Facts())


def remember_about(base_url: str, **facts: Any) -> bool:
    """Replace fields of a server's `Facts`, for later kernels too; return whether that worked."""
    path = _path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(f"{path}.lock", timeout=_LOCK_SECONDS):
            servers = _read(path)
            servers[base_url] = servers.get(base_url, Facts()).model_copy(update=facts)
            draft = path.with_suffix(".part")
            draft.write_bytes(_FILE.dump_json(servers, indent=1))
            draft.replace(path)  # nobody reads half of it
    except (OSError, Timeout):
        return False
    return True


def recall(base_url: str, model: str) -> Capabilities:
    """Return the server's last known capabilities; all of them for a server not met before."""
    if (base_url, model) not in BY_SERVER:
        stored = facts_about(base_url).models.get(model)
        if stored is None or abs((datetime.date.today() - stored.since).days) > _DAYS:
            # OpenAI's reasoning models take only the new name; other servers may ignore it.
            stored = Capabilities(refused=frozenset(LIMITS[:1] if is_openai(base_url) else ()))
        BY_SERVER[base_url, model] = stored
    return BY_SERVER[base_url, model]


def remember(base_url: str, model: str, taken: Capabilities) -> None:
    """Keep what a server has just taken, after it refused more."""
    last = recall(base_url, model)  # a call at the same time may have learnt something else
    limits = [one.max_tokens for one in (last, taken) if one.max_tokens is not None]
    refused, limit = last.refused | taken.refused, min(limits, default=None)
    # A small room is that of one long prompt.
    room = taken.room if (taken.room or 0) >= _LEAST_KEPT else last.room
    BY_SERVER[base_url, model] = Capabilities(refused=refused, max_tokens=limit, room=room)
    if (refused, limit) != (last.refused, last.max_tokens):
        both = BY_SERVER[base_url, model]
        remember_about(base_url, models={**facts_about(base_url).models, model: both})


def _path() -> Path:
    return home() / "servers.json"


def _read(path: Path) -> dict[str, Facts]:
    try:
        return _FILE.validate_json(path.read_bytes())
    except (OSError, ValueError):
        return {}


# What it charges

_SAMPLE_TOKENS = 1_000  # few, because some prices rise with the length of the prompt


def read_price(text: str) -> Price:
    """Return the price in ``0.15,0.60``: dollars per million prompt and completion tokens.

    Raises:
        UsageError: the text is not two amounts.
    """
    try:
        prompt, completion = (float(part.strip().removeprefix("$")) for part in text.split(","))
        return Price(prompt=prompt, completion=completion)
    except ValueError:
        raise UsageError(
            f"The price {text!r} cannot be read. Write dollars per million prompt and completion "
            'tokens, as "0.15,0.60".'
        ) from None


@lru_cache(maxsize=64)
def listed_price(model: str, base_url: str) -> Price | None:
    """Return a model's price at a server, as `genai-prices` lists it; None if it doesn't.

    A price is never guessed from the model's name alone.
    """
    sample = Usage(prompt_tokens=_SAMPLE_TOKENS, completion_tokens=_SAMPLE_TOKENS)
    price = _look_up(sample, model, base_url)
    if price is None:
        return None
    scale = 1_000_000 / _SAMPLE_TOKENS
    return Price(
        prompt=float(price.input_price) * scale, completion=float(price.output_price) * scale
    )


def listed_cost(usage: Usage, model: str, base_url: str) -> float | None:
    """Return a call's cost in US dollars by that list, with cheaper cached prompt tokens."""
    price = _look_up(usage, model, base_url)
    return None if price is None else float(price.total_price)


def _look_up(usage: Usage, model: str, base_url: str) -> Any:
    import genai_prices  # takes a quarter of a second

    counts = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=min(usage.cached_tokens or 0, usage.prompt_tokens) or None,
    )
    try:
        return genai_prices.calc_price(counts, model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return None
