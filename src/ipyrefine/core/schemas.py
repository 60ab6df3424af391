"""JSON schemas of structured replies: flat, closed, every field required, every list bounded."""

from collections.abc import Sequence
from typing import Any

from ipyrefine.core.records import Finding, Task

SCOPE = "scope"  # what a finding falls under that is about something nobody asked for


def critique(task: Task, count: int) -> dict[str, Any]:
    """Describe a critique: a bounded list of findings."""
    names = task.categories or tuple(criterion.name for criterion in task.criteria)
    return _object(findings=_findings(names, least=count, most=max(count, 6)))


def judgement(task: Task, standing: Sequence[Finding]) -> dict[str, Any]:
    """Describe a judgement: findings first, so that the scores follow from them."""
    names = tuple(criterion.name for criterion in task.criteria)
    score = _object(
        name={"type": "string", "enum": list(names)},
        quote={"type": "string"},
        reason={"type": "string"},
        score={"type": "integer", "enum": list(range(11))},
    )
    parts: dict[str, Any] = {"findings": _findings(names, least=0, most=4)}
    if standing:
        ids = [finding.id for finding in standing]
        review = _object(id={"type": "string", "enum": ids}, fixed={"type": "boolean"})
        parts["earlier"] = _array(review, least=len(ids), most=len(ids))
    if task.checklist:
        count = len(task.checklist)
        item = {"type": "integer", "enum": list(range(1, count + 1))}
        answer = _object(item=item, yes={"type": "boolean"})
        parts["checklist"] = _array(answer, least=count, most=count)
    parts["criteria"] = _array(score, least=len(names), most=len(names))
    return _object(**parts)


def any_judgement(task: Task) -> dict[str, Any]:
    """Describe every judgement of a task alike, whichever earlier findings it is asked about."""
    parts = judgement(task, ())["properties"]
    earlier = _object(id={"type": "string"}, fixed={"type": "boolean"})
    first = {"findings": parts.pop("findings"), "earlier": {"type": "array", "items": earlier}}
    return _object(**first, **parts)


def preference() -> dict[str, Any]:
    """Describe which of two texts is better, the reason first."""
    return _object(
        reason={"type": "string"},
        better={"type": "string", "enum": ["first", "second", "same"]},
    )


def _findings(names: Sequence[str], *, least: int, most: int) -> dict[str, Any]:
    finding = _object(
        criterion={"type": "string", "enum": list(dict.fromkeys([*names, SCOPE]))},
        quote={"type": "string"},
        problem={"type": "string"},
        fix={"type": "string"},
        severity={"type": "string", "enum": ["blocking", "minor"]},
    )
    return _array(finding, least=least, most=most)


def _array(items: dict[str, Any], *, least: int, most: int) -> dict[str, Any]:
    # A list that can run on fills the token limit and is then cut off: it needs a bound.
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
