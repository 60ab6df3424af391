"""What Tab offers after `%%refine` and `%refine`: options, their values, commands; nothing else."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from IPython.core.completer import SimpleCompletion

from ipyrefine import checks, profiles
from ipyrefine.core.actions import commands
from ipyrefine.core.sharing import LEVELS
from ipyrefine.notebook.cell_source import visible_names
from ipyrefine.notebook.options import SETTINGS, choices, parser
from ipyrefine.providers.weights import WEIGHTS

_MAGIC = re.compile(r"(?P<cell>%%refine[ \t])|[ \t]*%refine[ \t]")
_OF_VARIABLES = ("var", "no_var", "check", "profile", "prompts", "output")
# What options take beside these.
_VALUES: Mapping[str, Iterable[str]] = {
    "model": WEIGHTS,
    "judge": WEIGHTS,
    "share": LEVELS,
    "profile": profiles.NAMES,
    "check": checks.BUILTIN,
}


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
    typed = re.split(r"\s", line)[-1]
    command, *before = line.removesuffix(typed).split()
    options = parser().options
    option = options.get(before[-1]) if before else None
    if before[-1:] == ["--set"]:
        offers = [f"{one}={value}" for one in SETTINGS for value in choices(one) or [""]]
    elif command == "%refine" and before[:1] != ["fix"]:
        offers = [] if before else sorted(commands())
    elif option is None or option.nargs == 0:
        offers = sorted(options)
    else:
        names = visible_names(shell) if option.dest in _OF_VARIABLES else ()
        variables = (name for name in names if name[:1] != "_")
        offers = [*(option.choices or [*_VALUES.get(option.dest, ()), *variables])]
    return typed, [offer for offer in offers if offer.startswith(typed)]
