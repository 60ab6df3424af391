"""Know of a server: its key, what it charges, what it refuses, and what may be sent to it.

What a server refuses is remembered per address and model while this process lives. What the user
lets be sent to it, and whether the keyring holds its key, is in ``servers.json`` in the user's
folder. Whatever is wrong with that file, a server is then one not met before.
"""

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from filelock import FileLock, Timeout
from pydantic import ConfigDict, TypeAdapter

from ipyrefine.core.model import Price, Record, Usage
from ipyrefine.core.ports import Request
from ipyrefine.core.sharing import Level
from ipyrefine.errors import UsageError
from ipyrefine.folders import home
from ipyrefine.providers.faults import Refusal


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
FORMATS = ("json_schema", "json_object")  # of a reply, the stricter one first
_FORMAT, _ROLE, _SYSTEM = "response_format", "role", "system"
_LEAST_LIMIT = 1_024  # tokens; where a server refuses that too, the prompt is too long
_LEAST_KEPT = 2_048  # a smaller limit is that of one long prompt
ASKED = frozenset({"temperature", "seed"})  # by a person: each run says that they are left out
_OPTIONAL = ASKED | {*FORMATS, "stream", "stream_options", _ROLE}
# Statuses that are about one field alone: a credit may pay for fewer tokens, and a chat template
# without a place for a system message breaks.
_TEMPLATE = 500
_ONLY = {402: LIMITS[0], _TEMPLATE: _ROLE}
_NO_FIELD = frozenset({401, 408, 409, 429})  # that are never about a field
_TOO_LARGE = 413
_NO_REQUEST = _NO_FIELD | {402, 403, 404, _TOO_LARGE}  # nor about all that is optional


class Capabilities(NamedTuple):
    """What one server takes for one model.

    Attributes:
        refused: fields, forms of ``response_format`` and the system's role, which are not sent.
        limit: the name of the completion limit.
        max_tokens: the highest completion limit that is asked for; None for no limit.
        renamed_at: the limit at which its name was changed.
    """

    refused: frozenset[str] = frozenset()
    limit: str = LIMITS[0]
    max_tokens: int | None = None
    renamed_at: int | None = None

    def fields(self, request: Request) -> dict[str, Any]:
        """Return the fields of a chat completion request besides model and messages."""
        streams = "stream" not in self.refused
        optional: dict[str, Any] = {
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True} if streams else None,
            "seed": request.seed,
            _FORMAT: self._response_format(request),
        }
        sent = {
            name: value
            for name, value in optional.items()
            if value is not None and name not in self.refused
        }
        return {self.limit: self.token_limit(request), **sent}

    def token_limit(self, request: Request) -> int:
        """Return the completion tokens to ask for: the request's, or what the server takes."""
        return min(request.max_tokens, self.max_tokens or request.max_tokens)

    def messages(self, request: Request) -> list[dict[str, str]]:
        """Return the messages; where it takes none of the system's, its words go to the user's."""
        turns = [message.model_dump() for message in request.messages]
        system = [turn["content"] for turn in turns if turn["role"] == _SYSTEM]
        if not system or _ROLE not in self.refused:
            return turns
        rest = [turn for turn in turns if turn["role"] != _SYSTEM]
        words = "\n\n".join([*system, *(turn["content"] for turn in rest[:1])])
        return [{"role": "user", "content": words}, *rest[1:]]

    def find_refused(self, refusal: Refusal, request: Request, sent: Collection[str]) -> str | None:
        """Return the sent field that a refusal names, or ``role``; None for none.

        The number of the limit names it too, as does a request that is too large.
        """
        status = refusal.status
        if status in _NO_FIELD or status > _TEMPLATE or not (status >= 400 or refusal.field):
            return None
        if status == _TOO_LARGE:
            return LIMITS[0]
        numbers = self._numbers(request)
        names = {name: name for name in sent} | dict.fromkeys((*LIMITS, *numbers), LIMITS[0])
        if _FORMAT in sent:
            names[self._format()] = _FORMAT
        if self.messages(request) != self._without(_ROLE).messages(request):
            names[_ROLE] = _ROLE
        only = _ONLY.get(status)
        found = refusal.find([name for name, field in names.items() if only in (None, field)])
        return names[found] if found else None

    def without(self, field: str | None, refusal: Refusal, request: Request) -> "Capabilities":
        """Return what is left without a field; without one, without all that is optional.

        The name of the limit is changed first. A limit whose number stands in the refusal, or that
        is refused by both names, is halved. It is itself where nothing is left to leave out.
        """
        if field is None:
            about = 400 <= refusal.status < 500 and refusal.status not in _NO_REQUEST
            return self._without(*(_OPTIONAL if about else ()))
        if field not in LIMITS:
            return self._without(self._format() if field == _FORMAT else field)
        limit = self.token_limit(request)
        quoted = refusal.status == _TOO_LARGE or refusal.find(self._numbers(request))
        if not quoted and self.renamed_at != limit:
            other = next(name for name in LIMITS if name != self.limit)
            return self._replace(limit=other, renamed_at=limit)
        if limit <= _LEAST_LIMIT:
            return self.without(None, refusal, request)
        return self._replace(max_tokens=max(limit // 2, _LEAST_LIMIT))

    def notices(self, before: "Capabilities", request: Request) -> Iterator[str]:
        """Yield a sentence for each thing that is not sent any more, or not as it was asked for."""
        old, new = before.fields(request), self.fields(request)
        gone = [name for name in old if name not in {*new, *LIMITS}]
        if {"stream", "stream_options"} <= {*gone}:
            gone.remove("stream_options")  # which is nothing without a stream
        if gone and self.refused >= _OPTIONAL:
            fields = ", ".join(f"`{name}`" for name in gone)
            yield f"The server refused the request. Asking without {fields}."
        else:
            yield from map(left_out, gone)
        if _FORMAT in new and new[_FORMAT] != old[_FORMAT]:
            yield "The server doesn't take a JSON schema. Using JSON mode instead."
        if self.messages(request) != before.messages(request):
            yield "The server doesn't take system messages. Sending their words as the user's."
        if self.limit != before.limit:
            yield f"The server doesn't take `{before.limit}`. Using `{self.limit}` instead."
        if (limit := self.token_limit(request)) < before.token_limit(request):
            yield f"The server allows fewer tokens a reply. Asking for {limit:,}."

    def _numbers(self, request: Request) -> list[str]:
        limit = self.token_limit(request)
        return [str(limit), f"{limit:,}"] if limit > _LEAST_LIMIT else []

    def _without(self, *fields: str) -> "Capabilities":
        return self._replace(refused=self.refused | {*fields})

    def _format(self) -> str:
        """Return the strictest form of asking for JSON that the server hasn't refused, if any."""
        return next((form for form in FORMATS if form not in self.refused), "")

    def _response_format(self, request: Request) -> dict[str, Any] | None:
        form = self._format()
        if request.json_schema is None or not form:
            return None
        if form == FORMATS[1]:
            return {"type": form}
        schema: dict[str, Any] = {"name": request.schema_name, "schema": request.json_schema}
        if request.strict:
            schema["strict"] = True
        return {"type": form, form: schema}


def left_out(field: str) -> str:
    """Return the sentence for a field that a server refuses."""
    return f"The server doesn't take `{field}`. Asking without it."


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
    """

    model_config = ConfigDict(extra="ignore")  # what it refused, which older versions kept here

    share: Level | None = None
    in_keyring: bool = False


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
    # OpenAI's reasoning models take only the new name; other servers may ignore it.
    return BY_SERVER.get((base_url, model)) or Capabilities(limit=LIMITS[is_openai(base_url)])


def remember(base_url: str, model: str, taken: Capabilities) -> None:
    """Keep what a server has just taken, after it refused more."""
    last = recall(base_url, model)  # a call at the same time may have learnt something else
    limits = [most for one in (last, taken) if (most := one.max_tokens or 0) >= _LEAST_KEPT]
    BY_SERVER[base_url, model] = taken._replace(
        refused=last.refused | taken.refused,
        max_tokens=min(limits, default=None),
    )


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
