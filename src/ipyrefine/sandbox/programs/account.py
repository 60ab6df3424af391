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
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

Effect = dict[str, Any]
Effects = Iterator[Effect]
Origin = tuple[list[int], list[str]]  # places of rows, and the columns that they are known by

_SECONDS, _CLOSE = 3.0, 1e-9  # of processor time; relative
_MOST, _MOST_OF = 8, {"new": 3, "warning": 2, "total": 2, "type": 2, "caught": 2}  # effects
_FEW, _WIDTH, _WORDS, _COLUMNS = 5, 60, 200, 20  # values, characters, columns that are looked at
_CELLS, _ITEMS = 2_000_000, 100_000  # of a table, plain values
_BYTES, _FILE = 200_000_000, 20_000_000  # of what is copied, of a file that is read once more
_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_CODE = (type(sys), type(len), type(lambda: 0), type)  # modules, functions and classes
_NUMBER = re.compile(r"\s*(?!0\d)[-+]?\d[\d,. ]*(?:[eE][-+]?\d+)?\s*%?")  # no code, as 01099
_CHAINED = ("ChainedAssignmentError", "SettingWithCopyWarning")
_KINDS = [  # the most telling first
    "unchanged", "answer", "read", "caught", "gone unmatched", "gone spelled", "gone missing",
    "repeated", "differs", "missing unmatched", "overwritten", "missing", "text", "zone",
    "gone groups", "gone repeats", "reordered", "filled", "changed", "total", "warning", "type",
    "columns", "gone", "split", "gone kept", "gone unused", "missing new", "input", "new",
    "unfollowed", "caught import", "missing read",
]  # fmt: skip
# What looks after missing values, by whatever library; a text that has one needs no telling.
_LOOKS = re.compile(
    r"(fill|drop|is|not|any|all)_?(na|null|nan)s?$|nan_to_num|[fb]fill|interpolate|[Ii]mpute|"
    r"(forward|backward)_fill|coalesce|nan(mean|sum|min|max|median|std|var)$"
)
_PARTS_OF_DAYS = {
    "date", "hour", "day", "weekday", "dayofweek", "day_name", "normalize", "floor", "truncate",
    "resample", "strftime", "tz_localize", "to_period", "replace_time_zone",
}  # fmt: skip
_NO_SUMS = {"mean", "median", "std", "var", "min", "max", "count", "size", "nunique"}
_READERS = ("read_csv", "read_table", "read_json", "read_excel", "read_ndjson")
_LEAVES_OUT = {  # arguments of readers
    "nrows", "skiprows", "skipfooter", "na_values", "comment", "on_bad_lines", "n_rows",
    "skip_rows", "skip_rows_after_header", "null_values", "ignore_errors", "comment_prefix",
}  # fmt: skip


def _effect(kind: str, **fields: Any) -> Effect:
    return {"kind": kind, **{name: value for name, value in fields.items() if value}}


def _rank(effect: Effect) -> int:
    whole = f"{effect['kind']} {effect.get('cause', '')}"
    return _KINDS.index(whole if whole in _KINDS else effect["kind"])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1_000 else f"{value:.6g}"
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

    named: ClassVar = frozenset[str]()
    known: ClassVar = dict[int, "_Table"]()  # by the id of their values

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
            read = value.to_series if library == "polars" else lambda n: value.iloc[:, n]
            for n in sorted(places[:_COLUMNS]):
                self.columns.setdefault(heads[n], read(n))
        self.own = [*self.columns]  # those that are no level of the index
        self.labels = [*map(_text, value.columns)] if hasattr(value, "columns") else self.own
        self.index: Any = getattr(value, "index", None) if library else None
        self.levels = [*getattr(self.index, "names", ())]
        for place, level in enumerate(self.levels):
            if level is not None:
                self.columns.setdefault(_text(level), value.index.get_level_values(place))

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
        return (
            int(column.isna().sum()) if hasattr(column, "isna") else self.values(name).count(None)
        )

    def names_rows(self, name: str) -> bool:
        column = self.columns[name]
        if "float" in self.type(name).lower() or self.height < 2:
            return False
        if hasattr(column, "isna") and column.dtype != object:  # which may be lists
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
    """Return a value as a table, which is read once; None for what is none."""
    if id(value) not in _Table.known:
        is_table = _library(value) or _is_rows(value) or (_is_array(value) and value.ndim in (1, 2))
        if not is_table or len(value) > _CELLS:
            return None
        _Table.known[id(value)] = _Table(value)
    return _Table.known[id(value)]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _size(value: Any) -> str:
    """Return what a value is, in few words."""
    shape: tuple[int, ...] = getattr(value, "shape", ())
    if _library(value) and len(shape) == 2:
        rows, width = shape
        return f"{_count(rows, 'row')} × {_count(width, 'column')}"
    if shape and hasattr(value, "dtype"):
        size = " × ".join(f"{n:,}" for n in shape)
        return f"{size} value{'s' * (size != '1')} ({value.dtype})"
    if isinstance(value, (list, tuple, dict, set)):
        return _count(len(value), "item")
    return _text(repr(value)) if type(value) in _SCALARS else type(value).__name__


def _alike(first: Any, second: Any) -> bool:
    with contextlib.suppress(Exception):
        if type(first) is not type(second):
            return False
        if _library(first):
            return bool(first.equals(second)) and _traits(first) == _traits(second)
        if _is_array(first):
            return len({(one.dtype, one.shape, one.tobytes()) for one in (first, second)}) == 1
        return repr(first) == repr(second) or (type(first) is set and first == second)
    return False


def _traits(value: Any) -> str:
    """Return what stands next to a table's values."""
    table = value if len(value.shape) == 2 else value.to_frame()
    names = getattr(getattr(table, "index", None), "names", ())
    return repr([[*table.columns], [*table.dtypes], names, getattr(table, "attrs", ())])


# What became of a table's rows and values


def _known_by(old: _Table, new: _Table, shared: list[str]) -> list[str]:
    """Return the columns by which rows are known again."""
    for name in filter(old.names_rows, shared):
        known = {*old.values(name)}
        if 2 * sum(one in known for one in new.values(name)) >= new.height:
            return [name]
    return [n for n in shared if old.type(n) == new.type(n)] or shared


def _origin(old: _Table, new: _Table, *, same: bool) -> Origin | None:
    """Return for each row of a table its place in the one that it was made of, and the key.

    A row that was not there has -1. None is for tables that have nothing to do with each other;
    `same` says that one name holds both.
    """
    shared = [name for name in old.columns if name in new.columns]
    if old.height == new.height and (
        any(old.same(n, new) for n in shared) or (same and len(shared) == 1)
    ):
        return [*range(new.height)], []
    if old.index is not None and new.index is not None:
        labels, at = new.index.tolist(), {one: n for n, one in enumerate(old.index.tolist())}
        kept = labels != [*range(new.height)]  # not given anew
        by_label = [at.get(label, -1) for label in labels]
        agreeing = (_agree(old, new, n, by_label) for n in shared)
        is_part = len(shared) == len(new.columns) and -1 not in by_label
        alike = any(agreeing) if kept else is_part and all(agreeing)
        if alike and len(at) == old.height and old.levels == new.levels:
            return by_label, []
        by_column = {*map(_text, new.levels)} & {*old.columns}
        if kept and not (same or by_column) and {*by_label} == {-1}:
            return None
    names = _known_by(old, new, shared)
    places = dict[Any, list[int]]()
    for place, row in enumerate(old.rows(names)):
        places.setdefault(row, []).append(place)
    left = (places.get(row, [-1]) for row in new.rows(names))
    found = [one.pop(0) if len(one) > 1 else one[0] for one in left]
    known = sum(place >= 0 for place in found)
    is_one = len(names) == 1
    is_text = is_one and isinstance(next(iter(old.values(names[0])), ""), str)
    is_key, whole = is_one and old.names_rows(names[0]), len(names) == len(old.own)
    # Numbers and dates may be of a summary, so that another column has to agree, or every row.
    whole &= is_text or not is_one
    if is_key and not is_text:
        is_key = any(_agree(old, new, n, found) for n in shared if n not in names)
    levels = {*new.columns}.difference(new.own).intersection(old.own)
    grouped = any(new.names_rows(n) and not old.names_rows(n) for n in levels)
    few = known < len(found) or len(names) == 1 < len(old.columns)
    mere = not same and (grouped or not (is_key or whole or not few))
    return (found, names) if known and 2 * known >= len(found) and not mere else None


def _agree(old: _Table, new: _Table, name: str, places: list[int]) -> bool:
    """Return whether a column has the same values wherever a row is known."""
    pairs = zip(places, new.values(name), strict=True)
    return any(p >= 0 for p in places) and all(p < 0 or old.values(name)[p] == v for p, v in pairs)


def _compare(
    old: _Table, new: _Table, origin: Origin, name: str, of: str, others: dict[str, _Table]
) -> Effects:
    """Yield what became of a table's rows and values in the same name, or in another."""
    places, key = origin
    shared = [n for n in old.columns if n in new.columns]
    counts, where = Counter(places), {"name": name, "of": of, "total": old.height}
    gone = [place for place in range(old.height) if place not in counts]
    again = [place for place in counts if counts[place] > 1 and place >= 0]
    firsts = [place for place in counts if place >= 0]
    apart = {n: t for n, t in others.items() if n not in (name, of)}
    whose = key[0] if len(key) == 1 else next(filter(old.names_rows, old.own), old.own[0])

    def told(rows: Iterable[int]) -> Effect:
        return {"column": whose, "values": _some(old.values(whose)[row] for row in rows)}

    # Where rows are kept just as they were, the others need no cause.
    kept = "kept" * (not again and -1 not in counts and {*new.columns} <= {*old.columns})
    for rows, why in _whys(old, gone, apart) if gone else ():
        if rows:
            cause = why or {**told(rows), "cause": kept}
            yield _effect("gone", count=len(rows), **where, **cause)
    if again:
        why = {**told(again), **_twice(old, again, apart)}
        yield _effect("repeated", count=len(again), **where, **why)
    if not of and not gone and firsts != sorted(firsts):
        yield _effect("reordered", name=name)
    as_it_was = places == [*range(old.height)]
    of_one = _library(old.value) == _library(new.value)  # else types have other names
    for column in (n for n in shared if n not in key and not (of and again)):
        types = old.type(column), new.type(column) if of_one else old.type(column)
        if not (as_it_was and types[0] == types[1] and old.same(column, new)):
            was = [old.values(column)[place] if place >= 0 else None for place in places]
            now = [v if p >= 0 else None for v, p in zip(new.values(column), places, strict=True)]
            yield from _column(was, now, types, name=name, of=of, column=column)


def _whys(
    old: _Table, gone: list[int], others: dict[str, _Table]
) -> Iterator[tuple[Collection[int], Effect]]:
    """Yield the rows that are gone, apart by what they have and no other row has."""
    left = sorted({*range(old.height)}.difference(gone))
    rows = old.rows(old.own)
    lacks = [n for n in old.columns if any(old.values(n)[row] is None for row in gone)]
    lacks = [n for n in lacks if not any(old.values(n)[row] is None for row in left)]

    def lack(some: Iterable[int]) -> bool:
        return all(any(old.values(n)[row] is None for n in lacks) for row in some)

    if {rows[n] for n in gone} <= {rows[n] for n in left} and len({*rows}) == len(left):
        yield gone, {"cause": "repeats"}
        return
    for name, (other, table) in itertools.product(
        old.columns, others.items() if not lack(gone) else ()
    ):
        values, known = old.values(name), {*table.values(name)} if name in table.columns else {*()}
        some = {row for row in gone if values[row] not in known}
        rest = {*gone} - some
        if known and some and all(values[row] in known for row in left) and lack(rest):
            near = {*map(_spelled, known)}
            spelled = {row for row in some if _spelled(values[row]) in near}
            for cause, part in (("unmatched", some - spelled), ("spelled", spelled)):
                told = _keys([values[row] for row in part], known)
                yield part, {"cause": cause, "column": name, "other": other, "values": told}
            gone = sorted(rest)
            break
    lacks = [n for n in lacks if any(old.values(n)[row] is None for row in gone)]
    yield gone, {"cause": "missing", "values": lacks[:_FEW]} if lack(gone) else {}


def _keys(values: list[Any], known: Iterable[Any]) -> list[str]:
    """Return keys in words, quoted where spaces or case tell them from others."""
    spellings = {*map(_spelled, known)}
    told = {repr(one) if _spelled(one) in spellings else _text(one) for one in values}
    return sorted(told)[:_FEW]


def _spelled(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


def _twice(old: _Table, again: list[int], others: dict[str, _Table]) -> Effect:
    """Return the table that has something more than once, which is why rows are."""
    for name, (other, table) in itertools.product(old.columns, others.items()):
        counts = Counter(table.values(name) if name in table.columns else ())
        values = [old.values(name)[row] for row in again]
        if all(counts[one] > 1 for one in values):
            return {"other": other, "column": name, "values": _some(values)}
    return {}


def _column(was: list[Any], now: list[Any], types: tuple[str, str], **where: Any) -> Effects:
    """Yield what became of a column's values, row by row."""
    before, after = types
    if before != after and not {*types} <= {"object", "str", "string", "list"}:
        yield _effect("type", before=before, after=after, **where)
    both = [*zip(was, now, strict=True)]
    filled = [b for a, b in both if a is None and b is not None]
    lost = [a for a, b in both if b is None and a is not None]
    others = [(a, b) for a, b in both if None not in (a, b) and not _reads_as(a, b)]
    if filled:
        constant = _text(filled[0]) if len({*map(_text, filled)}) == 1 else ""
        yield _effect("filled", count=len(filled), after=constant, **where)
    if others:
        count = {"count": len(others), "total": len(was) - was.count(None)}
        yield _effect("overwritten", **count, **where, **_pair(*others[0]))
    if lost:
        yield _effect("missing", count=len(lost), total=len(both), values=_some(lost), **where)


def _reads_as(was: Any, now: Any) -> bool:
    """Return True for one value written in two ways, such as text that became a number."""
    if None in (was, now) or (type(was) is type(now) and not isinstance(was, float)):
        return bool(was == now)
    with contextlib.suppress(ValueError, TypeError):
        numbers = [float(str(one).replace(",", "")) for one in (was, now)]
        return math.isclose(*numbers, rel_tol=_CLOSE)
    if hasattr(now, "isoformat") or hasattr(was, "isoformat"):  # a date, in whatever order
        parts = [Counter(map(int, re.findall(r"\d+", str(one)))) for one in (was, now)]
        return parts[0] <= parts[1] or parts[1] <= parts[0]
    return str(now) == str(was)


def _pair(was: Any, now: Any) -> dict[str, str]:
    """Return two values that differ as texts that do."""
    texts = [_text(one).strip() for one in (was, now)]
    plain = type(was) is not dict and texts[0] != texts[1] and "" not in texts
    write = _text if plain else repr
    return {"before": _text(write(was)), "after": _text(write(now))}


def _total(old: _Table, new: _Table, column: str) -> Effect:
    """Return that the sum of a column is another one; nothing where it is not."""
    if column not in old.own or not (old.is_number(column) and new.is_number(column)):
        return {}
    was, now = (sum(filter(None, one.values(column))) for one in (old, new))
    # Labels of groups are no sums.
    if {*new.values(column)} <= {*old.values(column)} or math.isclose(
        was, now, rel_tol=_CLOSE, abs_tol=_CLOSE
    ):
        return {}
    before, after = (f"{v:,.2f}" if isinstance(v, float) else f"{v:,}" for v in (was, now))
    return {"before": before, "after": after}


def _differ(name: str, was: Any, now: Any, tables: dict[str, _Table]) -> Effects:
    """Yield how what a name holds differs from what it held."""
    if _alike(was, now):
        return
    old, new = tables.get(name), _read(now)
    if old and new:
        origin = _origin(old, new, same=True)
        found = [*_compare(old, new, origin, name, "", tables)] if origin else []
        found += _columns(old, new, name) if not _is_array(was) else ()
        told = {one["kind"] for one in found}
        if not told or (old.height != new.height and told.isdisjoint(("gone", "repeated"))):
            found.append(_sizes(name, was, now))
        mixed = [*_mixed(new, name, {*old.own}, tables)]
        yield from [*found, *mixed]
        # More is missing than in what the text reads, or gives another name.
        read = [old.values(n) for n in old.own if n in _Table.named or n not in new.own]
        gaps = {row for values in read for row, one in enumerate(values) if one is None}
        known = {*old.columns, *(one["column"] for one in mixed)}
        known |= {n for n in new.own if new.lacks(n) <= len(gaps) or old.height != new.height}
        yield from _lacking(new, name, known, "new")
    else:
        yield _sizes(name, was, now)


def _sizes(name: str, was: Any, now: Any) -> Effect:
    """Return that a value became one of another size, or else of another type."""
    if _library(now) and len(now) > _CELLS:
        return _effect("unfollowed", name=name, cause=_size(now))
    pairs = [(_size(was), _size(now)), (type(was).__name__, type(now).__name__)]
    before, after = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return _effect("changed", name=name, before=before, after=after)


def _mixed(table: _Table, name: str, known: set[str], tables: dict[str, _Table]) -> Effects:
    """Yield the columns whose values are not those that another table has for the same key."""
    for other, theirs in tables.items():
        columns = [n for n in table.own if n in theirs.own and n not in known]
        keys = [n for n in table.columns if n in {*known} & {*theirs.columns}]
        for key in [n for n in keys if theirs.names_rows(n)][:1] if other != name else ():
            there = {k: n for n, k in enumerate(theirs.values(key))}
            places = [there.get(k, -1) for k in table.values(key)]
            lost = [row for row, place in enumerate(places) if place < 0]
            told = _keys([table.values(key)[row] for row in lost], there)
            for column in columns:
                was, now = theirs.values(column), table.values(column)
                both = [(was[p], v) for p, v in zip(places, now, strict=True) if p >= 0]
                both = [pair for pair in both if None not in pair]
                where = {"name": name, "column": column, "other": other}
                if others := [pair for pair in both if not _reads_as(*pair)]:
                    count = {"count": len(others), "total": len(both), "cause": key}
                    yield _effect("differs", **count, **where, **_pair(*others[0]))
                if given := {now[row] for row in lost}:
                    kind = "missing" if given == {None} else "filled"
                    where["after"] = _text(*given) if len(given) == 1 and None not in given else ""
                    count = {"count": len(lost), "total": len(now), "values": told}
                    yield _effect(kind, cause="unmatched", **count, **where)


def _columns(old: _Table, new: _Table, name: str) -> Effects:
    for cause, some, others in (("gone", old, new), ("", new, old)):
        names = [one for one in some.labels if one not in {*others.labels, *others.columns}]
        if names:
            yield _effect("columns", name=name, cause=cause, count=len(names), values=names[:_FEW])


def _lacking(table: _Table, name: str, known: set[str], cause: str) -> Effects:
    lacks = {n: count for n in table.own if n not in known and (count := table.lacks(n))}
    if lacks:
        yield _effect(
            "missing",
            name=name,
            column=", ".join(lacks) * (len(lacks) < _FEW),
            count=sum(lacks.values()),
            total=table.height * len(lacks),
            cause=cause,
        )


# What a text says of itself


class _Reading:
    """What can be told from a text's tree.

    Attributes:
        named: its words: attributes, names of arguments, and texts.
        last: the name that the last statement gives, or is.
        shows: whether the last statement is an expression.
        loops: the names that loops bind.
        names: where it has names.
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
        words = ((ast.Attribute, "attr"), (ast.Constant, "value"), (ast.keyword, "arg"))
        self.named = {
            str(getattr(node, field))
            for node in nodes
            for kind, field in words
            if type(node) is kind
        }
        self.names = [node for node in nodes if isinstance(node, ast.Name)]
        loops = {
            one for node in nodes if isinstance(node, ast.For) for one in ast.walk(node.target)
        }
        self.loops = {one.id for one in self.names if one in loops}
        self.looks = any(map(_LOOKS.search, self.named)) or any(
            isinstance(one, (ast.Is, ast.IsNot)) for one in nodes
        )
        blocks = {one.lineno for one in nodes if isinstance(one, (ast.With, ast.AsyncWith))}
        self.handles = bool(blocks) or any(isinstance(one, ast.ExceptHandler) for one in nodes)
        ends = [one for node in nodes for one in getattr(node, "finalbody", ())]
        # That of ``with`` is among them as it is passed again, also where it catches.
        self.passing = blocks.union(*(range(one.lineno, one.end_lineno + 1) for one in ends))


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
        self._parts = dict[str, str]()  # tables that are rows of another
        self._warned = list[tuple[str, str, int]]()
        self._stores = list[tuple[int, str, str, Any]]()  # that pandas warned of
        self._caught = Counter[tuple[str, int, bool]]()
        self._reads = list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]]()

    def watch(self, tree: ast.Module, file: str) -> None:
        """Note a text's words, and from now on its warnings, its readers and what it catches."""
        self._text, self._file = _Reading(tree), file
        _Table.named, _Table.known = frozenset(self._text.named), {}
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
        modules = filter(None, map(sys.modules.get, ("pandas", "polars")))
        for module, name in itertools.product(modules, _READERS):
            if hasattr(module, name):
                setattr(module, name, self._noting(getattr(module, name), str(module.__file__)))
        if self._text.handles:
            sys.settrace(self._enter)

    def _chained(self, frame: Any, cause: str) -> None:
        """Note that pandas says that what is stored into stays as it was."""
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        here = [one.id for one in self._text.names if frame and one.lineno == frame.f_lineno]
        values = ((one, frame.f_locals.get(one, frame.f_globals.get(one))) for one in here)
        for word, value in [pair for pair in values if _library(pair[1])][:1]:
            name = next((n for n, v in frame.f_globals.items() if v is value), word)
            self._stores.append((frame.f_lineno, name, cause, _copy(value)))

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
        found = [_effect("unfollowed")]  # where it does not come to its end
        own = {n: v for n, v in after.items() if n[:1] != "_" and n.isidentifier()}

        def look() -> None:
            found.extend(self._look(own, value, odd=odd))
            del found[0]

        self._within(_SECONDS, self._limit, look)
        return _in_order(found)

    def _look(self, own: dict[str, Any], value: Any, *, odd: bool) -> Effects:
        # A name that stands there as a column's alone is not the variable's.
        columns = self._text.named.difference(one.id for one in self._text.names)
        tables = {n: table for n, was in self._before.items() if (table := _read(was))}
        given = {n: table for n, table in tables.items() if n not in columns}
        tables = {**given}
        yield from self._events(own)
        moved = bool(self._variables.keys() - own.keys())
        for name, was in self._before.items():
            if was is None:
                moved |= name in own and type(own[name]) not in (*_CODE, type(None))
                continue
            if name in own:
                found = _attempt(_differ(name, was, own[name], tables), name, was)
            else:
                found = [_effect("changed", name=name, before=_size(was), after="deleted")]
            moved |= bool(found) or _is_open(was)
            yield from found
        old = {id(own.get(name)) for name in self._variables}
        names = own.keys() - self._variables.keys() - self._text.loops
        made = {
            n: v
            for n, v in own.items()
            if n in names and id(v) not in old and type(v) is not type(sys)
        }
        if odd:
            name = self._text.last
            answer = own.get(name) if value is None else value
            known = {n for one in given.values() for n in one.columns}
            cause = "none" if answer is None and name in own else _oddity(answer, known)
            if cause or (answer is None and not (moved or made)):
                what, _, column = (cause or "nothing").partition(" ")
                name *= not (self._text.shows or what == "nothing")
                yield _effect("answer", cause=what, name=name, column=column)
        tables |= {n: table for n in tables if (table := _read(own.get(n)))}
        if value is not None and not any(value is one for one in own.values()):
            made[""] = value
        for name, one in made.items():
            yield from _attempt(self._made(name, one, tables, shown=one is value), name, one)
        yield from self._inputs(own, value, given)

    # What happened beside the values

    def _events(self, own: dict[str, Any]) -> Effects:
        lost = {line: (n, why) for line, n, why, was in self._stores if _alike(was, own.get(n))}
        for line, (name, cause) in lost.items():
            yield _effect("unchanged", name=name, line=line, cause=cause)
        for category, words, line in dict.fromkeys(self._warned):
            if line not in lost:
                after = "" if category in _CHAINED else words
                yield _effect("warning", cause=category, line=line, after=after)
        for (kind, line, imports), count in self._caught.items():
            yield _effect("caught", name=kind, line=line, count=count, cause="import" * imports)
        for reader, args, options, made in self._reads:
            name = next((n for n, v in own.items() if v is made), "")
            yield from _attempt(_left_out(reader, args, options, made, name), name, made)

    # What is new

    def _made(self, name: str, made: Any, tables: dict[str, _Table], *, shown: bool) -> Effects:
        plan = _PLANS.get(type(made).__name__)
        table = _read(getattr(made, plan)() if plan else made)
        if table is None:
            return
        near = [of for of, old in tables.items() if {*old.columns} & {*table.columns}]
        origins = {of: o for of in near if (o := _origin(tables[of], table, same=False))}
        parts = (of for of in origins if {*table.own} <= {*tables[of].own})
        whole = [of for of in parts if -1 not in origins[of][0]]
        if whole:  # it is a part of the smallest, and of the latest of these
            near = [min(reversed(whole), key=lambda of: tables[of].height)]
            self._parts[name] = near[0]
        known = [of for of in near if of in origins]
        first = max(known, key=lambda of: len({*tables[of].own} & {*table.own}), default="")
        for of in known:
            # Of two parts none is the reason why the other lacks rows.
            others = {n: t for n, t in tables.items() if not whole or self._parts.get(n) != of}
            for one in _compare(tables[of], table, origins[of], name, of, others):
                if of == first and (name or not whole or one["kind"] == "gone"):
                    yield one
                elif one["kind"] == "gone" and one.get("cause") == "unmatched":
                    yield {**one, "cause": "unused"}
        theirs = {n for of in known for n in tables[of].columns}
        adds_up = "sum" in self._text.named and not self._text.named & _NO_SUMS
        columns = [n for n in table.own if n not in theirs]
        for of, column in itertools.product(near if adds_up else (), columns):
            if sums := _total(tables[of], table, column):
                yield _effect("total", name=name, of=of, column=column, **sums)
        mixed = [*_mixed(table, name, {*tables[first].columns} if first else {*()}, tables)]
        yield from mixed
        theirs |= {one["column"] for one in mixed}
        if not (shown and _oddity(table.value)):
            has_data = any(type(v) not in _SCALARS for v in self._before.values())
            yield from _lacking(table, name, theirs, "new" if has_data else "read")
        if name:
            tables[name] = table
        if name and not shown and _library(table.value):
            yield _effect("new", name=name, after=_size(table.value), head=self._head(table.value))

    # What the text was given

    def _inputs(self, own: dict[str, Any], value: Any, given: dict[str, _Table]) -> Effects:
        """Yield what a text should have known of the columns that it names."""
        same = [v for n, v in own.items() if n in given and _alike(v, self._before[n])]
        left = (v for v in (*own.values(), value) if not any(v is one for one in same))
        after = [table for v in left if (table := _read(v))]
        for of, table in given.items():
            read = [n for n in table.columns if n in self._text.named or not n]
            lacks = {n: count for n in read if (count := table.lacks(n))}
            if lacks and not self._text.looks:
                column, *more = lacks
                yield _effect(
                    "input",
                    of=of,
                    column=column,
                    cause="missing",
                    count=lacks[column],
                    total=table.height,
                    values=more[:_FEW],
                )
            for column in read:
                yield from self._traits(of, column, table, after)

    def _traits(self, of: str, column: str, table: _Table, after: list[_Table]) -> Effects:
        known = [one for one in table.values(column)[:1_000] if one is not None]
        plain = [one for one in known if isinstance(one, str) and _NUMBER.fullmatch(one)]
        types = {t.type(column) for t in after if column in t.columns} or {table.type(column)}
        if table.type(column) in types and len(plain) > 0.8 * len(known):
            yield _effect("text", of=of, column=column)
        dtype = getattr(table.columns[column], "dtype", None)
        zone = getattr(dtype, "tz", getattr(dtype, "time_zone", None))
        if zone and self._text.named & _PARTS_OF_DAYS:
            yield _effect("zone", of=of, column=column, after=str(zone))
        categories: Any = getattr(dtype, "categories", None)
        used = {*table.values(column)} if hasattr(categories, "tolist") else {*()}
        unused = [one for one in categories.tolist() if one not in used] if used else []
        groups = (t.values(column) for t in after if column in t.columns)
        if unused and any(len(one) == len(used) and {*one} == used for one in groups):
            yield _effect(
                "gone",
                of=of,
                column=column,
                cause="groups",
                count=len(unused),
                total=len(categories),
                values=_some(unused),
            )


_PLANS = {"LazyFrame": "collect", "DuckDBPyRelation": "df"}  # and what gives their table


def _attempt(effects: Effects, name: str, value: Any) -> list[Effect]:
    try:
        return [*effects]
    except Exception:
        return [_effect("unfollowed", name=name, cause=type(value).__name__)]


def _left_out(
    reader: Callable[..., Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    made: Any,
    name: str,
) -> Effects:
    """Yield what arguments of a reader left out: the file is read once more without them."""
    source = str(args[0] if args else next(iter(options.values())))
    if os.path.getsize(source) > _FILE:
        yield _effect("unfollowed", name=name, cause=source)
        return
    told = [
        f"{one}={'…' if callable(options[one]) else repr(options[one])}"
        for one in options
        if one in _LEAVES_OUT
    ]
    plain = {one: options[one] for one in options.keys() - _LEAVES_OUT}
    whole, part = _Table(reader(*args, **plain)), _Table(made)
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
        if one.get("cause") == "kept" and one.get("of"):
            parts.setdefault((one["of"], one["total"]), []).append(one)
    for (of, total), some in parts.items():
        sizes = dict[str, int]()
        for one in some:  # one after the other: X_train, X_test, y_train, y_test
            sizes[one.get("name", "")] = total - one["count"]
            if sum(sizes.values()) == total:
                texts = [f"{name} {size:,}" for name, size in sizes.items()]
                found = [n for n in found if n not in some or n.get("name", "") not in sizes]
                found.append(_effect("split", of=of, total=total, values=texts))
                sizes = {}
    looked_after = {
        (one.get("of") or one.get("name"), one.get("column"))
        for one in found
        if one["kind"] in ("filled", "overwritten", "missing", "gone")
    }
    kept = list[Effect]()
    for one in sorted(found, key=_rank):
        follows = one["kind"] == "input" and (one["of"], one.get("column")) in looked_after
        alike = sum(each["kind"] == one["kind"] for each in kept)
        if alike < _MOST_OF.get(one["kind"], _MOST) and one not in kept and not follows:
            kept.append(one)
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
        if _is_rows(value) and len(value) <= _ITEMS:
            return [{**one} for one in value]
        if type(value) in _SCALARS or (
            type(value) in (list, tuple, dict, set) and len(value) <= _ITEMS
        ):
            return marshal.loads(marshal.dumps(value))  # which refuses all but plain values
    return None


def _is_open(value: Any) -> bool:
    """Return True for a table whose cells may hold lists and the like, which no copy keeps."""
    columns = table.columns if (table := _read(value)) else {}
    objects = (one for n, one in columns.items() if table and "object" in table.type(n).lower())
    return not all(isinstance(cell, _SCALARS) for one in objects for cell in one)


def _oddity(value: Any, known: Collection[str] = ()) -> str:
    """Return what is odd about an answer; before a column's name, about that, if it is new."""
    table = _read(value)
    if type(value) in (str, list, tuple, dict, set, frozenset):
        values = value
    elif table:
        values = [one for name in table.own for one in table.values(name)]
    else:
        if isinstance(value, float):
            return "nan" if value != value else "inf" * math.isinf(value)
        return "nan" * (value is not None and _plain(value) is None)
    if len(values) == 0:
        return "empty"
    if all(_plain(one) is None for one in values):
        return "missing"
    new = {*table.own}.difference(known) if table else ()
    return next((f"missing {n}" for n in new if table and table.lacks(n) == table.height), "")
