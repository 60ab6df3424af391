"""Model text → records: every function gives a value or raises `ReplyError`."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from ipyrefine.core.ledger import ground
from ipyrefine.core.records import (
    Answer,
    CriterionScore,
    Critique,
    Finding,
    Record,
    Severity,
    Task,
)
from ipyrefine.core.verdicts import Judgement
from ipyrefine.errors import ReplyError

_FENCE = re.compile(r"^```[^\n`]*\n(.*?)(?:(?P<end>^```\s*$)|\Z)", re.MULTILINE | re.DOTALL)
# Small models end a text within its last line; that counts where at most another text follows.
_OPEN, _CLOSE = (rf"^[^\S\n]*<{mark}>[^\S\n]*$" for mark in ("text", "/text"))
_MARKED = re.compile(
    rf"{_OPEN}\n(.*?)(?:(?P<end>{_CLOSE}|</text>\s*(?={_OPEN}|\Z))|\Z)", re.MULTILINE | re.DOTALL
)
_Shape = TypeVar("_Shape", bound=Record)


class Written(Record):
    """A text as a writer gave it, told apart from what was thought before it."""

    text: str
    thoughts: str = ""


class Preference(Record):
    """Which of two texts a judge finds better, and why."""

    reason: str = ""
    better: Literal["first", "second", "same"]


def written(reply: str, form: Literal["code", "prose"], *, cut: bool = False) -> Written:
    """Tell the text of a reply from the thoughts before it.

    Code is the longest fenced block, or the whole reply if that is Python; prose is what
    stands between ``<text>`` marks on lines of their own, or at the reply's end within a line,
    or the whole reply without them.

    Args:
        reply: what the model wrote.
        form: how the text is marked.
        cut: whether the reply broke off, so that only a text with its end marked is whole.

    Raises:
        ReplyError: there is no text in it, or no whole one.
    """
    blocks = list((_FENCE if form == "code" else _MARKED).finditer(reply))
    if cut and not (blocks and blocks[-1]["end"]):
        raise ReplyError("it breaks off before the end of the text")
    found = max(blocks, key=lambda m: len(m.group(1).strip()), default=None)
    if found:
        text = found.group(1).strip("\n")
        thoughts = reply[: found.start()].strip()
    elif form == "prose":
        text, thoughts = _ended_within_a_line(reply.strip())
    elif _is_python(reply):
        text, thoughts = reply.strip(), ""
    else:
        raise ReplyError("it holds no code block")
    if not text.strip():
        raise ReplyError("it holds no text")
    return Written(text=text, thoughts=thoughts)


def _ended_within_a_line(reply: str) -> tuple[str, str]:
    """The text and the thoughts of a reply without marks on lines of their own."""
    if not reply.endswith("</text>"):
        return reply, ""
    thoughts, _, text = reply.removesuffix("</text>").rpartition("<text>")
    return text.strip(), thoughts.strip()


def critique(reply: str, text: str, least: int = 0) -> Critique:
    """Read a critique; findings whose quote is not in the text are marked ungrounded.

    Args:
        reply: what the model wrote.
        text: the text it is about.
        least: findings it must name.

    Raises:
        ReplyError: it is not the JSON that was asked for, or names too little.
    """
    findings = _told(_read(_CritiqueReply, reply).findings)
    if len(findings) < least:
        raise ReplyError(f"it names {len(findings)} of {least} findings")
    return Critique(findings=ground(findings, text))


def judgement(reply: str, task: Task) -> Judgement:
    """Read a judgement; every criterion is scored in range, every checklist item answered.

    Raises:
        ReplyError: it is not the JSON that was asked for, or a score or an answer is missing.
    """
    read = _read(_JudgeReply, reply)
    scores = {s.name: s for s in read.criteria}
    if missing := [c.name for c in task.criteria if c.name not in scores]:
        raise ReplyError(f"it gives no score for {', '.join(missing)}")
    said = {a.item: a.yes for a in read.checklist}
    numbered = list(enumerate(task.checklist, start=1))
    if unanswered := [str(n) for n, _ in numbered if n not in said]:
        raise ReplyError(f"it does not answer checklist item {', '.join(unanswered)}")
    return Judgement(
        criteria=tuple(
            CriterionScore(
                name=c.name,
                score=scores[c.name].score / 10,
                reason=scores[c.name].reason,
                quote=scores[c.name].quote,
            )
            for c in task.criteria
        ),
        checklist=tuple(Answer(question=item, yes=said[n]) for n, item in numbered),
        fixed=tuple(e.id for e in read.earlier if e.fixed),
        findings=_told(read.findings),
    )


def preference(reply: str) -> Preference:
    """Read which of two texts is better.

    Raises:
        ReplyError: it is not the JSON that was asked for.
    """
    return _read(Preference, reply)


class Splitter:
    """Tells text from thoughts while a reply streams, line by line.

    Args:
        form: how the text is marked, as in `written`.
    """

    def __init__(self, form: Literal["code", "prose"]) -> None:
        self._mark = "```" if form == "code" else "<"
        self._inside = False
        self._line = ""
        self._passing = False

    def feed(self, chunk: str) -> Iterator[tuple[Literal["text", "thinking"], str]]:
        """Give the pieces of a chunk with their kind; a line that may be a mark is held back."""
        for piece in chunk.splitlines(keepends=True):
            self._line += piece
            ended = self._line.endswith("\n")
            if not self._passing and self._may_be_mark():
                if ended:
                    self._inside = self._opens()
                    self._line = ""
                continue
            yield ("text" if self._inside else "thinking"), piece if self._passing else self._line
            self._passing = not ended
            if ended:
                self._line = ""

    def _opens(self) -> bool:
        """Whether a text begins after the mark that the line is."""
        return not self._inside if self._mark == "```" else self._line.strip() == "<text>"

    def _may_be_mark(self) -> bool:
        line = self._line.strip()
        if not line:
            return not self._line.endswith("\n")
        if line[0] != self._mark[0]:
            return False
        if self._mark == "```":
            return line.startswith("```") or "```".startswith(line)
        return any(mark.startswith(line) for mark in ("<text>", "</text>"))


class _FindingReply(Record):
    criterion: str
    quote: str = ""
    problem: str = ""
    fix: str = ""
    severity: Severity

    @model_validator(mode="after")
    def _names_what_blocks(self) -> "_FindingReply":
        if self.severity is Severity.BLOCKING and not self.problem.strip():
            raise ValueError("it says of a blocking weakness not what it is")
        return self

    def finding(self) -> Finding:
        return Finding(
            id="f0",
            criterion=self.criterion,
            severity=self.severity,
            quote=self.quote,
            problem=self.problem,
            fix=self.fix,
        )


def _told(findings: Iterable[_FindingReply]) -> tuple[Finding, ...]:
    """The findings, without the minor ones that say nothing: no weakness is meant by them."""
    return tuple(f.finding() for f in findings if f.problem.strip())


class _CritiqueReply(Record):
    findings: tuple[_FindingReply, ...]


class _ScoreReply(Record):
    name: str
    quote: str = ""
    reason: str = ""
    score: float = Field(ge=0, le=10, allow_inf_nan=False, strict=True)


class _EarlierReply(Record):
    id: str
    fixed: bool = Field(strict=True)


class _AnswerReply(Record):
    item: int = Field(strict=True)
    yes: bool = Field(strict=True)


class _JudgeReply(Record):
    findings: tuple[_FindingReply, ...] = ()
    earlier: tuple[_EarlierReply, ...] = ()
    checklist: tuple[_AnswerReply, ...] = ()
    criteria: tuple[_ScoreReply, ...]


def _read(shape: type[_Shape], reply: str) -> _Shape:
    try:
        return shape.model_validate(_json_object(reply))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ReplyError(f"{where or 'the reply'}: {first['msg']}") from None


def _json_object(reply: str) -> dict[str, Any]:
    """Find the JSON object in a reply that may have prose or a fence around it."""
    start = reply.find("{")
    if start < 0:
        raise ReplyError("it holds no JSON object")
    try:
        value, _ = json.JSONDecoder().raw_decode(reply, start)
    except (ValueError, RecursionError):
        raise ReplyError("its JSON is broken") from None
    if not isinstance(value, dict):
        raise ReplyError("its JSON is not an object")
    return value


def _is_python(reply: str) -> bool:
    try:
        return bool(ast.parse(reply).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
