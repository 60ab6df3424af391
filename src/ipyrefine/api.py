"""Build, run and resume refinements: the one place that puts the parts together."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

from pydantic import ValidationError

from ipyrefine import profiles
from ipyrefine.checks.demands import check_names, find_demands
from ipyrefine.core.decisions import Decision
from ipyrefine.core.edits import Selection
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Attempt, Form, Limits, Material, Price, Setup, Words
from ipyrefine.core.policy import PRICE_UNKNOWN
from ipyrefine.core.ports import (
    Check,
    Consumer,
    Journal,
    Model,
    price_of,
)
from ipyrefine.core.prompts import SCORE, Prompts
from ipyrefine.core.run import Run
from ipyrefine.core.syntax import pygments_name
from ipyrefine.core.template import Template, read_template
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.journal.writer import open_journal
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.masking import Masked, count_secrets
from ipyrefine.kernel.variables import Copies, Variables
from ipyrefine.profiles import Profile
from ipyrefine.profiles.recognise import is_python, language_of, name_by_draft, read_fence
from ipyrefine.providers.choose import choose_model as choose_model
from ipyrefine.providers.choose import choose_sharing, is_embedded, is_weak
from ipyrefine.providers.servers import Key
from ipyrefine.render.labels import count, sharing_phrase

ProfileLike = str | Path | Mapping[str, Any] | Profile
ApiKey = str | Callable[[], str]
Effort = Literal["low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_NEXT_CELL = "\n\n[code cell]\n"
_EMBEDDED_TOKENS = Limits().max_tokens
_ROOM, _EMBEDDED_ROOM = 6_000, 1_500  # characters of the variables found, and of cells' code

IMPROVE = {
    "code": "Improve this code: make it correct, efficient and clear; keep what it is for.",
    "prose": "Improve this text: make it clear and correct; keep what it says.",
}


class ServerOptions(TypedDict, total=False):
    """How models that are given by name are asked."""

    base_url: str | None
    api_key: ApiKey | None
    price: Price | str | None
    timeout: float | None
    effort: Effort | None
    extra: Mapping[str, Any] | None


class Models(NamedTuple):
    """The writer, and the critic or evaluator where that is another."""

    model: Model
    judge: Model | None

    @property
    def replay(self) -> bool:
        """Whether the writer's replies are recorded ones."""
        return bool(getattr(self.model, "replays", False))

    @property
    def are_embedded(self) -> bool:
        """Whether both are embedded models."""
        return is_embedded(self.model) and is_embedded(self.judge or self.model)


def build(
    text: str,
    *,
    model: Model | str | None = None,
    judge: Model | str | None = None,
    checks: Sequence[Check] = (),
    no_checks: Sequence[str] = (),
    profile: ProfileLike | None = None,
    criteria: Sequence[str] = (),
    checklist: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    language: str | None = None,
    variables: Variables | Mapping[str, Any] | None = None,
    cells: Sequence[Material] = (),
    draft: str | None = None,
    wish: str = "",
    attempts: Sequence[Attempt] | None = None,
    lines: tuple[int, int] | None = None,
    limits: Limits | None = None,
    prompts: Prompts | Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
    share: str | None = None,
    **server: Unpack[ServerOptions],
) -> Refinement:
    """Build a refinement.

    A text with ``[ITERATION n]`` headings is read as a task and its own words for the stages.

    What the task itself demands is checked too: the examples that a task for Python code states,
    and the length that one for prose demands. The user's own evaluator is the prompt ``judge`` or a
    function; a ``target`` without one is scored by a prompt that ships.

    Args:
        text: the task; with a draft it may be empty, which asks to improve the draft.
        model: writes; a model, its name, or None for the configured one.
        judge: reads, as critic or evaluator; the writer by default.
        checks: run on every text.
        no_checks: names of checks that the task's own demands must not add; ``all`` for none.
        profile: a profile, its name, a dict of its fields, or a TOML file's path; by default
            as the draft is, and for a task code or words, as the model finds.
        criteria: names of the criteria to read it for, instead of the profile's.
        checklist: yes/no questions that a finished text answers with yes; by default the
            profile's, unless there are own criteria.
        categories: what a critique looks at, instead of the profile's.
        language: the language of code, as pygments names it; by default as the task or the
            draft says, else Python.
        variables: what the task is about besides its text, shown to the model in short and copied
            for the code of checks; or what `ipyrefine.kernel.variables.find` found.
        cells: cells of a notebook that the model is shown, what they gave, and the user's standing
            wishes.
        draft: a text to start from.
        wish: what you want changed in the draft; it is then revised at once, without being read.
        attempts: what a student predicted in earlier runs of the task, whose code the draft is:
            nothing is written for them, and they predict what it gives where it fails.
        lines: the first and the last line of the draft that may change, from 1; the others are put
            back whatever the model writes.
        limits: when to stop; what they leave unset is the profile's to say.
        prompts: own prompts for its stages, or a dict of them by stage.
        warnings: what the user should know before the first call.
        share: what a model's server is sent of what code computed from variables or files:
            ``structure``, ``outputs`` or ``values``; by default ``values`` on this machine, and
            elsewhere what was remembered of the server, else ``structure``.
        **server: how models that are given by name are asked. ``base_url``: an OpenAI-compatible
            server. ``api_key``: its key, or a callable that returns it, asked before every call;
            by default ``OPENAI_API_KEY``, for the server of ``OPENAI_BASE_URL`` (OpenAI if unset)
            only. ``price``: what it charges (``"0.15,0.60"``: dollars per million prompt and
            completion tokens); by default from the price list. ``timeout``: seconds of silence
            after which it counts as gone; 600 by default. ``effort``: how hard a model that thinks
            should think: ``low``, ``medium`` or ``high``. ``extra``: further fields of every
            request; one that the server refuses is left out.

    Raises:
        UsageError: there is neither a task nor a draft, or no such profile; a named variable
            looks like a secret; several candidates are asked for with a draft; the price cannot be
            read, or is not known though the budget limits it; the draft has no such lines.
        NoModel: no model is configured.
    """
    server["api_key"] = Key(server.get("api_key"))
    if not text.strip() and not (draft or "").strip():
        raise UsageError("There is nothing to refine. Write a task or a draft.")
    if not isinstance(prompts, Prompts):
        prompts = Prompts.build(prompts or {})
    template, warnings = read_template(text), list(warnings)
    if template:
        text, prompts = template.task, template.prompts(prompts)
        limits = _template_limits(template, limits)
        checklist = template.checklist or () if checklist is None else checklist
        categories = categories or template.categories
        warnings += [
            f"The template still has {one} in it. Fill it in." for one in template.placeholders
        ]
        warnings += [
            f"{one} wasn't read as a stage. Write it like [ITERATION 2]." for one in template.unread
        ]
    variables = Variables.of(variables)
    models = choose_models(model, judge, **server)
    chosen = choose_profile(
        profile, draft=draft, checks=checks, language=language, writer=models.model
    )
    spoken = language_of(text, draft)
    if draft is not None and chosen.name != "prose" and (fenced := read_fence(draft)):
        draft = fenced.code
    selection = _select(draft, lines)
    ipython_lines = python_part(draft).lines if draft and chosen.form == "code" else ()
    make_task = partial(
        Profile.task,
        text=_request(text, chosen.form, checks, ipython_lines, selection),
        criteria=tuple(criteria),
        checklist=None if checklist is None else tuple(checklist),
        categories=tuple(categories),
        language=pygments_name(language) if language else spoken,
    )
    task = make_task(chosen)
    sharing = choose_sharing((models.model, models.judge or models.model), share)
    room = _EMBEDDED_ROOM if models.are_embedded else _ROOM
    materials = variables.materials(values=sharing.level == "values", room=room)
    if models.replay and models.are_embedded:  # a recording is asked what it was asked
        cells = [one for one in cells if one.kind != "definitions"]
    cells = [_latest(one, room) if one.kind == "definitions" else one for one in cells]
    if sharing.level == "structure" and sharing.servers:  # they are kept until the user answers
        cells = [one.replace(phrase="") if one.kind == "definitions" else one for one in cells]
    task = task.replace(materials=(*materials, *cells))
    own = set(limits.model_fields_set) if limits else set()
    if profiles.builtin().get(chosen.name) is not chosen:
        own |= chosen.limits.model_fields_set
    limits = chosen.limited(limits)
    if "max_tokens" not in own and not models.are_embedded:
        limits = limits.replace(max_tokens=None)
    function = any(getattr(check, "is_evaluator", False) for check in checks)
    if "target" in own and not prompts.judge and not function:
        prompts = prompts.replace(judge=SCORE)
    if limits.critique == "auto":
        critique = "auto"
        if prompts.judge or function:
            critique = "never"  # their evaluator says what is wrong; a critique breaks its loop
        elif criteria or "min_findings" in own or "critique" in prompts.own():
            critique = "always"
        limits = limits.replace(critique=critique)
    check_names(no_checks)
    demands = find_demands(
        task,
        checks,
        without=no_checks,
        copies=variables.copies,
        runs=task.is_python
        and variables.copies.are_there
        and (variables.hold_data or not models.replay),
    )
    words = None
    if chosen.or_words and draft is None:
        kinds = [
            one for one in profiles.builtin().values() if one.form == "prose" and one.name != "data"
        ]
        kinds.sort(key=lambda one: one.name != "prose")
        instead = make_task(kinds[0])
        extra = find_demands(instead, checks, without=no_checks)
        own_checks, more = ([one.name for one in some] for some in (checks, extra.checks))
        words = Words(
            tasks=tuple(map(make_task, kinds)),
            own=tuple(own_checks),
            checks=tuple(more),
            demands=extra.phrases,
        )
        checks = (*checks, *extra.checks)
    checks, phrases = (*checks, *demands.checks), list(demands.phrases)
    if (task.is_python and checks and variables.labels) or any(one.computed for one in cells):
        phrases += filter(None, [sharing_phrase(sharing)])
    if masked := count_secrets(text, draft, *(prompts.own().values())):
        phrases.append(f"{count(masked, 'secret')} masked")
        words = words and words.replace(demands=(*words.demands, phrases[-1]))
    warnings += [variables.left_out] if variables.left_out else []
    if unrun := [one for one in ipython_lines if not one.startswith("%time ")]:
        listed = ", ".join(unrun[:3]) + ", …" * (len(unrun) > 3)
        warnings.append(f"Kept as they are, and never run by checks: {listed}")
    if draft is not None and limits.candidates > 1:
        raise UsageError("--candidates asks for several drafts, but there is a draft already.")
    if limits.budget.cost is not None:
        for one in (models.model, models.judge or models.model):
            if price_of(one) is None:
                raise UsageError(f"{one.name}: {PRICE_UNKNOWN}")
    if attempts is not None:
        limits = limits.replace(max_revisions=0)
    setup = Setup(
        task=task,
        words=words,
        limits=limits,
        draft=draft,
        wish=wish,
        prompts=prompts.own(),
        demands=tuple(phrases),
        attempts=None if attempts is None else tuple(attempts),
    )
    return compose(
        setup,
        models,
        checks=checks,
        selection=selection,
        copies=variables.copies,
        sharing=sharing,
        warnings=warnings,
    )


def compose(start: Setup | Run, models: Models, *, copies: Copies, **parts: Any) -> Refinement:
    """Put a refinement together: of a new run, a resumed one, or one with another model.

    The variables' copies are for the critic's tests; `parts` are the others, as for `Refinement`.
    """
    from ipyrefine.checks.python import RunsCleanly
    from ipyrefine.checks.undefined import NameReader

    checks = tuple(parts.pop("checks", ()))
    setup, suite = start if isinstance(start, Setup) else start.setup, None
    if setup.task.is_python and find_spec("pytest") is not None:
        from ipyrefine.checks.suite import Suite

        suite = Suite(copies)
    written = () if isinstance(start, Setup) else [one.text for one in start.iterations]
    texts = (setup.task.request, setup.draft or "", *setup.prompts.values(), *written)
    runs = any(isinstance(check, RunsCleanly) for check in checks)
    kind = RunsCleanly if runs else NameReader
    reads: Any = next((one for one in checks if isinstance(one, kind)), None)  # for names
    reader = models.judge or models.model
    setup = setup.replace(
        weak_critic=setup.limits.critique != "always" and is_weak(reader, "critic"),
        weak_editor=is_weak(models.model, "editor"),
    )
    return Refinement(
        setup if isinstance(start, Setup) else start.replace(setup=setup),
        model=Masked(models.model, *texts),
        judge=models.judge and Masked(models.judge, *texts),
        suite=suite,
        clock=monotonic,
        checks=[reads.knowing(checks) if one is reads else one for one in checks],
        **parts,
    )


async def refine(
    text: str,
    *,
    checks: Sequence[Check | Callable[..., Any] | str] = (),
    on_event: Consumer | None = None,
    journal: bool = True,
    name: str = "",
    limits: Limits | None = None,
    **options: Any,
) -> Run:
    """Refine a text to the loop's own stop and return the run.

    Every limit may be given as a keyword, and `ipyrefine.Limits` says what each means:
    ``max_revisions`` (without ``patience`` it switches patience off), ``target`` (without
    ``critique`` it switches critiques off), ``patience``, ``delta``, ``base``, ``critique``,
    ``min_findings``, ``revise``, ``verify_drafts``, ``candidates``, ``memory``, ``max_tokens``,
    ``temperature``, ``seed``, ``step``, and ``budget``, which may be a dict of its fields.

    Args:
        text: the task in words.
        checks: checks, their names, or functions of the text (see `ipyrefine.checks`).
        on_event: called with every event and the run after it.
        journal: whether the run is kept in the journal.
        name: its name there; made from the task by default.
        limits: when to stop, as one value; a limit given as a keyword wins over it.
        **options: the limits above, and what `ipyrefine.api.build` takes.

    Raises:
        UsageError: an option cannot be used.
        NoModel: no model is configured.
        ModelError: the model failed; the error's ``run`` holds the best text so far.
        JournalError: the journal cannot be written; the error's ``run`` is as for `ModelError`.
    """
    from ipyrefine.checks import resolve

    check_options(options)
    limits = _merge_limits(limits, options)
    server = {name: options.get(name) for name in ServerOptions.__annotations__}
    models = choose_models(options.get("model"), options.get("judge"), **server)
    options["variables"] = Variables.of(options.get("variables"))
    chosen = choose_profile(
        options.pop("profile", None),
        draft=options.get("draft"),
        checks=checks,
        language=options.get("language"),
        writer=models.model,
    )
    target = chosen.limited(limits).target
    resolved = resolve(checks, {}, target=target, variables=options["variables"])
    refinement = build(text, checks=resolved, profile=chosen, limits=limits, **options)
    return await finish(refinement, open_journal(journal, name=name), on_event)


def resume(
    run: Run,
    *,
    model: Model | str | None = None,
    judge: Model | str | None = None,
    checks: Sequence[Check] = (),
    variables: Variables | Mapping[str, Any] | None = None,
    lines: tuple[int, int] | None = None,
    share: str | None = None,
    **server: Unpack[ServerOptions],
) -> Refinement:
    """Build the refinement that continues an earlier run where it stopped.

    Args:
        run: the run; its setup stands.
        model: writes; by default the model that wrote so far, by its name.
        judge: reads, as critic or evaluator; by default the one so far.
        checks: the run's checks, made again.
        variables: what its checked code gets copies of, as for `build`.
        lines: the lines of its draft that may change, as for `build`.
        share: what a model's server is sent, as for `build`.
        **server: how models that are given by name are asked, as for `build`.

    Raises:
        UsageError: the run's checks are not these, or its model is a recording's file, which has
            to be named.
        NoModel: the model is not available here.
    """
    server["api_key"] = Key(server.get("api_key"))
    setup, names = run.setup, tuple(check.name for check in checks)
    if names != setup.checks:
        raise UsageError(
            f"This run has the checks {', '.join(setup.checks) or '(none)'}, not "
            f"{', '.join(names) or '(none)'}. Name the same ones to continue it."
        )
    judge = judge or (_named_model(setup.judge) if setup.judge != setup.model else None)
    server["price"] = setup.price
    models = choose_models(model or _named_model(setup.model), judge, **server)
    limits = setup.limits
    if limits.max_tokens in (None, _EMBEDDED_TOKENS):  # maybe the other kind's default
        tokens = _EMBEDDED_TOKENS if models.are_embedded else None
        limits = limits.replace(max_tokens=tokens)
    return compose(
        run.replace(setup=setup.replace(limits=limits)),
        models,
        checks=checks,
        selection=_select(setup.draft, lines),
        copies=Variables.of(variables).copies,
        sharing=choose_sharing(filter(None, models), share),
    )


def _named_model(name: str) -> str:
    """Return the name of a run's model; refuse a file that the reader did not name."""
    from ipyrefine.providers.replay import PREFIX

    if name.startswith(PREFIX) and name != os.environ.get("IPYREFINE_MODEL"):
        raise UsageError(
            f"This run's model is the recording {name.removeprefix(PREFIX)}. To read that file, "
            f"name the model {name!r} yourself."
        )
    return name


async def finish(
    refinement: Refinement, journal: Journal | None = None, *consumers: Consumer | None
) -> Run:
    """Run a refinement to its own stop and return the run; without a journal it is not kept.

    Raises:
        RefineError: what ended the run early; the error's ``run`` holds the best text so far.
    """
    await refinement.run(*filter(None, consumers), journal=journal)
    raise_failure(refinement)
    return refinement.state


async def decide(run: Run, decision: Decision, journal: Journal | None = None) -> Run:
    """Take a user's decision on a run that has stopped, and ask no model.

    A revision that the decision asks for waits until the run is continued.

    Raises:
        UsageError: the decision cannot be carried out; nothing has changed.
        RefineError: it could not be stored.
    """
    from ipyrefine.providers.scripted import ScriptedModel

    model = ScriptedModel((), name=run.setup.model)
    refinement = Refinement(run, model=model, clock=monotonic)
    refinement.decide(decision)
    await refinement.end(journal=journal)
    raise_failure(refinement)
    return refinement.state


def raise_failure(refinement: Refinement) -> None:
    """Raise the error a refinement ended with, if any, its run attached."""
    error = refinement.error
    if error is not None:
        error.run = refinement.state
        raise error


def choose_models(
    model: Model | str | None, judge: Model | str | None, **server: Unpack[ServerOptions]
) -> Models:
    """Choose the models that are given by name; arguments and errors as for `build`."""
    effort, price = server.pop("effort", None), server.get("price")
    server["api_key"] = Key(server.get("api_key"))
    if effort is not None:
        if effort not in EFFORTS:
            raise UsageError(f"effort is one of {', '.join(EFFORTS)}, not {effort!r}.")
        server["extra"] = {**(server.get("extra") or {}), "reasoning_effort": effort}
    if isinstance(price, str):
        from ipyrefine.providers.servers import read_price

        server["price"] = read_price(price)
    options: dict[str, Any] = {**server}
    if model is None or isinstance(model, str):
        model = choose_model(model, **options)
    if isinstance(judge, str):
        judge = choose_model(judge, **options)
    return Models(model, judge)


def choose_profile(
    profile: ProfileLike | None,
    *,
    draft: str | None = None,
    checks: Sequence[Check | Callable[..., Any] | str] = (),
    namespace: Mapping[str, Any] | None = None,
    language: str | None = None,
    form: Form | None = None,
    writer: Model | None = None,
) -> Profile:
    """Return the named profile, or else the one that fits the draft.

    Without one it is that for code, and where nothing else says so, its writer may find that the
    task wants words.

    Args:
        profile: as for `build`; a name may also be a dict's in the namespace.
        draft: a text to start from.
        checks: the checks or their names; what is checked against a schema is data.
        namespace: the user's variables.
        language: the language of code; a text in a named one is code.
        form: ``code`` or ``prose``, whatever the text or the profile suggests.
        writer: the model that writes; what a recording replies is settled already.

    Raises:
        UsageError: there is no such profile, or it is not valid; or it is for another kind of text
            than a check.
    """
    from ipyrefine.checks import form_of, is_built_in

    names = [
        one if isinstance(one, str) else getattr(one, "name", "")
        for one in checks
        if isinstance(one, str) or is_built_in(one)
    ]
    code_checks = [name for name in names if form_of(name) == "code"]
    if profile is not None:
        chosen = profiles.find(profile, namespace)
    elif language or (code_checks and (draft is None or is_python(draft))):
        chosen = profiles.find("code")
    elif any(form_of(name) == "data" for name in names):
        chosen = profiles.find("data")
    elif draft is not None:
        chosen = profiles.find(name_by_draft(draft))
    else:
        replays = getattr(writer, "replays", writer is None)
        chosen = profiles.find("code").replace(or_words=not (form or replays))
    if form not in (None, chosen.form):
        chosen = profiles.find(form)
    if code_checks and chosen.form != "code" and (profile is not None or form):
        raise UsageError(
            f"The check {code_checks[0]} is for Python code, and the profile {chosen.name} is "
            'not. Choose the profile code (or one with form = "code"), or leave the check out.'
        )
    return chosen


def check_options(options: dict[str, Any]) -> None:
    """Refuse a name that `refine` does not know as an option, and a limit that is out of its range.

    A key among the options becomes a `Key`, which no traceback shows.

    Raises:
        UsageError: there is no such option, or a limit cannot be used.
    """
    if "api_key" in options:
        options["api_key"] = Key(options["api_key"])
    known = {*signature(refine).parameters, *signature(build).parameters, *Limits.model_fields}
    known |= ServerOptions.__annotations__.keys()
    known -= {"text", "name", "options", "server"}
    for name in options:
        if name not in known:
            raise UsageError(f"refine has no option {name!r}.{did_you_mean(name, known)}")
    _merge_limits(options.get("limits"), dict(options))


def _merge_limits(limits: Limits | None, options: dict[str, Any]) -> Limits | None:
    single = {name: options.pop(name) for name in options.keys() & Limits.model_fields.keys()}
    if not single:
        return limits
    whole = limits.model_dump(exclude_unset=True) if limits else {}
    try:
        return Limits.model_validate(whole | single)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name}: {first['msg'].lower()}, not {first['input']!r}.") from None


def _template_limits(template: Template, limits: Limits | None) -> Limits:
    """Return limits for the four stages of a pasted template: each text is criticised.

    Its drafts get no verdict, as they are revised in any case; so the four stages are four calls.
    """
    stages: dict[str, Any] = {"critique": "always", "verify_drafts": False}
    if template.min_findings:
        stages["min_findings"] = template.min_findings
    own = limits.model_dump(exclude_unset=True) if limits else {}
    return Limits.model_validate(stages | own)


def _latest(code: Material, room: int) -> Material:
    """Return the code of cells, with the last cells that there is room for."""
    if len(code.text) <= room:
        return code
    cells = code.text.split(_NEXT_CELL)[1:]
    while len(cells) > 1 and sum(map(len, cells)) > room:
        del cells[0]
    text = _NEXT_CELL.join(["", *cells]).lstrip()
    return code.replace(phrase=f"the code of the last {len(cells)} cells", text=text)


def _select(draft: str | None, lines: tuple[int, int] | None) -> Selection | None:
    if lines is None:
        return None
    if draft is None:
        raise UsageError("Only lines of a draft can be selected, and this is a task.")
    return Selection(draft, lines)


def _request(
    text: str,
    form: Form,
    checks: Sequence[Check],
    ipython_lines: Sequence[str],
    selection: Selection | None,
) -> str:
    required = [words for check in checks if (words := getattr(check, "requirement", ""))]
    if ipython_lines:
        required.append("Keep these lines for IPython as they are:\n" + "\n".join(ipython_lines))
    if selection:
        required.append(selection.request)
    return "\n\n".join([text if text.strip() else IMPROVE[form], *required])
