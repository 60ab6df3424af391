"""What of a text changes: edits, lines that a user selects, and sections that are lost."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from ipyrefine.errors import UsageError

_NEAREST = 8  # lines of a text that are quoted where an edit misses
_LINE = 300  # characters of a quoted line
_RECOGNISED = 0.5  # of the lines around a selection, in a text that repeats them
_HEADING = re.compile(
    r"^(?:#{1,6}[^\S\n]+(?P<marked>.+?)[#\s]*|\*\*(?P<bold>[^*\n]+)\*\*:?\s*)$", re.MULTILINE
)
_SAME, _SPLIT = 0.5, 0.8  # of a section's words: in one other section, in all of a text
_NAME_WORDS, _SHORTENABLE = 5, 20  # words of a paragraph's name, and of a section to shorten
_TAGS = re.compile(
    r"<find>[^\S\n]*\n?(?P<find>.*?)\n?[^\S\n]*</find>\s*"
    r"<replace>[^\S\n]*\n?(?P<replace>.*?)\n?[^\S\n]*</replace>",
    re.DOTALL | re.IGNORECASE,
)
_MARKS = re.compile(
    r"^<{5,}[^\n]*\n(?P<find>.*?)^={5,}[^\S\n]*\n(?P<replace>.*?)^>{5,}[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_QUOTES = str.maketrans("\u201c\u201d\u2018\u2019\u00a0", "\"\"'' ")  # as a keyboard has them


class Edit(NamedTuple):
    """A replacement in a text.

    Attributes:
        find: a piece of the text, which stands in it once.
        replace: what takes its place.
    """

    find: str
    replace: str


class Miss(NamedTuple):
    """An edit that could not be made.

    Attributes:
        number: which one, from 1.
        times: how often its piece stands in the text.
        nearest: the lines of the text that are most like it, where it stands nowhere.
    """

    number: int
    times: int
    nearest: str


def read_edits(reply: str) -> tuple[list[Edit], str]:
    """Return the edits of a reply, and what stands before the first of them.

    They are ``<find>`` with ``<replace>``, or blocks between ``<<<<<<<``, ``=======`` and
    ``>>>>>>>``.
    """
    found = list(_TAGS.finditer(reply)) or list(_MARKS.finditer(reply))
    edits = [Edit(m["find"].strip("\n"), m["replace"].strip("\n")) for m in found]
    return edits, reply[: found[0].start()].strip() if found else ""


def apply(text: str, edits: list[Edit]) -> tuple[str, list[Miss]]:
    """Return a text with edits made in their order, and those that could not be made.

    A piece is looked for letter for letter; else by its lines, whatever their indentation, which
    the replacement then gets too; else by its words, whatever the white space and quotation marks.
    It has to stand in the text exactly once.
    """
    misses = []
    for number, edit in enumerate(edits, start=1):
        places = _places(text, edit)
        if len(places) != 1:
            nearest = "" if places else _nearest(text, edit.find)
            misses.append(Miss(number, len(places), nearest))
            continue
        ((start, end, replacement),) = places
        if not replacement and text[:start].endswith(("\n", "")) and text[end : end + 1] == "\n":
            end += start == 0 or text[start - 1] == "\n"  # whole lines go with their end
        text = text[:start] + replacement + text[end:]
    return text, misses


def _places(text: str, edit: Edit) -> list[tuple[int, int, str]]:
    """Return where an edit's piece stands, each with its start, its end and what replaces it."""
    if not edit.find.strip():
        return []
    exact = [m.span() for m in re.finditer(re.escape(edit.find), text)]
    if exact:
        return [(*span, edit.replace) for span in exact]
    if by_lines := list(_by_lines(text, edit)):
        return by_lines
    words = edit.find.translate(_QUOTES).split()
    pattern = r"\s+".join(map(re.escape, words))
    return [(*m.span(), edit.replace) for m in re.finditer(pattern, text.translate(_QUOTES))]


def _by_lines(text: str, edit: Edit) -> Iterator[tuple[int, int, str]]:
    lines = text.split("\n")
    wanted = [line.strip() for line in edit.find.split("\n")]
    offset = 0
    for first, line in enumerate(lines):
        if [one.strip() for one in lines[first : first + len(wanted)]] == wanted:
            end = offset + len("\n".join(lines[first : first + len(wanted)]))
            yield offset, end, textwrap.indent(textwrap.dedent(edit.replace), _margin(line))
        offset += len(line) + 1


def _nearest(text: str, find: str) -> str:
    """Return the lines of a text that are most like a piece, to copy from."""
    lines, count = text.split("\n"), min(len(find.split("\n")), _NEAREST)
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(find)

    def likeness(first: int) -> float:
        matcher.set_seq1("\n".join(lines[first : first + count])[: 4 * len(find)])
        return matcher.ratio() if matcher.quick_ratio() > 0.3 else 0.0

    best = max(range(max(1, len(lines) - count + 1)), key=likeness)
    return "\n".join(line[:_LINE] for line in lines[best : best + count])


def changed_lines(old: str, new: str) -> int:
    """Return how many lines differ between two texts; a line for another one counts once."""
    matcher = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    blocks = (code[1:] for code in matcher.get_opcodes() if code[0] != "equal")
    return sum(max(i_end - i, j_end - j) for i, i_end, j, j_end in blocks)


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
        """Return a text with the lines around the selection put back as they are in the draft.

        Args:
            text: the whole draft with changes, or the selected lines alone.
        """
        written = text.split("\n")
        context = [line.strip() for line in [*self._before, *self._after] if line.strip()]
        lines = {line.strip() for line in written}
        if sum(line in lines for line in context) >= _RECOGNISED * len(context):
            middle = self._changed_lines(written)
        else:
            margin = min((_margin(line) for line in self._selected if line.strip()), default="")
            middle = textwrap.indent(textwrap.dedent(text), margin).split("\n")
        return "\n".join([*self._before, *middle, *self._after])

    def _changed_lines(self, written: list[str]) -> list[str]:
        start, end = len(self._before), self.lines[1]
        middle = list[str]()
        matcher = SequenceMatcher(None, self._draft, written, autojunk=False)
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            if tag == "equal":
                middle += self._draft[max(i, start) : min(i_end, end)]
            elif tag == "insert" and start <= i <= end:
                middle += written[j:j_end]
            elif tag == "replace" and i < end and start < i_end:
                # Of a change across the border, as many lines as lie beyond it.
                beyond = max(0, i_end - end)
                middle += written[j + max(0, start - i) : j_end - beyond]
        return middle


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


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


class _Section(NamedTuple):
    name: str
    titled: bool
    words: tuple[str, ...]

    def share(self, words: Iterable[str]) -> float:
        own = _telling(self.words)
        return len(own & _telling(words)) / len(own)


@lru_cache(maxsize=32)
def losses(old: str, new: str) -> tuple[Loss, ...]:
    """Return the sections of a text that another one lost or shortened to under half.

    Sections are what stands under headings, and paragraphs where there are none. One that was
    moved, merged, divided or renamed is not lost: at least half of its words stand in one section,
    or four in five in the whole text. Of paragraphs, as many are lost as are fewer than before.
    """
    before, after = _sections(old), _sections(new)
    everything = [word for section in after for word in section.words]
    new_ones, gone, found = set(after), list[_Section](), dict[_Section, int]()
    for section in before:
        place = max(
            after,
            key=lambda one: (one.name == section.name, section.share(one.words)),
            default=None,
        )
        kept = section.share(everything) >= _SPLIT
        if place and (place.name == section.name or section.share(place.words) >= _SAME):
            new_ones.discard(place)
            if not kept and 2 * len(place.words) < len(section.words) >= _SHORTENABLE:
                found[section] = len(place.words)
        elif not kept:
            gone.append(section)
    paragraphs = sorted((s for s in gone if not s.titled), key=lambda s: s.share(everything))
    fewer = paragraphs[: max(0, len(paragraphs) - len(new_ones))]
    found |= {section: 0 for section in gone if section.titled or section in fewer}
    return tuple(Loss(s.name, len(s.words), found[s]) for s in before if s in found)


def _sections(text: str) -> list[_Section]:
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings] + [len(text)]
    above = text[: ends[0]]
    parts = [("", part) for part in ([above] if headings else re.split(r"\n\s*\n", above))]
    for heading, end in zip(headings, ends[1:], strict=True):
        name = " ".join((heading["marked"] or heading["bold"]).split()).strip("*: ")
        parts.append((name, text[heading.end() : end]))
    sections = [(name, part, tuple(re.findall(r"\w+", part.lower()))) for name, part in parts]
    return [
        _Section(name or f"{' '.join(part.split()[:_NAME_WORDS])} …", bool(name), words)
        for name, part, words in sections
        if words
    ]


def _telling(words: Iterable[str]) -> frozenset[str]:
    """Return the words that tell one section from another: numbers, and those of four letters."""
    words = list(words)
    return frozenset([w for w in words if len(w) > 3 or w.isdigit()] or words)
