"""Further inputs for the calls a task states as examples, by changing their arguments.

The changes are by type, as in EvalPlus (arXiv 2305.01210): small steps for numbers, and for what
has a length, the empty one, shorter, longer, turned and reversed ones, and it without one of its
items or with that one alone. Arguments of one type are changed together and in reverse order as
well, as some have to be as long as each other, and arguments of several examples are mixed.
"""

import ast
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from ipyrefine.checks.stated import Example

MOST = 60
_LONGEST = 2_000  # characters of a call
_LACKING = 6  # items of a sequence that are left out of it, or left alone, one at a time


def further(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Calls like those of the examples, with other arguments; their results are not known.

    Args:
        examples: what the task states; only calls of a name with literal arguments are changed.

    Returns:
        At most 60 calls, none of them stated, always the same ones for the same examples.
    """
    found: dict[str, Example] = {}
    calls = _calls(examples)
    for name, arguments, setup in calls:
        others = (*_one_changed(arguments), *_all_changed(arguments))
        for changed in (*others, *_mixed(name, arguments, calls)):
            source = f"{name}({', '.join(map(repr, changed))})"
            if len(source) <= _LONGEST:
                found[source] = Example(source=source, expected="", kind="equals", setup=setup)
    stated = {f"{name}({', '.join(map(repr, arguments))})" for name, arguments, _ in calls}
    fresh = [example for source, example in found.items() if source not in stated]
    if len(fresh) > MOST:
        fresh = random.Random(0).sample(fresh, MOST)
    return tuple(fresh)


def at_the_edge(example: Example, stated: Sequence[Example]) -> bool:
    """Whether a call may ask for what the task leaves open, so that right texts differ there.

    An argument is 0, 1 or negative, empty or a single item, and none that the task states in its
    place is as small.

    Args:
        example: one of the further calls.
        stated: the examples they were made from.
    """
    call = _call(example)
    if call is None:
        return False
    name, arguments, _ = call
    told = zip(*_given(name, len(arguments), _calls(stated)), strict=True)
    sizes = [(_size(a), min(map(_size, others))) for a, others in zip(arguments, told, strict=True)]
    return any(size <= 1 and size < least for size, least in sizes)


def _size(value: Any) -> float:
    """A number itself, the length of what has one, and infinity for anything else."""
    if isinstance(value, str | list | tuple | dict):
        return len(value)
    return value if type(value) in (int, float) else math.inf


Call = tuple[str, tuple[Any, ...], str]


def _calls(examples: Sequence[Example]) -> list[Call]:
    return [call for example in examples if (call := _call(example))]


def _call(example: Example) -> Call | None:
    try:
        node = ast.parse(example.source.strip(), mode="eval").body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return node.func.id, tuple(map(ast.literal_eval, node.args)), example.setup
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass  # it calls with something that is no literal
    return None


def _given(name: str, count: int, calls: Sequence[Call]) -> list[tuple[Any, ...]]:
    """The arguments of all calls of one function that have so many."""
    return [given for other, given, _ in calls if (other, len(given)) == (name, count)]


def _one_changed(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for place, value in enumerate(arguments):
        for changed in _changed(value):
            yield (*arguments[:place], changed, *arguments[place + 1 :])


def _all_changed(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Arguments of one type, each changed in the same way, and in reverse order."""
    if len(arguments) > 1 and len(set(map(type, arguments))) == 1:
        yield arguments[::-1]
        yield from zip(*map(_changed, arguments), strict=False)


def _mixed(
    name: str, arguments: tuple[Any, ...], calls: Sequence[Call]
) -> Iterator[tuple[Any, ...]]:
    if len(arguments) < 2:
        return
    for others in _given(name, len(arguments), calls):
        for place, value in enumerate(others):
            yield (*arguments[:place], value, *arguments[place + 1 :])


def _changed(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return [not value] if isinstance(value, bool) else []
    if isinstance(value, int):
        return [value + 1, value - 1, value + 2, value // 2, 2 * value + 1, 0, 1]
    if isinstance(value, float):
        return [value + 0.5, -value, value * 10, 0.0, value + 1, value / 2]
    if isinstance(value, str | list | tuple):
        return [*_reshaped(value), *_inner(value)]
    if isinstance(value, dict):
        return [{}, *({k: v for k, v in value.items() if k != gone} for gone in value)]
    return []


def _reshaped(value: Any) -> list[Any]:
    """The empty one, and the others that a sequence's own items make."""
    half, turned = len(value) // 2, value[1:] + value[:1]
    lacking = [value[:n] + value[n + 1 :] for n in range(min(len(value), _LACKING))]
    alone = [value[n : n + 1] for n in range(min(len(value), _LACKING))]
    return [
        value[:0], value[:-1], value[::-1], value + value, value[half:], turned, *lacking, *alone,
    ]  # fmt: skip


def _inner(value: Any) -> list[Any]:
    """A sequence with its first item changed, a text with its letters' case."""
    if isinstance(value, str):
        return [value.swapcase(), f" {value}"]
    if not value:
        return []
    return [type(value)([changed, *value[1:]]) for changed in _changed(value[0])[:3]]
