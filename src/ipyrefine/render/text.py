"""A draft or revision as HTML: its difference, unchanged stretches folded, notes where they belong.

Lines are lines of text and changes are ``<ins>`` and ``<del>``, so that it reads without style too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import NamedTuple

from ipyrefine.core.model import Form
from ipyrefine.render import labels
from ipyrefine.render.diff import Part, Row, rows, words
from ipyrefine.render.escape import html_code, html_prose, html_text, plain

_CONTEXT = 3  # unchanged lines shown around a change or a note
_SHORTEST_FOLD = 3  # lines; fewer are shown rather than counted
_SHOWN_LINES = 40  # of a text that is not compared with another one
_PIECES = re.compile(r"<[^>]*>|&[^;]+;|[^<&]", re.DOTALL)
_COLOURLESS = re.compile(r'<span class="rf-t-(?:n|o|p|w)">([^<]*)</span>')
_SIGNS = {"+": "+", "-": "\N{MINUS SIGN}", " ": " "}
_EMPTY = '<p class="rf-quiet rf-empty">The text is empty.</p>'
_TAGS = {"+": "ins", "-": "del", " ": "span"}

Revert = Callable[[int], str]


class Line(NamedTuple):
    """A line of the page.

    Attributes:
        html: what it shows.
        new: its index in the new text; None for a removed line of code.
        old: its index in the old text; None for an added line of code.
        changed: whether the difference touches it.
    """

    html: str
    new: int | None
    old: int | None
    changed: bool


def text_html(
    text: str,
    form: Form,
    language: str = "python",
    *,
    old: str | None = None,
    notes: Mapping[int, Sequence[str]] | None = None,
    quotes: Sequence[str] = (),
    revert: Revert | None = None,
) -> str:
    """Return a text as HTML.

    Args:
        text: the text.
        form: how it is written; code is compared by line, prose by word.
        language: the language of code.
        old: the text to compare it with; None shows the text alone.
        notes: HTML to put below lines of the text, by their index.
        quotes: passages of prose to mark.
        revert: returns the control that takes a change back, by its number; None for no controls.
    """
    if not text.strip() and old is None:
        return _EMPTY
    if old is not None and plain(old) == plain(text):
        head = '<p class="rf-quiet rf-empty">No change to the text.</p>'
    else:
        head = ""
    if form == "code":
        lines = _code_lines(text, text if old is None else old, language, revert)
    else:
        lines = _prose_lines(text, text if old is None else old, quotes, revert)
    whole = old is None or bool(head)
    return head + "".join(_layout(lines, notes or {}, form, whole=whole and not head))


def whole_html(text: str, form: Form, language: str = "python") -> str:
    """Return a text alone, to be read and copied: no numbers, nothing folded."""
    if not text.strip():
        return _EMPTY
    if form == "prose":
        return f'<div class="rf-prose">{html_prose(text)}</div>'
    body = "\n".join(_highlighted(text, language))
    # Without <code> a parser drops a line break that directly follows <pre>.
    return f'<pre class="rf-code rf-plain" tabindex="0"><code>{body}</code></pre>'


def line_of(text: str, quote: str) -> int | None:
    """Return the index of the line in which a quote ends, loose about white space; else None."""
    flat = quote.strip().strip("\"'`\N{HORIZONTAL ELLIPSIS}")
    if not flat:
        return None
    pattern = r"\s+".join(map(re.escape, flat.split()))
    found = re.search(pattern, text) if len(pattern) < 20_000 else None
    return plain(text[: found.end()]).count("\n") if found else None


def _layout(
    lines: Sequence[Line], notes: Mapping[int, Sequence[str]], form: Form, *, whole: bool
) -> Iterator[str]:
    """Yield panes of lines, folds of unchanged ones, and the notes between them."""
    kept = _kept(lines, notes, whole=whole)
    pending: list[str] = []
    for shown, group in groupby(range(len(lines)), key=lambda n: kept[n]):
        numbers = list(group)
        if not shown and len(numbers) > _SHORTEST_FOLD:
            yield from _pane(pending, form)
            pending = []
            pane = "".join(_pane([lines[n].html for n in numbers], form))
            count = f"{len(numbers):,} {'more' if whole else 'unchanged'} lines"
            yield (f'<details class="rf-fold"><summary>⋯ {count}</summary>{pane}</details>')
            continue
        for n in numbers:
            pending.append(lines[n].html)
            below = notes.get(lines[n].new, ()) if lines[n].new is not None else ()  # type: ignore[arg-type]
            if below:
                yield from _pane(pending, form)
                pending = []
                yield from below
    yield from _pane(pending, form)


def _kept(lines: Sequence[Line], notes: Mapping[int, Sequence[str]], *, whole: bool) -> list[bool]:
    """Return for each line whether it is shown without unfolding."""
    if whole and len(lines) <= 1.5 * _SHOWN_LINES:
        return [True] * len(lines)
    kept = [whole and n < _SHOWN_LINES for n in range(len(lines))]
    for n, line in enumerate(lines):
        if line.changed or line.new in notes:
            for near in range(max(0, n - _CONTEXT), min(len(lines), n + _CONTEXT + 1)):
                kept[near] = True
    return kept


def _pane(lines: Sequence[str], form: Form) -> Iterator[str]:
    """Yield a pane of lines, or nothing without any."""
    if not lines:
        return
    if form == "code":
        body = "\n".join(lines)
        yield f'<pre class="rf-code"><code>{body}</code></pre>'
    else:
        yield f'<div class="rf-prose">{"<br>".join(lines)}</div>'


# Code


def _code_lines(text: str, old: str, language: str, revert: Revert | None) -> list[Line]:
    """Return the lines of code, the removed ones included."""
    compared = rows(old, text)
    before, after = _highlighted(old, language), _highlighted(text, language)
    # A text's last line break ends its last line and begins none.
    compared = tuple(r for r in compared if not _is_end(r, before, after))
    width = len(str(len(after)))
    lines = []
    for number, row in enumerate(compared):
        last = row.hunk is not None and (
            number + 1 == len(compared) or compared[number + 1].hunk != row.hunk
        )
        control = revert(row.hunk) if revert and last and row.hunk is not None else ""
        lines.append(_code_line(row, before, after, width, control))
    return lines


def _is_end(row: Row, before: Sequence[str], after: Sequence[str]) -> bool:
    ends_old = row.old is None or (row.old == len(before) - 1 > 0 and not before[-1])
    ends_new = row.new is None or (row.new == len(after) - 1 > 0 and not after[-1])
    return ends_old and ends_new


def _code_line(
    row: Row, before: Sequence[str], after: Sequence[str], width: int, control: str
) -> Line:
    tag, kind = _TAGS[row.tag], {"+": " rf-add", "-": " rf-del"}.get(row.tag, "")
    number = "" if row.new is None else str(row.new + 1)
    gutter = f'<span class="rf-n">{number:>{width}} {_SIGNS[row.tag]} </span>'
    code = before[row.old or 0] if row.new is None else after[row.new]
    body = mark(code, row.marks)
    html = f'<{tag} class="rf-l{kind}">{gutter}{body}{control}</{tag}>'
    return Line(html, row.new, row.old, row.tag != " ")


@lru_cache(maxsize=64)
def _highlighted(text: str, language: str) -> tuple[str, ...]:
    """Return the lines of a text with syntax colours."""
    # Whole texts are highlighted: a line alone does not show that it is inside a string.
    lines = html_code(text, labels.language(text, "code", language)).split("\n")
    lines = [_COLOURLESS.sub(r"\1", line) for line in lines]
    raw = plain(text).split("\n")
    # Highlighting may split lines differently; then they stay plain.
    return tuple(lines if len(lines) == len(raw) else map(html_text, raw))


def mark(html: str, ranges: Iterable[tuple[int, int]]) -> str:
    """Return HTML with characters of its text inside ``<mark>``.

    Args:
        html: text with tags and character references.
        ranges: half-open ranges of the text's characters, in order.
    """
    inside = {n for start, end in ranges for n in range(start, end)}
    if not inside:
        return html
    out, at, open_ = [], 0, False
    for piece in _PIECES.findall(html):
        is_tag = piece[0] == "<"
        wanted = not is_tag and at in inside
        if open_ and not wanted:
            out.append("</mark>")
        if wanted and not open_:
            out.append("<mark>")
        open_ = wanted
        out.append(piece)
        at += not is_tag
    return "".join([*out, "</mark>" if open_ else ""])


# Prose


class _Piece(NamedTuple):
    """A stretch of prose between two changes or line breaks."""

    tag: str
    text: str
    end: str  # of the change it closes: the control that takes it back


def _prose_lines(text: str, old: str, quotes: Sequence[str], revert: Revert | None) -> list[Line]:
    """Return the lines of prose, with what was removed and added inside them."""
    lines: list[Line] = []
    pieces: list[str] = []
    new = 0
    changed = False
    for piece in _prose_pieces(words(old, text) or [Part(" ", plain(text))], revert):
        broken = piece.text.split("\n")
        for n, stretch in enumerate(broken):
            pieces.append(_prose_piece(piece.tag, stretch, quotes))
            changed = changed or piece.tag != " "
            if n + 1 < len(broken):
                lines.append(Line("".join(pieces), new, None, changed))
                pieces, changed = [], piece.tag != " "
                new += piece.tag != "-"
        pieces.append(piece.end)
    lines.append(Line("".join(pieces), new, None, changed))
    return lines


def _prose_pieces(parts: Sequence[Part], revert: Revert | None) -> Iterator[_Piece]:
    number = -1
    for n, part in enumerate(parts):
        if part.tag == " ":
            yield _Piece(" ", part.line, "")
            continue
        number += n == 0 or parts[n - 1].tag == " "
        last = n + 1 == len(parts) or parts[n + 1].tag == " "
        yield _Piece(part.tag, part.line, revert(number) if revert and last else "")


def _prose_piece(tag: str, text: str, quotes: Sequence[str]) -> str:
    if not text:
        return ""
    html = html_prose(text)
    for quote in quotes:
        start = text.find(quote)
        if quote and tag != "-" and start >= 0:
            html = mark(html, [(start, start + len(quote))])
            break
    return html if tag == " " else f"<{_TAGS[tag]}>{html}</{_TAGS[tag]}>"


# Side by side


def sides_html(old: str, new: str, form: Form, language: str = "python") -> str:
    """Return two texts side by side, each with what is its own marked."""
    if form == "prose":
        parts = words(old, new)
        columns = (
            "".join(_prose_piece(part.tag, part.line, ()) for part in parts if part.tag in keep)
            for keep in (" -", " +")
        )
        panes = "".join(f'<div class="rf-prose">{column}</div>' for column in columns)
        return f'<div class="rf-columns">{panes}</div>'
    cells = "".join(
        f"<tr>{_cell(left)}{_cell(right)}</tr>" for left, right in _pairs(old, new, language)
    )
    return f'<div class="rf-sides" tabindex="0"><table>{cells}</table></div>'


def _pairs(old: str, new: str, language: str) -> Iterator[tuple[Line | None, Line | None]]:
    """Yield the rows of two columns, removed lines beside the added ones."""
    for changed, group in groupby(_code_lines(new, old, language, None), lambda one: one.changed):
        block = list(group)
        if not changed:
            yield from ((line, line) for line in block)
            continue
        removed = [line for line in block if line.new is None]
        yield from zip_longest(removed, (line for line in block if line.new is not None))


def _cell(line: Line | None) -> str:
    """Return one side of a row."""
    return "<td></td>" if line is None else f"<td><pre><code>{line.html}</code></pre></td>"
