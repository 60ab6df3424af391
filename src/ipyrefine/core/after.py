"""Compare what an accepted text gave in its cell with what was shown of it, and say so."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ipyrefine.core import effects
from ipyrefine.core.model import MAX_COLUMNS, Difference, Effect, Held, HeldColumn, Ran

_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_FLOAT = re.compile(r"(?<![\w.])([-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+))(?![\w.])")
_MOST, _WIDTH = 2, 60  # sentences, and characters of a value in one
_LIKE_TABLES = ("DataFrame", "Series")


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
    values = not (shown.shape or now.shape) and bool(shown.text and now.text)
    if shown.type != now.type and not (values and shown.text != now.text):
        return [_difference("type", shown, _short(shown.type), _short(now.type))]
    resized = shown.shape != now.shape
    found = [_difference("size", shown, _size(shown), _size(now))] if resized else []
    names = [", ".join(column.name for column in one.columns) for one in (shown, now)]
    if names[0] != names[1]:
        found.append(_difference("columns", shown, *names))
    if found:  # what else differs follows from that
        return found
    for old, new in zip(shown.columns, now.columns, strict=True):
        found += _column_differences(shown, old, new)
    return found or _start_differences(shown, now)


def _start_differences(shown: Held, now: Held) -> list[Difference]:
    """Return how the start of values differs that are alike in all else: by order alone, if so."""
    for old, new in zip(shown.columns, now.columns, strict=True):
        if not _is_same(old.head, new.head):
            if (rows := _rows(shown)) and rows == _rows(now):
                return [_difference("order", shown, "", "")]
            return [_difference("head", shown, old.head, new.head, column=old.name)]
    if _is_same(shown.text, now.text):
        return []
    kind = "head" if _is_table(shown) else "value"
    if shown.text[:1] in "[{" and _items(shown.text) == _items(now.text):
        kind = "order"
    return [_difference(kind, shown, *_numbers(shown.text, now.text))]


def _rows(held: Held) -> list[tuple[str, ...]]:
    """Return the rows of a short table, sorted; none where it is longer than what was read."""
    columns = [one.head.split(", ") for one in held.columns]
    whole = len(held.shape) == 1 or _is_table(held)
    whole = whole and all(len(column) == held.shape[0] for column in columns)
    return sorted(zip(*columns, strict=True)) if whole else []


def _items(text: str) -> list[str]:
    """Return the items of a list or a dict, sorted: what is made of a set has them in any order."""
    return sorted(text[1:-1].split(", "))


def _column_differences(held: Held, shown: HeldColumn, now: HeldColumn) -> list[Difference]:
    pairs = {
        "dtype": (shown.type, now.type),
        "total": (shown.total, now.total),
        "missing": tuple("" if n is None else f"{n:,}" for n in (shown.missing, now.missing)),
    }
    return [
        _difference(kind, held, *_numbers(one, other), column=shown.name)
        for kind, (one, other) in pairs.items()
        if one and other and not _is_same(one, other)
    ]


def _difference(kind: str, held: Held, shown: str, now: str, column: str = "") -> Difference:
    fields = {"kind": kind, "name": held.name, "column": column, "shown": shown, "now": now}
    return Difference.model_validate(fields)


def _is_same(one: str, other: str) -> bool:
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
        return f"{held.shape[0]:,} {noun}{'s' * (held.shape[0] != 1)}"
    return " × ".join(f"{one:,}" for one in held.shape)


# What a first run did


def changes(before: Sequence[Held], after: Sequence[Held]) -> tuple[Effect, ...]:
    """Return what happened to values from before a cell ran until after it."""
    was = {one.name: one for one in before}
    found: list[Effect] = []
    for now in after:
        old = was.get(now.name)
        if old is None:
            found.append(Effect(kind="new", name=now.name, after=_summary(now)))
        elif old != now:
            found += _changes(old, now)
    return tuple(found)


def _changes(old: Held, now: Held) -> list[Effect]:
    name = now.name
    if not (old.columns and now.columns) or old.type != now.type or not (old.shape and now.shape):
        texts = _summary(old), _summary(now)
        before, after = texts if texts[0] != texts[1] else ("", "")
        return [Effect(kind="changed", name=name, before=before, after=after)]
    rows, left = old.shape[0], now.shape[0]
    found = []
    if _is_table(now) and left < rows:
        found.append(Effect(kind="gone", name=name, count=rows - left, total=rows))
    elif left != rows:
        found.append(Effect(kind="changed", name=name, before=_size(old), after=_size(now)))
    was, are = ({one.name: one for one in held.columns} for held in (old, now))
    for cause, names in (("gone", was.keys() - are), ("", are.keys() - was)):
        if names:
            values = tuple(one[:_WIDTH] for one in sorted(names)[:MAX_COLUMNS])
            found.append(
                Effect(kind="columns", name=name, cause=cause, values=values, count=len(names))
            )
    for column in (one for one in was if one in are):
        found += _column_changes(now, was[column], are[column], same_rows=left == rows)
    return found or [Effect(kind="changed", name=name)]


def _column_changes(
    held: Held, old: HeldColumn, now: HeldColumn, *, same_rows: bool
) -> list[Effect]:
    found = []
    about = {"name": held.name * _is_table(held), "column": old.name or held.name}
    if old.type != now.type:
        found.append(Effect(kind="type", before=old.type, after=now.type, **about))
    was, missing = old.missing or 0, now.missing or 0
    if None not in (old.missing, now.missing) and was != missing:
        if missing > was:
            found.append(Effect(kind="missing", count=missing, total=held.shape[0], **about))
        elif same_rows:
            found.append(Effect(kind="filled", count=was - missing, **about))
    both = old.total and now.total and not _is_same(old.total, now.total)
    if both and same_rows:
        before, after = _numbers(old.total, now.total)
        about = {"name": held.name, "column": old.name}
        found.append(Effect(kind="total", before=before, after=after, **about))
    return found


def _summary(held: Held) -> str:
    kind = _short(held.type)
    if _is_table(held) and len(held.shape) == 2:
        rows, columns = held.shape
        nouns = f"row{'s' * (rows != 1)}", f"column{'s' * (columns != 1)}"
        return f"{rows:,} {nouns[0]} × {columns:,} {nouns[1]}"
    if held.text and not _is_table(held) and len(held.text) <= _WIDTH:
        return held.text
    return f"{kind} of {_size(held)}" if held.shape else kind


# In words


class Said(NamedTuple):
    """What is said of an accepted text's run."""

    sentence: str
    differs: bool  # whether that is to be looked at


def words(ran: Ran) -> Said:
    """Return what came of running an accepted text; no sentence where there is nothing to say."""
    differs = ran.how == "differs"
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
            done = _list([*raised, *map(effects.sentence, ran.effects)])
            sentence = done and f"ran: {done}"
    restored = ", ".join(f"`{name}`" for name in ran.restored)
    return Said(f"{sentence}; {restored} put back" if restored else sentence, differs)


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
    subject = _subject(one)
    if one.kind in ("head", "columns") or max(len(one.shown), len(one.now)) > _WIDTH:
        return f"{subject} {'differ' if one.kind == 'columns' else 'differs'}"
    return f"{subject}: shown {one.shown}, now {one.now}"
