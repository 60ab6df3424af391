"""The options of `%%refine`: their parser with its help, and the limits and budget they set."""

import argparse
import keyword
import os
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, get_args

from pydantic import ValidationError

from ipyrefine import checks
from ipyrefine.api import EFFORTS
from ipyrefine.core.model import Budget, Limits
from ipyrefine.core.prompts import APPENDED, PLACES
from ipyrefine.core.sharing import LEVELS
from ipyrefine.core.syntax import pygments_name
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.notebook.cell_target import is_cell_id
from ipyrefine.profiles import NAMES

_HELP = tomllib.loads(Path(__file__).with_name("help.toml").read_text("utf-8"))
EXAMPLES: str = _HELP["examples"]
_BETTER = "examples and your tests (--check) decide which text is better."
_REMOVED = {
    option: f"{option} is gone: {instead}"
    for option, instead in {
        "--pairwise": _BETTER,
        "--gate": _BETTER,
        "--opinion": "a critic reads each text (--critique); for scores, use --target or --prompts "
        'with an evaluator of yours under "judge".',
        "--max-eval-chars": "readers see the whole text.",
    }.items()
}
_CONTRADICTIONS = (
    ("--task", "--draft", "the cell is one or the other"),
    ("--goal", "--task", "a task states its goal itself"),
    ("--background", "--plain", "a run in the background needs the panel"),
    ("--background", "--quiet", "a run in the background needs the panel"),
    ("--step", "--quiet", "you would not see that the run waits for you"),
    ("--name", "--no-journal", "the name is for the journal"),
    ("--coach", "--task", "it is about code of yours"),
    ("--coach", "--change", "nothing is written for you"),
    ("--coach", "--max-revisions", "nothing is written for you"),
    ("--lines", "--task", "the lines are a draft's"),
)


class MagicParser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` with a hint instead of ending the process."""

    @property
    def options(self) -> Mapping[str, argparse.Action]:
        """Return the options by each of their names."""
        return self._option_string_actions

    def error(self, message: str) -> NoReturn:
        """Raise an argparse message as a `UsageError`."""
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        if unknown:
            hint = did_you_mean(unknown[1], self.options)
            message = f"There is no option {unknown[1]}.{hint}"
        sentence = message.removeprefix("argument ").rstrip(".?")
        end = "?" if message.endswith("?") else "."
        raise UsageError(f"{sentence}{end} %%refine? lists the options.")


def parser() -> MagicParser:
    """Build the parser of the cell magic's line."""
    p = MagicParser(
        prog="%%refine",
        usage="%(prog)s [options], with the task or the draft in the lines below",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Refine the cell: draft, verify, critique, revise, until it passes.\n"
        "Defaults are in parentheses.",
        epilog=_epilog(),
    )
    # fmt: off
    add = p.add_argument_group("task").add_argument
    add("-p", "--profile", help=f"{', '.join(NAMES)}; a dict of the notebook; or a TOML file; by "
        "default the model says whether a task wants code or words; `%%refine profiles` lists them")
    add("--task", action="store_true", help="the cell is a task")
    add("--draft", action="store_true", help="the cell is a draft to improve")
    add("--goal", help="how to improve the draft")
    add("--change", help="what to change in the draft; it is done at once, and read afterwards")
    add("--coach", action="store_true",
        help="for a student, whose code stands below the task: nothing is written, and you predict "
        "what your code gives where it fails, before you see it")
    add("--lines", type=_parse_lines, metavar="A-B",
        help="the lines of the draft that may change, as 3-7 or 5; what a model changes elsewhere "
        "is put back")
    add("--language", metavar="NAME", help="the language of the code, as java or c++; by default "
        "as the task or the draft says, else Python")
    add("--again", action="store_true",
        help="refine it again; without it, a cell that you have decided and left unchanged shows "
        "its record")
    add = p.add_argument_group("context").add_argument
    add("-v", "--var", action="append", default=[], metavar="NAME",
        help="a variable that the task is about, shown to the model with its value, and copied for "
        "the code of the checks; may be repeated. Names that the cell, or the cells before it, use "
        "are found without it and shown by their structure")
    add("--no-var", action="append", default=[], metavar="NAME",
        help="leave out a name, or all; may be repeated")
    add("--context", type=_parse_count, metavar="N",
        help="show the model what the last N cells used (3 by default, 0 for nothing), and the N "
        "cells above with their outputs in short")
    add("--share", choices=LEVELS,
        help="what a model's server is sent: of what code computed from variables or files, types, "
        "shapes and lines (structure, the default elsewhere); the code of the cells before without "
        "its data, too (code); messages and short outputs (outputs); the values of the names that "
        "the cell uses, and those cells as they are (values, the default on this machine)")
    add = p.add_argument_group("verdict").add_argument
    add("-c", "--check", action="append", default=[], metavar="NAME", help=checks.option_help())
    add("--no-check", action="append", default=[], metavar="NAME",
        help="leave out a check that the task's own demands add: examples, constraints, agreement, "
        "run (of code that uses variables, on copies), or all; may be repeated")
    add("--criteria", help="what to read it for, as a,b,c, instead of the profile's criteria and "
        "checklist")
    add("--checklist", metavar="VAR", help="yes/no questions that a finished text answers with "
        "yes: a list of the notebook, or a,b,c; instead of the profile's; none for none")
    add("--target", type=float, metavar="SCORE",
        help="score 0..1 that passes: your evaluator's, or that of a prompt that ships; without "
        "--critique, it switches critiques off")
    add = p.add_argument_group("drafts and revisions").add_argument
    add("--candidates", type=int, metavar="N",
        help="independent drafts (1); with checks, only as many of them as it takes to settle one; "
        "continues from the best")
    add("--critique", choices=get_args(Limits.model_fields["critique"].annotation),
        help="when a critic reads a text and writes tests for it: before it passes, unless your "
        "own tests, function or evaluator decide, or it is a plot, a display, microcopy or a small "
        "edit (auto); always; never")
    add("--categories", help="what a critique looks at, as a,b,c, instead of the profile's")
    add("--min-findings", type=int, metavar="N",
        help="findings that a critique must name (0, or the profile's)")
    add("--revise", choices=get_args(Limits.model_fields["revise"].annotation),
        help="how a text that misses a check is revised: the text with what is wrong (edit), or "
        "another draft (sample), as for a writer that was measured too weak to edit (auto)")
    add("--base", choices=get_args(Limits.model_fields["base"].annotation),
        help="the text a revision continues from: the latest, the best, or the latest unless it is "
        "worse (auto)")
    add("--memory", choices=["best", "all"],
        help="whether a revision sees the text that it continues from (best), or all attempts with "
        "their feedback")
    add = p.add_argument_group("limits").add_argument
    add("-n", "--max-revisions", type=int, metavar="N",
        help="revisions allowed after the draft (4); without --patience, it switches "
        "patience off")
    add("--patience", type=_parse_patience, metavar="N",
        help="revisions without improvement before it stops (2); off for any number")
    add("--delta", type=float, metavar="GAIN",
        help="gain in score, 0..1, that is too small to count as an improvement (0)")
    add("--budget", help='upper bounds, as "20k tokens, 30 calls, $0.05, 90 s"; or per kind of '
        'token, as "10k prompt tokens, 5k completion tokens"')
    add("--price", metavar="IN,OUT", help="dollars per million prompt and completion tokens, as "
        '"0.15,0.60", for a model that is not in the price list')
    add("--max-tokens", type=int, metavar="N",
        help="completion tokens allowed per call (2,048 for an embedded model; else 16,384 or "
        "three times the text, and four times that after a reply that was cut off)")
    add = p.add_argument_group("models and prompts").add_argument
    add("-m", "--model",
        help="the model that writes: a model of the server, an embedded model, or recorded:FILE")
    add("--judge", help="the model that reads, as critic or evaluator (the one that writes)")
    add("--base-url", metavar="URL", help="an OpenAI-compatible server; without --api-key-env "
        "it gets a key only if OPENAI_BASE_URL names it too")
    add("--api-key-env", type=_parse_variable, metavar="NAME",
        help="the environment variable that holds the server's key (OPENAI_API_KEY)")
    add("--timeout", type=float, metavar="SECONDS",
        help="how long the server may be silent before the run ends (600)")
    add("--effort", choices=EFFORTS, help="how hard a model that thinks should think; for other "
        "fields of a request see `%%config Refine.extra`")
    add("--prompts", metavar="VAR", help="your own prompts: a dict of the notebook, by stage; see "
        "prompts below")
    add("--temperature", type=float, metavar="T",
        help="sampling temperature of the writer (the profile's, else the server's own)")
    add("--seed", type=int, metavar="N", help="sampling seed")
    add = p.add_argument_group("result").add_argument
    add("-o", "--output", metavar="NAME", help="variable for the text (refined)")
    add("-a", "--apply", choices=["ask", "insert", "replace", "none"],
        help="what to do with the text at the end (ask)")
    add("--cell", type=_parse_cell_id, metavar="ID",
        help="the notebook cell that this text is from, as the button above a cell writes it: "
        "accepting replaces its text, unless that has changed meanwhile")
    add("--name", help="the run's name in the journal; by default made from the task")
    add("--no-journal", dest="journal", action="store_false",
        help="keep the run out of the journal: it cannot be resumed after a restart")
    add = p.add_argument_group("display").add_argument
    add("--step", action="store_true", default=None, help="pause for you after every verdict")
    add("--background", action="store_true", help="return at once; the run continues in the panel")
    add("--plain", action="store_true", help="no widgets: text and a static record only")
    add("-q", "--quiet", action="store_true", help="show only the record, at the end")
    # fmt: on
    return p


def _epilog() -> str:
    """Return what follows the options: examples, checks, prompts by stage, and notes."""
    stages = [_wrap(places, f"  {stage:<10}", " " * 12) for stage, places in PLACES.items()]
    prompts = "\n".join(["prompts:", *stages, _wrap(APPENDED)])
    notes = (f"{subject}:\n{_wrap(note)}" for subject, note in _HELP["notes"].items())
    return "\n\n".join([EXAMPLES, checks.help_table(), prompts, *notes])


def _wrap(text: str, start: str = "  ", below: str = "  ") -> str:
    return textwrap.fill(text, 78, initial_indent=start, subsequent_indent=below)


_OFF = "off"


def _parse_patience(text: str) -> int | str:
    if text.lower() in (_OFF, "none"):
        return _OFF
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor off") from None


def _parse_lines(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of lines like 3-7")
    return int(match[1]), int(match[2] or match[1])


def _parse_cell_id(text: str) -> str:
    if not is_cell_id(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a cell's id")
    return text


def _parse_variable(text: str) -> str:
    """Return the name of an environment variable, which is never quoted: it may be a key."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise argparse.ArgumentTypeError("it takes the name of a variable, not a key")
    return text


def _parse_count(text: str) -> int:
    if text.isdecimal() and int(text) <= 50:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 50")


def parse(line: str | Iterable[str]) -> argparse.Namespace:
    """Parse the magic's line, or its words.

    Raises:
        UsageError: an option is unknown, lacks its value, or contradicts another.
    """
    try:
        words = shlex.split(line) if isinstance(line, str) else list(line)
    except ValueError:
        raise UsageError("A quote in the options is not closed.") from None
    for word in words:
        if (reason := _REMOVED.get(word.partition("=")[0])) is not None:
            raise UsageError(reason)
    options = parser().parse_args(words)
    for one, other, reason in _CONTRADICTIONS:
        if _is_set(options, one) and _is_set(options, other):
            raise UsageError(f"{one} and {other} contradict each other: {reason}.")
    name = options.output
    if name and (not name.isidentifier() or keyword.iskeyword(name)):
        raise UsageError(f"--output {name!r} is not a variable name.")
    for option in ("criteria", "checklist", "categories"):
        if (value := getattr(options, option)) is not None and not split_list(value):
            raise UsageError(f"--{option} is empty. Leave it out, or write it as a,b,c.")
    if options.language is not None:
        from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

        languages = {alias for _, aliases, *_ in get_all_lexers() for alias in aliases}
        if pygments_name(options.language) not in languages:
            hint = did_you_mean(options.language.lower(), languages)
            raise UsageError(f"There is no language {options.language!r}.{hint}")
    return options


def _is_set(options: argparse.Namespace, option: str) -> bool:
    """Return whether an option is set: a ``--no-…`` one when it switched something off."""
    name = option.removeprefix("--")
    if name.startswith("no-"):
        return not getattr(options, name.removeprefix("no-"))
    return bool(getattr(options, name.replace("-", "_")))


def limits(options: argparse.Namespace, configured: Mapping[str, Any]) -> Limits:
    """Return the limits that the options set, over the configured ones; the others stay unset.

    An option that bears the name of a limit sets it.

    Raises:
        UsageError: a value is out of its range.
    """
    named: dict[str, Any] = {
        name: None if value == _OFF else value
        for name in Limits.model_fields
        if (value := getattr(options, name, None)) is not None
    }
    if options.budget:
        named["budget"] = parse_budget(options.budget)
    try:
        return Limits.model_validate({**configured, **named})
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"{option}: {first['msg'].lower()}, not {first['input']!r}.") from None


def server(options: argparse.Namespace, magics: Any) -> dict[str, Any]:
    """Return how servers are asked, as `api.build` takes it, with what reads the key.

    Raises:
        UsageError: the variable that should hold the key is not set.
    """
    # The setting is for the server of the settings. A cell that names another may be a stranger's.
    name = options.api_key_env or ("" if options.base_url else magics.api_key_env)
    if name and not os.environ.get(name):
        raise UsageError(
            "The variable that --api-key-env or Refine.api_key_env names is not set. Set it to the "
            "server's key."
        )
    return {
        "api_key": (lambda: os.environ.get(name, "")) if name else None,
        "base_url": options.base_url or magics.base_url or None,
        "timeout": magics.timeout if options.timeout is None else options.timeout,
        "effort": options.effort,
        "extra": magics.extra,
    }


def split_list(text: str) -> tuple[str, ...]:
    """Split a list written as ``a, b, c``."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


_AMOUNT = re.compile(r"(\$?)\s*([\d.]+)\s*(k?)\s*([a-z ]*)", re.IGNORECASE)
# What each unit bounds, and how much of it one is.
_UNITS = {
    **dict.fromkeys(("token", "tokens"), ("tokens", 1)),
    **dict.fromkeys(("call", "calls"), ("calls", 1)),
    **dict.fromkeys(("s", "sec", "second", "seconds"), ("seconds", 1)),
    **dict.fromkeys(("min", "minute", "minutes"), ("seconds", 60)),
    **{
        f"{side} token{plural}": (name, 1)
        for side, name in (
            *(("prompt", "prompt_tokens"), ("input", "prompt_tokens")),
            *(("completion", "completion_tokens"), ("output", "completion_tokens")),
        )
        for plural in ("", "s")
    },
    "$": ("cost", 1),
}


def parse_budget(text: str) -> Budget:
    """Parse a budget like ``20k tokens, 30 calls, $0.05, 90 s``.

    ``10k prompt tokens`` (or input) and ``5k completion tokens`` (or output) bound each side.

    >>> parse_budget("20k tokens, 2 min").model_dump(exclude_none=True)
    {'tokens': 20000, 'seconds': 120.0}

    Raises:
        UsageError: a part is not an amount, or bounds something a second time.
    """
    bounds: dict[str, float] = {}
    for part in map(str.strip, text.split(",")):
        match = _AMOUNT.fullmatch(part)
        dollar, number, kilo, unit = match.groups() if match else ("", "", "", "")
        kind, factor = _UNITS.get(f"{dollar}{unit.lower().strip()}", ("", 0))
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
