"""The table of built-in checks, and how a name such as ``tests:suite seconds=30`` becomes one.

A new check is one file with a class, and one line in `BUILTIN`. The class has ``name``, the call
that `ipyrefine.core.ports.Check` describes, and a classmethod
``from_argument(argument, context, **settings)``.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ipyrefine.checks.context import Context
from ipyrefine.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ipyrefine.core.ports import Check
    from ipyrefine.kernel.variables import Variables

_MAX_SECONDS = 86_400
_PATIENCE = 600  # seconds that a record may ask a check to run
_BOTH = ("seconds", "decisive")


class BuiltIn(NamedTuple):
    """One line of the table.

    Attributes:
        name: what the user writes.
        argument: what follows the colon, in help; empty for a check that takes none.
        help: what holds when it passes.
        factory: the class, as ``module:Class`` within this package. It is imported when used, as
            loading the extension must stay light.
        settings: what may follow the argument in the same word. None where the argument is free
            text, as that could end anywhere.
        form: the only kind of text it is for; empty for any.
    """

    name: str
    argument: str
    help: str
    factory: str
    settings: tuple[str, ...] | None = _BOTH
    form: Literal["", "code", "data"] = ""

    @property
    def prefix(self) -> str:
        """Return what a name of this check starts with: ``run``, or ``tests:``."""
        return f"{self.name}:" if self.argument else self.name

    @property
    def usage(self) -> str:
        """Return how it is written on a command line: ``run``, or ``tests:NAME``."""
        usage = f"{self.prefix}{self.argument}"
        return f"'{usage}'" if " " in usage else usage

    @property
    def is_self_contained(self) -> bool:
        """Whether its name says all that it needs, and names nothing of the notebook's."""
        return self.argument != "NAME"


# fmt: off
_TABLE = (
    BuiltIn("examples", "", "the examples that the task states hold", "examples:Examples"),
    BuiltIn("agreement", "", "several drafts give the same results on further inputs (needs --candidates)", "agreement:Agreement"),  # noqa: E501
    BuiltIn("run", "", "the code runs to its end, which alone is not enough to pass", "python:RunsCleanly", form="code"),  # noqa: E501
    BuiltIn("lint", "", "ruff finds no fault in the code", "python:Lint", form="code"),
    BuiltIn("tests", "NAME", "pytest tests pass: a text, a function or a list of them, or a file", "tests:Tests", form="code"),  # noqa: E501
    BuiltIn("schema", "NAME", "the text is JSON that a pydantic model or a JSON schema accepts", "schema:Schema", form="data"),  # noqa: E501
    BuiltIn("json", "", "the text is JSON", "schema:Json", (), form="data"),
    BuiltIn("length", "<=120 words", "its length is within bounds, such as 2-4 sentences", "text:Length", ()),  # noqa: E501
    BuiltIn("with", "TEXT", "it has a word or phrase, in capital or small letters", "text:With", None),  # noqa: E501
    BuiltIn("without", "TEXT", "it does not have a word or phrase", "text:Without", None),
    BuiltIn("contains", "TEXT", "it contains a string, letter for letter", "text:Contains", None),
    BuiltIn("matches", "REGEX", "a regular expression is found in it", "text:Matches", None),
)
# fmt: on
# Added to a task by itself, never by its name; a run that is resumed has it by that.
_RUN_ON_COPIES = BuiltIn("run on copies", "", "", "python:RunOnCopies", None, form="code")
BUILTIN: Mapping[str, BuiltIn] = {kind.prefix: kind for kind in _TABLE}


def option_help() -> str:
    """Return the help of the option that takes a check."""
    usages = [kind.usage for kind in BUILTIN.values()]
    return (
        f"a function of the notebook, {', '.join(usages[:-1])} or {usages[-1]}; settings may "
        "follow the name, as in 'tests:NAME seconds=30 decisive' or 'my_check decisive=no'; may "
        "be repeated"
    )


def help_table() -> str:
    """Return the checks with what each requires, a line for each, for help."""
    kinds = BUILTIN.values()
    width = max(len(kind.usage) for kind in kinds)
    return "\n".join(["checks:", *(f"  {kind.usage:<{width}}  {kind.help}" for kind in kinds)])


def form_of(name: str) -> str:
    """Return the only kind of text a check is for (``code``, ``data``), or an empty string.

    Args:
        name: a check's name, settings included.
    """
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

    Args:
        checks: names of `BUILTIN` (with what follows the colon) or of functions of the namespace;
            functions; or checks, which stay as they are. After a name may follow
            ``seconds=NUMBER``, the processor time it may take, and ``decisive`` or ``decisive=no``,
            whether a pass settles the verdict. The checks of a text's form take
            neither. After ``contains:`` and ``matches:`` everything is their text.
        namespace: the user's variables.
        target: the score that passes, for functions that return one.
        variables: the variables that checked code has.

    Raises:
        UsageError: a check does not exist, cannot be made or called, or does not have a setting; or
            a variable looks like a secret.
    """
    from ipyrefine.kernel.variables import Variables

    known = Variables.of(variables)
    context = Context(namespace, target, known.files, known.labels, known.names)
    names = dict.fromkeys(check for check in checks if isinstance(check, str))
    objects = [check for check in checks if not isinstance(check, str)]
    return (
        *(_from_name(name, context) for name in names),
        *(_from_object(check, context) for check in objects),
    )


def from_record(
    names: Sequence[str],
    given: "Sequence[Check]" = (),
    *,
    variables: "Variables | Mapping[str, Any] | None" = None,
) -> "tuple[Check, ...]":
    """Return the checks that a record names, in its order.

    A record is foreign: what it names is never looked up among the reader's functions, variables
    or files. So only those built-in checks are made that need none; the others have to be given.

    Args:
        names: the names of a run's checks.
        given: checks of the reader's own choice, by their names in the record.
        variables: the variables that checked code has, chosen by the reader as well.

    Raises:
        UsageError: one of them was not given, or a variable cannot be passed on.
    """
    own = list(given)
    checks, missing = list["Check"](), needs_reader(names, given)
    if missing:
        words = " ".join(f"--check {shlex.quote(name)}" for name in missing)
        raise UsageError(
            f"This run was checked by code that its record doesn't hold. To run yours, add {words}."
        )
    for name in names:
        match = next((check for check in own if check.name == name), None)
        if match is not None:
            own.remove(match)
        checks += [match] if match else _self_contained(name, variables or {})
    return (*checks, *own)


def _self_contained(name: str, variables: "Variables | Mapping[str, Any]") -> "tuple[Check, ...]":
    try:
        return resolve([name], {}, variables=variables)
    except UsageError:
        raise
    except (ValueError, OverflowError, RecursionError):  # a number or a pattern beyond all bounds
        raise UsageError(f"The check {name[:80]!r} of this run cannot be made.") from None


def needs_reader(names: Sequence[str], given: "Sequence[Check]" = ()) -> list[str]:
    """Return those names of a record's checks that only the reader can say what to run for."""
    own = [check.name for check in given]
    missing = []
    for name in names:
        if name in own:
            own.remove(name)
        elif not is_self_contained(name):
            missing.append(name)
    return missing


def is_self_contained(name: str) -> bool:
    """Return whether a name is that of a built-in check that takes nothing from the notebook.

    One that may run for more than ten minutes is left to the reader too.
    """
    kind = _find(name.strip())
    if kind is None or not kind.is_self_contained:
        return False
    if kind.settings is None or "seconds" not in kind.settings:
        return True
    with suppress(UsageError):  # making the check says what is wrong with it
        return bool(_split_settings(name.strip(), kind.settings)[1].get("seconds", 0) <= _PATIENCE)
    return True


def _from_object(check: Any, context: Context) -> "Check":
    if hasattr(check, "name") and callable(check):
        ready: Check = check
        return ready
    if not callable(check):
        raise UsageError(f"A check must be a function or a name, not {check!r:.60}.")
    from ipyrefine.checks.functions import CallableCheck

    return CallableCheck(check, target=context.target)


def _from_name(name: str, context: Context) -> "Check":
    name = name.strip()
    kind = _find(name)
    allowed = kind.settings if kind else _BOTH
    known = kind or ":" in name or _first_word(name) in context.namespace
    bare, settings = _split_settings(name, allowed) if known and allowed is not None else (name, {})
    check = _build(kind, bare, context, settings)
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


def _build(kind: BuiltIn | None, name: str, context: Context, settings: Mapping[str, Any]) -> Any:
    if kind is None or (not kind.argument and name != kind.name):
        return _from_function(name, context, settings)
    argument = name.partition(":")[2].strip()
    if kind.argument and not argument:
        raise UsageError(f"The check {name!r} lacks what follows the colon: {kind.usage}.")
    factory: Any = resolve_name(f"ipyrefine.checks.{kind.factory}")
    return factory.from_argument(argument, context, **settings)


def _from_function(name: str, context: Context, settings: Mapping[str, Any]) -> Any:
    namespace = context.namespace
    if name not in namespace:
        kind = BUILTIN.get(f"{name}:")
        if kind:
            raise UsageError(f"The check {name!r} needs more, as in {kind.usage}: {kind.help}.")
        raise UsageError(_unknown_check(name, namespace))
    if not callable(namespace[name]):
        raise UsageError(f"The check {name!r} is a variable, not a function that can be called.")
    from ipyrefine.checks.functions import CallableCheck

    return CallableCheck(namespace[name], target=context.target, **settings)


def _unknown_check(name: str, namespace: Mapping[str, Any]) -> str:
    functions = [n for n, value in namespace.items() if callable(value) and n[:1] != "_"]
    start = name.partition(":")[0] + ":" if ":" in name else _first_word(name)
    hint = did_you_mean(start, [*BUILTIN, *functions], n=2)
    usages = ", ".join(kind.usage for kind in BUILTIN.values())
    return f"There is no check {name!r}: use {usages}, or a function of the notebook.{hint}"


_USAGE = {"seconds": "seconds=NUMBER", "decisive": "decisive"}
_FLAGS = {"": True, "yes": True, "true": True, "no": False, "false": False}


def _split_settings(name: str, allowed: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return a check's name without its settings, and the settings.

    Raises:
        UsageError: it does not have a setting, or a value cannot be used.
    """
    head, *words = name.split(" ")
    settings: dict[str, Any] = {}
    # An argument may have spaces, so behind one only what looks like a setting is taken for one.
    while words and (":" not in head or not words[-1] or _looks_like_setting(words[-1])):
        word = words.pop()
        key, _, value = word.partition("=")
        if word and key not in allowed:
            choice = " and ".join(_USAGE[setting] for setting in allowed)
            only = f", only {choice}" if choice else ": a pass settles nothing by itself"
            hint = did_you_mean(key, allowed)
            raise UsageError(f"The check {head!r} has no setting {word!r}{only}.{hint}")
        if key in settings:
            raise UsageError(f"The check {head!r} sets {key} twice.")
        if word:
            settings[key] = _READERS[key](head, value)
    return " ".join([head, *words]), settings


def _looks_like_setting(word: str) -> bool:
    key = word.partition("=")[0]
    return ("=" in word and key.isidentifier()) or bool(did_you_mean(word, _USAGE))


def _read_seconds(name: str, value: str) -> float:
    with suppress(ValueError):
        seconds = float(value)
        if 0 < seconds <= _MAX_SECONDS:
            return seconds
    raise UsageError(
        f"The check {name!r} needs a number of seconds above 0 and at most {_MAX_SECONDS:,}, as in "
        f"seconds=30, not {value!r}."
    )


def _read_flag(name: str, value: str) -> bool:
    if value.lower() not in _FLAGS:
        raise UsageError(
            f"The check {name!r} needs decisive, decisive=yes or decisive=no, not {value!r}."
        )
    return _FLAGS[value.lower()]


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "seconds": _read_seconds,
    "decisive": _read_flag,
}
