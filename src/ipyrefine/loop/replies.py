"""Model text → records: every function gives a value or raises `ReplyError`."""

import ast
import difflib
import json
import re
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from ipyrefine.errors import ReplyError
from ipyrefine.loop.records import Change, CriterionScore, Critique, Finding, Record, Severity, Task
from ipyrefine.loop.verdicts import Judgement, ground

_FENCE = re.compile(r"^```[^\n`]*\n(.*?)(?:^```\s*$|\Z)", re.MULTILINE | re.DOTALL)
_MARKED = re.compile(r"^\s*<text>\s*\n(.*?)(?:^\s*</text>\s*$|\Z)", re.MULTILINE | re.DOTALL)
_CHANGE = re.compile(r"^[\s*\-]*(f\d+)\W*:\W*(.+?)\s*$", re.MULTILINE)
_Shape = TypeVar("_Shape", bound=Record)
_EXACT_LINES = 1_000
_NEAR = 3  # lines around a quote within which a change counts as touching it


class Written(Record):
    """A text as a writer gave it, told apart from what was thought before it."""

    text: str
    thoughts: str = ""


def written(reply: str, form: Literal["code", "prose"]) -> Written:
    """Tell the text of a reply from the thoughts before it.

    Code is the longest fenced block, or the whole reply if that is Python; prose is what
    stands between ``<text>`` marks, or the whole reply without them.

    Raises:
        ReplyError: there is no text in it.
    """
    found = _longest(_FENCE if form == "code" else _MARKED, reply)
    if found:
        text = found.group(1).strip("\n")
        thoughts = reply[: found.start()].strip()
    elif form == "prose" or _is_python(reply):
        text, thoughts = reply.strip(), ""
    else:
        raise ReplyError("it holds no code block")
    if not text.strip():
        raise ReplyError("it holds no text")
    return Written(text=text, thoughts=thoughts)


def changes(thoughts: str, findings: tuple[Finding, ...], old: str, new: str) -> tuple[Change, ...]:
    """Read what a revision says it changed, and confirm each claim against the two texts."""
    by_id = {finding.id: finding for finding in findings}
    claims = {m.group(1): m.group(2) for m in _CHANGE.finditer(thoughts) if m.group(1) in by_id}
    touched = _touched_lines(old, new)
    return tuple(
        Change(finding=id_, summary=summary, confirmed=_near(by_id[id_].quote, old, touched))
        for id_, summary in claims.items()
    )


def critique(reply: str, text: str) -> Critique:
    """Read a critique; findings whose quote is not in the text are marked ungrounded.

    Raises:
        ReplyError: it is not the JSON that was asked for.
    """
    read = _read(_CritiqueReply, reply)
    return Critique(findings=ground((f.finding() for f in read.findings), text))


def judgement(reply: str, task: Task) -> Judgement:
    """Read a judgement; every criterion has to be scored exactly in range.

    Raises:
        ReplyError: it is not the JSON that was asked for, or a score is missing.
    """
    read = _read(_JudgeReply, reply)
    scores = {s.name: s for s in read.criteria}
    missing = [c.name for c in task.criteria if c.name not in scores]
    if missing:
        raise ReplyError(f"it gives no score for {', '.join(missing)}")
    return Judgement(
        criteria=tuple(
            CriterionScore(
                name=c.name, score=scores[c.name].score / 10, reason=scores[c.name].reason
            )
            for c in task.criteria
        ),
        fixed=tuple(e.id for e in read.earlier if e.fixed),
        findings=tuple(f.finding() for f in read.findings),
    )


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
                    self._inside = not self._inside
                    self._line = ""
                continue
            yield ("text" if self._inside else "thinking"), piece if self._passing else self._line
            self._passing = not ended
            if ended:
                self._line = ""

    def _may_be_mark(self) -> bool:
        line = self._line.strip()
        if self._mark == "```":
            return line.startswith("```") or "```".startswith(line)
        return any(mark.startswith(line) for mark in ("<text>", "</text>")) and bool(line)


class _FindingReply(Record):
    criterion: str
    quote: str = ""
    problem: str = Field(min_length=1)
    fix: str = ""
    severity: Severity

    def finding(self) -> Finding:
        return Finding(
            id="f0",
            criterion=self.criterion,
            severity=self.severity,
            quote=self.quote,
            problem=self.problem,
            fix=self.fix,
        )


class _CritiqueReply(Record):
    findings: tuple[_FindingReply, ...]


class _ScoreReply(Record):
    name: str
    reason: str = ""
    score: float = Field(ge=0, le=10, allow_inf_nan=False, strict=True)


class _EarlierReply(Record):
    id: str
    fixed: bool = Field(strict=True)


class _JudgeReply(Record):
    findings: tuple[_FindingReply, ...] = ()
    earlier: tuple[_EarlierReply, ...] = ()
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


def _longest(pattern: re.Pattern[str], reply: str) -> re.Match[str] | None:
    return max(pattern.finditer(reply), key=lambda m: len(m.group(1)), default=None)


def _is_python(reply: str) -> bool:
    try:
        return bool(ast.parse(reply).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _touched_lines(old: str, new: str) -> set[int]:
    """Number the lines of the old text that a new one changed, or changed next to."""
    a, b = old.splitlines(), new.splitlines()
    # The exact comparison of thousands of equal lines would hold up the kernel for seconds.
    matcher = difflib.SequenceMatcher(a=a, b=b, autojunk=max(len(a), len(b)) > _EXACT_LINES)
    return {
        line
        for tag, start, end, _, _ in matcher.get_opcodes()
        if tag != "equal"
        for line in range(start, max(end, start + 1))
    }


def _near(quote: str, old: str, touched: set[int]) -> bool:
    """Whether a change lies near a quoted place; without a quote any change will do."""
    at = old.find(quote)
    if not quote or at < 0:
        return bool(touched)
    first = old.count("\n", 0, at)
    last = first + quote.count("\n")
    return any(first - _NEAR <= line <= last + _NEAR for line in touched)
