"""Differences between two texts, by line for code and by word for prose, as text and as HTML."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby, pairwise, zip_longest
from typing import Any, Literal, NamedTuple

from ipyrefine.render import labels
from ipyrefine.render.escape import html_code, html_prose, html_text, plain
from ipyrefine.render.style import pane_class

_CONTEXT = 3
# Up to this many lines an exact comparison is fast; beyond it, frequent lines are no anchors.
_EXACT_LINES = 1_000
# Longer texts (in characters) are compared by word only within lines that differ.
_LONG_TEXT = 4_000
_MAX_PAIRS = 1_000_000  # of equal parts of two texts; aligning them takes seconds or more
_WORDS = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_SIGNS = {"+": "+", "-": "\N{MINUS SIGN}", " ": " ", "@": "⋯"}
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
    matcher = _matcher(a, b, exact=max(len(a), len(b)) <= _EXACT_LINES)
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


def _matcher(a: list[str], b: list[str], *, exact: bool = False) -> Any:
    """Return a matcher of two sequences; what would take minutes to align is one replacement.

    Args:
        a: the parts of the text before.
        b: the parts of the text after.
        exact: whether frequent parts are aligned too.
    """
    matcher: Any = SequenceMatcher(None, a, b, autojunk=not exact)
    places = matcher.b2j
    if sum(len(places.get(part, ())) for part in a) > _MAX_PAIRS:
        matcher.opcodes = [("replace", 0, len(a), 0, len(b))]  # it computes them unless it has them
    return matcher


def _omitted(lines: int) -> list[Part]:
    """Return the part that stands for unchanged lines."""
    return [Part("@", labels.count(lines, "unchanged line"), lines)] if lines > 0 else []


@lru_cache(maxsize=128)
def words(old: str, new: str) -> list[Part]:
    """Compare by word; the kept and added parts, joined, are the new text."""
    a, b = plain(old), plain(new)
    if max(len(a), len(b)) < _LONG_TEXT:
        return _merge_phrases(list(_by_word(a, b)))
    return _merge_phrases([part for pair in _by_line(a, b) for part in _by_word(*pair)])


def _by_word(old: str, new: str) -> Iterator[Part]:
    """Yield the parts of a comparison by word."""
    if old == new:
        yield from _change(old, "", " ")
        return
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    for tag, i1, i2, j1, j2 in _matcher(a, b).get_opcodes():
        removed, added = "".join(a[i1:i2]), "".join(b[j1:j2])
        yield from _change(removed, "", " ") if tag == "equal" else _change(removed, added)


def _by_line(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of corresponding passages: comparing words takes quadratic time."""
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    matcher = _matcher(a, b, exact=max(len(a), len(b)) <= _EXACT_LINES)
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        if i2 - i1 == j2 - j1 and all(map(_similar, a[i1:i2], b[j1:j2])):
            yield from zip(a[i1:i2], b[j1:j2], strict=True)
        else:
            yield "".join(a[i1:i2]), "".join(b[j1:j2])


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


class _Line(NamedTuple):
    """A line of a diff as HTML."""

    tag: str
    html: str


def html_diff(
    old: str, new: str, form: Form, language: str = "python", *, sides: bool = False
) -> str:
    """Return the difference as HTML: ``<ins>`` and ``<del>`` with signs, by line or by word.

    Args:
        old: the text before.
        new: the text after.
        form: ``code`` compares by line, with syntax colours; ``prose`` by word.
        language: the language of code.
        sides: whether to put the two texts side by side.
    """
    if plain(old) == plain(new):
        return '<p class="rf-quiet">No change to the text.</p>'
    if form == "prose":
        return _prose(words(old, new), sides, pane_class(new))
    parts = unified(old, new)
    if not parts:
        return '<p class="rf-quiet">Only line endings changed.</p>'
    lines = list(_html_lines(parts, old, new, language))
    if sides:
        return _table(_pairs(lines))
    body = "\n".join(_in_line(line) for line in lines)
    pane = f"rf-text rf-code rf-diff{pane_class(body)}"
    return f'<pre class="{pane}" tabindex="0"><code>{body}</code></pre>'


def _prose(parts: Sequence[Part], sides: bool, pane: str) -> str:
    """Return a word diff: in one pane, or one pane per text."""
    if not sides:
        body = "".join(_word(part) for part in parts)
        return f'<div class="rf-text rf-prose rf-diff{pane}">{body}</div>'
    columns = ("".join(_word(part) for part in parts if part.tag in keep) for keep in (" -", " +"))
    texts = "".join(f'<div class="rf-text rf-prose{pane}">{column}</div>' for column in columns)
    return f'<div class="rf-columns">{texts}</div>'


def _word(part: Part) -> str:
    """Return a piece of a word diff; its sign makes it readable without style."""
    if part.tag == " ":
        return html_prose(part.line)
    name = "ins" if part.tag == "+" else "del"
    return f"<{name}><small>{_SIGNS[part.tag]}</small>{html_prose(part.line)}</{name}>"


def _html_lines(parts: Sequence[Part], old: str, new: str, language: str) -> Iterator[_Line]:
    """Yield the lines, highlighted as in their own text."""
    # Whole texts are highlighted: a line alone does not show that it is inside a string.
    a = html_code(old, labels.language(old, "code", language)).split("\n")
    b = html_code(new, labels.language(new, "code", language)).split("\n")
    i = j = 0
    for part in parts:
        match part.tag:
            case "@":
                i, j = i + part.lines, j + part.lines
                yield _Line("@", html_text(part.line))
            case "-":
                yield _Line("-", _line(a, i, part.line))
                i += 1
            case "+":
                yield _Line("+", _line(b, j, part.line))
                j += 1
            case _:
                yield _Line(" ", _line(b, j, part.line))
                i, j = i + 1, j + 1


def _line(lines: Sequence[str], index: int, text: str) -> str:
    """Return a highlighted line, or the plain one where highlighting split lines differently."""
    return lines[index] if index < len(lines) else html_text(text)


def _in_line(line: _Line) -> str:
    """Return a line of the single column."""
    text = f"{_SIGNS[line.tag]} {line.html}"
    match line.tag:
        case "+":
            return f"<ins>{text}</ins>"
        case "-":
            return f"<del>{text}</del>"
        case "@":
            return f'<span class="rf-quiet">{text}</span>'
        case _:
            return text


def _pairs(lines: Sequence[_Line]) -> Iterator[tuple[_Line | None, _Line | None]]:
    """Yield the rows of two columns, removed lines beside the added ones."""
    for changed, group in groupby(lines, lambda line: line.tag in "+-"):
        if not changed:
            yield from ((line, line) for line in group)
            continue
        block = list(group)
        removed = [line for line in block if line.tag == "-"]
        yield from zip_longest(removed, (line for line in block if line.tag == "+"))


def _table(pairs: Iterator[tuple[_Line | None, _Line | None]]) -> str:
    """Return two columns, each line beside its counterpart."""
    rows = "".join(f"<tr>{_cell(left)}{_cell(right)}</tr>" for left, right in pairs)
    return f'<div class="rf-text rf-sides" tabindex="0"><table>{rows}</table></div>'


def _cell(line: _Line | None) -> str:
    """Return one side of a row."""
    return "<td></td>" if line is None else f"<td><pre><code>{_in_line(line)}</code></pre></td>"
