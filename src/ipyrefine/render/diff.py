"""What changed between two texts: by line for code, by word for prose; and as plain text."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from ipyrefine.render.escape import plain

_CONTEXT = 3
# Below this many lines the exact comparison is fast; above, popular lines are no anchors.
_EXACT_LINES = 1_000
# From this many characters on, words are compared only within lines that differ.
_LONG_TEXT = 4_000
_WORDS = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[2m"}

Tag = Literal[" ", "-", "+", "@"]


class Part(NamedTuple):
    """A piece of a diff: kept (space), removed, added, or ``@`` for lines left out.

    Attributes:
        tag: which of them.
        line: the piece; for ``@``, how many lines were left out, in words.
        lines: how many lines it stands for.
    """

    tag: Tag
    line: str
    lines: int = 1


@lru_cache(maxsize=128)
def unified(old: str, new: str) -> list[Part]:
    """Compare by line, with three lines of context; empty when the lines are the same.

    A part tagged ``@`` stands for kept lines that were left out and says how many.
    """
    a, b = plain(old).splitlines(), plain(new).splitlines()
    if a == b:
        return []
    matcher = SequenceMatcher(None, a, b, autojunk=max(len(a), len(b)) > _EXACT_LINES)
    parts: list[Part] = []
    end = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        parts += _skipped(group[0][1] - end)
        end = group[-1][2]
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                parts += [Part(" ", line) for line in a[i1:i2]]
                continue
            parts += [Part("-", line) for line in a[i1:i2]]
            parts += [Part("+", line) for line in b[j1:j2]]
    return parts + _skipped(len(a) - end)


def _skipped(lines: int) -> list[Part]:
    """The stand-in for kept lines left out."""
    said = f"{lines} unchanged line{'' if lines == 1 else 's'}"
    return [Part("@", said, lines)] if lines > 0 else []


@lru_cache(maxsize=128)
def words(old: str, new: str) -> list[Part]:
    """Compare by word; the parts with space and plus, joined, are the new text."""
    a, b = plain(old), plain(new)
    if max(len(a), len(b)) < _LONG_TEXT:
        return _joined(list(_by_word(a, b)))
    return _joined([part for pair in _by_line(a, b) for part in _by_word(*pair)])


def _by_word(old: str, new: str) -> Iterator[Part]:
    """The parts of a comparison word by word."""
    if old == new:
        yield from _change(old, "", " ")
        return
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b).get_opcodes():
        removed, added = "".join(a[i1:i2]), "".join(b[j1:j2])
        yield from _change(removed, "", " ") if tag == "equal" else _change(removed, added)


def _by_line(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Passages that stand for each other; the work of comparing words grows with their square."""
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    matcher = SequenceMatcher(None, a, b, autojunk=max(len(a), len(b)) > _EXACT_LINES)
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        if i2 - i1 == j2 - j1 and all(map(_alike, a[i1:i2], b[j1:j2])):
            yield from zip(a[i1:i2], b[j1:j2], strict=True)
        else:
            yield "".join(a[i1:i2]), "".join(b[j1:j2])


def _alike(old: str, new: str) -> bool:
    """Whether a line seems to be another version of one, by the words that they share."""
    a, b = set(_WORDS.findall(old)), set(_WORDS.findall(new))
    return 2 * len(a & b) >= max(len(a), len(b))


def _joined(parts: list[Part]) -> list[Part]:
    """Merge changes that only a space holds apart: whole phrases read better than confetti."""
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
    """The parts of one replacement, or of what was kept."""
    pair = (Part(tag, removed), Part("+", added))
    return [part for part in pair if part.line]


def text_diff(
    old: str, new: str, colour: bool = False, form: Literal["code", "prose"] = "code"
) -> str:
    """The difference as plain text: signed lines for code, ``[-old-]{+new+}`` for prose.

    Args:
        old: the text before.
        new: the text after.
        colour: whether to add ANSI colours.
        form: ``code`` compares by line, ``prose`` by word.
    """
    if form == "prose":
        return "".join(_text_words(words(old, new), colour))
    lines = (
        _paint(part.tag, f"{_sign(part.tag)} {part.line}", colour) for part in unified(old, new)
    )
    return "\n".join(lines)


def _text_words(parts: list[Part], colour: bool) -> Iterator[str]:
    """The pieces of a word diff, with brackets around what changed."""
    for part in parts:
        if part.tag == "-":
            yield _paint("-", f"[-{part.line}-]", colour)
        elif part.tag == "+":
            yield _paint("+", f"{{+{part.line}+}}", colour)
        else:
            yield part.line


def _sign(tag: Tag) -> str:
    """The ASCII sign of a line, as patch tools write it."""
    return "⋯" if tag == "@" else tag


def _paint(tag: Tag, text: str, colour: bool) -> str:
    """Colour a piece when asked."""
    return f"{_COLOURS[tag]}{text}\x1b[0m" if colour and tag in _COLOURS else text
