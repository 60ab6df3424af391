"""Whether words are quoted from a text: copied, but for case, marks and spaces."""

import re
from functools import lru_cache
from itertools import combinations, islice
from unicodedata import normalize

_MARK = re.compile(r"[\"“”„«»「」『』`]|(?<!\w)['\u2018\u2019]|['\u2018\u2019](?!\w)")
_MARKS = 16  # of a docstring, between any two of which a passage may stand
_ELLIPSIS = re.compile(r"\[?\.{3,}\]?|…")
_LETTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # of scripts without spaces
_SENTENCE = re.compile(rf"(?:[:!?;]|(?<!\.)\.(?!\.))(?=[\s{_LETTER}]|$)|。|\n")
_LEAST, _SHARE = 3, 0.6  # words of a quote; what such a letter counts of one
_PLAIN = str.maketrans("\u2018\u2019\u00a0", "'' ", '*_`#>"“”„«»「」『』')


def rests_on(task: str, docstring: str) -> bool:
    """Return True if a docstring, or a paragraph or quotation of it, stands in the task.

    It is copied, and has at least three words, or is a whole sentence of the task. Case, marks and
    spaces do not count, and what an ellipsis leaves out may be anything.
    """
    docstring, whole = normalize("NFKC", docstring), _flatten(normalize("NFKC", task))
    marks = [mark.start() for mark in islice(_MARK.finditer(docstring), _MARKS)]
    quoted = (docstring[first + 1 : last] for first, last in combinations(marks, 2))
    sentences = {*map(_flatten, _SENTENCE.split(normalize("NFKC", task)))}
    for passage in (docstring, *docstring.split(" / "), *quoted):
        flat = _flatten(passage)
        size = _SHARE * len(re.findall(f"[{_LETTER}]", flat))
        size += len(re.findall(rf"[^\s{_LETTER}]+", flat))
        if (size >= _LEAST and _stands(whole, passage)) or (" " in flat and flat in sentences):
            return True
    return False


def contains_quote(text: str, quote: str) -> bool:
    """Return True if a text contains a quote, compared loosely.

    White space, case, Markdown and quotation marks do not count. What an ellipsis leaves out may be
    anything. An empty quote is about something missing, and is in every text; one of marks alone
    must be there as it is.
    """
    return _stands(_flatten(text), quote) if _flatten(quote) else quote.strip() in text


def _stands(flat: str, quote: str) -> bool:
    parts = filter(None, map(_flatten, _ELLIPSIS.split(quote)))
    return re.search(".*".join(map(re.escape, parts)), flat) is not None


@lru_cache(maxsize=16)  # a critique quotes one text many times
def _flatten(text: str) -> str:
    return " ".join(text.translate(_PLAIN).casefold().split()).strip(" .,;:!?()")
