"""The check ``constraints``: the literal demands that a prose task states are kept.

What counts as a demand, and how it is read, is in `ipyrefine.checks.demands`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ipyrefine.checks.functions import MAX_FINDINGS, blocking_finding
from ipyrefine.checks.schema import strip_fence
from ipyrefine.checks.text import UNITS, bounds_text, plural
from ipyrefine.core.model import Evidence, Finding, Task

if TYPE_CHECKING:
    from ipyrefine.checks.registry import Context

MAX_CONSTRAINTS = 50  # a request with more of them is a list of something else
_MAX_TEXT = 1_000_000  # characters that are checked; a longer text is measured by its start
_EXCERPT = 40


@dataclass(frozen=True, slots=True)
class Constraint:
    """One literal demand on a text.

    Attributes:
        kind: what is measured, a name of `KINDS`.
        low: the least count, where something is counted.
        high: the greatest count, None for no limit.
        terms: the words, letters, phrases or markers it is about.
        place: number of the paragraph it is about, from 1; 0 for the whole text.
    """

    kind: str
    low: int = 0
    high: int | None = None
    terms: tuple[str, ...] = ()
    place: int = 0

    @property
    def phrase(self) -> str:
        """The demand for people: ``at most 120 words``, ``contains "Paris" at least twice``."""
        return KINDS[self.kind].phrase(self)

    def check(self, text: str) -> tuple[bool, str]:
        """Return whether a text keeps it, and what was found: ``134 words, 14 too many``."""
        return KINDS[self.kind].measure(self, text[:_MAX_TEXT].strip())

    def within(self, count: int) -> bool:
        """Return whether a count is within the bounds."""
        return self.low <= count and (self.high is None or count <= self.high)


class Kind(NamedTuple):
    """How one kind of demand is said and measured.

    Attributes:
        phrase: says the demand for people.
        measure: returns whether a text keeps it, and what was found.
    """

    phrase: Callable[[Constraint], str]
    measure: Callable[[Constraint, str], tuple[bool, str]]


class Constraints:
    """The text keeps the literal demands that the task states.

    Demands are read in English prose tasks only; what is vague ("around 200 words") is not read.
    A pass settles no verdict, as it leaves open whatever else the task asks for.
    """

    name = "constraints"

    @classmethod
    def from_argument(cls, argument: str, context: "Context", **settings: Any) -> Self:
        """Build the check of ``constraints``."""
        return cls()

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Measure the text against each demand of the task."""
        start = monotonic()
        constraints = task_constraints(task)
        if not constraints:
            return Evidence(
                name=self.name,
                passed=None,
                detail="The task states no literal constraint.",
                basis="constraints",
            )
        results = [(one, *one.check(text)) for one in constraints]
        broken = [(one, found) for one, kept, found in results if not kept]
        return Evidence(
            name=self.name,
            passed=not broken,
            score=1 - len(broken) / len(results),
            detail="\n".join(f"{one.phrase}: {found}" for one, _, found in results),
            seconds=monotonic() - start,
            findings=tuple(_finding(one, found, text) for one, found in broken[:MAX_FINDINGS]),
            basis="constraints",
        )


def task_constraints(task: Task) -> tuple[Constraint, ...]:
    """Return the literal demands of a task; none for code."""
    return () if task.form == "code" else compile_constraints(task.text)


def compile_constraints(text: str) -> tuple[Constraint, ...]:
    """Return the constraints that a request in English literally states, each once.

    >>> describe(compile_constraints("Write a toast in 3 sentences, at most 60 words."))
    'exactly 3 sentences, at most 60 words'
    >>> compile_constraints("Summarise a 500-word article, and keep it short.")
    ()
    """
    from ipyrefine.checks.demands import read_demands

    return _compile(read_demands, text)


@lru_cache(maxsize=64)
def _compile(read: Callable[[str], Iterator[Constraint]], text: str) -> tuple[Constraint, ...]:
    # A run checks every draft against the same request.
    return tuple(dict.fromkeys(read(text)))[:MAX_CONSTRAINTS]


def describe(constraints: tuple[Constraint, ...]) -> str:
    """Return the demands as one line: ``at most 120 words, exactly 3 bullets``."""
    return ", ".join(one.phrase for one in constraints)


def _finding(constraint: Constraint, found: str, text: str) -> Finding:
    quote = ""
    if constraint.kind == "contains" and constraint.high is not None:
        match = _term_pattern(constraint.terms[0], whole=True).search(text)
        quote = match[0] if match else ""
    return blocking_finding(
        constraint.kind, f"The task demands: {constraint.phrase}. The text has {found}.", quote
    )


# What is counted


def count_words(text: str) -> int:
    """Return the number of words: what stands between spaces and has a letter or a digit."""
    return sum(any(char.isalnum() for char in word) for word in text.split())


_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’)\]*_]{0,4}(?=\s|$)")  # noqa: RUF001
_NO_END = re.compile(
    r"(?:^|[\s(\"'“])(?:(?-i:[A-HJ-Z])|mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|fig|approx|dept|p\.s|p\.p\.s|"
    r"(?:\w\.){1,4}\w)$|(?:^|\n)\s*[*-]?\s*\d{1,3}$",
    re.IGNORECASE,
)
_NO_END_WITHIN = re.compile(r"\b(?:etc|inc|ltd|co|corp|sr|jr|no|p|pp)$", re.IGNORECASE)


def count_sentences(text: str) -> int:
    """Return the number of sentences: what ends with ``.``, ``!`` or ``?``, or with the text.

    Abbreviations, initials and the numbers of a list end none.
    """
    count, start = 0, 0
    for match in _SENTENCE_END.finditer(text):
        before = text[max(start, match.start() - 12) : match.start()]
        following = text[match.end() : match.end() + 2].lstrip()
        spoken = match[0][-1] in "\"'”’" and following[:1].islower()  # noqa: RUF001 - "Why?" he asked.
        shortened = _NO_END.search(before) or (
            _NO_END_WITHIN.search(before) and following[:1].islower()
        )
        if spoken or (match[0][0] == "." and following and shortened):
            continue
        if any(char.isalnum() for char in text[start : match.end()]):
            count, start = count + 1, match.end()
    return count + any(char.isalnum() for char in text[start:])


def _count_bullets(text: str) -> int:
    bullets = ("* ", "- ", "+ ", "• ", "– ")  # noqa: RUF001
    return sum(line.lstrip().startswith(bullets) for line in text.splitlines())


def _count_lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _count_capital_words(text: str) -> int:
    return sum(word.isupper() for word in re.findall(r"[^\W_][\w'’.-]*", text))  # noqa: RUF001


def _count_highlights(text: str) -> int:
    found = re.findall(r"\*\*[^*\n]+\*\*|\*(?=\S)[^*\n]+\*", text)
    return sum(bool(one.strip("* ")) for one in found)


_COUNTS: Mapping[str, tuple[str, Callable[[str], int]]] = {
    "words": ("word", count_words),
    "sentences": ("sentence", count_sentences),
    "paragraphs": ("paragraph", UNITS["paragraph"]),
    "lines": ("line", _count_lines),
    "bullets": ("bullet", _count_bullets),
    "characters": ("character", UNITS["character"]),
    "capitalised words": ("word in capitals", _count_capital_words),
    "highlights": ("*highlight*", _count_highlights),
    "placeholders": (
        "[placeholder]",
        lambda text: len(re.findall(r"\[[^\[\]\n]*\]", text)),
    ),
}
_PLURALS = {"word in capitals": "words in capitals", "*highlight*": "*highlights*"}
_PLURALS["[placeholder]"] = "[placeholders]"


def _noun(phrase: str, unit: str) -> str:
    """Return a phrase whose unit got a plural's ``s``, where that stands elsewhere in it."""
    return phrase.replace(f"{unit}s", _PLURALS.get(unit, f"{unit}s"))


def _phrase_count(constraint: Constraint) -> str:
    unit = _COUNTS[constraint.kind][0]
    return _noun(bounds_text(constraint.low, constraint.high, unit), unit)


def _measure_count(constraint: Constraint, text: str) -> tuple[bool, str]:
    unit, measure = _COUNTS[constraint.kind]
    count = measure(text)
    return constraint.within(count), _noun(plural(count, unit), unit) + _off(constraint, count)


def _off(constraint: Constraint, count: int) -> str:
    if count < constraint.low:
        return f", {constraint.low - count:,} too few"
    if constraint.high is not None and count > constraint.high:
        return f", {count - constraint.high:,} too many"
    return ""


# What must appear, or must not


def _times(low: int, high: int | None) -> str:
    return f" {bounds_text(low, high, 'time')}"


def _phrase_contains(constraint: Constraint) -> str:
    term = f'"{constraint.terms[0]}"'
    if constraint.high == 0:
        return f"without {term}"
    if (constraint.low, constraint.high) == (1, None):
        return f"contains {term}"
    return f"contains {term}{_times(constraint.low, constraint.high)}"


def _term_pattern(term: str, *, whole: bool) -> re.Pattern[str]:
    escaped = r"\s+".join(re.escape(word) for word in term.split())
    if not whole:
        return re.compile(escaped, re.IGNORECASE)
    before, after = (r"\b" if char.isalnum() else "" for char in (term[:1], term[-1:]))
    return re.compile(f"{before}{escaped}{after}", re.IGNORECASE)


def _measure_contains(constraint: Constraint, text: str) -> tuple[bool, str]:
    # In doubt for the text: "rates" has the required "rate", and not the forbidden one.
    term = constraint.terms[0]
    text = text.replace("’", "'")  # noqa: RUF001
    most = len(_term_pattern(term, whole=False).findall(text))
    least = len(_term_pattern(term, whole=True).findall(text))
    kept = most >= constraint.low and (constraint.high is None or least <= constraint.high)
    count = most if most < constraint.low else least
    if kept and constraint.low:
        count = max(least, constraint.low)
    return kept, f'"{term}" {plural(count, "time")}'


def _phrase_letter(constraint: Constraint) -> str:
    letter = f'letter "{constraint.terms[0]}"'
    if constraint.high == 0:
        return f"no {letter}"
    return f"the {letter}{_times(constraint.low, constraint.high)}"


def _measure_letter(constraint: Constraint, text: str) -> tuple[bool, str]:
    letter = constraint.terms[0]
    count = text.lower().count(letter.lower())
    found = f'the letter "{letter}" {plural(count, "time")}{_off(constraint, count)}'
    return constraint.within(count), found


_MARKS = {
    ",": "comma",
    "!": "exclamation mark",
    "?": "question mark",
    ";": "semicolon",
    ":": "colon",
    "-": "hyphen",
    "—": "em dash",
}


def _phrase_mark(constraint: Constraint) -> str:
    mark = _MARKS[constraint.terms[0]]
    if constraint.high == 0:
        return _marks(f"no {mark}s")
    return _marks(bounds_text(constraint.low, constraint.high, mark))


def _measure_mark(constraint: Constraint, text: str) -> tuple[bool, str]:
    count = text.count(constraint.terms[0])
    found = _marks(plural(count, _MARKS[constraint.terms[0]])) + _off(constraint, count)
    return constraint.within(count), found


def _marks(phrase: str) -> str:
    return phrase.replace("dashs", "dashes")


# Case, start and end


def _measure_lowercase(constraint: Constraint, text: str) -> tuple[bool, str]:
    count = sum(char.isupper() for char in text)
    return text.islower(), plural(count, "capital letter")


def _measure_uppercase(constraint: Constraint, text: str) -> tuple[bool, str]:
    count = sum(char.islower() for char in text)
    return text.isupper(), plural(count, "small letter")


def _plain(text: str) -> str:
    """Return a text in small letters, with straight quotes and single spaces."""
    table = str.maketrans("“”‘’", "\"\"''")  # noqa: RUF001
    return " ".join(text.translate(table).casefold().split())


def _measure_start(constraint: Constraint, text: str) -> tuple[bool, str]:
    term = _plain(constraint.terms[0])
    start = _plain(text[: len(constraint.terms[0]) * 2 + 200])
    kept = start.startswith(term) or start.lstrip("\"'*_# ").startswith(term.lstrip("\"'*_# "))
    return kept, f'"{_shorten(text[:_EXCERPT])}" at its start'


def _measure_end(constraint: Constraint, text: str) -> tuple[bool, str]:
    term = _plain(constraint.terms[0])
    end = _plain(text[-len(constraint.terms[0]) * 2 - 200 :])
    kept = end.endswith(term) or end.rstrip("\"'*_ ").endswith(term.rstrip("\"'*_ "))
    return kept, f'"{_shorten(text[-_EXCERPT:])}" at its end'


def _shorten(text: str) -> str:
    return " ".join(text.split())


def _measure_first_word(constraint: Constraint, text: str) -> tuple[bool, str]:
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(paragraphs) < constraint.place:
        return False, f"only {plural(len(paragraphs), 'paragraph')}"
    word = paragraphs[constraint.place - 1].split()[0].strip("\"'“”‘’.,;:!?*_")  # noqa: RUF001
    return word.casefold() == constraint.terms[0].casefold(), f'"{word[:_EXCERPT]}" there'


# Format


def _measure_quoted(constraint: Constraint, text: str) -> tuple[bool, str]:
    kept = len(text) > 1 and text[0] in '"“' and text[-1] in '"”'
    return kept, "them" if kept else "no double quotes around the whole of it"


def _measure_title(constraint: Constraint, text: str) -> tuple[bool, str]:
    titles = [one for one in re.findall(r"<<([^<>\n]+)>>", text) if one.strip()]
    return bool(titles), f"<<{titles[0].strip()[:_EXCERPT]}>>" if titles else "no <<title>>"


def _phrase_sections(constraint: Constraint) -> str:
    asked = bounds_text(constraint.low, constraint.high, "section")
    return f'{asked} headed "{constraint.terms[0]}"'


def _measure_sections(constraint: Constraint, text: str) -> tuple[bool, str]:
    count = len(re.findall(rf"{re.escape(constraint.terms[0])}\s?\d+", text))
    return constraint.within(count), plural(count, "such section") + _off(constraint, count)


def _measure_postscript(constraint: Constraint, text: str) -> tuple[bool, str]:
    letters = re.sub(r"\W", "", constraint.terms[0])
    found = re.search(r"\b" + r"\.?\s?".join(letters) + r"\b", text, re.IGNORECASE)
    return bool(found), "one" if found else f'no "{constraint.terms[0]}"'


def _phrase_parts(constraint: Constraint) -> str:
    return (
        f"{bounds_text(constraint.low, constraint.high, 'part')} separated by "
        + (constraint.terms[0])
    )


def _measure_parts(constraint: Constraint, text: str) -> tuple[bool, str]:
    parts = [part.strip() for part in text.split(constraint.terms[0])]
    parts = parts[not parts[0] : len(parts) - (len(parts) > 1 and not parts[-1])]
    found = plural(len(parts), "part") + _off(constraint, len(parts))
    if not all(parts):
        return False, f"an empty part between two {constraint.terms[0]}"
    if constraint.kind == "responses" and len(set(parts)) < len(parts):
        return False, "the same part again"
    return constraint.within(len(parts)), found


def _measure_json(constraint: Constraint, text: str) -> tuple[bool, str]:
    try:
        json.loads(strip_fence(text))
    except (ValueError, RecursionError) as error:
        return False, f"no JSON: {str(error)[:120]}"
    return True, "JSON"


def _measure_repeat(constraint: Constraint, text: str) -> tuple[bool, str]:
    request = _plain(constraint.terms[0])
    kept = (
        _plain(text[: 2 * len(constraint.terms[0]) + 200])
        .lstrip('"> ')
        .startswith(request.lstrip('"> '))
    )
    return kept, "it" if kept else f'"{_shorten(text[:_EXCERPT])}" at its start'


def _phrase_choice(constraint: Constraint) -> str:
    return "one of " + ", ".join(f'"{term}"' for term in constraint.terms)


def _measure_choice(constraint: Constraint, text: str) -> tuple[bool, str]:
    # "not sure" contains "sure": the longer choice is tried first.
    left, found = text, []
    for term in sorted(constraint.terms, key=len, reverse=True):
        pattern = _term_pattern(term, whole=True)
        if pattern.search(left):
            found.append(term)
            left = pattern.sub(" ", left)
    return len(found) == 1, " and ".join(f'"{term}"' for term in found) or "none of them"


KINDS: Mapping[str, Kind] = {
    **{kind: Kind(_phrase_count, _measure_count) for kind in _COUNTS},
    "contains": Kind(_phrase_contains, _measure_contains),
    "letters": Kind(_phrase_letter, _measure_letter),
    "punctuation": Kind(_phrase_mark, _measure_mark),
    "lowercase": Kind(lambda _: "all lowercase", _measure_lowercase),
    "uppercase": Kind(lambda _: "all capitals", _measure_uppercase),
    "start": Kind(lambda one: f'starts with "{one.terms[0]}"', _measure_start),
    "end": Kind(lambda one: f'ends with "{one.terms[0]}"', _measure_end),
    "first word": Kind(
        lambda one: f'paragraph {one.place} starts with "{one.terms[0]}"', _measure_first_word
    ),
    "quotes": Kind(lambda _: "wrapped in double quotes", _measure_quoted),
    "title": Kind(lambda _: "a title in <<>>", _measure_title),
    "sections": Kind(_phrase_sections, _measure_sections),
    "postscript": Kind(lambda one: f'a postscript "{one.terms[0]}"', _measure_postscript),
    "parts": Kind(_phrase_parts, _measure_parts),
    "responses": Kind(_phrase_parts, _measure_parts),
    "json": Kind(lambda _: "JSON", _measure_json),
    "repeat": Kind(lambda _: "repeats the request first", _measure_repeat),
    "choice": Kind(_phrase_choice, _measure_choice),
}
