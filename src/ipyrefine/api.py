"""Build, run and resume refinements: the one place that puts the parts together."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import ValidationError

from ipyrefine import profiles
from ipyrefine.checks import form_of, from_record, is_built_in, resolve
from ipyrefine.checks.demands import find_demands
from ipyrefine.core.decisions import Decision
from ipyrefine.core.edits import Selection
from ipyrefine.core.engine import Refinement
from ipyrefine.core.evaluations import require_answer
from ipyrefine.core.languages import is_python, language_of, pygments_name, read_fence
from ipyrefine.core.model import (
    IMPROVE,
    Attempt,
    Form,
    Limits,
    Material,
    Price,
    Setup,
    Stage,
    Words,
    refused,
)
from ipyrefine.core.policy import PRICE_UNKNOWN
from ipyrefine.core.ports import Check, Consumer, Journal, Model, price_of
from ipyrefine.core.prompts import SCORE, Prompts, only_named
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import Sharing
from ipyrefine.core.template import read_template
from ipyrefine.errors import NoModel, UsageError, did_you_mean
from ipyrefine.journal.writer import open_journal
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.masking import Masked, Secrets
from ipyrefine.kernel.variables import Variables
from ipyrefine.profiles import Profile
from ipyrefine.profiles import ProfileLike as ProfileLike
from ipyrefine.providers.choose import NO_MODEL, NoWriter, choose_sharing, is_embedded, is_weak
from ipyrefine.providers.choose import choose_model as choose_model
from ipyrefine.providers.servers import Key, KeyLike
from ipyrefine.render.say import count, sharing_phrase

CheckLike = Check | Callable[..., Any] | str
Effort = Literal["low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_EMBEDDED_TOKENS = Limits().max_tokens
_ROOM, _EMBEDDED_ROOM = 4_000, 1_500  # characters of the variables found


# Options


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a refinement is made with, as `read_options` reads it.

    Attributes:
        model: writes; a model, its name, or None for the configured one (of a run that is resumed,
            the one that wrote so far).
        judge: reads, as critic or evaluator; the writer by default.
        base_url: an OpenAI-compatible server, for models that are given by name.
        api_key: its key, or a callable that returns it, asked before every call; by default the one
            that was entered for this server, else ``OPENAI_API_KEY``, for the server of
            ``OPENAI_BASE_URL`` (OpenAI if unset) only.
        price: what it charges (``"0.15,0.60"``: dollars per million prompt and completion tokens);
            by default from the price list.
        timeout: seconds of silence after which it counts as gone; 600 by default.
        effort: how hard a model that thinks should think: ``low``, ``medium`` or ``high``.
        extra: further fields of every request; one that the server refuses is left out.
        share: what a model's server is sent: ``structure`` or ``all``; by default ``all`` on this
            machine, and elsewhere what was remembered of the server, else ``structure``.
        checks: run on every text: checks, their names, or functions of the text (see
            `ipyrefine.checks`).
        no_checks: names of checks that the task's own demands must not add; ``all`` for none.
        keeps: names that every text must define, where it is run.
        profile: a profile, its name, a dict of its fields, or a TOML file's path; by default
            as the draft is, and for a task code or words, as the model finds.
        criteria: names of the criteria to read it for, instead of the profile's.
        checklist: yes/no questions that a finished text answers with yes; by default the
            profile's, unless there are own criteria.
        categories: what a critique looks at, instead of the profile's.
        language: the language of code, as pygments names it; by default the draft's, and for a
            task the one that its writer answers in.
        variables: what the task is about besides its text, shown to the model in short and copied
            for the code of checks; or what `ipyrefine.kernel.variables.find` found.
        namespace: where checks and profiles may be found by their names.
        cells: cells of a notebook that the model is shown, what they gave, and the user's standing
            wishes.
        draft: a text to start from.
        wish: what you want changed in the draft; it is then revised at once, without being read.
        attempts: what a student predicted in earlier runs of the task, whose code the draft is:
            nothing is written for them, and they predict what it gives where it fails.
        lines: the first and the last line of the draft that may change, from 1; the others are put
            back whatever the model writes.
        limits: when to stop; what they leave unset is the profile's to say.
        prompts: own prompts for its stages, or a dict of them by stage; beside that of ``judge``
            perhaps its words for Yes and No as ``pass`` and ``fail``, and its ``scale``.
        warnings: what the user should know before the first call.
    """

    model: Model | str | None = None
    judge: Model | str | None = None
    base_url: str | None = None
    api_key: Key
    price: Price | None = None
    timeout: float | None = None
    effort: Effort | None = None
    extra: Mapping[str, Any] | None = None
    share: str | None = None
    checks: Sequence[CheckLike] = ()
    no_checks: Sequence[str] = ()
    keeps: Sequence[str] = ()
    profile: ProfileLike | None = None
    criteria: Sequence[str] = ()
    checklist: Sequence[str] | None = None
    categories: Sequence[str] = ()
    language: str | None = None
    variables: Variables
    namespace: Mapping[str, Any] | None = None
    cells: Sequence[Material] = ()
    draft: str | None = None
    wish: str = ""
    attempts: Sequence[Attempt] | None = None
    lines: tuple[int, int] | None = None
    limits: Limits
    prompts: Prompts
    warnings: Sequence[str] = ()

    @property
    def asks_nobody(self) -> bool:
        """Whether a draft is looked at as it is, which takes no model."""
        return self.draft is not None and (
            self.limits.max_revisions == 0 or self.attempts is not None
        )

    @property
    def is_look(self) -> bool:
        """Whether no model is asked whichever is configured."""
        scored = self.prompts.judge or "target" in self.limits.model_fields_set
        unread = self.limits.critique == "never" and not scored
        named = isinstance(self.model, str | None)
        return named and self.asks_nobody and self.attempts is None and unread


# What an option has to be, where nothing else looks at it first, and its items.
_KINDS: dict[str, tuple[Any, str, type]] = {
    name: (kind, words, item)
    for kind, words, item, names in (
        (str, "a text", object, "draft wish base_url language name reason share"),
        (list, "a list of texts", str, "no_checks keeps criteria checklist categories warnings"),
        (list, "a list", object, "checks"),
        (list, "a list of `Material`", Material, "cells"),
        (list, "a list of `Attempt`", Attempt, "attempts"),
        (Mapping, "a dict", object, "extra namespace"),
        (Mapping | Variables, "a dict by name", str, "variables"),
        (Mapping | Prompts, "a dict of prompts by stage", object, "prompts"),
        (str | Path | Mapping | Profile, "a name, a dict or a file", object, "profile"),
        (Callable, "a function", object, "on_accept on_event on_item"),
        (bool, "True or False", object, "journal"),
        (int, "a number", object, "at_once"),
        (str | Price, 'a text like "0.15,0.60"', object, "price"),
        (int | float, "a number of seconds", object, "timeout"),
        (tuple | list, "a pair of line numbers", object, "lines"),
    )
    for name in names.split()
}


# As what a user may give an option that is read into something else.
_GIVEN: dict[str, Any] = {
    **{name: _KINDS[name][0] | None for name in ("price", "variables", "prompts")},
    "api_key": KeyLike,
    "limits": Limits | Mapping[str, Any] | None,
}


def require_kinds(**given: Any) -> None:
    """Refuse what is of another kind than it has to be.

    Raises:
        UsageError: one is.
    """
    for name, value in given.items():
        kind, words, item = _KINDS.get(name, (object, "", object))
        fits = isinstance(value, kind)
        if fits and item is not object and not isinstance(value, Variables):
            fits = all(isinstance(one, item) and one != "" for one in value)
        if value is not None and not fits:
            raise UsageError(f"{name} is {words}, not {value!r:.200}.")


def read_options(given: dict[str, Any], beside: Sequence[str] = ()) -> Options:
    """Read options as they are given: those of `Options`, and every limit by its own name.

    Those `beside` are the caller's own. A key becomes a `Key` in place, which no traceback shows.

    Raises:
        UsageError: there is no such option, or one cannot be used; a variable looks like a secret.
    """
    if "api_key" in given:
        given["api_key"] = Key(given["api_key"])
    known = [one.name for one in fields(Options)]
    every = [*known, *Limits.model_fields, *beside]
    for name in given:
        if name not in every:
            raise UsageError(f"refine has no option {name!r}.{did_you_mean(name, every)}")
    for name, value in given.items():
        kind, _, item = _KINDS.get(name, (object, "", object))
        alone = isinstance(value, str) or callable(value)
        if kind is list and item in (str, object) and alone:  # one, and not a list
            given[name] = [value]
        elif kind is list and isinstance(value, Iterable) and not isinstance(value, Mapping):
            given[name] = [*value]
    require_kinds(**given)
    for name in ("model", "judge"):
        one = given.get(name)
        is_model = hasattr(one, "stream") and isinstance(getattr(one, "name", None), str)
        if not (isinstance(one, str | None) or is_model):
            words = "a name, or an object with `name` and `stream`"
            raise UsageError(f"{name} is {words}, not {one!r:.200}.")
    price, effort, prompts = map(given.get, ("price", "effort", "prompts"))
    if effort not in (None, *EFFORTS):
        raise UsageError(f"effort is one of {', '.join(EFFORTS)}, not {effort!r}.")
    if isinstance(price, str):
        from ipyrefine.providers.servers import read_price

        price = read_price(price)
    read = {
        "api_key": Key(given.get("api_key")),
        "price": price,
        "variables": Variables.of(given.get("variables")),
        "limits": read_limits(given),
        "prompts": prompts if isinstance(prompts, Prompts) else Prompts.build(prompts or {}),
    }
    return Options(**{name: given[name] for name in known if name in given} | read)


def read_limits(given: Mapping[str, Any], spell: Callable[[str], str] = str) -> Limits:
    """Read limits that are given by their own names, or as a whole; `spell` is how they are typed.

    Raises:
        UsageError: a value is out of its range.
    """
    single = {name: given[name] for name in Limits.model_fields if name in given}
    try:
        whole = Limits.model_validate(given.get("limits") or {})
        return Limits.model_validate(whole.model_dump(exclude_unset=True) | single)
    except ValidationError as error:
        raise refused(error, "limits", spell) from None


class Models(NamedTuple):
    """The writer, and the critic or evaluator where that is another."""

    model: Model
    judge: Model | None

    @property
    def reader(self) -> Model:
        """The one that reads."""
        return self.judge or self.model

    @property
    def are_embedded(self) -> bool:
        """Whether both are embedded models."""
        return is_embedded(self.model) and is_embedded(self.reader)


def choose_models(options: Options) -> Models:
    """Choose the models that are given by name.

    Raises:
        NoModel: one is not here.
        UsageError: an option of their server cannot be used.
    """
    server = {name: getattr(options, name) for name in ("base_url", "api_key", "price", "timeout")}
    extra, model, judge = options.extra, options.model, options.judge
    if options.effort is not None:
        extra = {**(extra or {}), "reasoning_effort": options.effort}
    if model is None or isinstance(model, str):
        try:
            model = choose_model(model, **server, extra=extra)
        except NoModel:
            if model or os.environ.get("IPYREFINE_MODEL") or not options.asks_nobody:
                raise
            model = NoWriter()
    if isinstance(judge, str):
        judge = choose_model(judge, **server, extra=extra)
    return Models(model, judge)


_Built = TypeVar("_Built", bound=Callable[..., Any])


def takes_options(function: _Built) -> _Built:
    """Name all options in a function's signature and help, as `**options` alone names none."""
    own = signature(function)
    named = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    options = {
        one.name: (_GIVEN.get(one.name, one.type), None if one.default is MISSING else one.default)
        for one in fields(Options)
    }
    limits = {name: (one.annotation, one.default) for name, one in Limits.model_fields.items()}
    function.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[
            *named,
            *(
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for name, (kind, default) in (options | limits).items()
                if name not in own.parameters
            ),
        ]
    )
    if function.__doc__:  # else Python leaves out all of them
        listed = "\n\n".join(
            f"{title}:\n{cleandoc(kind.__doc__ or '').partition('Attributes:')[2].strip(chr(10))}"
            for title, kind in (("Options", Options), ("Limits", Limits))
        )
        function.__doc__ = f"{cleandoc(function.__doc__)}\n\n{listed}"
    return function


# The builder


@takes_options
def build(text: str, **options: Any) -> Refinement:
    """Build a refinement.

    A text with ``[ITERATION n]`` headings is read as a task and its own words for the stages.

    What the task itself demands is checked too: the examples that a task for Python code states,
    and the length that one for prose demands. The user's own evaluator is the prompt ``judge`` or a
    function; a ``target`` without one is scored by a prompt that ships.

    Args:
        text: the task; with a draft it may be empty, which asks to improve the draft.
        **options: the options and limits below.

    Raises:
        UsageError: there is neither a task nor a draft, or no such profile; a named variable
            looks like a secret; the price cannot be read, or is not known though the budget limits
            it; the draft has no such lines.
        NoModel: no model is configured.
    """
    return make(text, read_options(options))


@takes_options
def resume(run: Run, **options: Any) -> Refinement:
    """Build the refinement that continues an earlier run where it stopped.

    Args:
        run: the run; its setup stands.
        **options: as for `build`: the models and their server, ``share``, ``lines``, the run's
            checks, made again, and the variables that these get copies of.

    Raises:
        UsageError: the run's checks are not these, or its model is a recording's file, which has
            to be named.
        NoModel: the model is not available here.
    """
    return make(run, read_options(options))


_Begun = tuple[Setup, Models, Sharing, Sequence[Check], Sequence[str]]


def make(start: str | Run, options: Options) -> Refinement:
    """Make a refinement of a text, or of an earlier run: it goes on with what the options name.

    Errors as for `build` and `resume`.
    """
    if not isinstance(start, str | Run):
        raise UsageError(f"A task is a text, not {start!r}.")
    begun = _begin(start, options) if isinstance(start, str) else _go_on(start, options)
    setup, models, sharing, checks, warnings = begun
    setup = setup.replace(
        weak_critic=setup.limits.critique != "always" and is_weak(models.reader, "critic"),
        weak_editor=is_weak(models.model, "editor"),
    )
    suite = None
    if setup.task.is_python and find_spec("pytest") is not None:
        from ipyrefine.checks.suite import Suite

        suite = Suite(options.variables.copies)
    earlier = () if isinstance(start, str) else start.iterations
    written = [one.text for one in earlier if one.author == "user"]
    texts = (setup.task.request, setup.draft or "", *setup.prompts.values(), *written)
    secrets = Secrets(*texts)
    return Refinement(
        setup if isinstance(start, str) else start.replace(setup=setup),
        model=Masked(models.model, secrets),
        judge=models.judge and Masked(models.judge, secrets),
        checks=_knowing_names(checks, options.keeps),
        clock=monotonic,
        warnings=warnings,
        suite=suite,
        selection=_select(setup.draft, options.lines),
        sharing=sharing,
        named=options.variables.named,
    )


def _knowing_names(checks: Sequence[Check], keeps: Sequence[str]) -> list[Check]:
    """Return checks, of which one reads names; those that run a text want some defined by it."""
    from ipyrefine.checks.python import RunsCleanly
    from ipyrefine.checks.undefined import NameReader

    ready = list(checks)
    kind = RunsCleanly if any(isinstance(one, RunsCleanly) for one in ready) else NameReader
    for place, one in enumerate(ready):
        if isinstance(one, kind):
            ready[place] = one.knowing(checks)
            break
    return [
        one.requiring(keeps) if keeps and isinstance(one, RunsCleanly) else one for one in ready
    ]


def _begin(text: str, options: Options) -> _Begun:
    if not text.strip() and not (options.draft or "").strip():
        raise UsageError("There is nothing to refine. Write a task or a draft.")
    text, options = _read_template(text, options)
    models = Models(NoWriter(), None) if options.is_look else choose_models(options)
    sharing = choose_sharing((models.model, models.reader), options.share)
    draft, variables = options.draft, options.variables
    chosen = choose_profile(
        options.profile,
        draft=draft,
        checks=options.checks,
        namespace=options.namespace,
        language=options.language,
        writer=models.model,
    )
    target = chosen.limited(options.limits).target
    checks = resolve(options.checks, options.namespace or {}, target=target, variables=variables)
    limits, prompts = _settle_limits(chosen, options, models, checks)
    language = pygments_name(options.language or "")
    if draft is None and is_weak(models.model, "editor"):
        language = language or "python"
    elif draft is not None:
        language = language or language_of(draft)
    if draft is not None and chosen.name != "prose" and (fenced := read_fence(draft)):
        draft = fenced.text
    ipython_lines = python_part(draft).lines if draft and chosen.form == "code" else ()
    asked = _request(text, chosen.form, checks, ipython_lines, _select(draft, options.lines))
    make_task = partial(
        Profile.task,
        text=asked,
        criteria=tuple(options.criteria),
        checklist=None if options.checklist is None else tuple(options.checklist),
        categories=tuple(options.categories),
        language=language,
    )
    room = _EMBEDDED_ROOM if models.are_embedded else _ROOM
    cells = [one for one in options.cells if one.kind != "definitions" or not models.are_embedded]
    if sharing.level == "structure":
        code, structure = "the code of", "names and calls of"
        cells = [one.replace(phrase=one.phrase.replace(code, structure)) for one in cells]
    materials = (*variables.materials(room), *cells)
    if prompts.is_own(Stage.DRAFT) and limits.critique == "never":  # nobody else sees more
        materials = only_named(materials, variables.named)
    task, words = make_task(chosen).replace(materials=materials), None
    replays = getattr(models.model, "replays", False)
    there = variables.copies.are_there and (variables.hold_data or not replays)
    # A table's texts are tried by their results, and one of its is no cell.
    looks = draft is not None and isinstance(models.model, NoWriter) and options.attempts is None
    looks = looks and options.model is not models.model and not models.judge
    found, phrases = find_demands(
        task,
        checks,
        without=options.no_checks,
        copies=variables.copies,
        runs=task.is_python and (there or looks),
    )
    own = tuple(one.name for one in checks)
    if chosen.or_words and draft is None:
        known = [one for one in profiles.builtin().values() if one.form == "prose"]
        others = (one for one in known if one.name not in ("prose", "data"))
        tasks = tuple(map(make_task, [profiles.find("prose"), *others]))
        of_words, said = find_demands(tasks[0], checks, without=options.no_checks)
        words = Words(tasks=tasks, checks=tuple(one.name for one in of_words), demands=said)
        checks = (*checks, *of_words)
    checks, demands = (*checks, *found), [*phrases]
    if looks:
        from ipyrefine.checks.python import RunOnCopies

        checks = tuple(one.looking() if isinstance(one, RunOnCopies) else one for one in checks)
    if (task.is_python and checks and variables.names) or any(one.computed for one in cells):
        demands += filter(None, [sharing_phrase(sharing)])
    if masked := len(Secrets(text, draft or "", *prompts.own().values()).masks):
        demands.append(f"{count(masked, 'secret')} masked")
        words = words and words.replace(demands=(*words.demands, demands[-1]))
    warnings = [*options.warnings, *filter(None, [variables.left_out, sharing.notice])]
    if unrun := [one for one in ipython_lines if not one.startswith("%time ")]:
        listed = ", ".join(unrun[:3]) + ", …" * (len(unrun) > 3)
        warnings.append(f"Kept as they are, and never run by checks: {listed}")
    if limits.budget.cost is not None:
        for one in (models.model, models.reader):
            if one.name and price_of(one) is None:
                raise UsageError(f"{one.name}: {PRICE_UNKNOWN}")
    setup = Setup(
        task=task,
        words=words,
        own=own,
        limits=limits,
        draft=draft,
        wish=options.wish,
        prompts=prompts.own(),
        demands=tuple(demands),
        attempts=None if options.attempts is None else tuple(options.attempts),
        is_look=looks,
    )
    return setup, models, sharing, checks, warnings


def _read_template(text: str, options: Options) -> tuple[str, Options]:
    """Return the task of a pasted template, and the options that its four stages stand for.

    Each of its texts is criticised. Its drafts get no verdict, as they are revised in any case; so
    the four stages are four calls.
    """
    template = read_template(text)
    if template is None:
        return text, options
    stages = {"critique": "always", "verify_drafts": False}
    if template.min_findings:
        stages["min_findings"] = template.min_findings
    own = options.limits.model_dump(exclude_unset=True)
    checklist = template.checklist or () if options.checklist is None else options.checklist
    unfilled = [f"The template still has {one} in it. Fill it in." for one in template.placeholders]
    unread = [
        f"{one} wasn't read as a stage. Write it like [ITERATION 2]." for one in template.unread
    ]
    return template.task, replace(
        options,
        prompts=template.prompts(options.prompts),
        limits=Limits.model_validate(stages | own),
        checklist=checklist,
        categories=options.categories or template.categories,
        warnings=(*options.warnings, *unfilled, *unread),
    )


def _settle_limits(
    chosen: Profile, options: Options, models: Models, checks: Sequence[Check]
) -> tuple[Limits, Prompts]:
    limits, prompts = chosen.limited(options.limits), options.prompts
    require_answer(prompts.own())
    own = set(options.limits.model_fields_set)
    if profiles.builtin().get(chosen.name) is not chosen:
        own |= chosen.limits.model_fields_set
    if "max_tokens" not in own and not models.are_embedded:
        limits = limits.replace(max_tokens=None)
    if options.attempts is not None:
        limits = limits.replace(max_revisions=0)
    function = any(getattr(check, "is_evaluator", False) for check in checks)
    if "target" in own and not prompts.judge and not function:
        prompts = prompts.replace(judge=SCORE)
    critique = limits.critique
    if critique == "auto" and (prompts.judge or function):
        critique = "never"  # their evaluator says what is wrong; a critique breaks its loop
    elif critique == "auto" and (
        options.criteria or "min_findings" in own or "critique" in prompts.own()
    ):
        critique = "always"
    if isinstance(models.reader, NoWriter) and (critique == "always" or prompts.judge):
        raise NoModel(NO_MODEL)
    return limits.replace(critique=critique), prompts


def _go_on(run: Run, options: Options) -> _Begun:
    """Return how a run goes on: who wrote and read does so still, unless others are named."""
    setup, judge, variables = run.setup, options.judge, options.variables
    if not judge and setup.judge != setup.model:
        judge = _named_model(setup.judge)
    model = options.model or _named_model(setup.model)
    asked = replace(options, model=model, judge=judge, price=setup.price)
    models = choose_models(replace(asked, draft=setup.draft, limits=setup.limits))
    target = run.limits.target
    own = resolve(options.checks, options.namespace or {}, target=target, variables=variables)
    checks = from_record(setup.checks, own, variables=variables)
    if (names := tuple(check.name for check in checks)) != setup.checks:
        raise UsageError(
            f"This run has the checks {', '.join(setup.checks) or '(none)'}, not "
            f"{', '.join(names) or '(none)'}. Name the same ones to continue it."
        )
    limits = setup.limits
    if limits.max_tokens in (None, _EMBEDDED_TOKENS):  # maybe the other kind's default
        limits = limits.replace(max_tokens=_EMBEDDED_TOKENS if models.are_embedded else None)
    looks = setup.is_look and not models.model.name
    if setup.is_look and not looks:  # nobody read it for want of a model
        limits = limits.replace(critique="auto")
    setup = setup.replace(limits=limits, model=models.model.name, judge=models.reader.name)
    setup = setup.replace(is_look=looks)
    sharing = choose_sharing((models.model, models.reader), options.share)
    return setup, models, sharing, checks, [*filter(None, [sharing.notice])]


def _named_model(name: str) -> str:
    """Return the name of a run's model; refuse a file that the reader did not name."""
    from ipyrefine.providers.replay import PREFIX

    if name.startswith(PREFIX) and name != os.environ.get("IPYREFINE_MODEL"):
        raise UsageError(
            f"This run's model is the recording {name.removeprefix(PREFIX)}. To read that file, "
            f"name the model {name!r} yourself."
        )
    return name


@takes_options
async def refine(
    text: str,
    *,
    on_event: "Consumer | None" = None,
    journal: bool = True,
    name: str = "",
    **options: Any,
) -> Run:
    """Refine a text to the loop's own stop and return the run.

    Of the limits, ``max_revisions`` without ``patience`` switches patience off, and ``target``
    without ``critique`` critiques.

    Args:
        text: the task in words.
        on_event: called with every event and the run after it.
        journal: whether the run is kept in the journal.
        name: its name there; made from the task by default.
        **options: the options and limits below; a limit wins over ``limits``.

    Raises:
        UsageError: an option cannot be used.
        NoModel: no model is configured.
        ModelError: the model failed; the error's ``run`` holds the best text so far.
        JournalError: the journal cannot be written; the error's ``run`` is as for `ModelError`.
    """
    require_kinds(on_event=on_event, journal=journal, name=name)
    refinement = make(text, read_options(options))
    return await finish(refinement, open_journal(journal, name=name), on_event)


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
    refinement = Refinement(run, model=NoWriter(), clock=monotonic)
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


def choose_profile(
    profile: ProfileLike | None,
    *,
    draft: str | None = None,
    checks: Sequence[CheckLike] = (),
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
        chosen = profiles.find(profiles.name_by_draft(draft))
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


def _select(draft: str | None, lines: tuple[int, int] | None) -> Selection | None:
    if lines is None:
        return None
    if [type(one) for one in lines] != [int, int]:
        raise UsageError(f"lines is a pair of line numbers, not {lines!r}.")
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
