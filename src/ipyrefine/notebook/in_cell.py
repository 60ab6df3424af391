"""The difference that a page shows in the cell a draft is from (`incell.js`)."""

from itertools import groupby, pairwise
from typing import Any

from ipyrefine.render.diff import Marks, rows, shown_lines


def hunks(old: str, new: str) -> list[dict[str, Any]]:
    """Return the changes from one text to another, by line.

    Each says how many lines of the old text are above it (``at``), and which are ``gone`` and
    ``added`` there. A line is a list of pieces, of which every second one differs.
    """
    before, after = shown_lines(old, new)
    found, at = [], 0
    for kept, group in groupby(rows(old, new), key=lambda row: row.tag == " "):
        lines = [*group]
        gone = [_pieces(before[row.old], row.marks) for row in lines if row.old is not None]
        if not kept:
            added = [_pieces(after[row.new], row.marks) for row in lines if row.new is not None]
            found.append({"at": at, "gone": gone, "added": added})
        at += len(gone)
    return found


def _pieces(line: str, marks: Marks) -> list[str]:
    ends = [0, *(end for mark in marks for end in mark), len(line)]
    return [line[start:end] for start, end in pairwise(ends)]
