"""Keep what `reading` sees of values: within bounds, and without what looks like a secret."""

import time
from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from pydantic import ValidationError

from ipyrefine.core.model import MAX_OUTPUT, Held
from ipyrefine.core.points import first_line
from ipyrefine.kernel.redaction import is_secret_name, redact, tidy
from ipyrefine.sandbox.programs import reading
from ipyrefine.sandbox.sandbox import Event, field_of

MAX_HELD = 20  # names
_MESSAGE = 200  # characters of an exception's
_SECONDS = 0.05  # of processor time, for a kernel's names; further ones are left out
_CODE = (FunctionType, BuiltinFunctionType, ModuleType, type)


def read_held(events: Iterable[Event]) -> tuple[Held, ...]:
    """Return what a text left, as the sandbox's program reports it."""
    reported = field_of(events, "held")
    pairs = [*reported.items()][: MAX_HELD + 1] if isinstance(reported, dict) else []
    return tuple(filter(None, (_tidy(name, one) for name, one in pairs)))


def is_data(value: Any) -> bool:
    """Return True for a value that is no function, module or class."""
    return type(value) not in _CODE


def hold(values: Mapping[str, Any]) -> tuple[Held, ...]:
    """Return what is read of the values of a kernel's names; functions and modules hold nothing."""
    found, deadline = [], time.thread_time() + _SECONDS
    for name, value in values.items():
        if is_data(value) and time.thread_time() < deadline:
            found.append(_tidy(name, reading.read(value)))
    return tuple(filter(None, found[: MAX_HELD + 1]))


def _tidy(name: str, read: Any) -> Held | None:
    """Return a reading as a record; None where the name says that it is a secret, or it is none."""
    try:
        number = read["type"] in ("bool", "int", "float")
        is_secret = is_secret_name(name, 0 if number else read.get("text", ""))
        if is_secret or read["type"] in ("function", "type", "module"):
            return None
        fields = {key: read[key] for key in Held.model_fields if key in read}
        if "shape" not in read:  # attributes; a name may mark one as a secret
            columns = read.get("columns", ())
            fields["columns"] = [o for o in columns if not is_secret_name(o["name"], o["text"])]
        return Held.model_validate({**tidy(fields, MAX_OUTPUT), "name": name})
    except (ValidationError, TypeError, AttributeError, KeyError, RecursionError):
        return None  # only the text can have written that


def raised_type(error: BaseException | None) -> str:
    """Return the name of an exception's type; empty for none."""
    return reading.type_name(type(error)).rpartition(".")[2] if error is not None else ""


def raised_words(error: BaseException | None) -> str:
    """Return an exception in words, without calling code of its own; empty for none."""
    args = () if error is None else vars(BaseException)["args"].__get__(error)
    plain = args[0] if args and type(args[0]) is str else ""
    words = redact(first_line(plain)[:_MESSAGE])
    if isinstance(error, KeyError):
        words = repr(words)
    return f"{raised_type(error)}: {words}" if plain else raised_type(error)
