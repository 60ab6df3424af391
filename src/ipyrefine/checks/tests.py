"""The check ``tests:NAME``: the user's pytest tests, run on the text in the sandbox.

The tests run in the same process as the text, as they must call it. So the result is meaningful for
a text that tries to solve the task, not for one written to deceive the tests.
"""

import ast
import inspect
import json
import secrets
import textwrap
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from ipyrefine.checks.functions import MAX_FINDINGS, blocking_finding, not_python
from ipyrefine.checks.sandbox import ProcessResult, describe_failure, load_program, run_python
from ipyrefine.core.model import Evidence, Finding, Task
from ipyrefine.errors import UsageError

if TYPE_CHECKING:
    from ipyrefine.checks.registry import Context

_WIDTH = 300
_MAX_LINES = 30
_SHARE = 4  # one test may take this fraction of the whole time

Event = dict[str, Any]


class Tests:
    """The user's pytest tests pass on the text.

    The tests see everything the text defines by its name, and may also import it from any module
    that does not exist otherwise (``from solution import f``).

    Args:
        source: the tests.
        label: the user's name for them.
        seconds: wall time for all of them; one may take a quarter of it.
        decisive: whether a pass settles the verdict without a judge.
        files: files to put beside them, such as `ipyrefine.checks.variables.sandbox_files`.

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
        if not self._functions and not any("test" in name.lower() for name in classes):
            raise UsageError(
                f"The check {self.name!r} holds no test: a function named test_… or a class "
                "named Test…."
            )
        if find_spec("pytest") is None:
            raise UsageError(f"The check {self.name!r} needs pytest: `pip install pytest`.")

    @classmethod
    def from_argument(cls, argument: str, context: "Context", **settings: Any) -> Self:
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
        report, token = secrets.token_hex(16), secrets.token_hex(16)
        request = {
            "token": token,
            "report": report,
            "functions": self._functions,
            "seconds": self._seconds / _SHARE,
        }
        files: dict[str, str | bytes] = {
            **self._files,
            "candidate.py": text,
            "test_text.py": self._source,
            "request.json": json.dumps(request),
        }
        result = await run_python(
            load_program("tests"), seconds=self._seconds, files=files, report=report
        )
        score, lines, findings = self._assess(result, _parse_events(result.report, token))
        return Evidence(
            name=self.name,
            passed=score == 1,
            score=score,
            detail="\n".join([*lines, result.network_note]).rstrip(),
            seconds=monotonic() - start,
            decisive=self._decisive,
            basis="tests",
            findings=tuple(findings[:MAX_FINDINGS]),
        )

    def _assess(
        self, result: ProcessResult, events: list[Event]
    ) -> tuple[float, list[str], list[Finding]]:
        """Return the share of tests that pass, a line for each test, and a finding per failure."""
        tests = next((e["collected"] for e in events if "collected" in e), None)
        load_error = next((e["fault"] for e in events if "fault" in e), "")
        if not tests or load_error:
            error = load_error or f"The tests could not be run: {self._process_end(result)}"
            return 0.0, [_shorten(error)], []
        outcomes = {e["test"]: e for e in events if "test" in e}
        missing = {"passed": False, "why": f"was not reached. {self._process_end(result)}"}
        outcomes = {test: outcomes.get(test, missing) for test in tests}
        failures = {test: e for test, e in outcomes.items() if not e["passed"]}
        failing = [_format(test, event) for test, event in failures.items()]
        findings = [blocking_finding(t, _shorten(str(e["why"]))) for t, e in failures.items()]
        passing = [f"{test}: passed" for test, e in outcomes.items() if e["passed"]]
        summary = f"{len(passing)} of {len(tests)} tests pass."
        lines = [*[*failing, *passing][:_MAX_LINES], summary]
        return len(passing) / len(tests), lines, findings

    def _process_end(self, result: ProcessResult) -> str:
        if "Timeout (" in result.stderr:
            return f"A test did not end within {self._seconds / _SHARE:.3g} seconds."
        return describe_failure(result, self._seconds)


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
            f"The source of {name!r} cannot be found: give the tests as a text or a file."
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
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        message = getattr(error, "msg", str(error))
        raise UsageError(f"The check {name!r} is not Python: {message}{line}.") from None


def _parse_events(report: str, token: str) -> list[Event]:
    """Return the program's own events; lines the text may have written do not count."""
    events = []
    for line in report.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and event.get("token") == token:
            events.append(event)
    return events


def _format(test: str, event: Event) -> str:
    return _shorten(f"{test}: {event['why']}") + (
        f" (line {event['line']} of the tests)" if event.get("line") else ""
    )


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
