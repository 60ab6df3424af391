"""Deterministic damage to stored JSON: what a file holds after somebody changed it by hand."""

import copy
import random
from collections.abc import Iterator
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 3, 999, 2**31, -(2**63), 10**400, 0.5, -0.5, 1e308, -1e308,
    float("nan"), float("inf"), "", "x", "0", "PASS", "\ud800", "\x1b[2J", "x" * 5_000,
    [], {}, [[]], [None], {"": {}}, ["x"] * 50, [{}], {"type": "accept"}, {"kind": "accept"},
)  # fmt: skip
Path = tuple[Any, ...]


def mutations(content: Any, seed: int, count: int) -> Iterator[Any]:
    """Yield copies of JSON content, each with one to three places changed."""
    chance = random.Random(seed)
    for _ in range(count):
        changed = copy.deepcopy(content)
        for _ in range(chance.choice((1, 1, 2, 3))):
            _change(changed, chance)
        yield changed


def places(content: Any, above: Path = ()) -> Iterator[Path]:
    """Yield the path of every value inside JSON content."""
    items: Any = ()
    if isinstance(content, dict):
        items = content.items()
    elif isinstance(content, list):
        items = enumerate(content)
    for key, value in items:
        yield (*above, key)
        yield from places(value, (*above, key))


def _change(content: Any, chance: random.Random) -> None:
    every = list(places(content))
    if not every:
        return
    *above, key = chance.choice(every)
    holder = content
    for step in above:
        holder = holder[step]
    match chance.randrange(10):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        case 1:
            holder[chance.choice(("surprise", "number", "iteration", "0"))] = holder[key]
        case 2 if isinstance(holder, list):
            chance.shuffle(holder)
        case 3 if isinstance(holder[key], int):
            holder[key] += chance.choice((-1, 1, 7))
        case 4:
            *_, other = chance.choice(every)
            holder[key] = copy.deepcopy(holder.get(other)) if isinstance(holder, dict) else other
        case _:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
