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
import sys
import types
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, TypeGuard, get_args, get_origin

from ipyrefine.kernel.redaction import HIDDEN, is_environment, is_secret, is_secret_name

WIDTH = 800  # characters of a description
STRING_WIDTH = 4_000  # characters of a string's value, which is likely what the task is about

_MAX_ITEMS = 10  # of a collection's values
_MAX_DEPTH = 4
_MAX_SEEN = 100  # items that are looked at for their type
_MAX_COLUMNS = 60
_ROWS = 5
_ROW_COLUMNS = 20
_LONGEST = 80  # characters of a string inside something else
_NAME = 60
_DOC = 120
_SCALARS = (
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, complex, range, slice),
    *(pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath),
)
_SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset)
_BRACKETS: tuple[tuple[Any, str, str], ...] = (
    (list, "[", "]"),
    (tuple, "(", ")"),
    (set, "{", "}"),
    (frozenset, "{", "}"),
)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_class_dict: Callable[[type], types.MappingProxyType[str, Any]] = type.__dict__["__dict__"].__get__
_class_name: Callable[[type], str] = type.__dict__["__name__"].__get__


def label(name: str, value: object) -> str:
    """Return a variable for the first line of a run: ``df (1,204 × 8)``, ``clean()``."""
    if _is(value, *_FUNCTIONS):
        return f"{name}()"
    with suppress(Exception):
        if shape := _shape(value):
            return f"{name} ({' × '.join(f'{n:,}' for n in shape)})"
    return name


def describe(name: str, value: object, *, values: bool = False) -> str:
    """Return a variable for a model: 800 characters at most, 4,000 of a string's value.

    Args:
        name: its name.
        value: the variable.
        values: whether to show what it holds, not its structure alone.
    """
    if values and type(value) is str:
        text = HIDDEN if is_secret(value) else value
        return f"{name} ({_kind(value)}):\n{_cut(text, STRING_WIDTH)}"
    with suppress(Exception):  # a library that is not as it was when this was written
        lines = list(_lines(value, values))
        return _cut("\n".join([f"{name} ({_kind(value)})" + ":" * bool(lines), *lines]), WIDTH)
    return f"{name} ({_type_name(type(value))})"


def columns_of(value: object) -> list[tuple[str, bool]]:
    """Return the columns of a frame or series, each with whether it may hold strings."""
    if not is_frame(value):
        return []
    columns = _frame(value)
    if columns is None:
        columns = [(_column_name(value.name), value.dtype)]
    return [(name, _holds_text(dtype)) for name, dtype in columns]


def is_frame(value: object) -> TypeGuard[Any]:
    """Return whether a value is a DataFrame or a Series of pandas or polars."""
    return any(is_named(value, library, "DataFrame", "Series") for library in ("pandas", "polars"))


def stored_attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that an object stores; a property is none."""
    for kind in _mro(type(value)):
        names = _class_dict(kind)
        stored = names.get("__dict__")
        if type(stored) is types.GetSetDescriptorType:
            yield from dict.items(stored.__get__(value))
        for name, slot in names.items():
            if type(slot) is types.MemberDescriptorType:
                with suppress(AttributeError):
                    yield name, slot.__get__(value)


def is_named(value: object, module: str, *names: str) -> bool:
    """Return whether a value is of a library's type: ``is_named(x, "pandas", "DataFrame")``.

    A library that the user has not imported has no values, and is not imported for this. A type of
    the user's that is derived from the library's may do anything, and does not count.
    """
    library = sys.modules.get(module)
    return library is not None and any(type(value) is vars(library).get(name) for name in names)


def _is(value: object, *kinds: type) -> bool:
    """Return whether a value is of a type, whatever its ``__class__`` says."""
    return issubclass(type(value), kinds)


def _lines(value: Any, values: bool) -> Iterator[str]:
    """Yield the lines below a description's head."""
    if _is(value, types.ModuleType, bool, int, float, type(None), str, bytes, *_SCALARS):
        if values and not _is(value, types.ModuleType):
            yield _render(value)
    elif is_environment(value):
        return
    elif _is(value, *_FUNCTIONS):
        yield from _function_lines(value)
    elif _is(value, type):
        yield from _class_lines(value)
    elif (frame := _frame(value)) is not None:
        yield from _frame_lines(value, frame, values)
    elif is_named(value, "pandas", "Series", "Index") or is_named(value, "polars", "Series"):
        name = _column_name(value.name)
        if not _is_secret_column(name, value.dtype):
            yield f"{name} {_dtype_name(value.dtype)}".removeprefix("None ")
            yield from _index_lines(value)
            if values:
                yield _render(value[:_MAX_ITEMS].to_list())
    elif is_named(value, "numpy", "ndarray"):
        yield str(value.dtype)[:_LONGEST]
        if values:
            first = value.reshape(-1)[:_MAX_ITEMS] if value.flags.c_contiguous else value[:1]
            yield f"first items: {_render(first.tolist())}"
    elif _is(value, dict, *_SEQUENCES):
        yield _render(value) if values else _type_text(value)
    else:
        yield from _object_lines(value, values)


def _kind(value: Any) -> str:
    """Return what a value is, with its size."""
    if _is(value, types.ModuleType):
        name = vars(value).get("__name__")
        return f"module {name}" if type(name) is str else "module"
    if _is(value, *_FUNCTIONS):
        return "function"
    if _is(value, type):
        return "class"
    name = _type_name(type(value))
    if is_frame(value):
        name = f"{type(value).__module__.partition('.')[0]} {name}"
    if (frame := _frame(value)) is not None:
        rows, columns = value.shape[0], len(frame)
        return f"{name}, {rows:,} rows × {columns:,} columns"
    if is_named(value, "numpy", "ndarray"):
        return f"{name} of shape {value.shape}"
    shape = _shape(value)
    return f"{name} of length {shape[0]:,}" if shape else name


def _shape(value: Any) -> tuple[int, ...]:
    if _is_table(value):
        return tuple(value.shape)
    for kind in (str, bytes, dict, *_SEQUENCES):
        if _is(value, kind):
            return (kind.__len__(value),)
    return ()


def _is_table(value: object) -> bool:
    return (
        is_frame(value) or is_named(value, "pandas", "Index") or is_named(value, "numpy", "ndarray")
    )


def _type_name(kind: type) -> str:
    return _class_name(kind)[:_NAME]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


# Frames


def _frame(value: Any) -> list[tuple[str, Any]] | None:
    """Return the columns of a frame with their types; None for anything else."""
    if is_named(value, "pandas", "DataFrame"):
        return [(_column_name(c), d) for c, d in zip(value.columns, value.dtypes, strict=True)]
    if is_named(value, "polars", "DataFrame"):
        return [(_column_name(c), d) for c, d in value.schema.items()]
    return None


def _column_name(name: Any) -> str:
    if type(name) is tuple:
        return f"({', '.join(map(_column_name, name[:_MAX_DEPTH]))})"
    if type(name) is str:
        return HIDDEN if is_secret(name) else _cut(name, _NAME)
    known = type(name) in (int, float, bool, type(None), *_SCALARS)
    return repr(name)[:_NAME] if known else _type_name(type(name))


def _holds_text(dtype: Any) -> bool:
    name = _dtype_name(dtype)
    return not name.lower().startswith(("int", "uint", "float", "bool", "date", "time", "dur"))


def _dtype_name(dtype: Any) -> str:
    library = type(dtype).__module__.partition(".")[0] in ("numpy", "pandas", "polars")
    return str(dtype)[:_NAME] if library else _type_name(type(dtype))


def _frame_lines(value: Any, frame: list[tuple[str, Any]], values: bool) -> Iterator[str]:
    places = [n for n, (name, dtype) in enumerate(frame) if not _is_secret_column(name, dtype)]
    listed = [f"{frame[n][0]} {_dtype_name(frame[n][1])}" for n in places[:_MAX_COLUMNS]]
    more = len(places) - len(listed)
    yield ", ".join([*listed, *([f"… {more} more"] if more > 0 else [])])
    yield from _index_lines(value)
    if values:
        shown = places[:_ROW_COLUMNS]
        yield f"first rows: {' | '.join(frame[n][0] for n in shown)}"
        head = value.head(_ROWS)
        polars = is_named(value, "polars", "DataFrame")
        columns = [
            head.to_series(n).to_list() if polars else head.iloc[:, n].tolist() for n in shown
        ]
        for row in zip(*columns, strict=True):
            yield " | ".join(map(_render, row))


def _index_lines(value: Any) -> Iterator[str]:
    """Yield the index of a pandas frame or series, unless it only counts the rows."""
    if not is_named(value, "pandas", "DataFrame", "Series"):
        return
    index = value.index
    if not is_named(index, "pandas", "RangeIndex"):
        names = ", ".join(_column_name(name) for name in index.names if name is not None)
        words = (names, _type_name(type(index)), _dtype_name(index.dtype))
        yield f"index: {' '.join(filter(None, words))}"


def _is_secret_column(name: str, dtype: Any) -> bool:
    return name == HIDDEN or is_secret_name(name, "" if _holds_text(dtype) else 0)


# Functions and classes


def _function_lines(function: Any, name: str = "") -> Iterator[str]:
    with suppress(ValueError, TypeError):
        yield f"({_parameters(function)}){_returns(function)}"
    yield from _doc_line(getattr(function, "__doc__", None))


def _doc_line(doc: object) -> Iterator[str]:
    if type(doc) is str and doc.strip():
        line = doc.strip().splitlines()[0]
        yield HIDDEN if is_secret(line) else _cut(line, _DOC)


def _parameters(function: Any, *, method: bool = False) -> str:
    """Return a function's parameters with the types and the harmless ones of the defaults."""
    signature = inspect.signature(function, follow_wrapped=False)
    parameters = list(signature.parameters.values())[int(method) :]
    words, kind = [], None
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and kind not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            words.append("*")
        if kind is parameter.POSITIONAL_ONLY and parameter.kind is not kind:
            words.append("/")
        kind = parameter.kind
        stars = "*" * (kind is parameter.VAR_POSITIONAL) + "**" * (kind is parameter.VAR_KEYWORD)
        annotation = _annotation(parameter.annotation)
        default = _default(parameter)
        typed = f"{stars}{parameter.name}" + (f": {annotation}" if annotation else "")
        words.append(typed + ((" = " if annotation else "=") + default if default else ""))
    return _cut(", ".join(words), WIDTH // 2)


def _returns(function: Any) -> str:
    returns = inspect.signature(function, follow_wrapped=False).return_annotation
    annotation = _annotation(returns)
    return f" -> {annotation}" if annotation else ""


def _default(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return ""
    harmless = type(default) in (bool, int, float, type(None), str)
    if not harmless or is_secret_name(parameter.name, default):
        return "…"
    return _render(default) if type(default) is not str or len(default) <= 20 else "…"


def _annotation(annotation: Any, depth: int = 0) -> str:
    if annotation is inspect.Parameter.empty or depth > _MAX_DEPTH:
        return ""
    if annotation is None or annotation is type(None):
        return "None"
    if type(annotation) is str:
        return "" if is_secret(annotation) else _cut(annotation, _NAME)
    if type(annotation) in (types.GenericAlias, types.UnionType) or (
        type(annotation).__module__ == "typing" and get_origin(annotation)
    ):
        inner = [_annotation(one, depth + 1) or "…" for one in get_args(annotation)[:_MAX_ITEMS]]
        origin = get_origin(annotation)
        if origin is types.UnionType or getattr(origin, "__name__", "") == "Union":
            return " | ".join(inner)
        name = _type_name(origin) if _is(origin, type) else "…"
        return f"{name}[{', '.join(inner)}]"
    return _type_name(annotation) if _is(annotation, type) else "…"


def _class_lines(kind: type) -> Iterator[str]:
    names = _class_dict(kind)
    fields = [
        f"{name}: {annotation or 'Any'}"
        for name, annotation in _declared_fields(names)
        if not is_secret_name(name)
    ]
    if fields:
        yield ", ".join(fields)
    else:
        found = next((d["__init__"] for k in _mro(kind) if "__init__" in (d := _class_dict(k))), 0)
        if type(found) is types.FunctionType:
            yield f"({_parameters(found, method=True)})"
    yield from _doc_line(names.get("__doc__"))


def _declared_fields(names: types.MappingProxyType[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a dataclass or a pydantic model with their types."""
    fields = names.get("__dataclass_fields__") or names.get("__pydantic_fields__")
    if type(fields) is not dict:
        return
    for name, field in islice(fields.items(), _MAX_COLUMNS):
        declared = dict(stored_attributes(field))
        annotation = declared.get("type", declared.get("annotation"))
        yield name, _annotation(annotation)


def _object_lines(value: Any, values: bool) -> Iterator[str]:
    """Yield the public attributes that an object stores."""
    names = _class_dict(type(value))
    fields = {name for name, _ in _declared_fields(names)}
    if not (fields or values or _is_of_notebook(type(value))):
        return
    for name, stored in islice(_public(value), _MAX_COLUMNS):
        yield f"{name}: {_render(stored) if values else _type_text(stored)}"


def _public(value: Any) -> Iterator[tuple[str, Any]]:
    for name, stored in stored_attributes(value):
        if type(name) is str and name[:1] != "_" and not is_secret_name(name, stored):
            yield name, stored


def _is_of_notebook(kind: type) -> bool:
    return _class_dict(kind).get("__module__") == "__main__"


# Collections and values


def _type_text(value: Any, depth: int = 0) -> str:
    """Return a type with those of its items: ``list[dict[str, int]]``."""
    name = _type_name(type(value))
    if depth >= 2 or is_environment(value):
        return name
    if _is(value, dict):
        items = list(islice(dict.items(value), _MAX_SEEN))
        keys, held = ({_type_text(item[n], depth + 1) for item in items} for n in (0, 1))
        return f"{name}[{_union(keys)}, {_union(held)}]" if items else name
    for kind in _SEQUENCES:
        if _is(value, kind):
            inner = {_type_text(x, depth + 1) for x in islice(kind.__iter__(value), _MAX_SEEN)}
            return f"{name}[{_union(inner)}]" if inner else name
    return name


def _union(names: set[str]) -> str:
    ordered = sorted(names)
    return " | ".join([*ordered[:4], *(["…"] if len(ordered) > 4 else [])])


def _render(value: Any, depth: int = 0) -> str:
    """Return a value in short, its secrets hidden."""
    if type(value) is str:
        return HIDDEN if is_secret(value) else repr(_cut(value, _LONGEST))
    if type(value) is bytes:
        hidden = is_secret(value[:1_000].decode("latin-1"))
        return HIDDEN if hidden else repr(value[:_LONGEST]) + "…" * (len(value) > _LONGEST)
    if type(value) in (bool, float, type(None)):
        return repr(value)
    if type(value) is int:
        return repr(value) if value.bit_length() < 300 else f"int of {value.bit_length():,} bits"
    if type(value) in _SCALARS:
        return HIDDEN if is_secret(text := _cut(repr(value), _LONGEST)) else text
    if is_environment(value) or depth >= _MAX_DEPTH:
        return "…"
    if _is(value, dict):
        return _render_dict(value, depth)
    for kind, start, end in _BRACKETS:
        if _is(value, kind):
            items = [_render(x, depth + 1) for x in islice(kind.__iter__(value), _MAX_ITEMS)]
            more = ["…"] if kind.__len__(value) > _MAX_ITEMS else []
            return f"{start}{', '.join([*items, *more])}{end}"
    times = ("Timestamp", "Timedelta", "Period")
    if type(value).__module__ == "numpy" or is_named(value, "pandas", *times):
        return _cut(str(value), _LONGEST)  # its text calls nothing else
    fields = [f"{n}={_render(x, depth + 1)}" for n, x in islice(_public(value), _MAX_ITEMS)]
    return f"{_type_name(type(value))}({', '.join(fields)})"


def _render_dict(value: dict[Any, Any], depth: int) -> str:
    items = []
    for key, held in islice(dict.items(value), _MAX_ITEMS):
        if type(key) is str and is_secret_name(key, held):
            items.append(HIDDEN)
        else:
            items.append(f"{_render(key, depth + 1)}: {_render(held, depth + 1)}")
    more = ["…"] if dict.__len__(value) > _MAX_ITEMS else []
    return f"{{{', '.join([*items, *more])}}}"
