"""Run ``candidate.py`` as the main script, with the user's variables in its namespace.

It writes lines of JSON, each with the request's token, to the file the request names: how the text
ended, which of the request's names it defined and which of these are None, what it did to the
user's frames, the value of its last expression and its first figure, what threads and exit handlers
of the text raised, and last that Python itself came to its end, which a process that was left early
never says.

The packages that the text imports are imported before its time starts to count.
"""

import ast
import atexit
import builtins
import json
import os
import runpy
import signal
import sys
import threading
import traceback
import types
from contextlib import suppress
from typing import Any

_TEXT = "candidate.py"
_VARIABLES, _OUTPUTS = "variables_program.py", "outputs_program.py"
_NOTEBOOK = "notebook_program.py"
_VALUE = "value of the last expression"  # a name that no text can have


def main() -> None:
    """Run the text."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    os.remove("request.json")
    report = os.open(request["report"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    process, dumps, write = os.getpid(), json.dumps, os.write

    def write_event(**fields: Any) -> None:
        if os.getpid() == process:  # a fork of the text's has no say
            write(report, dumps({"token": request["token"], **fields}).encode("ascii") + b"\n")

    def report_failure(failure: Any) -> None:
        error = failure.exc_value
        if not isinstance(error, SystemExit):  # it ends a thread, and nothing else
            write_event(failure=_error_text(error), line=_last_line(error))

    # The first handler is called last: after the threads, and the text's own handlers.
    atexit.register(write_event, end=True)
    threading.excepthook = report_failure
    sys.unraisablehook = _only_own(report_failure, sys.unraisablehook)
    with open(_TEXT, "rb") as text:
        source = text.read()
    program = runpy.run_path(_VARIABLES) if os.path.exists(_VARIABLES) else {}
    collect = runpy.run_path(_OUTPUTS)["collect"]
    variables = program["load"]() if program else {}
    before = program["measure"](variables) if program else {}
    notebook = runpy.run_path(_NOTEBOOK)
    vars(builtins)["display"] = notebook["display"]
    _import(request["imports"])
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
    value = None
    try:
        after = _run(source, variables)
        value = after.pop(_VALUE, None)
        defined = [name for name in request["names"] if name in after]
        write_event(defined=defined, none=[name for name in defined if after[name] is None])
        if program:
            write_event(effects=program["compare"](before, program["measure"](after)))
    except SystemExit as error:
        lines = _lines(error)
        if error.code or not (len(lines) == 1 and lines[0] in _final_exit(source)):
            status = error.code if isinstance(error.code, int) else int(bool(error.code))
            write_event(exit=status, line=_last_line(error))
            sys.exit(1)
    except Exception as error:
        write_event(lack=notebook["find_lack"](error), line=_last_line(error))
        raise
    write_event(outputs=collect(value))


def _import(modules: list[Any]) -> None:
    """Import what the text is going to import; what fails does so again where the text does it."""
    for module, names in modules:
        try:
            __import__(module, fromlist=names)
        except BaseException:
            continue


def _run(source: bytes, variables: dict[str, Any]) -> dict[str, Any]:
    """Run the text as the main module; return its names, with the value of its last expression.

    As in a notebook, a semicolon at its end keeps that back.
    """
    space = vars(sys.modules["__main__"])
    space.update(variables, __file__=_TEXT)
    sys.argv[:] = [_TEXT]
    code: Any = compile(source, _TEXT, "exec", dont_inherit=True)
    if not source.rstrip().endswith(b";"):
        with suppress(RecursionError, MemoryError):  # it compiles, but is too deep for a tree
            code = compile(_keep_value(ast.parse(source, _TEXT)), _TEXT, "exec", dont_inherit=True)
    exec(code, space)
    return space.copy()


def _keep_value(tree: ast.Module) -> ast.Module:
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        name = ast.copy_location(ast.Name(_VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([name], last.value), last)
    return tree


def _only_own(report: Any, ignore: Any) -> Any:
    """Return a hook for errors that Python cannot raise, of threads and exit handlers alone."""

    def hook(failure: Any) -> None:
        message = failure.err_msg or ""
        report(failure) if "thread" in message or "atexit" in message else ignore(failure)

    return hook


def _final_exit(source: bytes) -> range:
    """Return the lines of a last statement that ends the script by an exit, as many scripts do.

    That is ``sys.exit(main())``, or any exit under a last ``if __name__ == "__main__":``.
    """
    body = ast.parse(source).body
    guard = body[-1]
    guarded = isinstance(guard, ast.If) and "__name__" in ast.unparse(guard.test)
    if isinstance(guard, ast.If) and guarded:
        body = [*body[:-1], *guard.body]
    last = body[-1]
    value = last.value if isinstance(last, ast.Expr) else getattr(last, "exc", None)
    exits = isinstance(value, ast.Call) and any(isinstance(a, ast.Call) for a in value.args)
    alone = all((node.end_lineno or 0) < last.lineno for node in body[:-1])
    return (
        range(last.lineno, (last.end_lineno or 0) + 1) if alone and (guarded or exits) else range(0)
    )


def _last_line(error: BaseException) -> int | None:
    return next(reversed(_lines(error)), None)


def _lines(error: BaseException) -> list[int]:
    """Return the lines of the text that an exception went through."""
    frames = traceback.walk_tb(error.__traceback__)
    return [line for frame, line in frames if frame.f_code.co_filename == _TEXT]


def _error_text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    sys.modules["__main__"] = types.ModuleType("__main__")  # the text finds no harness there
    main()
