"""Read a value without running code of its own: in the sandbox and in the kernel alike.

Only values of exactly known types are read; of any other, and of iterators, the type alone. Frames
and arrays are read from what they hold, as a method may have been replaced.
"""

import collections
import contextlib
import datetime
import decimal
import fractions
import itertools
import math
import sys
import types
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Reading = dict[str, Any]
# Its type, its sum and how many are missing (None for what has none), and its first values.
_Column = tuple[str, Any, Any, list[Any]]

_COLUMNS, _ROWS = 50, 5
_ITEMS, _WHOLE, _DEPTH = 200, 50, 4  # of a value; of a set, to be read whole
_WIDTH, _TEXT, _CELL = 60, 1_000, 80  # characters of a name, of a value, of a cell
_MISSING_CELLS, _TOTAL_CELLS = 200_000, 20_000_000  # of a value, that are looked at
_CHUNK = 65_536
_LISTS = (list, tuple, collections.deque)
_SETS = (set, frozenset)
_DICTS = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)
_BARE = (bool, int, float, complex, type(None), type(...), datetime.date, datetime.timedelta, range)
_NUMBERS = (decimal.Decimal, fractions.Fraction)
_DRAWN = ("_xorig", "_yorig", "_offsets", "_x0", "_y0", "_width", "_height")
mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
class_dict: Callable[[type], types.MappingProxyType[str, Any]] = type.__dict__["__dict__"].__get__
_ZONES = (type(None), datetime.timezone, zoneinfo.ZoneInfo)


def read(value: Any) -> Reading:
    """Return what is seen of a value: its type, size, columns, totals and start, as plain data."""
    found = {"type": type_name(type(value))}
    try:
        found |= _look(value)
    except Exception as error:  # a library holds it in another way than is known here
        found["unread"] = type(error).__name__
    return found


def changed(
    before: Mapping[str, Reading], after: Mapping[str, Any], names: list[str], value: Any
) -> dict[str, Reading]:
    """Return the readings of some names, of those that changed, and of the answer, named ``""``."""
    now = {name: read(after[name]) for name in dict.fromkeys([*names, *before]) if name in after}
    told = {name: one for name, one in now.items() if name in names or one != before[name]}
    return {"": read(value)} | told


def type_name(cls: type) -> str:
    """Return a type's name, whatever its metaclass says."""
    module = type.__dict__["__module__"].__get__(cls)
    name = type.__dict__["__qualname__"].__get__(cls)
    plain = type(module) is not str or module in ("builtins", "__main__")
    return (name if plain else f"{module}.{name}")[:_WIDTH]


def _is_of(cls: type, library: str) -> bool:
    """Return True for a class that a loaded library itself holds by its name."""
    module, name = (type.__dict__[one].__get__(cls) for one in ("__module__", "__name__"))
    if type(module) is not str or module.partition(".")[0] != library:
        return False
    return vars(sys.modules.get(module, types)).get(name) is cls


def stored(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that an object stores; a property is none."""
    for kind in mro(type(value)):
        names = class_dict(kind)
        own = names.get("__dict__")
        if type(own) is types.GetSetDescriptorType:
            yield from dict.items(own.__get__(value))
        for name, slot in names.items():
            if type(slot) is types.MemberDescriptorType:
                with contextlib.suppress(AttributeError):
                    yield name, slot.__get__(value)


def _look(value: Any) -> Reading:
    cls = type(value)
    if cls in (str, bytes, bytearray):
        return {"shape": [len(value)], "text": repr(value[:_TEXT])[:_TEXT]}
    if cls in (*_LISTS, *_SETS, *_DICTS):
        columns = _total_of_items(value) if cls in _LISTS else []
        return {"shape": [len(value)], "text": _text(value)[:_TEXT], "columns": columns}
    for library, look in _LIBRARIES.items():
        if _is_of(cls, library):
            return look(value)
    return _read_plain(value)


def _read_plain(value: Any) -> Reading:
    text, module = _text(value), type.__dict__["__module__"].__get__(type(value))
    if text != type_name(type(value)):
        return {"text": text}
    if type(module) is not str or module.partition(".")[0] in sys.stdlib_module_names:
        return {}
    # Of an estimator these are its parameters and what it has learnt.
    own = {n: one for n, one in stored(value) if n[:1] != "_"}
    return {"columns": _columns(own.items(), 1, _read_attribute)} if own else {}


def _read_attribute(value: Any, *wanted: bool) -> _Column:
    numpy: Any = sys.modules.get("numpy")
    if _is_of(type(value), "numpy") and issubclass(type(value), numpy.ndarray):
        return _read_values(numpy.asarray(value), *wanted)
    return type_name(type(value)), None, None, [value]


def _total_of_items(value: Any) -> list[Reading]:
    if not 0 < len(value) <= _MISSING_CELLS or any(type(one) not in (int, float) for one in value):
        return []
    whole = all(type(one) is int for one in value)
    total = sum(value) if whole else math.fsum(value)
    return [{"name": "", "type": "int" if whole else "float", "total": repr(total)}]


def _text(value: Any, depth: int = _DEPTH, room: Iterator[int] | None = None) -> str:
    """Return a value as Python, with the type's name for what is not plain or for want of room."""
    cls, room = type(value), iter(range(_ITEMS)) if room is None else room
    if cls is str or cls is bytes:
        return repr(value[:_TEXT])
    if cls in _BARE or cls in _NUMBERS:
        return repr(value)
    if cls in (datetime.datetime, datetime.time) and type(value.tzinfo) in _ZONES:
        return value.isoformat()  # type: ignore[no-any-return]
    # A set has its items in another order elsewhere, so that its start is nothing to compare.
    if depth and (cls in (*_LISTS, *_DICTS) or (cls in _SETS and len(value) <= _WHOLE)):
        return _text_of_items(value, depth - 1, room)
    if _is_of(cls, "numpy") and issubclass(cls, sys.modules["numpy"].generic):
        return _text(value.item(), 0)
    if _is_of(cls, "pandas") and cls.__name__ in ("Timestamp", "Timedelta", "Period"):
        return str(value)
    return "NaN" if any(value is one for one in _absent()) else type_name(cls)


def _text_of_items(value: Any, depth: int, room: Iterator[int]) -> str:
    cls, texts = type(value), []
    for one in dict.items(value) if cls in _DICTS else value:
        if cls not in _SETS and next(room, None) is None:
            texts.append("…")
            break
        pair = one if cls in _DICTS else (one,)
        texts.append(": ".join(_text(part, depth, room) for part in pair))
    inner = ", ".join(sorted(texts) if cls in _SETS else texts)
    return f"({inner})" if cls is tuple else f"[{inner}]" if cls in _LISTS else f"{{{inner}}}"


def _absent() -> list[Any]:
    pandas = sys.modules.get("pandas")
    return [getattr(pandas, name) for name in ("NA", "NaT") if pandas]


# Frames and arrays


def _columns(
    columns: Iterable[tuple[str, Any]], rows: int, read: Callable[..., Any]
) -> list[Reading]:
    """Return what columns hold: each is given with its name, and `read` reads it."""
    found, missing, totals = [], _MISSING_CELLS, _TOTAL_CELLS
    for name, column in itertools.islice(columns, _COLUMNS):
        missing, totals = missing - rows, totals - rows
        dtype, total, absent, head = read(column, totals >= 0, missing >= 0)
        start = ", ".join(_text(one, 1)[:_CELL] for one in head)[:_TEXT]
        found.append({"name": name, "type": dtype[:_WIDTH], "text": start})
        found[-1] |= {} if total is None else {"total": _text(total, 0)}
        found[-1] |= {} if absent is None else {"missing": int(absent)}
    return found


def _label(name: Any) -> str:
    return (name if type(name) is str else _text(name, 1))[:_WIDTH]


def _numpy(value: Any) -> Reading:
    numpy = sys.modules["numpy"]
    if type(value) is not numpy.ndarray:
        return _read_plain(value)
    shape = list(value.shape)
    if not shape:
        return {"shape": [], "text": _text(value.item())}
    return {"shape": shape, "columns": _columns([("", value)], value.size, _read_values)}


def _read_values(values: Any, total: bool, missing: bool) -> _Column:
    """Return the type of an array's values, their sum, how many are missing, and the first."""
    numpy = sys.modules["numpy"]
    if type(values) is not numpy.ndarray:
        return _read_extension(values, total, missing)
    kind, first = values.dtype.kind, values
    while first.ndim > 1 and len(first):
        first = first[0]
    head, absent = first[:_ROWS].tolist() if first.ndim == 1 else [], None
    if kind in "mM":  # `tolist` gives numbers for nanoseconds
        head = [f"{one!s}" for one in first[:_ROWS]]
    if missing:
        absent = {"f": _not_numbers, "c": _not_numbers, "m": _no_times, "M": _no_times}.get(
            kind, _no_objects if kind == "O" else lambda _: 0
        )(values)
    return str(values.dtype), _sum(values) if total else None, absent, head


def _sum(values: Any) -> Any:
    numpy = sys.modules["numpy"]
    kind = values.dtype.kind
    if kind not in "biuf":
        return None
    wide = {"b": "int64", "i": "int64", "u": "uint64", "f": "float64"}[kind]
    with numpy.errstate(all="ignore"):
        found = numpy.add.reduce(values, axis=None, dtype=wide)
        if found == found:
            return found.item()
        total, flat = 0.0, values.reshape(-1)  # without the missing ones
        for start in range(0, flat.size, _CHUNK):
            some = flat[start : start + _CHUNK]
            total += numpy.add.reduce(some, dtype=wide, where=some == some).item()
        return total


def _not_numbers(values: Any) -> Any:
    return sys.modules["numpy"].isnan(values).sum()


def _no_times(values: Any) -> Any:
    return sys.modules["numpy"].isnat(values).sum()


def _no_objects(values: Any) -> int:
    absent = {id(None), *map(id, _absent())}
    items = values.reshape(-1).tolist()
    return sum(id(one) in absent or (type(one) is float and one != one) for one in items)


def _read_extension(values: Any, total: bool, missing: bool) -> _Column:
    """Do as `_read_values` for an array of pandas' own; of others only the type is read."""
    if not _is_of(type(values), "pandas"):
        return type_name(type(values)), None, None, []
    dtype, kind = values.dtype, getattr(values.dtype, "kind", "O")
    summed = values._reduce("sum", skipna=True) if total and kind in "iuf" else None
    return str(dtype), summed, values.isna().sum() if missing else None, list(values[:_ROWS])


def _pandas(value: Any) -> Reading:
    pandas, cls = sys.modules["pandas"], type(value)
    if issubclass(cls, pandas.api.extensions.ExtensionArray):
        return {"shape": [len(value)], "columns": _columns([("", value)], len(value), _read_values)}
    if issubclass(cls, pandas.Index):
        return {"shape": [len(value)], "text": _labels(value)}
    if cls not in (pandas.DataFrame, pandas.Series):
        return _read_plain(value)
    manager = object.__getattribute__(value, "_mgr")
    *labels, index = manager.axes
    if not all(_is_of(type(axis), "pandas") for axis in manager.axes):
        return {}
    if labels:
        names = [_label(name) for name in labels[0][:_COLUMNS]]
        arrays = _arrays(manager, names)
    else:
        name = object.__getattribute__(value, "_name")
        names, arrays = ["" if name is None else _label(name)], [manager.blocks[0].values]
    found: Reading = {"shape": [len(index), *map(len, labels)]}
    found["columns"] = _columns(zip(names, arrays, strict=True), len(index), _read_values)
    return found if type(index) is pandas.RangeIndex else {**found, "text": _labels(index)}


def _labels(index: Any) -> str:
    return ", ".join(_text(one, 1)[:_CELL] for one in index[:_ROWS])[:_TEXT]


def _arrays(manager: Any, names: list[str]) -> list[Any]:
    found: dict[int, Any] = {}
    for block in manager.blocks:
        values = block.values
        rows = values if getattr(values, "ndim", 1) == 2 else itertools.repeat(values)
        found |= dict(zip(block.mgr_locs.as_array.tolist(), rows, strict=False))
    return [found[place] for place in range(len(names))]


def _polars(value: Any) -> Reading:
    polars, cls = sys.modules["polars"], type(value)
    if cls is polars.DataFrame:
        columns, shape = value._df.get_columns(), list(value._df.shape())
    elif cls is polars.Series:
        columns, shape = [value._s], [value._s.len()]
    else:
        return {}  # a plan is not carried out
    named = ((one.name()[:_WIDTH], one) for one in columns)
    return {"shape": shape, "columns": _columns(named, shape[0], _read_series)}


def _read_series(series: Any, total: bool, missing: bool) -> _Column:
    dtype = series.dtype()
    summed = series.sum() if total and dtype.is_numeric() else None
    absent = series.null_count() if missing else None
    return str(dtype), summed, absent, series.slice(0, _ROWS).to_list()


def _matplotlib(value: Any) -> Reading:
    """Return where the lines, points and bars of a figure, or of one of its axes, are."""
    axes = dict(stored(value)).get("_localaxes") or [value]
    artists = [one for each in axes for one in dict(stored(each)).get("_children", ())]
    drawn = [
        (f"{name[1:]} {n}", one)
        for n, artist in enumerate(artists)
        for name, one in stored(artist)
        if name in _DRAWN
    ]
    return {"shape": [len(axes)], "columns": _columns(drawn, 1, _read_attribute)} if drawn else {}


_LIBRARIES = {
    "numpy": _numpy, "pandas": _pandas, "polars": _polars, "matplotlib": _matplotlib,
}  # fmt: skip
