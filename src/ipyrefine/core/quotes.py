"""Whether words stand in a text, compared as loosely as models quote."""

import re
from difflib import SequenceMatcher

_NEAR, _FEW, _SPREAD = 6 / 7, 4, 1.5  # of a quote: words that stand there, from how many, how far
_PLAIN = str.maketrans(
    {
        **dict.fromkeys('*_`#>"', ""),
        "\N{LEFT DOUBLE QUOTATION MARK}": "",
        "\N{RIGHT DOUBLE QUOTATION MARK}": "",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{NO-BREAK SPACE}": " ",
    }
)


def contains_quote(text: str, quote: str) -> bool:
    """Return whether a text contains a quote, compared loosely.

    White space, case, Markdown and quotation marks do not count. What an ellipsis leaves out may be
    anything. Of four words and more, six in seven have to stand there in their order. An empty
    quote is about something missing, and is in every text; one of marks alone must be there as it
    is.
    """
    parts = [part for part in map(_flatten, re.split(r"\.{3,}|…", quote)) if part]
    if not parts:
        return quote.strip() in text
    flat = _flatten(text)
    return all(part in flat or _is_near(flat, part) for part in parts)


def _flatten(text: str) -> str:
    return " ".join(text.translate(_PLAIN).casefold().split()).strip(" .,;:")


def _is_near(text: str, words: str) -> bool:
    wanted = words.split()
    if len(wanted) < _FEW:
        return False
    found = SequenceMatcher(None, text.split(), wanted, autojunk=False).get_matching_blocks()[:-1]
    if not found or found[-1].a + found[-1].size - found[0].a > _SPREAD * len(wanted):
        longest = max((block.size for block in found), default=0)
        return longest >= _NEAR * len(wanted)
    return sum(block.size for block in found) >= _NEAR * len(wanted)
