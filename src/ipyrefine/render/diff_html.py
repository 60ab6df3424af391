"""What changed between two texts as HTML: in one column, or side by side."""

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Literal, NamedTuple

from ipyrefine.render import labels as words
from ipyrefine.render.diff import Part, unified
from ipyrefine.render.diff import words as by_word
from ipyrefine.render.escape import html_prose, html_text, plain
from ipyrefine.render.highlight import highlight
from ipyrefine.render.parts import long

_MARKS = {"+": "+", "-": "\N{MINUS SIGN}", " ": " ", "@": "⋯"}

Form = Literal["code", "prose"]


class _Line(NamedTuple):
    """A line of a diff, escaped and coloured."""

    tag: str
    html: str


def html_diff(old: str, new: str, form: Form, *, sides: bool = False) -> str:
    """The difference as HTML: ``<ins>`` and ``<del>`` with signs, by line or by word.

    Args:
        old: the text before.
        new: the text after.
        form: ``code`` compares by line, with syntax colours; ``prose`` by word.
        sides: whether the old text stands to the left of the new one.
    """
    if plain(old) == plain(new):
        return '<p class="rf-quiet">No change to the text.</p>'
    if form == "prose":
        return _prose(by_word(old, new), sides, long(new))
    parts = unified(old, new)
    if not parts:
        return '<p class="rf-quiet">Only line endings changed.</p>'
    lines = list(_coloured(parts, old, new))
    if sides:
        return _table(_pairs(lines))
    body = "\n".join(_in_line(line) for line in lines)
    pane = long(body)
    return f'<pre class="rf-text rf-code rf-diff{pane}" tabindex="0"><code>{body}</code></pre>'


def _prose(parts: Sequence[Part], sides: bool, pane: str) -> str:
    """A word diff: woven together, or each text with what is its own marked."""
    if not sides:
        body = "".join(_word(part) for part in parts)
        return f'<div class="rf-text rf-prose rf-diff{pane}">{body}</div>'
    columns = ("".join(_word(part) for part in parts if part.tag in keep) for keep in (" -", " +"))
    texts = "".join(f'<div class="rf-text rf-prose{pane}">{column}</div>' for column in columns)
    return f'<div class="rf-columns">{texts}</div>'


def _word(part: Part) -> str:
    """One piece of a word diff; the sign makes it readable without colour or line-through."""
    if part.tag == " ":
        return html_prose(part.line)
    name = "ins" if part.tag == "+" else "del"
    return f"<{name}><small>{_MARKS[part.tag]}</small>{html_prose(part.line)}</{name}>"


def _coloured(parts: Sequence[Part], old: str, new: str) -> Iterator[_Line]:
    """The lines with the colours they have in their own text."""
    # Whole texts are coloured: a line by itself does not show that it stands inside a string.
    a = highlight(old, words.language(old, "code")).split("\n")
    b = highlight(new, words.language(new, "code")).split("\n")
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
    """One coloured line; plain where the colouring broke its lines otherwise."""
    return lines[index] if index < len(lines) else html_text(text)


def _in_line(line: _Line) -> str:
    """One line of the single column."""
    text = f"{_MARKS[line.tag]} {line.html}"
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
    """The rows of two columns: what was removed stands beside what was added for it."""
    for changed, group in groupby(lines, lambda line: line.tag in "+-"):
        if not changed:
            yield from ((line, line) for line in group)
            continue
        block = list(group)
        removed = [line for line in block if line.tag == "-"]
        yield from zip_longest(removed, (line for line in block if line.tag == "+"))


def _table(pairs: Iterator[tuple[_Line | None, _Line | None]]) -> str:
    """Two columns, each line beside its counterpart."""
    rows = "".join(f"<tr>{_cell(left)}{_cell(right)}</tr>" for left, right in pairs)
    return f'<div class="rf-text rf-sides" tabindex="0"><table>{rows}</table></div>'


def _cell(line: _Line | None) -> str:
    """One side of a row."""
    return "<td></td>" if line is None else f"<td><pre><code>{_in_line(line)}</code></pre></td>"
