"""Know of a server: its key, what it charges, what it refuses, and what may be sent to it.

What a server refuses is remembered per address and model while this process lives. What the user
lets be sent to it, and whether the keyring holds its key, is in ``servers.json`` in the user's
folder. Whatever is wrong with that file, a server is then one not met before.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from ipyrefine.core.model import Price, Record, Usage
from ipyrefine.core.ports import Request
from ipyrefine.core.sharing import Level
from ipyrefine.errors import UsageError
from ipyrefine.folders import home
from ipyrefine.providers.faults import Refused

KeyLike = str | Callable[[], str] | None


class Key:
    """A key, or a callable that returns it; calling it returns the key, printing it shows none.

    Tracebacks may show the variables of every frame (``%xmode Verbose``), so a frame that can
    raise holds this object and never the key itself.

    Args:
        source: the key, a callable that returns it, or None for no key.
    """

    __slots__ = ("_source",)

    def __init__(self, source: KeyLike = None) -> None:
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
FORMAT, _ROLE, _SYSTEM = "response_format", "role", "system"
_LEAST_LIMIT = 1_024  # tokens; where a server refuses that too, the prompt is too long
_LEAST_KEPT = 2_048  # a smaller limit is that of one long prompt
_ASKED = frozenset({"temperature", "seed"})  # by a person: each run says that they are left out
_NO_FIELD = frozenset({401, 408, 409, 413, 429})  # statuses that are never about a field
_INVALID = (400, 422)  # what is said of a request as a whole

Fields = Mapping[str, Any]


class Capabilities(NamedTuple):
    """What one server takes for one model.

    Attributes:
        refused: fields and the system's role, which are not sent.
        max_tokens: the highest completion limit that is asked for; None for no limit.
    """

    refused: frozenset[str] = frozenset()
    max_tokens: int | None = None

    def body(self, request: Request, extra: Fields) -> dict[str, Any]:
        """Return the fields of a chat completion request but for its model."""
        schema = {"name": "reply", "schema": request.json_schema}
        optional = {
            "temperature": request.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "seed": request.seed,
            FORMAT: None
            if request.json_schema is None
            else {"type": "json_schema", "json_schema": schema},
            **extra,
        }
        refused = self.refused | ({"stream_options"} if "stream" in self.refused else set())
        sent = {n: one for n, one in optional.items() if one is not None and n not in refused}
        limit = next((name for name in LIMITS if name not in refused), LIMITS[0])
        return {"messages": self._messages(request), limit: self.token_limit(request), **sent}

    def token_limit(self, request: Request) -> int:
        """Return the completion tokens to ask for: the request's, or what the server takes."""
        return min(request.max_tokens, self.max_tokens or request.max_tokens)

    def leaving(self, *fields: str) -> "Capabilities":
        """Return what is left without some fields."""
        return self._replace(refused=self.refused.union(fields))

    def without(self, refusal: Refused, request: Request, extra: Fields) -> "Capabilities":
        """Return what is left without what a refusal names; it is itself where nothing is.

        That is all that is optional where it names nothing. The limit's name is changed first: one
        whose number stands in the refusal, or that is refused by both names, is halved.
        """
        if refusal.status in _NO_FIELD or not 400 <= refusal.status < 500:
            return self
        limit, sent = self.token_limit(request), self.body(request, extra)
        numbers = [str(limit), f"{limit:,}"] if limit > _LEAST_LIMIT else []
        optional = {*sent, _ROLE} - {*LIMITS, "messages"}
        named = refusal.find([*optional, *LIMITS, *numbers])
        if named is None:
            return self.leaving(*(optional if refusal.status in _INVALID else ()))
        if named not in (*LIMITS, *numbers):
            return self.leaving(named)
        name = next(name for name in LIMITS if name in sent)
        if not refusal.find(numbers) and not self.refused.issuperset({*LIMITS} - {name}):
            return self.leaving(name)
        if limit <= _LEAST_LIMIT:
            return self
        return Capabilities(self.refused.difference(LIMITS), max(limit // 2, _LEAST_LIMIT))

    def notices(self, known: "Capabilities", request: Request, extra: Fields) -> Iterator[str]:
        """Yield a sentence for each thing that is not sent any more, or not as it was asked for."""
        known = known._replace(refused=known.refused.difference(_ASKED, extra))
        old, new = known.body(request, extra), self.body(request, extra)
        if gone := [f"`{name}`" for name in old if name not in {*new, *LIMITS}]:
            yield f"Asking without {', '.join(gone)}, which the server doesn't take."
        if new["messages"] != old["messages"]:
            yield "The server doesn't take system messages. Sending their words as the user's."
        if (limit := self.token_limit(request)) < known.token_limit(request):
            yield f"The server allows fewer tokens a reply. Asking for {limit:,}."

    def _messages(self, request: Request) -> list[dict[str, str]]:
        """Return the messages; where it takes none of the system's, its words go to the user's."""
        turns = [message.model_dump() for message in request.messages]
        system = [turn["content"] for turn in turns if turn["role"] == _SYSTEM]
        if not system or _ROLE not in self.refused:
            return turns
        rest = [turn for turn in turns if turn["role"] != _SYSTEM]
        words = "\n\n".join([*system, *(turn["content"] for turn in rest[:1])])
        return [{"role": "user", "content": words}, *rest[1:]]


def is_openai(base_url: str) -> bool:
    """Return True if an address is OpenAI's own."""
    host = urlsplit(base_url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def is_loopback(base_url: str) -> bool:
    """Return True if an address is on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


# What is remembered


class Facts(Record):
    """The facts remembered about a server.

    Attributes:
        share: what the user lets be sent to it; None until then.
        in_keyring: whether the system's keyring holds its key.
    """

    share: Level | None = None
    in_keyring: bool = False


BY_SERVER: dict[tuple[str, ...], Capabilities] = {}
"""What servers take, by address, model and further fields, as far as this process has asked."""


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


def recall(base_url: str, *about: str) -> Capabilities:
    """Return the server's last known capabilities; all of them for a server not met before."""
    # OpenAI's reasoning models take only the new name; other servers may ignore it.
    refused = frozenset(LIMITS[: is_openai(base_url)])
    return BY_SERVER.get((base_url, *about)) or Capabilities(refused)


def remember(base_url: str, *about: str, taken: Capabilities) -> None:
    """Keep what a server has just taken, after it refused more."""
    if (taken.max_tokens or _LEAST_KEPT) < _LEAST_KEPT:
        taken = taken._replace(max_tokens=recall(base_url, *about).max_tokens)
    BY_SERVER[base_url, *about] = taken


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
