"""`%refine COMMAND`: the decisions of the panel, for every front-end."""

import tempfile
from pathlib import Path
from typing import Any

from ipyrefine.core.runs import Decision, Run, StopReason
from ipyrefine.errors import UsageError
from ipyrefine.notebook.placing import WHERE, Where
from ipyrefine.session import deciding

KEEPING = ("export", "forget", "history", "resume", "stats")
SHOWING = ("diff", "models", "profiles", "show")
ENDING = ("close", "stop")
COMMANDS = tuple(sorted([*deciding.DECISIONS, *KEEPING, *SHOWING, *ENDING, "apply", "edit"]))


async def command(magics: Any, words: list[str]) -> None:
    """Carry out one command on the latest run.

    Raises:
        UsageError: there is no such command, no run yet, or no such iteration.
    """
    name, *rest = words or [""]
    if name not in COMMANDS:
        raise UsageError(f"%refine knows {', '.join(COMMANDS)}; {name or 'nothing'!r} is not one.")
    if name == "profiles":
        from ipyrefine.notebook.listing import show_profiles

        show_profiles()
        return
    if name == "models":
        from ipyrefine.providers.weights import WEIGHTS, find

        for model in WEIGHTS:
            print(f"{model}: {'here' if find(model) else f'ipyrefine pull {model}'}")
        return
    if name in ("history", "forget", "export", "stats"):
        print(_keep(magics, name, rest))
        return
    if name == "resume":
        await _resume(magics, rest)
        return
    cell = magics.latest
    if cell is not None and name in ENDING:
        cell.close() if name == "close" else cell.stop()
        await cell.session.settle()
        return
    if cell is None or not cell.session.run.iterations:
        raise UsageError("There is no run yet: start one with a %%refine cell.")
    await _steer(cell, name, rest)


def _keep(magics: Any, name: str, rest: list[str]) -> str:
    from ipyrefine.session import history

    if name == "export":
        latest = magics.latest.session.run if magics.latest else None
        return history.export_words(latest, rest)
    if name == "stats":
        return history.agreement()
    return history.history_words(rest) if name == "history" else history.forget(rest)


async def _resume(magics: Any, rest: list[str]) -> None:
    from ipyrefine.notebook.starting import from_run

    cell = from_run(magics, rest)
    if any(one.session.running and one.same_as(cell) for one in magics.runs.values()):
        raise UsageError("This run is not over: stop it first, or wait for it.")
    magics.take(cell)
    if cell.session.run.stop_reason is StopReason.ACCEPTED:
        cell.recall()
    else:
        await cell.go()


async def _steer(cell: Any, name: str, rest: list[str]) -> None:
    if name == "show":
        from ipyrefine.render.text import record_text

        run = cell.session.run
        number = deciding.iteration(run, rest)
        print(record_text(run) if number is None else run.iterations[number].text)
    elif name == "apply":
        cell.home.where = _where(rest) or cell.home.where
        print(await cell.apply(deciding.iteration(cell.session.run, rest)))
    elif name == "diff":
        _show_diff(cell.session.run, rest)
    elif name == "edit":
        await cell.steer(await edited(cell, rest))
    else:
        if name == "accept":
            cell.home.where = _where(rest) or cell.home.where
        await cell.steer(deciding.decision(cell.session.run, name, rest))


def _where(rest: list[str]) -> Where | None:
    """Where the text is to go, if the last word says so; it is taken off."""
    for where in WHERE:
        if rest[-1:] == [where]:
            rest.pop()
            return where
    return None


def _show_diff(run: Run, rest: list[str]) -> None:
    """Print what changed from one iteration to another; by default from its parent to the best."""
    from ipyrefine.render.diff import text_diff

    words = list(rest)
    first, second = deciding.iteration(run, words), deciding.iteration(run, words)
    new = run.chosen if second is None else run.iterations[second]
    assert new is not None, "a run with texts has a chosen one"
    base = new.parent if first is None else first
    form = run.task.form if run.task else "prose"
    print(text_diff(run.iterations[base or 0].text, new.text, form=form) or "No change.")


async def edited(cell: Any, rest: list[str]) -> Decision:
    """Take the user's own text: from a variable, from the cell it was put into, or an editor.

    Raises:
        UsageError: there is no such variable, or no text to be had.
    """
    run = cell.session.run
    if rest:
        text = cell.shell.user_ns.get(rest[0])
        if not isinstance(text, str):
            raise UsageError(f"There is no text in a variable {rest[0]!r}.")
    else:
        text = await cell.home.read_back()
    if text is None and not hasattr(cell.shell, "kernel"):
        text = _in_editor(cell.shell, run.text)
    if text is None:
        raise UsageError(
            "The cell that holds the text cannot be read here: put the text into a variable "
            "and say %refine edit NAME."
        )
    number = run.chosen.number if run.chosen else None
    return Decision(kind="edit", iteration=number, text=text)


def _in_editor(shell: Any, text: str) -> str:
    """Let the user edit a text in IPython's editor (``$EDITOR``)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.py"
        path.write_text(text, "utf-8")
        shell.hooks.editor(str(path))
        return path.read_text("utf-8")
