"""A draft or revision as HTML: its difference, unchanged stretches folded, notes where they belong.

Changes are ``<ins>`` and ``<del>``, so that it reads without style too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from ipyrefine.core.model import Form
from ipyrefine.render import labels
from ipyrefine.render.diff import CONTEXT, Marks, Part, Tag, stretches, visible_rows, words
from ipyrefine.render.escape import plain

_SHOWN_LINES = 40  # of a text that is not compared with another one
_MAX_HIGHLIGHTED = 60_000  # characters; colouring more takes longer than it is worth
_COLOURLESS = {"", "n", "o", "p", "w"}  # kinds of tokens
_MATH = re.compile(r"[$\\]")
_TAGS = {"+": "ins", "-": "del"}
_SIGNS = {"+": "+", "-": "\N{MINUS SIGN}", " ": " "}

Revert = Callable[[int], str]  # returns the control that takes a change back, by its number
_Tokens = tuple[tuple[str, str], ...]  # kind and text of each


class Line(NamedTuple):
    """A line of the page."""

    html: Markup  # what it shows
    number: int | None  # its index in the new text; None for a removed line of code
    changed: bool  # whether the difference touches it
    tag: Tag = " "  # space for kept, `-` for removed, `+` for added; a line of prose is always kept
    gutter: str = ""  # its number and sign
    control: Markup | str = ""  # what takes its change back, behind the last line of that


class Stretch(NamedTuple):
    """Lines of the page; `fold` counts them where they start folded, `notes` stand below them."""

    lines: list[Line]
    fold: str = ""
    notes: Sequence[Any] = ()


def prose(text: str) -> Markup:
    """Return text as HTML outside ``<pre>``, with its line breaks, and nothing to typeset as TeX.

    Viewers look for TeX within one text node, so each ``$`` and backslash gets its own.
    """
    html = _MATH.sub(r"<span>\g<0></span>", str(escape(plain(text))))
    return Markup(html.replace("\n", "<br>"))


def text_lines(
    text: str, old: str, form: Form, language: str, quotes: Sequence[str], revert: Revert | None
) -> list[Line]:
    """Return the lines of a text, with what was removed and added.

    Args:
        text: the text.
        old: the text to compare it with; the same one for no comparison.
        form: how it is written; code is compared by line, prose by word.
        language: the language of code.
        quotes: passages of prose to mark.
        revert: returns the control of a change; None for no controls.
    """
    if form == "prose":
        return _prose_lines(text, old, quotes, revert)
    found = visible_rows(old, text)
    before, after = highlight(old, language), highlight(text, language)
    width = len(str(len(after)))
    lines = []
    for row, following in zip_longest(found, found[1:]):
        is_last = following is None or following.hunk != row.hunk
        control = revert(row.hunk) if revert and row.hunk is not None and is_last else ""
        tokens = before[row.old or 0] if row.new is None else after[row.new]
        number = "" if row.new is None else str(row.new + 1)
        gutter = f"{number:>{width}} {_SIGNS[row.tag]} "
        html = _spans(tokens, row.marks)
        lines.append(Line(html, row.new, row.tag != " ", row.tag, gutter, Markup(control)))
    return lines


def lay_out(
    lines: Sequence[Line], notes: Mapping[int, Sequence[Any]], *, whole: bool
) -> Iterator[Stretch]:
    """Yield lines with the notes below them; what is far from any change or note is folded.

    Args:
        lines: the lines.
        notes: what to put below lines of the text, by their index.
        whole: whether the text stands alone; then its start is shown.
    """
    most = len(lines) if len(lines) <= 1.5 * _SHOWN_LINES else _SHOWN_LINES
    wanted = [
        (whole and n < most - CONTEXT) or line.changed or line.number in notes
        for n, line in enumerate(lines)
    ]
    for shown, numbers in stretches(wanted):
        part = [lines[n] for n in numbers]
        if not shown:
            yield Stretch(part, f"{len(part):,} {'more' if whole else 'unchanged'} lines")
            continue
        pending: list[Line] = []
        for line in part:
            pending.append(line)
            if line.number is not None and line.number in notes:
                yield Stretch(pending, "", notes[line.number])
                pending = []
        if pending:
            yield Stretch(pending)


def line_of(text: str, quote: str) -> int | None:
    """Return the index of the line in which a quote ends, loose about white space; else None."""
    flat = quote.strip().strip("\"'`\N{HORIZONTAL ELLIPSIS}")
    pattern = r"\s+".join(map(re.escape, flat.split()))
    found = re.search(pattern, text) if flat and len(pattern) < 20_000 else None
    return plain(text[: found.end()]).count("\n") if found else None


@lru_cache(maxsize=64)
def highlight(text: str, language: str) -> tuple[_Tokens, ...]:
    """Return the tokens of each line of code; a language that nobody knows has no kinds.

    The whole text is read: a line alone does not show that it is inside a string.
    """
    from pygments.lexers import find_lexer_class_by_name  # type: ignore[import-untyped]
    from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    code = plain(text)
    bare = tuple((("", line),) for line in code.split("\n"))
    try:
        lexer = find_lexer_class_by_name(labels.language(text, "code", language))
    except ClassNotFound:
        return bare
    if len(code) > _MAX_HIGHLIGHTED:
        return bare
    lines: list[list[tuple[str, str]]] = [[]]
    for kind, value in lexer(stripnl=False, ensurenl=False).get_tokens(code):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        first, *others = value.split("\n")
        lines[-1].append((STANDARD_TYPES[kind], first))
        lines += [[(STANDARD_TYPES[kind], one)] for one in others]
    found = tuple(map(tuple, lines))
    # Some lexers change what they read.
    return found if _text_of(found) == _text_of(bare) else bare


def highlight_html(text: str, language: str) -> Markup:
    """Return code as HTML in the colours of its tokens."""
    return Markup("\n").join(map(_spans, highlight(text, language)))


def _text_of(lines: Iterable[_Tokens]) -> list[str]:
    return ["".join(text for _, text in line) for line in lines]


def _spans(tokens: _Tokens, marks: Marks = ()) -> Markup:
    """Return tokens as HTML in the colours of their kinds, with some characters marked."""
    pieces: list[tuple[bool, str]] = []
    at = 0
    for kind, text in tokens:
        ends = {min(max(place - at, 0), len(text)) for mark in marks for place in mark}
        for start, end in pairwise(sorted({0, len(text), *ends})):
            html = escape(text[start:end])
            if kind not in _COLOURLESS:
                html = Markup(f'<span class="rf-t-{kind}">{html}</span>')
            pieces.append((any(a <= at + start < b for a, b in marks), html))
        at += len(text)
    return _join_marked(pieces)


def _join_marked(pieces: Iterable[tuple[bool, str]]) -> Markup:
    html = ""
    for marked, group in groupby(pieces, itemgetter(0)):
        body = "".join(piece for _, piece in group)
        html += f"<mark>{body}</mark>" if marked else body
    return Markup(html)


def _prose_lines(text: str, old: str, quotes: Sequence[str], revert: Revert | None) -> list[Line]:
    """Return the lines of prose, with what was removed and added inside them."""
    lines: list[Line] = []
    html, number, hunk, changed = Markup(), 0, -1, False
    parts = words(old, text) or [Part(" ", plain(text))]
    for before, part, after in zip_longest([None, *parts[:-1]], parts, parts[1:]):
        assert part is not None, "the longest of the three"
        hunk += part.tag != " " and (before is None or before.tag == " ")
        for n, stretch in enumerate(part.text.split("\n")):
            if n:
                lines.append(Line(html, None if part.tag == "-" else number, changed))
                html, changed = Markup(), False
                number += part.tag != "-"
            html += _prose_piece(part.tag, stretch, quotes)
            changed = changed or part.tag != " "
        if revert and part.tag != " " and (after is None or after.tag == " "):
            html += Markup(revert(hunk))
    return [*lines, Line(html, number, changed)]


def _prose_piece(tag: Tag, text: str, quotes: Sequence[str] = ()) -> Markup:
    quote = next((one for one in quotes if one and one in text), "") if tag != "-" else ""
    head, _, tail = text.partition(quote) if quote else (text, "", "")
    html = _join_marked([(False, prose(head)), (True, prose(quote)), (False, prose(tail))])
    if not quote:
        html = prose(text)
    return Markup(f"<{_TAGS[tag]}>{html}</{_TAGS[tag]}>") if text and tag != " " else html


def side_by_side(old: str, new: str, language: str) -> Iterator[tuple[Line | None, Line | None]]:
    """Yield the rows of two columns of code, removed lines next to the added ones."""
    lines = text_lines(new, old, "code", language, (), None)
    for changed, group in groupby(lines, lambda line: line.changed):
        block = [*group]
        removed, added = ([line for line in block if line.tag == tag] for tag in "-+")
        yield from zip_longest(removed, added) if changed else zip(block, block, strict=True)


def prose_columns(old: str, new: str) -> list[Markup]:
    """Return two texts of prose, each with what is its own marked."""
    parts = words(old, new)
    return [
        Markup().join(_prose_piece(part.tag, part.text) for part in parts if part.tag in kept)
        for kept in (" -", " +")
    ]
