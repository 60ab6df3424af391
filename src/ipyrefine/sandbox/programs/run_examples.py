"""Load ``candidate.py``, evaluate the examples of ``request.json``, and report the outcomes.

Values are reported as plain data and compared outside. This program is told what an example expects
only where that has to be computed. It writes lines of JSON, each with the request's token, to the
file that the request names.
"""

import ast
import builtins
import contextlib
import faulthandler
import io
import json
import numbers
import os
import runpy
import signal
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

_TEXT = "candidate.py"
_VARIABLES = "variables_program.py"
_MAX_OUTPUT = 20_000  # characters of standard output
_MAX_REPR = 2_000
_MAX_NAME = 100
_MAX_DATA = 20_000  # characters of a value as a literal
_BUILTINS = dict(vars(builtins))  # before the text can replace any


def main() -> None:
    """Load the text, then run the examples one by one."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    os.remove("request.json")
    report = os.open(request["report"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write_event(**fields: Any) -> None:
        line = json.dumps({"token": request["token"], **fields})
        os.write(report, line.encode("ascii") + b"\n")

    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module  # where dataclasses and pickle look for it
    error = _catch(lambda: _load(module))
    write_event(event="loaded", **error)
    for example in [] if error else request["examples"]:
        _limit(request["seconds"])
        write_event(event="done", index=example["index"], **_run(example, dict(vars(module))))
    # Threads of the text must not keep the process alive.
    os._exit(0)


def _limit(seconds: float) -> None:
    """Let the process end after some seconds of processor time; Windows counts wall time."""
    # A watchdog that needs neither the code nor Python's lock to end the process.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
    else:
        faulthandler.dump_traceback_later(seconds, exit=True)


def _load(module: types.ModuleType) -> None:
    if os.path.exists(_VARIABLES):
        vars(module).update(runpy.run_path(_VARIABLES)["load"]())
    with open(_TEXT, "rb") as file:
        code = compile(file.read(), _TEXT, "exec", dont_inherit=True)
    exec(code, vars(module))


def _catch(action: Callable[[], None]) -> dict[str, Any]:
    try:
        action()
    except BaseException as error:  # SystemExit is an outcome too
        return {"error": _error_text(error), "line": _line(error), "raised": _raised(error)}
    return {}


def _raised(error: BaseException) -> list[str]:
    """Return the names of an exception's type and of those that it is derived from."""
    with contextlib.suppress(BaseException):  # a metaclass of the text's may answer for it
        kinds = [kind for kind in type(error).__mro__ if kind is not object]
        return [str(kind.__name__)[:_MAX_NAME] for kind in kinds]
    return []


def _error_text(error: BaseException) -> str:
    text = ""
    with contextlib.suppress(BaseException):
        text = str(error)[:_MAX_REPR]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line(error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == _TEXT:
        return error.lineno
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == _TEXT]
    return lines[-1] if lines else None


class _Stdout(io.StringIO):
    """Standard output that keeps only its start."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, _MAX_OUTPUT - self.tell())])
        return len(text)


def _run(example: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {}
    stdout = _Stdout()

    def steps() -> None:
        with contextlib.redirect_stdout(_Stdout()):
            exec(example["setup"], space)
        with contextlib.redirect_stdout(stdout):
            value = _evaluate(example["source"], space)
            value = bool(value) if example["holds"] else value
            outcome.update(_describe(value))
        if example["expected"] is not None:
            expected = _evaluate(example["expected"], {**space, **_BUILTINS})
            outcome["expected"] = _describe(expected)
            outcome["equal"] = bool(value == expected) and not _equals_anything(value)

    error = _catch(steps)
    return {**outcome, **error, "stdout": stdout.getvalue()}


def _equals_anything(value: Any) -> bool:
    with contextlib.suppress(BaseException):  # it expects an object of its own kind
        return bool(value == object())
    return False


def _evaluate(source: str, space: dict[str, Any]) -> Any:
    """Run a source as at a prompt, but return the last value instead of printing it."""
    body = ast.parse(source.strip()).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    for node in body:  # their values are printed, unless None
        exec(_compile(ast.Interactive([node]), "single"), space)
    if not isinstance(last, ast.Expr):
        return None
    return eval(_compile(ast.Expression(last.value), "eval"), space)


def _compile(tree: ast.Interactive | ast.Expression, mode: str) -> types.CodeType:
    return compile(tree, "example", mode, dont_inherit=True)


def _describe(value: Any) -> dict[str, Any]:
    """Return a value for people, and as a literal if it consists of plain data only."""
    description: dict[str, Any] = {
        "repr": repr(value)[:_MAX_REPR],
        "none": value is None,
        "type": type(value).__name__,
    }
    with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):
        if len(data := _literal(value)) <= _MAX_DATA:
            description["data"] = data
    return description


def _literal(value: Any) -> str:
    """Return plain data as Python; a subclass counts as its base class, whatever it claims.

    Raises:
        TypeError: it contains something that is not plain data.
    """
    for kind, write in _WRITERS.items():
        if isinstance(value, kind) and kind in type(value).__mro__:
            return write(value)
    if value is None or value is ...:
        return "None" if value is None else "..."
    # Numbers of libraries, also as arrays without dimensions.
    if getattr(value, "shape", None) == () and hasattr(value, "tolist"):
        return _literal(value.tolist())
    if isinstance(value, numbers.Number):
        return _literal(int(value) if value == int(value) else float(value))  # type: ignore[call-overload,arg-type]
    raise TypeError(type(value))


def _join(kind: type, value: Any) -> str:
    items = map(_literal, kind.__iter__(value))  # type: ignore[attr-defined]
    return ", ".join(sorted(items) if kind in (set, frozenset) else items)


def _write_dict(value: Any) -> str:
    return ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in dict.items(value))


_WRITERS: dict[type, Callable[[Any], str]] = {
    **{kind: kind.__repr__ for kind in (bool, int, float, complex, str, bytes)},
    list: lambda value: f"[{_join(list, value)}]",
    tuple: lambda value: f"({_join(tuple, value)}{',' * (tuple.__len__(value) == 1)})",
    set: lambda value: f"{{{_join(set, value)}}}" if set.__len__(value) else "set()",
    frozenset: lambda value: _literal(set(frozenset.__iter__(value))),
    dict: lambda value: f"{{{_write_dict(value)}}}",
}


if __name__ == "__main__":
    sys.modules["__main__"] = types.ModuleType("__main__")  # the text finds no harness there
    main()
