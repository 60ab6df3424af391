"""The options of `%%refine`: their parser with its help, and the limits and budget they set.

A new option is a line of help.toml, under `[set]` if few would miss it, and one of `_READ` unless
its value is a text.
"""

import argparse
import builtins
import keyword
import os
import re
import shlex
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

from ipyrefine import checks
from ipyrefine.api import EFFORTS, read_limits
from ipyrefine.core.languages import pygments_name
from ipyrefine.core.model import Budget, Limits
from ipyrefine.core.prompts import APPENDED, PLACES
from ipyrefine.errors import UsageError, did_you_mean, nearest
from ipyrefine.notebook.cell_target import CELL_ID

_HELP = tomllib.loads(Path(__file__).with_name("help.toml").read_text("utf-8"))
EXAMPLES: str = _HELP["examples"]
_OCCUPIED = re.compile(r"_+|__\w+|In|Out|get_ipython|refined_run")  # of a shell, and of a run
_CONTRADICTIONS = (
    ("--draft", "--set as=task", "the cell is one or the other"),
    ("--goal", "--set as=task", "a task states its goal itself"),
    ("--lines", "--set as=task", "the lines are a draft's"),
    ("--coach", "--set as=task", "it is about code of yours"),
    ("--coach", "--change", "nothing is written for you"),
    ("--coach", "--max-revisions", "nothing is written for you"),
    ("--background", "--plain", "a run in the background needs the panel"),
    ("--background", "--set quiet=yes", "a run in the background needs the panel"),
    ("--step", "--set quiet=yes", "you would not see that the run waits for you"),
)


# What is typed behind an option


def _matching(pattern: str, otherwise: str, read: Callable[[str], Any] = str) -> Any:
    """Return what reads a text of a form, or else says so; ``{}`` is the text, quoted."""

    def parse(text: str) -> Any:
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(otherwise.format(repr(text)))
        return read(text)

    return parse


def split_list(text: str) -> tuple[str, ...]:
    """Split a list written as ``a, b, c``."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _parse_language(text: str) -> str:
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

    languages = {alias for _, aliases, *_ in get_all_lexers() for alias in aliases}
    if pygments_name(text) in languages:
        return text
    hint = did_you_mean(text.lower(), languages)
    raise argparse.ArgumentTypeError(f"there is no language {text!r}.{hint}")


# The options


_COUNT = _matching("[0-9]|[1-4][0-9]|50", "{} is not a number from 0 to 50", int)
# How values are read, of options and of settings: by a function, or as one of these words.
_READ: dict[str, Callable[[str], Any] | Sequence[str]] = {
    **dict.fromkeys(("max_revisions", "max_tokens", "min_findings", "seed"), int),
    **dict.fromkeys(("delta", "target", "temperature", "timeout"), float),
    **{
        limit: get_args(Limits.model_fields[limit].annotation)
        for limit in ("base", "critique", "memory", "revise")
    },
    **dict.fromkeys(("journal", "quiet", "unconfined"), ("yes", "no")),
    "above": _COUNT,
    # Never quoted: it may be a key.
    "api_key_env": _matching(r"[A-Za-z_][A-Za-z0-9_]*", "it takes a variable's name, not a key."),
    "apply": ("ask", "insert", "replace", "none"),
    "as": ("task",),
    "cell": _matching(CELL_ID, "{} is not a cell's id."),
    "context": _COUNT,
    "effort": EFFORTS,
    "language": _parse_language,
    "lines": _matching(
        r"\d{1,6}(-\d{1,6})?",
        "{} is not a range of lines like 3-7",
        lambda text: (int(text.partition("-")[0]), int(text.rpartition("-")[2])),
    ),
}
_REPEATED = ("var", "no_var", "check", "no_check")
SETTINGS: Mapping[str, str] = _HELP["set"]


def choices(name: str) -> Sequence[str]:
    """Return the words that an option or a setting may have; none where it may have others."""
    read = _READ.get(name)
    return () if read is None or callable(read) else read


def spell(name: str) -> str:
    """Return how an option, or a setting, is typed."""
    name = "as" if name == "task" else name
    return f"--set {name}" if name in SETTINGS else f"--{name.replace('_', '-')}"


def _setting(name: str, value: str) -> str:
    """Return a setting as it is typed; a key is never repeated."""
    value = "NAME" if name == "api_key_env" else value or "|".join(choices(name)) or "VALUE"
    return f"--set {shlex.quote(f'{name}={value}')}" if " " in value else f"--set {name}={value}"


_SET = "--set:"  # what a setting's name starts with for the parser


class MagicParser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` with a hint instead of ending the process."""

    @property
    def options(self) -> Mapping[str, argparse.Action]:
        """Return the options by each of their names; settings are none of them."""
        found = self._option_string_actions.items()
        return {name: action for name, action in found if not name.startswith(_SET)}

    def error(self, message: str) -> NoReturn:
        """Raise an argparse message as a `UsageError`."""
        sentence = message.removeprefix("argument ").rstrip(".")
        about = " set" if re.search("--set|setting", sentence) else ""
        end = "" if sentence.endswith("?") else "."
        lists = f"%%refine?{about} lists the {'settings' if about else 'options'}."
        raise UsageError(f"{sentence.replace(_SET, '--set ')}{end} {lists}")

    def read(self, words: Iterable[str]) -> argparse.Namespace:
        """Parse words; errors as for `parse`."""
        options, unknown = self.parse_known_args([*self._joined(words)])
        if unknown:
            name, equals, value = unknown[0].partition("=")
            if not equals and unknown[1:] and unknown[1][:1] != "-":
                value = unknown[1]
            kind = "setting" if name.startswith(_SET) else "option"
            shown, hint = name.removeprefix(_SET), f".{self.instead(name, value)}"
            if not name.startswith("-") and not hint.startswith(". Type"):
                hint = '; put a value of several words in quotes like "this"'
            self.error(f"There is no {kind} {shown}{hint}")
        options.journal = options.journal != "no"
        options.quiet = options.quiet == "yes"
        options.unconfined = options.unconfined and options.unconfined == "yes"
        return options

    def _joined(self, words: Iterable[str]) -> Iterator[str]:
        left = iter(words)
        for word in left:
            setting = next(left, "") if word == "--set" else word.removeprefix("--set=")
            if setting == word:
                yield word
            elif not re.match(r"[\w-]+=.", setting):
                name = setting.strip("=")
                self.error(f"Type {_setting(name, '') if name in SETTINGS else '--set NAME=VALUE'}")
            else:
                yield _SET + setting

    def instead(self, typed: str, value: str = "") -> str:
        """Return what to type for an unknown option or setting, with its value; or nothing."""
        name = typed.removeprefix(_SET).strip("-").replace("-", "_")
        known = {one.strip("-").replace("-", "_"): one for one in self.options if len(one) > 2}
        known |= {one: _setting(one, value) for one in SETTINGS}
        near = next(iter(nearest(name, known)), "")
        if near != name or not name:
            return f" Did you mean {known[near]}?" if near else ""
        takes_value = known[name] in self.options
        return f" Type {known[name]} {value if takes_value else ''}".rstrip() + "."


def parser() -> MagicParser:
    """Build the parser of the cell magic's line."""
    p = MagicParser(
        prog="%%refine",
        usage="%(prog)s [options], with the task or the draft in the lines below",
        add_help=False,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=27, width=80
        ),
        description="Refine the cell: draft, verify, critique, revise, until it passes.\n"
        "Defaults are in parentheses.",
        epilog=f"{EXAMPLES}\n\n{_wrap(_TOPICS, '', '')}",
    )
    for title, rows in _HELP["options"].items():
        group = p.add_argument_group(title)
        for typed, words in rows.items():
            *names, last = typed.split(", ")
            name, _, metavar = last.partition(" ")
            how: dict[str, Any] = {"action": "store_true"}
            if metavar:
                how = _how(name.strip("-").replace("-", "_")) | {"metavar": metavar}
            group.add_argument(*names, name, help=words, **how)
    for alias, name in _HELP["aliases"].items():
        option = p.options[name]
        how = {"dest": option.dest, "type": option.type, "metavar": option.metavar}
        group.add_argument(alias, help=f"the same as {name}", **how)
    for name in SETTINGS:
        group.add_argument(_SET + name, dest=name, help=argparse.SUPPRESS, **_how(name))
    p.set_defaults(step=None)
    return p


def _how(name: str) -> dict[str, Any]:
    how = {"choices": choices(name)} if choices(name) else {"type": _READ.get(name)}
    return how | ({"action": "append", "default": []} if name in _REPEATED else {})


# Further help


def topic(name: str) -> str:
    """Return the help on one of the subjects that `%%refine?` names last.

    Raises:
        UsageError: there is no such subject.
    """
    if name not in TOPICS:
        hint = did_you_mean(name, TOPICS) or f" There are {', '.join(TOPICS)}."
        raise UsageError(f"There is no help on {name!r}.{hint}")
    note = _wrap(_HELP["topics"].get(name, ""))
    match name:
        case "checks":
            lines = checks.help_table()
        case "prompts":
            stages = [_wrap(places, f"  {stage:<10}", " " * 12) for stage, places in PLACES.items()]
            lines = "\n".join([*stages, _wrap(APPENDED)])
        case "set":
            typed = {one: f"{one}={'|'.join(choices(one)) or 'VALUE'}" for one in SETTINGS}
            lines = "\n".join(f"  {typed[one]:<24} {words}" for one, words in SETTINGS.items())
        case _:
            lines = ""
    return "\n".join(filter(None, [f"{name}:", lines, note]))


def _wrap(text: str, start: str = "  ", below: str = "  ") -> str:
    return textwrap.fill(text, 79, initial_indent=start, subsequent_indent=below)


TOPICS: Sequence[str] = tuple(_HELP["topics"])
_TOPICS = f"More: %%refine? TOPIC, of {', '.join(TOPICS)}. Commands: %refine?"


def parse(
    line: str | Iterable[str], defaults: Mapping[str, Any] | None = None
) -> argparse.Namespace:
    """Parse the magic's line, or its words; `defaults` hold where these say nothing.

    Raises:
        UsageError: an option is unknown, lacks its value, or contradicts another.
    """
    try:
        words = shlex.split(line) if isinstance(line, str) else list(line)
    except ValueError:
        raise UsageError("A quote in the options is not closed.") from None
    p = parser()
    options = p.read(words)
    for one, other, reason in _CONTRADICTIONS:
        names = (n.removeprefix("--set ").partition("=")[0].strip("-") for n in (one, other))
        if all(getattr(options, name.replace("-", "_")) for name in names):
            raise UsageError(f"{one} and {other} contradict each other: {reason}.")
    if defaults:
        options = p.read([*_words(defaults, p.options), *words])
    name = options.output
    if name and (not name.isidentifier() or keyword.iskeyword(name)):
        raise UsageError(f"--output {name!r} is not a variable name.")
    if name and (hasattr(builtins, name) or _OCCUPIED.fullmatch(name)):
        raise UsageError(f"--output {name!r} is a name of Python or IPython. Choose another.")
    options.task = getattr(options, "as") == "task"
    if options.criteria is not None and not split_list(options.criteria):
        raise UsageError("--criteria is empty. Leave it out, or write it as a,b,c.")
    return options


def _words(defaults: Mapping[str, Any], options: Mapping[str, argparse.Action]) -> Iterator[str]:
    for name, value in ((str(name), value) for name, value in defaults.items()):
        option = options.get(spell(name))
        if name in SETTINGS:
            value = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
            yield from ("--set", f"{name}={value}")
        elif option is None:
            hint = parser().instead(name, str(value))
            raise UsageError(f"There is no option or setting {name}.{hint}")
        elif option.nargs == 0 and not isinstance(value, bool):
            raise UsageError(f"{name} is True or False, not {value!r:.200}.")
        elif option.nargs == 0:
            yield from [spell(name)] * bool(value)
        else:
            several = value if isinstance(value, list | tuple) else [value]
            yield from (f"{spell(name)}={one}" for one in several)


def limits(options: argparse.Namespace) -> Limits:
    """Return the limits that the options set; the others stay unset.

    An option that bears the name of a limit sets it.

    Raises:
        UsageError: a value is out of its range.
    """
    named = {
        name: None if name == "patience" and str(value).lower() in ("off", "none") else value
        for name in Limits.model_fields
        if (value := getattr(options, name, None)) is not None
    }
    if options.budget is not None:
        named["budget"] = parse_budget(options.budget)
    return read_limits(named, spell)


def read_key(options: argparse.Namespace, magics: Any) -> Callable[[], str] | None:
    """Return what reads a server's key before each call; None where no variable is named for it.

    Raises:
        UsageError: the variable that should hold the key is not set.
    """
    # The setting is for the server of the settings. A cell that names another may be a stranger's.
    name = options.api_key_env or ("" if options.base_url else magics.api_key_env)
    if name and not os.environ.get(name):
        raise UsageError(
            "The variable that --set api_key_env or Refine.api_key_env names is not set. Set it to "
            "the server's key."
        )
    return (lambda: os.environ.get(name, "")) if name else None


_AMOUNT = re.compile(r"(\$?)\s*([\d.]+)\s*(k?)\s*([a-z ]*)", re.IGNORECASE)
# What each unit bounds, and how much of it one is.
_UNITS = {
    **{"token": ("tokens", 1), "call": ("calls", 1), "$": ("cost", 1)},
    **dict.fromkeys(("s", "sec", "second"), ("seconds", 1)),
    **dict.fromkeys(("min", "minute"), ("seconds", 60)),
    **dict.fromkeys(("prompt token", "input token"), ("prompt_tokens", 1)),
    **dict.fromkeys(("completion token", "output token"), ("completion_tokens", 1)),
}


def parse_budget(text: str) -> Budget:
    """Parse a budget like ``20k tokens, 30 calls, $0.05, 90 s``.

    ``10k prompt tokens`` (or input) and ``5k completion tokens`` (or output) bound each side.

    >>> parse_budget("20k tokens, 2 min").model_dump(exclude_none=True)
    {'tokens': 20000, 'seconds': 120.0}

    Raises:
        UsageError: a part is not an amount, or bounds something a second time.
    """
    bounds = {}
    for part in map(str.strip, text.split(",")):
        match = _AMOUNT.fullmatch(part)
        dollar, number, kilo, unit = match.groups() if match else ("", "", "", "")
        unit = f"{dollar}{unit.lower().strip()}"
        kind, factor = _UNITS.get(unit.removesuffix("s") or unit, ("", 0))
        if kind in bounds:
            raise UsageError(f"--budget bounds the {kind.replace('_', ' ')} twice.")
        try:
            value = float(number) * factor * (1_000 if kilo else 1)
            bounds[kind] = value if kind in ("cost", "seconds") else int(value)
            Budget.model_validate(bounds)
        except ValueError:
            raise UsageError(
                f'--budget: {part!r} is not an amount like "20k tokens", "10k prompt tokens", '
                '"30 calls", "$0.05" or "90 s".'
            ) from None
    return Budget.model_validate(bounds)
