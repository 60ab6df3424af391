"""Find what running a text did to data, inside the sandbox, from values before and after.

A table is its columns, whatever library it is of; rows are known by a column that names them, or
else whole. What a step is called says nothing. Beside the values there are four events: what a
reader of files was told to leave out, exceptions that the text caught, stores that pandas let fall,
and warnings. What cannot be followed is named.
"""

import ast
import contextlib
import functools
import itertools
import marshal
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

Effect = dict[str, Any]
Effects = Iterator[Effect]

_SECONDS = 3.0  # of processor time
_MOST, _MOST_OF = 8, {"new": 3, "warning": 2, "total": 2, "type": 2, "caught": 2}  # effects
_FEW, _WIDTH, _WORDS, _COLUMNS = 5, 60, 200, 20  # values, characters, columns that are looked at
_CELLS, _ITEMS = 2_000_000, 100_000  # of a table, plain values
_BYTES = 200_000_000  # of what has to be copied
_FILE = 20_000_000  # bytes of a file that is read once more
_CLOSE = 1e-9
_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_CODE = (type(sys), type(len), type(lambda: 0), type)  # modules, functions and classes
_NUMBER = re.compile(r"\s*[-+]?\d[\d,. ]*(?:[eE][-+]?\d+)?\s*%?")
_CHAINED = ("ChainedAssignmentError", "SettingWithCopyWarning")
_KINDS = [  # the most telling first
    *("unchanged", "answer", "read", "caught", "gone unmatched", "gone spelled", "gone missing"),
    *("repeated", "differs", "missing unmatched", "overwritten", "missing", "text", "zone"),
    *("gone groups", "gone repeats", "reordered", "filled", "changed", "total", "warning", "type"),
    *("columns", "gone", "split", "gone kept", "gone unused", "missing new", "input", "new"),
    *("unfollowed", "caught import", "missing read"),
]
# What looks after missing values, by whatever library; a text that has one needs no telling.
_LOOKS = re.compile(
    r"(fill|drop|is|not|any|all)_?(na|null|nan)s?$|nan_to_num|[fb]fill|interpolate|[Ii]mpute|"
    r"(forward|backward)_fill|coalesce|nan(mean|sum|min|max|median|std|var)$"
)
_PARTS_OF_DAYS = {
    *("date", "hour", "day", "weekday", "dayofweek", "day_name", "normalize", "floor", "truncate"),
    *("resample", "strftime", "tz_localize", "to_period", "replace_time_zone"),
}
_NO_SUMS = {"mean", "median", "std", "var", "min", "max", "count", "size", "nunique"}
_READERS = ("read_csv", "read_table", "read_json", "read_excel", "read_ndjson")
_LEAVES_OUT = {  # arguments of readers
    *("nrows", "skiprows", "skipfooter", "na_values", "comment", "on_bad_lines", "n_rows"),
    *("skip_rows", "skip_rows_after_header", "null_values", "ignore_errors", "comment_prefix"),
}


def _effect(kind: str, **fields: Any) -> Effect:
    return {"kind": kind, **{name: value for name, value in fields.items() if value}}


def _rank(effect: Effect) -> int:
    whole = f"{effect['kind']} {effect.get('cause', '')}"
    return _KINDS.index(whole if whole in _KINDS else effect["kind"])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1_000 else f"{value:.6g}"
    if isinstance(value, (tuple, dict)):
        parts = value.values() if isinstance(value, dict) else value
        value = ", ".join(_text(one) for one in parts if one is not None)
    text = "missing" if value is None else str(value).removesuffix(" 00:00:00")
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _some(values: Iterable[Any]) -> list[str]:
    return [*itertools.islice(dict.fromkeys(map(_text, values)), _FEW)]


# Tables


def _library(value: Any) -> str:
    for name in ("pandas", "polars"):
        module = sys.modules.get(name)
        if module and isinstance(value, (module.DataFrame, module.Series)):
            return name
    return ""


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _is_rows(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(one) is dict for one in value)


class _Table:
    """The columns of a frame, a series, an array or a list of dicts, by name.

    Of a wide frame those are looked at that the text names, then the first.
    """

    named = frozenset[str]()

    def __init__(self, value: Any) -> None:
        self.value, self.height = value, len(value)
        self.columns, self._lists = dict[str, Any](), dict[str, Any]()
        library = _library(value)
        if _is_rows(value):
            names = dict.fromkeys(itertools.chain.from_iterable(value))
            self.columns = {_text(n): [row.get(n) for row in value] for n in names}
        elif _is_array(value):
            flat, labels = value.ndim == 1, map(str, range(_COLUMNS))
            self.columns = {"": value} if flat else dict(zip(labels, value.T, strict=False))
        elif len(value.shape) == 1:
            self.columns = {"" if value.name is None else _text(value.name): value}
        else:
            heads = [*map(_text, value.columns)]
            places = sorted(range(len(heads)), key=lambda n: heads[n] not in self.named)
            for n in sorted(places[:_COLUMNS]):
                column = value.iloc[:, n] if library == "pandas" else value.to_series(n)
                self.columns.setdefault(heads[n], column)
        self.own = [*self.columns]  # those that are no level of the index
        self.labels = [*map(_text, value.columns)] if hasattr(value, "columns") else self.own
        for level in getattr(getattr(value, "index", None), "names", ()) if library else ():
            if level is not None:
                self.columns.setdefault(_text(level), value.index.get_level_values(level))

    def values(self, name: str) -> list[Any]:
        """Return a column's values with None for what is missing."""
        if name not in self._lists:
            column = self.columns[name]
            values = (
                column
                if type(column) is list
                else column.tolist()
                if hasattr(column, "tolist")
                else column.to_list()
            )
            self._lists[name] = [*map(_plain, values)]
        return self._lists[name]  # type: ignore[no-any-return]

    def type(self, name: str) -> str:
        column = self.columns[name]
        if type(column) is list:
            return type(next((one for one in column if one is not None), None)).__name__
        categories: Any = getattr(column.dtype, "categories", None)
        if not hasattr(categories, "tolist"):
            return str(column.dtype)
        between = " < " if getattr(column.dtype, "ordered", False) else ", "
        return f"categories {_text(between.join(map(_text, categories.tolist())))}"

    def is_number(self, name: str) -> bool:
        return re.match(r"u?int|float|decimal", self.type(name).lower()) is not None

    def lacks(self, name: str) -> int:
        column = self.columns[name]
        if hasattr(column, "isna"):
            return int(column.isna().sum())
        return sum(value is None for value in self.values(name))

    def names_rows(self, name: str) -> bool:
        column = self.columns[name]
        if "float" in self.type(name).lower() or self.height < 2:
            return False
        if hasattr(column, "isna"):
            return bool(column.is_unique and not column.hasnans)
        values = self.values(name)
        return None not in values and len({*values}) == len(values)

    def same(self, name: str, other: "_Table") -> bool:
        """Return whether a column has the values, row by row, that it has in another table."""
        one, two = self.columns[name], other.columns[name]
        if type(one) is type(two) and hasattr(one, "array") and one.dtype == two.dtype:
            return bool(one.array.equals(two.array))
        return self.height == other.height and self.values(name) == other.values(name)

    def rows(self, names: Sequence[str]) -> list[Any]:
        columns = [self.values(name) for name in names]
        return columns[0] if len(columns) == 1 else [*zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, _SCALARS):
        return None if value != value else value
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    return value if isinstance(value, Hashable) else repr(value)


def _read(value: Any) -> _Table | None:
    """Return a value as a table; None for what is none."""
    is_table = _library(value) or _is_rows(value) or (_is_array(value) and value.ndim in (1, 2))
    return _Table(value) if is_table and len(value) <= _CELLS else None


def _size(value: Any) -> str:
    """Return what a value is, in few words."""
    shape = getattr(value, "shape", None)
    if _library(value) and len(shape or ()) == 2:
        rows, width = value.shape
        return f"{rows:,} row{'s' * (rows != 1)} × {width:,} column{'s' * (width != 1)}"
    if shape is not None and hasattr(value, "dtype"):
        size = " × ".join(f"{n:,}" for n in shape)
        return (
            f"{size} value{'s' * (size != '1')} ({value.dtype})" if shape else _text(value.item())
        )
    if isinstance(value, (list, tuple, dict, set)):
        return f"{len(value):,} item{'s' * (len(value) != 1)}"
    return _text(repr(value)) if type(value) in _SCALARS else type(value).__name__


def _alike(first: Any, second: Any) -> bool:
    with contextlib.suppress(Exception):
        if first is second:
            return True
        if type(first) is not type(second):
            return False
        if _library(first):
            return bool(first.equals(second)) and _traits(first) == _traits(second)
        if _is_array(first):
            same = (first.dtype, first.shape) == (second.dtype, second.shape)
            return same and first.tobytes() == second.tobytes()
        if marshal.dumps(first) == marshal.dumps(second):
            return True
        return bool(first == second) and (type(first) is not dict or [*first] == [*second])
    return False


def _traits(value: Any) -> list[Any]:
    """Return what stands next to a table's values."""
    labels = value.columns if len(value.shape) == 2 else [value.name]
    types = value.dtypes if len(value.shape) == 2 else [value.dtype]
    index = getattr(value, "index", None)
    more = [] if index is None else [*index[:_FEW], *index.names, repr(value.attrs)]
    return [*labels, *map(repr, types), *map(str, more)]


# What became of a table's rows and values


def _known_by(old: _Table, new: _Table, shared: list[str]) -> list[str]:
    """Return the columns by which rows are known again."""
    for name in shared:
        if old.names_rows(name):
            known = {*old.values(name)}
            if 2 * sum(one in known for one in new.values(name)) >= new.height:
                return [name]
    return [n for n in shared if old.type(n) == new.type(n)] or shared


def _origin(old: _Table, new: _Table, *, same: bool) -> tuple[list[int], list[str]] | None:
    """Return for each row of a table its place in the one that it was made of, and the key.

    A row that was not there has -1. None is for tables that have nothing to do with each other;
    `same` says that one name holds both.
    """
    shared = [name for name in old.columns if name in new.columns]
    if not shared:
        return None
    here = old.height == new.height
    if here and (any(old.same(n, new) for n in shared) or (same and len(shared) == 1)):
        return [*range(new.height)], []
    labels: list[Any] = [getattr(one.value, "index", None) for one in (old, new)]
    if all(getattr(one, "is_unique", False) for one in labels):
        by_label = labels[0].get_indexer(labels[1]).tolist()
        if -1 not in by_label and all(
            [old.values(n)[place] for place in by_label] == new.values(n) for n in shared
        ):
            return by_label, []
    names = _known_by(old, new, shared)
    if len(old.own) == 1 == len(names) and not (same or old.names_rows(names[0])):
        return None  # values of one column, which may be those of any row
    places = dict[Any, list[int]]()
    for place, row in enumerate(old.rows(names)):
        places.setdefault(row, []).append(place)
    left = (places.get(row, [-1]) for row in new.rows(names))
    found = [one.pop(0) if len(one) > 1 else one[0] for one in left]
    known = sum(place >= 0 for place in found)
    is_key, whole = len(names) == 1 and old.names_rows(names[0]), len(names) == len(old.own)
    # Numbers may be counts, so that another column has to agree.
    if is_key and old.is_number(names[0]):
        rows = [(place, n) for n, place in enumerate(found) if place >= 0]
        others = [name for name in shared if name not in names]
        is_key = any(all(old.values(n)[p] == new.values(n)[i] for p, i in rows) for n in others)
    levels = [name for name in new.columns if name not in new.own and name in old.own]
    grouped = any(new.names_rows(n) and not old.names_rows(n) for n in levels)
    alike = whole and (2 * known >= len(found) or {*found} >= {*range(old.height)})
    few = known < len(found) or len(names) == 1 < len(old.columns)
    mere = not same and (grouped or not (is_key or alike or not few))
    if known and (alike or 2 * known >= len(found)) and not mere:
        return found, names
    return ([*range(new.height)], []) if same and here else None


def _compare(old: _Table, new: _Table, name: str, of: str, others: dict[str, _Table]) -> Effects:
    """Yield what became of a table's rows and values in the same name, or in another."""
    origin = _origin(old, new, same=not of)
    if origin is None:
        return
    places, key = origin
    shared = [n for n in old.columns if n in new.columns]
    counts, where = Counter(places), {"name": name, "of": of, "total": old.height}
    gone = [place for place in range(old.height) if place not in counts]
    again = [place for place in counts if counts[place] > 1 and place >= 0]
    firsts = [place for place in dict.fromkeys(places) if place >= 0]
    added = [n for n in new.columns if n not in old.columns]
    apart = {n: t for n, t in others.items() if n not in (name, of)}
    for rows, why in _whys(old, gone, key, apart, joined=bool(added)) if gone else ():
        # Where rows are kept just as they were, the others need no cause.
        kept = not (why.get("cause") or added or again or -1 in counts)
        yield _effect(
            "gone", count=len(rows), **where, **({**why, "cause": "kept"} if kept else why)
        )
    if again:
        why = _twice(old, again, key, apart)
        yield _effect("repeated", count=len(again), **where, **why)
    if not of and not gone and firsts != sorted(firsts):
        yield _effect("reordered", name=name)
    changed, as_before = list[Effect](), not of
    as_it_was = places == [*range(old.height)]
    for column in (n for n in shared if n not in key and not (of and again)):
        if as_it_was and old.type(column) == new.type(column) and old.same(column, new):
            as_before = True
            continue
        was = [old.values(column)[place] if place >= 0 else None for place in places]
        now = [v if p >= 0 else None for v, p in zip(new.values(column), places, strict=True)]
        same = sum(map(_is_same, was, now))
        as_before |= 2 * same > len(now)
        if same < len(now) or old.type(column) != new.type(column):
            types = old.type(column), new.type(column)
            changed += _column(was, now, types, name=name, of=of, column=column)
    # What has no column of another table's values, nor most of one, is computed.
    yield from changed if as_before else ()
    if not (of or gone or again):
        yield from _totals(old, new, name, of)


def _whys(
    old: _Table, gone: list[int], key: list[str], others: dict[str, _Table], *, joined: bool
) -> list[tuple[list[int], Effect]]:
    """Return the rows that are gone, apart by what they have and no other row has."""
    left = sorted({*range(old.height)}.difference(gone))
    rows = old.rows(old.own)
    if {rows[n] for n in gone} <= {rows[n] for n in left} and len({*rows}) == len(left):
        return [(gone, {"cause": "repeats"})]
    lacks = [n for n in old.columns if any(old.values(n)[row] is None for row in gone)]
    lacks = [n for n in lacks if not any(old.values(n)[row] is None for row in left)]
    if lacks and all(any(old.values(n)[row] is None for n in lacks) for row in gone):
        return [(gone, {"cause": "missing", "values": lacks[:_FEW]})]
    found, rest = list[tuple[list[int], Effect]](), gone
    for name, (other, table) in itertools.product(old.columns, others.items()):
        if name not in table.columns or found:
            continue
        values, known = old.values(name), {*table.values(name)}
        some = [row for row in gone if values[row] not in known]
        if some and all(values[row] in known for row in left):
            spellings = {*map(_spelled, known)}
            near = [row for row in some if _spelled(values[row]) in spellings]
            parts = {"unmatched": sorted({*some}.difference(near)), "spelled": near}
            for cause, part in parts.items():
                told = sorted({_key(values[row], spellings) for row in part})[:_FEW]
                where = {"column": name, "other": other, "values": told}
                found += [(part, {"cause": cause, **where})] if part else []
            rest = sorted({*gone}.difference(some))
    for name in lacks if found and joined else ():
        if some := [row for row in rest if old.values(name)[row] is None]:
            found.append((some, {"cause": "missing", "column": name}))
            rest = sorted({*rest}.difference(some))
    if found and not rest:
        return found
    column = key[0] if len(key) == 1 else old.own[0]
    return [(gone, {"column": column, "values": _some(old.values(column)[row] for row in gone)})]


def _key(value: Any, spellings: set[Any]) -> str:
    """Return a key in words, quoted where spaces or case tell it from another."""
    return repr(value) if _spelled(value) in spellings else _text(value)


def _spelled(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


def _twice(old: _Table, again: list[int], key: list[str], others: dict[str, _Table]) -> Effect:
    """Return why rows are there more than once: what another table has more than once."""
    for name in old.columns:
        values = old.values(name)
        for other, table in others.items():
            if name in table.columns:
                several = {v for v, count in Counter(table.values(name)).items() if count > 1}
                if all(values[n] in several for n in again):
                    told = _some(values[n] for n in again)
                    return {"other": other, "column": name, "values": told}
    column = key[0] if len(key) == 1 else old.own[0]
    return {"column": column, "values": _some(old.values(column)[n] for n in again)}


def _column(was: list[Any], now: list[Any], types: tuple[str, str], **where: Any) -> Effects:
    """Yield what became of a column's values, row by row."""
    before, after = types
    if before != after and not {*types} <= {"object", "str", "string", "list"}:
        yield _effect("type", before=before, after=after, **where)
    if len(was) > 1 and was != now and Counter(map(repr, was)) == Counter(map(repr, now)):
        yield _effect("reordered", **where)
        return
    both = [*zip(was, now, strict=True)]
    filled = [b for a, b in both if a is None and b is not None]
    lost = [a for a, b in both if b is None and a is not None]
    others = [(a, b) for a, b in both if None not in (a, b) and not _reads_as(a, b)]
    if filled:
        constant = _text(filled[0]) if len({*map(_text, filled)}) == 1 else ""
        yield _effect("filled", count=len(filled), after=constant, **where)
    if others:
        known = sum(one is not None for one in was)
        yield _effect("overwritten", count=len(others), total=known, **where, **_pair(*others[0]))
    if lost:
        yield _effect("missing", count=len(lost), total=len(both), values=_some(lost), **where)


def _is_same(was: Any, now: Any) -> bool:
    return bool(was == now) or (None not in (was, now) and _reads_as(was, now))


def _reads_as(was: Any, now: Any) -> bool:
    """Return True for one value written in two ways, such as text that became a number."""
    if type(was) is type(now) and not isinstance(was, float):
        return bool(was == now)
    with contextlib.suppress(ValueError, TypeError):
        return math.isclose(*(float(_number(one)) for one in (was, now)), rel_tol=_CLOSE)
    return str(now).startswith(str(was)) or str(was).startswith(str(now))  # a date


def _number(value: Any) -> Any:
    return value.replace(",", "") if isinstance(value, str) else value


def _pair(was: Any, now: Any) -> dict[str, str]:
    """Return two values that differ as texts that do."""
    texts = [_text(one).strip() for one in (was, now)]
    plain = type(was) is not dict and texts[0] != texts[1] and "" not in texts
    write = _text if plain else repr
    return {"before": _text(write(was)), "after": _text(write(now))}


def _totals(old: _Table, new: _Table, name: str, of: str) -> Effects:
    for column in new.own:
        if column not in old.own or {*new.values(column)} <= {*old.values(column)}:
            continue  # the labels of groups
        if old.is_number(column) and new.is_number(column):
            was, now = (sum(v for v in t.values(column) if v is not None) for t in (old, new))
            if not math.isclose(was, now, rel_tol=_CLOSE, abs_tol=_CLOSE):
                texts = [f"{v:,.2f}" if isinstance(v, float) else f"{v:,}" for v in (was, now)]
                pair = {"before": texts[0], "after": texts[1]}
                yield _effect("total", name=name, of=of, column=column, **pair)


def _items(was: Any, now: Any, name: str, of: str = "") -> Effects:
    """Yield which items of a list, a dict or a set are gone, repeated, moved or others."""
    first, second = ([*map(_plain, one)] for one in (was, now))
    old, new = Counter(first), Counter(second)
    where = {"name": name, "of": of, "total": len(first), "unit": "item"}
    if not of and type(was) in (list, tuple) and len(was) == len(now) and old != new:
        others = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
        yield _effect("overwritten", count=len(others), **where, **_pair(*others[0]))
        return
    if gone := old - new:
        cause = "repeats" if old.keys() == new.keys() else "kept" * bool(of)
        yield _effect("gone", count=gone.total(), values=_some(gone), cause=cause, **where)
    if again := [one for one in new if new[one] > old[one] > 0]:
        yield _effect("repeated", count=len(again), values=_some(again), **where)
    if of:
        return
    if type(was) is not set and old == new and first != second:
        yield _effect("reordered", name=name, unit="item")
    if type(was) is dict and (
        others := [n for n in was if n in now and not _alike(was[n], now[n])]
    ):
        pair = _pair(was[others[0]], now[others[0]])
        yield _effect("overwritten", count=len(others), values=_some(others), **where, **pair)
    if added := new - old:
        after = f"{_size(now)}, new: {', '.join(_some(added))}"
        yield _effect("changed", name=name, before=_size(was), after=after)


def _is_made_of(was: Any, now: Any) -> bool:
    lists = type(was) is type(now) and type(was) in (list, tuple, dict, set)
    if not lists or min(len(was), len(now)) < 2 or max(len(was), len(now)) > _ITEMS:
        return False
    old, new = (Counter(map(_plain, one)) for one in (was, now))
    return new.keys() <= old.keys() and (len(was) != len(now) or new == old)


def _differ(name: str, was: Any, now: Any, others: dict[str, _Table]) -> Effects:
    """Yield how what a name holds differs from what it held."""
    if _alike(was, now):
        return
    old, new = others.get(name), _read(now)
    if old and new:
        found = [*_compare(old, new, name, "", others)]
        found += _columns(old, new, name) if not _is_array(was) else ()
        yield from found
        rows = any(one["kind"] in ("gone", "repeated") for one in found)
        if not found or (old.height != new.height and not rows):
            yield from _sizes(name, was, now)
    elif _library(now) and len(now) > _CELLS:
        yield _effect("unfollowed", name=name, cause=_size(now))
    elif type(was) is type(now) and type(was) in (list, tuple, dict, set):
        yield from _items(was, now, name)
    else:
        yield from _sizes(name, was, now)


def _sizes(name: str, was: Any, now: Any) -> Effects:
    """Yield that a value became one of another size, or else of another type."""
    for say in (_size, lambda one: type(one).__name__):
        if (before := say(was)) != (after := say(now)):
            yield _effect("changed", name=name, before=before, after=after)
            return
    yield _effect("changed", name=name)


def _columns(old: _Table, new: _Table, name: str) -> Effects:
    labels = [dict.fromkeys(one.labels) for one in (old, new)]
    lost, added = ([n for n in a if n not in b] for a, b in (labels, labels[::-1]))
    both = [(a, b) for a, b in zip(lost, added, strict=False) if {a, b} <= {*old.own, *new.own}]
    if both and len(lost) == len(added) and all(old.values(a) == new.values(b) for a, b in both):
        told = {"renamed": [f"{a} → {b}" for a, b in zip(lost, added, strict=True)]}
    else:
        told = {
            "gone": [one for one in lost if one not in new.columns],
            "index": [one for one in lost if one in new.columns],
            "": [one for one in added if one not in old.columns],
        }
    for column in (one for one in told.get("", ()) if one in new.columns):
        if count := new.lacks(column):
            where = {"name": name, "column": column, "cause": "new"}
            yield _effect("missing", count=count, total=new.height, **where)
    for cause, names in told.items():
        if names:
            values = {"count": len(names), "values": names[:_FEW]}
            yield _effect("columns", name=name, cause=cause, **values)
    if not lost and not added and [*labels[0]] != [*labels[1]]:
        yield _effect("columns", name=name, cause="reordered")


# What a text says of itself


class _Reading:
    """What can be told from a text's tree.

    Attributes:
        named: its words: attributes, names of arguments, and texts.
        last: the name that the last statement gives, or is.
        shows: whether the last statement is an expression.
        uncalled: the functions that nothing in the text reads.
        loops: the names that loops bind.
        names_at: the names in each line.
        looks: whether it looks after values that are missing.
        handles: whether it catches exceptions.
        passing: the lines that run while an exception passes: of ``finally`` and of ``with``.
    """

    def __init__(self, tree: ast.Module) -> None:
        nodes = [*ast.walk(tree)]
        last = tree.body[-1] if tree.body else None
        self.last, self.shows = "", isinstance(last, ast.Expr)
        match last:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.Expr(value=ast.Name(id=name)):
                self.last = name
        defined = [one for one in tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
        others = [node for top in tree.body if top not in defined for node in ast.walk(top)]
        read = {node.id for node in others if isinstance(node, ast.Name)}
        plain = (one for one in defined if isinstance(one, ast.FunctionDef))
        self.uncalled = [
            one.name for one in plain if not one.decorator_list and one.name not in read
        ]
        self.named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        self.named |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
        self.named |= {str(node.arg) for node in nodes if isinstance(node, ast.keyword)}
        loops = (node.target for node in nodes if isinstance(node, ast.For))
        self.loops = {
            one.id for each in loops for one in ast.walk(each) if isinstance(one, ast.Name)
        }
        self.names_at = dict[int, list[str]]()
        for node in nodes:
            if isinstance(node, ast.Name):
                self.names_at.setdefault(node.lineno, []).append(node.id)
        tests = (one for node in nodes if isinstance(node, ast.Compare) for one in node.ops)
        self.looks = any(isinstance(one, (ast.Is, ast.IsNot)) for one in tests)
        self.looks |= any(map(_LOOKS.search, self.named))
        self.handles, self.passing = False, set[int]()
        for node in nodes:
            if isinstance(node, (ast.Try, ast.TryStar)):
                self.handles |= bool(node.handlers)
                for one in node.finalbody:
                    self.passing |= {*range(one.lineno, (one.end_lineno or one.lineno) + 1)}
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                self.handles = True  # as ``suppress`` does
                self.passing.add(node.lineno)


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
        self._variables, self._head = variables, outputs["_table"]
        self._within, self._limit = outputs["_within"], limit
        self._before = {name: _copy(value) for name, value in variables.items()}
        self._warned = list[tuple[str, str, int]]()
        self._stores = list[tuple[int, str, str, Any]]()  # that pandas warned of
        self._caught = Counter[tuple[str, int, bool]]()
        self._parents = dict[str, str]()  # what a table is a part of
        self._reads = list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]]()

    def watch(self, tree: ast.Module, file: str) -> None:
        """Note a text's words, and from now on its warnings, its readers and what it catches."""
        self._text, self._file = _Reading(tree), file
        _Table.named = frozenset(self._text.named)
        show = warnings.showwarning

        def note(message: Any, category: Any, filename: str, lineno: int, *more: Any) -> None:
            if filename == file:
                words = str(message).strip().partition("\n")[0][:_WORDS]
                self._warned.append((category.__name__[:_WIDTH], words, lineno))
            show(message, category, filename, lineno, *more)

        warnings.showwarning, warn = note, warnings.warn  # type: ignore[assignment]

        def warning(message: Any, category: Any = None, stacklevel: int = 1, **more: Any) -> None:
            if getattr(category, "__name__", "") in _CHAINED:
                self._chained(sys._getframe(1), category.__name__)
            warn(message, category, stacklevel + 1, **more)

        warnings.warn = warning  # type: ignore[assignment]  # a text may have switched them off
        for module in filter(None, map(sys.modules.get, ("pandas", "polars"))):
            for name in _READERS:
                if hasattr(module, name):
                    setattr(module, name, self._noting(getattr(module, name), str(module.__file__)))
        if self._text.handles:
            sys.settrace(self._enter)

    def _chained(self, frame: Any, cause: str) -> None:
        """Note that pandas says that what is stored into stays as it was."""
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        for word in self._text.names_at.get(frame.f_lineno, ()) if frame else ():
            value = frame.f_locals.get(word, frame.f_globals.get(word))
            if _library(value):
                name = next((n for n, v in frame.f_globals.items() if v is value), word)
                self._stores.append((frame.f_lineno, name, cause, _copy(value)))
                return

    def _noting(self, reader: Callable[..., Any], file: str) -> Callable[..., Any]:
        def read(*args: Any, **options: Any) -> Any:
            made = reader(*args, **options)
            if options.keys() & _LEAVES_OUT:
                self._reads.append((reader, args, options, made))
            return made

        # A warning of the library's is told of the line that called it.
        read.__code__ = read.__code__.replace(co_filename=file)
        return functools.wraps(reader)(read)

    def _enter(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != self._file:
            return None
        frame.f_trace_lines = False
        raised = list[tuple[Any, int]]()

        def step(frame: Any, event: str, arg: Any) -> Any:
            if event == "exception" and not issubclass(arg[0], (StopIteration, GeneratorExit)):
                raised[:] = [(arg[0], frame.f_lineno)]
                frame.f_trace_lines = True  # it has caught it if it goes on
            elif event == "line" and raised and frame.f_lineno not in self._text.passing:
                kind, line = raised.pop()
                self._caught[kind.__name__[:_WIDTH], line, issubclass(kind, ImportError)] += 1
                frame.f_trace_lines = False
            return step

        return step

    def report(self, after: dict[str, Any], value: Any, *, odd: bool) -> list[Effect]:
        """Return what the text did, the most telling first; `odd` asks about its answer, too."""
        sys.settrace(None)
        found = list[Effect]()
        own = {n: v for n, v in after.items() if n[:1] != "_" and n.isidentifier()}

        def look() -> None:
            found.extend(self._look(own, value, odd=odd))
            ended.append(True)

        ended = list[bool]()
        self._within(_SECONDS, self._limit, look)
        found += [] if ended else [_effect("unfollowed")]
        return _in_order(found)

    def _look(self, own: dict[str, Any], value: Any, *, odd: bool) -> Effects:
        names, changed = self._text.loops, self._variables.keys() - own.keys()
        tables = dict[str, _Table]()
        for name, was in self._before.items():
            with contextlib.suppress(Exception):
                if table := _read(was):
                    tables[name] = table
        given = {**tables}
        yield from self._events(own)
        moved = bool(changed)
        for name, was in self._before.items():
            found = list[Effect]()
            if was is None:
                moved |= name in own and type(own[name]) not in (*_CODE, type(None))
                continue
            with contextlib.suppress(Exception):
                if name in own:
                    found = [*_differ(name, was, own[name], tables)]
                    if found and (now := _read(own[name])):
                        found += self._mixed(now, name, {*tables[name].own}, tables)
                elif _holds_data(was):
                    found = [_effect("changed", name=name, before=_size(was), after="deleted")]
            moved |= bool(found) or _is_open(was)
            yield from found
        seen = {id(own[name]) for name in self._variables if name in own}
        made = {n: v for n, v in own.items() if n not in {*self._variables, *names}}
        made = {n: v for n, v in made.items() if id(v) not in seen}
        if odd:
            moved |= not all(isinstance(one, _CODE) for one in made.values())
            yield from self._odd(own, value, moved=moved)
        for name, one in own.items():
            if name in tables and (now := _read(one)):
                tables[name] = now
        shown = value is not None and not any(value is one for one in own.values())
        for name, one in [*made.items(), *[("", value)] * shown]:
            try:
                one = _follow(one)
                yield from self._made(name, one, tables, shown=one is value)
            except Exception:
                yield _effect("unfollowed", name=name, cause=type(one).__name__)
            with contextlib.suppress(Exception):
                if name and (table := _read(one)):
                    tables[name] = table
        yield from self._inputs(own, value, given)

    # What happened beside the values

    def _events(self, own: dict[str, Any]) -> Effects:
        stored = dict[int, str]()
        for line, name, cause, was in self._stores:
            if _alike(was, own.get(name)):
                stored[line] = name
                yield _effect("unchanged", name=name, line=line, cause=cause)
        for category, words, line in dict.fromkeys(self._warned):
            if line not in stored:
                words = "" if category in _CHAINED else words
                yield _effect("warning", cause=category, line=line, after=words)
        for (kind, line, imports), count in self._caught.items():
            yield _effect("caught", name=kind, line=line, count=count, cause="import" * imports)
        for reader, args, options, made in self._reads:
            with contextlib.suppress(Exception):
                name = next((n for n, v in own.items() if v is made), "")
                yield from _left_out(reader, args, options, made, name)

    # The answer

    def _odd(self, own: dict[str, Any], value: Any, *, moved: bool) -> Effects:
        name = self._text.last
        if value is None and name in own:
            value = own[name]
        cause = "none" if value is None and name in own else _oddity(value)
        if cause:
            yield _effect("answer", cause=cause, name="" if self._text.shows else name)
        if value is None and not (cause or moved):
            uncalled = next((n for n in self._text.uncalled if n in own), "")
            yield _effect("answer", cause="uncalled" if uncalled else "nothing", name=uncalled)

    # What is new

    def _made(self, name: str, made: Any, tables: dict[str, _Table], *, shown: bool) -> Effects:
        table = _read(made)
        if table is None:
            for of, was in self._before.items():
                if _is_made_of(was, made):
                    yield from _items(was, made, name, of)
            return
        near = [of for of, old in tables.items() if {*old.columns} & {*table.columns}]
        origins = {of: _origin(tables[of], table, same=False) for of in near}
        whole = [
            of
            for of in near
            if (found := origins[of]) and -1 not in found[0] and {*table.own} <= {*tables[of].own}
        ]
        if whole:  # it is a part of the smallest, and of the latest of these
            near = [min(reversed(whole), key=lambda of: tables[of].height)]
            self._parents[name] = near[0]
        near = [of for of in near if of not in map(self._parents.get, near)]
        known = [of for of in near if origins[of]]
        # One of which it has no more columns than another has is no source, as the keys of a join.
        given = {of: {*tables[of].own} & {*table.own} for of in known}
        known = [of for of in known if not any(given[of] < given[one] for one in known)]
        first = max(known, key=lambda of: (len(given[of]), tables[of].height), default="")
        is_slice = not name and bool(whole)
        for of in () if is_slice and not self._loses(origins[first]) else known:
            for one in _compare(tables[of], table, name, of, tables):
                if of == first:
                    yield one
                elif one["kind"] == "gone" and one.get("cause") == "unmatched":
                    yield {**one, "cause": "unused", "other": first}
        theirs = {n for of in known for n in tables[of].columns}
        for of in near if self._adds_up() else ():
            totals = _totals(tables[of], table, name, of)
            yield from (one for one in totals if one["column"] not in theirs)
        known_columns = {*tables[first].columns} if first else {*()}
        mixed = [*self._mixed(table, name, known_columns, tables)]
        yield from mixed
        theirs |= {one["column"] for one in mixed}
        lacks = {n: table.lacks(n) for n in table.own if n not in theirs}
        lacks = {n: count for n, count in lacks.items() if count}
        if lacks and not (shown and _oddity(made)):
            count, column = sum(lacks.values()), ", ".join(lacks) if len(lacks) < _FEW else ""
            total = table.height * max(1, len(lacks))
            cause = "new" if any(map(_holds_data, self._before.values())) else "read"
            where = {"name": name, "column": column, "cause": cause}
            yield _effect("missing", count=count, total=total, **where)
        if name and not shown and _library(made):
            yield _effect("new", name=name, after=_size(made), head=self._head(made))

    @staticmethod
    def _loses(origin: Any) -> bool:
        """Return whether rows are left out that are not just those before or after a part."""
        places = origin[0]
        in_order = places == sorted({*places})
        return bool(places) and not (in_order and places[-1] - places[0] == len(places) - 1)

    def _adds_up(self) -> bool:
        return "sum" in self._text.named and not self._text.named & _NO_SUMS

    @staticmethod
    def _mixed(table: _Table, name: str, known: set[str], tables: dict[str, _Table]) -> Effects:
        """Yield the columns whose values are not those that another table has for the same key."""
        for other, theirs in tables.items():
            columns = [n for n in table.own if n in theirs.own and n not in known]
            keys = [n for n in table.columns if n in known and n in theirs.columns]
            for key in [n for n in keys if theirs.names_rows(n)][:1] if other != name else ():
                there = {k: n for n, k in enumerate(theirs.values(key))}
                places = [there.get(k, -1) for k in table.values(key)]
                for column in columns:
                    was, now = theirs.values(column), table.values(column)
                    both = [(was[p], v) for p, v in zip(places, now, strict=True) if p >= 0]
                    both = [pair for pair in both if None not in pair]
                    if others := [pair for pair in both if not _reads_as(*pair)]:
                        where = {"name": name, "column": column, "other": other, "cause": key}
                        count = {"count": len(others), "total": len(both)}
                        yield _effect("differs", **count, **where, **_pair(*others[0]))
                    lost = [row for row, place in enumerate(places) if place < 0]
                    if lost:
                        given = {now[row] for row in lost}
                        kind = "missing" if given == {None} else "filled"
                        after = _text(*given) if len(given) == 1 and None not in given else ""
                        where = {"name": name, "column": column, "other": other, "after": after}
                        spellings = {*map(_spelled, there)}
                        told = {_key(table.values(key)[row], spellings) for row in lost}
                        counts = {"count": len(lost), "values": sorted(told)[:_FEW]}
                        yield _effect(kind, cause="unmatched", total=len(now), **counts, **where)

    # What the text was given

    def _inputs(self, own: dict[str, Any], value: Any, given: dict[str, _Table]) -> Effects:
        """Yield what a text should have known of the columns that it names."""
        named = self._text.named
        now = {**own, "": value}
        old = [v for n, v in own.items() if n in given and _alike(v, self._before[n])]
        after = [t for v in now.values() if not any(v is o for o in old) and (t := _read(v))]
        for of, table in given.items():
            read = [n for n in table.columns if n in named or not n]
            lacks = {n: table.lacks(n) for n in read}
            lacks = {} if self._text.looks else {n: count for n, count in lacks.items() if count}
            if lacks:
                column, *more = lacks
                where = {"of": of, "column": column, "count": lacks[column], "total": table.height}
                yield _effect("input", cause="missing", values=more[:_FEW], **where)
            for column in read:
                yield from self._traits(of, column, table, after)

    def _traits(self, of: str, column: str, table: _Table, after: list[_Table]) -> Effects:
        values = table.values(column)[:1_000]
        known = [one for one in values if one is not None]
        numbers = [one for one in known if isinstance(one, str) and _NUMBER.fullmatch(one)]
        is_code = any(re.match(r"\s*0\d", one) for one in numbers)  # 01099
        as_text = [t for t in after if column in t.columns and t.type(column) == table.type(column)]
        left = as_text or not any(column in t.columns for t in after)
        if left and len(numbers) > 0.8 * len(known) and not is_code:
            yield _effect("text", of=of, column=column)
        dtype = getattr(table.columns[column], "dtype", None)
        zone = getattr(dtype, "tz", getattr(dtype, "time_zone", None))
        if type(table.columns[column]) is list and hasattr(known[0] if known else 0, "tzinfo"):
            zone = known[0].tzinfo
        if zone and self._text.named & _PARTS_OF_DAYS:
            yield _effect("zone", of=of, column=column, after=str(zone))
        categories: Any = getattr(dtype, "categories", None)
        used = {*table.values(column)} if hasattr(categories, "tolist") else {*()}
        unused = [one for one in categories.tolist() if one not in used] if used else []
        groups = [t for t in after if column in t.columns and t.height == len(used)]
        if unused and any({*t.values(column)} == used for t in groups):
            count = {"count": len(unused), "total": len(categories)}
            yield _effect(
                "gone", of=of, column=column, cause="groups", values=_some(unused), **count
            )


_PLANS = {"LazyFrame": "collect", "DuckDBPyRelation": "df"}  # and what gives their table


def _follow(value: Any) -> Any:
    plan = _PLANS.get(type(value).__name__)
    return getattr(value, plan)() if plan else value


def _left_out(
    reader: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    made: Any,
    name: str,
) -> Effects:
    """Yield what arguments of a reader left out: the file is read once more without them."""
    source = str(args[0] if args else next(iter(options.values())))
    with open(source, "rb") as file:
        if file.seek(0, 2) > _FILE:
            yield _effect("unfollowed", name=name, cause=source)
            return
    told = [
        f"{one}={'…' if callable(options[one]) else repr(options[one])}"
        for one in options
        if one in _LEAVES_OUT
    ]
    plain = {one: value for one, value in options.items() if one not in _LEAVES_OUT}
    whole, part = _read(reader(*args, **plain)), _read(made)
    if not (whole and part):
        return
    where = {"name": name, "of": source.rpartition("/")[2], "after": _text(", ".join(told))}
    if whole.height != part.height:
        yield _effect("read", count=part.height, total=whole.height, **where)
    else:
        for column in (one for one in part.own if one in whole.own):
            if lost := part.lacks(column) - whole.lacks(column):
                yield _effect("read", column=column, count=lost, total=whole.height, **where)


def _in_order(found: list[Effect]) -> list[Effect]:
    """Return effects, the most telling first, without what follows from others.

    Parts that are the whole together are one effect.
    """
    parts = dict[tuple[str, int], list[Effect]]()
    for one in found:
        if one["kind"] == "gone" and one.get("cause") == "kept" and one.get("of"):
            parts.setdefault((one["of"], one["total"]), []).append(one)
    for (of, total), some in parts.items():
        sizes = [(one.get("name", ""), total - one["count"]) for one in some]
        if len(some) > 1 and sum(size for _, size in sizes) == total:
            values = [f"{name} {size:,}" for name, size in sizes]
            found = [one for one in found if not any(one is part for part in some)]
            found.append(_effect("split", of=of, total=total, values=values))
    apart = {(n.get("name"), n.get("column")) for n in found if n.get("cause") == "unmatched"}
    found = [  # a cause tells more
        one
        for one in found
        if one.get("cause") != "new" or (one.get("name"), one.get("column")) not in apart
    ]
    told = [one for one in found if one["kind"] in ("filled", "overwritten", "missing", "gone")]
    looked_after = {(one.get("of") or one.get("name"), one.get("column")) for one in told}
    kept, counts, sums = list[Effect](), Counter[str](), set[Any]()
    for one in sorted(found, key=_rank):
        follows = one["kind"] == "input" and (one["of"], one["column"]) in looked_after
        if one["kind"] == "total":
            sum_of = tuple(map(one.get, ("column", "before", "after")))
            follows = sum_of in sums
            sums.add(sum_of)
        if one not in kept and not follows:
            counts[one["kind"]] += 1
            kept += [one] if counts[one["kind"]] <= _MOST_OF.get(one["kind"], _MOST) else []
    return kept[:_MOST]


def _copy(value: Any) -> Any:
    """Return what can be compared with a value once code had it; None for nothing."""
    with contextlib.suppress(Exception):
        if _library(value) == "polars":
            return value.clone()
        if _library(value):
            shares = int(sys.modules["pandas"].__version__.partition(".")[0]) >= 3
            frame = value.to_frame() if len(value.shape) == 1 else value
            size = 0 if shares else frame.memory_usage().sum()
            return value.copy(deep=not shares) if size <= _BYTES else None
        if _is_array(value):
            return value.copy() if value.nbytes <= _BYTES else None
        if type(value) in (list, tuple, dict, set) and len(value) <= _ITEMS:
            with contextlib.suppress(ValueError):
                return marshal.loads(marshal.dumps(value))  # which refuses all but plain values
            return [{**one} for one in value] if _is_rows(value) else None
        if type(value) in _SCALARS:
            return value
    return None


def _holds_data(value: Any) -> bool:
    return bool(_library(value)) or _is_array(value) or isinstance(value, (list, dict, set))


def _is_open(value: Any) -> bool:
    """Return True for a table whose cells may hold lists and the like, which no copy keeps."""
    flat = [value.ravel()] if _is_array(value) else []
    columns = _Table(value).columns.values() if _library(value) else flat
    objects = (one for one in columns if str(one.dtype).lower().startswith("object"))
    return not all(isinstance(cell, _SCALARS) for one in objects for cell in one)


def _oddity(value: Any) -> str:
    """Return what is odd about an answer."""
    if type(value) in (str, list, tuple, dict, set, frozenset) and not value:
        return "empty"
    if type(value) in (list, tuple):
        return "missing" if all(_plain(one) is None for one in value) else ""
    if table := _read(value):
        values = [one for name in table.own for one in table.values(name)]
        return (
            "empty" if not values else "missing" if not any(v is not None for v in values) else ""
        )
    if isinstance(value, float):
        return "nan" if value != value else "inf" if math.isinf(value) else ""
    return "nan" if value is not None and _plain(value) is None else ""
