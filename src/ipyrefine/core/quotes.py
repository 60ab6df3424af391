"""Whether words are quoted from a text: loosely, as people and models quote."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, combinations, islice
from unicodedata import normalize

_MARK = re.compile(r"[\"“”„«»「」『』`]|(?<!\w)['\u2018\u2019]|['\u2018\u2019](?!\w)")
_MARKS = 16  # of a docstring, between any two of which a passage may stand
_ELLIPSIS = re.compile(r"\.{3,}|\[[\s.]*\]")
_LETTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # of scripts without spaces
_SENTENCE = re.compile(rf"(?:[:!?;]|(?<!\.)\.(?!\.))(?=[\s{_LETTER}]|$)|。|\n")
_WORD = re.compile(rf"[{_LETTER}]|(?<!\w)-?\d+(?:[.,]\d+)*|[^\W{_LETTER}]+(?:'[^\W{_LETTER}]+)*")
_LEAST, _SHARE = 3, 0.6  # words of a quote; what such a letter counts of one
_NEAR, _FEW, _SPREAD = 6 / 7, 4, 1.5  # of a quote: words that stand there, from how many, how far
_PLAIN = str.maketrans("\u2018\u2019\u00a0", "'' ", '*_`#>"“”„«»「」『』')


def rests_on(task: str, docstring: str) -> bool:
    """Return True if a docstring, or a paragraph or quotation of it, stands in the task.

    Its words stand there in their order, and are at least three, or a whole sentence of the task.
    Case, marks, an ending and few words left out do not count, and what an ellipsis leaves out may
    be anything.
    """
    docstring = normalize("NFKC", docstring)
    marks = [mark.start() for mark in islice(_MARK.finditer(docstring), _MARKS)]
    quoted = (docstring[first + 1 : last] for first, last in combinations(marks, 2))
    words, sentences = _read_task(task)
    for passage in (docstring, *docstring.split(" / "), *quoted):
        parts = [*filter(None, map(_split_words, _ELLIPSIS.split(passage)))]
        found = tuple(chain.from_iterable(parts))
        size = sum(_SHARE if re.match(f"[{_LETTER}]", one) else 1 for one in found)
        size += bool(re.search("[=→⇒]|->", passage))  # with its result an example is short
        if (size >= _LEAST and _follow(words, parts)) or (len(found) > 1 and found in sentences):
            return True
    return False


@lru_cache(maxsize=2)
def _read_task(task: str) -> tuple[tuple[str, ...], frozenset[tuple[str, ...]]]:
    sentences = [*map(_split_words, _SENTENCE.split(normalize("NFKC", task)))]
    return tuple(chain.from_iterable(sentences)), frozenset(sentences)


def _split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text, each without a final s."""
    words = _WORD.findall(text.casefold().replace("\u2019", "'"))
    return tuple(word for one in words if (word := one.strip("_").removesuffix("s")))


def _follow(words: Sequence[str], parts: Iterable[Sequence[str]]) -> bool:
    """Return True if words hold parts one after another, each nearly without a gap."""
    start = 0
    for part in parts:
        places = (n for n in range(start, len(words)) if words[n] == part[0])
        start = next(filter(None, (_end(words, place, part) for place in places)), 0)
        if not start:
            return False
    return True


def _end(words: Sequence[str], start: int, part: Sequence[str]) -> int:
    """Return where a part ends that starts at a place in words; 0 if none does."""
    left = [*reversed(part)]
    for place in range(start, min(start + int(_SPREAD * len(part)), len(words))):
        if words[place] == left[-1]:
            left.pop()
            if not left:
                return place + 1
    return 0


def contains_quote(text: str, quote: str, *, near: bool = True) -> bool:
    """Return True if a text contains a quote, compared loosely.

    White space, case, Markdown and quotation marks do not count. What an ellipsis leaves out may be
    anything. Of four words and more, six in seven have to stand there in their order. An empty
    quote is about something missing, and is in every text; one of marks alone must be there as it
    is. Without ``near``, every word has to.
    """
    parts = [part for part in map(_flatten, re.split(r"\.{3,}|…", quote)) if part]
    if not parts:
        return quote.strip() in text
    flat = _flatten(text)
    return all(part in flat or (near and _is_near(flat, part)) for part in parts)


@lru_cache(maxsize=16)  # a critique quotes one text many times
def _flatten(text: str) -> str:
    return " ".join(text.translate(_PLAIN).casefold().split()).strip(" .,;:")


@lru_cache(maxsize=16)
def _words_in(text: str) -> tuple[list[str], frozenset[str]]:
    words = text.split()
    return words, frozenset(words)


def _is_near(text: str, words: str) -> bool:
    wanted, (there, known) = words.split(), _words_in(text)
    if len(wanted) < _FEW or sum(word in known for word in wanted) < _NEAR * len(wanted):
        return False
    found = SequenceMatcher(None, there, wanted, autojunk=False).get_matching_blocks()[:-1]
    if not found or found[-1].a + found[-1].size - found[0].a > _SPREAD * len(wanted):
        return False
    return sum(block.size for block in found) >= _NEAR * len(wanted)
