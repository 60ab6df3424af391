"""The program that runs a text and reports what its examples evaluate to.

It never learns what the examples should come to, unless that has to be computed too, and it does
not compare: code that takes this process over can lie about a value, but not know which lie
would pass. It is run as a script, beside ``candidate.py`` and ``request.json``, and writes lines
of JSON, each with the request's token, to the file the request names.
"""

import ast
import contextlib
import faulthandler
import io
import json
import numbers
import os
import runpy
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

_TEXT = "candidate.py"
_VARIABLES = "variables_program.py"
_PRINTED = 20_000
_SHOWN = 2_000
_DATA = 20_000


def main() -> None:
    """Load the text, then run the examples one by one."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    os.remove("request.json")
    report = os.open(request["report"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(**fields: Any) -> None:
        line = json.dumps({"token": request["token"], **fields})
        os.write(report, line.encode("ascii") + b"\n")

    say(event="loading")
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module  # where dataclasses and pickle look for it
    fault = _attempt(lambda: _load(module))
    say(event="loaded", **fault)
    for example in [] if fault else request["examples"]:
        # Its watchdog needs no help from the code, nor Python's lock, to end the process.
        faulthandler.dump_traceback_later(request["seconds"], exit=True)
        say(event="started", index=example["index"])
        say(event="done", index=example["index"], **_run(example, dict(vars(module))))
    # Threads the text has started must not keep the process.
    os._exit(0)


def _load(module: types.ModuleType) -> None:
    if os.path.exists(_VARIABLES):
        vars(module).update(runpy.run_path(_VARIABLES)["load"]())
    with open(_TEXT, "rb") as file:
        code = compile(file.read(), _TEXT, "exec", dont_inherit=True)
    exec(code, vars(module))


def _attempt(action: Callable[[], None]) -> dict[str, Any]:
    try:
        action()
    except BaseException as error:  # SystemExit too is an outcome
        return {"error": _said(error), "line": _line(error)}
    return {}


def _said(error: BaseException) -> str:
    text = ""
    with contextlib.suppress(BaseException):
        text = str(error)[:_SHOWN]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == _TEXT:
        return error.lineno
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == _TEXT]
    return lines[-1] if lines else None


class _Printed(io.StringIO):
    """Standard output, of which only the start is kept."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, _PRINTED - self.tell())])
        return len(text)


def _run(example: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {}
    printed = _Printed()

    def steps() -> None:
        with contextlib.redirect_stdout(_Printed()):
            exec(example["setup"], space)
        with contextlib.redirect_stdout(printed):
            value = _evaluate(example["source"], space)
            outcome.update(_described(bool(value) if example["kind"] == "holds" else value))
        if example["expected"] is not None:
            expected = _evaluate(example["expected"], space)
            outcome["wanted"] = _described(expected)
            outcome["equal"] = bool(value == expected)

    fault = _attempt(steps)
    return {**outcome, **fault, "printed": printed.getvalue()}


def _evaluate(source: str, space: dict[str, Any]) -> Any:
    """Run a source as an interactive interpreter does, but for its last value: that is returned."""
    body = ast.parse(source.strip()).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    for node in body:  # what these come to is shown, unless it is None
        exec(_compiled(ast.Interactive([node]), "single"), space)
    if not isinstance(last, ast.Expr):
        return None
    return eval(_compiled(ast.Expression(last.value), "eval"), space)


def _compiled(tree: ast.Interactive | ast.Expression, mode: str) -> types.CodeType:
    return compile(tree, "example", mode, dont_inherit=True)


def _described(value: Any) -> dict[str, Any]:
    """The value for people, and as data when it is made of nothing but plain data."""
    described: dict[str, Any] = {
        "shown": repr(value)[:_SHOWN],
        "none": value is None,
        "type": type(value).__name__,
    }
    with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):
        data = _plain(value)
        if len(json.dumps(data)) <= _DATA:
            described["data"] = data
    return described


def _plain(value: Any) -> Any:
    """Tag a value's data; a subclass counts as its base, whatever it says of itself.

    Raises:
        TypeError: it holds something that is no plain data.
    """
    for kind, read in _READERS.items():
        if isinstance(value, kind) and kind in type(value).__mro__:
            return [kind.__name__, read(value)]
    if value is None or value is ...:
        return ["constant", repr(value)]
    # Numbers of libraries, also as arrays without dimensions.
    if getattr(value, "shape", None) == () and hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, numbers.Number):
        return _plain(int(value) if value == int(value) else float(value))  # type: ignore[call-overload,arg-type]
    raise TypeError(type(value))


def _items(kind: type) -> Callable[[Any], list[Any]]:
    return lambda value: [_plain(item) for item in kind.__iter__(value)]  # type: ignore[attr-defined]


_READERS: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: lambda value: int.__repr__(value),
    float: lambda value: float.__repr__(value),
    complex: lambda value: complex.__repr__(value),
    str: str.__str__,
    bytes: lambda value: bytes.hex(value),
    list: _items(list),
    tuple: _items(tuple),
    set: _items(set),
    frozenset: _items(frozenset),
    dict: lambda value: [[_plain(k), _plain(v)] for k, v in dict.items(value)],
}


if __name__ == "__main__":
    main()
