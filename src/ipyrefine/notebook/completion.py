"""What Tab offers after `%%refine` and `%refine`: options, their values, and commands."""

from collections.abc import Iterable
from inspect import isfunction, ismodule
from typing import Any


def complete(shell: Any, event: Any) -> list[str]:
    """Return the completions of the word at the cursor.

    Args:
        shell: the IPython shell.
        event: IPython's: ``command`` (the magic), ``line`` (up to the cursor), ``symbol``.
    """
    words = event.line.split()
    at_new_word = event.line[-1:].isspace()
    before = words if at_new_word else words[:-1]
    typed = "" if at_new_word else words[-1]
    offers = _offers(shell, event.command, before[1:])
    # IPython replaces only its own idea of the last word, which a dash or a colon may cut short.
    kept = len(typed) - len(event.symbol)
    return [offer[kept:] for offer in offers if offer.startswith(typed)]


def _offers(shell: Any, command: str, before: list[str]) -> Iterable[str]:
    """Return everything that may follow these words."""
    from ipyrefine.notebook.options import parser
    from ipyrefine.session.commands import COMMANDS

    if command == "%refine" or (command == "refine" and not before):
        if before == ["answer"]:
            return _answers(shell)
        return _run_names(before) if before else COMMANDS
    options = parser().options
    option = options.get(before[-1]) if before else None
    if option is not None and option.nargs != 0:
        return map(str, option.choices) if option.choices else _values(shell, option.dest)
    return sorted(options)


def _answers(shell: Any) -> Iterable[str]:
    """Return the numbers of the results that the latest run asks to choose from."""
    from ipyrefine.core.run import Run

    run = shell.user_ns.get("refined_run")
    question = run.question if isinstance(run, Run) else None
    return [str(n) for n, _ in enumerate(question.choices, start=1)] if question else ()


def _run_names(before: list[str]) -> Iterable[str]:
    """Return the names of the latest runs, after a command that takes one."""
    if before not in (["resume"], ["forget"]):
        return ()
    from ipyrefine.errors import JournalError
    from ipyrefine.journal.store import Journal

    try:
        return dict.fromkeys(run.name for run in Journal().runs(limit=50))
    except JournalError:
        return ()  # the command itself will report it


def _values(shell: Any, option: str) -> Iterable[str]:
    """Return the values of an option that are known by name."""
    from ipyrefine import checks, profiles
    from ipyrefine.providers.weights import WEIGHTS

    hidden = getattr(shell, "user_ns_hidden", {})  # IPython's own variables
    visible = {n: v for n, v in shell.user_ns.items() if n[:1] != "_" and n not in hidden}
    match option:
        case "model" | "judge":
            return WEIGHTS
        case "patience":
            return ["off"]
        case "profile":
            own = [n for n, v in visible.items() if isinstance(v, dict) and "criteria" in v]
            return [*profiles.NAMES, *own]
        case "var":
            return [n for n, v in visible.items() if not isfunction(v) and not ismodule(v)]
        case "prompts":
            return [n for n, v in visible.items() if isinstance(v, dict)]
        case "checklist":
            return [n for n, v in visible.items() if isinstance(v, list | tuple)]
        case "check":
            return [*checks.BUILTIN, *(n for n, v in visible.items() if isfunction(v))]
    return ()
