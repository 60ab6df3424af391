"""Puts a refinement together from names and options, for every surface alike."""

import os
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from ipyrefine import profiles
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.loop.engine import Refinement
from ipyrefine.loop.events import Event
from ipyrefine.loop.ports import Check, Model, price_of
from ipyrefine.loop.prompts import Prompts
from ipyrefine.loop.records import Price
from ipyrefine.loop.runs import Limits, Run
from ipyrefine.loop.stopping import UNPRICED
from ipyrefine.loop.template import read_template

if TYPE_CHECKING:
    from pathlib import Path

NO_MODEL = (
    "No model is configured. Either fetch the embedded one: "
    '`pip install "ipyrefine[local]"` and `ipyrefine pull`; or set OPENAI_API_KEY (and name a '
    "model with --model or IPYREFINE_MODEL); or set OPENAI_BASE_URL to an OpenAI-compatible "
    "server and name its model."
)
IMPROVE = {
    "code": "Improve this code: make it correct, efficient and clear; keep what it is for.",
    "prose": "Improve this text: make it clear and correct; keep what it says.",
}


def choose_model(
    name: str | None = None,
    *,
    base_url: str | None = None,
    api_key: str | Callable[[], str] | None = None,
    price: Price | None = None,
) -> Model:
    """Choose the model to use.

    A named model wins (an embedded one's name, or a server's); else ``IPYREFINE_MODEL``; else
    the embedded model if its weights are present.

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

    name = name or os.environ.get("IPYREFINE_MODEL")
    server = base_url or os.environ.get("OPENAI_BASE_URL")
    key = api_key or os.environ.get("OPENAI_API_KEY")
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
            f"The model {name!r} needs a server: set OPENAI_API_KEY or --base-url; "
            f"the embedded models are {known}."
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


def compose(
    text: str,
    *,
    model: Model | str | None = None,
    judge: Model | str | None = None,
    base_url: str | None = None,
    api_key: str | Callable[[], str] | None = None,
    price: Price | str | None = None,
    checks: Sequence[Check] = (),
    profile: str | None = None,
    criteria: Sequence[str] = (),
    draft: str | None = None,
    limits: Limits | None = None,
    prompts: Prompts | None = None,
) -> Refinement:
    """Build a refinement.

    A text with ``[ITERATION n]`` headings is read as a task and its own words for the stages.

    Args:
        text: the task; with a draft it may be empty, which asks to improve the draft.
        model: writes; a model, its name, or None for the configured one.
        judge: scores; the writer by default.
        base_url: an OpenAI-compatible server for models given by name.
        api_key: its key, or a callable that returns it, asked before every call.
        price: what it charges (``"0.15,0.60"``: dollars per million prompt and completion
            tokens); by default as the price list knows it.
        checks: run on every text.
        profile: ``code`` or ``prose``; by default decided from the text.
        criteria: names of the criteria to judge on, instead of the profile's.
        draft: a text to start from.
        limits: when to stop.
        prompts: own prompts for its stages.

    Raises:
        UsageError: there is neither a task nor a draft, or no such profile; the price cannot be
            read, or is not known though the budget bounds it.
        NoModel: no model is configured.
    """
    if not text.strip() and not (draft or "").strip():
        raise UsageError("There is nothing to refine: write a task or a draft.")
    if draft is not None and profile is None and profiles.is_python(draft):
        profile = "code"
    template = read_template(text)
    if template:
        text, prompts = template.task, template.prompts(prompts)
        limits = (limits or Limits()).model_copy(update={"every_critique": True})
    task = profiles.task(text, profile=profile, criteria=tuple(criteria))
    if template and template.checklist:
        task = task.model_copy(update={"checklist": template.checklist})
    if not text.strip():
        task = task.model_copy(update={"text": IMPROVE[task.form]})
    if isinstance(price, str):
        from ipyrefine.providers.prices import read_price

        price = read_price(price)
    server: dict[str, Any] = {"base_url": base_url, "api_key": api_key, "price": price}
    if model is None or isinstance(model, str):
        model = choose_model(model, **server)
    if isinstance(judge, str):
        judge = choose_model(judge, **server)
    if limits and limits.budget.cost is not None:
        for asked in (model, judge or model):
            if price_of(asked) is None:
                raise UsageError(f"{asked.name}: {UNPRICED}")
    return Refinement(
        task,
        model=model,
        judge=judge,
        checks=checks,
        limits=limits,
        draft=draft,
        prompts=prompts,
        clock=monotonic,
    )


async def refine(
    text: str,
    *,
    checks: Sequence[Check | Callable[..., Any]] = (),
    on_event: Callable[[Event, Run], None] | None = None,
    **options: Any,
) -> Run:
    """Refine a text to the loop's own stop and return the run.

    Args:
        text: the task in words.
        checks: checks, or functions of the text (see `ipyrefine.checks`).
        on_event: called with every event and the run after it.
        **options: as for `compose`.

    Raises:
        UsageError: an option cannot be used.
        NoModel: no model is configured.
        ModelError: the model failed; the error's ``run`` holds the best text so far.
    """
    from ipyrefine.checks.functions import CallableCheck

    limits = options.get("limits") or Limits()
    wrapped = [
        check if hasattr(check, "name") else CallableCheck(check, target=limits.target)
        for check in checks
    ]
    refinement = compose(text, checks=wrapped, **options)
    async for event in refinement:
        if on_event:
            on_event(event, refinement.run)
    raise_failure(refinement)
    return refinement.run


def raise_failure(refinement: Refinement) -> None:
    """Raise the model's error a refinement ended with, if any, its run attached."""
    error = refinement.error
    if error is not None:
        error.run = refinement.run
        raise error


def _embedded(path: "Path", name: str) -> Model:
    from ipyrefine.providers.local import LocalModel

    return LocalModel(path, name=name)
