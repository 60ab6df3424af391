"""What Tab offers after `%%refine` and `%refine`: options, their values, commands; nothing else."""

import re
from collections.abc import Callable, Iterable
from inspect import isfunction, ismodule
from pathlib import Path
from typing import Any, get_args

from IPython.core.completer import SimpleCompletion
from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

from ipyrefine import checks, profiles
from ipyrefine.core.actions import commands
from ipyrefine.core.model import Form
from ipyrefine.core.results import rows
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import LEVELS
from ipyrefine.core.typed import PLACES
from ipyrefine.errors import JournalError
from ipyrefine.journal.store import Journal
from ipyrefine.notebook.cell_source import visible_names
from ipyrefine.notebook.options import SETTINGS, choices, parser
from ipyrefine.providers.weights import WEIGHTS
from ipyrefine.render.terminal import DETAILS
from ipyrefine.session.commands import ANSWERS

_MAGIC = re.compile(r"(?P<cell>%%refine[ \t])|[ \t]*%refine[ \t]")
# A line that ends inside a quote.
_QUOTED = re.compile(r"""(?:[^"']|"[^"]*"|'[^']*')*(?P<quote>["'])(?P<word>[^"']*)\Z""")


def match(shell: Any, context: Any) -> Any:
    """Return the completions at the cursor as IPython's completer wants them of a matcher."""
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
    """Return the word at the end of a line, and what it may become."""
    if quoted := _QUOTED.match(line):
        typed, until = quoted["word"], quoted.start("quote")
    else:
        typed = line.split()[-1] if not line[-1:].isspace() else ""
        until = len(line) - len(typed)
    command, *before = line[:until].split()
    option, equals, _ = typed.partition("=")
    if before[-1:] == ["--set"]:
        offers = _settings(option if equals else "")
    elif equals and not quoted and option.startswith("-"):
        offers = [f"{option}={value}" for value in _offers(shell, command, [*before, option])]
    else:
        offers = list(_offers(shell, command, before))
    return typed, [offer for offer in dict.fromkeys(offers) if offer.startswith(typed)]


def _offers(shell: Any, command: str, before: list[str]) -> Iterable[str]:
    variables = {n: v for n, v in visible_names(shell).items() if n[:1] != "_"}
    if command == "%refine" and before[:1] == ["fix"]:
        command, before = "%%refine", before[1:]
    if command == "%refine":
        run = shell.user_ns.get("refined_run")
        run = run if isinstance(run, Run) else None
        return _arguments(run, variables, *before) if before else sorted(commands())
    options = parser().options
    option = options.get(before[-1]) if before else None
    if option is None or option.nargs == 0:
        return sorted(options)
    if option.choices:
        return map(str, option.choices)
    return _VALUES[option.dest](variables) if option.dest in _VALUES else ()


def _settings(name: str) -> list[str]:
    if name not in SETTINGS:
        return [f"{one}=" for one in SETTINGS]
    values = _VALUES[name]({}) if name in _VALUES else choices(name)
    return [f"{name}={value}" for value in values]


def _of(variables: dict[str, Any], *kinds: type) -> list[str]:
    return [name for name, value in variables.items() if isinstance(value, kinds)]


# The options whose values are known by name, with what offers them.
_VALUES: dict[str, Callable[[dict[str, Any]], Iterable[str]]] = {
    "model": lambda _: WEIGHTS,
    "judge": lambda _: WEIGHTS,
    "patience": lambda _: ["off"],
    "share": lambda _: LEVELS,
    "no_check": lambda _: ["all", "constraints", "examples", "results", "run"],
    "language": lambda _: sorted(names[0] for _, names, *_ in get_all_lexers() if names),
    "profile": lambda v: [*profiles.NAMES, *(n for n in _of(v, dict) if "criteria" in v[n])],
    "output": lambda v: ["refined", *_of(v, str)],
    **dict.fromkeys(
        ("var", "no_var"),
        lambda v: [n for n in v if not isfunction(v[n]) and not ismodule(v[n])],
    ),
    "prompts": lambda v: _of(v, dict),
    "check": lambda v: [*checks.BUILTIN, *(n for n in v if isfunction(v[n]))],
}


def _arguments(
    run: Run | None, variables: dict[str, Any], command: str, *given: str
) -> Iterable[str]:
    numbers = [str(one.number) for one in run.iterations] if run else []
    match command:
        case "accept" if not {*given} & {*PLACES}:
            return [*numbers, *PLACES]
        case "right" | "should" if run and run.chosen and not (given and command == "should"):
            found = enumerate(rows(run, run.chosen), start=1)
            return [str(n) for n, one in found if not one.conditions]
        case "share":
            return ANSWERS
        case "override":
            return numbers if given else ["fail", "pass"]
        case "show" if not given:
            return [*numbers, *DETAILS]
        case "diff" | "continue" if command == "diff" or given[-1:] == ("from",):
            return numbers
        case "continue" if given[-1:] == ("as",):
            return get_args(Form)
        case "continue" | "dismiss":
            ids = [*run.chosen.results] if run and run.chosen else []
            more = run.demands if run and command == "dismiss" else ["as", "from"]
            return [*ids, *(more if not given else ())]
        case "edit" if not given:
            return ["criteria", *_of(variables, str)]
        case "tests" if not given:
            return ["below"]
        case "resume" if not given:
            return [*_run_names(), *sorted(str(path) for path in Path().glob("*.ipynb"))]
        case "forget" if not given:
            return [*_run_names(), "--all"]
    return ()


def _run_names() -> Iterable[str]:
    try:
        return [run.name for run in Journal().runs(limit=50)]
    except JournalError:
        return ()  # the command itself will report it
