"""Run pytest on ``candidate.py`` with the tests of ``test_text.py``, as ``request.json`` asks.

It writes lines of JSON, each with the request's token, to the file the request names. It decides
nothing: it says which tests there are, what happened in each, and at the end that it came to it.
"""

import ast
import builtins
import faulthandler
import importlib.util
import json
import os
import runpy
import signal
import sys
import traceback
import types
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

_TEXT, _TESTS = "candidate.py", "test_text.py"
_VARIABLES = "variables_program.py"


class Reporter:
    """A pytest plugin that reports which tests exist, and the outcome of each.

    Args:
        request: the report's name and token, how many seconds one test may take, and the names
            that the tests define.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self._token, self._seconds = request["token"], request["seconds"]
        self._names = set(request["names"])
        self._errors = os.fdopen(os.dup(2), "w")  # before pytest captures it
        self._file = os.open(request["report"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._process, self._end = os.getpid(), ""

    def write_event(self, **fields: Any) -> None:
        """Append a line to the report."""
        if os.getpid() == self._process:  # a fork of the text's has no say
            line = json.dumps({"token": self._token, **fields})
            os.write(self._file, line.encode("ascii") + b"\n")

    def pytest_collectreport(self, report: Any) -> None:
        """Report that the tests themselves do not load, or are skipped as a whole."""
        if report.failed:
            self.write_event(fault=f"The tests do not load: {_last_line(report.longreprtext)}")
        elif report.skipped:
            path, _, why = report.longrepr
            if os.path.basename(path) == _TEXT:
                self.write_event(fault=f"The code skips its tests: {why}")
            self.write_event(test=_name(report.nodeid), outcome="skipped", why=why)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out tests that the text brought along."""
        items[:] = [
            item
            for item in items
            if _name(item.nodeid).partition("[")[0].partition("::")[0] in self._names
        ]

    def pytest_collection_finish(self, session: Any) -> None:
        """Report which tests exist."""
        self.write_event(collected=[_name(item.nodeid) for item in session.items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Start a watchdog, which needs no help from the code to end the process."""
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, self._seconds)
        else:  # Windows counts wall time
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._errors)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        """Report the outcome of a test or a part of it; a skip by the text is a failure."""
        raised = call.excinfo
        report = yield
        raised = raised or call.excinfo
        crash = getattr(report.longrepr, "reprcrash", None)
        outcome, why = report.outcome, crash.message if crash else _last_line(report.longreprtext)
        why = why.replace("Use -v to get more diff", "").strip()
        if isinstance(report.longrepr, tuple):  # of a skip: file, line and reason
            why = str(report.longrepr[2]).removeprefix("Skipped: ")
        if outcome == "skipped" and raised and _is_by_text(raised.value):
            outcome, why = "failed", f"was skipped, but not by the tests: {why}"
        if report.when == "call" or outcome != "passed":
            self.write_event(
                test=_name(report.nodeid),
                outcome=outcome,
                why=getattr(report, "wasxfail", "") or why,
                line=_line(report),
            )
        return report

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        """Note what ends the run before its last test."""
        self._end = _error_text(excinfo.value)

    def pytest_sessionfinish(self) -> None:
        """Report that the run came to its end, or what ended it."""
        self.write_event(end=self._end)


def main() -> None:
    """Load the text, then run the tests on it."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    os.remove("request.json")
    with open(_TESTS, "rb") as file:
        tests = file.read()
    # The text finds no harness under this name.
    sys.modules["__main__"] = types.ModuleType("__main__")
    reporter = Reporter(request)
    fault = ""
    try:
        names = vars(_load())
    except BaseException as error:  # SystemExit is an outcome too
        fault = f"The code does not load: {_error_text(error)}{_place(error)}"
    if fault:
        reporter.write_event(fault=fault)
        os._exit(1)
    # Tests that were written in a notebook use names without importing them.
    for name, value in {**names, "pytest": pytest}.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
    # The text may have written to these.
    with open(_TESTS, "wb") as file:
        file.write(tests)
    with open("pytest.ini", "w", encoding="utf-8") as ini:
        ini.write(f"[pytest]\npython_functions = test* {' '.join(request['functions'])}\n")
    for name in [name for name in os.environ if name.startswith("PYTEST_")]:
        del os.environ[name]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--import-mode=importlib"]
    pytest.main([*options, "--noconftest", "-c", "pytest.ini", _TESTS], plugins=[reporter])
    # Threads of the text must not keep the process alive.
    os._exit(0)


def _load() -> types.ModuleType:
    """Load the text as a module, under every module name that only the tests know."""
    module = types.ModuleType("candidate")
    if os.path.exists(_VARIABLES):  # first, as it adds folders to import from
        vars(module).update(runpy.run_path(_VARIABLES)["load"]())
    for name in {"candidate", *_missing_modules()}:
        sys.modules[name] = module
    with open(_TEXT, "rb") as file:
        exec(compile(file.read(), _TEXT, "exec", dont_inherit=True), vars(module))
    return module


def _missing_modules() -> set[str]:
    """Return the modules that the tests import and that do not exist, with their packages."""
    with open(_TESTS, "rb") as file:
        tree = ast.parse(file.read())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    missing = set()
    for name in found - {"__main__"}:
        parts = name.split(".")
        if importlib.util.find_spec(parts[0]) is None:
            missing |= {".".join(parts[: end + 1]) for end in range(len(parts))}
    return missing


def _lines(error: BaseException) -> list[int]:
    """Return the lines of the text that an exception went through."""
    frames = traceback.walk_tb(error.__traceback__)
    return [line for frame, line in frames if frame.f_code.co_filename == _TEXT]


def _is_by_text(error: BaseException | None) -> bool:
    """Return whether an exception went through the text; pytest raises unittest's again."""
    while error is not None:
        frames = traceback.walk_tb(error.__traceback__)
        files = {os.path.basename(frame.f_code.co_filename) for frame, _ in frames}
        if files & {_TEXT, _TESTS}:
            return _TEXT in files
        error = error.__context__
    return False


def _name(nodeid: str) -> str:
    return nodeid.partition("::")[2] or nodeid


def _last_line(text: str) -> str:
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def _line(report: Any) -> int | None:
    """Return the last line of the tests that the failure went through."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    lines = [place.lineno for place in places if place.path.endswith(_TESTS)]
    return lines[-1] if lines else None


def _error_text(error: BaseException) -> str:
    text = ""
    with suppress(BaseException):
        text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: BaseException) -> str:
    lines = _lines(error)
    if isinstance(error, SyntaxError) and error.filename == _TEXT and error.lineno:
        lines = [error.lineno]
    return f" (line {lines[-1]})" if lines else ""


if __name__ == "__main__":
    main()
