"""Run pytest on ``candidate.py`` with the tests of ``test_text.py``, as ``request.json`` asks.

It writes lines of JSON, each with the request's token, to the file the request names. It decides
nothing: it says of each test what happened and where a skip was raised.
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
import unittest
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

_TEXT, _TESTS = "candidate.py", "test_text.py"
_VARIABLES = "variables_program.py"
_INTERNAL = ("_pytest", "pluggy", "unittest", "contextlib")
_GUARDED = ("pytest", "_pytest", "pluggy", "unittest")

_getattr = getattr  # before the text can replace it

Snapshot = dict[tuple[str, str], Any]


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
        self._process, self._dumps, self._write = os.getpid(), json.dumps, os.write
        self._snapshot = _take_snapshot()
        self._builtins = [*builtins.__dict__.items()]

    def write_event(self, **fields: Any) -> None:
        """Append a line to the report."""
        if os.getpid() == self._process:  # a fork of the text's has no say
            line = self._dumps({"token": self._token, **fields})
            self._write(self._file, line.encode("ascii") + b"\n")

    def tampering(self, *, loading: bool = False, everything: bool = True) -> str:
        """Return what the text changed of Python or pytest; empty for nothing.

        Args:
            loading: whether no test has run, so that every change is the text's.
            everything: whether pytest and unittest are looked through, too, which takes a while.
        """
        if sys.gettrace() or sys.getprofile():
            return "a trace function was set"
        # Python's own names first, as what follows needs them.
        for take in (_take_builtins, _take_snapshot)[: 1 + everything]:
            now = take()
            for place, value in self._snapshot.items():
                if place[0] == "builtins" or take is _take_snapshot:
                    new = now.get(place)
                    if new is not value and (loading or _is_of_text(new)):
                        for name, own in self._builtins:
                            builtins.__dict__[name] = own  # to be able to say it
                        return f"{'.'.join(place)} was replaced"
        return ""

    def pytest_collectreport(self, report: Any) -> None:
        """Report that the tests themselves do not load, or are skipped as a whole."""
        if report.failed:
            self.write_event(fault=f"The tests do not load: {_last_line(report.longreprtext)}")
        elif report.skipped:
            path, line, why = report.longrepr
            origin = line if os.path.basename(path) == _TESTS else "code"
            self.write_event(test=_name(report.nodeid), outcome="skipped", why=why, origin=origin)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out tests that the text brought along."""
        items[:] = [
            item
            for item in items
            if not _is_of_text(getattr(item, "cls", None) or getattr(item, "function", None))
            or _name(item.nodeid).partition("[")[0].partition("::")[0] in self._names
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
        """Report the outcome of a test or a part of it, and where a skip comes from."""
        raised = call.excinfo
        report = yield
        raised = raised or call.excinfo
        crash = getattr(report.longrepr, "reprcrash", None)
        why = crash.message if crash else _last_line(report.longreprtext)
        if isinstance(report.longrepr, tuple):  # of a skip: file, line and reason
            why = str(report.longrepr[2]).removeprefix("Skipped: ")
        outcome, change = report.outcome, self.tampering(everything=False)
        if change:
            outcome, why = "failed", f"the code interfered with the test: {change}"
        if report.when == "call" or outcome != "passed":
            origin = _origin(raised.value) if outcome == "skipped" and raised else "mark"
            self.write_event(
                test=_name(report.nodeid),
                outcome=outcome,
                why=getattr(report, "wasxfail", "") or why,
                line=_line(report),
                origin=origin,
            )
        return report

    def pytest_sessionfinish(self) -> None:
        """Report what the text changed while the tests ran."""
        if change := self.tampering():
            self.write_event(fault=f"The code interferes with the tests: {change}")

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        """Report what ended the run before its last test."""
        self.write_event(interrupted=_error_text(excinfo.value))


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
    else:
        if change := reporter.tampering(loading=True):
            fault = f"The code interferes with the tests: {change}"
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


def _take_builtins() -> Snapshot:
    """Return what the names of Python stand for, by syntax alone."""
    return {("builtins", name): value for name, value in builtins.__dict__.items() if name != "_"}


def _take_snapshot() -> Snapshot:
    """Return what the names of Python, pytest and unittest, and of their classes, stand for."""
    snapshot = _take_builtins()
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] not in _GUARDED:
            continue
        for key, value in [*vars(module).items()]:
            if not callable(value):  # only what is called can lie
                continue
            snapshot[name, key] = value
            if isinstance(value, type) and value.__module__ == name:
                parts = [*vars(value).items()]
                snapshot |= {(f"{name}.{key}", part): v for part, v in parts if callable(v)}
    return snapshot


def _is_of_text(value: Any) -> bool:
    return _getattr(value, "__module__", None) == "candidate"


def _origin(error: BaseException) -> str | int:
    """Return where a skip comes from: a mark, a line of the tests, or other code."""
    if not isinstance(error, _SKIPS):
        return "mark"  # an expected failure
    while True:
        frames = [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if not frame.f_globals.get("__name__", "").startswith(_INTERNAL)
        ]
        if frames or error.__context__ is None:
            break
        error = error.__context__  # unittest's own, which pytest raises again
    if not frames:
        return "mark"
    if any(path == _TEXT for path, _ in frames):
        return "code"
    path, line = frames[-1]
    return line if os.path.basename(path) == _TESTS else "code"


_SKIPS = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)


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
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == _TEXT]
    if isinstance(error, SyntaxError) and error.filename == _TEXT and error.lineno:
        lines = [error.lineno]
    return f" (line {lines[-1]})" if lines else ""


if __name__ == "__main__":
    main()
