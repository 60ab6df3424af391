"""Run pytest on ``candidate.py`` with the tests of ``test_text.py``, as ``request.json`` asks.

It writes lines of JSON, each with the request's token, to the file the request names.
"""

import ast
import builtins
import faulthandler
import importlib.util
import json
import os
import runpy
import sys
import traceback
import types
from typing import Any

_TEXT, _TESTS = "candidate.py", "test_text.py"
_VARIABLES = "variables_program.py"


class Reporter:
    """A pytest plugin that reports which tests exist, and the outcome of each.

    Args:
        request: the report's name and token, and how many seconds one test may take.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self._token, self._seconds = request["token"], request["seconds"]
        self._errors = os.fdopen(os.dup(2), "w")  # before pytest captures it
        self._file = os.open(request["report"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write_event(self, **fields: Any) -> None:
        """Append a line to the report."""
        line = json.dumps({"token": self._token, **fields})
        os.write(self._file, line.encode("ascii") + b"\n")

    def pytest_collectreport(self, report: Any) -> None:
        """Report that the tests themselves do not load."""
        if report.failed:
            self.write_event(fault=f"The tests do not load: {_last_line(report.longreprtext)}")

    def pytest_collection_finish(self, session: Any) -> None:
        """Report which tests exist."""
        self.write_event(collected=[_name(item.nodeid) for item in session.items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Start a watchdog, which needs no help from the code to end the process."""
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._errors)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Report the outcome of a test; a skipped one did not fail."""
        if report.when == "call" or not report.passed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message if crash else _last_line(report.longreprtext)
            passed = report.passed or report.skipped
            self.write_event(test=_name(report.nodeid), passed=passed, why=why, line=_line(report))


def main() -> None:
    """Load the text, then run the tests on it."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    os.remove("request.json")
    reporter = Reporter(request)
    import pytest

    try:
        names = vars(_load())
    except BaseException as error:  # SystemExit is an outcome too
        message = f"{type(error).__name__}: {error}".rstrip(": ")
        reporter.write_event(fault=f"The code does not load: {message}{_place(error)}")
        os._exit(1)
    # Tests that were written in a notebook use names without importing them.
    for name, value in {"pytest": pytest, **names}.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
    with open("pytest.ini", "w", encoding="utf-8") as file:
        file.write(f"[pytest]\npython_functions = test* {' '.join(request['functions'])}\n")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--import-mode=importlib"]
    pytest.main([*options, "-c", "pytest.ini", _TESTS], plugins=[reporter])
    # Threads of the text must not keep the process alive.
    os._exit(0)


def _load() -> types.ModuleType:
    """Load the text as a module, under every module name that only the tests know."""
    module = types.ModuleType("candidate")
    for name in {"candidate", *_missing_modules()}:
        sys.modules[name] = module
    if os.path.exists(_VARIABLES):
        vars(module).update(runpy.run_path(_VARIABLES)["load"]())
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


def _place(error: BaseException) -> str:
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == _TEXT]
    if isinstance(error, SyntaxError) and error.filename == _TEXT and error.lineno:
        lines = [error.lineno]
    return f" (line {lines[-1]})" if lines else ""


if __name__ == "__main__":
    main()
