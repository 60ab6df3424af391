"""Read what an evaluator says of a text: a model's reply, or what a user's function returned."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from itertools import chain
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from ipyrefine.core.fences import read_objects
from ipyrefine.core.model import Outcome, refused
from ipyrefine.core.table import Critique, Point, Reading
from ipyrefine.errors import ReplyError, UsageError

_PASS = Outcome.PASS
_ORDER = [_PASS, Outcome.NEEDS_IMPROVEMENT, Outcome.FAIL]  # the worst last
_UNCLEAR = "it holds no verdict, done or score that stands by itself"
_DECORATION = " \t\n*_`\"'“”„«»"
_NAMES = "evaluation|verdict|score|feedback"
_PART = re.compile(  # a tag, or a label on a line of its own
    rf"(?:^[ \t]*|(?<=>))<(?P<tag>{_NAMES})>|</(?:{_NAMES})>"
    rf"|^[ \t]*(?:#+[ \t]+)?[*_]*(?P<label>{_NAMES})[*_ \t]*:[*_]*",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = r"(?:\d*\.\d+|\d+(?:,\d\d?)?)"  # 1,000 isn't a decimal
_SCORE = re.compile(
    rf"({_NUMBER})\s*(?:(?:/|out of)\s*({_NUMBER})|(%|per ?cent))?\.?[ \t]*(?:\n|$)", re.IGNORECASE
)
_SCALE = re.compile(
    r"(?<![\d.])(\d+(?:\.\d+)?)\s*(?:\([^)]*\)\s*)?(?:-|–|\.\.+|to|and)\s*"  # noqa: RUF001
    r"(\d+(?:\.\d+)?)(?![\d.]*\d)|(?:out of|/)\s*(\d+)\b"
)
_RATED = re.compile(r"\b(?:scor|rat(?:e|ing)|scale|grade|mark|point|number)", re.IGNORECASE)
_NAMED = re.compile(rf"\b(?:pass(?:e[sd])?|done)\b|{_RATED.pattern}", re.IGNORECASE)


class Scored(BaseModel):
    """The reply of the evaluator that ships."""

    score: Annotated[float, Field(ge=0, le=10)]
    feedback: str | list[str] = ""
    fixed: list[str] = []


class Said(NamedTuple):
    """What an evaluator says of a text.

    Attributes:
        outcome: the verdict that it gives; None where the score decides.
        score: from 0 to 1, or None.
        feedback: what it wants changed: texts and dicts.
    """

    outcome: Outcome | None = None
    score: float | None = None
    feedback: tuple[Any, ...] = ()


def read_evaluation(reply: str, own: Mapping[str, str] = {}) -> Critique:
    """Return what the user's evaluator says; its feedback are remarks without ids.

    A verdict is JSON, a tag, a line like ``Verdict: FAIL`` or the whole reply. Words may follow a
    No; beside a Yes only feedback in a place of its own may stand, as they might take it back.

    Args:
        reply: what it wrote.
        own: the user's prompts, with its words for Yes and No and its scale if they declare any.

    Raises:
        ReplyError: it says nothing clear.
    """
    answers, said = Answers(own), None
    with suppress(RecursionError):
        said = answers.json(reply) if read_objects(reply) else answers.text(reply)
    if said is None:
        beside = f"only feedback in a place of its own may stand beside {answers.yes}"
        raise ReplyError(beside if answers.yes in reply else _UNCLEAR)
    points = feedback_points(said.feedback, blocking=said.outcome is not _PASS)
    listed = (one.get("fixed") for one in read_objects(reply))
    fixed = next((one for one in listed if isinstance(one, list)), [])
    reading = Reading(says=said.outcome, score=said.score)
    return Critique(reading=reading, remarks=points, fixed=tuple(map(str, fixed)))


def read_score(reply: str) -> Critique:
    """Return what the evaluator that ships says; its feedback are remarks without ids.

    Raises:
        ReplyError: it isn't the JSON object that was asked for.
    """
    found = read_objects(reply)
    if len(found) != 1 or not _is_all(reply, found[0]):
        raise ReplyError("it isn't one JSON object and nothing else")
    try:
        read = Scored.model_validate(found[0])
    except ValidationError as error:
        raise ReplyError(str(refused(error, "the object")).rstrip(".")) from None
    feedback = [read.feedback] if isinstance(read.feedback, str) else read.feedback
    points = feedback_points(feedback, blocking=True)
    return Critique(reading=Reading(score=read.score / 10), remarks=points, fixed=tuple(read.fixed))


def as_feedback(reply: str) -> tuple[Point, ...]:
    """Return the words of a reply that says nothing clear as remarks that don't block."""
    found = [one.get("feedback") for one in read_objects(reply)]
    listed = next((one for one in found if isinstance(one, list)), [reply])
    return feedback_points(listed, blocking=False)


def feedback_points(feedback: Iterable[Any], *, blocking: bool) -> tuple[Point, ...]:
    """Return an evaluator's feedback as remarks, each as it stands."""
    return tuple(
        Point(source="evaluator", criterion="feedback", words=words, blocking=blocking)
        for words in filter(None, map(_text, feedback))
    )


def require_answer(own: Mapping[str, str]) -> None:
    """Refuse an evaluator's prompt that asks for no word for Yes and no score.

    Raises:
        UsageError: it does.
    """
    prompt = own.get("judge", "")
    if prompt and not ({"pass", "scale"} & {*own} or _NAMED.search(prompt) or read_scales(prompt)):
        raise UsageError(
            'Your evaluator\'s prompt names no word for Yes. Add "pass": "APPROVED" to the '
            "prompts, or ask in it for PASS, FAIL or a score."
        )


def read_scales(text: str) -> list[tuple[float, float]]:
    """Return the scales that a text names, like ``1 to 10``."""
    found = ((float(low or 0), float(high or of)) for low, high, of in _SCALE.findall(text))
    return [(low, high) for low, high in found if low < high]


class Answers:
    """How an evaluator answers.

    Args:
        own: the user's prompts, with its words for Yes and No and its scale if they declare any.

    Attributes:
        yes: its word for Yes.
    """

    def __init__(self, own: Mapping[str, str] = {}) -> None:
        self.yes, fail = own.get("pass", _PASS), own.get("fail", Outcome.FAIL)
        needs = Outcome.NEEDS_IMPROVEMENT
        bad = {"FAIL": Outcome.FAIL, fail: Outcome.FAIL, needs: needs, "NEEDS IMPROVEMENT": needs}
        self._words = {self.yes: _PASS, **bad}
        choice = "|".join(map(re.escape, bad))
        self._bad = re.compile(rf"(?<!\w)(?:{choice})(?!\w)")
        self._bad_value = re.compile(rf"""['"](?:{choice})\W?['"](?!:)""", re.IGNORECASE)
        sentences = re.split(r"(?<=[.!?;])\s|\n", own.get("judge", ""))
        rated = "\n".join(filter(_RATED.search, sentences))
        named = [one for one in read_scales(rated) if one[0] <= 1]
        self._scales = read_scales(own.get("scale", "")) or named or [(0.0, 1.0)]

    def word(self, text: str) -> Said | None:
        """Return the verdict that a text is, or a No that it starts with; else None."""
        text = text.lstrip(_DECORATION)
        for word, outcome in self._words.items():
            same, rest = text[: len(word)].casefold() == word.casefold(), text[len(word) :]
            if same and not re.match(r"[\w?/|-]", rest):
                why = rest.lstrip(" \t*_`\"'.:,;!-–—").strip()  # noqa: RUF001
                unsure = outcome is _PASS and _bare(rest)
                return None if unsure else Said(outcome, feedback=(why,) * bool(why))
        return None

    def score(self, value: Any) -> float:
        """Return a score from 0 to 1.

        Raises:
            ReplyError: it is none, or fits no scale that was named.
        """
        match = _SCORE.match(_bare(f"{value:.12f}" if isinstance(value, float) else str(value)))
        if match is None:
            raise ReplyError(_UNCLEAR)
        number, of, percent = match.groups()
        score = float(number.replace(",", "."))
        most = float(of.replace(",", ".")) if of else 100.0
        for low, high in [(0.0, most)] if of or percent else self._scales:
            if low <= score <= high and high:
                return score / high
        raise ReplyError(f"its score {score:g} fits no scale that was named; write it like 8/10")

    def items(self, items: Iterable[Any]) -> Said | None:
        """Return the worst of several verdicts; None where one of them is none."""
        read = [self._item(one) or Said() for one in items]
        if not read or None in (outcomes := [one.outcome for one in read]):
            return None
        worst = max(filter(None, outcomes), key=_ORDER.index)
        why = (one.feedback for one in read if one.outcome is worst)
        return Said(worst, feedback=tuple(chain.from_iterable(why)))

    def fields(self, fields: Mapping[str, Any], beside: str = "") -> Said | None:
        """Return what named values say, with words that stand beside them; None where unclear.

        Without a verdict and a score every field but the feedback has to be a criterion's verdict.

        Raises:
            ReplyError: its scores differ, or fit no scale that was named.
        """
        named = {str(name).strip().lower(): value for name, value in fields.items()}
        given = named.pop("feedback", None)
        verdicts = [named.pop(name) for name in ("evaluation", "verdict") if name in named]
        flags = [str(named.pop(name)).lower() for name in ("done", "passed") if name in named]
        verdicts += [{"true": True, "false": False}.get(one) for one in flags]
        rates = [named.pop(name) for name in [*named] if name.endswith("score")]
        said = self.items(verdicts or ([] if rates else named.values()))
        if said is None and (verdicts or not rates):
            return None
        outcome, score, why = said or Said()
        hidden = self._bad.search(beside) or self._bad_value.search(str(named))
        if hidden and outcome in (None, _PASS):
            return None
        with suppress(ReplyError) if outcome else nullcontext():  # a verdict decides all the same
            score, *others = {*map(self.score, rates)} or [None]
            if others:
                raise ReplyError("its overall scores differ")
        given = given if isinstance(given, list | tuple) else [given]
        if not any(given) and outcome is not _PASS:
            given = [*(why or [_text(named)]), beside]
        return Said(outcome, score, tuple(filter(None, given)))

    def json(self, reply: str) -> Said | None:
        """Return what the JSON of a reply says; None where that isn't clear.

        Raises:
            ReplyError: its scores differ, or fit no scale that was named.
        """
        found, before = read_objects(reply), re.sub(r"[`~]{3,}\w*", "", reply.partition("{")[0])
        said = self.items(found) if len(found) > 1 else self.fields(found[0], before.strip())
        clear = said and (said.outcome in _ORDER[1:] or _is_all(reply, found[0]))
        return said if clear else None

    def text(self, reply: str) -> Said | None:
        """Return what a reply says by tags, labels or as a whole; None where that isn't clear.

        Raises:
            ReplyError: its scores differ, or fit no scale that was named.
        """
        named = _parts(reply)
        head, *rest = named.pop("")
        if not named.keys() & {"evaluation", "verdict", "score"}:
            named["score" if _SCORE.match(_bare(head)) else "verdict"].append(head)
            head = ""
        rates = named.pop("score", [])
        rest += [one.partition("\n")[2].strip() for one in rates]
        scores = {f"{number} score": one for number, one in enumerate(rates)}
        said = self.fields({**named, **scores}, "\n".join(filter(None, [head, *rest])))
        return None if said and said.outcome is _PASS and any(rest) else said

    def _item(self, value: Any) -> Said | None:
        match value:
            case str():
                return self.word(value)
            case bool():
                return Said(_PASS if value else Outcome.NEEDS_IMPROVEMENT)
            case dict():
                return self.fields(value)
            case list() | tuple():
                return self.items(value)
        return None


def _bare(text: str) -> str:
    bare = text.strip(_DECORATION)
    ends = (".", "!", "。", "！")  # noqa: RUF001
    return bare[:-1].rstrip(_DECORATION) if bare.endswith(ends) else bare


def _parts(reply: str) -> defaultdict[str, list[str]]:
    """Return the parts of a reply by the names of their tags or labels; the others have none."""
    named, start, name = defaultdict[str, list[str]](list), 0, ""
    for mark in _PART.finditer(reply):
        named[name].append(reply[start : mark.start()].strip())
        start, name = mark.end(), (mark["tag"] or mark["label"] or "").lower()
    named[name].append(reply[start:].strip())
    return named


def _is_all(reply: str, fields: dict[str, Any]) -> bool:
    """Return True if nothing follows an object, and nothing like one stands before it."""
    with suppress(ValueError, RecursionError):
        body = reply[reply.index("{") :].rstrip("`~ \t\n")
        return bool(json.loads(body, strict=False) == fields)
    return False


def _text(item: Any) -> str:
    """Return an item of feedback in words."""
    if isinstance(item, dict):
        item = "; ".join(f"{name}: {_text(one)}" for name, one in item.items() if one)
    return (", ".join(map(str, item)) if isinstance(item, list) else str(item or "")).strip()
