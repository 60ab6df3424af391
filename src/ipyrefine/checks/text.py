"""The check of a text's length.

It says little about a text's quality, so a pass settles no verdict; a text that fails it does not
pass.
"""

import re
from collections.abc import Callable
from typing import Self

from ipyrefine.checks import Context
from ipyrefine.core.model import Task, one_line
from ipyrefine.core.model import count as plural
from ipyrefine.core.prompts import INVISIBLE
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError

# An end without a space after it is one where a capital follows, or in scripts without spaces.
_END_BEFORE_CAPITAL = r"(?<=[^\W\d_A-Z]{2})[.!?…]+(?=[A-Z])"
_SENTENCE_END = re.compile(
    rf"{_END_BEFORE_CAPITAL}|"
    r"(?<![.!?…])[.!?…]+[\"'”’)\]*_]{0,4}(?=\s|$)|[。！？]+[」』）”’)]{0,4}"  # noqa: RUF001
)
_NO_END = re.compile(
    r"(?:^|[\s(\"'“])(?:(?-i:[A-HJ-Z])|mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|fig|approx|p\.s|"
    r"(?:\w\.){1,4}\w)$|(?:^|\n)\s*[*-]?\s*\d{1,3}$",
    re.IGNORECASE,
)
_NO_END_WITHIN = re.compile(r"\b(?:etc|inc|ltd|co|corp|sr|jr|no|p|pp)$", re.IGNORECASE)


# Between two words without a space; "km/h", "example.com" and addresses are one word.
_JOINT = re.compile(
    rf"{INVISIBLE.pattern}|(?<=[^\W\d_]{{2}})[/,;|—…](?=[^\W\d_]{{2}})|{_END_BEFORE_CAPITAL}"
)


def count_sentences(text: str) -> int:
    """Return the number of sentences: what ends with ``.``, ``!`` or ``?``, or with the text.

    Abbreviations, initials and the numbers of a list end none.
    """
    count = start = looked = 0
    for match in _SENTENCE_END.finditer(text):
        before = text[max(start, match.start() - 12) : match.start()]
        following = text[match.end() : match.end() + 2].lstrip()
        spoken = match[0][-1] in "\"'”’" and following[:1].islower()  # noqa: RUF001 - "Why?" he asked.
        shortened = _NO_END.search(before) or (
            _NO_END_WITHIN.search(before) and following[:1].islower()
        )
        if spoken or (match[0][0] == "." and following and shortened):
            continue
        if any(char.isalnum() for char in text[max(start, looked) : match.end()]):
            count, start = count + 1, match.end()
        looked = match.end()
    return count + any(char.isalnum() for char in text[start:])


def _count_words(text: str) -> int:
    parts = (
        part for word in text.split() for part in ([word] if "://" in word else _JOINT.split(word))
    )
    return sum(any(char.isalnum() for char in part) for part in parts)


def _count_bullets(text: str) -> int:
    bullets = ("* ", "- ", "+ ", "• ", "– ")  # noqa: RUF001
    return sum(line.lstrip().startswith(bullets) for line in text.splitlines())


UNITS: dict[str, Callable[[str], int]] = {
    "word": _count_words,
    "sentence": count_sentences,
    "bullet": _count_bullets,
    "char": len,
    "character": len,
    "line": lambda text: sum(bool(line.strip()) for line in text.splitlines()),
    "paragraph": lambda text: len([part for part in re.split(r"\n\s*\n", text) if part.strip()]),
}
_NUMBER = r"(\d[\d_,]{0,12})"
_LENGTH = re.compile(
    rf"(?:(?P<sign><=?|>=?|≤|≥|=|==)?\s*{_NUMBER}|{_NUMBER}\s*(?:-|–|\.\.|to)\s*{_NUMBER})"  # noqa: RUF001
    rf"\s*(?P<unit>{'|'.join(UNITS)})s?"
)

_BOUNDS: dict[str, Callable[[int], tuple[int, int | None]]] = {
    **dict.fromkeys(("<=", "≤"), lambda number: (0, number)),
    **dict.fromkeys((">=", "≥"), lambda number: (number, None)),
    **dict.fromkeys(("=", "=="), lambda number: (number, number)),
    "<": lambda number: (0, number - 1),
    ">": lambda number: (number + 1, None),
}


class Length:
    """The text's length is within bounds.

    Args:
        bounds: such as ``<=120 words``, ``200-400 chars``, ``>3 lines`` or ``2 paragraphs``.

    Raises:
        UsageError: the bounds cannot be read, or contradict each other.
    """

    def __init__(self, bounds: str) -> None:
        self.name = f"length:{bounds}"
        match = _LENGTH.fullmatch(one_line(bounds.lower()))
        if not match:
            raise UsageError(
                f'The check {self.name!r} needs bounds like "length:<=120 words" or '
                '"length:2-4 sentences". The units are words, sentences, bullets, paragraphs, '
                "lines and chars."
            )
        first, *pair = (int(re.sub("[_,]", "", n)) if n else 0 for n in match.groups()[1:4])
        low, high = _BOUNDS[match["sign"] or "="](first) if match[2] else pair
        if high is not None and low > high:
            raise UsageError(f"The check {self.name!r} allows no length at all.")
        self._low, self._high = low, high
        self._unit = {"char": "character"}.get(match["unit"], match["unit"])
        self._asked = _bounds_text(self._low, self._high, self._unit)
        self.requirement = f"Its length must be {self._asked}."

    @classmethod
    def from_argument(cls, argument: str, context: Context) -> Self:
        """Make the check from what follows its colon."""
        return cls(argument)

    async def __call__(self, text: str, task: Task) -> Result:
        """Count the units of the text."""
        count = UNITS[self._unit](text.strip())
        missing = self._low - count
        extra = 0 if self._high is None else count - self._high
        off = max(missing, extra, 0)
        error = f"{off} too {'few' if missing > 0 else 'many'}"
        detail = f"It has {plural(count, self._unit)}"
        detail += f": {error}, as {self._asked} are asked for." if off else "."
        score = max(0.0, 1 - off / max(count, self._low, 1))
        return Result(
            name=self.name, passed=not off, score=score, basis="constraints", shows=detail
        )


def _bounds_text(low: int, high: int | None, unit: str) -> str:
    if high is None:
        return f"at least {plural(low, unit)}"
    if low == high:
        return f"exactly {plural(high, unit)}"
    if not low:
        return f"at most {plural(high, unit)}"
    return f"{low:,} to {plural(high, unit)}"
