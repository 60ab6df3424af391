"""Find what running a text did to data, inside the sandbox: before and after, and step by step.

Those of the text's own calls that may leave rows out or repeat them without a word are noted as
they happen: its tree has them keep what they got and gave. No function is replaced and no frame
stands between, so that the calls, their warnings and their tracebacks are as they were.
"""

import ast
import contextlib
import copy
import datetime
import inspect
import itertools
import marshal
import math
import re
import sys
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

Effect = dict[str, Any]
Effects = Iterator[Effect]

_SECONDS, _STEP_SECONDS = 3.0, 2.0  # of processor time, in all
_MOST, _MOST_OF = 8, {"new": 3, "warning": 2, "total": 2, "type": 2, "ignored": 2}  # effects
_FEW, _WIDTH, _WORDS, _COLUMNS = 5, 60, 200, 20  # values, characters, columns that are looked at
_NAMES = 3  # of columns in a sentence
_ITEMS, _ROWS, _DATES = 100_000, 2_000_000, 200_000  # plain values, rows, rows with times
_BYTES = 200_000_000  # of what has to be copied
_VISITS = 20  # of one step, in a loop
_SHARE = 2  # one row in so many has to be known for a table to be made of another
_OTHERS = 4  # one new row for so many known ones may stand in a table that lost rows
_SAMPLE = 1_000  # rows by which it is told whether two columns agree
_CLOSE = 1e-9
_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_EMPTY = dict[str, int]()
_VIEWS = tuple(map(type, (_EMPTY.items(), _EMPTY.values(), _EMPTY.keys())))
_LISTS: tuple[Any, ...] = (list, tuple, dict, set, range, *_VIEWS)
_CODE = (type(sys), type(len), type(lambda: 0), type)  # modules, functions and classes
_BUILTINS = (zip, dict, sorted, max, min)
_NUMBER = re.compile(r"\s*[-+]?\d[\d,. ]*(?:[eE][-+]?\d+)?\s*%?")
_CHAINED = ("ChainedAssignmentError", "SettingWithCopyWarning")
_KEEP, _DONE = "keep for the account", "done, for the account"  # names that no text can have
_ABOUT = ("kind", "of", "column", "cause", "other", "count", "total")
_SUMS = ("kind", "of", "column", "before", "after")
_KINDS = [  # the most telling first
    *("unchanged", "answer", "gone unmatched", "gone missing", "repeated", "ignored grouped"),
    *("differs", "missing unmatched", "overwritten", "missing", "text", "zone", "gone groups"),
    *("gone keys", "gone shorter", "gone repeats", "reordered", "filled", "changed"),
    *("missing new", "ignored", "total", "warning", "type", "columns", "gone filter", "gone"),
    *("ignored compared", "gone unused", "new"),
]
_MERE = _KINDS.index("gone filter")
_LATER = set[str]()  # warnings that came of a later version's change, which say nothing of data
_CHANGES = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
_OF_SOURCES = ("ignored", "text", "zone")  # told of what a step got, not of what it gave


def _effect(kind: str, **fields: Any) -> Effect:
    return {"kind": kind, **{name: value for name, value in fields.items() if value}}


def _rank(effect: Effect) -> int:
    if effect["kind"] == "warning" and effect.get("cause") in _LATER:
        return len(_KINDS)
    whole = f"{effect['kind']} {effect.get('cause', '')}"
    return _KINDS.index(whole if whole in _KINDS else effect["kind"])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1_000 else f"{value:.6g}"
    if _is_time(value):
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, (tuple, dict)):
        parts = value.values() if isinstance(value, dict) else value
        value = ", ".join(_text(one) for one in parts if one is not None)
    text = "missing" if value is None else str(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime.datetime)


def _label(name: Any) -> str:
    return "" if name is None else _text(name)


def _some(values: Iterable[Any]) -> list[str]:
    return [*itertools.islice(dict.fromkeys(map(_text, values)), _FEW)]


# Tables, as columns of values


def _library(value: Any) -> str:
    for name in ("pandas", "polars"):
        module = sys.modules.get(name)
        if module and isinstance(value, (module.DataFrame, module.Series)):
            return name
    return ""


def _is_frame(value: Any) -> bool:
    return bool(_library(value)) and len(value.shape) == 2


def _is_series(value: Any) -> bool:
    return bool(_library(value)) and len(value.shape) == 1


class _Table:
    """A frame or a series: its columns by name, and the levels of its index that have one.

    Of a wide frame, those are looked at that the text names, then the first.
    """

    named = frozenset[str]()

    def __init__(self, value: Any) -> None:
        self.value, self.library, self.height = value, _library(value), len(value)
        self.columns: dict[str, Any] = {_label(value.name): value} if _is_series(value) else {}
        self.labels = [*self.columns]  # of all columns
        if _is_frame(value):
            self.labels = [*map(_label, value.columns)]
            places = sorted(range(len(self.labels)), key=lambda n: self.labels[n] not in self.named)
            for number in sorted(places[:_COLUMNS]):
                self.columns.setdefault(self.labels[number], self.values(number))
        self.own = [*self.columns]  # those that are no level of the index
        for name in getattr(getattr(value, "index", None), "names", ()):
            if name is not None:
                self.columns.setdefault(_label(name), value.index.get_level_values(name))

    def values(self, number: int) -> Any:
        if self.library == "pandas":
            return self.value.iloc[:, number]
        return self.value.to_series(number)

    def lacks(self, name: str) -> int:
        return _count_missing(self.columns[name])

    def type(self, name: str) -> str:
        return _type(self.columns[name])

    def rows(self, names: list[str]) -> list[Any]:
        return [*zip(*(_values(self.columns[name]) for name in names), strict=True)]


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _size(value: Any) -> str:
    """Return what a value is, in few words."""
    if _is_frame(value):
        rows, width = value.shape
        return f"{rows:,} row{'s' * (rows != 1)} × {width:,} column{'s' * (width != 1)}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        if not value.shape:
            return _text(value.item())
        size = " × ".join(f"{n:,}" for n in value.shape)
        return f"{size} value{'s' * (size != '1')} ({value.dtype})"
    if isinstance(value, (list, tuple, dict, set)):
        return f"{len(value):,} item{'s' * (len(value) != 1)}"
    return _text(repr(value)) if type(value) in _SCALARS else type(value).__name__


def _type(column: Any) -> str:
    categories = getattr(column.dtype, "categories", None)
    if categories is None:
        return str(column.dtype)
    between = " < " if getattr(column.dtype, "ordered", False) else ", "
    return f"categories {_text(between.join(map(_label, categories)))}"


def _missing(column: Any) -> list[bool]:
    if hasattr(column, "isna"):
        return column.isna().tolist()  # type: ignore[no-any-return]
    values = column.tolist() if hasattr(column, "tolist") else column.to_list()
    return [one is None or one != one for one in values]


def _count_missing(column: Any) -> int:
    return int(column.isna().sum()) if hasattr(column, "isna") else sum(_missing(column))


def _values(column: Any) -> list[Any]:
    """Return a column's values with None for what is missing.

    Raises:
        ValueError: they are too many to be looked at.
    """
    kind = str(column.dtype).lower()
    if len(column) > (_DATES if "date" in kind or kind in ("object", "time") else _ROWS):
        raise ValueError(kind)
    values = column.tolist() if hasattr(column, "tolist") else column.to_list()
    lacks = _missing(column)
    if any(lacks):
        values = [None if no else one for one, no in zip(values, lacks, strict=True)]
    is_plain = isinstance(next((one for one in values if one is not None), None), Hashable)
    return values if is_plain else [*map(repr, values)]


def _taken(column: Any, places: list[int] | None) -> Any:
    """Return some of a column's values, or all, as what can be compared at once."""
    if not hasattr(column, "array"):
        return column if places is None else column.gather(places)
    return column.array if places is None else column.take(places).array


def _equal(first: Any, second: Any) -> bool:
    with contextlib.suppress(Exception):
        return bool(first.equals(second))
    return False


def _is_number(column: Any) -> bool:
    return re.match(r"u?int|float|decimal", str(column.dtype).lower()) is not None


def _is_text_number(column: Any) -> bool:
    if not str(column.dtype).lower().startswith(("str", "object")):
        return False
    some = [one for one in _values(column.head(1_000)) if one is not None]
    numbers = [one for one in some if isinstance(one, str) and _NUMBER.fullmatch(one)]
    is_code = any(re.match(r"\s*0\d", one) for one in numbers)  # 01099
    return len(numbers) > 0.8 * len(some) and not is_code


def _names_rows(column: Any) -> bool:
    if not hasattr(column, "isna"):
        return column.n_unique() == len(column) > 0 == column.null_count()  # type: ignore[no-any-return]
    few = column[:_SAMPLE]
    with contextlib.suppress(TypeError):  # lists
        return bool(len(few) and few.is_unique and column.is_unique and not column.hasnans)
    return False


# Which row of one table a row of another was


def _origin(old: _Table, new: _Table, *, same: bool) -> tuple[Any, str] | None:
    """Return for each row of a table its place in the one that it was made of, and the key.

    A row that was not there has -1. The key is the column that names rows, if one does. None is for
    tables that have nothing to do with each other; `same` says that one name holds both.
    """
    shared = [name for name in old.columns if name in new.columns]
    indexes = [getattr(one.value, "index", None) for one in (old, new)]
    as_before = old.height == new.height and (indexes[0] is None or indexes[0].equals(indexes[1]))
    here = _array(range(new.height))
    if as_before and all(_same(old, new, name) for name in shared[:1]):
        return here, ""
    own = [name for name in shared if name in old.own and name in new.own]
    unsure = None
    for name in shared:
        if "float" in old.type(name) or not _names_rows(old.columns[name]):
            continue
        if as_before and _agree(old, new, name, here):
            return here, ""
        found = _looked_up(old.columns[name], new.columns[name])
        if not _is_known(found) or _is_computed(old, new, found, own, name, same=same):
            continue
        # That numbers are among those of a column shows nothing: it may be a count.
        others = [one for one in own if one != name]
        as_many = not any(map(len, _counted(found, old.height)[:2]))
        if as_before and not as_many:  # the column may have other values
            count = _count_same(old, new, others, here)
            if count and count >= _count_same(old, new, others, found):
                return here, ""
        sure = any(_agree(old, new, one, found, whole=not as_many) for one in others) or (
            not others and not _is_number(old.columns[name])
        )
        if sure:
            return found, name
        if same and old.height == new.height:
            unsure = found, name
    if not own:
        return None
    found = here if as_before else ()
    if not as_before and indexes[0] is not None and indexes[0].is_unique:
        found = indexes[0].get_indexer(indexes[1])
    alike = len(found) and min(found) >= 0 and any(_agree(old, new, name, found) for name in own)
    count = _count_same(old, new, own, here) if old.height == new.height else 0
    # The labels may be others, as of a table that was sorted and got new ones.
    if _SHARE * count > len(own) and not (alike and _count_same(old, new, own, found) >= count):
        return here, ""
    if alike and all(hasattr(one, "step") for one in indexes) and not as_before:
        alike = _count_same(old, new, own, found) == len(own)  # the labels are mere numbers
    if alike and indexes[0] is not None:
        return found, ""
    if (same or len(own) > 1) and len(own) * (old.height + new.height) <= _ITEMS:
        free = dict[Any, list[int]]()
        for place, row in enumerate(old.rows(own)):
            free.setdefault(row, []).append(place)
        left = (free.get(row, [-1]) for row in new.rows(own))
        found = _array([one.pop(0) if len(one) > 1 else one[0] for one in left])
        known = _SHARE * sum(one >= 0 for one in found) > len(found)
        if known and not _is_computed(old, new, found, own, "", same=same):
            return found, ""
    whole = as_before and (alike or (same and not unsure))
    return (here, "") if whole else unsure


def _looked_up(known: Any, asked: Any) -> Any:
    """Return the places of values in a column that has each once, -1 for others."""
    pandas = sys.modules.get("pandas")
    if pandas and hasattr(known, "array"):
        return pandas.Index(known).get_indexer(asked)
    where = {value: place for place, value in enumerate(_values(known))}
    return _array([where.get(value, -1) for value in _values(asked)])


def _array(places: Iterable[int]) -> Any:
    """Return places as an array where NumPy is there: Polars does without."""
    numpy = sys.modules.get("numpy")
    return [*places] if numpy is None else numpy.fromiter(places, dtype=int)


def _counted(places: Any, height: int) -> tuple[Any, Any, Any, bool]:
    """Return which rows are in no place, in several, which came from one, and if they moved."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        counts, rows = Counter(places), [n for n, place in enumerate(places) if place >= 0]
        gone = [place for place in range(height) if not counts[place]]
        known = [place for place in counts if place >= 0]  # as they come first
        again = [place for place in known if counts[place] > 1]
        return gone, again, rows, known != sorted(known)
    counts = numpy.bincount(places[places >= 0], minlength=height)
    gone, again = (numpy.flatnonzero(one) for one in (counts == 0, counts > 1))
    first = numpy.unique(places[places >= 0], return_index=True)[1] if len(again) else places
    first = first[first >= 0]
    return gone, again, numpy.flatnonzero(places >= 0), bool((numpy.diff(first) < 0).any())


def _same(old: _Table, new: _Table, name: str) -> bool:
    return _equal(*(_taken(table.columns[name], None) for table in (old, new)))


def _agree(old: _Table, new: _Table, name: str, places: Any, *, whole: bool = False) -> bool:
    """Return True if most values of two columns, or all, are the same in a sample of the rows."""
    rows = [n for n in range(0, len(places), len(places) // _SAMPLE + 1) if places[n] >= 0]
    was = _taken(old.columns[name], _array(places[n] for n in rows))
    return _is_like(was, _taken(new.columns[name], rows), whole=whole)


def _is_like(was: Any, now: Any, *, whole: bool = False) -> bool:
    if len({"bool" in str(one.dtype).lower() for one in (was, now)}) > 1:
        return False  # 1 is no True
    some = slice(None, None, len(was) // _SAMPLE + 1)
    pairs = zip(_values(was[some]), _values(now[some]), strict=True)
    same = [bool(one == two) for one, two in pairs]
    return all(same) if whole else sum(same) * _SHARE > len(same)


def _fits(old: _Table, new: _Table, places: Any) -> bool:
    shared = [name for name in new.own if name in old.own]
    known = len(places) and min(places) >= 0
    return bool(known) and _count_same(old, new, shared, places) == len(shared)


def _count_same(old: _Table, new: _Table, names: list[str], places: Any) -> int:
    """Return how many columns have the values that are at some places of the other table's."""
    pairs = ((_taken(old.columns[n], places), _taken(new.columns[n], None)) for n in names)
    return sum(_equal(*pair) for pair in pairs)


def _is_known(places: Any) -> bool:
    known = (places >= 0).sum() if hasattr(places, "sum") else sum(one >= 0 for one in places)
    return len(places) > 0 and bool(_SHARE * known >= len(places))


def _is_computed(
    old: _Table, new: _Table, places: Any, own: list[str], key: str, *, same: bool
) -> bool:
    """Return True for sums of groups and the like, of which some equal a row by chance.

    Other rows have taken the place of those that are gone, and are no mere keys without one.
    """
    gone, _, rows, _ = _counted(places, old.height)
    unknown = [n for n, place in enumerate(places) if place < 0]
    if not len(gone) or len(unknown) <= same * len(rows) / _OTHERS:
        return False
    some = unknown[:_SAMPLE]
    lacks = {n: _missing(_taken(new.columns[n], some)) for n in {*own, *new.own}}
    others = [n for n in own if n != key]
    mere = [
        (lacks[key][n] if key in lacks else False) or all(lacks[one][n] for one in others)
        for n in range(len(some))
    ]
    nothing = map(all, zip(*(lacks[n] for n in new.own), strict=True))  # a shift
    return not all(mere) or any(nothing)


# What differs


def _tables(
    old: _Table, new: _Table, name: str, of: str, origin: tuple[Any, str], *, alone: bool = True
) -> Effects:
    """Yield what became of the rows and values of a table, in the same name or in another.

    `alone` says that its rows are not looked up, as often as another table's rows need them.
    """
    places, key = origin
    gone, again, rows, moved = _counted(places, old.height)
    in_order = len(rows) == len(places) > 0 and not (moved or len(again))
    # The answer is a head, which is shown as one.
    is_slice = not name and in_order and places[-1] - places[0] == len(places) - 1
    where = {"name": name, "of": of, "total": old.height, "column": key}
    none = gone[:0]
    for kind, found in (
        ("gone", none if is_slice else gone),
        ("repeated", again if alone else none),
    ):
        if count := len(found):
            index = getattr(old.value, "index", None)
            labels = [] if index is None or hasattr(index, "step") else [index]
            told = [old.columns[key]] if key else labels or [old.columns[n] for n in old.own[:3]]
            few = [*zip(*(_values(_taken(one, found[:_FEW])) for one in told), strict=True)]
            rows_lost = {*map(int, found)} if kind == "gone" and count <= _ITEMS else ()
            yield _effect(kind, count=count, values=_some(few), rows=rows_lost, **where)
    if not of and moved and not len(gone):
        yield _effect("reordered", name=name)
    if not alone:
        return
    whole = len(rows) == len(places)
    as_before = whole and not moved and not (len(gone) or len(again))
    theirs = None if as_before else _array(places[n] for n in rows) if not whole else places
    changed, kept = list[tuple[str, Any, Any]](), not of
    for column in new.own:
        source = old.own[0] if _is_series(old.value) and _is_series(new.value) else column
        twins = new.labels.count(column) > max(1, old.labels.count(source))
        if source in old.columns and not twins:
            was = _taken(old.columns[source], theirs)
            now = _taken(new.columns[column], None if whole else rows)
            if not (_equal(was, now) and old.type(source) == new.type(column)):
                changed.append((column, was, now))
            elif column != key:
                kept = True
    # What has none of another table's columns as they were, nor most of their values, is computed.
    if kept or all(_is_like(was, now) for _, was, now in changed):
        for column, was, now in changed:
            with contextlib.suppress(ValueError):  # they are too many
                yield from _column(was, now, name=name, of=of, column=column)
    if not is_slice:
        yield from _totals(old, new, name, of, key)


def _column(before: Any, after: Any, **where: Any) -> Effects:
    """Yield what became of a column's values."""
    types = {"before": _type(before), "after": _type(after)}
    # Categories count in their order; how a type is written, does not.
    ordered = hasattr(before.dtype, "categories") and types["before"] != types["after"]
    retyped = ordered or before.dtype != after.dtype
    if retyped and not {*types.values()} <= {"object", "str", "string"}:
        yield _effect("type", **where, **types)
    size, known = len(before), len(before) - _count_missing(before)
    if not retyped and hasattr(before, "isna"):  # only the rows that may differ
        lacks, same = (before.isna(), after.isna()), before == after
        if hasattr(same, "to_numpy"):  # it may be missing
            same = same.to_numpy(dtype=bool, na_value=False)
        rows = (lacks[0] != lacks[1]) | ~(lacks[0] | lacks[1] | same)
        before, after = before[rows], after[rows]
    first, second = _values(before), _values(after)
    if len(first) > 1 and first != second and Counter(first) == Counter(second):
        yield _effect("reordered", **where)
        return
    both = [*zip(first, second, strict=True)]
    filled = [now for was, now in both if was is None and now is not None]
    lost = [was for was, now in both if now is None and was is not None]
    others = [one for one in both if one[0] is not None and one[1] is not None and one[0] != one[1]]
    others = [(was, now) for was, now in others if not _reads_as(was, now, retyped=retyped)]
    if filled:
        constant = _text(filled[0]) if len({*map(_text, filled)}) == 1 else ""
        yield _effect("filled", **where, count=len(filled), after=constant)
    if others:
        yield _effect("overwritten", **where, count=len(others), total=known, **_pair(*others[0]))
    if lost:
        yield _effect("missing", **where, count=len(lost), total=size, values=_some(lost))


def _pair(was: Any, now: Any) -> dict[str, str]:
    """Return two values that differ as texts that do."""
    plain = type(was) is not dict and _text(was) != _text(now) and "" not in (was, now)
    write = _text if plain else repr
    return {"before": _text(write(was)), "after": _text(write(now))}


def _reads_as(was: Any, now: Any, *, retyped: bool) -> bool:
    if isinstance(was, (int, float)) and isinstance(now, (int, float)):
        return math.isclose(was, now, rel_tol=_CLOSE)
    if not retyped or str(was) == str(now) or (_text(was) == _text(now) and _is_time(was)):
        return retyped
    with contextlib.suppress(ValueError, TypeError):
        return math.isclose(float(was), float(now), rel_tol=_CLOSE)
    return not isinstance(now, (int, float)) and str(now).startswith(str(was))  # a date


def _totals(old: _Table, new: _Table, name: str, of: str, key: str = "") -> Effects:
    for column in new.own:
        if column == key or column not in old.own:
            continue
        both = old.columns[column], new.columns[column]
        names_rows = old.height > 2 and "int" in old.type(column) and _names_rows(both[0])
        if names_rows or not all(map(_is_number, both)):
            continue
        was, now = (one.sum() for one in both)
        if not (math.isclose(was, now, rel_tol=_CLOSE, abs_tol=_CLOSE) or was != was != now != now):
            pair = dict(zip(("before", "after"), _sums(was, now), strict=True))
            yield _effect("total", name=name, of=of, column=column, **pair)


def _sums(*values: Any) -> list[str]:
    """Return sums with as many digits as tell them apart."""
    texts = list[str]()
    for places in (2, 4, 6):
        texts = [_sum(one, places) for one in values]
        if len({*texts}) == len(texts):
            return texts
    return [*map(str, values)]


def _sum(value: Any, places: int) -> str:
    if not isinstance(value, float):
        return f"{value:,}"
    value = 0.0 if abs(value) < _CLOSE else value
    return f"{value:,.{places}f}" if abs(value) >= 1 or not value else f"{value:.6g}"


def _items(was: Any, now: Any, name: str, of: str) -> Effects:
    """Yield which items of a list, a dict or a set are gone, repeated, moved or others."""
    first, second = ([*map(_item, one)] for one in (was, now))
    shown = {
        n: "None" if one is None else one
        for n, one in zip((*second, *first), (*now, *was), strict=True)
    }
    old, new = Counter(first), Counter(second)
    where = {"name": name, "of": of, "total": len(first), "unit": "item"}
    if not of and type(was) in (list, tuple) and len(was) == len(now) and old != new:
        others = [pair for pair in zip(was, now, strict=True) if not _alike(*pair)]
        yield _effect("overwritten", count=len(others), **where, **_pair(*others[0]))
        return
    if gone := old - new:
        cause = "repeats" if old.keys() == new.keys() else ""
        yield _effect(
            "gone", count=gone.total(), values=_some(map(shown.get, gone)), cause=cause, **where
        )
    if again := [one for one in new if new[one] > old[one] > 0]:
        yield _effect("repeated", count=len(again), values=_some(map(shown.get, again)), **where)
    if not of and type(was) is not set and old == new and first != second:
        yield _effect("reordered", name=name, of=of, unit="item")
    if (
        not of
        and type(was) is dict
        and (others := [n for n in was if n in now and not _alike(was[n], now[n])])
    ):
        pair = _pair(was[others[0]], now[others[0]])
        yield _effect("overwritten", count=len(others), values=_some(others), **where, **pair)
    if (added := new - old) and not of:
        after = f"{_size(now)}, new: {', '.join(_some(map(shown.get, added)))}"
        yield _effect("changed", name=name, before=_size(was), after=after)


def _item(value: Any) -> Any:
    """Return what tells an item from others."""
    with contextlib.suppress(Exception):
        if value != value:
            return None
        hash(value)
        return value
    return repr(value)


def _is_made_of(was: Any, now: Any) -> bool:
    lists = type(was) is type(now) and type(was) in (list, tuple, dict, set)
    if not lists or min(len(was), len(now)) < 2 or len(now) > _ITEMS:
        return False
    old, new = (Counter(map(_item, one)) for one in (was, now))
    # As many, but not the same ones: each was computed, and has a value of theirs by chance.
    return new.keys() <= old.keys() and (len(was) != len(now) or new == old)


def _alike(first: Any, second: Any) -> bool:
    with contextlib.suppress(Exception):
        same = type(first) is type(second)
        return same and (marshal.dumps(first) == marshal.dumps(second) or bool(first == second))
    return False


def _differ(name: str, was: Any, now: Any) -> Effects:
    """Yield how what a name holds differs from what it held."""
    same_kind = type(was) is type(now)
    if _library(was) and _library(was) == _library(now):
        old, new = _Table(was), _Table(now)
        traits = [_traits(one) for one in (was, now)]
        types = [[*map(one.type, one.own)] for one in (old, new)]
        if same_kind and _equal(was, now) and traits[0] == traits[1] and types[0] == types[1]:
            return
        origin = _origin(old, new, same=True) if _is_frame(was) == _is_frame(now) else None
        found = [*_tables(old, new, name, "", origin)] if origin else []
        yield from found
        if _is_frame(was) and _is_frame(now):
            columns = [*_columns(old, new, name)]
            yield from columns
            found += columns
        resized = old.height != new.height
        if not found or (resized and not any(one["kind"] in ("gone", "repeated") for one in found)):
            yield from _sizes(name, was, now)
            for one, before in () if resized else traits[0].items():
                if (after := traits[1].get(one, before)) != before:
                    pair = {"before": f"{one} {before or 'none'}", "after": after or "none"}
                    yield _effect("changed", name=name, **pair)
            if [_size(was), traits[0]] == [_size(now), traits[1]] and not _equal(was, now):
                yield _effect("changed", name=name)  # in a column that was not looked at
    elif _is_array(was) and _is_array(now) and was.size <= _ROWS:
        if was.shape == now.shape:
            items = [_values(one.ravel()) for one in (was, now)]
            if Counter(items[0]) == Counter(items[1]) and items[0] != items[1]:
                yield _effect("reordered", name=name, unit="item")
                return
            for told in _column(was.ravel(), now.ravel(), name=name):
                yield told | ({"kind": "changed"} if told["kind"] == "type" else {})
        elif was.ndim == now.ndim == 1:
            yield from _items(was.tolist(), now.tolist(), name, "")
        else:
            yield from _sizes(name, was, now)
    elif same_kind and type(was) in (list, tuple, dict, set):
        same = _alike(was, now) and (type(was) is not dict or [*was] == [*now])
        yield from () if same else _items(was, now, name, "")
    elif not _alike(was, now):
        yield from _sizes(name, was, now)


def _sizes(name: str, was: Any, now: Any) -> Effects:
    """Yield that a value became one of another size, or else of another type."""
    for say in (_size, lambda one: type(one).__name__):
        if (before := say(was)) != (after := say(now)):
            yield _effect("changed", name=name, before=before, after=after)
            return


def _columns(old: _Table, new: _Table, name: str) -> Effects:
    labels = [dict.fromkeys(one.labels) for one in (old, new)]
    lost, added = ([n for n in a if n not in b] for a, b in (labels, labels[::-1]))
    both = [*zip(lost, added, strict=False)]
    if len(lost) == len(added) and all(
        _equal(
            _taken(old.values(old.labels.index(one)), None),
            _taken(new.values(new.labels.index(other)), None),
        )
        for one, other in both
    ):
        told = {"renamed": [f"{one} → {other}" for one, other in both]}
    else:
        told = {
            "gone": [one for one in lost if one not in new.columns],
            "index": [one for one in lost if one in new.columns],
            "": added,
        }
    for cause, names in told.items():
        if names:
            values = {"count": len(names), "values": names[:_FEW]}
            yield _effect("columns", name=name, cause=cause, **values)
    if not lost and not added and [*labels[0]] != [*labels[1]]:
        yield _effect("columns", name=name, cause="reordered")


def _traits(value: Any) -> dict[str, str]:
    """Return in words what stands next to a table's values."""
    found, index = {}, getattr(value, "index", None)
    if _is_series(value):
        found["name"] = _label(value.name)
    if index is not None:
        labels, more = map(_label, index[:_FEW]), ", …" * (len(index) > _FEW)
        found |= {"row labels": ", ".join(labels) + more, "index name": _text((*index.names,))}
        found |= {"attrs": repr(value.attrs), "flags": repr(value.flags)}
        if _is_frame(value):
            found["columns' name"] = _text((*value.columns.names,))
    return found


# Before and after


class Account:
    """What a text does to data.

    Args:
        variables: the user's, by name, before the text runs.
        outputs: the names of the program that collects outputs.
        limit: as for its functions.
    """

    def __init__(
        self, variables: dict[str, Any], outputs: dict[str, Any], limit: Callable[[float], float]
    ) -> None:
        self._variables, self._table = variables, outputs["_table"]
        self._within: Callable[[float, Callable[[], None]], None] = lambda seconds, action: outputs[
            "_within"
        ](seconds, limit, action)
        self._clock, self._left = time.process_time, _STEP_SECONDS  # a text may replace them
        self._thread = threading.get_ident()
        self._before = {name: _copy(value) for name, value in variables.items()}
        self._sites = _Sites()
        self._records = dict[int, dict[Any, Any]]()
        self._visits = Counter[int]()
        self._steps = list[tuple[Effect, Any]]()  # with what the step gave
        self._keys = set[str]()  # columns by which the text joins and groups
        self._warned = list[tuple[str, str, int]]()
        self._stores = list[tuple[int, str, Any, Any]]()  # that pandas warned of

    def watch(self, tree: ast.Module, file: str, names: dict[str, Any]) -> ast.Module:
        """Return a text's tree with its calls noted; note its warnings, too."""
        self._file, self._text = file, _Reading(tree)
        _Table.named = frozenset(self._text.named)
        names[_KEEP], names[_DONE] = self._keep, self._done
        show = warnings.showwarning

        def note(message: Any, category: Any, filename: str, lineno: int, *more: Any) -> None:
            if filename == file:
                with contextlib.suppress(Exception):
                    words = "" if category.__name__ in _CHAINED else str(message)
                    self._warned.append((category.__name__, words, lineno))
                    if issubclass(category, _CHANGES):
                        _LATER.add(category.__name__)
            show(message, category, filename, lineno, *more)

        warnings.showwarning = note  # type: ignore[assignment]
        for name in ("frame", "series", "generic", "indexing"):
            module = sys.modules.get(f"pandas.core.{name}")
            if getattr(module, "warnings", None) is warnings:
                module.warnings = _Warnings(self._chained)  # type: ignore[union-attr]
        self._sites.visit(tree)
        return ast.fix_missing_locations(tree)

    def _chained(self, category: str, frame: Any) -> None:
        """Note that pandas says that what is stored into stays as it was."""
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        if frame is None:
            return
        self._warned.append((category, "", frame.f_lineno))
        root = self._text.roots.get(frame.f_lineno, "")
        value = _look_up(root, frame)
        if _library(value):
            name = _find_name(value, frame) or root
            self._stores.append((frame.f_lineno, name, value, _copy(value)))

    def _keep(self, value: Any, site: int, key: Any) -> Any:
        if key == 0 and threading.get_ident() == self._thread:
            self._records.pop(site, None)
            named = value if type(value) in (type(sys), type(_rank), type) else type(value)
            module = getattr(named, "__module__", None) or getattr(named, "__name__", "")
            ours = str(module).partition(".")[0] in ("pandas", "polars") or bool(_library(value))
            if (ours or _is_plain(value)) and self._left > 0 and self._visits[site] < _VISITS:
                self._visits[site] += 1
                self._records[site] = {"size": len(value) if _library(value) else 0}
        if site in self._records:
            self._records[site][key] = value
        return value

    def _done(self, result: Any, site: int) -> Any:
        record = self._records.pop(site, None)
        if record is not None:
            start, frame = self._clock(), sys._getframe(1)
            self._within(self._left, lambda: self._step(site, record, result, frame))
            self._left -= self._clock() - start
        return result

    def _step(self, site: int, record: dict[Any, Any], result: Any, frame: Any) -> None:
        made = weakref.ref(result) if _library(result) else None
        step = _Step(self._sites.found[site], record, result, frame, self._text)
        self._keys |= step.keys()
        self._steps += [({**one, "line": step.line}, made) for one in step.effects()]

    def report(self, after: dict[str, Any], value: Any, *, odd: bool) -> list[Effect]:
        """Return what the text did, the most telling first; `odd` asks about its answer, too."""
        found = list[Effect]()
        own = {n: v for n, v in after.items() if n[:1] != "_" and n.isidentifier()}
        self._within(_SECONDS, lambda: self._look(own, value, found, odd=odd))
        kept, counts = list[Effect](), Counter[str]()
        with contextlib.suppress(Exception):
            steps = [one for one, _ in self._steps]
            every = [one for one in _merged(steps, found, self._why) if self._is_sum_of_worth(one)]
            for one in sorted(every, key=_rank):
                counts[one["kind"]] += 1
                if counts[one["kind"]] <= _MOST_OF.get(one["kind"], _MOST):
                    kept.append(one)
        return kept[:_MOST]

    def _is_sum_of_worth(self, effect: Effect) -> bool:
        column = effect.get("column", "")
        return effect["kind"] != "total" or (
            column in self._text.named and column not in self._keys
        )

    def _look(self, own: dict[str, Any], value: Any, found: list[Effect], *, odd: bool) -> None:
        for one, reference in self._steps:
            made = reference() if reference else None
            name = next((n for n, v in own.items() if v is made), "")
            if made is not None and name and one["kind"] not in _OF_SOURCES:
                one["name"] = name
                if one.get("of") == name:
                    del one["of"]
        self._settle([*own.values(), value])
        for line, name, held, was in self._stores:
            now = own.get(name, held)
            effect = _effect("unchanged", name=name, line=line, cause=_CHAINED[0])
            if _library(now) and _equal(was, now) and effect not in found:
                found.append(effect)
        lines = {one["line"] for one in found}
        for category, message, line in dict.fromkeys(self._warned):
            if category not in _CHAINED or line not in lines:
                words = message.strip().partition("\n")[0][:_WORDS]
                found.append(_effect("warning", cause=category[:_WIDTH], line=line, after=words))
        changed = bool(lines or self._variables.keys() - own.keys())
        for name, was in self._before.items():
            if name in own and was is not None:
                start, unread = len(found), True
                with contextlib.suppress(Exception):
                    found.extend(_differ(name, was, own[name]))
                    if _is_frame(was) and _is_frame(own[name]) and len(found) > start:
                        found.extend(self._mixed(_Table(own[name]), name, {*_Table(was).own}))
                    unread = _is_open(was)
                changed |= unread or len(found) > start
            elif was is not None and _holds_data(was):
                found.append(_effect("changed", name=name, before=_size(was), after="deleted"))
            elif name in own:
                changed |= type(own[name]) not in (*_CODE, type(None))
                changed |= own[name] is not self._variables[name]
        with contextlib.suppress(Exception):
            found.extend(self._odd(own, value, changed=changed) if odd else ())
            found.extend(self._lost_rows(own))
            found.extend(self._zones())
        for name, one in self._new(own, value):
            with contextlib.suppress(Exception):
                found.extend(self._made(name, one, own, shown=one is value))

    def _settle(self, values: list[Any]) -> None:
        """Tell the missing values that steps made, and that are none any more, as filled."""
        steps, known = [one for one, _ in self._steps], [*self._variables.values()]
        tables = [_Table(v) for v in values if _library(v) and not any(v is one for one in known)]
        for number, one in enumerate(steps):
            if one["kind"] != "missing":
                continue
            column, cause, count = one.get("column", ""), one.get("cause"), one["count"]
            read = cause in ("coerced", "mapped")  # of a column that may be as it was
            for fill in steps[number + 1 :]:
                same = fill["kind"] == "filled" and fill.get("column", column) == column
                if same and fill["count"] >= count:
                    if read:
                        one["after"] = fill.get("after", "other values")
                    elif fill["count"] == count:
                        fill |= {n: one[n] for n in ("cause", "other", "values") if n in one}
                    (fill if read else one)["kind"] = ""
                    break
            else:
                ends = [t for t in tables if column in t.columns and t.height == one["total"]]
                if ends and not read and not any(end.lacks(column) for end in ends):
                    one["kind"] = "filled"
        told = list[Any]()  # what fills a column may be in what is given a table
        for step in [*self._steps]:
            fields = _fields(step[0], "kind", "line", "column", "count")
            if not fields[0] or (fields[0] == "filled" and fields in told):
                self._steps.remove(step)
            told.append(fields)

    def _new(self, own: dict[str, Any], value: Any) -> Iterator[tuple[str, Any]]:
        """Yield what has a new name, and the answer if it has none."""
        seen = {id(own[name]) for name in self._variables if name in own}
        tables = [one for one in own.values() if _library(one)]
        # That of a table the start is shown, or its end, tells nothing.
        shown = value if not any(_is_end(value, one) for one in tables) else None
        for name, one in (*own.items(), ("", shown)):
            if not {name} & {*self._variables, *self._text.loops} and id(one) not in seen:
                seen.add(id(one))
                yield name, one

    def _odd(self, own: dict[str, Any], value: Any, *, changed: bool) -> Effects:
        name = self._text.last
        if value is None and name in own:
            value = own[name]
        cause = "none" if value is None and name in own else _oddity(value)
        if cause:
            yield _effect("answer", cause=cause, name="" if self._text.shows else name)
        new = [n for n in own if n not in self._variables and not isinstance(own[n], _CODE)]
        if value is None and not (cause or new or changed):
            uncalled = next((n for n in self._text.uncalled if n in own), "")
            yield _effect("answer", cause="uncalled" if uncalled else "nothing", name=uncalled)

    def _made(self, name: str, value: Any, own: dict[str, Any], *, shown: bool) -> Effects:
        """Yield what became of the variables, as they are now, in what was made of them."""
        sources = {n: self._source(n, w, value, own) for n, w in self._before.items()}
        if not _library(value):
            for of, was in sources.items():
                first, second = _plain(was), _plain(value)
                if _is_made_of(first, second):
                    yield from _items(first, second, name, of)
            return
        table, origins, sums = _Table(value), list[tuple[str, _Table, Any, bool]](), list[Effect]()
        for of, was in sources.items():
            if _library(was) == table.library:
                old = _Table(was)
                if origin := _origin(old, table, same=False):
                    once = not len(_counted(origin[0], old.height)[1])
                    origins.append((of, old, origin, once))
                elif self._text.only_sums:
                    sums += _totals(old, table, name, of)
        # Where all values are those of one table, one that has its labels alone is not its source.
        if any(_fits(old, table, origin[0]) for _, old, origin, _ in origins):
            origins = [one for one in origins if one[2][1] or _fits(one[1], table, one[2][0])]
        # Nor is one of which it has no more than another has, such as the keys of a join.
        given = [{*old.own} & {*table.own} for _, old, *_ in origins]
        origins = [
            one for one, its in zip(origins, given, strict=True) if not any(its < g for g in given)
        ]
        origins.sort(key=lambda one: -one[1].height)
        alone = not any(once for *_, once in origins)
        for of, old, origin, once in origins:
            yield from _tables(old, table, name, of, origin, alone=once or alone)
            alone = False
        known = {column for _, old, _, once in origins if once for column in old.columns}
        yield from self._mixed(table, name, known)
        theirs = {n for _, old, *_ in origins for n in (*old.columns, *old.labels)}
        yield from (one for one in sums if one["column"] not in theirs)
        if not any(old.height > table.height for _, old, *_ in origins):
            added = [n for n in table.own if n not in theirs]
            lacks = {n: count for n in added if (count := table.lacks(n))}
            if lacks and not (shown and _oddity(value)):
                column = ", ".join(lacks) if len(lacks) <= _NAMES else ""
                total = table.height * len(lacks if column else added)
                count = sum(lacks.values())
                made = any(map(_holds_data, self._variables.values()))
                where = {"name": name, "column": column, "cause": "new" if made else "read"}
                yield _effect("missing", count=count, total=total, **where)
        if name and not shown:
            yield _effect("new", name=name, after=_size(value), head=self._table(value))

    def _source(self, name: str, was: Any, made: Any, own: dict[str, Any]) -> Any:
        """Return a variable as it is now, or as it was where something was made of that."""
        now = own.get(name)
        if type(now) is not type(was) or _equal(was, now):
            return was
        for one in (now, was) if _library(was) and _library(was) == _library(made) else ():
            old, new = _Table(one), _Table(made)
            origin = _origin(old, new, same=False)
            if origin and _fits(old, new, origin[0]):
                return one
        return now

    def _why(self, gone: Effect, rows: set[int]) -> Effect:
        """Return why rows are gone, if all of them have what no row has that is left."""
        of = gone.get("of") or gone.get("name", "")
        table = _Table(self._before[of])
        for name in table.own if table.height * len(table.own) <= _ITEMS else ():
            values = _values(table.columns[name])
            lacks = {n for n, one in enumerate(values) if one is None}
            if rows == lacks:
                return {"cause": "missing", "column": name, "values": []}
            for other, theirs in self._before.items():
                if other != of and _is_frame(theirs) and name in theirs.columns:
                    known = {None, *_values(theirs[name])}
                    alone = [n for n, one in enumerate(values) if one not in known]
                    if alone and rows == {*alone, *lacks}:
                        few = _some(values[n] for n in alone)
                        return {"cause": "unmatched", "column": name, "other": other, "values": few}
        return {}

    def _mixed(self, table: _Table, name: str, known: set[str]) -> Effects:
        """Yield the columns whose values are not those that another table has for the same key."""
        for other, value in self._before.items():
            if _library(value) != table.library or other == name or not _is_frame(value):
                continue
            theirs = _Table(value)
            columns = [n for n in table.own if n in theirs.own and n not in known]
            keys = [n for n in table.columns if n in known and n in theirs.columns]
            for key in [n for n in keys if _names_rows(theirs.columns[n])][:1]:
                there = {k: n for n, k in enumerate(_values(theirs.columns[key]))}
                places = [there.get(k, -1) for k in _values(table.columns[key])]
                for column in columns:
                    was, now = _values(theirs.columns[column]), _values(table.columns[column])
                    both = [(was[p], v) for p, v in zip(places, now, strict=True) if p >= 0]
                    both = [pair for pair in both if None not in pair]
                    # A number that became text is told as that.
                    if others := [(a, b) for a, b in both if a != b and str(a) != str(b)]:
                        pair = dict(zip(("before", "after"), map(_text, others[0]), strict=True))
                        where = {"name": name, "column": column, "other": other, "cause": key}
                        count = {"count": len(others), "total": len(both)}
                        yield _effect("differs", **count, **where, **pair)

    def _lost_rows(self, own: dict[str, Any]) -> Effects:
        """Yield the tables that stay as they were though a loop stores into their rows."""
        for name, line in self._text.rows.items():
            if _library(was := self._before.get(name)) and _equal(was, own.get(name)):
                yield _effect("unchanged", name=name, line=line)

    def _zones(self) -> Effects:
        """Yield the zones of times of which the text takes the day or the hour."""
        for of, value in self._variables.items() if self._text.named & _TIMES else ():
            zones = dict[str, Any]()
            if _library(value):
                types = {name: one.dtype for name, one in _Table(value).columns.items()}
                zones = {
                    n: getattr(t, "tz", getattr(t, "time_zone", None)) for n, t in types.items()
                }
            elif type(value) in (list, tuple):
                for item in value[:1]:
                    parts = item if type(item) is dict else {"": item}
                    times = {n: t for n, t in parts.items() if isinstance(t, datetime.datetime)}
                    zones = {n: t.tzinfo for n, t in times.items()}
            for name, zone in zones.items():
                if zone and (name in self._text.named or not name):
                    yield _effect("zone", of=of, column=name, after=str(zone))


class _Warnings:
    """Stands for the module in pandas, as a text may have switched warnings off."""

    def __init__(self, note: Callable[[str, Any], None]) -> None:
        self._note = note

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)

    def warn(self, message: Any, category: Any = None, stacklevel: int = 1, **more: Any) -> None:
        if getattr(category, "__name__", "") in _CHAINED:
            with contextlib.suppress(Exception):
                self._note(category.__name__, sys._getframe(1))
        warnings.warn(message, category, stacklevel + 1, **more)


def _is_plain(value: Any) -> bool:
    """Return True for a list or the like, and for a built-in function that takes one."""
    return type(value) in _LISTS or any(value is one for one in _BUILTINS)


def _plain(value: Any) -> Any:
    return _values(value) if _is_array(value) and value.ndim == 1 else value


def _copy(value: Any) -> Any:
    """Return what can be compared with a value once code had it; None for nothing."""
    with contextlib.suppress(Exception):
        if _library(value) == "polars":
            return value.clone()
        if _library(value):
            shares = int(sys.modules["pandas"].__version__.partition(".")[0]) >= 3
            frame = value.to_frame() if _is_series(value) else value
            size = 0 if shares else frame.memory_usage().sum()
            return value.copy(deep=not shares) if size <= _BYTES else None
        if _is_array(value):
            return value.copy() if value.nbytes <= _BYTES else None
        if type(value) in (list, tuple, dict, set) and len(value) <= _ITEMS:
            return marshal.loads(marshal.dumps(value))  # which refuses all but plain values
        if type(value) in _SCALARS:
            return value
    return None


def _is_open(value: Any) -> bool:
    """Return True for a table whose cells may hold lists and the like, which no copy keeps."""
    columns = _Table(value).columns.values() if _library(value) else [value] * _is_array(value)
    return any(str(one.dtype).lower().startswith("object") for one in columns)


def _holds_data(value: Any) -> bool:
    kinds = (list, tuple, dict, set)
    return bool(_library(value)) or _is_array(value) or isinstance(value, kinds)


def _is_end(value: Any, table: Any) -> bool:
    if type(value) is not type(table) or not 0 < len(value) < len(table):
        return False
    return any(_equal(end(len(value)), value) for end in (table.head, table.tail))


def _oddity(value: Any) -> str:
    """Return what is odd about an answer."""
    if type(value) in (str, list, tuple, dict, set, frozenset) and not value:
        return "empty"
    if type(value) in (list, tuple):
        return "missing" if all(map(_is_missing, value)) else ""
    if _library(value):
        table = _Table(value)
        if not table.height or not table.own:
            return "empty"
        return "missing" if all(table.lacks(n) == table.height for n in table.own) else ""
    if _is_array(value):
        return "empty" if value.size == 0 else "missing" if (value != value).all() else ""
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return "nan" if value is not None and _is_missing(value) else ""


def _is_missing(value: Any) -> bool:
    with contextlib.suppress(Exception):
        return value is None or type(value).__name__ == "NAType" or bool(value != value)
    return False


def _merged(
    steps: list[Effect], found: list[Effect], why_gone: Callable[[Effect, set[int]], Effect]
) -> list[Effect]:
    """Return what steps and names show, each thing once: a step knows why, a name is known."""
    kept, lost_rows = list[Effect](), dict[str, set[int]]()
    for one in steps:
        same = next(
            (other for other in kept if _fields(other, *_ABOUT) == _fields(one, *_ABOUT)), one
        )
        same.update({"name": one["name"]} if "name" in one else {})
        kept += [one] if same is one else []
    # Rows that a filter selects to drop, or on the way, are told as those that are gone.
    lost = {
        one.get("of") or one.get("name"): one["count"] for one in found if one["kind"] == "gone"
    }
    kept = [
        s
        for s in kept
        if s.get("cause") != "filter"
        or "name" in s
        or lost.get(s.get("of"), s["count"]) == s["count"]
    ]
    for one in found:
        whys = [step for step in steps if step in kept and step["kind"] == one["kind"]]
        column = ("column", "count" if one["kind"] == "filled" else "total")
        if one["kind"] in ("missing", "zone", "filled"):
            if any(_fields(why, *column) == _fields(one, *column) for why in whys):
                continue
        elif one["kind"] in ("gone", "repeated"):
            owner, name = one.get("of") or one.get("name"), one.get("name")
            rows, told = one.pop("rows", set()), lost_rows.setdefault(owner or "", set())
            if (rows and rows <= told) or _is_explained(one, whys):
                continue
            told |= rows
            whys = [why for why in whys if (why.get("of") or why.get("name")) == owner]
            whys = [why for why in whys if why["total"] == one["total"]]
            whys = [why for why in whys if why.get("name", name) == name]
            whole = [why for why in whys if why["count"] == one["count"]][:1]
            if whole and whole[0].get("cause") == "filter" and "unit" in one:
                kept.remove(whole[0])  # the values tell more
                kept.append(one)
                continue
            if whole or (whys and sum(why["count"] for why in whys) == one["count"]):
                for why in (whole or whys) if name else ():
                    why["name"] = name
                    if why.get("of") == name:
                        del why["of"]
                continue
        elif one["kind"] == "total" and (
            twins := [o for o in kept if _fields(one, *_SUMS) == _fields(o, *_SUMS)]
        ):
            if not one.get("name"):  # the answer's is told
                twins[0].pop("name", None)
            continue
        if one["kind"] == "gone" and rows:
            with contextlib.suppress(Exception):
                one |= why_gone(one, rows)
                unused = [s.get("of") for s in steps if s.get("cause") == "unused"]
                if one.get("cause") == "unmatched" and owner in unused:
                    one["cause"] = "unused"
        kept += [] if one in kept else [one]
    # That a filter makes a sum smaller is no news.
    mere = [_fields(one, "name", "of") for one in kept if _rank(one) >= _MERE and "total" in one]
    return [one for one in kept if one["kind"] != "total" or _fields(one, "name", "of") not in mere]


def _is_explained(one: Effect, steps: list[Effect]) -> bool:
    """Return True if steps of several tables tell of the same rows, one after the other."""
    name, count, total = one.get("name"), one["count"], one["total"]
    if one["kind"] == "repeated":
        return any(step.get("name") == name and step["count"] == count for step in steps)
    left, turns = total, 0
    steps = [step for step in steps if step.get("cause") != "unused"]
    while fewer := sum(one["count"] for one in steps if one["total"] == left):
        left, turns = left - fewer, turns + 1
    return turns > 1 and left == total - count


def _fields(effect: Effect, *names: str) -> list[Any]:
    return [effect.get(name) for name in names]


# What the tree says


class _Reading:
    """What can be told from a text's tree.

    Attributes:
        roots: the name that each line stores into, or calls a method of.
        last: the name that the last statement gives, or is.
        shows: whether the last statement is an expression.
        uncalled: the functions that nothing in the text reads.
        only_sums: whether it adds up, and reduces in no other way.
    """

    def __init__(self, tree: ast.Module) -> None:
        nodes = [*ast.walk(tree)]
        last = tree.body[-1] if tree.body else None
        self.roots, self.last, self.shows = dict[int, str](), "", isinstance(last, ast.Expr)
        for node in nodes:
            match node:
                case (
                    ast.Assign(targets=[target, *_])
                    | ast.AugAssign(target=target)
                    | ast.Expr(value=ast.Call(func=target))
                ):
                    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                    self.roots |= dict.fromkeys(lines, _root(target))
        match last:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.Expr(value=ast.Name(id=name)):
                self.last = name
        defined = [
            one for one in tree.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        others = [node for top in tree.body if top not in defined for node in ast.walk(top)]
        read = {node.id for node in others if isinstance(node, ast.Name)}
        plain = (one.name for one in defined if not one.decorator_list)
        self.uncalled = [name for name in plain if name not in read]
        named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        named |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
        self.named, self.rows, self.loops = named, dict[str, int](), set[str]()
        for node in nodes:
            if isinstance(node, ast.For):
                self.loops |= {one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)}
            match node:
                case ast.For(
                    target=target, iter=ast.Call(func=ast.Attribute(owner, attr="iterrows"))
                ):
                    rows = {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
                    for line, root in self._stores(node.body):
                        self.rows |= {_root(owner): line} if root in rows else {}
        self.in_order = bool(named & _IN_ORDER)
        self.only_sums = "sum" in named and not named & _NO_SUMS

    def _stores(self, body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
        for node in itertools.chain.from_iterable(map(ast.walk, body)):
            match node:
                case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as target, *_]):
                    yield node.lineno, _root(target)
                case ast.AugAssign(target=ast.Subscript() | ast.Attribute() as target):
                    yield node.lineno, _root(target)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


_NO_SUMS = {"mean", "median", "std", "var", "min", "max", "count", "size", "nunique"}
# What rests on the order of rows.
_IN_ORDER = {
    *("diff", "pct_change", "shift", "cumsum", "cumprod", "cummax", "rolling", "ewm", "expanding"),
    *("interpolate", "ffill", "bfill", "plot", "iloc", "first", "last"),
}
# What gives a value, or a row, for each row of a group.
_BY_ROW = "by row"
_ROW_BY_ROW = {
    *("transform", "shift", "diff", "pct_change", "rank", "cumsum", "cumprod", "cummax", "cummin"),
    *("cumcount", "ngroup", "ffill", "bfill", "head", "tail", "nth", "filter", "sample"),
}
_LOOKS = {"isna", "notna", "isnull", "notnull", "dropna", "where", "mask"}  # for what is missing
_GROUPS = {  # the arguments that name what they group by
    **{"groupby": ("by",), "value_counts": ("subset",)},
    **dict.fromkeys(("pivot_table", "crosstab"), ("index", "columns")),
}
_TIMES = {
    *("date", "time", "hour", "day", "month", "year", "weekday", "day_of_week", "dayofweek"),
    *("floor", "ceil", "round", "normalize", "day_name", "month_name", "strftime", "to_period"),
    *("isocalendar", "dayofyear", "quarter", "truncate"),
}
_LOOPS = (  # what is in them may run often: there operators are left as they are
    *(ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class _Sites(ast.NodeTransformer):
    """Has those expressions keep what they get and give that may be worth a line."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._loops = 0
        self._skipped = set[int]()

    def generic_visit(self, node: ast.AST) -> ast.AST:
        self._loops += isinstance(node, _LOOPS)
        node = super().generic_visit(node)
        self._loops -= isinstance(node, _LOOPS)
        return node

    def visit_JoinedStr(self, node: ast.AST) -> ast.AST:
        return node

    # Patterns have to stay as they are, and annotations may be read as text.
    visit_arg = visit_MatchValue = visit_MatchClass = visit_TypeAlias = visit_JoinedStr

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_ListComp(self, node: Any) -> ast.AST:
        first = node.generators[0]
        if self._loops or len(node.generators) > 1 or first.is_async:
            return self.generic_visit(node)
        self._loops += 1
        for name in {"elt", "key", "value"} & {*node._fields}:
            setattr(node, name, self.visit(getattr(node, name)))
        first.ifs = [*map(self.visit, first.ifs)]
        self._loops -= 1
        return self._note(node, (first, "iter"))

    visit_DictComp = visit_ListComp

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function: Any = node.func
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        unpacks = any(isinstance(one, ast.Starred) for one in node.args)
        of = function if name in _ROW_BY_ROW else None
        while isinstance(of, (ast.Attribute, ast.Subscript)):
            of = of.value
        if isinstance(of, ast.Call):
            setattr(of, _BY_ROW, True)
        match function:
            case ast.Attribute(value=ast.Call(func=ast.Attribute(attr=inner)) as made) if (
                name in _LOOKS and _TOLD.get(inner) is _Step._coerced
            ):
                self._skipped.add(id(made))
            # pandas counts who holds what is changed in place.
            case ast.Attribute(value=of) if not isinstance(of, ast.Name):
                unpacks |= any(one.arg == "inplace" for one in node.keywords)
        if (
            name not in _TOLD
            or id(node) in self._skipped
            or unpacks
            or not all(one.arg for one in node.keywords)
        ):
            return self.generic_visit(node)
        owner = (function, "value") if isinstance(function, ast.Attribute) else (node, "func")
        return self._note(
            node,
            owner,
            *((node.args, n) for n in range(len(node.args))),
            *((word, "value") for word in node.keywords),
        )

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        owner = node.value
        takes = isinstance(owner, ast.Attribute) and owner.attr == "dt" and node.attr in _TIMES
        if takes and isinstance(node.ctx, ast.Load):
            return self._note(node, (owner, "value"))
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        watched = not self._loops and isinstance(node.op, _OPERATORS)
        parts = (node, "left"), (node, "right")
        return self._note(node, *parts) if watched else self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        watched = not self._loops and len(node.ops) == 1 and isinstance(node.ops[0], _OPERATORS)
        parts = (node, "left"), (node.comparators, 0)
        return self._note(node, *parts) if watched else self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        masks = (ast.Name, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Call)
        loads = isinstance(node.ctx, ast.Load) and isinstance(node.slice, masks)
        parts = (node, "value"), (node, "slice")
        return self._note(node, *parts) if loads and not self._loops else self.generic_visit(node)

    def _note(self, node: Any, *parts: tuple[Any, Any]) -> ast.Call:
        """Wrap an expression, and the parts of it that are at an attribute or in a list."""
        site = len(self.found)
        self.found.append(copy.deepcopy(node))
        for number, (owner, place) in enumerate(parts):
            in_list = isinstance(owner, list)
            part = owner[place] if in_list else getattr(owner, place)
            key = getattr(owner, "arg", None) if isinstance(owner, ast.keyword) else number
            kept = self._call(_KEEP, part, self.visit(part), ast.Constant(site), ast.Constant(key))
            owner.__setitem__(place, kept) if in_list else setattr(owner, place, kept)
        return self._call(_DONE, node, node, ast.Constant(site))

    def _call(self, name: str, at: Any, *arguments: Any) -> ast.Call:
        call = ast.Call(ast.Name(name, ast.Load()), [*arguments], [])
        for one in (call, call.func, *arguments[1:]):
            ast.copy_location(one, at)
        return call


# One step


class _Step:
    """An expression of the text: what it got, by number or name, and what it gave."""

    def __init__(
        self, node: Any, record: dict[Any, Any], result: Any, frame: Any, text: _Reading
    ) -> None:
        self._text, self.line, self._node = text, node.lineno, node
        self._result, self._frame = result, frame
        self._size, self._owner = record.pop("size"), record.pop(0)
        self._listed = [one for key, one in record.items() if isinstance(key, int)]
        self._named = {key: one for key, one in record.items() if isinstance(key, str)}
        self._args, self._nodes = dict[str, Any](), dict[str, Any]()
        self._subject = self._owner

    def keys(self) -> set[str]:
        """Return the names of what tables are joined or grouped by here."""
        function = getattr(self._node, "func", None)
        name = getattr(function, "attr", getattr(function, "id", ""))
        if _TOLD.get(name) not in (_Step._joined, _Step._grouped, _Step._dropped):
            return set()
        parts = (node for node in ast.walk(self._node) if isinstance(node, ast.Constant))
        return {node.value for node in parts if isinstance(node.value, str)}

    def effects(self) -> Effects:
        match self._node:
            case ast.Call(func=function):
                name = getattr(function, "attr", getattr(function, "id", ""))
                if _is_plain(self._owner):
                    yield from self._plain(name)
                else:
                    self._bind(name)
                    yield from _TOLD[name](self, name)
            case ast.ListComp() | ast.DictComp():
                yield from self._comprehended()
            case ast.Attribute():
                yield from self._zone(self._owner)
            case ast.BinOp(op=op):
                yield from self._aligned([self._owner, *self._listed])
                yield from self._texts() if isinstance(op, ast.Add) else ()
            case ast.Compare():
                yield from self._texts()
                yield from self._lacking("compared")
            case ast.Subscript():
                mask = self._listed[0] if self._listed else None
                if str(getattr(mask, "dtype", "")).lower() in ("bool", "boolean"):
                    yield from self._filtered()

    def _bind(self, name: str) -> None:
        """Give the arguments, and what the text writes for them, the names of parameters."""
        values, nodes = [*self._listed], [*self._node.args]
        function = self._owner
        if isinstance(self._node.func, ast.Attribute):
            is_module = isinstance(self._owner, type(sys))
            function = getattr(self._owner if is_module else type(self._owner), name)
            if not is_module:
                values, nodes = [self._owner, *values], [self._node.func.value, *nodes]
        bind = inspect.signature(function).bind
        bound, written = bind(*values, **self._named), {k.arg: k.value for k in self._node.keywords}
        bound.apply_defaults()
        self._args, self._nodes = bound.arguments, bind(*nodes, **written).arguments
        self._subject = next(iter(self._args.values()))

    def _sorted(self, _: str) -> Effects:
        yield from self._texts(self._args.get("by", self._args.get("columns")))

    def _reduced(self, _: str) -> Effects:
        yield from self._texts()
        yield from self._lacking()

    def _put_together(self, name: str) -> Effects:
        if name == "concat":
            yield from self._aligned(_listed(self._args.get("objs")), paired=False)
        else:
            yield from self._aligned([self._subject, self._args.get("other")])

    def _resampled(self, _: str) -> Effects:
        if hasattr(self._subject, "index"):
            on = self._args.get("on")
            yield from self._zone(self._subject[on] if on else self._subject.index)

    def _selected(self, _: str) -> Effects:
        if _library(self._subject) == "polars":
            yield from self._filtered()

    def _keyed(self, _: str) -> Effects:
        if _is_series(self._subject) and isinstance(self._result, dict):
            index = self._subject.index
            if again := _some(index[index.duplicated()]):
                count = {"count": len(index) - len(self._result), "total": len(index)}
                where = {"of": self._name(), "column": _label(index.name), "values": again}
                yield _effect("gone", cause="keys", **where, **count)

    def _plain(self, name: str) -> Effects:
        """Tell what calls of built-in functions, and of methods of lists, do."""
        given = [self._owner] if type(self._owner) in _LISTS else self._listed
        nodes = self._node.args
        if (
            name == "zip"
            and len(given) > 1
            and all(_library(v) or type(v) in _LISTS for v in given)
        ):
            sizes, strict = [*map(len, given)], self._named.get("strict")
            most, least = sizes.index(max(sizes)), sizes.index(min(sizes))
            names = [
                _find_name(v, self._frame) or ast.unparse(n)
                for v, n in zip(given, nodes, strict=True)
            ]
            if sizes[most] > sizes[least] and not strict and len(names[most]) <= _WIDTH:
                where = {"of": names[most], "other": names[least], "unit": "item"}
                count = {"count": sizes[most] - sizes[least], "total": sizes[most]}
                yield _effect("gone", cause="shorter", **where, **count)
        elif name == "dict" and type(self._result) is dict:
            match nodes:
                case [ast.Call(func=ast.Name(id="zip"), args=[first, *_])]:
                    yield from self._same_keys(self._seen(first), ast.unparse(first))
        elif name in ("sorted", "max", "min", "sort") and len(given) == 1:
            column, items = "", [*given[0]] if type(given[0]) in _LISTS else []
            for word in self._node.keywords:
                match word.arg, word.value:
                    case "key", ast.Lambda(
                        body=ast.Subscript(ast.Name(), ast.Constant(str(column)))
                    ):
                        items = [one.get(column) for one in items if type(one) is dict]
                    case "key", _:
                        return
            texts = [one for one in items if type(one) is str and _NUMBER.fullmatch(one)]
            if texts and len(texts) > 0.8 * len(items):
                of = _find_name(given[0], self._frame)
                yield _effect("text", of=of, column=column, count=len(texts))

    def _seen(self, node: Any) -> Any:
        """Return what a name, or a column by its name, is; nothing is evaluated."""
        match node:
            case ast.Name(id=name):
                return _look_up(name, self._frame)
            case ast.Subscript(ast.Name(id=name), ast.Constant(column)) | ast.Attribute(
                ast.Name(id=name), column
            ):
                table = _look_up(name, self._frame)
                return table[column] if _is_frame(table) and column in table.columns else None
        return None

    def _same_keys(self, given: Any, of: str) -> Effects:
        if type(given) not in _LISTS and not _library(given):
            return
        counts = Counter(map(_item, _values(given) if _library(given) else given))
        if len(counts) < len(given) and len(of) <= _WIDTH:
            again = _some(one for one, n in counts.items() if n > 1)
            where = {"of": of, "total": len(given), "values": again, "unit": "item"}
            yield _effect("gone", cause="keys", count=len(given) - len(counts), **where)

    def _comprehended(self) -> Effects:
        given, filters = self._owner, self._node.generators[0].ifs
        node = self._node.generators[0].iter
        of = _find_name(given, self._frame) or _root(node) or ast.unparse(node)
        if type(given) is range or len(of) > _WIDTH:
            return
        count, is_dict = len(given) - len(self._result), isinstance(self._node, ast.DictComp)
        if count > 0 and (filters or is_dict):
            where = {"of": of, "total": len(given), "unit": "item"}
            yield _effect("gone", cause="filter" if filters else "keys", count=count, **where)

    def _name(self, value: Any = None, node: Any = None) -> str:
        """Return what a table is called: its name, or what the text writes for it if short."""
        if value is None:
            value, node = self._subject, self._first()
        if name := _find_name(value, self._frame):
            return name
        root = _root(node) if node else ""
        owner = _look_up(root, self._frame)
        if _library(owner) and len(owner) == len(value):
            return root
        text = ast.unparse(node) if isinstance(node, ast.Subscript) and _is_frame(value) else ""
        return text if len(text) <= _WIDTH else ""

    def _joined(self, _: str) -> Effects:
        args, left = self._args, self._subject
        right, how = args.get("right", args.get("other")), str(args.get("how") or "inner")
        if not (_library(left) and _library(right)) or how == "cross" or "anti" in how:
            return
        sides = _join_keys(left, right, args)
        names = [
            self._name(one, n) for one, n in zip((left, right), self._nodes.values(), strict=False)
        ]
        lost = {"left": (1,), "right": (0,), "inner": (0, 1), "semi": (0,)}.get(how, ())
        for side, (column, keys) in enumerate(sides):
            theirs, size = sides[1 - side][1], sum(keys.values())
            where: dict[str, Any] = {"of": names[side], "other": names[1 - side], "column": column}
            alone = {key: n for key, n in keys.items() if key not in theirs}
            unmatched = {key: n for key, n in alone.items() if not _lacks(key)}
            missing, values = sum(alone.values()) - sum(unmatched.values()), _some(unmatched)
            if side in lost:
                looked_up = side == 1 and (how == "left" or len(keys) == size)
                if unmatched:
                    cause, count = "unused" if looked_up else "unmatched", sum(unmatched.values())
                    more: dict[str, Any] = {"count": count, "total": size, "values": values}
                    yield _effect("gone", cause=cause, **where, **more)
                if missing and not looked_up:
                    yield _effect("gone", cause="missing", count=missing, total=size, **where)
            elif count := sum(alone.values()):
                there = {*map(_label, getattr(self._result, "columns", ()))}
                added = [n for n in _Table((right, left)[side]).own if n in there]
                column = next((n for n in added if n not in (sides[0][0], sides[1][0])), "")
                where |= {"column": column, "total": len(self._result), "values": values}
                if column:
                    yield _effect("missing", cause="unmatched", count=count, **where)
            again = {key: n for key, n in keys.items() if theirs.get(key, 0) > 1}
            if again and side == 0 and how not in ("semi", "anti"):
                where |= {"column": sides[0][0], "values": _some(again), "total": size}
                yield _effect("repeated", count=sum(again.values()), **where)

    def _dropped(self, name: str) -> Effects:
        if not _library(self._subject):
            return
        result = self._subject if self._result is None else self._result
        count, subset = self._size - len(result), self._args.get("subset")
        distinct = name == "unique" and _is_series(self._subject)
        if count <= 0 or distinct or self._args.get("axis") in (1, "columns"):
            return
        columns = [*map(str, [subset] if isinstance(subset, str) else subset or ())]
        where: dict[str, Any] = {"of": self._name(), "count": count, "total": self._size}
        if name in ("drop_duplicates", "unique"):
            yield _effect("gone", cause="repeats", column=", ".join(columns), **where)
            return
        table = _Table(self._subject)
        gaps = [n for n in columns or table.own if n in table.columns and table.lacks(n)] or columns
        yield _effect("gone", cause="missing", values=gaps[:_FEW], **where)

    def _grouped(self, name: str) -> Effects:
        args, subject = self._args, self._subject
        if _library(subject) == "polars" or (name != "pivot_table" and args.get("dropna") is False):
            return
        keys = [one for field in _GROUPS[name] for one in _listed(args.get(field))]
        if name == "value_counts" and not keys:
            keys = [subject] if _is_series(subject) else [*subject.columns]
        gaps, named, grouped = list[Any](), list[str](), list[Any]()
        for key in keys:
            column = key if _library(key) else getattr(key, "key", key)
            if not _library(column):
                if not (_is_frame(subject) and isinstance(column, Hashable) and column in subject):
                    continue
                column = subject[column]
            if column.hasnans:
                gaps.append(sys.modules["numpy"].asarray(column.isna()))
                named.append(_label(column.name))
            by_row = hasattr(self._node, _BY_ROW)
            if not by_row and name != "value_counts" and args.get("observed") is not False:
                yield from _empty_groups(column)
            grouped.append(column)
        if gaps:
            count = int(sum(gaps[1:], gaps[0]).sum())  # of booleans, which add up to any
            where = {"of": self._name(), "column": named[0], "cause": "grouped"}
            yield _effect("ignored", count=count, total=len(gaps[0]), **where)
        sorts = name != "value_counts" and args.get("sort") is not False
        sorts &= not hasattr(self._node, _BY_ROW)
        if self._text.in_order and sorts and len(grouped) == 1:
            values = _values(grouped[0].dropna().drop_duplicates())[:_ITEMS]
            # Numbers and times are sorted as anybody expects; words, by the alphabet.
            if all(isinstance(one, str) for one in values) and values != sorted(values):
                where = {"of": self._name(), "column": _label(grouped[0].name), "cause": "grouped"}
                yield _effect("reordered", values=_some(sorted(values)), **where)

    def _coerced(self, name: str) -> Effects:
        """Tell the values that a function made missing."""
        subject, result = self._subject, self._result
        if not _is_series(subject) or not hasattr(result, "isna"):
            return
        if name == "reindex":
            if (count := _count_missing(result) - _count_missing(subject)) > 0:
                where = {"column": _label(subject.name), "total": len(result)}
                yield _effect("missing", count=count, **where)
            return
        rows = sys.modules["numpy"].asarray(result.isna()) & subject.notna().to_numpy()
        if lost := _values(subject[rows]):
            where = {"of": self._name(), "column": _label(subject.name), "total": len(subject)}
            cause = "mapped" if name == "map" else "coerced"
            yield _effect("missing", cause=cause, count=len(lost), values=_some(lost), **where)

    def _filled(self, _: str) -> Effects:
        subject, result = _ungrouped(self._subject), self._result
        if not (_library(subject) and _library(result) and len(subject) == len(result)):
            return
        old, new = _Table(subject), _Table(result)
        first = getattr(self._first(), "func", None)
        mapped = _is_series(subject) and getattr(first, "attr", "") == "map"
        for name in old.own:
            if name in new.columns and new.lacks(name) < old.lacks(name):
                where = {} if mapped else {"of": self._name(), "column": name}
                effects = _column(old.columns[name], new.columns[name], **where)
                yield from (one for one in effects if one["kind"] == "filled")

    def _aligned(self, parts: list[Any], *, paired: bool = True) -> Effects:
        """Tell what is missing as the labels of tables differ that are put together."""
        parts = [one for one in parts if _library(one) == "pandas"]
        if len(parts) < 2 or not _library(self._result):
            return
        tables, table = [*map(_Table, parts)], _Table(self._result)
        names = [_find_name(one, self._frame) for one in parts]
        where = {"of": names[0], "other": names[1], "cause": "aligned", "total": table.height}
        for name in table.own:
            count = table.lacks(name) - sum(one.lacks(name) for one in tables if name in one.own)
            if paired:
                count = table.height - len(parts[0].index.intersection(parts[1].index))
            if count > 0:
                yield _effect("missing", column=name, count=count, **where)
                return

    def _texts(self, by: Any = None) -> Effects:
        """Tell the numbers that are summed, sorted or compared as text."""
        subject = _ungrouped(self._subject)
        names = [n for n in _listed(by) if _is_frame(subject) and n in subject.columns]
        columns = [subject] if _is_series(subject) else [subject[name] for name in names]
        for column in columns:
            if _is_text_number(column):
                yield _effect(
                    "text", of=self._name(), column=_label(column.name), count=len(column)
                )

    def _lacking(self, cause: str = "") -> Effects:
        subject = _ungrouped(self._subject)
        if self._args.get("skipna") is False:
            return
        if _is_series(subject) and 0 < (count := _count_missing(subject)) < len(subject):
            where = {"of": self._name(subject, self._first()), "column": _label(subject.name)}
            yield _effect("ignored", cause=cause, count=count, total=len(subject), **where)

    def _zone(self, column: Any) -> Effects:
        dtype = getattr(column, "dtype", None)
        if zone := getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None):
            where = {"of": self._name(column, self._first()), "column": _label(column.name)}
            yield _effect("zone", after=str(zone), **where)

    def _first(self) -> Any:
        """Return what the text writes for the subject."""
        node = self._node
        if isinstance(node, ast.Attribute):
            return node.value.value  # type: ignore[attr-defined]
        return next(iter(self._nodes.values()), getattr(node, "left", getattr(node, "value", None)))

    def _filtered(self) -> Effects:
        if _library(self._subject) and (count := len(self._subject) - len(self._result)) > 0:
            where = {"of": self._name(), "total": len(self._subject)}
            yield _effect("gone", cause="filter", count=count, **where)


# By the name of a function, the method that tells what a call of it did.
_TOLD: dict[str, Callable[[_Step, str], Iterable[Effect]]] = {
    **dict.fromkeys(("merge", "join"), _Step._joined),
    **dict.fromkeys(("dropna", "drop_nulls", "drop_duplicates", "unique"), _Step._dropped),
    **dict.fromkeys(_GROUPS, _Step._grouped),
    **dict.fromkeys(("to_numeric", "to_datetime", "to_timedelta", "map"), _Step._coerced),
    **dict.fromkeys(("cut", "astype", "reindex"), _Step._coerced),
    **dict.fromkeys(("fillna", "fill_null", "fill_nan", "ffill", "bfill"), _Step._filled),
    **dict.fromkeys(("interpolate", "combine_first", "assign", "with_columns"), _Step._filled),
    **dict.fromkeys(("sort_values", "sort", "nlargest", "nsmallest"), _Step._sorted),
    **dict.fromkeys(("mean", "median", "std", "var", "sum", "max", "min"), _Step._reduced),
    **dict.fromkeys(("idxmax", "idxmin", "cumsum"), _Step._reduced),
    **dict.fromkeys(("concat", "add", "sub", "mul", "div", "truediv"), _Step._put_together),
    **dict.fromkeys(("subtract", "multiply", "divide"), _Step._put_together),
    **{"resample": _Step._resampled, "filter": _Step._selected, "to_dict": _Step._keyed},
    **dict.fromkeys(("zip", "sorted", "dict"), lambda *_: ()),  # built in: see `_Step._plain`
}


def _find_name(value: Any, frame: Any) -> str:
    for space in (frame.f_globals, frame.f_locals):
        for name, one in [*space.items()]:
            if one is value and name[:1] != "_" and name.isidentifier():
                return str(name)
    return ""


def _look_up(name: str, frame: Any) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name))


def _ungrouped(subject: Any) -> Any:
    grouped = type(subject).__module__.startswith("pandas.core.groupby")
    return getattr(subject, "_selected_obj", subject) if grouped else subject


def _listed(given: Any) -> list[Any]:
    if given is None or callable(given):
        return []
    return [*given] if isinstance(given, (list, tuple)) else [given]


def _lacks(key: Any) -> bool:
    return key is None or (isinstance(key, tuple) and None in key)


def _empty_groups(column: Any) -> Effects:
    categories = getattr(getattr(column, "cat", None), "categories", ())
    present = {*column.dropna().unique().tolist()} if len(categories) else ()
    if empty := [one for one in categories if one not in present]:
        values = {"count": len(empty), "total": len(categories), "values": _some(empty)}
        yield _effect("gone", cause="groups", column=_label(column.name), **values)


def _join_keys(left: Any, right: Any, args: Any) -> list[tuple[str, dict[Any, int]]]:
    """Return the columns by which two tables are joined, each with the rows of its values."""
    on, by_index = args.get("on"), [args.get("left_index"), args.get("right_index")]
    names = [args.get("left_on") or on, args.get("right_on") or on]
    if "other" in args and _library(left) == "pandas":  # DataFrame.join
        names, by_index = [on, None], [on is None, True]
    if not any(map(_listed, names)) and not any(by_index):
        names = [[name for name in left.columns if name in right.columns]] * 2
    sides = []
    for table, given, index in zip((left, right), names, by_index, strict=True):
        if _library(table) == "polars":
            counted = table.select(given).to_series() if len(_listed(given)) == 1 else None
            rows = _values(counted) if counted is not None else table.select(given).rows()
            sides.append((", ".join(map(_label, _listed(given))), dict(Counter(rows))))
            continue
        columns = [table.index] if index else [table[one] for one in _listed(given)]
        keys = columns[0] if len(columns) == 1 else table[_listed(given)]
        counts = keys.value_counts(dropna=False, sort=False)
        known = dict(zip(map(_key, counts.index.tolist()), counts.tolist(), strict=True))
        sides.append((", ".join(_label(one.name) for one in columns), known))
    return sides


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    return None if _is_missing(value) else value
