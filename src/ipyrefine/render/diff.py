"""Compare two texts: code by line, prose by word."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, Literal, NamedTuple

from ipyrefine.core.model import Form
from ipyrefine.render import labels
from ipyrefine.render.escape import plain

CONTEXT = 3  # unchanged lines around a change
_SHORTEST_FOLD = 3  # lines; fewer are shown rather than counted
_RUN = 7  # words and spaces in a row that are compared first: few of them occur twice
_MAX_PAIRS = 250_000  # of equal parts of two texts; aligning more takes seconds
_MAX_LINES = 2_000  # pairs of lines that are compared with each other within one change
_WORDS = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")

Tag = Literal[" ", "-", "+"]
Marks = tuple[tuple[int, int], ...]


class Part(NamedTuple):
    """A passage of prose that was kept (space), removed (``-``) or added (``+``)."""

    tag: Tag
    text: str


class Row(NamedTuple):
    """A line of code in a difference."""

    tag: Tag  # space for kept, `-` for removed, `+` for added
    old: int | None  # its index in the old text; None for an added line
    new: int | None  # its index in the new text; None for a removed line
    hunk: int | None = None  # which change it belongs to, from 0; None for a kept line
    marks: Marks = ()  # the characters that differ within the line, as half-open ranges


@lru_cache(maxsize=64)
def rows(old: str, new: str) -> tuple[Row, ...]:
    """Compare code by line, every line included, with what differs inside changed lines."""
    a, b = plain(old).split("\n"), plain(new).split("\n")
    found: list[Row] = []
    hunk = 0
    for tag, i1, i2, j1, j2 in _matcher(a, b).get_opcodes():
        if tag == "equal":
            found += [Row(" ", i, j) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)]
            continue
        removed, added = _mark_lines(a[i1:i2], b[j1:j2])
        found += [Row("-", i, None, hunk, marks) for i, marks in enumerate(removed, i1)]
        found += [Row("+", None, j, hunk, marks) for j, marks in enumerate(added, j1)]
        hunk += 1
    return tuple(found)


def visible_rows(old: str, new: str) -> list[Row]:
    """Return `rows` without the empty ones behind the last line breaks."""
    end_old = old.count("\n") if old.endswith("\n") else None
    end_new = new.count("\n") if new.endswith("\n") else None
    ends = {(end_old, end_new), (end_old, None), (None, end_new)}
    return [row for row in rows(old, new) if (row.old, row.new) not in ends]


def stretches(shown: Sequence[bool]) -> Iterator[tuple[bool, range]]:
    """Yield the stretches of lines to show and, if they are long, those to fold.

    Args:
        shown: whether each line must be shown; those around it are then, too.
    """
    near = [any(shown[max(0, n - CONTEXT) : n + CONTEXT + 1]) for n in range(len(shown))]
    runs = [(is_near, [*group]) for is_near, group in groupby(range(len(near)), near.__getitem__)]
    folded = {n for is_near, run in runs if not is_near and len(run) > _SHORTEST_FOLD for n in run}
    for is_folded, group in groupby(range(len(near)), folded.__contains__):
        numbers = [*group]
        yield not is_folded, range(numbers[0], numbers[-1] + 1)


def text_diff(old: str, new: str, form: Form = "code") -> str:
    """Return the difference as plain text: signed lines for code, ``[-old-]{+new+}`` for prose.

    It is empty for code that is the same.
    """
    if form == "prose":
        brackets = {" ": "{}", "-": "[-{}-]", "+": "{{+{}+}}"}
        return "".join(brackets[part.tag].format(part.text) for part in words(old, new))
    found = visible_rows(old, new)
    if all(row.tag == " " for row in found):
        return ""
    a, b = plain(old).split("\n"), plain(new).split("\n")
    lines = []
    for shown, numbers in stretches([row.tag != " " for row in found]):
        if not shown:
            lines.append(f"⋯ {labels.count(len(numbers), 'unchanged line')}")
            continue
        for row in (found[n] for n in numbers):
            line = a[row.old] if row.old is not None else b[row.new or 0]
            lines.append(f"{row.tag} {line}")
    return "\n".join(lines)


@lru_cache(maxsize=128)
def words(old: str, new: str) -> list[Part]:
    """Compare by word; the kept and added parts, joined, are the new text."""
    merged: list[Part] = []
    removed = added = ""
    for here, after in pairwise([*_by_word(plain(old), plain(new)), Part(" ", "")]):
        between = after.tag != " " and here.text.isspace() and "\n" not in here.text
        if here.tag == " " and not (between and removed and added):
            merged += _change(removed, added)
            removed = added = ""
            if merged and merged[-1].tag == " ":
                here = Part(" ", merged.pop().text + here.text)
            merged.append(here)
            continue
        # A space between two changes belongs to both, so that whole phrases are marked.
        removed += here.text if here.tag != "+" else ""
        added += here.text if here.tag != "-" else ""
    return merged + _change(removed, added)


def _by_word(old: str, new: str) -> Iterator[Part]:
    """Yield the parts of a comparison by word: runs of words first, as it takes quadratic time."""
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    runs = ([tuple(words[n : n + _RUN]) for n in range(len(words) - _RUN + 1)] for words in (a, b))
    same = [one for one in _matcher(*runs).get_opcodes() if one[0] == "equal"]
    i = j = 0
    for _, i1, i2, j1, j2 in [*same, ("", len(a), len(a), len(b), len(b))]:
        before, after = a[i:i1], b[j:j1]
        for tag, k1, k2, l1, l2 in _matcher(before, after).get_opcodes():
            removed, added = "".join(before[k1:k2]), "".join(after[l1:l2])
            yield from [Part(" ", removed)] if tag == "equal" else _change(removed, added)
        if i1 < i2:
            yield Part(" ", "".join(a[i1:i2]))
        i, j = i2, j2


def _change(removed: str, added: str) -> list[Part]:
    return [part for part in (Part("-", removed), Part("+", added)) if part.text]


def _matcher(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Return a matcher of two sequences; what would take minutes to align is one replacement."""
    for autojunk in (False, True):  # it leaves out what is frequent, which is fast and inexact
        matcher: Any = SequenceMatcher(None, a, b, autojunk)
        places = matcher.b2j
        if sum(len(places.get(part, ())) for part in a) <= _MAX_PAIRS:
            return matcher
    matcher.opcodes = [("replace", 0, len(a), 0, len(b))]  # it computes them unless it has them
    return matcher


def _mark_lines(removed: Sequence[str], added: Sequence[str]) -> tuple[list[Marks], list[Marks]]:
    """Return what differs inside each line of a change; nothing for a line without counterpart."""
    before: list[Marks] = [()] * len(removed)
    after: list[Marks] = [()] * len(added)
    if len(removed) * len(added) > _MAX_LINES:
        return before, after
    start = 0
    for i, old in enumerate(removed):
        for j in range(start, len(added)):
            a, b = set(_WORDS.findall(old)), set(_WORDS.findall(added[j]))
            if 2 * len(a & b) >= max(len(a), len(b)):
                parts = words(old, added[j])
                before[i], after[j] = _ranges(parts, "-"), _ranges(parts, "+")
                start = j + 1
                break
    return before, after


def _ranges(parts: Sequence[Part], tag: Tag) -> Marks:
    """Return where one of the two texts has what the other does not."""
    found, at = [], 0
    for part in parts:
        if part.tag == tag and not part.text.isspace():
            found.append((at, at + len(part.text)))
        at += len(part.text) if part.tag in (" ", tag) else 0
    return tuple(found)


def revert(old: str, new: str, form: Form, hunk: int) -> str:
    """Return the new text with one of its changes taken back.

    Args:
        old: the text before.  # its index in the old text; None for an added line
        new: the text after.  # its index in the new text; None for a removed line
        form: ``code`` counts changes by line, as `rows` does, ``prose`` by word, as `words` does.
        hunk: which change, from 0.  # which change it belongs to, from 0; None for a kept line

    Raises:
        IndexError: there is no such change.
    """
    pieces = [(part.tag, part.text) for part in words(old, new)]
    if form == "code":
        # As they were: only on the page are hidden characters made visible.
        a, b = (text.replace("\r\n", "\n").split("\n") for text in (old, new))
        pieces = [
            (row.tag, b[row.new] if row.new is not None else a[row.old or 0])
            for row in rows(old, new)
        ]
    kept, number, inside = [], -1, False
    for tag, piece in pieces:
        number += tag != " " and not inside
        inside = tag != " "
        if tag == " " or (tag == "-") == (number == hunk):
            kept.append(piece)
    if not 0 <= hunk <= number:
        raise IndexError(hunk)
    return ("\n" if form == "code" else "").join(kept)
