"""What Tab offers after `%%refine` and `%refine`: options, their values, commands; nothing else."""

import re
from collections.abc import Iterable
from inspect import isfunction, ismodule
from pathlib import Path
from typing import Any

_MAGIC = re.compile(r"(?P<cell>%%refine[ \t])|[ \t]*%refine[ \t]")
# A line that ends inside a quote.
_QUOTED = re.compile(r"""(?:[^"']|"[^"]*"|'[^']*')*(?P<quote>["'])(?P<word>[^"']*)\Z""")


def match(shell: Any, context: Any) -> Any:
    """Return the completions at the cursor as IPython's completer wants them of a matcher.

    Args:
        shell: the IPython shell.
        context: IPython's `CompletionContext`.
    """
    from IPython.core.completer import SimpleCompletion

    line = context.text_until_cursor
    above = context.full_text.split("\n")[: context.cursor_line]
    magic = _MAGIC.match(line)
    if not magic or (magic["cell"] and any(map(str.strip, above))):
        return {"completions": []}
    typed, found = complete(shell, line)
    # Other matchers are left out only with a completion: with none, it is what was typed.
    return {
        "completions": [SimpleCompletion(text=text) for text in found or [typed]],
        "matched_fragment": typed,
        "ordered": True,
        "suppress": True,
    }


def complete(shell: Any, line: str) -> tuple[str, list[str]]:
    """Return the word at the end of a line, and what it may become.

    Args:
        shell: the IPython shell.
        line: the magic and what follows it, up to the cursor.
    """
    quoted = _QUOTED.match(line)
    if quoted:
        typed, until = quoted["word"], quoted.start("quote")
    else:
        typed = line.split()[-1] if not line[-1:].isspace() else ""
        until = len(line) - len(typed)
    command, *before = line[:until].split()
    option, equals, _ = typed.partition("=")
    if equals and not quoted and option.startswith("-"):
        offers = [f"{option}={value}" for value in _offers(shell, command, [*before, option])]
    else:
        offers = list(_offers(shell, command, before))
    return typed, [offer for offer in dict.fromkeys(offers) if offer.startswith(typed)]


def _offers(shell: Any, command: str, before: list[str]) -> Iterable[str]:
    """Return everything that may follow these words."""
    from ipyrefine.notebook.options import parser
    from ipyrefine.session.commands import COMMANDS

    if command == "%refine" and before[:1] == ["fix"]:
        command, before = "%%refine", before[1:]
    if command == "%refine":
        return _arguments(shell, before) if before else COMMANDS
    options = parser().options
    option = options.get(before[-1]) if before else None
    if option is not None and option.nargs != 0:
        return map(str, option.choices) if option.choices else _values(shell, option.dest)
    return sorted(options)


def _arguments(shell: Any, before: list[str]) -> Iterable[str]:
    """Return what may follow a command of `%refine`."""
    from ipyrefine.core.run import Run
    from ipyrefine.session.commands import ANSWERS, PLACES

    command, *given = before
    latest = shell.user_ns.get("refined_run")
    run = latest if isinstance(latest, Run) else None
    numbers = [str(one.number) for one in run.iterations] if run else []
    places = [*numbers, *PLACES] if not {*given} & {*PLACES} else []
    match command:
        case "accept":
            return places
        case "apply":
            return [place for place in places if place != "none"]
        case "answer" if run and run.question and not given:
            return [str(n) for n, _ in enumerate(run.question.choices, start=1)]
        case "share":
            return ANSWERS
        case "override":
            return numbers if given else ["fail", "pass"]
        case "branch" | "diff" | "show":
            return numbers
        case "select" | "dismiss" if run and run.chosen:
            return [finding.id for finding in run.chosen.findings]
        case "drop" if run:
            return run.demands
        case "edit":
            return _variables(shell, str)
        case "kind" if not given:
            return ["code", "prose"]
        case "resume" if not given:
            return [*_run_names(), *_notebooks()]
        case "forget" if not given:
            return [*_run_names(), "--all"]
    return ()


def _notebooks() -> list[str]:
    return sorted(str(path) for path in Path().glob("*.ipynb"))


def _run_names() -> Iterable[str]:
    """Return the names of the latest runs."""
    from ipyrefine.errors import JournalError
    from ipyrefine.journal.store import Journal

    try:
        return [run.name for run in Journal().runs(limit=50)]
    except JournalError:
        return ()  # the command itself will report it


def _variables(shell: Any, *kinds: type) -> list[str]:
    """Return the names of the user's variables that hold one of these types."""
    hidden = getattr(shell, "user_ns_hidden", {})  # IPython's own variables
    return [
        name
        for name, value in shell.user_ns.items()
        if name[:1] != "_" and name not in hidden and isinstance(value, kinds)
    ]


def _values(shell: Any, option: str) -> Iterable[str]:
    """Return the values of an option that are known by name."""
    from ipyrefine import checks, profiles
    from ipyrefine.providers.weights import WEIGHTS

    namespace = shell.user_ns
    match option:
        case "model" | "judge":
            return WEIGHTS
        case "patience":
            return ["off"]
        case "no_check":
            return ["agreement", "all", "constraints", "examples", "run"]
        case "language":
            from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

            return sorted(aliases[0] for _, aliases, *_ in get_all_lexers() if aliases)
        case "profile":
            own = [name for name in _variables(shell, dict) if "criteria" in namespace[name]]
            return [*profiles.NAMES, *own]
        case "output":
            return ["refined", *_variables(shell, str)]
        case "var" | "no_var":
            names = _variables(shell, object)
            return [n for n in names if not isfunction(namespace[n]) and not ismodule(namespace[n])]
        case "prompts":
            return _variables(shell, dict)
        case "checklist":
            return ["none", *_variables(shell, list, tuple)]
        case "check":
            functions = [name for name in _variables(shell, object) if isfunction(namespace[name])]
            return [*checks.BUILTIN, *functions]
    return ()
