"""Read a critic's reply: tests, findings, questions, and whether the text is ready."""

import re
from typing import Any, get_args

from ipyrefine.core.expectations import (
    Comparison,
    Critique,
    contains_quote,
    in_force,
    read_tests,
)
from ipyrefine.core.findings import (
    VERDICT,
    drop_known,
    ground,
    regress,
    same,
    up_for_review,
    weigh,
    with_ids,
)
from ipyrefine.core.model import Finding, Severity
from ipyrefine.core.replies import json_objects
from ipyrefine.core.run import Iteration, Run
from ipyrefine.errors import ReplyError

_PYTHON = re.compile(
    r"```(?:python|py)?[^\S\n]*\n(?P<code>.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE
)
_KEYS = {"findings", "questions", "ready", "tests", "sources"}
_FIELD = "$."  # starts the criterion of a finding about the source of a field's value


def parse_critique(reply: str, text: str, source: str | None = None) -> Critique:
    """Read a critique: a JSON object, and blocks of Python with functions named ``test…``.

    Tests may stand in a field of the object, too. A finding whose place is not in the text stays
    without a place. A field of data whose value rests on words that its source does not contain is
    a finding.

    Args:
        reply: what the model wrote.
        text: the text it is about.
        source: what the task is about, where the text is data by a schema.

    Raises:
        ReplyError: nothing of it can be read.
    """
    found = [one for _, one in json_objects(reply) if _KEYS & one.keys()]
    fields = found[-1] if found else {}
    sources = [m["code"] for m in _PYTHON.finditer(reply)]
    given = fields.get("tests")
    sources += [_words(one, flat=False) for one in _items(given) or [given]]
    tests = [test for source in dict.fromkeys(sources) for test in read_tests(source)]
    if not fields and not tests:
        raise ReplyError("it holds neither tests nor a JSON object with findings")
    spoken = _words(fields.get("than_before")).lower()
    compared = [one for one in get_args(Comparison) if one in spoken]
    findings = [_finding(item) for item in _items(fields.get("findings"))]
    if source is not None and isinstance(behind := fields.get("sources"), dict):
        findings += [_unsourced(str(path), words, source) for path, words in behind.items()]
    return Critique(
        findings=ground((one for one in findings if one), text),
        expectations=tuple(tests),
        questions=tuple(filter(None, map(_question, _items(fields.get("questions"))))),
        ready=ready if isinstance(ready := fields.get("ready"), bool) else None,
        reason=_words(fields.get("because")),
        fixed=tuple(filter(None, map(_words, _items(fields.get("fixed"))))),
        upheld=tuple(filter(None, map(_words, _items(fields.get("upheld"))))),
        compared=compared[0] if len(compared) == 1 else None,
        lost=_words(fields.get("lost")),
    )


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _finding(item: object) -> Finding | None:
    item = item if isinstance(item, dict) else {"problem": item}
    if not (problem := _words(item.get("problem"))):
        return None
    blocks = item.get("blocks", item.get("severity") != "minor")
    return Finding(
        criterion=_words(item.get("criterion")),
        severity=Severity.BLOCKING if blocks is True else Severity.MINOR,
        demand=_words(item.get("task")),
        quote=_words(item.get("place"), flat=False),
        problem=problem,
        fix=_words(item.get("fix")),
    )


def _unsourced(path: str, words: object, source: str) -> Finding | None:
    """Return a finding where the words behind a field's value do not stand in its source."""
    path, quote = path.removeprefix("$").lstrip("."), _words(words)
    if quote and contains_quote(source, quote):
        return None
    return Finding(
        criterion=f"{_FIELD}{path}",
        severity=Severity.BLOCKING,
        quote=f'"{re.split(r"[.[]", path)[-1]}"' if "]" not in path[-1:] else "",
        problem=f"{path}: “{quote}” is not in the source." if quote else f"{path} has no source.",
        fix="Take the value from the source, or leave it out.",
    )


def _question(item: object) -> str:
    if not isinstance(item, dict):
        return _words(item)
    options = " / ".join(map(_words, _items(item.get("options"))))
    question = _words(item.get("question"))
    return f"{question} ({options})" if question and options else question


def _words(value: object, *, flat: bool = True) -> str:
    words = value if isinstance(value, str) else ""
    return " ".join(words.split()) if flat else words.strip("\n")


def settle(run: Run, base: Iteration, critique: Critique) -> tuple[Critique, tuple[str, ...]]:
    """Return a critique with what becomes of its findings in the run.

    Args:
        run: the run.
        base: the text it is about.
        critique: as it was read, with those of its tests that the run takes.

    Returns:
        The critique with the new findings, by their ids, those that are fixed, and the contested
        ones that it stands by or lets go; and the ids of resolved findings that it names again.
    """
    named = critique.findings
    parent = None if base.parent is None else run.iterations[base.parent]
    new = weigh(drop_known(run, named, base.findings), base, parent)
    regressed = tuple(f.id for f in base.findings if regress(f, named).status is not f.status)
    fixed = critique.fixed
    if critique.ready:  # what blocks cannot be handed over, so that none of it is left
        standing = (f.id for f in up_for_review(base) if f.blocks or f.disputed or not fixed)
        fixed = tuple(dict.fromkeys([*fixed, *standing]))
    unsourced = [f for f in named if f.criterion.startswith(_FIELD)]
    named_again = {f.id for f in base.findings if any(same(f, other) for other in unsourced)}
    fixed = tuple(one for one in fixed if one not in named_again)
    waiting = [f for f in base.findings if f.is_open and f.unanswered]
    again = {f.id for f in waiting if any(same(f, other) for other in named)}
    upheld = tuple(dict.fromkeys([*critique.upheld, *sorted(again)]))
    dropped = tuple(f.id for f in waiting if f.id not in upheld and not critique.failure)
    stands = any(f.id in upheld for f in waiting)
    if critique.ready is False and not (new or stands or in_force(critique.expectations)):
        problem = critique.reason or "The critic takes the text for not ready, without a reason."
        new = (Finding(criterion=VERDICT, severity=Severity.BLOCKING, problem=problem),)
    findings = with_ids(run, new)
    settled = critique.replace(findings=findings, fixed=fixed, upheld=upheld, dropped=dropped)
    return settled, regressed
