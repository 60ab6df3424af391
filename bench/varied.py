"""Calls like those of a task's examples, for the vote of seven: the changes are EvalPlus's.

They depend on the type (arXiv 2305.01210): small steps for numbers; for a sequence the empty one,
shorter, longer, rotated and reversed ones, and it without one of its items or with that one alone.
Arguments of one type are also changed together and reversed, as some must have the same length, and
arguments of several examples are mixed.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ipyrefine.checks.inputs import _as_examples, _Call, _read_call
from ipyrefine.core.stated import Example

MAX_INPUTS = 60
_SEEDS = 40  # calls that are varied
_MAX_ITEMS = 6  # items of a sequence that are left out of it, or left alone, one at a time


def varied_inputs(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Return at most 60 calls, none of them stated; always the same for the same examples."""
    calls = [call for example in examples if (call := _read_call(example))][:_SEEDS]
    stated = {call.source for call in calls}
    varied = (variant for call in calls for variant in _variants(call, calls))
    fresh = [one for one in _as_examples(varied) if one.call not in stated]
    return tuple(fresh if len(fresh) <= MAX_INPUTS else random.Random(0).sample(fresh, MAX_INPUTS))


def _variants(call: _Call, calls: Sequence[_Call]) -> Iterator[_Call]:
    """Yield a call with one argument changed, all of them, or one from another call."""
    arguments = call.arguments
    for place, value in enumerate(arguments):
        for changed in _changes(value):
            yield call.replace(place, changed)
    if len(arguments) < 2:
        return
    if len(set(map(type, arguments))) == 1:
        yield call._replace(arguments=arguments[::-1])
        for together in zip(*map(_changes, arguments), strict=False):
            yield call._replace(arguments=together)
    for others in _alike(call, calls):
        for place, value in enumerate(others):
            yield call.replace(place, value)


def _changes(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1, value + 2, value // 2, 2 * value + 1, 0, 1]
        case float():
            return [value + 0.5, -value, value * 10, 0.0, value + 1, value / 2]
        case str():
            return [*_rearrange(value), value.swapcase(), f" {value}"]
        case list() | tuple():
            first = [type(value)([one, *value[1:]]) for v in value[:1] for one in _changes(v)[:3]]
            return [*_rearrange(value), *first]
        case dict():
            return [{}, *({k: v for k, v in value.items() if k != key} for key in value)]
    return []


def _rearrange(value: Any) -> list[Any]:
    """Return the sequences that a sequence's own items make, the empty one first."""
    half, rotated = len(value) // 2, value[1:] + value[:1]
    places = range(min(len(value), _MAX_ITEMS))
    without = [value[:n] + value[n + 1 :] for n in places]
    alone = [value[n : n + 1] for n in places]
    whole = [value[:0], value[:-1], value[::-1], value + value, value[half:], rotated]
    return [*whole, *without, *alone]


def _alike(call: _Call, calls: Sequence[_Call]) -> list[tuple[Any, ...]]:
    key = (call.name, len(call.arguments), call.keywords)
    return [one.arguments for one in calls if (one.name, len(one.arguments), one.keywords) == key]
