"""Whether what an example came to is what the task says: decided outside the tested process."""

import ast
import math
from collections.abc import Callable
from typing import Any

from ipyrefine.checks.stated import Example

_TOLERANCE = 1e-9
_TRACEBACK = "Traceback (most recent call last):"
_NOTHING = object()


def literal(source: str) -> Any:
    """The value of a literal, or a value equal to no other when it is none."""
    try:
        return ast.literal_eval(source.strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return _NOTHING


def is_literal(source: str) -> bool:
    """Whether the text is a literal."""
    return literal(source) is not _NOTHING


def meets(example: Example, outcome: dict[str, Any]) -> bool:
    """Whether an outcome, as the examples' program reports it, is what was expected."""
    if example.kind == "doctest":
        return _shows(example.expected.strip(), outcome)
    if "error" in outcome:
        return False
    value = data(outcome)
    if is_literal(example.expected):
        return same(value, literal(example.expected))
    expected = data(outcome.get("wanted", {}))
    # Only where the task expects an object of the text's own does the text's word count.
    return outcome.get("equal") is True if expected is _NOTHING else same(value, expected)


def shown(outcome: dict[str, Any]) -> str:
    """What an outcome shows at a prompt: what was printed, then the value unless it is None."""
    value = "" if outcome.get("none", True) else str(outcome.get("shown", ""))
    return str(outcome.get("printed", "")) + value


def _shows(expected: str, outcome: dict[str, Any]) -> bool:
    if "error" in outcome:
        said = expected.splitlines()[-1].strip()
        if expected.startswith(_TRACEBACK) and ":" not in said:
            return said.rpartition(".")[2] == str(outcome["error"]).partition(":")[0]
        kind, _, message = said.partition(":")
        said = f"{kind.rpartition('.')[2]}:{message}"
        return expected.startswith(_TRACEBACK) and _matches(said, str(outcome["error"]))
    if _matches(expected, shown(outcome)):
        return True
    value = data(outcome)
    if outcome.get("printed") or value is _NOTHING or not is_literal(expected):
        return False
    # At a prompt True is not 1, though they are equal.
    wanted = literal(expected)
    return isinstance(value, bool) is isinstance(wanted, bool) and same(value, wanted)


def _matches(expected: str, got: str) -> bool:
    """Compare texts without regard to white space; ``...`` stands for anything."""
    want, text = " ".join(expected.split()), " ".join(got.split())
    if "..." not in want:
        return want == text
    first, *middle, last = want.split("...")
    if not text.startswith(first) or not text[len(first) :].endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        at = text.find(part.strip(), at, end)
        if at < 0:
            return False
        at += len(part.strip())
    return at <= end


def same(a: Any, b: Any) -> bool:
    """Equality as Python has it, but floats within 1e-9 and nan equal to itself."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _close(a, b)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def _close(a: float, b: float) -> bool:
    try:
        both_nan = math.isnan(a) and math.isnan(b)
        exact = isinstance(a, int) and isinstance(b, int)
        return a == b or both_nan or (not exact and math.isclose(a, b, abs_tol=_TOLERANCE))
    except OverflowError:  # an integer no float can hold
        return False


def data(described: dict[str, Any]) -> Any:
    """The value behind a description, or one equal to no other when it is no plain data."""
    try:
        return _decoded(described["data"]) if "data" in described else _NOTHING
    except (ValueError, TypeError, KeyError, RecursionError):
        return _NOTHING


def _decoded(tagged: Any) -> Any:
    kind, value = tagged
    if kind in _PLURAL:
        return _PLURAL[kind](_decoded(item) for item in value)
    if kind == "dict":
        return {_decoded(k): _decoded(v) for k, v in value}
    return _SINGLE[kind](value)


_PLURAL: dict[str, Callable[..., Any]] = {
    "list": list,
    "tuple": tuple,
    "set": frozenset,
    "frozenset": frozenset,
}
_SINGLE: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "str": str,
    "bytes": bytes.fromhex,
    "constant": {"None": None, "Ellipsis": ...}.__getitem__,
}
