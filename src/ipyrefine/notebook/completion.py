"""What Tab offers after `%%refine` and `%refine`: options, their values, and commands."""

from collections.abc import Iterable
from inspect import isfunction, ismodule
from typing import Any


def complete(shell: Any, event: Any) -> list[str]:
    """Give the completions for the word at the cursor.

    Args:
        shell: the IPython shell.
        event: IPython's: ``command`` (the magic), ``line`` (up to the cursor), ``symbol``.
    """
    words = event.line.split()
    fresh = event.line[-1:].isspace()
    before = words if fresh else words[:-1]
    typed = "" if fresh else words[-1]
    offered = _offered(shell, event.command, before[1:])
    # IPython replaces only its own idea of the last word, which a dash or a colon may cut short.
    kept = len(typed) - len(event.symbol)
    return [one[kept:] for one in offered if one.startswith(typed)]


def _offered(shell: Any, command: str, before: list[str]) -> Iterable[str]:
    """Everything that may stand after these words."""
    from ipyrefine.notebook import options
    from ipyrefine.session import commands as steering

    if command == "%refine" or (command == "refine" and not before):
        return steering.COMMANDS if not before else _runs(before)
    named = {name: action for action in options.parser()._actions for name in action.option_strings}
    last = named.get(before[-1]) if before else None
    if last is not None and last.nargs != 0:
        return map(str, last.choices) if last.choices else _values(shell, last.dest)
    return sorted(named)


def _runs(before: list[str]) -> Iterable[str]:
    """The names of the latest runs, after a command that takes one."""
    if before not in (["resume"], ["forget"]):
        return ()
    from ipyrefine.errors import JournalError
    from ipyrefine.journal.store import Journal

    try:
        return dict.fromkeys(run.name for run in Journal().runs(limit=50))
    except JournalError:
        return ()  # Tab is no place for it; the command itself will say


def _values(shell: Any, option: str) -> Iterable[str]:
    """The values of an option that are known by name."""
    from ipyrefine import checks, profiles
    from ipyrefine.providers.weights import WEIGHTS

    hidden = getattr(shell, "user_ns_hidden", {})  # what IPython itself put there
    visible = {n: v for n, v in shell.user_ns.items() if n[:1] != "_" and n not in hidden}
    match option:
        case "model" | "judge":
            return WEIGHTS
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
