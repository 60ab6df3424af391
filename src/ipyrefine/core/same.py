"""The one comparer: what two runs gave, before and after Accept, of a text and its revision.

That two results are the same says nothing for either of them.
"""

import ast
import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from ipyrefine.core.alignment import compare
from ipyrefine.core.model import Difference, Effect, Held, count
from ipyrefine.core.run import Iteration
from ipyrefine.core.syntax import FUNCTION, tree_of, unparse
from ipyrefine.core.table import Result

Kind = Literal["same", "other names", "other order", "other effect", "differs", "one fails"]

_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_FLOAT = re.compile(r"(?<![\w.])([-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?)(?![\w.])")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
_WIDTH = 60  # characters of a value in a sentence
_LIKE_TABLES = ("DataFrame", "Series")
_STARTS = ("head", "value")  # of these only the start of a value is known


def same(one: Result, other: Result) -> Kind:
    """Return how what one run gave stands to what another gave."""
    if [fault.raised for fault in one.faults] != [fault.raised for fault in other.faults]:
        return "one fails"
    pairs = [*zip(map(_unnamed, one.held), map(_unnamed, other.held), strict=False)]
    kinds = {found.kind for pair in pairs for found in _differences(*pair)}
    if len(one.held) != len(other.held) or kinds - {"order"}:
        return "differs"
    if kinds:
        return "other order"
    if _names(one) != _names(other):
        return "other names"
    if {effect.key for effect in one.effects} != {effect.key for effect in other.effects}:
        return "other effect"
    return "same" if one.outputs == other.outputs else "differs"


def _unnamed(held: Held) -> Held:
    columns = tuple(one.replace(name="") for one in held.columns)
    return held.replace(name="", columns=columns)


def _names(result: Result) -> list[tuple[str, ...]]:
    return [(one.name, *(column.name for column in one.columns)) for one in result.held]


def is_new(text: Iteration, read: Iteration) -> bool:
    """Return True if a text shows or is more than the one that was read.

    It shows an effect, a condition, a column or a type that that one does not, lacks one of its
    signatures, or gives something else by words of which over half are not in the other.
    """
    if not _shown(text) <= _shown(read) or not _signatures(read.text) <= _signatures(text.text):
        return True
    results = ([one for one in each.evidence if one.held] for each in (read, text))
    if {*map(same, *results)} == {"same"}:
        return False
    words = [re.findall(r"\w+", one.text) for one in (read, text)]
    shared = sum(end - start for tag, start, end, *_ in compare(*words) if tag == "equal")
    return 2 * shared < max(map(len, words))


def _shown(text: Iteration) -> set[object]:
    found = {*text.conditions, *(one.key for one in text.effects.values())}
    for held in (one for evidence in text.evidence for one in evidence.held):
        found |= {(held.name, "", held.type), *((held.name, c.name, c.type) for c in held.columns)}
    return found


def _signatures(source: str) -> set[tuple[str, str]]:
    functions = (one for one in ast.walk(tree_of(source)) if isinstance(one, FUNCTION))
    return {(one.name, unparse(one.args)) for one in functions}


def differ(shown: Sequence[Held], now: Sequence[Held]) -> tuple[Difference, ...]:
    """Return where values that are there differ from those that were shown."""
    there = {one.name: one for one in now}
    pairs = [(held, there[held.name]) for held in shown if held.name in there]
    found = [one for pair in pairs for one in _differences(*pair)]
    return tuple(sorted(found, key=lambda one: one.name != ""))  # first the answer


def files(shown: Sequence[Effect]) -> tuple[Held, ...]:
    """Return the files that a text writes or deletes, each with the size that it has then."""
    sizes = {e.name: None if e.cause == "delete" else e.count for e in shown if e.kind == "file"}
    return tuple(file(*one) for one in sizes.items())


def file(name: str, size: int | None) -> Held:
    """Return a file as what a run left; without a size it is not there."""
    return Held(name=name, type="file", text="gone" if size is None else count(size, "byte"))


def _differences(shown: Held, now: Held) -> list[Difference]:
    """Return how values differ, without what follows from that: what is alike in all else is last.

    Where only the first items of values are known, just the first difference is returned, as a
    change of order if nothing else differs.
    """
    values = not (shown.shape or now.shape) and bool(shown.text and now.text)
    if shown.type != now.type and not (values and shown.text != now.text):
        return [_difference("type", shown, _short(shown.type), _short(now.type))]
    for ours, theirs in zip(_facts(shown), _facts(now), strict=True):
        if found := [
            _difference(kind, shown, *_numbers(one, other), column=column)
            for (kind, column, one), (*_, other) in zip(ours, theirs, strict=False)
            if not is_same(one, other) and ((one and other) or kind in _STARTS)
        ]:
            break
    else:
        return []
    first = found[0]
    if first.kind not in _STARTS:
        return found
    rows = _rows(shown) if first.column or _is_table(shown) else _items(shown.text)
    again = _rows(now) if first.column or _is_table(shown) else _items(now.text)
    return [_difference("order", shown, "", "") if rows and rows == again else first]


def _facts(held: Held) -> Iterator[list[tuple[str, str, str]]]:
    """Yield what is compared of a value: kind, column and words, in the order of their weight."""
    yield [("size", "", _size(held)), ("columns", "", ", ".join(c.name for c in held.columns))]
    yield [
        (kind, one.name, said)
        for one in held.columns
        for kind, said in (
            ("dtype", one.type),
            ("total", one.total),
            ("missing", "" if one.missing is None else f"{one.missing:,}"),
        )
    ]
    heads = [("head", one.name, one.text) for one in held.columns]
    yield [*heads, ("head" if _is_table(held) else "value", "", held.text)]


def _rows(held: Held) -> list[tuple[str, ...]]:
    """Return the rows of a short table, sorted; none where it is longer than what was read."""
    columns = [one.text.split(", ") for one in held.columns]
    columns += [held.text.split(", ")] if held.text else []
    whole = len(held.shape) == 1 or _is_table(held)
    whole = whole and all(len(column) == held.shape[0] for column in columns)
    return sorted(zip(*columns, strict=True)) if whole else []


def _items(text: str) -> list[str]:
    """Return the items of a list or a dict, sorted: what is made of a set has them in any order."""
    return sorted(text[1:-1].split(", ")) if text[:1] in ("[", "{") else []


def _difference(kind: str, held: Held, shown: str, now: str, column: str = "") -> Difference:
    fields = {"kind": kind, "name": held.name, "column": column, "shown": shown, "now": now}
    return Difference.model_validate(fields)


def is_same(one: str, other: str) -> bool:
    """Return True if texts are the same but for addresses and the last digits of floats."""
    if one == other:
        return True
    parts, others = (_FLOAT.split(_ADDRESS.sub("", text)) for text in (one, other))
    if len(parts) != len(others) or parts[::2] != others[::2]:
        return False
    pairs = zip(map(float, parts[1::2]), map(float, others[1::2]), strict=True)
    return all(math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE) for a, b in pairs)


def _numbers(one: str, other: str) -> tuple[str, str]:
    """Return two numbers as people write them, with as many digits as tell them apart."""
    try:
        values = [float(text) if "." in text or "n" in text else int(text) for text in (one, other)]
    except ValueError:
        return one, other
    for places in (2, 4, 6):
        texts = [f"{v:,.{places}f}" if isinstance(v, float) else f"{v:,}" for v in values]
        if texts[0] != texts[1] and max(map(len, texts)) < _WIDTH:
            return texts[0], texts[1]
    return one, other


def _short(type_: str) -> str:
    return type_.rpartition(".")[2]


def _is_table(held: Held) -> bool:
    return _short(held.type) in _LIKE_TABLES


def _size(held: Held) -> str:
    if len(held.shape) == 1:
        return count(held.shape[0], "value" if "." in held.type else "item")
    return " × ".join(f"{one:,}" for one in held.shape)


# What a first run did


def changes(before: Sequence[Held], after: Sequence[Held]) -> tuple[Difference, ...]:
    """Return what is new or no longer as it was once a cell ran."""
    was = {one.name: one for one in before}
    found = []
    for now in after:
        old = was.get(now.name)
        if old is None:
            found.append(_difference("new", now, "", _summary(now)))
        elif old != now:
            found += _differences(old, now) or [_difference("value", now, "", "")]
    return tuple(found)


def _summary(held: Held) -> str:
    if held.text and not _is_table(held) and len(held.text) <= _WIDTH:
        return held.text
    return f"{_short(held.type)} of {_size(held)}" if held.shape else _short(held.type)
