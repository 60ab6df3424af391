"""The magics `%%refine`, `%%look` and `%refine`: their configuration, and how they are loaded."""

import contextlib
import itertools
import re
import shlex
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from inspect import getdoc
from typing import Any
from weakref import WeakSet

from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class, no_var_expand
from traitlets import Bool, Dict, Enum, Integer, TraitError, Unicode, observe, validate
from traitlets.config import Configurable

from ipyrefine.errors import NoModel, UsageError
from ipyrefine.notebook.failure import Failures, is_ours
from ipyrefine.notebook.waiting import (
    FINISHED,
    PANEL_OFF,
    Placeholder,
    caller_waits,
    can_await,
    run_to_end,
    warm_up,
)

_ASIDE = re.compile(r"\s*(?:#|\Z)")  # a comment or an empty line above the magic
_CELL = re.compile(r"^%%(refine|look)(?![\w?])[ \t]*(.*?)\s*$")
# A call that starts its line, or that is awaited there already.
_CALL = re.compile(
    r"""^(?P<before>\s*(?:\w+ = )?await )?get_ipython\(\)\.run_(?:"""
    r"""cell_magic\((?=['"](?:refine|look)['"],)|line_magic\((?=['"]refine['"],))"""
)
# What IPython makes of `%%look?`, `%%refine?`, `%refine?`, and the last two with a word behind.
_HELP = re.compile(
    r"get_ipython\(\)\.run_line_magic\("
    r"(?:'pinfo2?', '(?P<magic>%%look|%%?refine)'|'%?refine\?+', '(?P<topic>[\w ]*)')\)"
)
# What JupyterLab puts behind `%%look`: the cell that the code is from.
_OF_CELL = re.compile(r"(?:--set cell=[\w-]+)?")
_MOST_ACCEPTED = 5
_REVISIONS = "max_revisions"
# What JupyterLab's settings are called, and the traits that they are the defaults of.
SETTINGS_OF_LAB = {
    "model": "model",
    "critic": "judge",
    "server": "base_url",
    "share": "share",
    "context": "context",
    "revisions": "set",
}
LOOK = "--draft -n 0 --critique never"  # has a cell shown without a model
_MAGICS = "get_ipython().magics_manager.registry['Refine']"


@magics_class
class Refine(Magics, Configurable):
    """The magics and their configuration: ``%config Refine.model = "…"``.

    Attributes:
        latest: the latest run, a `CellRun`; None before the first.
        runs: the runs that may be on screen, by the id of their cell.
        decided: the decided runs that no journal keeps, by what their cell is recognised by.
        failures: the cells that failed lately.
        accepted: the cells of accepted texts that have still to run.
        given: the latest runs' texts, with the numbers of their cells.
        forms: the forms that set up a model and are open.
        waiting: those that stand in the output of a cell, by its id.
    """

    model = Unicode("", help="The model that writes; empty: the configured one.").tag(config=True)
    judge = Unicode("", help="The model that reads; empty: the writer.").tag(config=True)
    base_url = Unicode("", help="An OpenAI-compatible server; empty: OPENAI_BASE_URL.").tag(
        config=True
    )
    api_key_env = Unicode(
        "",
        help="The environment variable that holds the server's key; empty: OPENAI_API_KEY, which "
        "goes to the server of OPENAI_BASE_URL only.",
    ).tag(config=True)
    extra = Dict(
        help='Further fields of every request to a server, as {"top_k": 20}; one that the server '
        "refuses is left out."
    ).tag(config=True)
    journal = Bool(True, help="Keep every run in the journal, to resume it.").tag(config=True)
    context = Integer(
        3,
        min=0,
        max=50,
        help="Of how many cells before it the model sees what they used; 0: of none.",
    ).tag(config=True)
    share = Enum(
        ("structure", "all", "code", "outputs", "values"),  # the last three are of older versions
        None,
        allow_none=True,
        help="What a model's server is sent: structure (names, types, shapes, lines, and of other "
        "cells names and calls) or all; None: all on this machine, elsewhere structure until you "
        "allow more.",
    ).tag(config=True)
    rules = Unicode(
        "",
        help="File of your standing wishes, such as AGENTS.md, which every model is shown; empty "
        "for none. A link is not read.",
    ).tag(config=True)
    set = Dict(
        help='Values of options and of `--set` for every cell, as {"timeout": 60, "target": 0.8}; '
        "a cell's own options win."
    ).tag(config=True)
    ui = Enum(("auto", "widgets", "plain"), "auto", help="How runs are shown.").tag(config=True)
    sandbox = Enum(
        ("auto", "required"),
        None,
        allow_none=True,
        help="Where the sandbox is incomplete: auto runs checks and says so, required does not run "
        "them; None: IPYREFINE_SANDBOX, else auto.",
    ).tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(shell=shell)
        self.forms: WeakSet[Any] = WeakSet()
        self.waiting: dict[str | None, Any] = {}
        self._settings: dict[str, Any] = {}  # as JupyterLab said last
        self._taken: dict[str, Any] = {}  # those of them that hold here
        self.latest: Any = None
        self.runs: dict[str | None, Any] = {}
        self.decided: dict[str, Any] = {}
        self.failures = Failures()
        self.accepted: list[Any] = []
        self.given: deque[tuple[int, str]] = deque(maxlen=20)

    @observe("sandbox")
    def _set_sandbox(self, change: Any) -> None:
        from ipyrefine.sandbox import sandbox

        sandbox.set_mode(change.new)

    @validate("set")
    def _check_set(self, proposal: Any) -> Any:
        from ipyrefine.notebook import options

        try:
            for name in proposal.value:
                if name != "set" and name in self.trait_names(config=True):
                    raise UsageError(f"{name} has its own setting: %config Refine.{name}.")
            options.limits(options.parse([], proposal.value))
        except UsageError as error:
            raise TraitError(f"Refine.set: {error}") from None
        return proposal.value

    def take_settings(self, settings: Mapping[str, Any]) -> None:
        """Take JupyterLab's settings as defaults: what was configured here otherwise stays."""
        for name, value in settings.items():
            if name in SETTINGS_OF_LAB and value != self._settings.get(name):
                self._settings[name] = value
                taken = self._taken.get(name, self._default_of(name))
                # Its key would go to another server.
                is_own = name == "server" and self.api_key_env
                if self._value_of(name) == taken and not is_own:
                    self.set_up({name: value})

    def set_up(self, settings: Mapping[str, Any]) -> None:
        """Configure what JupyterLab's settings are called by; one that can't be used is left."""
        for name, value in settings.items():
            value = self._default_of(name) if value in (None, "") else value
            trait = SETTINGS_OF_LAB[name]
            with contextlib.suppress(TraitError):
                if trait != "set":
                    setattr(self, trait, value)
                else:
                    rest = {key: one for key, one in self.set.items() if key != _REVISIONS}
                    self.set = rest if value is None else {**rest, _REVISIONS: value}
                self._taken[name] = value

    def _value_of(self, name: str) -> Any:
        value = getattr(self, SETTINGS_OF_LAB[name])
        return value.get(_REVISIONS) if isinstance(value, dict) else value

    def _default_of(self, name: str) -> Any:
        trait = SETTINGS_OF_LAB[name]
        return None if trait == "set" else self.trait_defaults(trait)

    @no_var_expand
    @line_cell_magic
    def refine(self, line: str, cell: str | None = None) -> Any:
        """Refine a cell (`%%refine`), or steer the latest run (`%refine`).

        A cell's own call is awaited (`start`); this one is for callers that cannot await.
        """
        self.finish("refine", line, cell)
        return FINISHED

    @no_var_expand
    @cell_magic
    def look(self, line: str, cell: str) -> Any:
        """Show what a cell gives and does to your data, on copies and without a model.

        Put %%look above the cell's code. It takes no options, your variables stay as they are, no
        name is bound, and nothing is kept: `%refine` steers the run before it.
        With %%refine in its place a model reads the code, and revises it.
        """
        self.finish("look", line, cell)
        return FINISHED

    def finish(self, magic: str, line: str, cell: str | None = None) -> None:
        """Do what `start` does while the caller waits; arguments and errors as for it."""
        run_to_end(self.start(magic, line, cell))

    async def start(self, magic: str, line: str, cell: str | None = None) -> None:
        """Run a magic's cell, or a command where there is none, to its stop.

        Raises:
            UsageError: an option, the cell or the command cannot be used.
            RefineError: what ended the run early.
        """
        looks = magic == "look"
        if looks and not _OF_CELL.fullmatch(line.strip()):
            raise UsageError("%%look takes no options. For any, start the cell with %%refine.")
        if cell is None:
            from ipyrefine.session import commands

            try:
                typed = shlex.split(line)
            except ValueError:
                raise UsageError("A quote in the command is not closed.") from None
            return await commands.run_command(self, typed)

        async def build(placeholder: Placeholder, look: bool) -> Any:
            from ipyrefine.notebook.cell_start import start_cell  # the first import takes a second

            words = f"{line} {LOOK}" if look or looks else line
            return await start_cell(self, words, cell, placeholder, aside=looks)

        await self._begin(line, build)

    def help(self, magic: str, topic: str = "") -> None:
        """Print the options of `%%refine`, the commands of `%refine`, or what a topic says.

        Raises:
            UsageError: there is no such topic.
        """
        from ipyrefine.notebook import options
        from ipyrefine.session.commands import usage

        if topic.strip():
            print(options.topic(topic.strip()))
        elif magic in ("", "%%refine"):
            print(_documentation())
        else:
            print(getdoc(self.look) if magic == "%%look" else usage())

    async def fix(self, words: list[str]) -> None:
        """Fix the cell that failed, in the cell that runs now.

        Raises:
            UsageError: no cell has failed, this one cannot be fixed, or an option cannot be used.
            NoModel: no model is configured.
            RefineError: what ended the run early.
        """

        async def build(placeholder: Placeholder, look: bool) -> Any:
            from ipyrefine.notebook.fix import start_fix

            return await start_fix(self, words, placeholder)

        await self._begin(shlex.join(words), build)

    async def _begin(self, line: str, build: Callable[[Placeholder, bool], Awaitable[Any]]) -> None:
        """Build a run and run it, unless it is decided; a line is shown where its panel will be.

        Where that needs a model, the form to set one up is shown instead, and goes on from there.
        """
        placeholder, run, form = Placeholder(), None, False
        get_parent = getattr(self.shell, "get_parent", None)
        metadata = (get_parent() or {}).get("metadata", {}) if get_parent else {}
        named = "cellId" in metadata and not caller_waits()
        shows = self.ui == "widgets" or (self.ui == "auto" and named)
        shows = shows and not PANEL_OFF & {*line.split()}
        if earlier := self.waiting.pop(metadata.get("cellId"), None):
            earlier.panel.close()
        if shows:
            placeholder.show()

        async def go_on(look: bool) -> None:
            begun = await build(placeholder, look)
            if begun is None:
                placeholder.clear()
            else:
                self.register(begun).session.start()

        try:
            run = await build(placeholder, False)
            if run is not None:
                self.register(run)
        except NoModel as error:
            if not shows:
                raise
            from ipyrefine.notebook.setup import show_form

            show_form(self, placeholder, error, go_on)
            form = True
        finally:
            if not (form or (run and run.panel)):
                placeholder.clear()
        if run is not None:
            await run.go()

    async def resume(self, words: list[str]) -> None:
        """Resume an earlier run in the cell that runs now.

        Raises:
            UsageError: there is no such run, it is still running, or an option cannot be used.
            JournalError: the journal cannot be read.
            NoModel: the run's model is not available here.
        """
        from ipyrefine.notebook.cell_start import resume_run

        run = await resume_run(self, words)
        if any(one.session.running and one.shows_same_run(run) for one in self.runs.values()):
            raise UsageError("This run is not over. Stop it first, or wait for it.")
        await self.register(run).resume()

    def expect(self, cell: Any) -> Any:
        """Have the cell of an accepted text compare, as it runs, what it gives; return it."""
        self.accepted = [*(one for one in self.accepted if not one.is_over), cell][-_MOST_ACCEPTED:]
        return cell

    def begin_cell(self, source: str) -> None:
        """Take note of a cell that is about to run."""
        for one in self.accepted:
            one.begin(source)

    def end_cell(self, result: Any) -> None:
        """Take note of how a cell ended: IPython's `ExecutionResult`, or None."""
        self.failures.note(result)
        error = getattr(result, "error_in_exec", None)
        if type(error) is NameError:
            from ipyrefine.kernel.names import names_defined  # lazy: loading must stay light

            given = {name: n for n, one in self.given for name in names_defined(one)}
            if number := given.get(error.name or ""):
                said = f"`{error.name}` is bound by the text of cell [{number}], which has not run."
                print(said, file=sys.stderr)
        source = getattr(getattr(result, "info", None), "raw_cell", None) or ""
        for one in self.accepted if source else ():
            one.end(result)
        if variables := sys.modules.get("ipyrefine.kernel.variables"):
            latest = self.latest if is_ours(source) else None
            variables.release_copies(latest.copies if latest else None)

    def register(self, run: Any) -> Any:
        """Make a run the latest one, unless it stands aside, and return it."""
        # One live panel per cell and per run: a new start ends what was on screen before.
        for cell_id, earlier in list(self.runs.items()):
            if cell_id == run.cell_target.cell_id or earlier.shows_same_run(run):
                self.runs.pop(cell_id).close()
            elif earlier.is_over:
                del self.runs[cell_id]
        self.runs[run.cell_target.cell_id] = run
        self.latest = self.latest if run.aside else run
        return run


def listen_for_setup(shell: Any) -> None:
    """Have pages that open a comm for it shown the form that sets up a model."""
    try:
        import comm
    except ImportError:  # a kernel without comms
        return

    def opened(channel: Any, message: Any) -> None:
        from ipyrefine.notebook.setup import open_form  # lazy: loading must stay light

        open_form(shell.magics_manager.registry["Refine"], channel, message)

    comm.get_comm_manager().register_target("ipyrefine.setup", opened)


def call_refine(lines: list[str]) -> list[str]:
    """Turn a `%%refine` or `%%look` cell into its call before IPython cleans up its lines.

    The clean-up would strip ``>>>`` from the doctests a task states, and for IPython itself no
    comment can stand above a cell magic.
    """
    first, *body = [*itertools.dropwhile(_ASIDE.match, lines)] or [""]
    match = _CELL.match(first)
    if not match:
        return lines
    magic, line = match.groups()
    return [f"get_ipython().run_cell_magic({magic!r}, {line!r}, {''.join(body)!r})\n"]


# A terminal asks the transformers whether a cell is complete: it must still see the magic then.
call_refine.has_side_effects = True  # type: ignore[attr-defined]


def await_refine(lines: list[str]) -> list[str]:
    """Turn a refine magic's call into one that its cell awaits, or that blocks where it can't.

    A question about the magics becomes a call that answers it, which no front-end has to page.
    """
    answer = rf"{_MAGICS}.help('\g<magic>', '\g<topic>')"
    lines = [_HELP.sub(answer, line) for line in lines]
    if not any(map(_CALL.match, lines)):
        return lines
    if can_await():
        return [
            _CALL.sub(lambda call: f"{call['before'] or 'await '}{_MAGICS}.start(", line)
            for line in lines
        ]
    return [_CALL.sub(f"{_MAGICS}.finish(", line) for line in lines]


def _documentation() -> str:
    from ipyrefine.notebook.options import parser  # lazy: loading must stay light

    return parser().format_help()


# IPython asks for this before `__doc__`.
Refine.refine.getdoc = _documentation


def load(shell: Any) -> None:
    """Register the magics, a matcher, the input transformers and a callback with a shell, once.

    Raises:
        UsageError: what IPython is configured with cannot be used.
    """
    from IPython.core.completer import SimpleMatcherResult, context_matcher

    @context_matcher()
    def match_refine(context: Any) -> SimpleMatcherResult:
        from ipyrefine.notebook.completion import match  # lazy: loading must stay light

        return match(shell, context)

    def note_start(info: Any) -> None:
        shell.magics_manager.registry["Refine"].begin_cell(info.raw_cell or "")

    def note_end(result: Any) -> None:
        shell.magics_manager.registry["Refine"].end_cell(result)

    match_refine.matcher_priority = 1_000  # it decides whether any other is asked
    try:
        shell.register_magics(Refine)
    except TraitError as error:
        advice = "Mend it in ipython_config.py, then load ipyrefine again."
        raise UsageError(f"{str(error).rstrip('.')}. {advice}") from None
    for functions, ours in (
        (shell.Completer.custom_matchers, match_refine),
        (shell.events.callbacks["pre_run_cell"], note_start),
        (shell.events.callbacks["post_run_cell"], note_end),
        (shell.input_transformers_post, await_refine),
        (shell.input_transformers_cleanup, call_refine),
    ):
        functions[:] = [f for f in functions if getattr(f, "__name__", "") != ours.__name__]
        functions.insert(0 if ours is call_refine else len(functions), ours)
    note_end(getattr(shell, "last_execution_result", None))
    if hasattr(shell, "kernel"):
        warm_up()
        listen_for_setup(shell)
