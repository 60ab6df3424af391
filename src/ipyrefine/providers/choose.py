"""Chooses the model that a name, the environment or this machine offers."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ipyrefine.core.ports import Model
from ipyrefine.core.usage import Price
from ipyrefine.errors import NoModel

RECORD = "IPYREFINE_RECORD"
NO_MODEL = (
    "No model is configured. Either fetch the embedded one: "
    '`pip install "ipyrefine[local]"` and `ipyrefine pull`; or set OPENAI_API_KEY (and name a '
    "model with --model or IPYREFINE_MODEL); or set OPENAI_BASE_URL to an OpenAI-compatible "
    "server and name its model."
)


def choose_model(
    name: str | None = None,
    *,
    base_url: str | None = None,
    api_key: str | Callable[[], str] | None = None,
    price: Price | None = None,
) -> Model:
    """Choose the model to use.

    A named model wins (an embedded one's name, a server's, or ``recorded:FILE``); else
    ``IPYREFINE_MODEL``; else the embedded model if its weights are present. A recording goes on
    with that choice where it ends; with ``IPYREFINE_RECORD`` set, what that says is added to it.

    Args:
        name: the model's name, or None.
        base_url: an OpenAI-compatible server; ``OPENAI_BASE_URL`` by default.
        api_key: the server's key, or a callable that returns it, asked before every call;
            ``OPENAI_API_KEY`` by default. It is kept nowhere but in the model.
        price: what a server's model charges; by default as the price list knows it.

    Raises:
        NoModel: there is none; the message lists the ways to get one.
        WeightsError: the embedded model's file is damaged.
    """
    from ipyrefine.providers import weights
    from ipyrefine.providers.replay import PREFIX, RecordedModel

    name = name or os.environ.get("IPYREFINE_MODEL")
    server = base_url or os.environ.get("OPENAI_BASE_URL")
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if name and name.startswith(PREFIX):
        live = partial(_live, base_url=base_url, api_key=api_key, price=price)
        return RecordedModel.named(name, live=live, record=bool(os.environ.get(RECORD)))
    if name in weights.WEIGHTS and not base_url:
        path = weights.find(name)
        if path is None:
            raise NoModel(f"The model {name} is not here yet: run `ipyrefine pull {name}`.")
        return _embedded(path, name)
    if name and (server or key):
        from ipyrefine.providers.openai import OpenAIModel

        return OpenAIModel(name, base_url=server, api_key=api_key, price=price)
    if name:
        known = ", ".join(weights.WEIGHTS)
        raise NoModel(
            f"The model {name!r} needs a server: set OPENAI_API_KEY, or OPENAI_BASE_URL "
            f"(--base-url in a cell); the embedded models are {known}."
        )
    if server or key:
        raise NoModel(
            "A server is configured but no model is named: "
            "say which with --model NAME or IPYREFINE_MODEL."
        )
    for embedded in (weights.DEFAULT, weights.LIGHT):
        if path := weights.find(embedded):
            return _embedded(path, embedded)
    raise NoModel(NO_MODEL)


def _live(**server: Any) -> Model:
    """The configured model, unless that is a recording too."""
    if os.environ.get("IPYREFINE_MODEL", "").startswith("recorded:"):
        raise NoModel(NO_MODEL)
    return choose_model(**server)


def _embedded(path: Path, name: str) -> Model:
    from ipyrefine.providers.local import LocalModel

    return LocalModel(path, name=name)
