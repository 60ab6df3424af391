"""Choose the model that a name, the environment or this machine offers, and what it is sent."""

import os
import tomllib
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any, Literal

from ipyrefine.core.model import Price
from ipyrefine.core.ports import Model, Reply, Request
from ipyrefine.core.sharing import LEVELS, OLDER, Sharing
from ipyrefine.errors import NoModel, UsageError, did_you_mean
from ipyrefine.providers import weights
from ipyrefine.providers.local import LocalModel, is_local
from ipyrefine.providers.replay import PREFIX, RecordedModel
from ipyrefine.providers.servers import (
    Key,
    KeyLike,
    facts_about,
    is_openai,
    listed_price,
)

RECORD = "IPYREFINE_RECORD"
NO_MODEL = (
    'No model is configured. Run `pip install "ipyrefine[local]"` and `ipyrefine pull` for the '
    "embedded one, or set OPENAI_API_KEY or OPENAI_BASE_URL and name a model with --model or "
    "IPYREFINE_MODEL."
)

Role = Literal["critic", "editor"]
_asked = set[str]()  # servers that this process has asked the user about
_told = set[str | None]()  # older levels that it has said the present name of


def choose_model(
    name: str | None = None,
    *,
    base_url: str | None = None,
    api_key: KeyLike = None,
    price: Price | None = None,
    timeout: float | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Model:
    """Return the model to use.

    That is the named one (an embedded model, a server's, or ``recorded:FILE``); else
    ``IPYREFINE_MODEL``; else the embedded model if its weights are present. A recording passes
    the requests it lacks to the model that is configured as well; with ``IPYREFINE_RECORD``
    set, the replies are added to the recording.

    Args:
        name: the model's name, or None.
        base_url: an OpenAI-compatible server; ``OPENAI_BASE_URL`` by default.
        api_key: the server's key, or a callable that returns it, called before every request. Only
            the model keeps it. ``OPENAI_API_KEY`` is the key of ``OPENAI_BASE_URL`` (OpenAI if
            unset), and goes to no other server.
        price: what a server's model charges; by default as the price list knows it.
        timeout: seconds of silence after which a server counts as gone; 600 by default.
        extra: further fields of every request to a server, such as ``reasoning_effort``.

    Raises:
        NoModel: there is none; the message says how to get one.
        UsageError: `base_url`, `timeout` or `extra` cannot be used, or the name is nearly that of
            an embedded model.
        WeightsError: the embedded model's file is damaged.
    """
    if not isinstance(name, str | None):
        raise UsageError(f"A model's name is a text, not {name!r}.")
    name = name or os.environ.get("IPYREFINE_MODEL")
    server = base_url or os.environ.get("OPENAI_BASE_URL")
    api_key = Key(api_key)
    settings: dict[str, Any] = {"price": price, "timeout": timeout, "extra": extra}
    has_key = bool(api_key or os.environ.get("OPENAI_API_KEY"))
    if name and name.startswith(PREFIX):
        live = partial(_live, base_url=base_url, api_key=api_key, **settings)
        return RecordedModel.from_name(name, live=live, record=bool(os.environ.get(RECORD)))
    if name in weights.WEIGHTS and not base_url:
        if path := weights.find(name):
            return LocalModel(path, name=name)
        raise NoModel(f"The model {name} is not downloaded yet. Run `ipyrefine pull {name}`.")
    if name and (server or has_key):
        from ipyrefine.providers.openai import OpenAIModel

        model = OpenAIModel(name, base_url=server, api_key=api_key, **settings)
        # Else a slip would send the cell to a vendor, which has no model of a similar name.
        near = did_you_mean(name.lower(), weights.WEIGHTS) if is_openai(model.base_url) else ""
        if near and not base_url:
            raise UsageError(
                f"{name!r} would be asked for at OpenAI.{near} For a server's model, give the "
                "server as well: --base-url URL."
            )
        return model
    if name:
        catalogue = f" The embedded models are {', '.join(weights.WEIGHTS)}."
        raise NoModel(
            f"The model {name!r} needs a server. Set OPENAI_API_KEY, or OPENAI_BASE_URL "
            f"(--base-url in a cell).{did_you_mean(name, weights.WEIGHTS) or catalogue}"
        )
    if server or has_key:
        raise NoModel(
            "A server is configured, but no model is named. "
            "Name one with --model NAME or IPYREFINE_MODEL."
        )
    for embedded in (weights.DEFAULT, weights.LIGHT):
        if path := weights.find(embedded):
            return LocalModel(path, name=embedded)
    raise NoModel(NO_MODEL)


class NoWriter:
    """In the place of the model of a run that asks none."""

    name = ""

    async def stream(self, request: Request) -> AsyncIterator[Reply]:
        """Say how to get a model.

        Raises:
            NoModel: always.
        """
        raise NoModel(NO_MODEL)
        yield


def is_recording(name: str | None) -> bool:
    """Return True if a model's name, or the configured one, is that of a recording."""
    return (name or os.environ.get("IPYREFINE_MODEL") or "").startswith(PREFIX)


def models_at_hand(*used: Model) -> dict[str, Price | None]:
    """Return the models that a run can continue with, and what each charges if known.

    Besides the run's own they are looked up at the server of the first.
    """
    configured = os.environ.get("IPYREFINE_MODEL", "")
    server = getattr(used[0], "base_url", "") if used else ""
    found = {one.name: getattr(one, "price", None) for one in used if one.name}
    if configured and configured not in found:
        found[configured] = listed_price(configured, server) if server else None
    for name in weights.WEIGHTS:
        if weights.find(name):
            found.setdefault(name, Price(prompt=0, completion=0))
    return found


def _live(**server: Any) -> Model:
    if is_recording(None):
        raise NoModel(NO_MODEL)
    return choose_model(**server)


def is_embedded(model: Model) -> bool:
    """Return True if a model is an embedded one, or a recording of one."""
    return isinstance(model, LocalModel) or getattr(model, "source", None) in weights.WEIGHTS


def is_weak(model: Model, role: Role) -> bool:
    """Return True if a model was found too weak for a role (``models.toml``), or there is none."""
    if isinstance(model, NoWriter):
        return True
    source = getattr(model, "source", model.name)  # of recorded replies, the model that gave them
    return role in _measured().get(source, {})


@cache
def _measured() -> Mapping[str, Mapping[Role, str]]:
    return tomllib.loads((files("ipyrefine.providers") / "models.toml").read_text("utf-8"))


# What their servers are sent


def choose_sharing(models: Iterable[Model], level: str | None = None) -> Sharing:
    """Return what the servers of some models are sent: the least of what each may have.

    Without a level that is what was remembered of each server, else ``all`` for those on this
    machine, and ``structure`` for all others. A level of older versions is read as one of these.

    Raises:
        UsageError: there is no such level.
    """
    known = OLDER.get(level or "", level)
    if known not in (None, *LEVELS):
        raise UsageError(f"share must be {' or '.join(LEVELS)}, not {level!r}.")
    notice = f"share={level} is now share={known}. %%refine? sharing says what leaves."
    notice = "" if known == level or level in _told else notice
    _told.add(level)
    models = [one for one in models if not isinstance(one, NoWriter)]
    live = [one for one in models if not getattr(one, "replays", False)]
    remote = [one for one in live if not is_local(one)]
    servers = tuple(
        dict.fromkeys(
            str(getattr(one, "base_url", "") or one.name)  # of the user's own model, its name
            for one in (remote if known != "structure" else live)
        )
    )
    if known:
        return Sharing(known, servers, notice=notice)
    remembered = [facts_about(server).share for server in servers]
    # A live model may answer in the place of a recording.
    is_open = len(live) == len(models) and all(one == "all" for one in remembered)
    asks = None in remembered and "structure" not in remembered and not _asked.issuperset(servers)
    return Sharing("all" if is_open else "structure", servers, asks)


def mark_asked(servers: Iterable[str]) -> None:
    """Note that the user was asked about some servers, so that later runs here don't ask again."""
    _asked.update(servers)
