"""The changes of a text: edits, lines that a user selects, and sections that are lost."""

import re
import textwrap
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from ipyrefine.core.alignment import compare, find_all
from ipyrefine.errors import UsageError

_NEAREST, _QUOTED = 8, 2_500  # lines of a text that are quoted where an edit misses; characters
_BESIDE = 150  # characters before and after what is quoted of a long line
_QUOTED_MISSES = 4  # edits of a reply for which lines are quoted
_PIECE = re.compile(r"[^\n]{1,300}(?!\S)|[^\n]{1,300}")  # a line, or what is quoted of a long one
_GRAM, _GRAMS, _LOOKED_FOR = 4, 20, 200  # letters in a row; how many tell, how many are tried
_PLACES, _CLOSELY = 32, 12  # of something in a text, at most; those that are compared as a whole
_RECOGNISED = 0.5  # of the lines around a selection, in a text that repeats them
_HEADING = re.compile(
    r"^(?:#{1,6}[^\S\n]+(?P<marked>\S.*)|\*\*(?P<bold>[^*\n]+)\*\*:?[^\S\n]*)$", re.MULTILINE
)
_MOST = 2_000  # sections of a text that are compared
_SAME, _SPLIT = 0.5, 0.8  # of a section's words: in one other section, in all of a text
_NAME_WORDS, _SHORTENABLE = 5, 20  # words of a paragraph's name, and of a section to shorten
# How an edit opens, what stands between its two parts, and how it ends.
_FORMS = [
    [re.compile(pattern, re.MULTILINE | re.IGNORECASE) for pattern in patterns]
    for patterns in (
        (r"<find>[^\S\n]*\n?", r"</find>\s*<replace>[^\S\n]*\n?", r"</replace>"),
        (r"^<{5}[^\n]*\n", r"^={5,}[^\S\n]*\n", r"^>{5}[^\n]*$"),
    )
]
# As a keyboard has them.
_QUOTES = {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " "}


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
    """Return the edits of a reply, and what stands around them.

    They are ``<find>`` with ``<replace>``, or blocks between ``<<<<<<<``, ``=======`` and
    ``>>>>>>>``.
    """
    for opens, divides, closes in _FORMS:
        edits, around, place = list[Edit](), list[str](), 0
        while (
            (start := opens.search(reply, place))
            and (middle := divides.search(reply, start.end()))
            and (end := closes.search(reply, middle.end()))
        ):
            around.append(reply[place : start.start()].strip())
            parts = reply[start.end() : middle.start()], reply[middle.end() : end.start()]
            edits.append(Edit(*(part.rstrip(" \t").strip("\n") for part in parts)))
            place = end.end()
        if edits:
            return edits, "\n".join(filter(None, [*around, reply[place:].strip()]))
    return [], ""


def apply(text: str, edits: list[Edit]) -> tuple[str, list[Miss]]:
    """Return a text with edits made, and those that could not be made.

    A piece is looked for letter for letter; else by its lines, however far they are indented, and
    the replacement is then moved as far; else by its words, whatever the white space and quotation
    marks.
    It has to stand in the text exactly once; else in what the other edits make of it.
    """
    made, later, misses = list[_Place](), dict[int, int](), list[Miss]()
    for number, edit in enumerate(edits, start=1):
        times, place = _find(text, edit)
        n = bisect_right(made, place) if place else 0
        around = [*made[max(0, n - 1) : n], place, *made[n : n + 1]]
        if place and all(a and b and a.end <= b.start for a, b in pairwise(around)):
            made.insert(n, place)
        else:
            later[number] = times
    changed = _replace(text, made)
    for number, times in later.items():
        place = None
        if made:
            times, place = _find(changed, edits[number - 1])
        if place:
            changed = _replace(changed, [place])
        else:
            misses.append(Miss(number, times, ""))
    missing = (miss.number for miss in misses if not miss.times)
    lost = [number for number in missing if edits[number - 1].find.strip()][:_QUOTED_MISSES]
    lines = _nearest(text, [edits[number - 1].find for number in lost])
    near = dict(zip(lost, lines, strict=True))
    return changed, [miss._replace(nearest=near.get(miss.number, "")) for miss in misses]


class _Place(NamedTuple):
    start: int
    end: int
    replacement: str


def _replace(text: str, places: Iterable[_Place]) -> str:
    parts, at = list[str](), 0
    for start, end, replacement in places:
        parts += [text[at:start], replacement]
        at, whole = end, start == 0 or text[start - 1] == "\n"
        if not replacement and whole and text[end : end + 1] == "\n":
            at += 1  # whole lines go with their end
    return "".join([*parts, text[at:]])


def _find(text: str, edit: Edit) -> tuple[int, _Place | None]:
    """Return how often an edit's piece stands in a text, and where, if that is once."""
    find, replace = edit
    if not find.strip():
        return 0, None
    if times := _count(text, find):
        start = text.find(find)
        return times, _Place(start, start + len(find), replace) if times == 1 else None
    flat, wanted = _flatten(text), _flatten(find)
    if not (times := _count(flat, wanted)):  # nor do its lines stand there then
        return 0, None
    bare, wanted_lines = _bare_lines(text), _bare_lines(find)
    if by_lines := _count(bare, wanted_lines):
        first = bare.count("\n", 0, bare.find(wanted_lines)) // 2
        lines, last = text.split("\n"), first + find.count("\n") + 1
        start = sum(len(line) + 1 for line in lines[:first])
        end = start + len("\n".join(lines[first:last]))
        moved = _moved(replace, find, text[start:end])
        return by_lines, _Place(start, end, moved) if by_lines == 1 else None
    if times > 1:
        return times, None
    first, last = flat.find(wanted), flat.find(wanted) + len(wanted) - 1
    number, words = flat.count(" ", 0, first), _words(text)
    start = words[number] + first - flat.rfind(" ", 0, first) - 1
    last = words[number + wanted.count(" ")] + last - flat.rfind(" ", 0, last) - 1
    return 1, _Place(start, last + 1, replace)


def _count(text: str, piece: str) -> int:
    found = len([*islice(find_all(text, piece), 2)])  # which may overlap
    return max(2, text.count(piece)) if found > 1 else found


@lru_cache(maxsize=4)
def _flatten(text: str) -> str:
    for mark, plain in _QUOTES.items():
        text = text.replace(mark, plain)
    return " ".join(text.split())


@lru_cache(maxsize=2)
def _words(text: str) -> list[int]:
    return [word.start() for word in re.finditer(r"\S+", text)]


@lru_cache(maxsize=4)
def _bare_lines(text: str) -> str:
    return "".join(f"\n{line.strip()}\n" for line in text.split("\n"))


def _nearest(text: str, finds: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a text that are most like some pieces, to copy from.

    Where the rarest letters in a row of a piece stand is looked at closely. A long line is quoted
    in part.
    """
    spans = [piece.span() for piece in _PIECE.finditer(text)] if finds else []
    starts = [start for start, _ in spans]
    for find in finds:
        lines = [line.strip() for line in _PIECE.findall(find) if line.strip()][:_NEAREST]
        votes = [0] * (len(spans) + len(lines))
        for places in islice(_rare_places(text, lines), _GRAMS):
            for place in places:
                votes[bisect_right(starts, place) - 1] += _PLACES // len(places)
        sums = [0, *accumulate(votes)]
        sums = [b - a for a, b in zip(sums, sums[len(lines) :], strict=False)][: len(spans)]
        pairs, best, start, end = _letter_pairs("".join(lines)), 0.0, 0, 0
        for first in nlargest(_CLOSELY, range(len(spans)), sums.__getitem__):
            window = starts[first], spans[first : first + len(lines)][-1][1]
            theirs = _letter_pairs(text[slice(*window)])
            likeness = 2 * (pairs & theirs).total() / (pairs.total() + theirs.total() + 1)
            if likeness > best:
                best, (start, end) = likeness, window
        # A long line is quoted from a bit before the piece to a bit after it.
        before = text[max(0, start - _BESIDE) : start].rpartition("\n")[2]
        after = text[end : end + _BESIDE].partition("\n")[0]
        yield (before + text[start:end] + after)[:_QUOTED] if best else ""


def _rare_places(text: str, lines: Sequence[str]) -> Iterator[list[int]]:
    """Yield where letters in a row of some lines stand in a text that has them seldom."""
    grams = Counter(line[n : n + _GRAM] for line in lines for n in range(len(line)))
    ordered = sorted(grams, key=grams.__getitem__)  # what many of the lines have tells least
    step = len(ordered) // _GRAMS + 1
    spread = (gram for first in range(step) for gram in ordered[first::step])
    for gram in islice(spread, _LOOKED_FOR):
        places = [*islice(find_all(text, gram), _PLACES)]
        if 0 < len(places) < _PLACES:
            yield places


def _letter_pairs(text: str) -> Counter[tuple[str, str]]:
    return Counter(pairwise("".join(text.split())))


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
            margin = _common_margin("\n".join(self._selected))
            middle = textwrap.indent(textwrap.dedent(text), margin).split("\n")
        return "\n".join([*self._before, *middle, *self._after])

    def _changed_lines(self, written: list[str]) -> list[str]:
        start, end = len(self._before), self.lines[1]
        middle = list[str]()
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


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _common_margin(text: str) -> str:
    return min((_margin(line) for line in text.split("\n") if line.strip()), key=len, default="")


def _moved(text: str, piece: str, found: str) -> str:
    """Move a text's lines as far in as those that were found stand, by how the piece has them."""
    if _common_margin(piece) != _common_margin(text) == _common_margin(found):
        return text
    margins, lines = dict[str, str](), text.split("\n")
    for one, other in zip(piece.split("\n"), found.split("\n"), strict=True):
        if one.strip():
            margins.setdefault(_margin(one), _margin(other))
    least = min(margins, key=len)
    for n, line in enumerate(lines):
        if line.strip():
            known = max(filter(_margin(line).startswith, margins), key=len, default=least)
            lack = max(0, len(known) - len(_margin(line)))
            kept = margins[known][: max(0, len(margins[known]) - lack)]
            lines[n] = kept + line[len(known) - lack :]
    return "\n".join(lines)


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
    telling: frozenset[str]  # of these words

    def share(self, words: frozenset[str]) -> float:
        return len(self.telling & words) / len(self.telling)


@lru_cache(maxsize=32)
def losses(old: str, new: str) -> tuple[Loss, ...]:
    """Return the sections of a text that another one lost or shortened to under half.

    Sections are what stands under headings, and paragraphs where there are none. One that was
    moved, merged, divided or renamed is not lost: at least half of its words stand in one section,
    or four in five in the whole text. Of paragraphs, as many are lost as are fewer than before.
    """
    before, after = _sections(old), _sections(new)
    same, new_ones = set(after), set(after).difference(before)
    changed = [section for section in before if section not in same]
    everything = frozenset[str]().union(*(section.telling for section in after if changed))
    wanted = set[str]().union(*(section.telling for section in changed))
    names = {section.name: place for place, section in reversed([*enumerate(after)])}
    places = defaultdict[str, list[int]](list)
    for place, section in enumerate(after):
        for word in section.telling & wanted:
            places[word].append(place)
    gone, found = dict[_Section, None](), dict[_Section, int]()
    for section in changed:
        kept = section.share(everything) >= _SPLIT
        best = _counterpart(section, after, places, names)
        if best and (best.name == section.name or section.share(best.telling) >= _SAME):
            new_ones.discard(best)
            if not kept and 2 * len(best.words) < len(section.words) >= _SHORTENABLE:
                found[section] = len(best.words)
        elif not kept:
            gone[section] = None
    paragraphs = sorted((s for s in gone if not s.titled), key=lambda s: s.share(everything))
    fewer = paragraphs[: max(0, len(paragraphs) - len(new_ones))]
    found |= dict.fromkeys([*fewer, *(s for s in gone if s.titled)], 0)
    return tuple(Loss(s.name, len(s.words), found[s]) for s in before if s in found)


def _counterpart(
    section: _Section,
    after: Sequence[_Section],
    places: Mapping[str, list[int]],
    names: Mapping[str, int],
) -> _Section | None:
    """Return the section that one has become: of its name, else with most of its words.

    `places` are the sections that each word stands in, `names` the first of each name.
    """
    # One that shares half of the words has one of the rarer half.
    rarest = sorted(section.telling, key=lambda word: (len(places.get(word, ())), word))
    rarer = rarest[: len(rarest) // 2 + 1]
    met = Counter(place for word in rarer for place in places.get(word, ())[:_PLACES])
    likely = {place for place, _ in met.most_common(_CLOSELY)}
    likely |= {names[section.name]} if section.name in names else set()
    return max(
        (after[place] for place in sorted(likely)),
        key=lambda one: (one.name == section.name, section.share(one.telling)),
        default=None,
    )


@lru_cache(maxsize=4)
def _sections(text: str) -> list[_Section]:
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings] + [len(text)]
    above = text[: ends[0]]
    parts = [("", part) for part in ([above] if headings else re.split(r"\n\s*\n", above))]
    for heading, end in zip(headings, ends[1:], strict=True):
        name = (heading["marked"] or heading["bold"]).rstrip("# \t")
        parts.append((" ".join(name.split()).strip("*: "), text[heading.end() : end]))
    sections = [_section(name, part) for name, part in parts[:_MOST]]
    return [section for section in sections if section.words]


@lru_cache(maxsize=4 * _MOST)  # most of them are those of the text before
def _section(name: str, text: str) -> _Section:
    words = tuple(re.findall(r"\w+", text.lower()))
    # What tells one section from another: numbers, and words of four letters.
    telling = {w for w in set(words) if len(w) > 3 or w.isdigit()} or words
    first = " ".join(text.split(None, _NAME_WORDS)[:_NAME_WORDS])
    return _Section(name or f"{first} …", bool(name), words, frozenset(telling))
