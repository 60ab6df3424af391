"""Puts a refinement together from names and options, for every surface alike."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from ipyrefine import profiles
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event
from ipyrefine.core.ports import Check, ComparingCheck, Model, price_of
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.runs import Limits, Run
from ipyrefine.core.stopping import UNPRICED
from ipyrefine.core.template import read_template
from ipyrefine.core.usage import Price
from ipyrefine.errors import UsageError
from ipyrefine.journal.recorder import recorder
from ipyrefine.profiles import Profile
from ipyrefine.providers.choose import choose_model as choose_model
from ipyrefine.running import finish

ProfileLike = str | Path | Mapping[str, Any] | Profile

IMPROVE = {
    "code": "Improve this code: make it correct, efficient and clear; keep what it is for.",
    "prose": "Improve this text: make it clear and correct; keep what it says.",
}
AT_HAND = {
    "code": "These variables exist already; the code may use them by name:",
    "prose": "The task is about these:",
}


class Models(NamedTuple):
    """The writer, and the judge where that is another."""

    model: Model
    judge: Model | None


def choose_models(
    model: Model | str | None,
    judge: Model | str | None,
    *,
    base_url: str | None = None,
    api_key: str | Callable[[], str] | None = None,
    price: Price | str | None = None,
) -> Models:
    """Choose the models that are not given as such; arguments and errors as for `compose`."""
    if isinstance(price, str):
        from ipyrefine.providers.prices import read_price

        price = read_price(price)
    server: dict[str, Any] = {"base_url": base_url, "api_key": api_key, "price": price}
    if model is None or isinstance(model, str):
        model = choose_model(model, **server)
    if isinstance(judge, str):
        judge = choose_model(judge, **server)
    return Models(model, judge)


def compose(
    text: str,
    *,
    model: Model | str | None = None,
    judge: Model | str | None = None,
    base_url: str | None = None,
    api_key: str | Callable[[], str] | None = None,
    price: Price | str | None = None,
    checks: Sequence[Check] = (),
    profile: ProfileLike | None = None,
    criteria: Sequence[str] = (),
    checklist: Sequence[str] = (),
    variables: Mapping[str, Any] | None = None,
    draft: str | None = None,
    limits: Limits | None = None,
    prompts: Prompts | Mapping[str, str] | None = None,
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
        profile: a profile, its name, a dict of its fields, or a TOML file's path; by default
            decided from the text.
        criteria: names of the criteria to judge on, instead of the profile's.
        checklist: yes/no questions a finished text answers with yes, instead of the profile's.
        variables: what the task is about besides its text; shown to the model in short.
        draft: a text to start from.
        limits: when to stop; what they leave unset is the profile's to say.
        prompts: own prompts for its stages, or a dict of them by stage.

    Raises:
        UsageError: there is neither a task nor a draft, or no such profile; several candidates
            are asked for beside a draft, or one for a check of several; the price cannot be
            read, or is not known though the budget bounds it.
        NoModel: no model is configured.
    """
    if not text.strip() and not (draft or "").strip():
        raise UsageError("There is nothing to refine: write a task or a draft.")
    if prompts is not None and not isinstance(prompts, Prompts):
        prompts = Prompts.of(prompts)
    template = read_template(text)
    if template:
        text, prompts = template.task, template.prompts(prompts)
        limits = (limits or Limits()).model_copy(update={"every_critique": True})
        checklist = checklist or template.checklist
    chosen = choose_profile(profile, text, draft=draft, checks=checks)
    task = chosen.task(
        _asked(text, chosen.form, checks, variables or {}),
        criteria=tuple(criteria),
        checklist=tuple(checklist),
    )
    crew = choose_models(model, judge, base_url=base_url, api_key=api_key, price=price)
    limits = chosen.limited(limits)
    _require_candidates(limits, draft, checks)
    if limits.budget.cost is not None:
        for asked in (crew.model, crew.judge or crew.model):
            if price_of(asked) is None:
                raise UsageError(f"{asked.name}: {UNPRICED}")
    return Refinement(
        task,
        model=crew.model,
        judge=crew.judge,
        checks=checks,
        limits=limits,
        draft=draft,
        prompts=prompts,
        clock=monotonic,
    )


def choose_profile(
    given: ProfileLike | None,
    text: str,
    *,
    draft: str | None = None,
    checks: Sequence[Check | Callable[..., Any] | str] = (),
    namespace: Mapping[str, Any] | None = None,
) -> Profile:
    """Find the profile that is given, or else choose one from the text.

    Args:
        given: as for `compose`; a name may also be a dict's in the namespace.
        text: the task.
        draft: a text to start from.
        checks: the checks or their names; what is checked against a schema is data.
        namespace: the user's variables.

    Raises:
        UsageError: there is no such profile, or it is not valid; or it is for another kind of text
            than a check.
    """
    named = [check if isinstance(check, str) else getattr(check, "name", "") for check in checks]
    for_code = [n for n in named if n in ("run", "lint") or n.startswith("tests:")]
    if given is not None:
        chosen = profiles.find(given, namespace)
        if for_code and chosen.form != "code":
            raise UsageError(
                f"The check {for_code[0]} is for Python code, and the profile {chosen.name} is "
                'for other texts: choose the profile code (or one with form = "code"), or leave '
                "the check out."
            )
        return chosen
    if for_code and (draft is None or profiles.is_python(draft)):
        return profiles.find("code")
    template = read_template(text)
    text = template.task if template else text
    return profiles.choose(text, draft=draft, schema=any(n.startswith("schema:") for n in named))


def _require_candidates(limits: Limits, draft: str | None, checks: Sequence[Check]) -> None:
    comparing = [check.name for check in checks if isinstance(check, ComparingCheck)]
    if draft is not None and limits.candidates > 1:
        raise UsageError("--candidates asks for several first texts, but the draft is given.")
    if comparing and limits.candidates < 2:
        raise UsageError(
            f"The check {comparing[0]} compares first texts with each other: add --candidates 5."
        )


def _asked(text: str, form: str, checks: Sequence[Check], variables: Mapping[str, Any]) -> str:
    """The request, with what the checks require and the variables it is about."""
    from ipyrefine.checks.variables import described

    required = [said for check in checks if (said := getattr(check, "requirement", ""))]
    parts = [text if text.strip() else IMPROVE[form], *required]
    if variables:
        parts.append(f"{AT_HAND[form]}\n{described(variables)}")
    return "\n\n".join(parts)


async def refine(
    text: str,
    *,
    checks: Sequence[Check | Callable[..., Any] | str] = (),
    on_event: Callable[[Event, Run], None] | None = None,
    journal: bool = True,
    name: str = "",
    **options: Any,
) -> Run:
    """Refine a text to the loop's own stop and return the run.

    Args:
        text: the task in words.
        checks: checks, their names, or functions of the text (see `ipyrefine.checks`).
        on_event: called with every event and the run after it.
        journal: whether the run is kept in the journal.
        name: its name there; made from the task by default.
        **options: as for `compose`.

    Raises:
        UsageError: an option cannot be used.
        NoModel: no model is configured.
        ModelError: the model failed; the error's ``run`` holds the best text so far.
        JournalError: the journal cannot be written; the error's ``run`` is as for `ModelError`.
    """
    from ipyrefine.checks import resolve

    given = options.pop("profile", None)
    chosen = choose_profile(given, text, draft=options.get("draft"), checks=checks)
    limits = chosen.limited(options.pop("limits", None))
    resolved = resolve(checks, {}, target=limits.target, variables=options.get("variables") or {})
    refinement = compose(text, checks=resolved, profile=chosen, limits=limits, **options)
    return await finish(refinement, recorder(journal, name=name), on_event)
