"""Numbers that prose states in words."""

import re

_SMALL = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_VALUES = {word: n for n, word in enumerate(re.findall(r"\w+", _SMALL), start=1)}
_VALUES |= {word: 10 * n for n, word in enumerate(re.findall(r"\w+", _TENS), start=2)}
_WORD = re.compile(rf"\b(?:{'|'.join(_VALUES)})(?:-(?:{'|'.join([*_VALUES][:9])}))?\b", re.I)


def numbers_in_words(text: str) -> set[int]:
    """Return the numbers from two to ninety-nine that a text writes as words."""
    found = {sum(_VALUES[part] for part in m.lower().split("-")) for m in _WORD.findall(text)}
    return found - {1}
