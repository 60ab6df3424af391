"""Describe a variable to a model: by its structure, or with its values.

A description calls nothing that the user or a stranger wrote: no ``__repr__``, no ``__len__``, no
property. What is known is read from the built-in types, from pandas, polars and NumPy, and from the
attributes that an object stores. Whatever looks like a secret is left out.
"""

import datetime
import decimal
import fractions
import inspect
import pathlib
import re
import sys
import types
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, TypeGuard

from ipyrefine.core.model import Material, count, cut
from ipyrefine.kernel.redaction import HIDDEN, is_environment, is_secret, is_secret_name
from ipyrefine.sandbox.programs.reading import class_dict, mro, stored

WIDTH = 800  # characters of a description
FRAME_WIDTH = 1_500
STRING_WIDTH = 4_000  # characters of a string's value, which is likely what the task is about

_MAX_ITEMS = 10  # of a collection's values
_MAX_DEPTH = 4
_MAX_SEEN = 100  # items that are looked at for their type
_MAX_COLUMNS, _MANY = 60, 30  # columns; of one type, at which they are no names
_ROWS = 5
_MAX_LEVELS, _LEVELS_WIDTH = 12, 600  # values of a column that are all shown; their characters
_MAX_CELLS = 500_000  # that are looked at for them in all
_FORMED = 1_000  # texts of a column that are looked at for their form
_OUTLINE, _OUTLINES = 100, 1_500  # characters of a variable in a line, and of all of them
_WORDS = r"[^\W_]+"  # a column `unit_price` is named as "unit price", too
_TABLES = """
    SELECT m.name, group_concat(p.name || ' ' || p.type, ', ')
    FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type IN ('table', 'view')
    GROUP BY m.name"""
_ROW_COLUMNS = 20
_LONGEST = 80  # characters of a string inside something else
_BEYOND = 200  # further characters of a string that are looked at for a secret
_NAME = 60
_DOC = 120
_SCALARS = (
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
    decimal.Decimal, fractions.Fraction, uuid.UUID, complex, range,
    pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath,
)  # fmt: skip
_PLAIN = (bool, float, int, str, type(None))
_PLAIN_TYPES = frozenset(_PLAIN)
_SWITCHES = (bool, type(None))  # defaults that are no data
_FORWARD = re.compile(r"(?:[^\W\d]\w*|[.\[\], |])+")  # an annotation that is a text: names alone
_ZONES = frozenset({"builtins", "datetime", "dateutil", "pandas", "pytz", "zoneinfo"})
_COLLECTIONS: dict[Any, str] = {dict: "{}", list: "[]", tuple: "()", set: "{}", frozenset: "{}"}
_EMPTY = inspect.Parameter.empty
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
class_name: Callable[[type], str] = type.__dict__["__name__"].__get__


def label(name: str, value: object) -> str:
    """Return a variable for the first line of a run: ``df (1,204 × 8)``, ``clean()``."""
    if _is(value, *_FUNCTIONS):
        return f"{name}()"
    with suppress(Exception):
        if shape := _shape(value):
            return f"{name} ({' × '.join(f'{n:,}' for n in shape)})"
    return name


def outlines(values: Mapping[str, Any]) -> Material | None:
    """Return variables in a line each: type, size and columns; modules in one, and None of none."""
    lines, modules = list[str](), list[str]()
    for name, value in values.items():
        told = cut(" ".join(describe(name, value, facts=False).splitlines()), _OUTLINE)
        (modules if _is(value, types.ModuleType) else lines).append(told)
    text = "\n".join([*lines, ", ".join(modules)]).strip()[:_OUTLINES]
    if not text:
        return None
    phrase = f"names of {len(lines)} more" * bool(lines)
    return Material(kind="names", name="names", phrase=phrase, text=text)


def with_columns(text: str, frames: Mapping[str, Any], seen: Iterable[str]) -> list[str]:
    """Return the frames whose columns a text names, without those that add none to others.

    Args:
        text: a request in words.
        frames: frames by name; of two with as many of its columns the first is taken.
        seen: names of those that are seen anyway.
    """
    words = f" {' '.join(re.findall(_WORDS, text.lower()))} "
    named = {
        name: {one for one, _ in _columns(frame) if _is_said(one, words)}
        for name, frame in frames.items()
    }
    known, chosen = set[str]().union(*(named.get(name, ()) for name in seen)), []
    for name in sorted(named, key=lambda name: -len(named[name])):
        chosen += [name] * bool(named[name] - known)
        known |= named[name]
    return chosen


def _is_said(column: object, words: str) -> bool:
    spelled = " ".join(re.findall(_WORDS, column.lower())) if type(column) is str else ""
    return len(spelled) > 1 and any(f" {spelled}{end} " in words for end in ("", "s", "es"))


def describe(name: str, value: object, *, values: bool = False, facts: bool = True) -> str:
    """Return a variable for a model: 800 characters at most, 1,500 of a frame, 4,000 of a string.

    With `values` that is what it holds, not its structure alone. Without `facts`, no values of a
    frame are counted, which takes a tenth of a second for a large one.
    """
    with suppress(Exception):  # a library that is not as it was when this was written
        if values and type(value) is str:
            text = HIDDEN if is_secret(value[: STRING_WIDTH + _BEYOND]) else value
            return f"{name} ({_kind(value)}):\n{cut(text, STRING_WIDTH)}"
        lines = list(_lines(value, values, facts))
        head = f"{name} ({_kind(value)})" + ":" * bool(lines)
        return cut("\n".join([head, *lines]), FRAME_WIDTH if is_frame(value) else WIDTH)
    return f"{name} ({_type_name(type(value))})"


def is_frame(value: object) -> TypeGuard[Any]:
    """Return True for a DataFrame or Series of pandas or polars, as the library has it.

    One is not whose methods are replaced in it, or with objects in its ``attrs``, which pandas
    copies along with it.
    """
    if is_named(value, "polars", "DataFrame", "Series"):
        return True
    if not is_named(value, "pandas", "DataFrame", "Series"):
        return False
    own = vars(value)
    attrs = own.get("_attrs") or {}
    # Pandas 2 sets an attribute that its class has, too, as None.
    inherited = [class_dict(base).get(name) for base in mro(type(value)) for name in own]
    return all(one is None for one in inherited) and all(
        type(one) in _PLAIN for pair in attrs.items() for one in pair
    )


def is_named(value: object, module: str, *names: str) -> bool:
    """Return True if a value is of a library's type: ``is_named(x, "pandas", "DataFrame")``.

    A library that the user has not imported has no values, and is not imported for this. A type of
    the user's that is derived from the library's may do anything, and does not count.
    """
    library = sys.modules.get(module)
    return library is not None and any(type(value) is vars(library).get(name) for name in names)


def is_connection(value: object) -> bool:
    """Return True for a connection to a database of SQLite."""
    return is_named(value, "sqlite3", "Connection")


def is_array(value: object) -> TypeGuard[Any]:
    """Return True for an array of NumPy."""
    return is_named(value, "numpy", "ndarray")


def _is(value: object, *kinds: type) -> bool:
    """Return True if a value is of a type, whatever its ``__class__`` says."""
    return issubclass(type(value), kinds)


def _kind(value: Any) -> str:
    if _is(value, types.ModuleType):
        name = object.__getattribute__(value, "__dict__").get("__name__")
        return f"module {name}" if type(name) is str else "module"
    if _is(value, *_FUNCTIONS, type):
        return "class" if _is(value, type) else "function"
    name = _type_name(type(value))
    if is_frame(value):
        name = f"{type(value).__module__.partition('.')[0]} {name}"
    shape = _shape(value)
    if is_frame(value) and len(shape) == 2:
        return f"{name}, {shape[0]:,} rows × {shape[1]:,} columns"
    if is_array(value):
        return f"{name} of shape {shape}"
    return f"{name} of length {shape[0]:,}" if shape else name


def _lines(value: Any, values: bool, facts: bool) -> Iterator[str]:
    """Yield the lines below a description's head."""
    if is_environment(value) or _is(value, types.ModuleType):
        return
    if _is(value, bool, int, float, type(None), str, bytes, *_SCALARS):
        if values:
            yield _render(value)
    elif _is(value, *_FUNCTIONS):
        yield from _signature(value)
        if values:
            yield from _doc_line(getattr(value, "__doc__", None))
    elif _is(value, type):
        yield from _class_lines(value, values)
    elif is_frame(value) and len(value.shape) == 2:
        yield from _frame_lines(value, values, facts)
    elif is_frame(value) or is_named(value, "pandas", "Index"):
        name, dtype = next(_columns(value))
        named = f"{_column_name(name)} " if values or type(name) is str else ""
        yield f"{named}{_dtype_name(dtype)}".removeprefix("None ")
        yield from _index_lines(value)
        if values and _has_known_zone(dtype):
            yield _render(value[:_MAX_ITEMS].to_list())
    elif is_connection(value):
        yield from _table_lines(value)
    elif is_array(value):
        yield str(value.dtype)[:_LONGEST]
        if values:
            first = value.reshape(-1)[:_MAX_ITEMS] if value.flags.c_contiguous else value[:1]
            yield f"first items: {_render(first.tolist())}"
    elif _collection(value):
        yield _render(value) if values else _type_text(value)
    else:  # the public attributes that an object stores
        own = values or class_dict(type(value)).get("__module__") == "__main__"
        if own or next(_declared_fields(type(value)), None):
            for name, one in islice(_public(value), _MAX_COLUMNS):
                yield f"{name}: {_render(one) if values else _type_text(one)}"


def _shape(value: Any) -> tuple[int, ...]:
    if is_frame(value) or is_named(value, "pandas", "Index") or is_array(value):
        return tuple(value.shape)
    kind = str if _is(value, str) else bytes if _is(value, bytes) else _collection(value)
    return (kind.__len__(value),) if kind else ()


def _type_name(kind: type) -> str:
    return class_name(kind)[:_NAME]


# Frames


def _columns(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a frame, or the one of a series, with their types."""
    pairs: Any = ((value.name, value.dtype),) if len(value.shape) == 1 else ()
    if is_named(value, "pandas", "DataFrame"):
        pairs = zip(value.columns, value.dtypes, strict=True)
    elif is_named(value, "polars", "DataFrame"):
        pairs = value.schema.items()
    yield from pairs


def _column_name(name: Any) -> str:
    """Return a column's name; one that is a token is hidden, as values decide, not names."""
    if type(name) is tuple:
        return f"({', '.join(map(_column_name, name[:_MAX_DEPTH]))})"
    if type(name) is str:
        return HIDDEN if is_secret(name) else cut(name, _NAME)
    known = type(name) in (int, float, bool, type(None), *_SCALARS)
    return repr(name)[:_NAME] if known else _type_name(type(name))


def _dtype_name(dtype: Any) -> str:
    text = str(dtype) if _is_library(dtype) else ""
    # Two say which values there are: polars' Enum, which another may hold, and pandas' Sparse.
    known = text and "categories=" not in text and not is_named(dtype, "pandas", "SparseDtype")
    return text[:_NAME] if known else _type_name(type(dtype))


def _is_library(dtype: Any) -> bool:
    known = type(dtype).__module__.partition(".")[0] in ("numpy", "pandas", "polars")
    return known and _has_known_zone(dtype)


def _frame_lines(value: Any, values: bool, facts: bool) -> Iterator[str]:
    pairs = [(name, dtype, _dtype_name(dtype)) for name, dtype in _columns(value)]
    kinds = Counter(kind for *_, kind in pairs)
    # Labels that are no strings, or many of one type, are likely values: they are a count.
    told = [one for one in pairs if values or (type(one[0]) is str and kinds[one[2]] <= _MANY)]
    columns = [(_column_name(name), dtype, kind) for name, dtype, kind in told[:_MAX_COLUMNS]]
    names = {n: name for n, (name, dtype, _) in enumerate(columns) if _is_library(dtype)}
    more = [f"… {n} more"] if (n := len(told) - len(columns)) else []
    counted = (kinds - Counter(kind for *_, kind in told)).items()
    more += [f"{count(n, 'column')} of {kind}" for kind, n in counted]
    levels = _MAX_LEVELS if values and len(value) > _ROWS else 0
    whole = facts and len(told) == len(pairs) and len(value) > 1
    said = dict(_column_facts(value, names, levels)) if whole else {}
    told_of = (f"{name} {kind}{said.get(n, '')}" for n, (name, _, kind) in enumerate(columns))
    yield ", ".join([*told_of, *more])
    yield from _index_lines(value)
    polars = is_named(value, "polars", "DataFrame")
    if len(said) == value.shape[1]:
        distinct = value.n_unique() if polars else len(value.drop_duplicates())
        if doubled := len(value) - distinct:
            yield f"{count(doubled, 'row')} doubled word for word"
    if values:
        chosen, head = [*names][:_ROW_COLUMNS], value.head(_ROWS)
        yield f"first rows: {' | '.join(names[n] for n in chosen)}"
        columns = [
            head.to_series(n).to_list() if polars else head.iloc[:, n].tolist() for n in chosen
        ]
        for row in zip(*columns, strict=True):
            yield " | ".join(map(_render, row))


def _column_facts(value: Any, places: Iterable[int], levels: int) -> Iterator[tuple[int, str]]:
    """Yield what is missing, how many values differ, and their form, for columns of plain values.

    Of few cells only: it looks at each. Up to so many `levels` are shown all.
    """
    polars, cells, room = is_named(value, "polars", "DataFrame"), _MAX_CELLS, _LEVELS_WIDTH
    for n in places:
        column = value.to_series(n) if polars else value.iloc[:, n]
        if (cells := cells - len(column)) < 0:
            return
        held = (column.drop_nulls() if polars else column.dropna()).to_list()
        is_plain = _PLAIN_TYPES.issuperset(map(type, held))
        if not is_plain and str(column.dtype).lower() == "object":
            continue  # the user's own class may define equality
        with suppress(TypeError):  # of lists, which are in no set
            found, listed = {*held}, ""
            if is_plain and len(found) <= levels:
                ordered = sorted(found, key=lambda one: (type(one).__name__, one))
                listed = f": {', '.join(map(_render, ordered))}"
                room -= len(listed)
            missing, form = len(column) - len(held), _form([*islice(found, _FORMED)])
            facts = [f"{missing:,} missing"] * bool(missing)
            facts += [f"{len(found):,} distinct{listed * (room > 0)}"]
            yield n, f" ({', '.join(facts + [f'like {form}'] * bool(form))})"


def _form(texts: list[Any]) -> str:
    """Return the one form of all texts, with a 0 for each digit; empty where they have none."""
    forms = {re.sub(r"\d", "0", one) if type(one) is str else "" for one in texts}
    form = forms.pop() if len(forms) == 1 < len(texts) else ""
    # Longer words would be a value's.
    return form * ("0" in form and not re.search(r"[^\W\d_]{4}|.{40}", form))


def _table_lines(connection: Any) -> Iterator[str]:
    """Yield a database's dialect, and its tables with their columns."""
    yield "SQLite"
    if connection.text_factory is str:  # another could run code of the user's
        cursor = connection.cursor()
        cursor.row_factory = None
        for table, columns in cursor.execute(_TABLES).fetchmany(_MAX_COLUMNS):
            yield f"table {table}: {columns}"


def _index_lines(value: Any) -> Iterator[str]:
    """Yield the index of a pandas frame or series, unless it only counts the rows."""
    index = value.index if is_named(value, "pandas", "DataFrame", "Series") else None
    if index is not None and not is_named(index, "pandas", "RangeIndex"):
        names = ", ".join(_column_name(name) for name in index.names if type(name) is str)
        words = (names, _type_name(type(index)), _dtype_name(index.dtype))
        yield f"index: {' '.join(filter(None, words))}"


# Functions and classes


class _Words(str):
    """Words that `inspect.Signature` puts in the place of an annotation or a default."""

    __slots__ = ()
    __repr__ = str.__str__


def _signature(function: Any, *, method: bool = False) -> Iterator[str]:
    """Yield a function's parameters with the names of their types and, of switches, defaults."""
    with suppress(ValueError, TypeError):
        signature = inspect.signature(function, follow_wrapped=False)
        parameters = [
            one.replace(
                annotation=_typed(one.annotation),
                default=_EMPTY
                if one.default is _EMPTY
                else _Words(repr(one.default) if type(one.default) in _SWITCHES else "…"),
            )
            for one in list(signature.parameters.values())[int(method) :]
        ]
        returns = _EMPTY if method else _typed(signature.return_annotation)
        yield cut(str(inspect.Signature(parameters, return_annotation=returns)), WIDTH // 2)


def _typed(annotation: Any) -> Any:
    return _Words(_annotation(annotation)) if annotation is not _EMPTY else _EMPTY


def _annotation(annotation: Any) -> str:
    """Return the name of a type; of one with parameters, which may be values, that alone."""
    if type(annotation) is str:
        is_name = _FORWARD.fullmatch(annotation[:WIDTH]) and not is_secret(annotation)
        return cut(annotation, _NAME) if is_name else "…"
    if type(annotation) is types.UnionType:
        return " | ".join(map(_annotation, annotation.__args__))
    annotation = types.NoneType if annotation is None else annotation
    kind: Any = annotation.__origin__ if type(annotation) is types.GenericAlias else annotation
    return _type_name(kind).removeprefix("NoneType") or "None" if _is(kind, type) else "…"


def _doc_line(doc: object) -> Iterator[str]:
    if type(doc) is str and doc.strip():
        line = doc.strip().splitlines()[0]
        yield HIDDEN if is_secret(line) else cut(line, _DOC)


def _class_lines(kind: type, values: bool) -> Iterator[str]:
    fields = [f"{n}: {typed}" for n, typed in _declared_fields(kind)]
    fields = [field for field in fields if not is_secret_name(field.partition(":")[0])]
    made = next((d["__init__"] for k in mro(kind) if "__init__" in (d := class_dict(k))), None)
    if fields:
        yield ", ".join(fields)
    elif type(made) is types.FunctionType:
        yield from _signature(made, method=True)
    if values:
        yield from _doc_line(class_dict(kind).get("__doc__"))


def _declared_fields(kind: type) -> Iterator[tuple[str, str]]:
    names = class_dict(kind)
    fields = names.get("__dataclass_fields__") or names.get("__pydantic_fields__")
    for name, field in islice(fields.items(), _MAX_COLUMNS) if type(fields) is dict else ():
        declared = dict(stored(field))
        yield name, _annotation(declared.get("type", declared.get("annotation")))


def _public(value: Any) -> Iterator[tuple[str, Any]]:
    for name, one in stored(value):
        if type(name) is str and name[:1] != "_" and not is_secret_name(name, one):
            yield name, one


# Collections and values


def _collection(value: object) -> Any:
    return next((kind for kind in _COLLECTIONS if _is(value, kind)), None)


def _items(value: Any, count: int) -> list[tuple[Any, ...]]:
    kind = _collection(value)
    pairs = dict.items(value) if kind is dict else ((one,) for one in kind.__iter__(value))
    return list(islice(pairs, count))


def _type_text(value: Any, depth: int = 0) -> str:
    """Return a type with those of its items: ``list[dict[str, int]]``."""
    name = _type_name(type(value))
    if depth >= 2 or not _collection(value) or is_environment(value):
        return name
    parts = zip(*_items(value, _MAX_SEEN), strict=True)
    held = [sorted({_type_text(one, depth + 1) for one in part}) for part in parts]
    inner = [" | ".join([*one[:4], *(["…"] if len(one) > 4 else [])]) for one in held]
    return f"{name}[{', '.join(inner)}]" if inner else name


def _render(value: Any, depth: int = 0) -> str:
    if type(value) is str:
        hidden = is_secret(value[: _LONGEST + _BEYOND])
        return HIDDEN if hidden else repr(cut(value, _LONGEST))
    if type(value) is bytes:
        hidden = is_secret(value[:1_000].decode("latin-1"))
        return HIDDEN if hidden else repr(value[:_LONGEST]) + "…" * (len(value) > _LONGEST)
    if type(value) in (bool, float, type(None)):
        return repr(value)
    if type(value) is int:
        return repr(value) if value.bit_length() < 300 else f"int of {value.bit_length():,} bits"
    if type(value) in _SCALARS and _has_known_zone(value):
        return HIDDEN if is_secret(text := cut(repr(value), _LONGEST)) else text
    if is_environment(value) or depth >= _MAX_DEPTH:
        return "…"
    if kind := _collection(value):
        brackets = _COLLECTIONS[kind]
        items = [
            HIDDEN
            if len(item) == 2 and type(item[0]) is str and is_secret_name(*item)
            else ": ".join(_render(one, depth + 1) for one in item)
            for item in _items(value, _MAX_ITEMS)
        ]
        more = ["…"] if kind.__len__(value) > _MAX_ITEMS else []
        return brackets[0] + ", ".join([*items, *more]) + brackets[1]
    times = ("Timestamp", "Timedelta", "Period")
    if type(value).__module__ == "numpy" or is_named(value, "pandas", *times):
        if not _has_known_zone(value):
            return _type_name(type(value))
        return cut(str(value), _LONGEST)  # its text calls nothing else
    fields = [f"{n}={_render(x, depth + 1)}" for n, x in islice(_public(value), _MAX_ITEMS)]
    return f"{_type_name(type(value))}({', '.join(fields)})"


def _has_known_zone(value: Any) -> bool:
    """Return True if the zone of a time, or of a column's times, comes from a known library."""
    kind = type(getattr(value, "tzinfo", getattr(value, "tz", None)))
    module = class_dict(kind).get("__module__", "builtins")
    return type(module) is str and module.partition(".")[0] in _ZONES
