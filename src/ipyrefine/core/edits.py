"""The changes of a text: edits, lines that a user selects, and sections that are lost."""

import re
import textwrap
from functools import lru_cache
from typing import NamedTuple

from ipyrefine.core.alignment import compare
from ipyrefine.core.model import one_line
from ipyrefine.errors import UsageError

_RECOGNISED = 0.5  # of the lines around a selection, in a text that repeats them
_HEADING = re.compile(
    r"^(?:#{1,6}[^\S\n]+(?P<marked>\S.*)|\*\*(?P<bold>[^*\n]+)\*\*:?[^\S\n]*)$", re.MULTILINE
)
_NAME_WORDS, _SHORTENABLE = 5, 20  # words of a paragraph's name, and of a section to shorten
_EDIT = [  # how one opens, what stands between its two parts, and how it ends
    re.compile(pattern)
    for pattern in (r"<find>[^\S\n]*\n?", r"</find>\s*<replace>[^\S\n]*\n?", r"</replace>")
]


Edit = tuple[str, str]  # a piece of a text that stands in it once, and what takes its place


def read_edits(reply: str) -> tuple[list[Edit], str]:
    """Return the edits of a reply, ``<find>`` with ``<replace>``, and what stands around them."""
    opens, divides, closes = _EDIT
    edits, around, place = [], [], 0
    while (
        (start := opens.search(reply, place))
        and (middle := divides.search(reply, start.end()))
        and (end := closes.search(reply, middle.end()))
    ):
        around.append(reply[place : start.start()].strip())
        parts = reply[start.end() : middle.start()], reply[middle.end() : end.start()]
        old, new = (part.rstrip(" \t").strip("\n") for part in parts)
        edits.append((old, new))
        place = end.end()
    return edits, "\n".join(filter(None, [*around, reply[place:].strip()]))


def apply(text: str, edits: list[Edit]) -> tuple[str, list[str]]:
    """Return a text with edits made one after the other, and which could not be made, and why.

    A piece has to stand in the text once, letter for letter but for blanks at the end of a line.
    """
    changed, misses = text, []
    for number, (find, replace) in enumerate(edits, start=1):
        lines = (re.escape(line.rstrip()) for line in find.split("\n"))
        piece = re.compile(r"[ \t]*\n".join(lines))
        found = piece.search(changed) if find.strip() else None
        if found is None:
            misses.append(f"what edit {number} finds does not stand in the text")
        elif piece.search(changed, found.start() + 1):
            times = max(2, len(piece.findall(changed)))
            misses.append(f"what edit {number} finds stands in the text {times} times: add to it")
        else:
            start, end = found.span()
            whole = start == 0 or changed[start - 1] == "\n"
            end += not replace and whole and changed[end : end + 1] == "\n"  # lines with their end
            changed = changed[:start] + replace + changed[end:]
    return changed, misses


class Selection:
    """Lines of a draft that may change.

    Args:
        draft: the draft.
        lines: the first and the last of them, from 1.

    Attributes:
        lines: as above.

    Raises:
        UsageError: the draft has no such lines.
    """

    def __init__(self, draft: str, lines: tuple[int, int]) -> None:
        self.lines, self._draft = lines, draft.split("\n")
        first, last = lines
        if not 1 <= first <= last <= len(self._draft):
            count = len(self._draft)
            raise UsageError(f"There are no lines {first}-{last}. The draft has {count}.")
        self._before, self._after = self._draft[: first - 1], self._draft[last:]
        self._selected = self._draft[first - 1 : last]

    @property
    def request(self) -> str:
        """One sentence for the writer, with the first words of the outer lines."""
        words = [" ".join(line.split()[:4]) for line in self._selected if line.strip()] or [""]
        first, last = self.lines
        if first == last:
            which = f"line {last} ({words[0]!r})"
        else:
            which = f"lines {first} to {last} (from {words[0]!r} to {words[-1]!r})"
        return f"Change only {which} and repeat all other lines as they are."

    def restore(self, text: str) -> str:
        """Put the lines around the selection back, in the whole draft or in its lines alone."""
        written = text.split("\n")
        context = [line.strip() for line in [*self._before, *self._after] if line.strip()]
        lines = {line.strip() for line in written}
        if sum(line in lines for line in context) >= _RECOGNISED * len(context):
            middle = self._changed_lines(written)
        else:
            lines_of = [one for one in self._selected if one.strip()] or [""]
            margin = min((one[: len(one) - len(one.lstrip())] for one in lines_of), key=len)
            middle = textwrap.indent(textwrap.dedent(text), margin).split("\n")
        return "\n".join([*self._before, *middle, *self._after])

    def _changed_lines(self, written: list[str]) -> list[str]:
        start, end = len(self._before), self.lines[1]
        middle = []
        for tag, i, i_end, j, j_end in compare(self._draft, written):
            if tag == "equal":
                middle += self._draft[max(i, start) : min(i_end, end)]
            elif tag == "insert" and start <= i <= end:
                middle += written[j:j_end]
            elif tag == "replace" and i < end and start < i_end:
                # Of a change across the border, as many lines as lie beyond it.
                beyond = max(0, i_end - end)
                middle += written[j + max(0, start - i) : j_end - beyond]
        return middle


# Sections that a revision of prose lost


class Loss(NamedTuple):
    """A section that a text lost, or has in under half of its words.

    Attributes:
        name: its heading, or the first words of a paragraph.
        before: how many words it had.
        after: how many it has now; 0 where it is lost.
    """

    name: str
    before: int
    after: int


@lru_cache(maxsize=32)
def losses(old: str, new: str) -> tuple[Loss, ...]:
    """Return the sections of a text that another one lost or shortened to under half.

    Sections are what stands under headings, and paragraphs where there are none. One that was
    moved, merged, divided or renamed is not lost: at least half of its words are still there. A
    paragraph may be rewritten: it counts as lost only where there are fewer than before.
    """
    before, after, there = _sections(old), _sections(new), {*_words(new)}
    fewer, found = bool(_HEADING.search(old)) or len(after) < len(before), []
    for name, words in before.items():
        # What tells one section from another: numbers, and words of four letters.
        telling = {w for w in words if len(w) > 3 or w.isdigit()} or {*words}
        left = len(after.get(name, ()))
        shorter = 2 * left < len(words) >= _SHORTENABLE if left else fewer
        if shorter and 2 * len(telling & there) < len(telling):
            found.append(Loss(name, len(words), left))
    return tuple(found)


def _sections(text: str) -> dict[str, list[str]]:
    """Return the words of each section of a text, keyed by its name."""
    headings, found = list(_HEADING.finditer(text)), {}
    ends = [heading.start() for heading in headings] + [len(text)]
    above = text[: ends[0]]
    parts = [("", part) for part in ([above] if headings else re.split(r"\n\s*\n", above))]
    for heading, end in zip(headings, ends[1:], strict=True):
        parts.append((heading["marked"] or heading["bold"], text[heading.end() : end]))
    for title, part in parts:
        if words := _words(part):
            first = " ".join(part.split(None, _NAME_WORDS)[:_NAME_WORDS])
            found[one_line(title).strip("*#: ") or f"{first} …"] = words
    return found


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
