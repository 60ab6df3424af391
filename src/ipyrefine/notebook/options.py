"""The options of `%%refine`: one parser, its help, and what it makes of them."""

import argparse
import difflib
import keyword
import re
import shlex
from typing import Any, NoReturn

from ipyrefine.core.runs import Budget, Limits
from ipyrefine.errors import UsageError
from ipyrefine.profiles import NAMES

EXAMPLES = """\
examples:
  %%refine --check examples -n 3
  Write is_prime(n). is_prime(7) == True, is_prime(1) == False

  %%refine --draft --goal "Make it O(n)" --check run
  def has_duplicates(xs): ...

  %%refine --budget "20k tokens, 90 s" -o reply
  Answer this complaint in three friendly sentences: my parcel came late.
"""


class MagicParser(argparse.ArgumentParser):
    """A parser whose complaints are `UsageError`s with a hint."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, instead of ending the process."""
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        if unknown:
            options = [o for a in self._actions for o in a.option_strings]
            near = difflib.get_close_matches(unknown[1], options, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            message = f"There is no option {unknown[1]}.{hint}"
        said = message.removeprefix("argument ").rstrip(".?")
        end = "?" if message.endswith("?") else "."
        raise UsageError(f"{said}{end} %%refine? lists the options.")


def parser() -> argparse.ArgumentParser:
    """Build the parser of the cell magic's line."""
    p = MagicParser(
        prog="%%refine",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Refine the cell: draft, verify, critique, revise, until it passes.",
        epilog=EXAMPLES,
    )
    add = p.add_argument
    add("-m", "--model", help="the model that writes: a server's or an embedded one's "
        "name, or recorded:FILE")  # fmt: skip
    add("--judge", help="another model to score with; the writer by default")
    add("--base-url", help="an OpenAI-compatible server")
    add("-p", "--profile", help=f"{', '.join(NAMES)}; a dict of the notebook; or a TOML "
        "file; by default decided from the cell; `%%refine profiles` lists them")  # fmt: skip
    add("--task", action="store_true", help="the cell is a task to write from")
    add("--draft", action="store_true", help="the cell is a draft to improve")
    add("--goal", help="what the draft should become")
    add("--criteria", help="what to judge on, as a,b,c, instead of the profile's criteria")
    add("--checklist", metavar="VAR", help="yes/no questions a finished text answers with yes: "
        "a list of the notebook, or a,b,c; instead of the profile's")  # fmt: skip
    add("--prompts", metavar="VAR", help="your own words for stages: a dict of the notebook with "
        "system, draft, critique, judge, revise or gate; {text}, {task} and so on stand for "
        "what goes there")  # fmt: skip
    add("-c", "--check", action="append", default=[], metavar="NAME",
        help="a function of the notebook, examples, agreement, run, lint, tests:NAME, schema:NAME, "
        "'length:<=120 words', contains:TEXT or matches:REGEX; may be repeated")  # fmt: skip
    add("-v", "--var", action="append", default=[], metavar="NAME",
        help="a variable that the task is about: the model is shown it in short, and the code "
        "of the checks examples, run and tests has it; may be repeated")  # fmt: skip
    add("-n", "--max-iterations", type=int, help="revisions allowed (4)")
    add("--target", type=float, help="score 0..1 that passes (0.8, or as the profile says)")
    add("--patience", type=int, help="revisions without gain before it stops (2)")
    add(
        "--min-findings", type=int, help="findings a critique must name (3, or as the profile says)"
    )
    add("--gate", action="store_true", default=None,
        help="a better score must also win a comparison with the best, both ways round",
    )  # fmt: skip
    add("--memory", choices=["best", "all"],
        help="a revision sees the best text, or all attempts with their feedback (best)",
    )  # fmt: skip
    add("--candidates", type=int,
        help="first texts, each from the task alone (1): all at once, or with checks at most so "
        "many, until they settle one; the best by the checks, then by the judge, is gone on with",
    )  # fmt: skip
    add("--critics", type=int,
        help="critics who read a text at once (1); what several of them name is acted on once, and "
        "a server that answers one request at a time is no faster for it")  # fmt: skip
    add("--step", action="store_true", default=None, help="pause for you after every verdict")
    add("--background", action="store_true", help="return at once; the panel goes on by itself")
    add("--budget", help='upper bounds, as "20k tokens, 30 calls, $0.05, 90 s"; each side of the '
        'tokens by itself as "10k prompt tokens, 5k completion tokens"')  # fmt: skip
    add("--price", metavar="IN,OUT",
        help='dollars per million prompt and completion tokens, as "0.15,0.60", where the '
             "price list does not know the model")  # fmt: skip
    add(
        "--temperature",
        type=float,
        help="sampling temperature of the writer (0, or as the profile says)",
    )
    add("--seed", type=int, help="sampling seed")
    add("-o", "--output", help="variable for the text (refined)")
    add("-a", "--apply", choices=["ask", "insert", "replace", "none"],
        help="what to do with the text at the end (ask)")  # fmt: skip
    add("--name", help="the run's name in the journal; made from its task by default")
    add("--no-journal", dest="journal", action="store_false",
        help="keep no journal of the run: it cannot be resumed after a restart")  # fmt: skip
    add("--plain", action="store_true", help="no widgets: text and a static record only")
    add("-q", "--quiet", action="store_true", help="show the record only, at the end")
    return p


def parse(line: str) -> argparse.Namespace:
    """Read the magic's line.

    Raises:
        UsageError: an option is unknown, lacks its value, or contradicts another.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        raise UsageError("A quote in the options is not closed.") from None
    return read(words)


def read(words: list[str]) -> argparse.Namespace:
    """Read the words of the magic's line; raises as `parse` does."""
    options = parser().parse_args(words)
    for one, other, why in _CONTRADICTIONS:
        if _given(options, one) and _given(options, other):
            raise UsageError(f"{one} and {other} contradict each other: {why}.")
    name = options.output
    if name and (not name.isidentifier() or keyword.iskeyword(name)):
        raise UsageError(f"--output {name!r} is not a variable name.")
    for option in ("criteria", "checklist"):
        if (value := getattr(options, option)) is not None and not parts(value):
            raise UsageError(f"--{option} names nothing: leave it out, or write it as a,b,c.")
    return options


_CONTRADICTIONS = (
    ("--task", "--draft", "the cell is one or the other"),
    ("--goal", "--task", "a task says by itself what is wanted"),
    ("--background", "--plain", "what runs in the background is shown in the panel"),
    ("--background", "--quiet", "what runs in the background is shown in the panel"),
    ("--step", "--quiet", "a pause waits for you, who would see nothing to wait for"),
    ("--name", "--no-journal", "the name is the one a run has in the journal"),
)


def _given(options: argparse.Namespace, option: str) -> bool:
    """Whether an option was given; one that begins with no, by what it takes away."""
    name = option.removeprefix("--")
    if name.startswith("no-"):
        return not getattr(options, name.removeprefix("no-"))
    return bool(getattr(options, name))


def limits(options: argparse.Namespace, configured: dict[str, Any]) -> Limits:
    """Make limits of the options, on top of the configured ones; the others stay unset.

    Raises:
        UsageError: a value is out of its range.
    """
    named: dict[str, Any] = {
        name: value
        for name in (
            "max_iterations",
            "target",
            "patience",
            "min_findings",
            "gate",
            "memory",
            "candidates",
            "critics",
            "step",
            "temperature",
            "seed",
        )
        if (value := getattr(options, name)) is not None
    }
    if options.budget:
        named["budget"] = budget(options.budget)
    try:
        return Limits.model_validate(configured | named)
    except ValueError as error:
        first = error.errors()[0]  # type: ignore[attr-defined]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"{option}: {first['msg'].lower()}, not {first['input']!r}.") from None


_AMOUNT = re.compile(
    r"^(?:\$\s*(?P<cost>[\d.]+)|(?P<number>[\d.]+)\s*(?P<kilo>k)?\s*"
    r"(?:(?P<side>prompt|input|completion|output)\s+tokens?|"
    r"(?P<unit>tokens?|calls?|s|sec|seconds?|min|minutes?)))$",
    re.IGNORECASE,
)

_SIDES = {
    "prompt": "prompt_tokens",
    "input": "prompt_tokens",
    "completion": "completion_tokens",
    "output": "completion_tokens",
}


def parts(text: str) -> tuple[str, ...]:
    """Read a list written as ``a, b, c``."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def budget(text: str) -> Budget:
    """Read a budget like ``20k tokens, 30 calls, $0.05, 90 s``.

    ``10k prompt tokens`` (or input) and ``5k completion tokens`` (or output) bound each side.

    >>> budget("20k tokens, 2 min").model_dump(exclude_none=True)
    {'tokens': 20000, 'seconds': 120.0}

    Raises:
        UsageError: a part of it is not an amount, or bounds something a second time.
    """
    bounds: dict[str, float] = {}
    for part in text.split(","):
        match = _AMOUNT.match(part.strip())
        try:
            if not match:
                raise ValueError
            kind, value = _amount(match)
            if kind in bounds:
                raise UsageError(f"--budget bounds the {kind.replace('_', ' ')} twice.")
            bounds[kind] = value
            Budget.model_validate(bounds)
        except UsageError:
            raise
        except ValueError:
            raise UsageError(
                f'--budget: {part.strip()!r} is not an amount like "20k tokens", "10k prompt '
                'tokens", "30 calls", "$0.05" or "90 s".'
            ) from None
    return Budget.model_validate(bounds)


def _amount(match: re.Match[str]) -> tuple[str, float]:
    if match["cost"]:
        return "cost", float(match["cost"])
    value = float(match["number"]) * (1_000 if match["kilo"] else 1)
    if match["side"]:
        return _SIDES[match["side"].lower()], int(value)
    unit = match["unit"].lower()
    if unit.startswith(("token", "call")):
        return ("tokens" if unit.startswith("t") else "calls"), int(value)
    return "seconds", value * (60 if unit.startswith("min") else 1)
