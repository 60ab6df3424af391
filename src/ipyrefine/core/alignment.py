"""Align two texts line by line, or any two sequences, within a bounded time."""

from collections.abc import Sequence
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

    With `junk`, difflib leaves out what is frequent, as it does by default. Else what lies between
    their common start and end is one change.
    """
    if len(old) + len(new) <= _MOST:
        with suppress(_TooLong):
            return _Bounded(old, new, junk=junk).get_opcodes()
    start = count_shared(old, new)
    end = count_shared(old[start:][::-1], new[start:][::-1])
    i, j = len(old) - end, len(new) - end
    tag: Tag = "insert" if start == i else "delete" if start == j else "replace"
    codes: list[Code] = [
        ("equal", 0, start, 0, start),
        (tag, start, i, start, j),
        ("equal", i, len(old), j, len(new)),
    ]
    return [code for code in codes if code[1] < code[2] or code[3] < code[4]]


def unified_diff(old: str, new: str) -> str:
    """Return the changes between two texts by line, each with two lines around it."""
    a, b = old.splitlines(), new.splitlines()
    matcher: Any = SequenceMatcher(None, (), ())
    matcher.opcodes = compare(a, b, junk=True)
    lines = []
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
    """A matcher that gives up once no steps are left."""

    def __init__(self, old: Sequence[Any], new: Sequence[Any], *, junk: bool = False) -> None:
        super().__init__(None, old, new, junk)
        places = self.b2j  # type: ignore[attr-defined]
        self._left = _WORK
        self._steps = [0, *accumulate(1 + len(places.get(one, ())) for one in old)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self._left -= self._steps[-1 if ahi is None else ahi] - self._steps[alo]
        if self._left < 0:
            raise _TooLong
        return super().find_longest_match(alo, ahi, blo, bhi)
