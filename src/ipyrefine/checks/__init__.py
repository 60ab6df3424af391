"""Checks: deterministic tests of a text, each giving `Evidence`."""

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ipyrefine.errors import UsageError

if TYPE_CHECKING:
    from ipyrefine.loop.ports import Check

BUILTIN = {
    "examples": "the examples that the task states hold",
    "run": "the code runs to its end",
}


def resolve(
    names: Sequence[str], namespace: Mapping[str, Any], *, target: float = 0.8
) -> "tuple[Check, ...]":
    """Make checks of their names.

    Args:
        names: built-in checks, or functions of the namespace.
        namespace: the user's variables.
        target: the score that passes, for functions that give one.

    Raises:
        UsageError: there is no such check, or it cannot be called.
    """
    return tuple(_resolve(name, namespace, target) for name in dict.fromkeys(names))


def _resolve(name: str, namespace: Mapping[str, Any], target: float) -> "Check":
    if name == "examples":
        from ipyrefine.checks.examples import Examples

        return Examples()
    if name == "run":
        from ipyrefine.checks.python import RunsCleanly

        return RunsCleanly()
    if name not in namespace:
        raise UsageError(_unknown(name, namespace))
    if not callable(namespace[name]):
        raise UsageError(f"The check {name!r} is a variable, not a function that can be called.")
    from ipyrefine.checks.functions import CallableCheck

    return CallableCheck(namespace[name], target=target)


def _unknown(name: str, namespace: Mapping[str, Any]) -> str:
    functions = [n for n, value in namespace.items() if callable(value) and n[:1] != "_"]
    near = difflib.get_close_matches(name, [*BUILTIN, *functions], n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    built_in = " and ".join(BUILTIN)
    return f"There is no check {name!r}: use {built_in}, or a function of the notebook.{hint}"
