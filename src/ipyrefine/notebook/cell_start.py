"""Build the run of a cell: a new one, the record of a decided one, or an earlier one resumed."""

import argparse
import builtins
import keyword
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any, Literal

from pydantic import ValidationError

from ipyrefine import api, checks
from ipyrefine.core.languages import language_of
from ipyrefine.core.model import Attempt, Form, Record
from ipyrefine.core.template import read_template
from ipyrefine.errors import NoModel, NoModelYet, RefineError, UsageError
from ipyrefine.journal.store import Journal, Stored
from ipyrefine.journal.writer import open_journal
from ipyrefine.kernel import variables
from ipyrefine.kernel.describe import outlines
from ipyrefine.notebook import options
from ipyrefine.notebook.cell_run import CellRun, Made
from ipyrefine.notebook.cell_source import (
    CellKey,
    CellSource,
    cell_key,
    exact_body,
    is_words,
    latest_names,
    names_of_judges,
    read_definitions,
    read_rules,
    read_source,
    request_of,
    visible_names,
)
from ipyrefine.notebook.cell_target import (
    Origin,
    is_cell_id,
    is_headless,
    notebook_cells,
    source_cell_id,
    source_cell_text,
)
from ipyrefine.notebook.waiting import Placeholder
from ipyrefine.providers.choose import RECORD, NoWriter, is_recording
from ipyrefine.providers.faults import safe_url
from ipyrefine.session.history import find_earlier
from ipyrefine.session.record import DECIDED, saved_run

# The options that `%refine resume` takes; the run's start settled all others.
_RESUME_OPTIONS = {
    "model", "judge", "base_url", "api_key_env", "timeout", "effort", "share",
    "check", "var", "output", "apply", "journal", "plain", "quiet", "unconfined", "above",
}  # fmt: skip
_LOOK = (
    "Look before you run: %%look shows without a model what this cell gives and does to your data, "
    "on a copy."
)
_ALREADY_DECIDED = "Already decided. Add `--again` to run it again."


class Settings(Record):
    """What the journal keeps of a run's options, to resume it."""

    check: tuple[str, ...] = ()
    var: tuple[str, ...] = ()
    output: str = ""
    apply: Literal["ask", "insert", "replace", "none"] | None = None
    cell: str = ""  # that its text is from
    lines: tuple[int, int] | None = None  # that may change
    base_url: str = ""  # without credentials
    source: str = ""  # what that cell held
    head: str = ""  # what stays above the text there
    key: str = ""  # what the cell that ran it is recognised by
    task: str = ""  # what its task and options are
    keeps: tuple[str, ...] = ()  # the names that its texts must define


async def start_cell(
    magics: Any, line: str, body: str, placeholder: Placeholder, *, aside: bool = False
) -> CellRun | None:
    """Build the run of a cell; None where it is decided and its record was shown.

    One that stands `aside` is only shown: it binds no names, no journal keeps it, and of the
    options for all cells only the consent to run code holds.

    Raises:
        UsageError: an option or the body cannot be used; no model was called.
        NoModel: no model is configured; `NoModelYet` where the cell can be looked at without one.
        JournalError: the journal cannot be read.
    """
    defaults = {
        name: it for name, it in magics.set.items() if not aside or name in ("unconfined", "above")
    }
    args, body = options.parse(line, defaults), exact_body(body)
    args.journal = args.journal and not aside
    key = cell_key(shlex.split(line), body)
    if await show_decided(magics, args, key):
        return None
    source = read_source(args, body, magics.shell)
    if args.change and not (args.task or args.cell):
        source = source._replace(is_draft=True)

    async def begin(form: Form | None = None) -> Made:
        return make_run(magics, args, source, key, form=form)

    try:
        made = await begin()
    except NoModel as error:
        if source.is_draft or not is_words(body, magics.shell):
            raise NoModelYet(f"{_LOOK}\n{error}") from None
        raise
    if made.refinement.state.setup.is_look:
        key = CellKey()  # it is about the data of the moment, and never decided
    return CellRun(
        magics, args, made, placeholder, origin=source.origin, key=key, begin=begin, aside=aside
    )


async def show_decided(
    magics: Any, args: argparse.Namespace, key: CellKey, *, anywhere: bool = True
) -> bool:
    """Show the record of a cell's run if the user has decided it, and return True if so.

    It is the run of a cell with the same id, options and text, in this kernel or in the journal.
    Headless there is no id: it is the run in the cell's own output, where `ipyrefine run` names the
    file, or else, with `anywhere`, that of a cell with the same options and text.

    Raises:
        JournalError: the journal cannot be read.
    """
    if args.again:
        magics.decided.pop(key.cell, None)
        return False
    run = magics.decided.get(key.cell)
    if run is None:
        earlier = _find_decided(magics, args, key, anywhere=anywhere)
        if earlier is None:
            return False
        run = await _reopen(magics, args, earlier, key)
    magics.register(run).show_again(_ALREADY_DECIDED)
    return True


def _find_decided(
    magics: Any, args: argparse.Namespace, key: CellKey, *, anywhere: bool
) -> Stored | None:
    """Return the decided run of a cell; None where none is, or several cells' texts differ."""
    found, journal = [], Journal()
    kept = args.journal and magics.journal and open_journal() is not None
    headless = not key.cell and is_headless() and not os.environ.get(RECORD)
    if headless:
        source = (source_cell_text() or "").rstrip("\n")
        ran = magics.shell.history_manager.input_hist_raw
        if own := saved_run(key.task, source, ran.count(source)):
            found = [Stored(own, {}, None)]
        elif kept and anywhere:  # nothing is added to a run that a person decided
            found = [Stored(one.run, {}, None) for one in journal.find_setting("task", key.task)]
    elif kept and key.cell:
        found = journal.find_setting("key", key.cell)
    decided = [one for one in found if one.run.stop_reason in DECIDED and not one.run.setup.is_look]
    return decided[0] if len({one.run.text for one in decided}) == 1 else None


async def _reopen(magics: Any, args: argparse.Namespace, earlier: Stored, key: CellKey) -> CellRun:
    """Build the run of a decided cell, also where its model or a check is not here any more."""
    try:
        return await _resume(magics, args, earlier, key)
    except RefineError:
        args.model = args.judge = NoWriter()
        args.check, args.var, run = [], [], earlier.run
        bare = run.replace(setup=run.setup.replace(checks=()))
        reopened = await _resume(magics, args, Stored(bare, {}, earlier.journal), key)
        reopened.session.refinement.state = run
        return reopened


def make_run(
    magics: Any,
    args: argparse.Namespace,
    source: CellSource,
    key: CellKey,
    *,
    near: Sequence[str] = (),
    form: Form | None = None,
    keeps: Sequence[str] = (),
    **more: Any,
) -> Made:
    """Make what a cell asks for, with a journal that holds what resuming it needs.

    `near` are further names that it may be about, `keeps` those that its texts must define, and
    `more` further options; a form overrules the cell and the options. Errors as for `start_cell`.
    """
    if args.goal and not source.is_draft:
        raise UsageError(
            "--goal says how to improve a draft, but this cell is a task. Put the goal into the "
            "cell, or add --draft if the cell is the text to improve."
        )
    visible, own = visible_names(magics.shell), [source.text]
    if isinstance(visible.get(args.judge), FunctionType):  # no model has its name
        args.check, args.judge = [*args.check, args.judge], None
    wish = "\n\n".join(filter(None, (source.wish, args.change)))
    text, hidden = request_of(args, source), names_of_judges(magics.shell, args, source)
    own += [source.origin.source] if source.origin else []
    given = _given(magics, args) | {
        "criteria": options.split_list(args.criteria or ""),
        "language": source.language,
        "draft": source.text if source.is_draft else None,
        "wish": wish,
        "attempts": _attempts(magics, args, source, text),
        "lines": _lines_below(source.head, args.lines),
        "limits": options.limits(args),
        "prompts": _prompts(args.prompts, visible),
        "keeps": keeps,
        **more,
        "warnings": [*source.warnings, *more.get("warnings", ())],
    }
    if args.cell and source.is_draft:
        given.setdefault("profile", "code")
    read = api.read_options(given)
    if not (source.is_draft or read.profile or form):
        read = replace(read, model=api.choose_models(read).model)
    profile = api.choose_profile(
        read.profile,
        draft=read.draft,
        checks=read.checks,
        namespace=visible,
        language=read.language,
        form=form,
        writer=None if isinstance(read.model, str) else read.model,
    )
    is_code = profile.form == "code"
    count = magics.context if args.context is None else args.context
    language = read.language or (language_of(read.draft) if read.draft else "python")
    if (
        not is_code
        or language not in ("python", "sql")
        or "all" in args.no_var
        or read_template(text)
        or is_recording(args.model or magics.model)  # it is asked what it was asked
    ):
        count = 0
    before = latest_names(magics.shell, count, own, hidden)
    used = variables.find(
        partial(visible_names, magics.shell),
        text=text,
        bare=is_code,
        draft=source.code if is_code else "",
        named=args.var,
        without=args.no_var,
        more=near,
        cells=before,
        hidden=hidden,
        **_how_to_copy(magics, args),
    )
    code = read_definitions(magics.shell, used.names, own, hidden)
    modules = (n for n, one in visible.items() if type(one) is ModuleType and n[0] != "_")
    others = [*chain(*before), *modules]
    beside = {n: visible[n] for n in others if n not in {*used.names, *args.no_var}}
    names = outlines(beside) if before and used.names else None
    rules = read_rules(magics.rules) if magics.rules else None
    cells = [*read.cells, *filter(None, [names, code, rules])]
    read = replace(read, profile=profile, variables=used, cells=cells)
    origin = source.origin or Origin("", "")
    typed = {name: value for name, value in vars(args).items() if name in Settings.model_fields}
    kept = typed | {
        "base_url": safe_url(read.base_url) if read.base_url else "",
        "source": origin.source,
        "head": origin.head,
        "key": key.cell,
        "task": key.task,
        "keeps": keeps,
    }
    stored = {name: value for name, value in kept.items() if value}
    refinement = api.make(text, read)
    journal = open_journal(args.journal and magics.journal, name=args.name or "", settings=stored)
    return Made(refinement, journal, read)


def _given(magics: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Return what a cell's options, or else the traits, say of a run's options, by their names."""
    names = [one.name for one in fields(api.Options)]
    said = {
        name: value
        for owner in (magics.trait_values(config=True), vars(args))
        for name, value in owner.items()
        if name in names and value not in (None, "")
    }
    return said | {
        "api_key": options.read_key(args, magics),
        "checks": args.check,
        "no_checks": args.no_check,
        "namespace": visible_names(magics.shell),
        "draft": None,  # the option says of the cell that it is one
        "prompts": None,  # that is a variable's name
    }


def _attempts(
    magics: Any, args: argparse.Namespace, source: CellSource, text: str
) -> tuple[Attempt, ...] | None:
    """Return a student's predictions in the last run of the same task; None without --coach."""
    if not args.coach:
        return None
    if not source.is_draft:
        raise UsageError(
            "--coach found no Python below the task. Write your code there, after a blank line."
        )
    latest = magics.latest.session.run if magics.latest else None
    again = latest and latest.setup.coach and latest.task.text == text
    return latest.attempts if latest and again else ()


def _lines_below(head: str, lines: Sequence[int] | None) -> tuple[int, int] | None:
    """Return a range of a cell's lines as one of the draft below its head."""
    if not lines:
        return None
    first, last = (line - head.count("\n") for line in lines)
    return max(first, min(1, last)), last


def _prompts(name: str | None, namespace: Mapping[str, Any]) -> Mapping[str, str] | None:
    if name is None:
        return None
    prompts = variables.gather([name], namespace)[name]
    if not isinstance(prompts, Mapping) or not prompts:
        raise UsageError(f"--prompts: {name} must be a dict of prompts by stage.")
    return prompts


# An earlier run


async def resume_run(magics: Any, words: list[str]) -> CellRun:
    """Build the run that continues an earlier one: ``[NAME | FILE.ipynb [k]] [options]``.

    What the run took from a notebook, or sent to a server that is not configured here, has to be
    named again: nothing that a file says is called, and nothing is sent where it says.

    Raises:
        UsageError: there is no such run, an option cannot be used, or one has to be named again.
        JournalError: the journal cannot be read.
        NoModel: the run's model is not available here.
    """
    first_option = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    args = options.parse(words[first_option:])
    for name, default in vars(options.parse([])).items():
        if name not in _RESUME_OPTIONS and getattr(args, name) != default:
            settled = f"{options.spell(name)} was settled when the run started."
            raise UsageError(f"{settled} Resume without it.")
    args = options.parse(words[first_option:], magics.set)
    earlier = find_earlier(words[:first_option], journal=args.journal and magics.journal)
    return await _resume(magics, args, earlier)


async def _resume(
    magics: Any, args: argparse.Namespace, earlier: Stored, key: CellKey | None = None
) -> CellRun:
    """Build the run that continues an earlier one; without a panel for the cell of a `key`."""
    try:
        settings = Settings.model_validate(earlier.settings)
    except ValidationError:
        settings = Settings()
    namespace, run = visible_names(magics.shell), earlier.run
    args.output = args.output or _free_name(settings.output, namespace)
    args.apply = args.apply or settings.apply
    args.cell = settings.cell if is_cell_id(settings.cell) else None
    origin = None
    if args.cell and settings.source:
        origin = Origin(args.cell, settings.source, settings.head)
    used = _variables_of(earlier, args, magics)
    own = checks.resolve(args.check, namespace, target=run.limits.target, variables=used)
    _require_named_again(run.setup.checks, own, settings, args, magics)
    # A model may be a file's name, which counts only if it is configured here too.
    model = magics.model if magics.model == run.setup.model else ""
    judge = magics.judge or magics.model
    judge = judge if judge == run.setup.judge else ""
    read = api.read_options(
        _given(magics, args)
        | {
            "model": args.model or model or None,
            "judge": args.judge or judge or None,
            "checks": own,
            "variables": used,
            "keeps": settings.keeps,
            "lines": _lines_below(settings.head, settings.lines),
        }
    )
    made = Made(api.make(run, read), earlier.journal, read)
    named = key or CellKey(settings.key, settings.task)
    return CellRun(magics, args, made, origin=origin, key=named, shown=key is None)


def _require_named_again(
    needed: Sequence[str],
    own: Sequence[Any],
    stored: Settings,
    args: argparse.Namespace,
    magics: Any,
) -> None:
    """Refuse to take from a file what only the reader can choose; say with which options."""
    functions = checks.needs_reader(needed, own)
    # The options of its start know a lambda by its variable.
    asked = [one for one in stored.check if not checks.is_self_contained(one)]
    unnamed = [one for one in asked if one not in args.check]
    missing = [("--check", one) for one in (unnamed or functions) if functions]
    missing += [("--var", one) for one in stored.var if one not in args.var]
    server = args.base_url or magics.base_url or os.environ.get("OPENAI_BASE_URL") or ""
    if stored.base_url and stored.base_url not in (server, safe_url(server)):
        missing.append(("--base-url", stored.base_url))
    if missing:
        words = " ".join(f"{option} {shlex.quote(value)}" for option, value in missing)
        raise UsageError(f"A file can't choose what runs or is sent here. To resume, add {words}.")


def _free_name(name: str, namespace: Mapping[str, Any]) -> str | None:
    """Return the variable that a run of the journal leaves its text in, if it hides nothing."""
    if not name.isidentifier() or name.startswith("_"):
        return None
    taken = hasattr(builtins, name) or keyword.iskeyword(name) or callable(namespace.get(name))
    return None if taken or isinstance(namespace.get(name), ModuleType) else name


def _variables_of(earlier: Stored, args: argparse.Namespace, magics: Any) -> variables.Variables:
    materials = earlier.run.task.materials if earlier.began_here else ()
    names = [one.name for one in materials if one.kind == "variable"]
    namespace = visible_names(magics.shell)
    found = {name: namespace[name] for name in names if name in namespace}
    chosen, copies = variables.gather(args.var, namespace), None
    if earlier.began_here:
        everything = partial(visible_names, magics.shell)
        copies = variables.Copies(everything, named=chosen, **_how_to_copy(magics, args))
    return variables.Variables(chosen, found, copies=copies)


def _how_to_copy(magics: Any, args: argparse.Namespace) -> dict[str, Any]:
    history = magics.shell.history_manager
    return {
        "moment": lambda: len(history.input_hist_raw),
        "unconfined": lambda: bool(args.unconfined),
        "above": lambda: args.above or 0,
        "notebook": partial(notebook_cells, args.cell or source_cell_id()),
    }
