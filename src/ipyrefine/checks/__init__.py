"""Checks: deterministic tests of a text, each of which returns a `Result`.

A check is a built-in one by its name, such as ``tests:suite seconds=30``, or a user's own function.
A new built-in one is one file with a class, and one line in `BUILTIN`. The class has ``name``, the
call that `ipyrefine.core.ports.Check` describes, and a classmethod
``from_argument(argument, context, **settings)``.

Checks find mistakes; they do not stop a text that was written to deceive them, which is read before
it is accepted. Results are compared as data outside of the process that the text runs in. A test
that the text skips, or ends early, has failed; the user's own skips are counted apart, and where
all are skipped nothing was run. Under ``run`` an exit before the end fails, and so does an
exception in a thread. ``schema`` reads JSON strictly (no ``NaN``, no repeated keys). That code runs
settles nothing, and neither does a length alone.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ipyrefine.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ipyrefine.core.ports import Check
    from ipyrefine.kernel.variables import Variables

_MAX_SECONDS = 3_600
_BOTH = ("seconds", "decisive")
_USUAL_SECONDS = 20  # what a record may give a check; more of them only its reader
_SETTING = re.compile(r"[^\W\d]\w*=.*|seconds|decisive")
_FLAGS = {"": True, "yes": True, "true": True, "no": False, "false": False}


class Context(NamedTuple):
    """What checks are made from."""

    namespace: Mapping[str, Any]  # the user's variables
    target: float  # the score that passes, for functions that return one
    copies: Any  # of the variables


class BuiltIn(NamedTuple):
    """One line of the table."""

    name: str  # what the user writes
    argument: str  # what follows the colon, in help; empty for a check that takes none
    help: str  # what holds when it passes
    # The class, as ``module:Class`` within this package; imported when used, as loading the
    # extension must stay light.
    factory: str
    # What may follow the argument in the same word; None for free text, which could end anywhere.
    settings: tuple[str, ...] | None = _BOTH
    form: Literal["", "code", "data"] = ""  # the only kind of text it is for; empty for any

    @property
    def prefix(self) -> str:
        """Return what a name of this check starts with: ``run``, or ``tests:``."""
        return f"{self.name}:" if self.argument else self.name

    @property
    def usage(self) -> str:
        """Return how it is written on a command line: ``run``, or ``tests:NAME``."""
        usage = f"{self.prefix}{self.argument}"
        return f"'{usage}'" if " " in usage else usage


# fmt: off
_TABLE = (
    BuiltIn("examples", "", "the examples that the task states hold", "evaluation:Examples"),
    BuiltIn("results", "", "what the text gives on a few inputs, for you to confirm; it settles nothing", "rows:Results", form="code"),  # noqa: E501
    BuiltIn("run", "", "the code runs to its end, which alone is not enough to pass", "python:RunsCleanly", form="code"),  # noqa: E501
    BuiltIn("tests", "NAME", "pytest tests or asserts pass: a text, a function or a list of them, or a file", "tests:Tests", form="code"),  # noqa: E501
    BuiltIn("schema", "NAME", "the text is JSON that a pydantic model or a JSON schema accepts", "schema:Schema", form="data"),  # noqa: E501
    BuiltIn("json", "", "the text is JSON", "schema:Json", (), form="data"),
    BuiltIn("length", "<=120 words", "its length is within bounds, such as 2-4 sentences", "text:Length", ()),  # noqa: E501
)
# fmt: on
# Added to a task by itself, never by its name; a run that is resumed has it by that.
_RUN_ON_COPIES = BuiltIn("run on copies", "", "", "python:RunOnCopies", None, form="code")
BUILTIN = {kind.prefix: kind for kind in _TABLE}


def help_table() -> str:
    """Return the checks with what each requires, a line for each, for help."""
    kinds = BUILTIN.values()
    width = max(len(kind.usage) for kind in kinds)
    lines = [f"  {kind.usage.ljust(width)}  {kind.help}" for kind in kinds]
    own = "your function, such as `def my_check(text): return 'Ann' in text`"
    return "\n".join([*lines, f"  {'my_check'.ljust(width)}  {own}"])


def form_of(name: str) -> str:
    """Return the only kind of text a check is for (``code``, ``data``), or an empty string."""
    kind = _find(name)
    return kind.form if kind else ""


def resolve(
    checks: "Sequence[Check | Callable[..., Any] | str]",
    namespace: Mapping[str, Any],
    *,
    target: float = 0.8,
    variables: "Variables | Mapping[str, Any] | None" = None,
) -> "tuple[Check, ...]":
    """Return the checks of some names, functions and checks.

    A name is one of `BUILTIN`, with what follows the colon, or a function's in the namespace. After
    it may follow ``seconds=NUMBER``, the processor time it may take, and ``decisive`` or
    ``decisive=no``: a pass settles the verdict, or does not. ``length`` and ``json`` take neither.
    Checks stay as they are. The target is for functions that return a score.

    Raises:
        UsageError: a check does not exist, cannot be made or called, or does not have a setting; or
            a variable looks like a secret.
    """
    from ipyrefine.kernel.variables import Variables

    if not checks:
        return ()  # no copies are needed
    context = Context(namespace, target, Variables.of(variables).copies)
    names = dict.fromkeys(check for check in checks if isinstance(check, str))
    objects = [check for check in checks if not isinstance(check, str)]
    found: tuple[Any, ...] = (
        *(_from_name(name, context) for name in names),
        *(_from_object(check, context) for check in objects),
    )
    taken = set()
    for check in found:
        if not is_built_in(check) and (check.name in taken or _find(check.name) is not None):
            name = re.sub(r"\W+", "_", check.name)
            other = (f"{name}(){'' if n == 1 else f' {n}'}" for n in count(1))
            check.name = next(one for one in other if not (one in taken or _find(one)))
        taken.add(check.name)
    return found


def is_built_in(check: Any) -> bool:
    """Return True if a check is built in, not a user's function or object."""
    ours = type(check).__module__.startswith("ipyrefine.")
    return ours and not getattr(check, "is_evaluator", False)


def from_record(
    names: Sequence[str],
    own: "Sequence[Check]" = (),
    *,
    variables: "Variables | Mapping[str, Any] | None" = None,
) -> "tuple[Check, ...]":
    """Return the checks that a record names, in its order.

    A record is foreign: what it names is never looked up among the reader's functions, variables
    or files. So only those built-in checks are made that need none; the reader brings the others,
    by their names in the record, and chooses the variables as well.

    Raises:
        UsageError: one of them is missing, or a variable cannot be passed on.
    """
    if missing := needs_reader(names, own):
        words = " ".join(f"--check {shlex.quote(name)}" for name in missing)
        raise UsageError(
            "A record can't bring code of its own or raise a limit. "
            f"To check with yours, add {words}."
        )
    left = {check.name: check for check in own}
    made = [
        left.pop(n) if n in left else resolve([n], {}, variables=variables or {})[0] for n in names
    ]
    return (*made, *left.values())


def needs_reader(names: Sequence[str], own: "Sequence[Check]" = ()) -> list[str]:
    """Return those names of a record's checks for which the reader has to bring a check."""
    needed = Counter(name for name in names if not is_self_contained(name))
    return [*(needed - Counter(check.name for check in own)).elements()]


def is_self_contained(name: str) -> bool:
    """Return True if a check is built in, takes nothing from the notebook and no unusual time."""
    kind = _find(name.strip())
    if kind is None or kind.argument == "NAME":
        return False
    settings = _split_settings(name, kind.settings)[1] if kind.settings else {}
    return float(settings.get("seconds", 0)) <= _USUAL_SECONDS


def variable_of(name: str) -> str:
    """Return the variable that a check's name is about, or an empty string."""
    kind, words = _find(name), re.split(r"\W+", name.strip())
    return words[bool(kind)] if kind is None or kind.argument else ""


def _from_object(check: Any, context: Context) -> "Check":
    if not callable(check):
        raise UsageError(f"A check must be a function or a name, not {check!r:.60}.")
    named = isinstance(getattr(check, "name", None), str)
    return check if named else _from_function(check, context, {})


def _from_function(function: Any, context: Context, settings: Mapping[str, Any]) -> "Check":
    from ipyrefine.checks.functions import CallableCheck

    return CallableCheck(function, target=context.target, **settings)


def _from_name(name: str, context: Context) -> "Check":
    name, namespace = name.strip(), context.namespace
    kind = _find(name)
    allowed = kind.settings if kind else _BOTH
    known = kind or ":" in name or _first_word(name) in namespace
    bare, settings = _split_settings(name, allowed) if known and allowed is not None else (name, {})
    check: Any
    if kind and (kind.argument or bare == kind.name):
        argument = bare.partition(":")[2].strip()
        if kind.argument and not argument:
            raise UsageError(f"The check {bare!r} lacks what follows the colon: {kind.usage}.")
        factory: Any = resolve_name(f"ipyrefine.checks.{kind.factory}")
        check = factory.from_argument(argument, context, **settings)
    elif (bare := bare.removesuffix("()")) not in namespace:
        raise UsageError(_unknown_check(bare, namespace))
    elif not callable(namespace[bare]):
        raise UsageError(f"The check {bare!r} is a variable, not a function that can be called.")
    else:
        check = _from_function(namespace[bare], context, settings)
    if settings:
        # A run is resumed with the names of its checks, so the settings belong to the name.
        check.name = name
    built: Check = check
    return built


def _find(name: str) -> BuiltIn | None:
    if name == _RUN_ON_COPIES.name:
        return _RUN_ON_COPIES
    start, colon, _ = name.partition(":")
    return BUILTIN.get(start + colon if colon else _first_word(name))


def _first_word(name: str) -> str:
    return (name.split() or [""])[0]


def _unknown_check(name: str, namespace: Mapping[str, Any]) -> str:
    if kind := BUILTIN.get(f"{name}:"):
        return f"The check {name!r} needs more, as in {kind.usage}: {kind.help}."
    functions = [n for n, value in namespace.items() if callable(value)]
    hint = did_you_mean(re.sub(r"(?<=:).*", "", _first_word(name)), [*BUILTIN, *functions], n=2)
    usages = ", ".join(kind.usage for kind in BUILTIN.values())
    return f"There is no check {name!r}: use {usages}, or a function of the notebook.{hint}"


def _split_settings(name: str, allowed: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return a name without its settings, and these; a bad one raises a UsageError."""
    head, *words = name.split(" ")
    settings = {}
    # An argument may have spaces, so only what looks like a setting is taken for one.
    while words and (not words[-1] or _SETTING.fullmatch(words[-1])):
        key, _, value = (word := words.pop()).partition("=")
        if word and key not in allowed:
            only = ", only seconds=NUMBER and decisive" if allowed else ""
            only = only or ": a pass settles nothing by itself"
            hint = did_you_mean(key, allowed)
            raise UsageError(f"The check {head!r} has no setting {word!r}{only}.{hint}")
        if word:
            settings[key] = _read_setting(head, key, value)
    return " ".join([head, *words]), settings


def _read_setting(name: str, key: str, value: str) -> Any:
    need = "decisive, decisive=yes or decisive=no"
    with suppress(ValueError, KeyError):
        if key == "decisive":
            return _FLAGS[value.lower()]
        need = f"a number of seconds above 0 and at most {_MAX_SECONDS:,}, as in seconds=30"
        if 0 < (seconds := float(value)) <= _MAX_SECONDS:
            return seconds
    raise UsageError(f"The check {name!r} needs {need}, not {value!r}.")
