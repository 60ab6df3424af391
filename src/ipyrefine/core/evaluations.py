"""Read what an evaluator says of a text: the user's function's result, or a model's reply."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from math import isclose
from typing import Any, NamedTuple

from ipyrefine.core.model import FEEDBACK, Finding, Judgement, Outcome, Severity
from ipyrefine.core.replies import json_objects, labelled
from ipyrefine.errors import ReplyError

# What evaluators call their fields.
_WORDS = ("evaluation", "verdict", "status", "outcome", "decision", "judgement", "judgment")
_FLAGS = ("done", "pass", "passed", "passes", "approved", "accepted", "acceptable", "ready")
_TOTALS = ("overall score", "overall", "final score", "total score", "total")
_SCORES = (*_TOTALS, "score", "rating")
_OF = ("max score", "out of", "max", "scale")
_FEEDBACK = (
    "feedback", "suggestions", "actions", "improvements", "issues", "problems", "weaknesses",
    "comments", "comment", "critique", "reasons", "reason", "reasoning", "explanation",
)  # fmt: skip
_PROBLEM = ("problem", "issue", "weakness", "action", "suggestion", "description", *_FEEDBACK)
# What is said of a criterion besides its verdict.
_ABOUT = re.compile(
    rf"{'|'.join(_FEEDBACK)}|.*\b(?:name|[ck]rit\w+|aspect|dimension|category|title|id|thoughts?"
    r"|thinking|analysis|rationale|justification|evidence|summary|notes?|remarks?|details?|text"
    r"|task|code|quote|example|description|score|fix)"
)
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
# A label of these words is that of the whole; of the others alone it may be a criterion's too.
_OVERALL = re.compile(
    r"overall|final|total|conclusions?|gesamt\w*|end(?:urteil|ergebnis|note)|fazit|finale"
    r"|globale?|general|conclusi[oó]n|conclusão|[总總]\w*|最[终終]\w*|[综綜]合\w*|[结結][论論]|итог\w*"
)
_PLAIN_LABEL = re.compile(
    rf"{'|'.join((*_WORDS, *_FLAGS))}|my|the|is|in|assessment|result|rating|grade|score"
    r"|urteil|ergebnis|bewertung|[ée]valuation|r[ée]sultat|avis|note|evaluación|resultado|veredicto"
    r"|avaliação|评[价估]|[结結]果|判定|評価|判断|оценка|вердикт"
)

_WORD = r"(?:PASS(?:ED|ES)?|NEEDS?[ _-]IMPROVEMENTS?|FAIL(?:ED|S|URE)?)"
_SPOKEN = re.compile(rf"(?<![A-Za-z_]){_WORD}(?![A-Za-z_])")
_ANY_CASE = re.compile(_WORD, re.IGNORECASE)
_CHOICES = re.compile(rf"{_WORD}(?:[\s,/|\"'`*]+(?:or|and)?[\s\"'`*]*{_WORD})+")
_UNTICKED = re.compile(rf"(?:\[\s?\]|☐)[*\s]*{_WORD}")
_TICKED = re.compile(r"\[[xX]\]|[☑☒]")
_ALONE = re.compile(
    rf"(?P<before>[^\w?]*)(?P<word>{_WORD})(?![A-Za-z_?])(?P<after>[^\w?]*)", re.IGNORECASE
)
_UNDONE = re.compile(r"[!≠¬~✗✘❌]|\.\.|…")  # marks beside a PASS that take it back
_CUT = re.compile(
    r"(?<=[.!;\]])\s+|(?P<label>(?<=:)(?:\s+|(?=[A-Z]))|\s+[-–—]+\s+"  # noqa: RUF001
    r"|\s*(?:—|=>|->|→|=|\|)\s*)|[\"'],\s+(?=[\"'])"
)
_ASIDE = re.compile(r"(?<=\S)\s*\([^()]*\)")
_MARKS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_STOPS = str.maketrans(
    {"。": ". ", "：": ": ", "！": "! ", "？": "? ", "；": "; ", "，": ", ", "（": " ("}  # noqa: RUF001
)
_IN_TAGS = re.compile(rf"<(\w[\w -]*)>\s*({_WORD})\W*</\1>", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>\s*)(?:(?P<bullet>[-*+•])\s|(?P<number>\d+)[.)]\s|\|)(?P<text>.*)")
_LABELLED = re.compile(r"\W*(?P<name>[^\W\d][^:.]{0,40}):\s+\S.*")
_RULE = re.compile(r"[\s:|-]*--[\s:|-]*")
_HEADING = re.compile(r"\s*(?:#+\s.*|\*\*[^*]+\*\*\W*|.*[:：])\s*")  # noqa: RUF001
_EDGE = re.compile(
    rf"\A\W*(?:(?:{'|'.join(_WORDS)}|so)\W+)?{_WORD}\b\W*"
    rf"|\W*\b(?:(?:{'|'.join(_WORDS)}|so)\W+)?{_WORD}\W*\Z",
    re.IGNORECASE,
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
_WORST_LAST = (Outcome.PASS, Outcome.NEEDS_IMPROVEMENT, Outcome.FAIL)


class Said(NamedTuple):
    """What an evaluator says of a text.

    Attributes:
        outcome: the verdict that it gives; None where the score decides.
        score: as it gave it, or None.
        of: what a full score is where it says so, else None.
        feedback: what it wants changed: texts, dicts and findings.
    """

    outcome: Outcome | None = None
    score: float | None = None
    of: float | None = None
    feedback: tuple[Any, ...] = ()


def parse_evaluation(reply: str, prompt: str = "") -> Judgement:
    """Read the reply of the user's evaluator, in any of the usual shapes.

    These are JSON, tags, labelled lines, lists, tables and words, with verdicts, ``done`` or a
    score, and feedback as a text or a list. It passes where all of its verdicts do, or the one
    that is labelled as the whole. In words a verdict counts where it stands by itself: as a line,
    a sentence or the value of a label. In a sentence it is none, whatever that says of it, and a
    PASS beside such words has to be the reply's first or last sentence.

    Args:
        reply: what it wrote.
        prompt: what it was asked, which may name the scale of scores; else they go from 0 to 1.

    Raises:
        ReplyError: it has none of these shapes, gives overall scores that differ, or one that fits
            no scale that is named.
    """
    said = _from_json(reply) or _from_text(reply)
    if said is None:
        raise ReplyError("it holds no verdict, done or score that stands by itself")
    score = None
    if said.score is not None:
        with suppress(ReplyError) if said.outcome else nullcontext():
            score = _scaled(said.score, said.of, prompt, reply)
    severity = Severity.MINOR if said.outcome is Outcome.PASS else Severity.BLOCKING
    return Judgement(
        stated=said.outcome, score=score, findings=feedback_findings(said.feedback, severity)
    )


def feedback_findings(feedback: Iterable[Any], severity: Severity) -> tuple[Finding, ...]:
    """Return an evaluator's feedback as findings, each as it stands."""
    texts = (_text(item) for item in feedback)
    return tuple(
        Finding(criterion=FEEDBACK, severity=severity, problem=text, check=FEEDBACK)
        for text in texts
        if text
    )


def read_fields(fields: Mapping[str, Any]) -> Said | None:
    """Return what named values say, or None if they hold neither a verdict nor a score.

    The verdicts under names of the whole decide. Without one all others have to pass, however deep
    they stand; a score next to them decides if they do.
    """
    while len(fields) == 1 and isinstance(inner := next(iter(fields.values())), dict):
        if not any(_rank(_name(name)) for name in inner):
            break
        fields = inner
    named = {_name(name): value for name, value in fields.items()}
    wholes = {name: value for name, value in named.items() if _rank(name)}
    spoke = [said for name, value in wholes.items() if (said := _said(name, value))]
    if not spoke and any(isinstance(v, str) and _SPOKEN.search(v) for v in wholes.values()):
        return None
    totals = [n for n in _TOTALS if _holds(named, n) and not _said(n, named[n])]
    rated = totals or [name for name in ("score", "rating") if _holds(named, name)]
    score, of = _agreed(_number(named[name]) for name in rated)
    found = next((named[name] for name in _FEEDBACK if _holds(named, name)), ())
    feedback = tuple(found) if isinstance(found, list | tuple) else (found,)
    outcome = _worst(spoke)
    if outcome is None:
        parts = _parts(fields)
        outcome = _worst(said for said, _ in parts or ())
        if parts is None or (rated and score is None and outcome in (None, Outcome.PASS)):
            return None
        if score is not None and outcome is Outcome.PASS:
            outcome = None
        elif not feedback:
            feedback = tuple(why for said, why in parts if said is outcome and why)
        if outcome is None and score is None:
            score = _mean(named)
    of = of or next((_number(named[name])[0] for name in _OF if name in named), None)
    return None if outcome is None and score is None else Said(outcome, score, of, feedback)


def read_items(items: Sequence[Any]) -> Said | None:
    """Return what a list of verdicts, or of dicts with one each, says; None of another list."""
    pairs = [(i, read_fields(i) if isinstance(i, dict) else Said(_word(i))) for i in items]
    read = [(item, said) for item, said in pairs if said and said.outcome]
    return _combined(read) if read and len(read) == len(items) else None


def read_outcome(value: Any) -> Outcome | None:
    """Return the verdict that a bool, or one word as a text, gives; None where it gives none."""
    if isinstance(value, bool):
        return Outcome.PASS if value else Outcome.NEEDS_IMPROVEMENT
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    if word in _TRUE or re.fullmatch(r"pass(ed|es)?", word):
        return Outcome.PASS
    if re.fullmatch(r"fail(ed|s|ure)?", word):
        return Outcome.FAIL
    improve = word in _FALSE or re.fullmatch(r"needs? improvements?", word)
    return Outcome.NEEDS_IMPROVEMENT if improve else None


def _said(name: str, value: Any) -> Outcome | None:
    """Return the verdict that a value under a name of the whole gives."""
    if isinstance(value, str):
        number = name not in _FLAGS and value.strip().isdecimal()
        return None if number else read_outcome(value) or _hear(value).outcome
    return None if name in ("score", "rating") else read_outcome(value)


def _worst(outcomes: Iterable[Outcome | None]) -> Outcome | None:
    return max(filter(None, outcomes), key=_WORST_LAST.index, default=None)


def _name(name: object) -> str:
    return re.sub(r"[_-]", " ", str(name).lower()).strip()


def _rank(label: str) -> int:
    """Return 2 for a label that is always of the whole, 1 for one that may be, else 0."""
    words = _words(label)
    overall = [bool(_OVERALL.fullmatch(word)) for word in words]
    known = all(a or _PLAIN_LABEL.fullmatch(b) for a, b in zip(overall, words, strict=True))
    return (2 if any(overall) else 1) if words and known else 0


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.lower())


def _holds(named: Mapping[str, Any], name: str) -> bool:
    return named.get(name) not in (None, "", [], ())


def _parts(fields: Mapping[str, Any]) -> list[tuple[Outcome, Any]] | None:
    """Return all verdicts in named values, each with what is said for it; None if one is unclear.

    A criterion that has another value than a verdict, next to one that has a verdict, is unclear.
    """
    parts: list[tuple[Outcome, Any]] = []
    left: list[Any] = [fields]
    while left:
        value = left.pop(0)
        if not isinstance(value, dict):
            parts += [(said, "") for item in value if (said := _word(item))]
            left += [one for one in value if isinstance(one, dict | list | tuple)]
            continue
        named = {_name(name): one for name, one in value.items()}
        left += [one for one in value.values() if isinstance(one, dict | list | tuple)]
        why = next((named[name] for name in _FEEDBACK if _holds(named, name)), "")
        ranked = _worst(_said(name, one) for name, one in named.items() if _rank(name))
        if ranked:
            parts.append((ranked, why or value))
            continue
        words = {n: v for n, v in named.items() if isinstance(v, str) and not _ABOUT.fullmatch(n)}
        spoken = {name: _hear(one).outcome for name, one in words.items()}
        if any(spoken.values()) and not all(spoken.values()):
            return None
        parts += [(said, why or f"{n}: {words[n]}") for n, said in spoken.items() if said]
    return parts


def _word(value: Any) -> Outcome | None:
    return read_outcome(value) if isinstance(value, str) and _ALONE.fullmatch(value) else None


def _combined(read: Sequence[tuple[Any, Said]]) -> Said | None:
    """Return what several say together, the worst; None where they give different scores alone."""
    outcome = _worst(said.outcome for _, said in read)
    score, of = _agreed((said.score, said.of) for _, said in read if said.score is not None)
    feedback = list[Any]()
    for item, said in read:
        if said.outcome is outcome:
            itself = len(read) > 1 and isinstance(item, dict) and outcome is not Outcome.PASS
            feedback += said.feedback or [item] * itself
    empty = outcome is None and score is None
    return None if empty else Said(outcome, score, of, tuple(feedback))


def _mean(named: Mapping[str, Any]) -> float | None:
    for value in named.values():
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            items = [one.get("score") if isinstance(one, dict) else one for one in items]
            scores = [score for score, _ in map(_number, items) if score is not None]
            if scores and len(scores) == len(items):
                return sum(scores) / len(scores)
    return None


_Rated = tuple[float | None, float | None]  # a score, and what a full one is where it says so


def _number(value: Any) -> _Rated:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), None
    value = _ASIDE.sub("", unicodedata.normalize("NFKC", value)) if isinstance(value, str) else ""
    match = _NUMBER.match(value)
    if not match:
        return None, None
    return _agreed([_rated(match), *map(_rated, _FRACTION.finditer(value, match.end()))])


def _rated(match: re.Match[str]) -> _Rated:
    score, of = _decimal(match["number"]), _decimal(match["of"])
    unclear = match.groupdict().get("range") or (match["of"] and of is None)
    return (None, None) if unclear else (score, 100.0 if match["percent"] else of)


def _decimal(number: str | None) -> float | None:
    """Return a number with a decimal point or comma; none where that parts thousands."""
    if not number or re.fullmatch(r"-?[1-9]\d{0,2},\d{3}", number):
        return None
    return float(number.replace(",", "."))


def _agreed(rated: Iterable[_Rated]) -> _Rated:
    """Return the one score that all give; none where they differ."""
    found = list(rated)
    shares = [score and score / (of or 1) for score, of in found]
    if not found or any(one is None or not isclose(one, shares[0] or 0) for one in shares):
        return None, None
    return found[0]


def _scaled(score: float, of: float | None, prompt: str, reply: str) -> float:
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


def _text(item: Any) -> str:
    if isinstance(item, dict):
        parts = [str(item[name]) for name in _PROBLEM if item.get(name)][:1]
        return " ".join(parts or [f"{name}: {value}" for name, value in item.items()])
    return str(item or "").strip()


def _from_json(reply: str) -> Said | None:
    found = list(json_objects(reply))
    # A lone object in backticks is one that it quotes.
    bare = [
        one for place, one in found if not re.search("(?<!`)`$", reply[max(0, place - 2) : place])
    ]
    pairs = [(one, read_fields(one)) for one in bare or [one for _, one in found]]
    read = [(one, said) for one, said in pairs if said]
    overall = [(one, said) for one, said in read if any(_rank(_name(name)) == 2 for name in one)]
    together = _combined(overall or read)
    if read and together is None:
        raise ReplyError("its overall scores differ")
    unread = any(said is None and _ANY_CASE.search(str(one)) for one, said in pairs)
    if unread and not overall and (together is None or together.outcome in (None, Outcome.PASS)):
        raise ReplyError("not each of its verdicts is PASS, NEEDS_IMPROVEMENT or FAIL")
    return together


def _from_text(reply: str) -> Said | None:
    heard = _hear(reply)
    before, parts = labelled(reply, (*_WORDS, *_SCORES, *_FEEDBACK, *_FLAGS))
    feedback: dict[str, str] = {}
    rest, flags, scores = "", list[Outcome | None](), dict[bool, list[str]]()
    for name, text in parts:
        first, _, more = text.partition("\n")
        if name in _FEEDBACK:
            feedback[name] = text
            continue
        rest = rest or more.strip()  # what follows a verdict on its own line
        if _hear(first).outcome:
            continue
        if name in _SCORES:
            scores.setdefault(name in _TOTALS, []).append(first)
        elif heard.outcome is None and _SPOKEN.search(first):
            return None
        else:
            flags.append(read_outcome(first))
    outcome, whole = _worst([heard.outcome, *flags]), heard.whole or any(flags)
    rated = scores.get(True) or scores.get(False) or []
    score, of = _agreed(map(_number, rated))
    if rated and score is None and outcome in (None, Outcome.PASS):
        raise ReplyError("its score is not one number, or its overall scores differ")
    if score is not None and outcome is Outcome.PASS and not whole:
        outcome = None
    if outcome is None and score is None:
        return None if heard.words else _score_in_words(reply)
    why = next((feedback[name] for name in _FEEDBACK if name in feedback), rest or before)
    if not parts:
        why = _EDGE.sub("", reply).strip() if heard.alone == 1 else reply.strip()
    return Said(outcome, score, of, (why,))


def _score_in_words(reply: str) -> Said | None:
    """Read a number on the last line, or those like 8/10 in sentences that speak of a score."""
    text = unicodedata.normalize("NFKC", reply.translate(_STOPS)).strip()
    before, _, last = text.rpartition("\n")
    match = _NUMBER.match(last)
    if match and not last[match.end() :].strip(" .*_`"):
        return Said(None, *_number(last), (before,)) if _number(last)[0] is not None else None
    sentences = [one for one in re.split(r"(?<=[.!?;])\s+|\n", text) if _RATED.search(one)]
    overall = [one for one in sentences if any(map(_OVERALL.fullmatch, _words(one)))]
    for chosen in (overall, sentences):
        if found := [m for one in chosen for m in _FRACTION.finditer(one)]:
            score, of = _agreed(map(_rated, found))
            if score is None:
                raise ReplyError("its overall scores differ")
            return Said(None, score, of, (reply,))
    return None


# Verdicts in words, by their place


class _Heard(NamedTuple):
    outcome: Outcome | None
    whole: bool = False  # whether a label says that it is of the whole
    alone: int = 0  # how many verdicts stand by themselves
    words: int = 0  # how many there are in all


def _hear(text: str) -> _Heard:
    """Return the verdict that words give by their place.

    One counts that stands by itself, between line breaks, full stops and marks such as colons; a
    FAIL or NEEDS_IMPROVEMENT also where it starts the reply or what a label stands before. One
    labelled as the whole decides, else the worst. A PASS needs that every other word for a verdict
    stands by itself, and that each item of a list of verdicts has one; as the reply's first or
    last sentence, only that no other word says FAIL or NEEDS_IMPROVEMENT.
    """
    text = unicodedata.normalize("NFKC", text.translate(_STOPS))
    text = _IN_TAGS.sub(r"\n\1: \2\n", _UNTICKED.sub("", _CHOICES.sub(_drop_choices, text)))
    lines = [line for line in text.splitlines() if line.strip()]
    found: list[tuple[Outcome, int, bool]] = []  # each with its label's rank, and if in a list
    items: dict[tuple[Any, ...], list[bool]] = {}  # lists by their place, and what has a verdict
    latest, labels, head = list[bool](), list[bool](), ""
    sections, ones, edge, early = 0, 0, False, False
    for place, raw in enumerate(lines):
        item = _ITEM.match(raw)
        if _RULE.fullmatch(raw):  # below a table's head
            del latest[-1:]
            continue
        if item:
            ones += item["number"] == "1"
            kind = ("1.", ones) if item["number"] else (item["bullet"], sections)
            latest = items.setdefault((len(item["indent"]), *kind), [])
            latest.append(False)
        line = _plain_line(item["text"] if item else raw)
        parts = _CUT.split(line)  # and between them what is a label's end, or None
        told = len(found)
        for n, segment in enumerate(parts[::2]):
            label = head if n == 0 else parts[2 * n - 2] if parts[2 * n - 1] is not None else ""
            first = not place and not n
            said = _alone(segment.strip(), bool(label), first, lax=segment == line)
            if said:
                found.append((said, _rank(label), bool(item or raw[0].isspace())))
                last = place == len(lines) - 1 and 2 * n + 1 == len(parts)
                edge |= (first or last) and not label and not item
        early |= not place and any(rank for _, rank, _ in found)
        if len(found) > told:
            latest[-1:] = [True] * len(latest[-1:])
        elif not item and not raw[0].isspace():
            sections += 1
        named = None if item else _LABELLED.fullmatch(line)
        if named and not _ABOUT.fullmatch(named["name"].strip().lower()):
            labels.append(len(found) > told)
        head = line if len(found) == told and (item or _HEADING.fullmatch(raw)) else ""
    words = _SPOKEN.findall("\n".join(lines))
    count, worst = len(found), _worst(said for said, _, _ in found)
    overall = [said for said, rank, _ in found if rank == 2]
    if not overall and sum(rank for _, rank, _ in found) == 1:
        ends = found[:1] if early else found[-1:]
        overall = [said for said, rank, listed in ends if rank and (count == 1 or not listed)]
    if overall:
        return _Heard(_worst(overall), True, count, len(words))
    bad = any(not word.startswith("PASS") for word in words)
    lists = [one for one in items.values() if any(one)] + [labels] * (sum(labels) > 1)
    whole = count >= len(words) and all(map(all, lists))
    unclear = worst is Outcome.PASS and (bad or not (edge or whole))
    return _Heard(None if unclear else worst, False, count, len(words))


def _drop_choices(match: re.Match[str]) -> str:
    """Drop the words for all verdicts one after another, which choose none; keep a table's row."""
    words = _SPOKEN.findall(match[0])
    return "" if "\n" not in match[0] and len(set(words)) == len(words) else match[0]


def _plain_line(line: str) -> str:
    line = _TICKED.sub("", _MARKS.sub("", line)).strip().strip("#>").strip()
    return _ASIDE.sub("", _ASIDE.sub("", line))


def _alone(segment: str, labelled: bool, first: bool, *, lax: bool) -> Outcome | None:
    """Return the verdict that a segment is, or that it starts with where it says what is wrong."""
    if match := _ALONE.fullmatch(segment):
        said = read_outcome(match["word"]) if labelled or lax or match["word"].isupper() else None
        undone = _UNDONE.search(match["before"] + match["after"].strip("!"))
        return None if said is Outcome.PASS and undone else said
    match = _ALONE.match(segment) if labelled or first else None
    worse = match and match["word"].isupper() and not match["word"].startswith("PASS")
    return read_outcome(match["word"]) if match and worse else None
