"""Read the probability of each yes/no answer from a server's log-probabilities.

Servers send, for each token of a reply, the most probable tokens at its place. P(yes) is the share
of all spellings of *yes* (`` yes``, ``Yes``, ``y``, …) in what that table gives to yes and to no.
"""

import math
import re
from bisect import bisect_right
from collections import deque
from itertools import accumulate, islice
from typing import Any

from ipyrefine.core.ports import Request

_ANSWER = re.compile(r"\b(?:yes|no)\b", re.IGNORECASE)
_SPACES = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})  # as vocabularies write them
_AROUND = " \t\r\n.,;:!*\"'`"  # what a token may hold around the word
_MAX_TOKENS = 4_096  # kept of a reply, from its end; the answers follow the thinking
_MAX_ENTRIES = 64  # read of a table
_MIN_ENTRIES = 2  # a token that was only verified comes with itself, or with nothing
_MAX_CHARS = 10_000  # of a reply that holds nothing but answers
_ROUNDING = 1e-3  # how far above zero a log-probability may be


class AnswerTables:
    """What a stream tells of the tokens of a reply, in a bounded space.

    It accepts whatever a server sends: what is not a table, or no log-probability, is left out.
    """

    def __init__(self) -> None:
        self._tokens: deque[tuple[str, float | None]] = deque(maxlen=_MAX_TOKENS)

    def feed(self, logprobs: object, content: str) -> None:
        """Take a chunk's ``logprobs``.

        Args:
            logprobs: the field as it came, or None.
            content: the text of the chunk; without tokens it stands for one without a table.
        """
        entries = logprobs.get("content") if isinstance(logprobs, dict) else None
        tokens = [
            (entry["token"].translate(_SPACES), _probability(entry))
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and isinstance(entry.get("token"), str)
        ]
        if not tokens and content:
            tokens = [(content, None)]
        self._tokens.extend(tokens)

    def probabilities(self, text: str, answers: int) -> tuple[float | None, ...]:
        """Return P(yes) of each answer in a text, None where it is not known.

        Args:
            text: the reply, without thinking.
            answers: how many answers were asked for; what follows them is left out.
        """
        text = text.strip()[:_MAX_CHARS]
        found = [match.start() for match in islice(_ANSWER.finditer(text), answers)]
        written = "".join(token for token, _ in self._tokens)
        # The last place of the text: what came before is thinking. Looking backwards for it takes
        # `find` on both reversed, because `rfind` may take the product of the lengths.
        place = written[::-1].find(text[::-1])
        if place < 0:
            return (None,) * len(found)
        start = len(written) - place - len(text)
        ends = list(accumulate(len(token) for token, _ in self._tokens))
        return tuple(self._tokens[bisect_right(ends, start + at)][1] for at in found)


def answer_grammar(request: Request) -> str:
    """Return the GBNF grammar of a line of answers; one that continues a line begins with a space.

    Args:
        request: asks for at least one answer; its last message may be the line's beginning.
    """
    word = '("yes" | "no")'
    continues = bool(request.messages) and request.messages[-1].role == "assistant"
    first = f'" " {word}' if continues else word
    more = request.answers - 1
    return f"root ::= {first}" + (f' (" " {word}){{{more}}}' if more else "")


def _probability(entry: dict[str, Any]) -> float | None:
    """Return P(yes) / (P(yes) + P(no)) at one token; None without a table or without either."""
    table = entry.get("top_logprobs")
    rows = [
        (row["token"], likelihood)
        for row in (islice(table, _MAX_ENTRIES) if isinstance(table, list) else ())
        if isinstance(row, dict)
        and isinstance(row.get("token"), str)
        and (likelihood := _likelihood(row.get("logprob"))) is not None
    ]
    if len(rows) < _MIN_ENTRIES:
        return None
    yes, no = (sum(p for token, p in rows if _spells(token, word)) for word in ("yes", "no"))
    if yes + no == 0:
        return None
    written = _likelihood(entry.get("logprob"))
    listed = {_bare(token) for token, _ in rows}
    if written is not None and _bare(entry["token"]) not in listed:
        # The token that was written counts too, where a grammar took one from below the table.
        yes += written if _spells(entry["token"], "yes") else 0
        no += written if _spells(entry["token"], "no") else 0
    return yes / (yes + no)


def _spells(token: str, word: str) -> bool:
    """Return whether a token is a word, or its beginning."""
    bare = _bare(token)
    return bool(bare) and word.startswith(bare)


def _bare(token: str) -> str:
    """Return a token without what surrounds the word, in lower case."""
    return token.translate(_SPACES).strip(_AROUND).lower()


def _likelihood(logprob: object) -> float | None:
    """Return the probability whose logarithm a server sent, 0..1; None for anything else."""
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        return None
    if not logprob <= _ROUNDING:  # nor is NaN
        return None
    # A whole number of any length: below this the result is zero.
    return math.exp(max(min(logprob, 0), -1_000))
