"""Read the scores in what an evaluator says: decimals, fractions, per cents, and their scales."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from typing import Any

from ipyrefine.errors import ReplyError

Rated = tuple[float | None, float | None]  # a score, and what a full one is where it says so

# What evaluators call their scores.
_TOTALS = ("overall score", "overall", "final score", "total score", "total")
SCORES = (
    *(*_TOTALS, "score", "rating", "punktzahl", "puntuación", "pontuação"),
    *("得分", "评分", "スコア", "点数", "балл"),
)
OF = ("max score", "out of", "max", "scale")
_STOPS = str.maketrans(
    {"。": ". ", "：": ": ", "！": "! ", "？": "? ", "；": "; ", "，": ", ", "（": " ("}  # noqa: RUF001
)
ASIDE = re.compile(r"(?<=\S)\s*\([^()]*\)")
# Words for the whole: alone or next to plain ones they make a label that of the whole.
OVERALL = re.compile(
    r"overall|final|total|conclusions?|gesamt\w*|end(?:urteil|ergebnis|note)|fazit|finale"
    r"|globale?|general|conclusi[oó]n|conclusão|[总總]\w*|最[终終]\w*|[综綜]合\w*|[结結][论論]|итог\w*"
)
_NUM = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)"
_RANGE = r"(?:[-–—~]|to|or|and|bis|oder|und|à|ou|al?|o|до|至|到)"  # noqa: RUF001
_NUMBER = re.compile(
    rf"[^\w.,+<>\N{{MINUS SIGN}}-]*(?P<number>-?{_NUM})(?!\w|[.,]\d)\s*"
    rf"(?:(?:/|out of\b|of\b|von\b|sur\b|de\b|su\b|из\b)\s*(?P<of>{_NUM})(?!\w|[.,]\d)"
    rf"|(?P<percent>%|per ?cent))?(?!\s*(?:{_RANGE}|[+:/])?\s*\d)",
    re.IGNORECASE,
)
_FRACTION = re.compile(
    rf"(?<![\w.,/])(?P<range>\d[\d.,]*\s*{_RANGE}\s*)?(?P<number>-?{_NUM}) *"
    rf"(?:(?:/|out of) *(?P<of>{_NUM})|(?P<percent>%|per ?cent)(?! *(?:of|der|des|de)\b))"
    r"(?![\w/]|[.,]\d)",
    re.IGNORECASE,
)
_RATED = re.compile(
    r"\b(?:scor(?:e[sd]?|ing)|rat(?:e[sd]?|ings?)|scales?|grades?|marks?|points?|numbers?"
    r"|bewert\w*|punkt\w*|skala|not[ea]s?|puntu\w*|оцен\w*)\b|[评評]?分",
    re.IGNORECASE,
)
_SCALE = re.compile(
    r"(?<![\d.])(?P<low>[01](?:\.0)?)\s*(?:\([^)]*\)\s*)?"
    r"(?:-|–|\.\.+|~|to|and|bis|und|à|et|al?|y|до|至|到)\s*"  # noqa: RUF001
    r"(?P<high>\d+(?:\.0)?)(?![\d.]*\d)|(?:out of|/)\s*(?P<of>\d+)\b"
)


def plain(text: str) -> str:
    """Return a text with the stops and digits of Latin script."""
    return unicodedata.normalize("NFKC", text.translate(_STOPS))


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"[^\W\d_]+", text.lower())


def read_number(value: Any) -> Rated:
    """Return the score that a number or a text starts with, if no other one follows."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), None
    value = ASIDE.sub("", unicodedata.normalize("NFKC", value)) if isinstance(value, str) else ""
    match = _NUMBER.match(value)
    if not match:
        return None, None
    return agreed([_rated(match), *map(_rated, _FRACTION.finditer(value, match.end()))])


def _rated(match: re.Match[str]) -> Rated:
    score, of = _decimal(match["number"]), _decimal(match["of"])
    unclear = match.groupdict().get("range") or (match["of"] and of is None)
    return (None, None) if unclear else (score, 100.0 if match["percent"] else of)


def _decimal(number: str | None) -> float | None:
    """Return a number with a decimal point or comma; none if that parts thousands."""
    if not number or re.fullmatch(r"-?[1-9]\d{0,2},\d{3}", number):
        return None
    return float(number.replace(",", "."))


def agreed(rated: Iterable[Rated]) -> Rated:
    """Return the one score that all give; none where they differ."""
    found = list(rated)
    shares = [score and score / (of or 1) for score, of in found]
    if not found or any(one is None or not isclose(one, shares[0] or 0) for one in shares):
        return None, None
    return found[0]


def overall_score(named: Sequence[tuple[str, Any]]) -> Rated:
    """Return the score that all of these give, or all that are of the whole."""
    totals = [value for name, value in named if name in _TOTALS]
    return agreed(map(read_number, totals or [value for _, value in named]))


def mean_score(named: Mapping[str, Any]) -> float | None:
    """Return the mean of the scores of criteria."""
    for value in named.values():
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            items = [one.get("score") if isinstance(one, dict) else one for one in items]
            scores = [score for score, _ in map(read_number, items) if score is not None]
            if scores and len(scores) == len(items):
                return sum(scores) / len(scores)
    return None


def scaled(score: float, of: float | None, prompt: str, reply: str) -> float:
    """Return a score from 0 to 1, by the scale that the reply or the prompt names."""
    scales = [(0.0, of)] if of is not None else _scales(prompt) or _scales(reply) or [(0.0, 1.0)]
    for low, high in scales:
        if low <= score <= high and high:
            return score / high
    raise ReplyError(f"its score {score:g} fits no scale that was named; write it like 8/10")


def _scales(prompt: str) -> list[tuple[float, float]]:
    """Return the scales that a prompt names where it speaks of scores: ``from 1 to 10``."""
    sentences = (one for one in re.split(r"(?<=[.!?;])\s|\n", prompt) if _RATED.search(one))
    found = (match for sentence in sentences for match in _SCALE.finditer(sentence))
    ranges = ((float(m["low"] or 0), float(m["high"] or m["of"])) for m in found)
    return [(low, high) for low, high in ranges if low < high]


def score_in_words(reply: str) -> tuple[str, Rated] | None:
    """Read a number on the last line, or those like 8/10 in sentences that speak of a score."""
    text = plain(reply).strip()
    before, _, last = text.rpartition("\n")
    match = _NUMBER.match(last)
    if match and not last[match.end() :].strip(" .*_`"):
        rated = read_number(last)
        return None if rated[0] is None else (before, rated)
    sentences = [one for one in re.split(r"(?<=[.!?;])\s+|\n", text) if _RATED.search(one)]
    overall = [one for one in sentences if any(map(OVERALL.fullmatch, words_of(one)))]
    for chosen in (overall, sentences):
        if found := [m for one in chosen for m in _FRACTION.finditer(one)]:
            rated = agreed(map(_rated, found))
            if rated[0] is None:
                raise ReplyError("its overall scores differ")
            return reply, rated
    return None
