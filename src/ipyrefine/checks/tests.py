"""The check ``tests:NAME``: the user's pytest tests, run on the text in the sandbox.

The tests run in the same process as the text, as they must call it. A test that is defined here and
not reached has failed, and so has one that the text skips. A text that returns an object whose
``==`` is always true passes an ``assert f(1) == 2`` (assert the type, too), and one that is written
against pytest can forge its report. For a text that nobody may trust at all, state examples in the
task: their results are compared in another process.
"""

import ast
import inspect
import json
import re
import secrets
import textwrap
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, Self

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import Event, parse_events, shorten
from ipyrefine.checks.functions import MAX_FINDINGS, blocking_finding, not_python
from ipyrefine.core.model import Evidence, Finding, Tally, Task
from ipyrefine.core.syntax import ERRORS, parse
from ipyrefine.errors import UsageError
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.variables import explain_absence, files_for, may_compute
from ipyrefine.sandbox.sandbox import (
    SLACK,
    ProcessResult,
    describe_failure,
    load_program,
    run_python,
)

WIDTH = 300  # characters of what a failing test shows
_MAX_LINES = 30
_SHARE = 4  # one test may take this fraction of the whole time
_RANK = {"passed": 0, "skipped": 1, "failed": 2}


class Tests:
    """The user's pytest tests pass on the text.

    The tests see everything the text defines by its name, and may also import it from any module
    that does not exist otherwise (``from solution import f``).

    Args:
        source: the tests.
        label: the user's name for them.
        seconds: processor time for all of them; one may take a quarter of it.
        decisive: whether a pass settles the verdict.
        files: files to put next to them, such as `kernel.variables.Variables.files`.

    Attributes:
        test_names: what the source defines, as words; a model may be told them.

    Raises:
        UsageError: the source does not parse or holds no test, or pytest is not installed.
    """

    __test__ = False

    def __init__(
        self,
        source: str,
        *,
        label: str = "tests",
        seconds: float = 20.0,
        decisive: bool = True,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.name = f"tests:{label}"
        self._source, self._files = source, dict(files or {})
        self._seconds, self._decisive = seconds, decisive
        tree = _parse(source, self.name)
        self._functions = [
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (node.name.startswith("test") or len(tree.body) == 1)
        ]
        classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        self._names = {name for node in tree.body for name in _bound_names(node)}
        # Where tests are switched off by hand, they cannot be told beforehand.
        switched = "__test__" in source
        self._expected = set() if switched else {*filter(None, map(_test_name, tree.body))}
        definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        found = [node.name for node in ast.walk(tree) if isinstance(node, definitions)]
        self.test_names = " ".join(found)
        if not self._functions and not any("test" in name.lower() for name in classes):
            raise UsageError(
                f"The check {self.name!r} holds no test: a function named test_… or a class "
                "named Test…."
            )
        if find_spec("pytest") is None:
            raise UsageError(f"The check {self.name!r} needs pytest: `pip install pytest`.")

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check of ``tests:NAME``: a variable's text or functions, or a file's path.

        Raises:
            UsageError: there is no such variable or file, or it holds no tests.
        """
        source = _source(argument, context.namespace)
        return cls(source, label=argument, files=context.files, **settings)

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the tests on the text in the sandbox."""
        if task.is_foreign:
            return not_python(self.name, task)
        start = monotonic()
        code = python_part(text).code
        computed = may_compute(self._files, code, self._source)
        result, events = await run_tests(
            self._source,
            code,
            self._files,
            functions=self._functions,
            names=sorted(self._names),
            seconds=self._seconds,
        )
        if absence := self._explain_absence(result, events):
            seconds = monotonic() - start
            return Evidence(
                name=self.name,
                passed=None,
                not_run=True,
                detail=absence,
                seconds=seconds,
                computed=computed,
            )
        try:
            passed, tally, lines, findings = self._assess(result, events)
        except (KeyError, TypeError, AttributeError):  # only the text can have written that
            passed, tally, lines, findings = False, None, ["The code forged the report."], []
        return Evidence(
            name=self.name,
            passed=passed,
            score=tally.held / tally.of if tally else None if passed is None else 0.0,
            detail="\n".join([*lines, result.protection_note]).rstrip(),
            tallies=(tally,) if tally else (),
            seconds=monotonic() - start,
            decisive=self._decisive,
            basis="tests",
            findings=tuple(findings[:MAX_FINDINGS]),
            computed=computed,
        )

    def _assess(
        self, result: ProcessResult, events: list[Event]
    ) -> tuple[bool | None, Tally | None, list[str], list[Finding]]:
        """Return whether the tests pass, how many do, a line for each, a finding per failure."""
        error = next((e["fault"] for e in events if "fault" in e), "")
        tests: list[str] = next((e["collected"] for e in events if "collected" in e), [])
        outcomes: dict[str, Event] = {}
        for event in (
            e for e in events if "test" in e
        ):  # of a test's fixtures and parts, the worst
            before = outcomes.setdefault(event["test"], event)
            if _RANK[event["outcome"]] > _RANK[before["outcome"]]:
                outcomes[event["test"]] = event
        skipped = [e["why"] for test, e in outcomes.items() if test not in tests]
        if not error and not tests and skipped:  # the whole file
            return None, None, [f"All tests are skipped: {skipped[0]}"], []
        end = next((f"{e['end']} ended the run." for e in events if e.get("end")), "")
        end = end or self._process_end(result)
        if not error and not tests:
            error = f"The tests could not be run: {end}"
        if error:
            return False, None, [shorten(error, WIDTH)], []
        missing = {"outcome": "failed", "why": f"was not reached. {end}"}
        results = {test: outcomes.get(test, missing) for test in tests}
        gone = self._expected - {re.split(r"::|\[", test)[0] for test in tests}
        results |= {name: {"outcome": "failed", "why": "disappeared."} for name in sorted(gone)}
        by_outcome: dict[str, list[str]] = {"failed": [], "passed": [], "skipped": []}
        for test, event in results.items():
            by_outcome[event["outcome"]].append(test)
        failing, passing, skipped = by_outcome.values()
        if not failing and not any("end" in e for e in events):
            return False, None, [f"The run ended before its last test. {end}"], []
        lines = [
            *(_format(test, results[test]) for test in failing),
            *(f"{test}: passed" for test in passing),
            *(f"{test}: skipped, {shorten(str(results[test]['why']), WIDTH)}" for test in skipped),
        ][:_MAX_LINES]
        count = len(failing) + len(passing)
        if not count:
            return None, None, [*lines, "All tests are skipped, so nothing was run."], []
        skipped_note = f" {len(skipped)} skipped." if skipped else ""
        lines.append(f"{len(passing)} of {count} tests pass.{skipped_note}")
        findings = [blocking_finding(t, shorten(str(results[t]["why"]), WIDTH)) for t in failing]
        return not failing, Tally(held=len(passing), of=count, noun="test"), lines, findings

    def _explain_absence(self, result: ProcessResult, events: list[Event]) -> str:
        """Return why the tests say nothing: each that fails needs a variable without a copy."""
        failed = [e for e in events if e.get("outcome") == "failed"]
        errors = [str(e.get("why", "")) for e in failed]
        errors += [str(e["fault"]) for e in events if "fault" in e]
        reasons = [explain_absence(self._files, one, result.stderr) for one in errors]
        return reasons[0] if reasons and all(reasons) else ""

    def _process_end(self, result: ProcessResult) -> str:
        alarmed = result.timed_out and result.limit is None
        if alarmed or "Timeout (" in result.stderr:
            share = f"{self._seconds / _SHARE:.3g} seconds of processor time"
            return f"A test did not end within {share}."
        return describe_failure(result, self._seconds)


async def run_tests(
    source: str,
    code: str,
    files: Mapping[str, bytes],
    *,
    functions: Sequence[str],
    names: Sequence[str],
    seconds: float,
) -> tuple[ProcessResult, list[Event]]:
    """Run pytest on a text in the sandbox; return how the process ended, and what it reported.

    Args:
        source: the tests.
        code: the text's Python.
        files: files to put next to them, such as `kernel.variables.Variables.files`.
        functions: the tests whose names need not begin with ``test``.
        names: what the tests define; others of a text's own are left out.
        seconds: processor time for all of them; one may take a quarter of it.
    """
    report, token = secrets.token_hex(16), secrets.token_hex(16)
    request = {
        "token": token,
        "report": report,
        "functions": functions,
        "names": names,
        "seconds": seconds / _SHARE * SLACK,
    }
    beside: dict[str, str | bytes] = {
        **files_for(files, code, source),
        "candidate.py": code,
        "test_text.py": source,
        "request.json": json.dumps(request),
    }
    program = load_program("run_tests")
    result = await run_python(program, seconds=seconds, files=beside, report=report)
    return result, parse_events(result.report, token)


def _bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines or assigns; an import brings none of its own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name | ast.FunctionDef | ast.ClassDef))
    return {
        n.id if isinstance(n, ast.Name) else n.name
        for n in stored
        if not isinstance(n, ast.Name) or isinstance(n.ctx, ast.Store)
    }


def _test_name(node: ast.stmt) -> str:
    """Return the name of a definition that pytest takes for a test by all means, or nothing."""
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
        fixture = any("fixture" in ast.unparse(one) for one in node.decorator_list)
        return "" if fixture else node.name
    if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
        methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
        made = {"__init__", "__new__"} & set(methods)
        return "" if made or not any(name.startswith("test") for name in methods) else node.name
    return ""


def _source(name: str, namespace: Mapping[str, Any]) -> str:
    """Return the source of the tests in a variable or a file."""
    if name not in namespace:
        return _read_file(Path(name).expanduser(), name)
    value = namespace[name]
    if isinstance(value, str):
        return value
    if isinstance(value, Path):
        return _read_file(value, name)
    parts = list(value) if isinstance(value, list | tuple) else [value]
    if not parts or not all(inspect.isfunction(p) or inspect.isclass(p) for p in parts):
        raise UsageError(
            f"The check 'tests:{name}' needs a text of pytest tests, a function or a list of "
            f"them, or a file, not a {type(value).__name__}."
        )
    try:
        return "\n\n".join(textwrap.dedent(inspect.getsource(part)) for part in parts)
    except (OSError, TypeError):
        raise UsageError(
            f"The source of {name!r} cannot be found. Give the tests as a text or a file."
        ) from None


def _read_file(path: Path, name: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"There is no variable and no readable file {name!r} to take tests from."
        ) from None


def _parse(source: str, name: str) -> ast.Module:
    try:
        return parse(source)
    except ERRORS as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        message = getattr(error, "msg", str(error))
        raise UsageError(f"The check {name!r} is not Python: {message}{line}.") from None


def _format(test: str, event: Event) -> str:
    return shorten(f"{test}: {event['why']}", WIDTH) + (
        f" (line {event['line']} of the tests)" if event.get("line") else ""
    )
