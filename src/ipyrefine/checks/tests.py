"""The check ``tests:NAME``: pytest tests of the user's, run on the text in a sandbox.

The tests run in the same process as the text, as they have to call it. So the result says what a
text does that was written to solve the task, not what one can do that was written to deceive.
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
from typing import Any

from ipyrefine.checks.faults import MOST, fault
from ipyrefine.checks.python import failure
from ipyrefine.checks.sandbox import Ran, run_python
from ipyrefine.core.records import Evidence, Finding, Task
from ipyrefine.errors import UsageError

_PROGRAM = Path(__file__).parent / "programs" / "tests.py"
_WIDTH = 300
_MOST = 30
_SHARE = 4  # one test may take this part of the whole time

Report = dict[str, Any]


class Tests:
    """The user's pytest tests pass on the text.

    They see everything the text defines by its name, and may also import it from any module name
    that does not exist otherwise (``from solution import f``).

    Args:
        source: the tests.
        label: how the user calls them.
        seconds: wall time for all of them; one may take a quarter of it.
        files: put beside them; the user's variables (`ipyrefine.checks.variables.furnished`).

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
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.name = f"tests:{label}"
        self._source, self._seconds, self._files = source, seconds, dict(files or {})
        tree = _parsed(source, self.name)
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
    def of(
        cls, name: str, namespace: Mapping[str, Any], files: Mapping[str, bytes] | None = None
    ) -> "Tests":
        """Make the check of a variable's text, of functions, or of a file's path.

        Raises:
            UsageError: there is no such variable or file, or it holds no tests.
        """
        return cls(_source(name, namespace), label=name, files=files)

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the tests on the text."""
        began = monotonic()
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
        program = _PROGRAM.read_text("utf-8")
        ran = await run_python(program, seconds=self._seconds, files=files, collect=report)
        score, lines, faults = self._read(ran, _reports(ran.collected, token))
        return Evidence(
            name=self.name,
            passed=score == 1,
            score=score,
            detail="\n".join([*lines, ran.reach]).rstrip(),
            seconds=monotonic() - began,
            findings=tuple(faults[:MOST]),
        )

    def _read(self, ran: Ran, reports: list[Report]) -> tuple[float, list[str], list[Finding]]:
        """The part of the tests that pass, a line for each, and what does not by itself."""
        ids = next((r["collected"] for r in reports if "collected" in r), None)
        broken = next((r["fault"] for r in reports if "fault" in r), "")
        if not ids or broken:
            why = broken or f"The tests could not be run: {self._ended(ran)}"
            return 0.0, [_short(why)], []
        said = {r["test"]: r for r in reports if "test" in r}
        unheard = {"passed": False, "why": f"was not reached. {self._ended(ran)}"}
        results = {test: said.get(test, unheard) for test in ids}
        failed = {test: r for test, r in results.items() if not r["passed"]}
        failing = [_told(test, r) for test, r in failed.items()]
        faults = [fault(test, _short(str(r["why"]))) for test, r in failed.items()]
        passing = [f"{test}: passed" for test, r in results.items() if r["passed"]]
        summary = f"{len(passing)} of {len(ids)} tests pass."
        return len(passing) / len(ids), [*[*failing, *passing][:_MOST], summary], faults

    def _ended(self, ran: Ran) -> str:
        if "Timeout (" in ran.stderr:
            return f"A test did not end within {self._seconds / _SHARE:.3g} seconds."
        return failure(ran, self._seconds)


def _source(name: str, namespace: Mapping[str, Any]) -> str:
    if name not in namespace:
        return _content(Path(name).expanduser(), name)
    value = namespace[name]
    if isinstance(value, str):
        return value
    if isinstance(value, Path):
        return _content(value, name)
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


def _content(path: Path, name: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"There is no variable and no readable file {name!r} to take tests from."
        ) from None


def _parsed(source: str, name: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        said = getattr(error, "msg", str(error))
        raise UsageError(f"The check {name!r} is not Python: {said}{line}.") from None


def _reports(collected: str, token: str) -> list[Report]:
    reports = []
    for line in collected.splitlines():
        try:
            report = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(report, dict) and report.get("token") == token:
            reports.append(report)
    return reports


def _told(test: str, report: Report) -> str:
    return _short(f"{test}: {report['why']}") + (
        f" (line {report['line']} of the tests)" if report.get("line") else ""
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
