"""`%%refine` and `%refine`: thin shells over a session."""

import itertools
import re
import shlex
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from traitlets import Bool, Float, Integer, Unicode
from traitlets.config import Configurable

from ipyrefine.errors import UsageError
from ipyrefine.notebook.placeholder import Opening, may_show_a_panel, warm_up

_CELL = re.compile(r"^%%refine(?![\w?])[ \t]*(.*?)\s*$")
_CALL = re.compile(r"^(?=get_ipython\(\)\.run_(?:cell|line)_magic\('refine', )")


@magics_class
class Refine(Magics, Configurable):
    """The magics and their configuration: ``%config Refine.model = "…"``."""

    model = Unicode("", help="The model that writes; empty for the configured one.").tag(
        config=True
    )
    judge = Unicode("", help="The model that scores; empty for the writer.").tag(config=True)
    base_url = Unicode("", help="An OpenAI-compatible server; empty for OPENAI_BASE_URL.").tag(
        config=True
    )
    max_iterations = Integer(
        None,
        allow_none=True,
        help="Revisions allowed after the first text; None: the profile's, 4.",
    ).tag(config=True)
    target = Float(
        None, allow_none=True, help="Score 0..1 that passes; None: the profile's, else 0.8."
    ).tag(config=True)
    patience = Integer(
        None,
        allow_none=True,
        help="Revisions without gain before it stops; None: the profile's, 2.",
    ).tag(config=True)
    price = Unicode(
        "", help='Dollars per million prompt and completion tokens, as "0.15,0.60"; empty: listed.'
    ).tag(config=True)
    journal = Bool(True, help="Keep every run in the journal, to resume it.").tag(config=True)
    ui = Unicode("auto", help="auto, widgets or plain.").tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(shell=shell)
        self.latest: Any = None
        self.runs: dict[str | None, Any] = {}

    @no_var_expand
    @line_cell_magic
    def refine(self, line: str, cell: str | None = None) -> Any:
        """Refine a cell (`%%refine`), or steer the latest run (`%refine`)."""
        if cell is None:
            from ipyrefine.session import commands as steering

            return steering.command(self, _split(line))
        opening = Opening()
        if may_show_a_panel(self.ui, line, cell_id="cellId" in self._request_metadata()):
            opening.show()
        try:
            from ipyrefine.notebook.starting import from_cell  # takes a second the first time

            return self.take(from_cell(self, line, cell, opening)).go()
        finally:
            opening.clear()

    def _request_metadata(self) -> Any:
        """What the front-end said of the cell that runs; empty outside a kernel."""
        get_parent = getattr(self.shell, "get_parent", None)
        return (get_parent() or {}).get("metadata", {}) if get_parent else {}

    def take(self, run: Any) -> Any:
        """Make a run the latest one; returns it."""
        # One live panel a cell, and one a run: what starts again ends what was shown before.
        for cell_id, before in list(self.runs.items()):
            if cell_id == run.home.cell_id or before.same_as(run):
                self.runs.pop(cell_id).close()
            elif before.over:
                del self.runs[cell_id]  # nothing of it is on screen that could be closed
        self.latest = self.runs[run.home.cell_id] = run
        return run


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        raise UsageError("A quote in the command is not closed.") from None


def verbatim(lines: list[str]) -> list[str]:
    """Turn a `%%refine` cell into its awaited call before IPython cleans its lines up.

    The clean-up would strip ``>>>`` from the doctests a task states.
    """
    first, *body = [*itertools.dropwhile(str.isspace, lines)] or [""]
    match = _CELL.match(first)
    if not match:
        return lines
    return [f"await get_ipython().run_cell_magic('refine', {match[1]!r}, {''.join(body)!r})\n"]


# A terminal asks the transformers whether a cell is complete: it must still see the magic then.
verbatim.has_side_effects = True  # type: ignore[attr-defined]


def awaited(lines: list[str]) -> list[str]:
    """Put ``await`` before a refine magic's call, so that its cell waits without blocking."""
    return [_CALL.sub("await ", line) for line in lines]


def _complete(shell: Any, event: Any) -> list[str]:
    from ipyrefine.notebook.completion import complete  # lazy: loading has to cost nothing

    return complete(shell, event)


def _documentation() -> str:
    from ipyrefine.notebook.options import parser  # lazy, as `_complete`

    return (
        "Refine a cell (`%%refine`), or steer the latest run (`%refine`).\n\n"
        + parser().format_help()
        + "\n%refine COMMAND: accept [k] [insert|replace|none], override pass|fail [k] [reason], "
        "continue [n] [guidance], branch k [n] [guidance], select f1 f2 [guidance], "
        'dismiss f1 [reason], add [f1] [blocking|minor] "problem" ["quote"] ["fix"], '
        "edit [VARIABLE], guide TEXT, stop, close, "
        "rubric a,b,c [target], diff [i j], show [k], apply [k] [insert|replace], "
        "resume [NAME | FILE.ipynb [k]], history [search], export FILE [NAME], "
        "forget NAME|--all, stats, profiles, models.\n"
    )


# IPython asks for it, before `__doc__`, when a user does.
Refine.refine.getdoc = _documentation


def load(shell: Any) -> None:
    """Register the magics and the input transformer with a shell, once."""
    shell.register_magics(Refine)
    for key in ("%%refine", "%refine"):
        shell.set_hook("complete_command", _complete, str_key=key)
    for transformers, ours in (
        (shell.input_transformers_cleanup, verbatim),
        (shell.input_transformers_post, awaited),
    ):
        transformers[:] = [t for t in transformers if getattr(t, "__name__", "") != ours.__name__]
    shell.input_transformers_cleanup.insert(0, verbatim)
    shell.input_transformers_post.append(awaited)
    if hasattr(shell, "kernel"):
        warm_up()
