"""Differences between two texts, by line for code and by word for prose; as text for terminals."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ipyrefine.render import labels
from ipyrefine.render.escape import plain

_CONTEXT = 3
_RUN = 7  # words and spaces in a row that are compared first: few of them occur twice
_MAX_PAIRS = 250_000  # of equal parts of two texts; aligning more takes seconds
_WORDS = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[2m"}

Tag = Literal[" ", "-", "+", "@"]
Form = Literal["code", "prose"]


class Part(NamedTuple):
    """A piece of a diff.

    Attributes:
        tag: space for kept, ``-`` for removed, ``+`` for added, ``@`` for omitted lines.
        line: the piece; for ``@``, a phrase like ``7 unchanged lines``.
        lines: how many lines it stands for.
    """

    tag: Tag
    line: str
    lines: int = 1


@lru_cache(maxsize=128)
def unified(old: str, new: str) -> list[Part]:
    """Compare by line, with three lines of context; empty when the lines are equal."""
    a, b = plain(old).splitlines(), plain(new).splitlines()
    if a == b:
        return []
    matcher = _matcher(a, b)
    parts: list[Part] = []
    end = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        parts += _omitted(group[0][1] - end)
        end = group[-1][2]
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                parts += [Part(" ", line) for line in a[i1:i2]]
                continue
            parts += [Part("-", line) for line in a[i1:i2]]
            parts += [Part("+", line) for line in b[j1:j2]]
    return parts + _omitted(len(a) - end)


def _matcher(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Return a matcher of two sequences; what would take minutes to align is one replacement."""
    for autojunk in (False, True):  # it leaves out what is frequent, which is fast and inexact
        matcher: Any = SequenceMatcher(None, a, b, autojunk)
        places = matcher.b2j
        if sum(len(places.get(part, ())) for part in a) <= _MAX_PAIRS:
            return matcher
    matcher.opcodes = [("replace", 0, len(a), 0, len(b))]  # it computes them unless it has them
    return matcher


def _omitted(lines: int) -> list[Part]:
    """Return the part that stands for unchanged lines."""
    return [Part("@", labels.count(lines, "unchanged line"), lines)] if lines > 0 else []


@lru_cache(maxsize=128)
def words(old: str, new: str) -> list[Part]:
    """Compare by word; the kept and added parts, joined, are the new text."""
    return _merge_phrases(list(_by_word(plain(old), plain(new))))


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
            yield from _change(removed, "", " ") if tag == "equal" else _change(removed, added)
        yield from _change("".join(a[i1:i2]), "", " ")
        i, j = i2, j2


def _similar(old: str, new: str) -> bool:
    """Return whether two lines share enough words to be versions of each other."""
    a, b = set(_WORDS.findall(old)), set(_WORDS.findall(new))
    return 2 * len(a & b) >= max(len(a), len(b))


def _merge_phrases(parts: list[Part]) -> list[Part]:
    """Merge changes with only a space between them, so that whole phrases are marked."""
    merged: list[Part] = []
    removed = added = ""
    for here, after in pairwise([*parts, Part("@", "")]):
        if here.tag == "-":
            removed += here.line
        elif here.tag == "+":
            added += here.line
        elif (
            removed
            and added
            and after.tag in "-+"
            and here.line.isspace()
            and "\n" not in here.line
        ):
            removed, added = removed + here.line, added + here.line
        else:
            merged += _change(removed, added)
            merged.append(here)
            removed = added = ""
    return merged + _change(removed, added)


def _change(removed: str, added: str, tag: Tag = "-") -> list[Part]:
    """Return the parts of one replacement, or of a kept passage."""
    pair = (Part(tag, removed), Part("+", added))
    return [part for part in pair if part.line]


def text_diff(old: str, new: str, colour: bool = False, form: Form = "code") -> str:
    """Return the difference as plain text: signed lines for code, ``[-old-]{+new+}`` for prose.

    Args:
        old: the text before.
        new: the text after.
        colour: whether to add ANSI colours.
        form: ``code`` compares by line, ``prose`` by word.
    """
    if form == "prose":
        return "".join(_text_words(words(old, new), colour))
    return "\n".join(
        _paint(p.tag, f"{text_sign(p.tag)} {p.line}", colour) for p in unified(old, new)
    )


def text_sign(tag: Tag) -> str:
    """Return the sign of a line in plain text, as patch tools write it."""
    return "⋯" if tag == "@" else tag


def _text_words(parts: list[Part], colour: bool) -> Iterator[str]:
    """Yield the pieces of a word diff, with brackets around the changes."""
    for part in parts:
        if part.tag == "-":
            yield _paint("-", f"[-{part.line}-]", colour)
        elif part.tag == "+":
            yield _paint("+", f"{{+{part.line}+}}", colour)
        else:
            yield part.line


def _paint(tag: Tag, text: str, colour: bool) -> str:
    """Colour a piece if `colour` is set."""
    return f"{_COLOURS[tag]}{text}\x1b[0m" if colour and tag in _COLOURS else text


class Row(NamedTuple):
    """A line of code in a difference.

    Attributes:
        tag: space for kept, ``-`` for removed, ``+`` for added.
        old: its index in the old text; None for an added line.
        new: its index in the new text; None for a removed line.
        hunk: which change it belongs to, from 0; None for a kept line.
        marks: the characters that differ within the line, as half-open ranges.
    """

    tag: Tag
    old: int | None
    new: int | None
    hunk: int | None = None
    marks: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=64)
def rows(old: str, new: str) -> tuple[Row, ...]:
    """Compare code by line, every line included, with what differs inside changed lines."""
    a, b = _lines(old), _lines(new)
    found: list[Row] = []
    hunk = 0
    for tag, i1, i2, j1, j2 in _matcher(a, b).get_opcodes():
        if tag == "equal":
            found += [Row(" ", i, j) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)]
            continue
        removed, added = _marks(a[i1:i2], b[j1:j2])
        found += [Row("-", i, None, hunk, marks) for i, marks in enumerate(removed, i1)]
        found += [Row("+", None, j, hunk, marks) for j, marks in enumerate(added, j1)]
        hunk += 1
    return tuple(found)


_Marks = tuple[tuple[int, int], ...]
_PAIRED = 2_000  # pairs of lines that are compared with each other within one change


def _marks(removed: Sequence[str], added: Sequence[str]) -> tuple[list[_Marks], list[_Marks]]:
    """Return what differs inside each line of a change; nothing for a line without counterpart."""
    before: list[_Marks] = [()] * len(removed)
    after: list[_Marks] = [()] * len(added)
    if len(removed) * len(added) > _PAIRED:
        return before, after
    start = 0
    for i, old in enumerate(removed):
        for j in range(start, len(added)):
            if _similar(old, added[j]):
                before[i], after[j] = _ranges(old, added[j])
                start = j + 1
                break
    return before, after


def _ranges(old: str, new: str) -> tuple[_Marks, _Marks]:
    """Return the ranges of characters by which two lines differ."""
    before, after = [], []
    i = j = 0
    for part in _merge_phrases(list(_by_word(old, new))):
        size = len(part.line)
        if part.tag == "-" and not part.line.isspace():
            before.append((i, i + size))
        if part.tag == "+" and not part.line.isspace():
            after.append((j, j + size))
        i += size if part.tag != "+" else 0
        j += size if part.tag != "-" else 0
    return tuple(before), tuple(after)


def revert(old: str, new: str, form: Form, hunk: int) -> str:
    """Return the new text with one of its changes taken back.

    Args:
        old: the text before.
        new: the text after.
        form: ``code`` counts changes by line, as `rows` does, ``prose`` by word, as `words` does.
        hunk: which change, from 0.

    Raises:
        IndexError: there is no such change.
    """
    pieces = ((part.tag, part.line) for part in words(old, new))
    if form == "code":
        # As they were: only what is shown has its hidden characters replaced.
        a, b = (text.replace("\r\n", "\n").split("\n") for text in (old, new))
        pieces = (
            (row.tag, a[row.old] if row.new is None else b[row.new])  # type: ignore[index]
            for row in rows(old, new)
        )
    kept, number, inside = [], -1, False
    for tag, piece in pieces:
        number += tag != " " and not inside
        inside = tag != " "
        if tag == " " or (tag == "-") == (number == hunk):
            kept.append(piece)
    if not 0 <= hunk <= number:
        raise IndexError(hunk)
    return ("\n" if form == "code" else "").join(kept)


def _lines(text: str) -> list[str]:
    """Return the lines of a text; joined by line breaks, they are the text again."""
    return plain(text).split("\n")
