"""Keep what `reading` sees of values: within bounds, and without what looks like a secret."""

import ast
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from pydantic import ValidationError

from ipyrefine.core.model import MAX_OUTPUT, Held
from ipyrefine.core.scopes import module_names
from ipyrefine.core.syntax import ERRORS, names_bound, try_parse
from ipyrefine.kernel.redaction import is_secret_name, redact
from ipyrefine.sandbox.programs import reading
from ipyrefine.sandbox.sandbox import Event

MAX_HELD = 20  # names
_COLUMNS = 50
_MESSAGE = 200  # characters of an exception's
_SECONDS = 0.05  # of processor time, for a kernel's names; further ones are left out
_CODE = (FunctionType, BuiltinFunctionType, ModuleType, type)


def names_left(code: str) -> list[str]:
    """Return the names that code binds for good: not in loops, by imports or for a context."""
    tree = try_parse(code)
    if tree is None:
        return []
    aside = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.For(target=target) | ast.AsyncFor(target=target):
                aside |= names_bound(target)
            case ast.withitem(optional_vars=ast.expr() as target):
                aside |= names_bound(target)
            case ast.Import() | ast.ImportFrom():
                aside |= names_bound(node)
    with suppress(*ERRORS):
        left = (name for name in module_names(tree)[1] - aside if name[:1] != "_")
        return sorted(left, key=code.find)[:MAX_HELD]
    return []


def read_held(events: Iterable[Event]) -> tuple[Held, ...]:
    """Return what a text left, as the sandbox's program reports it."""
    reported: Any = next((event["held"] for event in events if "held" in event), {})
    pairs = [*reported.items()][: MAX_HELD + 1] if isinstance(reported, dict) else []
    return tuple(filter(None, (_tidy(name, one) for name, one in pairs)))


def is_data(value: Any) -> bool:
    """Return True for a value that is no function, module or class."""
    return type(value) not in _CODE


def hold(values: Mapping[str, Any]) -> tuple[Held, ...]:
    """Return what is read of the values of a kernel's names; functions and modules hold nothing."""
    found, deadline = list[Held | None](), time.thread_time() + _SECONDS
    for name, value in values.items():
        if is_data(value) and time.thread_time() < deadline:
            found.append(_tidy(name, reading.read(value)))
    return tuple(filter(None, found[: MAX_HELD + 1]))


def _tidy(name: str, read: Any) -> Held | None:
    """Return a reading as a record; None where the name says that it is a secret, or it is none."""
    try:
        fields = {key: read[key] for key in Held.model_fields if key in read}
        text = fields.get("text", "")
        number = read["type"] in ("bool", "int", "float")
        if is_secret_name(name, 0 if number else text) or read["type"] in (
            "function",
            "type",
            "module",
        ):
            return None
        columns = fields.get("columns", ())[:_COLUMNS]
        columns = [{**one, "head": redact(one.get("head", ""))} for one in columns]
        tidied = {"name": name, "text": redact(text)[:MAX_OUTPUT], "columns": columns}
        return Held.model_validate({**fields, **tidied})
    except (ValidationError, TypeError, AttributeError, KeyError):
        return None  # only the text can have written that


def raised_type(error: BaseException | None) -> str:
    """Return the name of an exception's type; empty for none."""
    return reading.type_name(type(error)).rpartition(".")[2] if error is not None else ""


def raised_words(error: BaseException | None) -> str:
    """Return an exception in words, without calling code of its own; empty for none."""
    args = () if error is None else vars(BaseException)["args"].__get__(error)
    plain = args[0] if args and type(args[0]) is str else ""
    words = redact(plain.strip().partition("\n")[0][:_MESSAGE])
    if isinstance(error, KeyError):
        words = repr(words)
    return f"{raised_type(error)}: {words}" if plain else raised_type(error)
