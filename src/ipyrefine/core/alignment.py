"""Align two texts line by line, or any two sequences, within a bounded time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Any, Literal

_WORK = 50_000  # steps of a comparison: some milliseconds
_MOST = 4_000  # items of two sequences that difflib is asked about at once

Tag = Literal["replace", "delete", "insert", "equal"]
Code = tuple[Tag, int, int, int, int]  # as `SequenceMatcher.get_opcodes` gives them


def compare(old: Sequence[Any], new: Sequence[Any], *, junk: bool = False) -> list[Code]:
    """Return how one sequence becomes another one: as difflib says, where that takes no time.

    With `junk`, difflib leaves out what is frequent, as it does by default.

    Else what both have only once is aligned first. What lies between two of these is compared
    next, as long as that takes no time either, and else is one replacement.
    """
    few = len(old) + len(new) <= _MOST
    with suppress(_TooLong):
        if few:
            return _Bounded(old, new, [_WORK], junk=junk).get_opcodes()
    blocks = [Match(0, 0, 0)]
    for block in _align(old, new):
        last = blocks[-1]
        if (last.a + last.size, last.b + last.size) == (block.a, block.b):
            blocks[-1] = last._replace(size=last.size + block.size)
        elif block.size:
            blocks.append(block)
    matcher: Any = SequenceMatcher(None, (), ())
    matcher.matching_blocks = [*blocks, Match(len(old), len(new), 0)]
    codes: list[Code] = matcher.get_opcodes()
    return codes


def unified_diff(old: str, new: str) -> str:
    """Return the changes between two texts by line, each with two lines around it."""
    a, b = old.splitlines(), new.splitlines()
    matcher: Any = SequenceMatcher(None, (), ())
    matcher.opcodes = compare(a, b, junk=True)
    lines = list[str]()
    for group in matcher.get_grouped_opcodes(2):
        removed, added = ((group[0][n], group[-1][n + 1]) for n in (1, 3))
        lines.append(f"@@ -{_range(*removed)} +{_range(*added)} @@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in a[i1:i2]]
            else:
                lines += [f"-{line}" for line in a[i1:i2]] + [f"+{line}" for line in b[j1:j2]]
    return "\n".join(lines)


def _range(start: int, end: int) -> str:
    size = end - start
    return f"{start + bool(size)}" + (f",{size}" if size != 1 else "")


def count_shared(old: Sequence[Any], new: Sequence[Any]) -> int:
    """Return how many items two sequences begin with alike."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)))


class _TooLong(Exception):
    """A comparison takes more steps than are left."""


class _Bounded(SequenceMatcher[Any]):
    """A matcher that gives up once no steps are left; ``left`` may be shared by several."""

    def __init__(
        self, old: Sequence[Any], new: Sequence[Any], left: list[int], *, junk: bool = False
    ) -> None:
        super().__init__(None, old, new, junk)
        places: dict[Any, list[int]] = self.b2j  # type: ignore[attr-defined]
        self._left = left
        self._steps = [0, *accumulate(1 + len(places.get(one, ())) for one in old)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self._left[0] -= self._steps[-1 if ahi is None else ahi] - self._steps[alo]
        if self._left[0] < 0:
            raise _TooLong
        return super().find_longest_match(alo, ahi, blo, bhi)


def _align(old: Sequence[Any], new: Sequence[Any]) -> Iterator[Match]:
    """Yield the blocks that two sequences share; some are empty, and some touch."""
    start = count_shared(old, new)
    end = count_shared(old[start:][::-1], new[start:][::-1])
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    sizes, left = (Counter(a), Counter(b)), [_WORK]
    once = {one for one, size in sizes[0].items() if size == sizes[1][one] == 1}
    mine, theirs = ([n for n, one in enumerate(part) if one in once] for part in (a, b))
    anchors = [
        (mine[block.a + n], theirs[block.b + n], 1)
        for block in _blocks([a[n] for n in mine], [b[n] for n in theirs], left)
        for n in range(block.size)
    ]
    yield Match(0, 0, start)
    i = j = 0
    for i2, j2, size in [*anchors, (len(a), len(b), 0)]:
        for block in _blocks(a[i:i2], b[j:j2], left):
            yield Match(start + i + block.a, start + j + block.b, block.size)
        yield Match(start + i2, start + j2, size)
        i, j = i2 + 1, j2 + 1
    yield Match(len(old) - end, len(new) - end, end)


def _blocks(old: Sequence[Any], new: Sequence[Any], left: list[int]) -> list[Match]:
    if not (old and new):
        return []
    try:
        return _Bounded(old, new, left).get_matching_blocks()
    except _TooLong:
        return []
