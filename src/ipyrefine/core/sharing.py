"""Decide what a model's server is sent of what code computed from the notebook's variables.

Whatever made a result says so (``computed``), and says as data how the text failed. Below the level
`outputs` that takes the place of its words: an exception's type, a line of the text, the types and
sizes that a test compared, and how many tests pass.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple, get_args

from ipyrefine.core.effects import sentence
from ipyrefine.core.model import (
    Clarification,
    Effect,
    Fault,
    Figure,
    Material,
    Output,
    Printed,
    Shape,
    TableValue,
    Value,
    on_conditions,
)
from ipyrefine.core.plain_code import without_data
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import NO_VALUE, read_literal
from ipyrefine.core.table import Cell, Point, Result
from ipyrefine.core.testing import is_critics

Level = Literal["structure", "code", "outputs", "values"]
LEVELS: tuple[Level, ...] = get_args(Level)  # the strictest first

KEPT_HERE = (
    "Outputs stay here: of what your code computed from variables or files, the model's server is "
    "sent types, shapes and lines. %refine share shows what was kept."
)

_OUTPUT_CHARACTERS = 500  # of one output of checked code
_LINE = 200  # characters of a line of the text
_MOST_ITEMS = 5_000  # that are looked at for their types
_KEPT = "What it says stays on the user's machine."
_DTYPE = re.compile(
    r"(?:u?int|float|complex|datetime|timedelta)\d+(?:\[\w+\])?|bool|boolean|object|str|string"
    r"|category|Int\d+|Float\d+|UInt\d+|String|Boolean|Date"
)
_LIBRARIES = ("builtins", "collections", "datetime", "decimal", "numpy", "pandas", "polars")


class Sharing(NamedTuple):
    """What the servers of a run are sent.

    Attributes:
        level: ``structure``, ``code`` (of cells above, without data), ``outputs`` (what code
            printed, returned and raised, too) or ``values`` (those of the variables, and cells as
            they are).
        servers: the addresses of those that this is about: not on this machine, or of any where
            the user set less than ``values``; the user's own model is named instead.
        asks: whether the user may still be asked to send more.
    """

    level: Level = "structure"
    servers: tuple[str, ...] = ()
    asks: bool = False


def is_computed(run: Run) -> bool:
    """Return True if code computed anything in a run from variables or files."""
    texts = run.iterations
    return (
        any(one.computed for one in run.task.materials)
        or any(one.computed for text in texts for one in text.evidence)
        or any(one.computed for text in texts for one in text.results.values())
    )


def withhold(run: Run, level: Level) -> Run:
    """Return a run as prompts may show it at a level.

    Below `values` the code of other cells is sent without its data, and at `structure` not at all;
    nor is what variables hold that nobody named. Below `outputs` everything that was computed is
    replaced, too, by what its data say: evidence, points, answers to questions, a traceback.
    """
    if level == "values":
        return run
    run = _without_values(run, level)
    if level == "outputs" or not is_computed(run):
        return run
    task, draft = run.task, run.setup.draft or ""
    # The words that a server is sent anyway: of names and columns it may be told these.
    asked = _words(task.request, *(one.text for one in task.materials))
    known = asked.union(*(_words(one.text) for one in run.iterations))
    task = task.replace(
        clarifications=tuple(map(_clarification, task.clarifications)),
        materials=tuple(_material(one, draft) for one in task.materials),
    )
    return run.replace(
        setup=run.setup.replace(task=task),
        iterations=tuple(_iteration(run, one, asked) for one in run.iterations),
        points={id_: _point(run, one, known) for id_, one in run.points.items()},
    )


def _without_values(run: Run, level: Level) -> Run:
    code, materials = "" if level == "structure" else _plain_code(run), list[Material]()
    for one in run.task.materials:
        if one.kind == "definitions" and code:
            materials.append(one.replace(text=code))
        elif one.kind == "variable" and one.computed:
            head = one.text.partition("\n")[0].rstrip(":")
            materials.append(one.replace(text=head, computed=False))
        elif one.kind != "definitions":
            materials.append(one)
    if tuple(materials) == run.task.materials:
        return run
    task = run.task.replace(materials=tuple(materials))
    return run.replace(setup=run.setup.replace(task=task))


def _plain_code(run: Run) -> str:
    shown = "\n".join(m.text for m in run.task.materials if m.kind == "variable")
    code = "\n\n".join(m.text for m in run.task.materials if m.kind == "definitions")
    return without_data(code, shown)


def next_level(run: Run, level: Level) -> Level | None:
    """Return the level that would send more of a run than the present one; None where none would.

    One above it sends only the code of cells, as long as nothing was computed.
    """
    if level in ("structure", "code") and is_computed(run):
        return "outputs"
    return "code" if level == "structure" and _plain_code(run) else None


def withheld(run: Run, level: Level = "structure") -> str:
    """Return the text that prompts lack now at a level below `outputs`; empty for none.

    That is of the task, and of the latest text that something was computed for.
    """
    code = _plain_code(run) if level == "structure" else ""
    run = _without_values(run, level)
    draft = run.setup.draft or ""
    parts = [code] if code else []
    parts += [m.text for m in run.task.materials if m.computed and _material(m, draft) != m]
    kept = withhold(run, level)
    for iteration in reversed(run.iterations):
        computed = [e for e in run.evidence(iteration) if e.computed]
        shown = kept.evidence(kept.iterations[iteration.number])
        sent = {line for e in shown for line in e.shows.splitlines()}
        lines = [line for e in computed for line in _full_lines(e) if line not in sent]
        if lines:
            return "\n".join([*parts, *lines])
    return "\n".join(parts)


def output_texts(outputs: Iterable[Output]) -> list[str]:
    """Return what code printed, returned and drew as texts, cut: a figure is one phrase."""
    texts, limit = [], _OUTPUT_CHARACTERS
    for output in outputs:
        match output:
            case Printed():
                texts.append(f"It printed:\n{output.text[:limit]}")
            case Value():
                texts.append(f"The value of its last expression:\n{output.text[:limit]}")
            case TableValue():
                rows = [(output.index, *output.columns)]
                rows += [(n, *row) for n, row in zip(output.labels, output.rows, strict=True)]
                drawn = "\n".join(" | ".join(row) for row in rows)[:limit]
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
    if fault is None:
        return "It failed."
    if fault.words:
        return fault.words
    types, lines = _known_types(len(sys.modules)), text.splitlines()
    names = " | ".join(name for one in fault.compared for name in (one.type, *one.items))
    compared = fault.compared if types.issuperset(names.split(" | ")) else ()
    raised = fault.raised if fault.raised in exception_names() else "An exception"
    said = [raised] if fault.raised else [] if compared else ["It failed"]
    said += [" compared with ".join(map(str, compared))] if compared else []
    place = f" in line {fault.line}" if 0 < fault.line <= len(lines) else ""
    source = f": {lines[fault.line - 1].strip()[:_LINE]}" if place else ""
    return ": ".join(said) + place + source


def _iteration(run: Run, iteration: Iteration, asked: frozenset[str]) -> Iteration:
    text, cells, read = iteration.text, run.cells(iteration), iteration.reading
    known = asked | _words(text)
    computed = any(one.point.computed for one in cells)
    return iteration.replace(
        evidence=tuple(_evidence(e, text, known) if e.computed else e for e in iteration.evidence),
        results={one.id: _result(one, text, known) for one in cells},
        reading=read.replace(lost="") if read and computed else read,
    )


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def _effect(effect: Effect, known: frozenset[str]) -> Effect:
    """Return what running did to data with counts and types, and with names that are known."""
    fields = dict.fromkeys(("before", "after"), "") | {"values": (), "head": None}
    names = ("name", "of", "column", "other", *["cause"] * (effect.kind == "differs"))
    for name in names:
        if not known >= _words(getattr(effect, name)):
            fields[name] = "…"
    if effect.kind == "zone" and known >= _words(effect.after):
        fields |= {"after": effect.after}
    if effect.kind == "type" and all(map(_DTYPE.fullmatch, (effect.before, effect.after))):
        fields |= {"before": effect.before, "after": effect.after}
    if effect.kind == "new" and re.fullmatch(r"[\d,]+ \w+( × [\d,]+ \w+)?", effect.after):
        fields |= {"after": effect.after}
    if effect.kind == "warning" and effect.cause not in exception_names():
        fields |= {"cause": "Warning"}
    return effect.replace(**fields)


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
    return evidence.replace(shows="\n".join(filter(None, lines)), effects=effects, **nothing)


def _result(cell: Cell, text: str, known: frozenset[str]) -> Result:
    point, result = cell
    if point.check or is_critics(point):
        if not (point.computed or result.computed):
            return result
        shown = "" if result.passed else fault_sentence(next(iter(result.faults), None), text)
        return result.replace(shows=shown, call="", setup="", gives="", rivals=())
    if point.effect:
        return result.replace(shows=sentence(_effect(point.effect, known)))
    return result.replace(shows=_KEPT) if point.computed else result


def _point(run: Run, point: Point, known: frozenset[str]) -> Point:
    if not point.computed:
        return point
    if point.effect:
        effect = _effect(point.effect, known)
        return point.replace(effect=effect, words=sentence(effect))
    if is_critics(point):  # its name is its critic's, and is told
        return point.replace(code="", module="", quote="", contests=("",) * len(point.contests))
    nothing = dict.fromkeys(("fix", "call", "quote"), "")
    kept = {"words": _KEPT, "options": (), "contests": ("",) * len(point.contests)}
    if point.check:
        kept |= {"criterion": (point.fault and point.fault.about) or point.check}
    stands = not point.check and any(point.place in one.text for one in run.iterations)
    return point.replace(**nothing, **kept, place=point.place if stands else "")


def _clarification(answer: Clarification) -> Clarification:
    if not answer.computed:
        return answer
    if name := answer.raises:
        known = name in exception_names()
        return answer if known else answer.replace(gives="raises an exception")
    value = read_literal(answer.gives)
    return answer.replace(gives="an object" if value is NO_VALUE else f"a {shape_of(value)}")


def _material(material: Material, draft: str) -> Material:
    if not material.computed or material.kind == "variable":
        return material
    head = material.text.partition("\n")[0]
    return material.replace(text=f"{head}\n{fault_sentence(material.fault, draft)}")


def _full_lines(evidence: Result) -> Iterator[str]:
    yield from filter(str.strip, evidence.shows.splitlines())
    for text in output_texts(evidence.outputs):
        yield from text.splitlines()


def _output(output: Output) -> str:
    match output:
        case Printed():
            return "It printed text."
        case TableValue() | Figure():
            verb = "drew" if isinstance(output, Figure) else "ends with"
            return f"It {verb} {output.phrase}."
        case Value():
            value = read_literal(output.text)
            kind = "an object" if value is NO_VALUE else f"a value of type {shape_of(value)}"
            return f"It ends with {kind}."
    raise TypeError(output)


@lru_cache(maxsize=1)
def _known_types(_loaded: int) -> set[str]:
    modules = (sys.modules[name] for name in _LIBRARIES if name in sys.modules)
    kinds = (one for module in modules for one in vars(module).values() if isinstance(one, type))
    return {"NoneType", *(kind.__name__ for kind in kinds)}


def exception_names() -> set[str]:
    """Return the names of the exceptions of Python and of the packages that are loaded here."""
    return _exception_names(len(sys.modules))


@lru_cache(maxsize=1)
def _exception_names(_loaded: int) -> set[str]:
    names, left = {"Failed"}, list[type]([BaseException])  # pytest's may not be loaded here
    while left:
        kind = left.pop()
        if kind.__module__ != "__main__":  # the notebook may have named one after a value
            names.add(kind.__name__)
        left += type.__subclasses__(kind)
    return names
