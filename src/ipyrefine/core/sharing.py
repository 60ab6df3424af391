"""Decide what a model's server is sent of what code computed from the notebook's variables.

Whatever made a result says so (``computed``), and says as data how the text failed. At `structure`
that takes the place of its words: an exception's type, a line of the text, the types and sizes that
a test compared, and how many tests pass.
"""

import re
import sys
from collections.abc import Iterable
from functools import cache
from itertools import islice
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args

from ipyrefine.core.effects import sentence
from ipyrefine.core.model import (
    Clarification,
    Effect,
    Fault,
    Figure,
    Output,
    Printed,
    Shape,
    Table,
    Value,
    on_conditions,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import NO_VALUE, read_literal
from ipyrefine.core.table import Cell, Point, Result
from ipyrefine.core.testing import is_critics

Level = Literal["structure", "all"]
LEVELS: tuple[Level, ...] = get_args(Level)
OLDER: dict[str, Level] = {"code": "structure", "outputs": "structure", "values": "all"}

_OUTPUT_CHARACTERS = 500  # of one output of checked code
_LINE = 200  # characters of a line of the text
_MOST_ITEMS = 5_000  # that are looked at for their types
_MADE = re.compile(r"\A<?(?:\w+\.)*(\w+)(?:\(| object\b)")  # how a value names its type
_KEPT = "What it says stays on the user's machine."


class Sharing(NamedTuple):
    """What the servers of a run are sent.

    Attributes:
        level: ``structure`` (names, types, shapes and lines) or ``all``.
        servers: the addresses of those that this is about: not on this machine, or of any where
            the user set ``structure``; the user's own model is named instead.
        asks: whether the user may still be asked to send all.
        notice: what the user should know of how their option was read.
    """

    level: Level = "structure"
    servers: tuple[str, ...] = ()
    asks: bool = False
    notice: str = ""


def is_computed(run: Run) -> bool:
    """Return True if code computed anything in a run from variables or files."""
    texts = run.iterations
    return (
        any(one.computed for one in run.task.materials)
        or any(one.computed for text in texts for one in text.evidence)
        or any(one.computed for text in texts for one in text.results.values())
    )


def visible(run: Run, level: Level) -> Run:
    """Return a run as prompts may show it at a level: at `structure`, without what was computed."""
    if level == "all":
        return run
    materials = (
        one.replace(text=one.structure) if one.computed or one.kind == "definitions" else one
        for one in run.task.materials
    )
    task = run.task.replace(materials=tuple(one for one in materials if one.text))
    # The words that a server is sent anyway: of names and columns it may be told these.
    asked = _words(task.request, *(one.text for one in task.materials))
    known = asked.union(*(_words(one.text) for one in run.iterations))
    task = task.replace(clarifications=tuple(map(_clarification, task.clarifications)))
    return run.replace(
        setup=run.setup.replace(task=task),
        iterations=tuple(_iteration(run, one, asked) for one in run.iterations),
        points={id_: _point(one, known) for id_, one in run.points.items()},
    )


def withheld(run: Run) -> str:
    """Return the text that prompts lack at `structure`: of the task, and of the latest text."""
    sent, lacking = {*_lines(visible(run, "structure"))}, _lines(run)
    return "\n".join(line for line in lacking if line.strip() and line not in sent)


def _lines(run: Run) -> list[str]:
    texts = [one.text for one in run.task.materials if one.kind != "rules"]
    computed = (i for i in reversed(run.iterations) if any(e.computed for e in run.evidence(i)))
    for iteration in islice(computed, 1):
        for one in run.evidence(iteration):
            texts += [one.shows, *output_texts(one.outputs)]
    return "\n".join(texts).splitlines()


def output_texts(outputs: Iterable[Output]) -> list[str]:
    """Return what code printed, returned and drew as texts, cut: a figure is one phrase."""
    texts, limit = [], _OUTPUT_CHARACTERS
    for output in outputs:
        match output:
            case Printed():
                texts.append(f"It printed:\n{output.text[:limit]}")
            case Value():
                texts.append(f"The value of its last expression:\n{output.text[:limit]}")
            case Table():
                rows = [(output.index, *output.columns)]
                rows += [(n, *row) for n, row in zip(output.labels, output.rows, strict=True)]
                drawn = "\n".join(map(" | ".join, rows))[:limit]
                texts.append(
                    f"The value of its last expression is {output.phrase}, which starts:\n{drawn}"
                )
            case Figure():
                texts.append(f"It drew {output.phrase}.")
    return texts


def shape_of(value: object) -> Shape:
    """Return the type and size of plain data, and the types of its items."""
    if not isinstance(value, list | tuple | dict | set | frozenset | str | bytes):
        return Shape(type=type(value).__name__)
    parts = [] if isinstance(value, str | bytes) else [list(value)]
    parts += [list(value.values())] if isinstance(value, dict) else []
    held = [sorted({type(one).__name__ for one in islice(p, _MOST_ITEMS)}) for p in parts if p]
    return Shape(type=type(value).__name__, items=tuple(map(" | ".join, held)), size=(len(value),))


def fault_sentence(fault: Fault | None, text: str) -> str:
    """Return how a text failed, without a value: ``KeyError in line 3: x = row["a"]``.

    Names of types that only the code defines are left out: it may have named one after a value.
    """
    if fault is None or fault.words:
        return fault.words if fault else "It failed."
    lines = text.splitlines()
    names = " | ".join(name for one in fault.compared for name in (one.type, *one.items))
    compared = fault.compared if all(map(is_type, names.split(" | "))) else ()
    said = [fault.raised if is_type(fault.raised) else "An exception"] if fault.raised else []
    said += [" compared with ".join(map(str, compared))] if compared else []
    told = ": ".join(said) or "It failed"
    if not 0 < fault.line <= len(lines):
        return told
    return f"{told} in line {fault.line}: {lines[fault.line - 1].strip()[:_LINE]}"


def is_type(name: str) -> bool:
    """Return True if a type of Python, or of a package that is loaded here, has a name."""
    return name == "Failed" or _is_loaded(name, len(sys.modules))


@cache
def _is_loaded(name: str, _: int) -> bool:
    return any(
        issubclass(type(vars(one).get(name)), type)
        for key, one in [*sys.modules.items()]
        if key != "__main__" and issubclass(type(one), ModuleType)
    )


def _iteration(run: Run, iteration: Iteration, asked: frozenset[str]) -> Iteration:
    text, cells, read = iteration.text, run.cells(iteration), iteration.reading
    known = asked | _words(text)
    computed = any(one.point.computed for one in cells)
    return iteration.replace(
        evidence=tuple(_evidence(e, text, known) if e.computed else e for e in iteration.evidence),
        results={one.id: _result(one, text) for one in cells},
        reading=read.replace(lost="") if read and computed else read,
    )


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def _effect(effect: Effect, known: frozenset[str]) -> Effect:
    """Return what running did to data with counts and types, and with names that are known."""
    names = ["name", "of", "column", "other"]
    names += ["cause"] * (effect.kind in ("differs", "warning"))
    names += ["before", "after"] * (effect.kind in ("type", "zone"))
    fields = {n: getattr(effect, n) for n in names}
    told = {n: all(word in known or is_type(word) for word in _words(fields[n])) for n in names}
    fields = {n: one if told[n] else "…" for n, one in fields.items()}
    values = effect.values if effect.kind == "columns" else ()
    fields["values"] = tuple(one for one in values if _words(one) <= known)
    after = effect.after if effect.kind == "new" else ""  # its size
    return effect.replace(**{"before": "", "after": after, "head": None, **fields})


def _evidence(evidence: Result, text: str, known: frozenset[str]) -> Result:
    ran_on = on_conditions(evidence.conditions)
    lines = [f"It ran {ran_on}."] if ran_on else []
    said = ((one.about, fault_sentence(one, text)) for one in evidence.faults)
    lines += [": ".join(filter(None, one)) for one in said]
    for noun, (held, of) in evidence.tallies.items():
        lines.append(f"{held} of {of} {noun}s {'pass' if noun == 'test' else 'hold'}.")
    if evidence.passed and evidence.basis == "run":
        lines.append("It runs without an error.")
    lines += map(_output, evidence.outputs)
    nothing = dict.fromkeys(("outputs", "points", "rows"), ())
    effects = tuple(_effect(one, known) for one in evidence.effects)
    return evidence.replace(shows="\n".join(lines), effects=effects, **nothing)


def _result(cell: Cell, text: str) -> Result:
    point, result = cell
    if point.effect:
        return result.replace(shows="")  # its point says it
    if not (point.computed or result.computed):
        return result
    if point.check or is_critics(point):
        shown = "" if result.passed else fault_sentence(next(iter(result.faults), None), text)
        return result.replace(shows=shown, call="", setup="", gives="", rivals=())
    return result.replace(shows=_KEPT)


def _point(point: Point, known: frozenset[str]) -> Point:
    if point.effect:
        effect = _effect(point.effect, known)
        return point.replace(effect=effect, words=sentence(effect))
    if not point.computed:
        return point
    fields: dict[str, Any] = dict.fromkeys(("fix", "call", "quote", "place", "code", "module"), "")
    fields |= {"options": (), "contests": ("",) * len(point.contests)}
    if not is_critics(point):  # whose name is its critic's
        fields["words"] = _KEPT
    if point.check:
        fields["criterion"] = (point.fault and point.fault.about) or point.check
    return point.replace(**fields)


def _clarification(answer: Clarification) -> Clarification:
    if not answer.computed:
        return answer
    if name := answer.raises:
        return answer if is_type(name) else answer.replace(gives="raises an exception")
    return answer.replace(gives=_shape(answer.gives))


def _output(output: Output) -> str:
    if isinstance(output, Printed):
        return "It printed text."
    shown = _shape(output.text) if isinstance(output, Value) else output.phrase
    return f"It shows {shown}."


def _shape(literal: str) -> str:
    value = read_literal(literal)
    if value is not NO_VALUE:
        return f"a {shape_of(value)}"
    made = "".join(_MADE.findall(literal))
    return f"a value of type {made}" if is_type(made) else "an object"
