"""Compare two texts: code by line, prose by word; as data, as plain text and as HTML.

In HTML, changes are ``<ins>`` and ``<del>``, so that it reads without style too.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from markupsafe import Markup, escape

from ipyrefine.core.alignment import compare
from ipyrefine.core.model import Form
from ipyrefine.render import say
from ipyrefine.render.escape import plain
from ipyrefine.render.formatting import find_quote, mark, markdown_lines

CONTEXT = 3  # unchanged lines around a change
_SHORT_TEXT = 250, 30  # words of prose and lines of code that are shown whole
_SHORTEST_FOLD = 3  # lines; fewer are shown rather than counted
_SHOWN_LINES = 40  # of a text that is not compared with another one
_MOST = 200_000  # characters that are compared by word; more are one replacement
_RUN = 7  # words and spaces in a row that are compared first: few of them occur twice
_MAX_MARKED = 200  # lines of a change that are compared by word
_MAX_HIGHLIGHTED = 60_000  # characters; colouring more takes longer than it is worth
_COLOURLESS = {"", "n", "o", "p", "w"}  # kinds of tokens
_WORDS = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_TAGS = {"+": "ins", "-": "del"}
_SHAPES = {" ": "{}", "-": "[-{}-]", "+": "{{+{}+}}"}  # of a passage of prose as plain text

Tag = Literal[" ", "-", "+"]
Marks = tuple[tuple[int, int], ...]
_Tokens = tuple[tuple[str, str], ...]  # kind and text of each


class Part(NamedTuple):
    """A passage of prose that was kept (space), removed (``-``) or added (``+``)."""

    tag: Tag
    text: str


class Row(NamedTuple):
    """A line of code in a difference."""

    tag: Tag  # space for kept, `-` for removed, `+` for added
    old: int | None  # its index in the old text; None for an added line
    new: int | None  # its index in the new text; None for a removed line
    marks: Marks = ()  # the characters that differ within the line, as half-open ranges


@lru_cache(maxsize=64)
def rows(old: str, new: str) -> tuple[Row, ...]:
    """Compare code by line, every line included, with what differs inside changed lines."""
    a, b = shown_lines(old, new)
    found = []
    for tag, i1, i2, j1, j2 in compare(a, b):
        if tag == "equal":
            found += [Row(" ", i, j) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)]
            continue
        removed, added = _mark_lines(a[i1:i2], b[j1:j2])
        found += [Row("-", i, None, marks) for i, marks in enumerate(removed, i1)]
        found += [Row("+", None, j, marks) for j, marks in enumerate(added, j1)]
    return tuple(found)


def shown_lines(*texts: str) -> list[list[str]]:
    """Return the lines of texts as they are shown, without an empty one at their end."""
    return [plain(one).removesuffix("\n").split("\n") for one in texts]


def stretches(wanted: Sequence[bool], around: int = CONTEXT) -> Iterator[tuple[bool, range]]:
    """Yield the stretches of lines to show, and those to fold.

    So many around a wanted one are shown too, and so are few in a row.
    """
    near = [any(wanted[max(0, n - around) : n + around + 1]) for n in range(len(wanted))]
    folded = set()
    for is_near, group in groupby(range(len(near)), near.__getitem__):
        run = [*group]
        folded.update(run * (not is_near and len(run) > _SHORTEST_FOLD))
    for is_folded, group in groupby(range(len(near)), folded.__contains__):
        numbers = [*group]
        yield not is_folded, range(numbers[0], numbers[-1] + 1)


def text_diff(old: str, new: str, form: Form = "code") -> str:
    """Return the difference as plain text: signed lines for code, ``[-old-]{+new+}`` for prose.

    It is empty for code that is the same.
    """
    if form == "prose":
        pieces = (
            "\n".join(_SHAPES[part.tag].format(one) * bool(one) for one in part.text.split("\n"))
            for part in words(old, new)
        )
        lines = "".join(pieces).split("\n")
        changed, around = ["[-" in one or "{+" in one for one in lines], 0
    else:
        a, b = shown_lines(old, new)
        found = rows(old, new)
        changed, around = [row.tag != " " for row in found], CONTEXT
        if not any(changed):
            return ""
        lines = [
            f"{row.tag} {a[row.old] if row.old is not None else b[row.new or 0]}" for row in found
        ]
    return "\n".join(
        "\n".join(lines[n] for n in numbers).rstrip()
        if visible
        else f"⋯ {say.count(len(numbers), 'unchanged line')}"
        for visible, numbers in stretches(changed, around)
    )


@lru_cache(maxsize=128)
def words(old: str, new: str) -> list[Part]:
    """Compare by word; the kept and added parts, joined, are the new text as it is shown.

    What was kept between two longer changes belongs to both, so that whole phrases are marked.
    """
    merged = []
    removed = added = ""
    parts = [*_by_run(plain(old), plain(new)), Part(" ", "")]
    for place, here in enumerate(parts):
        later = parts[place + 1 : place + 3]
        after = max((len(part.text) for part in later if part.tag != " "), default=0)
        least = min(after, max(len(removed), len(added)))
        if here.tag == " " and ("\n" in here.text or len(here.text) > least or not here.text):
            merged += _change(removed, added)
            removed = added = ""
            if merged and merged[-1].tag == " ":
                here = Part(" ", merged.pop().text + here.text)
            merged.append(here)
            continue
        removed += here.text if here.tag != "+" else ""
        added += here.text if here.tag != "-" else ""
    return merged


def _by_run(old: str, new: str) -> Iterator[Part]:
    """Yield what was kept and changed: runs of words first, as few of them occur twice."""
    if len(old) + len(new) > _MOST:
        yield from _change(old, new)
        return
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    runs = ([tuple(words[n : n + _RUN]) for n in range(len(words) - _RUN + 1)] for words in (a, b))
    same = [one for one in compare(*runs) if one[0] == "equal"]
    i = j = 0
    for _, i1, i2, j1, j2 in [*same, ("", len(a), len(a), len(b), len(b))]:
        for tag, k1, k2, l1, l2 in compare(a[i:i1], b[j:j1]):
            kept, gone = "".join(a[i + k1 : i + k2]), "".join(b[j + l1 : j + l2])
            yield from [Part(" ", kept)] if tag == "equal" else _change(kept, gone)
        if i1 < i2:
            yield Part(" ", "".join(a[i1:i2]))
        i, j = i2, j2


def _change(removed: str, added: str) -> list[Part]:
    return [part for part in (Part("-", removed), Part("+", added)) if part.text]


def _mark_lines(removed: Sequence[str], added: Sequence[str]) -> tuple[list[Marks], list[Marks]]:
    """Return what differs inside each line of a change; nothing for one that is mostly new."""
    before: list[Marks] = [()] * len(removed)
    after: list[Marks] = [()] * len(added)
    for n, (old, new) in enumerate(zip(removed[:_MAX_MARKED], added, strict=False)):
        parts = words(old, new)
        if 2 * sum(len(one.text) for one in parts if one.tag == " ") >= max(len(old), len(new)):
            before[n], after[n] = _ranges(parts, "-"), _ranges(parts, "+")
    return before, after


def _ranges(parts: Sequence[Part], tag: Tag) -> Marks:
    """Return where one of the two texts has what the other does not."""
    found, at = [], 0
    for part in parts:
        if part.tag == tag and not part.text.isspace():
            found.append((at, at + len(part.text)))
        at += len(part.text) if part.tag in (" ", tag) else 0
    return tuple(found)


# As HTML


class Line(NamedTuple):
    """A line of the page."""

    html: Markup  # what it shows
    number: int | None  # its index in the new text; None for a removed line of code
    changed: bool  # whether the difference touches it
    tag: Tag = " "  # space for kept, `-` for removed, `+` for added; a line of prose is always kept
    gutter: str = ""  # its number and sign


class Stretch(NamedTuple):
    """Lines of the page; `fold` counts them where they start folded."""

    lines: list[Line]
    fold: str = ""


def prose_html(text: str) -> Markup:
    """Return prose with its Markdown shown as what it means, and every character still there."""
    return Markup("<br>").join(markdown_lines(plain(text)))


def text_lines(
    text: str, old: str, form: Form, language: str, quotes: Sequence[str] = ()
) -> list[Line]:
    """Return the lines of a text, with its differences from the old one, which may be the same.

    `quotes` are passages of prose to mark.
    """
    if form == "prose":
        return _prose_lines(text, old, quotes)
    before, after = highlight(old, language), highlight(text, language)
    width = len(str(len(after)))
    lines = []
    for row in rows(old, text):
        tokens = before[row.old or 0] if row.new is None else after[row.new]
        number = "" if row.new is None else str(row.new + 1)
        gutter = f"{number:>{width}} {row.tag} ".replace("-", "\N{MINUS SIGN}")
        lines.append(Line(_spans(tokens, row.marks), row.new, row.tag != " ", row.tag, gutter))
    return lines


def lay_out(lines: Sequence[Line], *, whole: bool, folds: bool = False) -> Iterator[Stretch]:
    """Yield lines; what is far from any change is folded.

    The start of a `whole` text is shown, too, and all of a short one unless it `folds`.
    """
    most = len(lines) if len(lines) <= 1.5 * _SHOWN_LINES else _SHOWN_LINES - CONTEXT
    wanted = [(whole and n < most) or line.changed for n, line in enumerate(lines)]
    is_code = any(line.gutter for line in lines)
    size = len(lines) if is_code else sum(len(one.html.striptags().split()) for one in lines)
    if not (whole or folds) and size <= _SHORT_TEXT[is_code]:
        wanted = [True] * len(lines)
    for visible, numbers in stretches(wanted, CONTEXT if is_code else 0):
        part = [lines[n] for n in numbers]
        if not visible:
            number = sum(is_code or bool(one.html) for one in part)
            noun = "line" if is_code else "paragraph"
            yield Stretch(part, say.count(number, f"{'more' if whole else 'unchanged'} {noun}"))
            continue
        yield Stretch(part)


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
        lexer = find_lexer_class_by_name(say.language(text, "code", language))
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
    same = ["".join(text for _, text in line) for line in lines] == code.split("\n")
    return tuple(map(tuple, lines)) if same else bare  # some lexers change what they read


def highlight_html(text: str, language: str) -> Markup:
    """Return code as HTML in the colours of its tokens."""
    return Markup("\n").join(map(_spans, highlight(text, language)))


def _spans(tokens: _Tokens, marks: Marks = ()) -> Markup:
    """Return tokens as HTML in the colours of their kinds, with some characters marked."""
    html, at = "", 0
    for kind, text in tokens:
        ends = {min(max(place - at, 0), len(text)) for mark in marks for place in mark}
        for start, end in pairwise(sorted({0, len(text), *ends})):
            piece = str(escape(text[start:end]))
            if kind not in _COLOURLESS:
                piece = f'<span class="rf-t-{kind}">{piece}</span>'
            marked = any(a <= at + start < b for a, b in marks)
            html += f"<mark>{piece}</mark>" if marked else piece
        at += len(text)
    return Markup(html.replace("</mark><mark>", ""))


def _prose_lines(text: str, old: str, quotes: Sequence[str]) -> list[Line]:
    """Return the lines of prose: its Markdown rendered, or what changed in it, as it is written."""
    if text == old:
        new = plain(text)
        quoted = (bool(find_quote(line, quotes)) for line in new.split("\n"))
        found = zip(markdown_lines(new, quotes), quoted, strict=True)
        return [Line(html, number, changed) for number, (html, changed) in enumerate(found)]
    lines = []
    html, row, changed = Markup(), 0, False
    for is_change, group in groupby(words(old, text), lambda part: part.tag != " "):
        for tag, passage in group:
            marked = quotes if tag != "-" else ()
            for n, stretch in enumerate(passage.split("\n")):
                if n:
                    lines.append(Line(html, None if tag == "-" else row, changed))
                    html, changed = Markup(), False
                    row += tag != "-"
                changed = changed or is_change or bool(find_quote(stretch, marked))
                shown = mark(stretch, marked)
                if is_change and stretch:
                    shown = Markup(f"<{_TAGS[tag]}>{shown}</{_TAGS[tag]}>")
                html += shown
    return [*lines, Line(html, row, changed)]
