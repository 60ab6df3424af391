"""Compare what an accepted text gave in its cell with what was shown of it, and say so."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from ipyrefine.core import effects
from ipyrefine.core.model import Difference, Effect, Held, Ran, count

_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_FLOAT = re.compile(r"(?<![\w.])([-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+))(?![\w.])")
_MOST, _WIDTH = 2, 60  # sentences, and characters of a value in one
_LIKE_TABLES = ("DataFrame", "Series")
_STARTS = ("head", "value")  # of which only the start is known


def differ(shown: Sequence[Held], now: Sequence[Held]) -> tuple[Difference, ...]:
    """Return where values that are there differ from those that were shown."""
    there = {one.name: one for one in now}
    pairs = [(held, there[held.name]) for held in shown if held.name in there]
    found = [one for pair in pairs for one in _differences(*pair)]
    return tuple(sorted(found, key=lambda one: one.name != ""))  # first the answer


def differ_in_files(
    shown: Sequence[Effect], sizes: Mapping[str, int | None]
) -> tuple[Difference, ...]:
    """Return where files are not as was shown; `sizes` are in bytes, None for no file."""
    found = []
    for effect in (one for one in shown if one.kind == "file"):
        was, now = None if effect.cause == "delete" else effect.count, sizes[effect.name]
        if was != now:
            texts = ["gone" if one is None else effects.size(one) for one in (was, now)]
            found.append(Difference(kind="file", name=effect.name, shown=texts[0], now=texts[1]))
    return tuple(found)


def _differences(shown: Held, now: Held) -> list[Difference]:
    """Return how values differ, without what follows from that: what is alike in all else is last.

    There, only the first is told, and only as an order if that is all.
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
    heads = [("head", one.name, one.head) for one in held.columns]
    yield [*heads, ("head" if _is_table(held) else "value", "", held.text)]


def _rows(held: Held) -> list[tuple[str, ...]]:
    """Return the rows of a short table, sorted; none where it is longer than what was read."""
    columns = [one.head.split(", ") for one in held.columns]
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
    """Return True if two texts are the same but for the last digits of their floats."""
    if one == other:
        return True
    parts, others = _FLOAT.split(one), _FLOAT.split(other)
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
        noun = "value" if "." in held.type else "item"
        return count(held.shape[0], noun)
    return " × ".join(f"{one:,}" for one in held.shape)


# What a first run did


def changes(before: Sequence[Held], after: Sequence[Held]) -> tuple[Difference, ...]:
    """Return what is new or no longer as it was once a cell ran."""
    was = {one.name: one for one in before}
    found = list[Difference]()
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


# In words


def words(ran: Ran) -> str:
    """Return what came of running an accepted text; empty where there is nothing to say."""
    match ran.how:
        case "moved" if ran.files:
            changed = _list([f"`{one}`" for one in ran.files]).replace(";", ",")
            have = "has" if len(ran.files) == 1 else "have"
            sentence = f"{changed} {have} changed since it was checked"
        case "moved":
            sentence = "ran: the notebook has moved on since it was checked"
        case "same" if ran.raised:
            sentence = f"ran: it raised {ran.raised}, as shown"
        case "same":
            order = _list([f"{_subject(one)} in another order" for one in ran.differences])
            number = "both" if ran.results == 2 else f"all {ran.results}"
            results = f"{number} results" if ran.results > 1 else "the result is"
            said = ", ".join(filter(None, [f"ran: {results} as shown", order]))
            sentence = said if ran.results else ""
        case "varies" if len(ran.differences) == 1:
            sentence = f"ran: {_subject(ran.differences[0])} changes from run to run"
        case "varies":
            sentence = f"ran: {len(ran.differences)} results change from run to run"
        case "differs":
            sentence = _list([_difference_sentence(one) for one in ran.differences])
        case _:
            raised = [f"it raised {ran.raised}"] if ran.raised else []
            done = [*map(_change_sentence, ran.differences)]
            sentence = f"ran: {_list([*raised, *done])}" if raised or done else ""
    restored = ", ".join(f"`{name}`" for name in ran.restored)
    return f"{sentence}; {restored} put back" if restored else sentence


def _list(sentences: list[str]) -> str:
    more = len(sentences) - _MOST
    return "; ".join([*sentences[:_MOST], *([f"{more} more"] if more > 0 else [])])


def _subject(one: Difference) -> str:
    name = f"`{one.name}`" if one.name else "the answer"
    column = f"`{one.column}`" if one.column else ""
    inside = f"{column} in {name}" if column and one.name else column or name
    match one.kind:
        case "total":
            return f"sum of {inside}"
        case "missing":
            return f"missing values of {inside}"
        case "dtype":
            return f"type of {inside}"
        case "columns":
            return f"columns of {name}"
        case "head":
            return f"the start of {inside}"
    return name


def _difference_sentence(one: Difference) -> str:
    if one.kind == "raised":
        shown, now = (f"it raised {w}" if w else "it ran" for w in (one.shown, one.now))
        return f"{now}; shown: {shown}"
    both = f": shown {one.shown}, now {one.now}" if _is_short(one) else ""
    return f"{_subject(one)}{both or (' differ' if one.kind == 'columns' else ' differs')}"


def _change_sentence(one: Difference) -> str:
    if one.kind == "new":
        return f"`{one.name}` is new: {one.now}"
    both = f"{_subject(one)}: {one.shown} → {one.now}"
    return both if _is_short(one) and one.now else f"`{one.name}` is changed"


def _is_short(one: Difference) -> bool:
    """Return whether both values can be told in a sentence."""
    return one.kind not in ("head", "columns") and max(len(one.shown), len(one.now)) <= _WIDTH
