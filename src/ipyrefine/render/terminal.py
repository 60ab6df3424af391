"""What a terminal needs: widths in cells, wrapping, colours."""

import re
import unicodedata
from collections.abc import Iterator

from ipyrefine.render.escape import plain

NARROWEST = 20
COLOURS = {"good": "32", "warn": "33", "bad": "31", "quiet": "2", "head": "1;36", "bold": "1"}


def paint(text: str, kind: str, colour: bool) -> str:
    """Wrap text in the ANSI codes of a kind; the text itself when colour is off or unknown."""
    code = COLOURS.get(kind)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text


def cells(text: str) -> int:
    """How many terminal columns a text takes; wide characters take two, marks none."""
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    """Columns of one character."""
    if character < "\u0300":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap(text: str, columns: int, indent: str = "", hang: str | None = None) -> list[str]:
    """Break text into lines no wider than the terminal; its own line breaks stay.

    Args:
        text: any text; controls are made visible.
        columns: width of the terminal; less than `NARROWEST` is taken as that.
        indent: what the first line starts with.
        hang: what the others start with; the indent by default.
    """
    width = max(columns, NARROWEST)
    rest = indent if hang is None else hang
    lines: list[str] = []
    for line in plain(text).expandtabs(4).split("\n"):
        lead = rest if lines else indent
        lines += _wrapped(line, width, lead, rest)
    return lines


def _wrapped(line: str, width: int, lead: str, rest: str) -> Iterator[str]:
    """The pieces of one line."""
    current, used = lead, cells(lead)
    empty = True
    for token in re.findall(r"\s+|\S+", line):
        for piece in _pieces(token, max(2, width - cells(rest))):
            size = cells(piece)
            if used + size > width and not empty:
                yield current.rstrip()
                current, used, empty = rest, cells(rest), True
                if piece.isspace():
                    continue
            current, used, empty = current + piece, used + size, False
    yield current.rstrip()


def _pieces(token: str, width: int) -> Iterator[str]:
    """A word cut into pieces that fit a line."""
    piece, used = "", 0
    for character in token:
        size = _cell(character)
        if used + size > width:
            yield piece
            piece, used = "", 0
        piece, used = piece + character, used + size
    yield piece


def clip(line: str, columns: int) -> str:
    """A line cut to the terminal's width, with an ellipsis where it was cut."""
    return _cut(line, max(columns, NARROWEST))


def _cut(line: str, width: int) -> str:
    """A line cut to a width in cells."""
    shown = plain(line).expandtabs(4)
    if cells(shown) <= width:
        return shown
    return f"{next(_pieces(shown, width - 1))}…"


def rule(title: str, columns: int) -> str:
    """A heading drawn across the terminal."""
    width = max(columns, NARROWEST)
    shown = _cut(title, width - 4)
    return f"── {shown} ".ljust(width + len(shown) - cells(shown), "─") if shown else "─" * width
