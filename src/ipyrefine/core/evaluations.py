"""Read what an evaluator says of a text: the user's function's result, or a model's reply."""

import re
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from operator import itemgetter
from typing import Any, NamedTuple

from ipyrefine.core.findings import FEEDBACK
from ipyrefine.core.model import Finding, Judgement, Outcome, Severity
from ipyrefine.core.replies import json_objects, labelled
from ipyrefine.errors import ReplyError

# What evaluators call their fields; of several, the first that is there counts.
_WORDS = (
    "evaluation", "verdict", "status", "outcome", "decision", "judgement", "judgment", "overall",
)  # fmt: skip
_FLAGS = ("done", "pass", "passed", "passes", "approved", "accepted", "acceptable", "ready")
_SCORES = ("score", "overall score", "overall", "final score", "total score", "total", "rating")
_OF = ("max score", "out of", "max", "scale")
_FEEDBACK = (
    "feedback", "suggestions", "actions", "improvements", "issues", "problems", "weaknesses",
    "comments", "comment", "critique", "reasons", "reason", "reasoning", "explanation",
)  # fmt: skip
_PROBLEM = ("problem", "issue", "weakness", "action", "suggestion", "description", *_FEEDBACK)
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")

_WORD = r"(?:PASS(?:ED|ES)?|NEEDS[ _-]IMPROVEMENTS?|FAIL(?:ED|S|URE)?)"
_SPOKEN = re.compile(rf"\b{_WORD}\b")
_CHOICES = re.compile(rf"{_WORD}(?:[\s,/|\"'`*]+(?:or|and)?[\s\"'`*]*{_WORD})+")
_DENIED = re.compile(
    r"(?:\b(?:not|cannot|never|no|hardly|would|could|might|should|to|until|unless|almost|nearly)"
    r"|n't)\W+(?:\w+\W+){0,2}\Z",
    re.IGNORECASE,
)
_QUESTIONED = re.compile(r"[^\w?]*\?\W*(?:no|not|never|hardly)\b", re.IGNORECASE)
_LABEL = rf"(?:(?:{'|'.join(_WORDS)}|so)\W+)?"
_EDGE = re.compile(rf"\A\W*{_LABEL}{_WORD}\b\W*|\W*\b{_LABEL}{_WORD}\W*\Z", re.IGNORECASE)
_NUMBER = re.compile(
    r"\W*?(?P<number>-?\d+(?:\.\d+)?)\s*"
    r"(?:(?:/|out of|of)\s*(?P<of>\d+(?:\.\d+)?)|(?P<percent>%|per ?cent))?",
    re.IGNORECASE,
)
_OF_ALL = re.compile(r"-?\d+(?:\.\d+)? *(?:/|out of) *\d+|\d+(?:\.\d+)? *(?:%|per ?cent)")
_RATED = re.compile(r"scor|rat(?:e|ing)|scale|grade|mark|point|number", re.IGNORECASE)
_SCALE = re.compile(
    r"(?<![\d.])(?P<low>[01](?:\.0)?)\s*(?:\([^)]*\)\s*)?(?:-|–|\.\.+|to|and)\s*"  # noqa: RUF001
    r"(?P<high>\d+(?:\.0)?)(?![\d.]*\d)|(?:out of|/)\s*(?P<of>\d+)\b"
)


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

    These are JSON with a verdict, ``done`` or a score, and feedback as a text or a list; the same
    in tags or on labelled lines; the last verdict that is not denied, with feedback around it; and
    a number.

    Args:
        reply: what it wrote.
        prompt: what it was asked, which may name the scale of scores; else they go from 0 to 1.

    Raises:
        ReplyError: it has none of these shapes, or a score fits no scale that is named.
    """
    said = _from_json(reply) or _from_labels(reply) or _from_words(reply)
    if said is None:
        raise ReplyError("it holds no verdict, done or score")
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
        Finding(criterion=FEEDBACK, severity=severity, problem=text) for text in texts if text
    )


def read_fields(fields: Mapping[str, Any], *, nested: bool = True) -> Said | None:
    """Return what named values say, or None if they hold neither a verdict nor a score.

    Args:
        fields: the values by their names.
        nested: whether a verdict may stand in a value that is a dict itself.
    """
    named = {re.sub(r"[_-]", " ", str(name).lower()): value for name, value in fields.items()}
    spoke = [read_outcome(named[name]) for name in (*_WORDS, *_FLAGS) if _holds(named, name)]
    outcome = next(filter(None, spoke), None)
    value = next((named[name] for name in _SCORES if _holds(named, name)), None)
    score, of = _number(value)
    if outcome is None and score is None:
        inner = (
            read_fields(one, nested=False)
            for one in named.values()
            if nested and isinstance(one, dict)
        )
        if said := next((one for one in inner if one and one.outcome), None):
            return said
        if spoke or value is not None:
            return None
        score = _mean(named)
    of = of or next((_number(named[name])[0] for name in _OF if name in named), None)
    if outcome is None and score is None:
        return None
    found = next((named[name] for name in _FEEDBACK if _holds(named, name)), ())
    return Said(outcome, score, of, tuple(found) if isinstance(found, list | tuple) else (found,))


def read_outcome(value: Any) -> Outcome | None:
    """Return the verdict that a bool, or one word as a text, gives; None where it gives none."""
    if isinstance(value, bool):
        return Outcome.PASS if value else Outcome.NEEDS_IMPROVEMENT
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    if word in _TRUE or re.fullmatch(r"pass(ed|es)?", word):
        return Outcome.PASS
    if re.fullmatch(r"fail(ed|s|ure)?", word):
        return Outcome.FAIL
    improve = word in _FALSE or re.fullmatch(r"needs improvements?", word)
    return Outcome.NEEDS_IMPROVEMENT if improve else None


def _holds(named: Mapping[str, Any], name: str) -> bool:
    return named.get(name) not in (None, "", [], ())


def _mean(named: Mapping[str, Any]) -> float | None:
    for value in named.values():
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            items = [one.get("score") if isinstance(one, dict) else one for one in items]
            scores = [score for score, _ in map(_number, items) if score is not None]
            if scores and len(scores) == len(items):
                return sum(scores) / len(scores)
    return None


def _number(value: Any) -> tuple[float | None, float | None]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), None
    match = _NUMBER.match(value) if isinstance(value, str) else None
    if not match:
        return None, None
    full = 100.0 if match["percent"] else float(match["of"]) if match["of"] else None
    return float(match["number"]), full


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
    read = [(len(one), said) for _, one in json_objects(reply) if (said := read_fields(one))]
    return max(reversed(read), key=itemgetter(0))[1] if read else None  # not one that it quotes


def _from_labels(reply: str) -> Said | None:
    before, parts = labelled(reply, (*_WORDS, *_SCORES, *_FEEDBACK, *_FLAGS))
    fields: dict[str, Any] = {}
    for name, text in parts:
        first, _, rest = text.partition("\n")
        if name not in _FEEDBACK and rest.strip() and "feedback" not in fields:
            fields["feedback"] = rest.strip()  # what follows a verdict on its own line
        fields[name] = text if name in _FEEDBACK else _spoken(first) or first
    if not any(name in fields for name in _FEEDBACK):
        fields["feedback"] = before
    return read_fields(fields)


def _from_words(reply: str) -> Said | None:
    outcome = _spoken(reply)
    if outcome is None:
        before, _, last = reply.strip().rpartition("\n")
        match = _NUMBER.match(last)
        if match and not last[match.end() :].strip(" .*_`"):
            return Said(None, *_number(last), (before,))
        rated = [
            m for line in reply.splitlines() if _RATED.search(line) for m in _OF_ALL.findall(line)
        ]
        return Said(None, *_number(rated[-1]), (reply,)) if rated else None
    return Said(outcome, feedback=(_EDGE.sub("", reply).strip(),))


def _spoken(text: str) -> Outcome | None:
    """Return the last verdict in words that is not denied; a PASS that is denied needs work."""
    text = _CHOICES.sub("", text)
    denied = False
    outcome = None
    for match in _SPOKEN.finditer(text):
        if _DENIED.search(text[: match.start()]) or _QUESTIONED.match(text[match.end() :]):
            denied |= match[0].startswith("PASS")
        else:
            outcome = read_outcome(match[0])
    return outcome or (Outcome.NEEDS_IMPROVEMENT if denied else None)
