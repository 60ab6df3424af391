"""Checks: deterministic tests of a text, each giving `Evidence`."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ipyrefine.errors import UsageError

if TYPE_CHECKING:
    from ipyrefine.core.ports import Check

BUILTIN = {
    "examples": "the examples that the task states hold",
    "agreement": "several drafts give the same results on further inputs (needs --candidates)",
    "run": "the code runs to its end",
    "lint": "ruff finds no fault in the code",
    "tests:": "pytest tests pass: a text, a function or a list of them, or a file",
    "schema:": "the text is JSON that a pydantic model or a JSON schema accepts",
    "length:": 'its length is within bounds: "length:<=120 words", "length:200-400 chars"',
    "contains:": "it contains some words, letter for letter",
    "matches:": "a regular expression is found in it",
}


class _Given(NamedTuple):
    """What checks are made of."""

    namespace: Mapping[str, Any]
    target: float
    variables: Sequence[str]
    files: dict[str, bytes]


def resolve(
    checks: "Sequence[Check | Callable[..., Any] | str]",
    namespace: Mapping[str, Any],
    *,
    target: float = 0.8,
    variables: Mapping[str, Any] | None = None,
) -> "tuple[Check, ...]":
    """Make checks of their names.

    Args:
        checks: names of `BUILTIN` (with what follows the colon) or of functions of the
            namespace; functions; or checks, which stay as they are.
        namespace: the user's variables.
        target: the score that passes, for functions that give one.
        variables: values that the code of examples, run and tests has.

    Raises:
        UsageError: there is no such check, or it cannot be made or called; a variable cannot be
            passed on.
    """
    from ipyrefine.checks.variables import furnished

    given = _Given(namespace, target, tuple(variables or ()), furnished(variables or {}))
    named = dict.fromkeys(check for check in checks if isinstance(check, str))
    others = [check for check in checks if not isinstance(check, str)]
    return (
        *(_named(name, given) for name in named),
        *(_from_object(check, given) for check in others),
    )


def _from_object(check: Any, given: _Given) -> "Check":
    if hasattr(check, "name") and callable(check):
        ready: Check = check
        return ready
    if not callable(check):
        raise UsageError(f"A check must be a function or a name, not {check!r:.60}.")
    from ipyrefine.checks.functions import CallableCheck

    return CallableCheck(check, target=given.target)


def _named(name: str, given: _Given) -> "Check":
    kind, colon, argument = name.partition(":")
    argument = argument.strip()
    if kind + colon in BUILTIN:
        if colon and not argument:
            raise UsageError(f"The check {name!r} lacks what follows the colon: {BUILTIN[name]}.")
        return _built_in(kind, argument, given)
    if f"{kind}:" in BUILTIN and not colon and name not in given.namespace:
        raise UsageError(f"The check {name!r} needs more, as in {name}:…: {BUILTIN[f'{name}:']}.")
    if name not in given.namespace:
        raise UsageError(_unknown(name, given.namespace))
    if not callable(given.namespace[name]):
        raise UsageError(f"The check {name!r} is a variable, not a function that can be called.")
    from ipyrefine.checks.functions import CallableCheck

    return CallableCheck(given.namespace[name], target=given.target)


def _built_in(kind: str, argument: str, given: _Given) -> "Check":
    # Imported where they are used, as loading the extension must cost next to nothing.
    from ipyrefine.checks import agreement, examples, lint, python, schema, tests, text

    makers: dict[str, Callable[[], Check]] = {
        "examples": lambda: examples.Examples(files=given.files),
        "agreement": lambda: agreement.Agreement(files=given.files),
        "run": lambda: python.RunsCleanly(files=given.files),
        "lint": lambda: lint.Lint(builtins=given.variables),
        "tests": lambda: tests.Tests.of(argument, given.namespace, given.files),
        "schema": lambda: schema.Schema(_schema(argument, given.namespace), label=argument),
        "length": lambda: text.Length(argument),
        "contains": lambda: text.Contains(argument),
        "matches": lambda: text.Matches(argument),
    }
    return makers[kind]()


def _schema(name: str, namespace: Mapping[str, Any]) -> Any:
    if name not in namespace:
        near = difflib.get_close_matches(name, [n for n in namespace if n[:1] != "_"], n=1)
        hint = f" Did you mean schema:{near[0]}?" if near else ""
        raise UsageError(f"There is no schema {name!r} in the notebook.{hint}")
    return namespace[name]


def _unknown(name: str, namespace: Mapping[str, Any]) -> str:
    functions = [n for n, value in namespace.items() if callable(value) and n[:1] != "_"]
    kind = name.partition(":")[0] + (":" if ":" in name else "")
    near = difflib.get_close_matches(kind, [*BUILTIN, *functions], n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    built_in = ", ".join(f"{one}…" if one.endswith(":") else one for one in BUILTIN)
    return f"There is no check {name!r}: use {built_in}, or a function of the notebook.{hint}"
