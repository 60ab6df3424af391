"""A cell's run: from its options and body to a refinement, its displays and its accepted text."""

import argparse
import asyncio
import builtins
import contextlib
import hashlib
import json
import keyword
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from ipyrefine import api, checks
from ipyrefine.checks.schema import Schema
from ipyrefine.core.decisions import Accept, Continue, Decision
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, Stopped
from ipyrefine.core.model import Form, Material, StopReason
from ipyrefine.core.ports import Check
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import KEPT_HERE, Level
from ipyrefine.errors import Interrupted, RefineError, UsageError, describe, did_you_mean
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import Recorder, open_journal
from ipyrefine.kernel import variables
from ipyrefine.kernel.magics import has_python_beside_magics
from ipyrefine.notebook import options
from ipyrefine.notebook.blocking import caller_waits
from ipyrefine.notebook.cell_target import (
    CellTarget,
    Origin,
    button_press,
    is_cell_id,
    source_cell_id,
    source_cell_text,
)
from ipyrefine.notebook.placeholder import NO_ANYWIDGET, Placeholder
from ipyrefine.notebook.source_cell import SourceCell, read_code_cell
from ipyrefine.profiles.recognise import is_python, read_fence
from ipyrefine.providers.faults import safe_url
from ipyrefine.providers.remote import mark_asked, remember_sharing
from ipyrefine.render import labels
from ipyrefine.render.markdown import fence
from ipyrefine.session.commands import ANSWERS, PLACES, Place
from ipyrefine.session.history import Earlier, find_earlier
from ipyrefine.session.record import RecordDisplay
from ipyrefine.session.session import SentLog, Session

# The options that `%refine resume` takes; the run's start settled all others.
_RESUME_OPTIONS = {
    *("model", "judge", "base_url", "api_key_env", "timeout", "effort", "share"),
    *("check", "var", "output", "apply", "journal", "plain", "quiet"),
}
# What a run in the journal remembers of its options.
_STORED_OPTIONS = ("check", "var", "output", "apply", "cell", "lines")
_DECIDED = (StopReason.ACCEPTED, StopReason.OVERRIDDEN)
_ALREADY_DECIDED = "You decided this run already. Add --again to refine anew."
_CONFIGURED_LIMITS = ("max_revisions", "target", "patience")


def start_run(
    magics: Any, line: str, body: str, placeholder: Placeholder, cells: Material | None = None
) -> "CellRun":
    """Build the run of a `%%refine` cell.

    Args:
        magics: the configured magics, with their shell.
        line: the options.
        body: the cell below them.
        placeholder: the panel's place in the cell's output.
        cells: cells of the notebook that the model is shown.

    Raises:
        UsageError: an option or the body cannot be used; no model was called.
        NoModel: no model is configured.
    """
    args = options.parse(line)
    if not body.strip():
        raise UsageError("The cell is empty. Write a task or a draft below %%refine.")
    body = _exact(body)
    source = _read_source(args, body, magics.shell)
    origin = Origin(args.cell, body, source.head) if args.cell else None
    key = cell_key(shlex.split(line), body)

    def begin(form: Form | None = None) -> tuple[Refinement, Recorder | None]:
        refinement = build(magics, args, source, [cells] if cells else [], form=form)
        return refinement, _new_journal(magics, args, origin, key)

    return CellRun(magics, args, *begin(), placeholder, origin=origin, key=key, begin=begin)


def new_run(
    magics: Any,
    args: argparse.Namespace,
    refinement: Refinement,
    placeholder: Placeholder,
    *,
    origin: Origin | None,
    key: str,
    keeps: Sequence[str] = (),
) -> "CellRun":
    """Return the run of a new refinement.

    Args as for `CellRun`, and ``keeps``: names that its texts must define, also once it is resumed.
    """
    journal = _new_journal(magics, args, origin, key, keeps)
    return CellRun(magics, args, refinement, journal, placeholder, origin=origin, key=key)


def _new_journal(
    magics: Any,
    args: argparse.Namespace,
    origin: Origin | None,
    key: str,
    keeps: Sequence[str] = (),
) -> Recorder | None:
    """Return the journal of a new run, with what resuming it needs."""
    settings = _stored_settings(args, args.base_url or magics.base_url)
    settings |= {"keeps": list(keeps)} if keeps else {}
    if origin:
        settings |= {"source": origin.source, "head": origin.head}
    if key:
        settings["key"] = key
    return open_journal(args.journal and magics.journal, name=args.name or "", settings=settings)


def show_decided(magics: Any, line: str, body: str) -> bool:
    """Show the record of this very cell if the user has decided its run, and return whether.

    It is the run of a cell with the same id, options and text, in this kernel or in the journal.

    Args:
        magics: the configured magics, with their shell.
        line: the options.
        body: the cell below them.

    Raises:
        UsageError: the options cannot be read.
        JournalError: the journal cannot be read.
    """
    return show_decided_run(magics, options.parse(line), cell_key(shlex.split(line), _exact(body)))


def show_decided_run(magics: Any, args: argparse.Namespace, key: str) -> bool:
    """Show the record of a cell's run if the user has decided it, and return whether.

    Args:
        magics: the configured magics, with their shell.
        args: the options.
        key: what the cell is recognised by (see `cell_key`).

    Raises:
        JournalError: the journal cannot be read.
    """
    if args.again:
        magics.decided.pop(key, None)
    if args.again or not key:
        return False
    run = magics.decided.get(key)
    if run is None:
        kept = args.journal and magics.journal and open_journal() is not None
        stored = Journal().find_setting("key", key) if kept else None
        if stored is None or stored.run.stop_reason not in _DECIDED:
            return False
        try:
            run = _resume(
                magics,
                args,
                Earlier(stored.run, stored.settings, Journal().recorder(stored)),
                shown=False,
            )
        except RefineError:  # its model or a check is not here; it can be read all the same
            variable = args.output or "refined"
            magics.shell.user_ns |= {variable: stored.run.text, "refined_run": stored.run}
            RecordDisplay().show(stored.run, note=_ALREADY_DECIDED)
            return True
    magics.register(run).show_again(_ALREADY_DECIDED)
    return True


def cell_key(words: Sequence[str], body: str = "") -> str:
    """Return what the running cell is recognised by; empty where the front-end does not name it.

    Args:
        words: its command or options.
        body: the text below them.
    """
    cell_id = source_cell_id()
    if cell_id is None:
        return ""
    words = [word for word in words if word != "--again"]
    identity = [cell_id, button_press(), words, body]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def _exact(body: str) -> str:
    """Return a cell's body as the front-end holds it, to which IPython has added a line end."""
    _, _, held = (source_cell_text() or "").lstrip("\n").partition("\n")
    return held if held.rstrip("\n") == body.rstrip("\n") else body


def _read_source(args: argparse.Namespace, body: str, shell: Any) -> SourceCell:
    """Return the cell as a task or a draft."""
    if args.cell and args.profile in (None, "code"):
        source = read_code_cell(body, shell)
        if args.draft and not source.is_draft:
            return SourceCell(body, True)
        return source._replace(is_draft=source.is_draft and not args.task)
    is_code = has_python_beside_magics(body) or is_python(body) or read_fence(body) is not None
    return SourceCell(body, args.draft or (not args.task and is_code))


def build(
    magics: Any,
    args: argparse.Namespace,
    source: SourceCell,
    cells: Sequence[Material] = (),
    names: Sequence[str] = (),
    warnings: Sequence[str] = (),
    form: Form | None = None,
) -> Refinement:
    """Build the refinement that a cell asks for; errors as for `start_run`.

    Args:
        magics: the configured magics, with their shell.
        args: the options.
        source: the cell.
        cells: the cells above it that the model is shown, and what it raised.
        names: further names of the notebook that it may be about.
        warnings: what the user should know before the first call.
        form: ``code`` or ``prose``, whatever the cell and the options say.
    """
    namespace, visible = magics.shell.user_ns, visible_names(magics.shell)
    if args.goal and not source.is_draft:
        raise UsageError(
            "--goal says how to improve a draft, but this cell is a task. Put the goal into the "
            "cell, or add --draft if the cell is the text to improve."
        )
    text = (args.goal or "") if source.is_draft else source.text.strip()
    draft = source.text.rstrip("\n") if source.is_draft else None
    if draft is not None and not args.lines:
        draft = draft.strip("\n")
    in_python = draft is not None and has_python_beside_magics(draft)
    language = args.language or source.language or ("python" if in_python else None)
    profile = api.choose_profile(
        args.profile or ("code" if args.cell else None),
        text,
        draft=draft,
        checks=args.check,
        namespace=visible,
        language=language,
        form=form,
    )
    configured = {name: getattr(magics, name) for name in _CONFIGURED_LIMITS}
    limits = options.limits(args, {name: n for name, n in configured.items() if n is not None})
    target = profile.limited(limits).target
    used = variables.find(
        visible,
        text=text,
        bare=profile.form == "code",
        draft=_python_of(draft) if profile.form == "code" and language in (None, "python") else "",
        named=args.var,
        without=[*args.no_var, *(["all"] if magics.variables == "none" else [])],
        more=names,
    )
    return api.build(
        text,
        model=args.model or magics.model or None,
        judge=args.judge or magics.judge or None,
        price=args.price or magics.price or None,
        **_server(magics, args),
        share=args.share or magics.share,
        checks=checks.resolve(args.check, namespace, target=target, variables=used),
        no_checks=args.no_check,
        profile=profile,
        criteria=options.split_list(args.criteria or ""),
        checklist=_checklist(args.checklist, namespace),
        categories=options.split_list(args.categories or ""),
        language=language,
        variables=used,
        cells=cells,
        draft=draft,
        lines=_lines_below(source.head, args.lines),
        limits=limits,
        prompts=_prompts(args.prompts, namespace),
        warnings=[*_head_warning(source), *warnings],
    )


def _server(magics: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Return how servers are asked, as `api.build` takes it, with what reads the key.

    Raises:
        UsageError: the variable that should hold the key is not set.
    """
    # The setting is for the server of the settings. A cell that names another may be a stranger's.
    name = args.api_key_env or ("" if args.base_url else magics.api_key_env)
    if name and not os.environ.get(name):
        raise UsageError(
            "The variable that --api-key-env or Refine.api_key_env names is not set. Set it to the "
            "server's key."
        )
    return {
        "api_key": (lambda: os.environ.get(name, "")) if name else None,
        "base_url": args.base_url or magics.base_url or None,
        "timeout": magics.timeout if args.timeout is None else args.timeout,
        "effort": args.effort,
        "extra": magics.extra,
    }


def _head_warning(source: SourceCell) -> list[str]:
    """Return a sentence on the cell magic that stays above a draft, if there is one."""
    magic = source.head.strip()
    is_magic = source.is_draft and magic.startswith("%%")
    return [f"Kept as it is, and never run by checks: {magic}"] if is_magic else []


def _python_of(draft: str | None) -> str:
    """Return the Python of a draft; empty where that is in another language."""
    fenced = read_fence(draft or "")
    if fenced is None:
        return draft or ""
    return fenced.code if fenced.language == "python" else ""


def visible_names(shell: Any) -> dict[str, Any]:
    """Return the user's variables, without those that IPython put there."""
    hidden, missing = getattr(shell, "user_ns_hidden", {}), object()
    return {n: v for n, v in shell.user_ns.items() if hidden.get(n, missing) is not v}


def resume_run(magics: Any, words: list[str]) -> "CellRun":
    """Build the run that continues an earlier one: ``[NAME | FILE.ipynb [k]] [options]``.

    What the run took from a notebook, or sent to a server that is not configured here, has to be
    named again: nothing that a file says is called, and nothing is sent where it says.

    Args:
        magics: the configured magics, with their shell.
        words: which run, and the options it continues with.

    Raises:
        UsageError: there is no such run, an option cannot be used, or one has to be named again.
        JournalError: the journal cannot be read.
        NoModel: the run's model is not available here.
    """
    first_option = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    args = _parse_resume_options(words[first_option:])
    earlier = find_earlier(words[:first_option], journal=args.journal and magics.journal)
    return _resume(magics, args, earlier)


def _resume(
    magics: Any, args: argparse.Namespace, earlier: Earlier, *, shown: bool = True
) -> "CellRun":
    """Build the run that continues an earlier one; ``shown`` says whether it gets a panel."""
    namespace, settings = magics.shell.user_ns, earlier.settings
    args.output = args.output or _stored_output(settings, namespace)
    args.apply = args.apply or _stored_choice(settings)
    cell_id = _stored_text(settings, "cell")
    args.cell = args.cell or (cell_id if is_cell_id(cell_id) else None)
    args.lines = args.lines or _stored_lines(settings)
    source, head = _stored_text(settings, "source"), _stored_text(settings, "head")
    origin = Origin(args.cell, source, head) if args.cell and source else None
    known = _variables_of(earlier, args.var or [], visible_names(magics.shell))
    setup = earlier.run.setup
    given = checks.resolve(args.check, namespace, target=earlier.run.limits.target, variables=known)
    base_url = args.base_url or magics.base_url or os.environ.get("OPENAI_BASE_URL") or ""
    _require_named_again(earlier, checks.needs_reader(setup.checks, given), args, base_url)
    refinement = api.resume(
        earlier.run,
        model=args.model or _configured(setup.model, magics.model),
        judge=args.judge or _configured(setup.judge, magics.judge or magics.model),
        **_server(magics, args),
        share=args.share or magics.share,
        checks=_keeping(
            checks.from_record(setup.checks, given, variables=known), _texts(settings.get("keeps"))
        ),
        variables=known,
        lines=_lines_below(head, args.lines),
    )
    key = _stored_text(settings, "key")
    return CellRun(magics, args, refinement, earlier.journal, origin=origin, key=key, shown=shown)


def _keeping(made: Sequence[Check], names: Sequence[str]) -> list[Check]:
    """Return checks of which the one that runs a text also wants some names defined."""
    from ipyrefine.checks.python import RunsCleanly

    return [one.requiring(names) if names and isinstance(one, RunsCleanly) else one for one in made]


def _lines_below(head: str, lines: Sequence[int] | None) -> tuple[int, int] | None:
    """Return a range of a cell's lines as one of the draft below its head."""
    if not lines:
        return None
    first, last = (line - head.count("\n") for line in lines)
    return max(first, min(1, last)), last


def _configured(name: str, configured: str) -> str | None:
    """Return a run's model where it is the configured one too, which may be a file's name."""
    return name if name and name == configured else None


def _require_named_again(
    earlier: Earlier, functions: Sequence[str], args: argparse.Namespace, base_url: str
) -> None:
    """Refuse to take from a file what only the reader can choose.

    Args:
        earlier: the run to resume.
        functions: names of its checks that run code of the notebook, and were not named again.
        args: the options that name something again.
        base_url: the server that is configured here, or was named again.

    Raises:
        UsageError: there is something to name again; it says with which options.
    """
    stored = earlier.settings
    # The options of its start know a lambda by its variable.
    asked = [one for one in _texts(stored.get("check")) if not checks.is_self_contained(one)]
    options = [one for one in asked if one not in args.check]
    missing = [("--check", one) for one in (options or functions) if functions]
    missing += [("--var", one) for one in _texts(stored.get("var")) if one not in args.var]
    server = stored.get("base_url")
    if isinstance(server, str) and server not in (base_url, safe_url(base_url)):
        missing.append(("--base-url", server))
    if missing:
        words = " ".join(f"{option} {shlex.quote(value)}" for option, value in missing)
        raise UsageError(f"A file can't choose what runs or is sent here. To resume, add {words}.")


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _stored_output(settings: Mapping[str, Any], namespace: Mapping[str, Any]) -> str | None:
    """Return the variable that a run of the journal leaves its text in, if it hides nothing."""
    name = settings.get("output")
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        return None
    taken = hasattr(builtins, name) or keyword.iskeyword(name) or callable(namespace.get(name))
    return None if taken or isinstance(namespace.get(name), ModuleType) else name


def _stored_text(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name)
    return value if isinstance(value, str) else ""


def _stored_lines(settings: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the lines that a run of the journal may change; None for all."""
    match settings.get("lines"):
        case [int(first), int(last)]:
            return first, last
    return None


def _stored_choice(settings: Mapping[str, Any]) -> str | None:
    """Return where a run of the journal puts its text."""
    place = settings.get("apply")
    return place if place in ("ask", *PLACES) else None


def _variables_of(
    earlier: Earlier, named: Sequence[str], namespace: Mapping[str, Any]
) -> variables.Variables:
    """Return the named variables, and those that a run of the reader's own journal used."""
    names = [one.name for one in earlier.run.task.materials if one.kind == "variable"]
    known = names if earlier.journal is not None else []
    found = {name: namespace[name] for name in known if name in namespace}
    return variables.Variables(variables.gather(named, namespace), found)


def _parse_resume_options(words: list[str]) -> argparse.Namespace:
    args = options.parse_words(words)
    for name, default in vars(options.parse_words([])).items():
        if name not in _RESUME_OPTIONS and getattr(args, name) != default:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} was settled when the run started. Resume without it.")
    return args


def _stored_settings(args: argparse.Namespace, base_url: str) -> dict[str, Any]:
    """Return what resuming needs of the options; a URL without its credentials."""
    settings = {name: getattr(args, name) for name in _STORED_OPTIONS if getattr(args, name)}
    return settings | ({"base_url": safe_url(base_url)} if base_url else {})


def _checklist(value: str | None, namespace: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the questions of a variable (a list, or a text of lines), or those written out.

    The word ``none`` asks for no checklist; without the option it is None, the profile's.

    Raises:
        UsageError: there is no such variable, or it holds no questions.
    """
    if value is None:
        return None
    if value.lower() == "none":
        return ()
    if not value.isidentifier():
        return options.split_list(value)
    variable = _variable("--checklist", value, namespace)
    lines = variable.splitlines() if isinstance(variable, str) else variable
    if not isinstance(lines, list | tuple) or not all(isinstance(x, str) for x in lines):
        raise UsageError(f"--checklist: {value} must be a list of yes/no questions.")
    questions = tuple(line.strip() for line in lines if line.strip())
    if not questions:
        raise UsageError(f"--checklist: {value} holds no questions.")
    return questions


def _prompts(name: str | None, namespace: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return the user's own prompts by stage.

    Raises:
        UsageError: there is no such variable, or it is no dict.
    """
    if name is None:
        return None
    prompts = _variable("--prompts", name, namespace)
    if not isinstance(prompts, Mapping) or not prompts:
        raise UsageError(f"--prompts: {name} must be a dict of prompts by stage.")
    return prompts


def _variable(option: str, name: str, namespace: Mapping[str, Any]) -> Any:
    if name not in namespace:
        hint = did_you_mean(name, (known for known in namespace if known[:1] != "_"))
        raise UsageError(f"{option}: there is no variable {name!r}.{hint}")
    return namespace[name]


def result(run: Run, checks: Sequence[Check]) -> Any:
    """Return what a run leaves in its variable: the text, or the object that a schema accepted."""
    if run.task.profile == "data" and run.chosen:
        accepted = {evidence.name for evidence in run.chosen.evidence if evidence.passed}
        for check in checks:
            if isinstance(check, Schema) and check.name in accepted:
                return check.value(run.text)
    return run.text


class CellRun:
    """A refinement in a cell, with its panel or transcript, its record and its variables.

    Args:
        magics: the configured magics, with their shell.
        args: the options.
        refinement: what runs.
        journal: stores its events; None for a run that is not kept.
        placeholder: the panel's place in the output, where there is one.
        origin: the cell that the text is from, where that is another one.
        key: what the cell is recognised by when it runs again; empty where it is not.
        begin: builds its run as code or as prose, with a journal; None where it can't be switched.
        shown: whether the run is displayed as it goes.

    Attributes:
        shell: the IPython shell.
        session: runs the refinement.
        cell_target: where its text goes.
        panel: the panel; None when none is on screen.
    """

    def __init__(
        self,
        magics: Any,
        args: argparse.Namespace,
        refinement: Refinement,
        journal: Recorder | None,
        placeholder: Placeholder | None = None,
        *,
        origin: Origin | None = None,
        key: str = "",
        begin: Callable[[Form], tuple[Refinement, Recorder | None]] | None = None,
        shown: bool = True,
    ) -> None:
        self.shell = magics.shell
        self._sent = SentLog()
        self._watch(refinement)
        self.session = Session(refinement, [self._update_namespace], journal)
        self._args, self._server = args, _server(magics, args)
        self._share = args.share or magics.share
        self._variable = args.output or "refined"
        by_default: Place = "replace" if origin else "insert"
        self._place = args.apply if args.apply in PLACES else by_default
        self.cell_target = CellTarget(self.shell, self._variable, self._place, origin)
        self._key, self._decided = key, magics.decided
        self._begin, self._form = begin, refinement.state.task.form
        self.panel: Any = None
        self._record = RecordDisplay()
        self._note = ""  # what the record says of how the panel was closed
        self._executing = False
        self._inserting: asyncio.Future[None] | None = None
        self._uses_panel = self._wants_panel(magics.ui)
        if shown:
            self._add_display(placeholder or Placeholder())

    async def go(self) -> None:
        """Run to the loop's stop, with the text in the namespace on every exit.

        Raises:
            UsageError: it should run in the background, and there is no panel.
            Interrupted: the user interrupted the cell.
            RefineError: what ended the run early.
        """
        if self._args.background:
            if self.panel is None:
                raise UsageError("--background needs the panel, which only a notebook shows.")
            self.session.start()
            return
        with self._cell_executes():
            await self.session.go()
            await self._ask_in_terminal()
            if self._args.apply in ("insert", "replace") and self.session.run.text:
                self._finish(await self.place())
            await self._text_inserted()
        self._raise_failure()

    async def resume(self) -> None:
        """Continue an earlier run; one that was accepted is only shown, its text not inserted."""
        if self.session.run.stop_reason is StopReason.ACCEPTED:
            self._set_variables(self.session.run)
            self._finish()
        else:
            await self.go()

    def show_again(self, note: str) -> None:
        """Show the record of a run that is decided in the cell that runs now."""
        self._set_variables(self.session.run)
        self._record, self._note = RecordDisplay(), note
        self._show_record()

    async def carry_out(self, decision: Decision) -> None:
        """Take a decision from a cell of its own, and show there what comes of it.

        Raises:
            UsageError: it cannot be carried out; nothing has changed.
            Interrupted: the user interrupted the cell.
            RefineError: what ended the run early.
        """
        await self._steer(lambda: self.decide(decision), shown=not isinstance(decision, Accept))

    async def start_again(self, form: Form | None = None) -> None:
        """Do as `switch` from a cell of its own; errors as for it and for `carry_out`."""
        await self._steer(lambda: self.switch(form))

    async def _steer(self, act: Callable[[], None], *, shown: bool = True) -> None:
        with self._cell_executes():
            act()
            if shown and self._uses_panel and self.panel is None:
                self._open_panel(Placeholder())
            await self.session.go()
            await self._text_inserted()
        self._raise_failure()

    async def apply(self, number: int | None = None) -> str:
        """Put a text into a cell from the cell that runs now, and return where it went."""
        with self._cell_executes():
            return await self.place(number)

    async def place(self, number: int | None = None) -> str:
        """Put a text into a cell and return one sentence that says where it went.

        Args:
            number: the iteration; None for the chosen one.
        """
        run = self.session.run
        text = run.text if number is None else run.iterations[number].text
        form = run.task.form
        if run.task.is_foreign and not self.cell_target.head:  # a code cell could not run it
            text, form = fence(text, run.task.language), "prose"
        return await self.cell_target.put(text, form=form, executing=self._executing)

    def decide(self, decision: Decision) -> None:
        """Take a decision from the panel or the terminal; raises as `Session.decide` does."""
        self._note = ""
        self.session.decide(decision)

    def stop(self) -> None:
        """Stop the loop, or let a pause be the end; the best text so far is kept."""
        self.session.stop()

    def close(self) -> None:
        """Stop the loop and close the panel; the record stays."""
        note = ""
        if self.session.running:  # a pause stays one, to be resumed
            self.session.stop()
            note = f"Stopped and closed. The best text so far is in `{self._variable}`."
        self._finish(note)

    def change_model(self, name: str, guidance: str = "") -> None:
        """Continue the run with another writer; whoever reads stays.

        Raises:
            UsageError: no name was given, or the run goes on at the moment.
            NoModel: there is no such model here.
        """
        if not name:
            raise UsageError("Name the model to continue with.")
        if self.session.running:
            raise UsageError("Stop the run first, then continue with another model.")
        before = self.session.refinement
        run = self.session.run
        setup = run.setup.model_copy(update={"model": name, "judge": run.setup.judge or name})
        refinement = api.resume(
            run.model_copy(update={"setup": setup}),
            judge=None if run.setup.judge == run.setup.model else before.judge,
            **self._server,
            checks=before.checks,
            share=self._share,
        )
        refinement.selection, refinement.suite = before.selection, before.suite
        self._watch(refinement)
        self.session.refinement = refinement
        self.decide(Continue(guidance=guidance))

    def switch(self, form: Form | None = None) -> None:
        """Stop the run, and start its cell again as code or as prose.

        Args:
            form: which; by default the one that it is not.

        Raises:
            UsageError: it is that already, it was not started by a `%%refine` cell of this kernel,
                or an option does not fit the form.
        """
        task = self.session.run.task
        form = form or labels.other_form(task)
        if form == task.form:
            raise UsageError(f"This run is for {form} already.")
        if self._begin is None:
            raise UsageError(f"This run cannot be switched. Start a %%refine cell with -p {form}.")
        refinement, journal = self._begin(form)
        self._sent = SentLog()
        self._watch(refinement)
        self._note = ""
        if self._args.cell:  # whose own kind of text is the one that it was started for
            own = form == self._form
            self.cell_target.where = self._place if own else "insert"
            self.cell_target.place_to_run = "replace" if own else "insert"
        self.session.restart(refinement, journal)

    def share(self, answer: str) -> str:
        """Take the user's answer on what the run's servers are sent, and say what holds now.

        Args:
            answer: ``once`` sends outputs for the rest of this run, ``always`` from now on,
                ``never`` stops asking.

        Raises:
            UsageError: there is no such answer, or no server elsewhere.
        """
        sharing = self.session.refinement.sharing
        if answer not in ANSWERS:
            raise UsageError(f"%refine share takes {', '.join(ANSWERS)}, not {answer!r}.")
        if not sharing.servers:
            raise UsageError("The models of this run are on this machine: nothing leaves it.")
        level: Level = "structure" if answer == "never" else "outputs"
        kept = answer == "once" or remember_sharing(sharing.servers, level)
        self.session.refinement.sharing = sharing._replace(level=level, asks=False)
        return labels.sharing_sentence(answer, sharing.servers, stored=kept)

    def _watch(self, refinement: Refinement) -> None:
        """Keep what is sent to its models."""
        same = refinement.judge is refinement.model
        refinement.model = self._sent.watch(refinement.model)
        refinement.judge = refinement.model if same else self._sent.watch(refinement.judge)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs or is on screen."""
        return self.panel is None and not self.session.running

    def shows_same_run(self, other: "CellRun") -> bool:
        """Return whether two cells show the same run of the journal."""
        ours, theirs = self.session.journal, other.session.journal
        return bool(ours and theirs and ours.number and ours.number == theirs.number)

    # Displays

    def _wants_panel(self, ui: str) -> bool:
        if self._args.plain or self._args.quiet or os.environ.get("IPYREFINE_UI") == "plain":
            return False
        if caller_waits():  # no click would arrive
            return False
        return ui == "widgets" or (ui == "auto" and self.cell_target.cell_id is not None)

    def _add_display(self, placeholder: Placeholder) -> None:
        """Show the run as it goes: in the panel, or in a terminal as a transcript."""
        if self._uses_panel:
            self._open_panel(placeholder)
        elif not self._args.quiet and not hasattr(self.shell, "kernel"):
            from ipyrefine.session.screen import Transcript

            self.session.displays.append(Transcript(can_switch=self._begin is not None))

    def _open_panel(self, placeholder: Placeholder) -> None:
        """Show the panel in the output of the running cell, or say why there is none."""
        from ipyrefine.notebook.panel import Panel

        try:
            self.panel = Panel(
                decide=self.decide,
                stop=self.stop,
                close=self.close,
                cell_target=self.cell_target,
                change_model=self.change_model,
                switch=self.switch if self._begin else None,
                prompts=lambda: self._sent.prompts,
                share=self.share,
                sharing=lambda: self.session.refinement.sharing,
            )
        except ImportError:
            self._uses_panel = False
            print(NO_ANYWIDGET)
            return
        placeholder.fill(self.panel.widget)
        self.session.displays.append(self.panel.show)

    def _update_namespace(self, event: Event, run: Run) -> None:
        """Bring variables and record up to date at every stop."""
        if not isinstance(event, Stopped):
            return
        if self.panel is not None and KEPT_HERE in run.warnings:
            mark_asked(self.session.refinement.sharing.servers)
        self._set_variables(run)
        if event.reason is StopReason.FAILED and not run.iterations and self._executing:
            self._close_panel()  # the cell's error says all there is to say
            return
        self._show_record()
        if self._key and self.session.journal is None and event.reason in _DECIDED:
            self._decided[self._key] = self
        if event.reason is StopReason.ACCEPTED:
            self._inserting = asyncio.ensure_future(self._insert_accepted())

    def _set_variables(self, run: Run) -> None:
        self.shell.user_ns["refined_run"] = run
        self.shell.user_ns[self._variable] = run.text
        self.shell.user_ns[self._variable] = result(run, self.session.refinement.checks)

    async def _insert_accepted(self) -> None:
        """Put the accepted text into a cell, unless that was declined, and close the panel."""
        try:
            note = await self.place()
        except Exception as error:  # after a click nobody awaits this, so the record says it
            note = (
                f"The text could not be put into a cell ({describe(error)}). It is in "
                f"`{self._variable}`."
            )
        # The panel closes last: its many messages would keep the front-end from answering in time.
        self._finish(note)

    async def _text_inserted(self) -> None:
        """Wait until the accepted text is in its cell."""
        if self._inserting:
            await self._inserting

    def _finish(self, note: str = "") -> None:
        """Close the panel for good; what stays in the notebook is the record."""
        self._note = note
        self._close_panel()
        self._show_record()

    def _close_panel(self) -> None:
        if self.panel is not None:
            self.session.displays.remove(self.panel.show)
            self.panel.close()
            self.panel = None

    def _show_record(self) -> None:
        if hasattr(self.shell, "kernel") and self.session.run.stop_reason is not None:
            panel = self.panel.id if self.panel is not None else ""
            self._record.show(self.session.run, note=self._note, panel=panel)

    async def _ask_in_terminal(self) -> None:
        if self._args.quiet or self.panel is not None or hasattr(self.shell, "kernel"):
            return
        if self._args.apply in (None, "ask"):
            from ipyrefine.session.screen import ask

            await ask(self.session)

    # The cell

    @contextlib.contextmanager
    def _cell_executes(self) -> Iterator[None]:
        """Mark that a cell runs, whose reply can carry a text into the next cell.

        However it ends, the text so far is in its variable.
        """
        self._executing = True
        try:
            yield
        finally:
            self._executing = False
            self._set_variables(self.session.run)

    def _raise_failure(self) -> None:
        """Raise what ended the run early, if anything did."""
        if self.session.interrupted:
            kept = f"the best text so far is in `{self._variable}`"
            raise Interrupted(f"Interrupted; {kept if self.session.run.text else 'no text yet'}.")
        api.raise_failure(self.session.refinement)
