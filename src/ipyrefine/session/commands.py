"""`%refine COMMAND`: carries out what `core.actions` lists, and what decides nothing."""

import contextlib
import difflib
import shutil
import tempfile
from pathlib import Path
from typing import Any, Protocol

from ipyrefine.core import decisions
from ipyrefine.core.actions import ACTIONS, Fields, commands, parse_decision
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import withheld
from ipyrefine.core.typed import TEXT, confirmations, parse_iteration, require_end
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.journal.store import Journal
from ipyrefine.render import say
from ipyrefine.render.diff import text_diff
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import DETAILS, details_text, record_text
from ipyrefine.session import history
from ipyrefine.session.export import export, suite_source
from ipyrefine.session.session import Session

ANSWERS = ("once", "always", "never")  # on what a server may be sent
# What people may type for a command besides the names of actions, and what to type instead.
_SYNONYMS = {"apply": "accept insert", "confirm": "right 1", "kind": "continue as prose"}
_NEED_TEXT = ("diff", "edit", "right", "should", "show", "tests")


class CellTarget(Protocol):
    """Where the text of a cell goes."""

    async def read_back(self) -> str | None:
        """Return what the cell that a text was put into holds now; None if that is not known."""


class Cell(Protocol):
    """The cell of a run, as far as commands need it."""

    shell: Any
    session: Session
    cell_target: CellTarget

    async def carry_out(self, decision: decisions.Decision) -> None:
        """Take a decision and wait for the next stop."""

    async def perform(self, action: str, fields: Fields) -> str:
        """Do what is no decision, to its end, and return what there is to say."""


class Magics(Protocol):
    """The magics, as far as commands need them."""

    latest: Cell | None

    async def resume(self, words: list[str]) -> None:
        """Resume the earlier run that the words name."""

    async def fix(self, words: list[str]) -> None:
        """Fix the cell that failed; the words are options."""


def usage() -> str:
    """Return the commands, one a line, with what may follow each and what it does."""
    lines = [f"  {f'{name} {row.usage}':<33} {row.help}" for name, row in commands().items()]
    head = "%%refine refines a cell (see %%refine?). Then decide with %refine COMMAND:"
    return "\n".join([head, *lines])


async def run_command(magics: Magics, words: list[str]) -> None:
    """Carry out one command.

    Raises:
        UsageError: there is no such command, no run yet, or a word means nothing here.
        RefineError: what ended the run that the command started.
    """
    name, *args = words or [""]
    if words and name not in commands():
        raise UsageError(f"There is no command {name!r}.{_instead(name)} %refine lists them.")
    match name:
        case "":
            print(usage())
        case "history":
            print(history.history(" ".join(args)))
        case "forget" if len(args) == 1:
            count = Journal().forget_all() if args == ["--all"] else Journal().forget(args[0])
            print(f"{say.count(count, 'run')} erased from the journal.")
        case "forget":
            raise UsageError("Name the run: %refine forget NAME, or %refine forget --all.")
        case "export":
            print(_export(magics.latest, args))
        case "resume":
            await magics.resume(args)
        case "fix":
            await magics.fix(args)
        case _ if magics.latest:
            await _steer(magics.latest, name, args)
        case _:
            raise UsageError("There is no run yet. Start one with a %%refine cell.")


def _instead(word: str) -> str:
    """Return what to type for a word that is no command; empty if nothing is near."""
    known = {one: row.typed or one for one, row in ACTIONS.items() if row.typed or row.help}
    known |= _SYNONYMS | {part: f"show {part}" for part in DETAILS}
    for near in difflib.get_close_matches(word, known, n=1):
        meant = f"%refine {known[near]}"
        return f" Type {meant}." if near == word else f" Did you mean {meant}?"
    return ""


async def _steer(cell: Cell, name: str, args: list[str]) -> None:
    run = cell.session.run
    changes_criteria = name == "edit" and args[:1] == ["criteria"] and len(args) > 1
    if name in _NEED_TEXT and not (run.iterations or changes_criteria):
        raise UsageError("There is no text yet. Write one with %refine continue.")
    match name:
        case "stop" | "close":
            await cell.perform(name, {})
            await cell.session.settle()
        case "show":
            print(show(run, args))
        case "diff":
            print(_diff(run, args))
        case "share":
            print(await cell.perform(name, {"name": " ".join(args)}) if args else _withheld(cell))
        case "tests" if args in ([], ["below"]):
            print(await cell.perform(name, {}) if args else plain(suite_source(run)))
        case "tests":
            raise UsageError("Use %refine tests, or %refine tests below.")
        case "right":
            for decision in confirmations(run, args):
                await cell.carry_out(decision)
        case "edit" if not changes_criteria:
            await cell.carry_out(await _edit(cell, args))
        case "continue" if args in (["as", "code"], ["as", "prose"]):
            await cell.perform("switch", {"name": args[1]})
        case _:
            typed = parse_decision(run, name, args)
            if asked := question_in(run, typed):
                note = await cell.perform("ask", {"words": asked[0], "iteration": asked[1]})
                print(plain(cell.session.run.explanations[-1].answer), note, sep="\n\n")
            else:
                await cell.carry_out(typed)


def question_in(run: Run, decision: decisions.Decision) -> tuple[str, int] | None:
    """Return the question that guidance asks, and the text that it is about; None for neither."""
    if not isinstance(decision, decisions.Continue | decisions.Guide):
        return None
    words, number = decision.guidance, getattr(decision, "iteration", None)
    number = run.chosen.number if number is None and run.chosen else number
    asks = run.stop_reason and words.rstrip().endswith(("?", "？"))  # noqa: RUF001
    return (words, number) if asks and number is not None else None


# What steers a run without a decision


def show(run: Run, what: list[str]) -> str:
    """Return the whole run, a part of it (a key of `DETAILS`), or an iteration's text.

    Raises:
        UsageError: there is no such part or iteration.
    """
    columns = shutil.get_terminal_size().columns
    if not what:
        return record_text(run, columns)
    if what[0] in DETAILS:
        return details_text(run, what[0], columns)
    if not TEXT.fullmatch(what[0]):
        hint = did_you_mean(what[0], DETAILS) or f" Choose one of {', '.join(DETAILS)}."
        raise UsageError(f"There is no {what[0]!r} to show.{hint}")
    return plain(run.iterations[parse_iteration(run, [*what]) or 0].text)


def _withheld(cell: Cell) -> str:
    sharing = cell.session.refinement.sharing
    text = withheld(cell.session.run) if sharing.servers and sharing.level == "structure" else ""
    phrase = say.sharing_phrase(sharing) or "the models are on this machine"
    holds = f"{phrase[:1].upper()}{phrase[1:]}."
    return f"{plain(text)}\n\n{holds} %refine share once|always|never" if text else holds


def _diff(run: Run, args: list[str]) -> str:
    """Return the diff of two iterations; by default of the best and its parent."""
    first, second = parse_iteration(run, args), parse_iteration(run, args)
    require_end("diff", args)
    new = run.chosen if second is None else run.iterations[second]
    assert new is not None, "a run with texts has a chosen one"
    base = new.parent if first is None else first
    old = run.iterations[base or 0]
    return text_diff(old.text, new.text, form=run.task.form) or "No change to the text."


async def _edit(cell: Cell, args: list[str]) -> decisions.Edit:
    """Take the user's own text: from a variable, from the cell it was put into, or an editor."""
    run = cell.session.run
    if args:
        text: str | None = _text_variable(args[0], cell.shell.user_ns)
    else:
        text = await cell.cell_target.read_back()
        if text is None and not hasattr(cell.shell, "kernel"):
            text = _open_editor(cell.shell, run.text)
    if text is None:
        raise UsageError(
            "No cell or editor gives your text here. Put it into a variable and use %refine edit "
            "NAME."
        )
    return decisions.Edit(iteration=run.chosen.number if run.chosen else None, text=text)


def _text_variable(name: str, namespace: dict[str, Any]) -> str:
    if name not in namespace:
        texts = [n for n, value in namespace.items() if isinstance(value, str)]
        raise UsageError(f"No variable named {name!r}.{did_you_mean(name, texts)}")
    value = namespace[name]
    if not isinstance(value, str):
        raise UsageError(f"{name!r} is a variable of type {type(value).__name__}, not a text.")
    return value


def _open_editor(shell: Any, text: str) -> str | None:
    """Return what an editor makes of a text; None where there is none, or it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.py"
        path.write_text(text, "utf-8")
        with contextlib.suppress(Exception):  # it is the user's program, or a hook of theirs
            shell.hooks.editor(str(path))
            return path.read_text("utf-8")
    return None


# Commands on the journal


def _export(latest: Cell | None, args: list[str]) -> str:
    names = [word for word in args if word != "--force"]
    if names[:1] == ["tests"]:
        del names[0]
        if not names or not names[0].endswith(".py"):
            raise UsageError("Name a file for the tests: %refine export tests test_NAME.py.")
    if not 1 <= len(names) <= 2:
        raise UsageError("Name a file: %refine export FILE.json (or .py) [NAME].")
    file, *name = names
    run = latest.session.run if latest and not name else Journal().get(*name).run
    return f"Written to {export(run, file, force='--force' in args)}."
