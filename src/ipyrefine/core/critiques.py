"""Read a critic's reply: findings, questions, whether the text is ready, and its tests."""

import ast
import re
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from ipyrefine.core import rank, readers
from ipyrefine.core.fences import Fence, find_objects, read_fences
from ipyrefine.core.model import one_line, refused
from ipyrefine.core.points import (
    as_shown,
    bare_no,
    drop_known,
    ground,
    is_bare_no,
    no_source,
    same,
    unasked,
    up_for_review,
    weigh,
    with_ids,
)
from ipyrefine.core.results import results_among
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import try_parse_expression, unparse
from ipyrefine.core.table import Comparison, Critique, Point, Reading
from ipyrefine.core.testing import is_critics, read_tests
from ipyrefine.core.unsourced import find_unsourced, rests_on_sources
from ipyrefine.errors import ReplyError

MAX_POINTS = 60  # findings, questions and tests that a critique may have
_MOST_OPTIONS = 5  # of a question
_NEEDED = ("findings", "ready")
# What may be half an answer, or another one; and a test.
_MORE = re.compile(r"^[ \t]*\{|[\"'](?:findings|ready)[\"']\s*:", re.MULTILINE | re.IGNORECASE)
_TEST = re.compile(r"^[ \t]*(?:async )?def test_", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:[-*]|\d+\.)[ \t]+", re.MULTILINE)  # the mark of a list's item
_BELOW = re.compile(r"\n\s*\n(?=\S)")  # a paragraph that is none of its own

_OneLine = AfterValidator(one_line)
_Line = Annotated[str, _OneLine]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), _OneLine]


class _Answer(BaseModel):
    """A part of a critic's JSON object, where null counts as missing."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: one for name, one in value.items() if one is not None}


class _Finding(_Answer):
    """A finding, whose fields are a point's."""

    words: _Words = Field(alias="problem")
    criterion: _Line = ""
    quote: _Line = Field("", alias="task")
    place: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    fix: _Line = ""
    test: _Line = ""
    blocking: bool = Field(True, alias="blocks")


class _Question(_Answer):
    question: _Words
    options: list[Any] = []
    call: str = ""


class _Said(_Answer):
    because: _Line = ""
    findings: list[_Finding]
    ready: bool
    questions: list[_Question | str] = []
    data: dict[str, _Line] = {}
    fixed: list[str] = []
    upheld: list[str] | None = None
    than_before: Comparison | None = None
    lost: _Line = ""
    unsourced: list[_Line] = []


def read_critique(reply: str, text: str, *, in_words: bool = False) -> Critique:
    """Read a critique: one JSON object, which ends the reply, with ``findings`` and ``ready``.

    A finding whose place is not in the text stays without a place. What else it leaves out is
    unanswered.

    Args:
        reply: the critic's.
        text: what it is about.
        in_words: whether it may be in words, as a template asks for it. Each item of a list is then
            a finding, or without one the whole reply.

    Raises:
        ReplyError: it is something else, or can't be read as one answer.
    """
    rest = _without(reply, [(one.start, one.end) for one in _code(reply)])
    found = find_objects(rest)
    prose = _without(rest, [(start, end) for start, end, _ in found])
    if in_words and prose.strip() and not found and not _MORE.search(prose):
        items = [_BELOW.split(one)[0] for one in _ITEM.split(rest)[1:]] or [rest]
        points = (Point(words=one_line(one)) for one in items[: MAX_POINTS + 1])
        return Critique(remarks=tuple(points), reading=Reading(ready=False))
    objects = [(rest[start:end], one) for start, end, one in found if one.keys() & {*_NEEDED}]
    if not objects or not rest.rstrip("`~ \t\n").endswith("}"):
        raise ReplyError('it does not end with one JSON object with "findings" and "ready"')
    written, given = objects[-1]
    twice = (len(re.findall(rf'(?i)"{name}"\s*:', written)) > 1 for name in _NEEDED)
    if any(twice) or _MORE.search(prose) or any(one != given for _, one in objects):
        raise ReplyError("it says more than once what it finds")
    if _TEST.search(prose) or "tests" in given:
        raise ReplyError("its tests are in no block that starts with ```python")
    try:
        said = _Said.model_validate(given)
    except ValidationError as error:
        raise ReplyError(str(refused(error, "it")).rstrip(".")) from None
    return _critique(said, text)


def read_tests_of(reply: str, text: str) -> list[Point]:
    """Read the tests of a reply about a text, from its blocks of Python."""
    found = [test for fence in _code(reply) for test in read_tests(fence.text, text)]
    return found[:MAX_POINTS]


def _without(reply: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        reply = reply[:start] + reply[end:]
    return reply


def _code(reply: str) -> list[Fence]:
    return [one for one in read_fences(reply) if one.tag.lower() in ("python", "py")]


def _critique(said: _Said, text: str) -> Critique:
    most = MAX_POINTS + 1  # one more tells that there are more
    remarks = [Point(**one.model_dump()) for one in said.findings[:most]]
    remarks += map(_question, said.questions[:most])
    quotes, fact = islice(said.data.items(), most), {"kind": "fact", "blocking": False}
    remarks += [Point(words=name, quote=quote, **fact) for name, quote in quotes]
    remarks += [no_source(words) for words in said.unsourced[:most] if words]
    reading = Reading(
        ready=said.ready, reason=said.because, compared=said.than_before, lost=said.lost
    )
    upheld = None if said.upheld is None else _ids(said.upheld)
    return Critique(
        remarks=ground(remarks, text), reading=reading, fixed=_ids(said.fixed), upheld=upheld
    )


def _ids(said: list[str]) -> tuple[str, ...]:
    """Return ids and names, which a reason may follow."""
    return tuple(found[0] for one in said if (found := re.search(r"\w+", one)))


def _question(said: _Question | str) -> Point:
    said = said if isinstance(said, _Question) else _Question(question=said)
    # A number, null or list of the JSON is shown as Python writes it.
    words = (one_line(one) if isinstance(one, str) else repr(one) for one in said.options)
    options = tuple(filter(None, words))[:_MOST_OPTIONS]
    call = try_parse_expression(said.call)
    differs = call and not isinstance(call, ast.Constant) and len(results_among(options)) > 1
    shown = unparse(call) if call and differs else ""
    fields = {"kind": "question", "criterion": "left open", "blocking": False}
    return Point(words=said.question, options=options, call=shown, **fields)


def together(first: Critique, again: Critique) -> Critique:
    """Return what a critic says in two replies about one text: no weakness and no No is lost."""
    left = (one for one in first.remarks if not any(same(one, o) for o in again.remarks))
    reading = again.reading if first.reading.ready else first.reading
    return again.replace(remarks=(*again.remarks, *left), reading=reading)


def settle(run: Run, base: Iteration, critique: Critique) -> tuple[Critique, tuple[str, ...]]:
    """Merge a critique, with those of its tests that the run takes, into the run.

    Return it with the new points, by their ids, those that are mended, and the contested ones that
    it stands by or lets go; and the ids of mended points that it names again. Only what it was
    asked about and names as fixed is mended; where it doesn't say what it upholds, it has let
    nothing go.
    """
    named, cells = [one for one in critique.remarks if one.kind != "fact"], run.cells(base)
    facts = [one for one in critique.remarks if one.kind == "fact"]
    if rests_on_sources(run):
        named += map(no_source, find_unsourced(run, base.text, (one.place for one in facts)))
    named += unasked(run, base, facts)
    reading = critique.reading
    late = reading.ready and base.parent is not None
    parent = run.iterations[base.parent or 0] if late else None
    verdict = rank.verdict(run, base) if base.verdict else None
    by_evidence = bool(verdict and verdict.passed and verdict.basis != "evaluator")
    known = [one for one in cells if one.point.source != "run"]  # what it asks, a reader decides
    new = weigh(drop_known(run, named, known), parent, by_evidence=by_evidence)
    mended = (c for c in cells if c.result.passed and c.point.said and not c.point.dropped)
    regressed = tuple(
        one.id for one in mended if any(same(as_shown(one), other) for other in named)
    )
    again = {one.id for one in cells if any(same(one.point, other) for other in named)}
    said = [one for one in new if one.blocking or one.kind == "remark"]
    said += [one.point for one in cells if one.id in again and not one.point.dropped]
    bare = [one for one in cells if is_bare_no(one, "critic")]
    if reading.ready is False and not said and readers.reads(run):
        words = reading.reason or "The critic says that it isn't ready, without a reason."
        heard = {one.id for one in bare if one.is_open and one.words == words}
        new, again = (*new, *[bare_no("critic", words)] * (not heard)), again | heard
    shown = {one.id for one in up_for_review(run, base)} - again
    open_ids = {one.id for one in cells if one.is_open}
    waiting = {
        id_: one
        for id_, one in run.points.items()
        if one.unanswered and not one.dropped and (is_critics(one) or id_ in open_ids)
    }
    upheld = {*(critique.upheld or ())}
    kept = [i for i, one in waiting.items() if {i, one.words} & upheld or i in again]
    answers = critique.upheld is not None and not reading.failure
    fixed = dict.fromkeys(critique.fixed)
    if not reading.failure:  # another reading takes the place of a bare No
        fixed |= dict.fromkeys(one.id for one in bare)
    every = with_ids(run.points, [*new, *critique.tests])
    settled = critique.replace(
        remarks=every[: len(new)],
        tests=every[len(new) :],
        fixed=tuple(one for one in fixed if one in shown),
        upheld=tuple(kept),
        dropped=tuple(id_ for id_ in waiting if answers and id_ not in kept),
    )
    return settled, regressed
