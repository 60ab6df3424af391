"""What a run says of data, as the lines that everybody reads: what the benches of it share."""

from collections.abc import Mapping, Sequence
from typing import Any

import measure

from ipyrefine.core.effects import sentence
from ipyrefine.core.model import Effect

DOUBTED = ("gone", "repeated", "overwritten", "read")  # what may be a fault, or asked for
Line = tuple[str, Effect | None]


def facts_of(evidence: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answer's line, the facts and the outputs in what checks found, given as JSON."""
    outputs = [_without(one, "png") for each in evidence for one in each.get("outputs", ())]
    effects = [one for each in evidence for one in each.get("effects", ())]
    return {
        "answer": next(filter(None, map(_answer, reversed(outputs))), ""),
        "effects": [_without(one, "head") for one in effects],
        "outputs": outputs,
    }


def _without(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {n: v for n, v in record.items() if n != name}


def _answer(output: Mapping[str, Any]) -> str:
    match output["kind"]:
        case "value":
            return f"The answer: {measure.short(output['text'])}"
        case "table":
            row = output["rows"][0] if output["rows"] else ()
            first = str(dict(zip(output["columns"], row, strict=False)))
            size = f"{output['height']} × {output['width']}"
            return f"The answer: a table of {size}, first {measure.short(first)}"
        case "figure":
            return "The answer: a figure"
    return ""


def lines_of(row: Mapping[str, Any]) -> list[Line]:
    """Return the lines in their order, each with the fact that it tells."""
    effects = [Effect.model_validate(one) for one in row["effects"]]
    # What is odd about the answer stands in its place.
    odd = [one for one in effects if one.kind == "answer"]
    answer: list[Line] = [(row["answer"], None)] if row["answer"] and not odd else []
    others = [one for one in effects if one.kind != "answer"]
    return [*answer, *((sentence(one), one) for one in [*odd, *others])]


def meets(effect: Effect | None, tell: Mapping[str, Any]) -> bool:
    """Return whether a fact has the fields that are asked for; ``table`` is either of its two."""
    if effect is None:
        return False
    fields = {**dict(effect), "table": (effect.name, effect.of)}

    def has(field: str, wanted: Any) -> bool:
        options = {*wanted} if isinstance(wanted, list) else {wanted}
        values = fields[field] if isinstance(fields[field], tuple) else (fields[field],)
        return not options.isdisjoint(values)

    return all(has(field, wanted) for field, wanted in tell.items())


def doubted(row: Mapping[str, Any], lines: int) -> bool:
    """Return whether one of the first lines tells of rows or values that are lost or changed.

    That some rows are kept, just as they were, is no such line.
    """
    some = (effect for _, effect in lines_of(row)[:lines] if effect and effect.cause != "kept")
    return any(meets(effect, {"kind": [*DOUBTED]}) for effect in some)
