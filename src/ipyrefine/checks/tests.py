"""The check ``tests:NAME``: the user's pytest tests, run on the text in the sandbox.

The tests run in the same process as the text, as they must call it. A test that is defined here and
not reached has failed.
"""

import ast
import inspect
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Self

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import not_tried, shorten
from ipyrefine.checks.functions import MAX_FINDINGS, flaw, not_python
from ipyrefine.checks.outputs import read_fault
from ipyrefine.checks.refusals import explain_refusal
from ipyrefine.core.model import Task
from ipyrefine.core.syntax import DEFINITION, ERRORS, FUNCTION, IMPORT, names_at_top, parse, unparse
from ipyrefine.core.table import Point, Result
from ipyrefine.errors import UsageError
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.masking import run_without_secrets
from ipyrefine.kernel.variables import Copies, wants_rows
from ipyrefine.sandbox.sandbox import Event, ProcessResult, describe_failure, field_of

WIDTH = 300  # characters of what a failing test shows
_MAX_LINES = 30
_BEFORE = re.compile(r"\bbefore\.(\w+)")  # a variable as it was before the text
_STARTUP = 0.2  # seconds of processor time for a module that runs apart
SHARE = 4  # one test may take this fraction of the whole time
_RANK = {"passed": 0, "skipped": 1, "failed": 2}


class Tests:
    """The user's pytest tests pass on the text.

    The tests see everything the text defines by its name, and may also import it from any module
    that does not exist otherwise (``from solution import f``).

    Args:
        source: the tests; where they are only statements that assert, each of them is one.
        label: the user's name for them.
        seconds: processor time for all of them; one may take a quarter of it.
        decisive: whether a pass settles the verdict.
        copies: copies of the notebook's variables for it.

    Attributes:
        source: the tests.

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
        copies: Copies | None = None,
    ) -> None:
        self.name = f"tests:{label}"
        self._copies = Copies() if copies is None else copies
        tree = _parse(source, self.name)
        self._seconds, self._decisive = seconds, decisive
        own_tests = [one for one in tree.body if re.match("test|.*Test", getattr(one, "name", ""))]
        self._is_bare = not own_tests and any(map(_asserts, tree.body))
        self.source = source = _as_tests(tree) if self._is_bare else source
        tree = parse(source)
        functions = [one for one in tree.body if isinstance(one, FUNCTION)]
        self._functions = [
            one.name for one in functions if one.name.startswith("test") or len(tree.body) == 1
        ]
        own = [one for one in tree.body if not isinstance(one, IMPORT)]
        self._names = names_at_top(own)
        # Where tests are switched off by hand, nobody knows beforehand which there are.
        sure = [one.name for one in functions if not one.decorator_list]
        self._expected = {*sure} & {*self._functions} if "__test__" not in source else set[str]()
        self._own = {node.name for node in ast.walk(tree) if isinstance(node, DEFINITION)}
        classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        if not self._functions and not any("test" in name.lower() for name in classes):
            raise UsageError(
                f"The check {self.name!r} holds no test: a function named test_…, a class named "
                "Test…, or an assert."
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
        return cls(source, label=argument, copies=context.copies, **settings)

    async def __call__(self, text: str, task: Task) -> Result:
        """Run the tests on the text in the sandbox."""
        if task.is_foreign:
            return not_python(self.name, task)
        code = python_part(text).code
        result, events = await run_tests(
            {"test_text.py": self.source},
            code,
            self._copies,
            functions=self._functions,
            names=sorted(self._names),
            seconds=self._seconds,
        )
        report = Report.of(events)
        partial = self._copies.conditions(code, self.source)
        absence = self._explain_absence(report, result, code)
        if partial and (not report.fault or wants_rows(report.fault.partition(": ")[2])):
            absence = not_tried(self.name, partial)
        end = report.end or self._process_end(result)
        passed, lines, failing, tally = self._assess(report, end)
        score = 0.0 if passed is False else None
        load = (read_fault(report.load),) * bool(report.fault)
        shown = [*lines, result.protection_note] if partial or not absence else []
        return Result(
            name=self.name,
            passed=None if absence else passed,
            not_run=bool(absence),
            score=None if absence else tally[0] / tally[1] if tally else score,
            shows="\n".join(filter(None, [absence, *shown])),
            tallies={"test": tally} if tally and not absence else {},
            decisive=self._decisive,
            basis="tests",
            points=() if absence else tuple(failing[:MAX_FINDINGS]),
            faults=() if absence else tuple(filter(None, (f.fault for f in failing))) or load,
            computed=self._copies.may_compute(code, self.source),
            conditions=partial,
        )

    def _assess(
        self, report: "Report", end: str
    ) -> tuple[bool | None, list[str], list[Point], tuple[int, int] | None]:
        """Return whether the tests pass, a line for each, a point per failure, and the tally."""
        outcomes, tests = report.outcomes, report.collected
        aside = [str(e["why"]) for test, e in outcomes.items() if test not in tests]
        if not report.fault and not tests and aside:  # the whole file
            return None, [f"All tests are skipped: {aside[0]}"], [], None
        if report.fault or not tests:
            error = report.fault or f"The tests could not be run: {end}"
            return False, [shorten(error, WIDTH)], [], None
        for event in outcomes.values() if self._is_bare else ():
            event["line"] = None  # the test is named after its line
        missing = {"outcome": "failed", "why": f"was not reached. {end}"}
        results = {test: outcomes.get(test, missing) for test in tests}
        for name in sorted(self._expected - {test.partition("[")[0] for test in tests}):
            results[name] = {"outcome": "failed", "why": "disappeared."}
        kinds: dict[str, list[str]] = {"failed": [], "passed": [], "skipped": []}
        for test, event in results.items():
            kinds[event["outcome"]].append(test)
        failing, passing, skipped = kinds.values()
        if not failing and report.end is None:
            return False, [f"The run ended before its last test. {end}"], [], None
        lines = [
            *(
                shorten(f"{test}: {results[test]['why']}", WIDTH)
                + (f" (line {line} of the tests)" if (line := results[test].get("line")) else "")
                for test in failing
            ),
            *(f"{test}: passed" for test in passing),
            *(f"{test}: skipped, {shorten(str(results[test]['why']), WIDTH)}" for test in skipped),
        ][:_MAX_LINES]
        count = len(failing) + len(passing)
        if not count:
            return None, [*lines, "All tests are skipped, so nothing was run."], [], None
        skipped_note = f" {len(skipped)} skipped." if skipped else ""
        lines.append(f"{len(passing)} of {count} tests pass.{skipped_note}")
        points = []
        for test in failing:
            event = results[test]  # the parts of its name that its source has
            own = [part for part in test.partition("[")[0].split("::") if part in self._own]
            fault = read_fault(event, "::".join(own))
            points.append(flaw(test, shorten(str(event["why"]), WIDTH)).replace(fault=fault))
        return not failing, lines, points, (len(passing), count)

    def _explain_absence(self, report: "Report", result: ProcessResult, code: str) -> str:
        """Explain why the tests say nothing: all failures need what only the notebook has."""
        failed = [e for e in report.outcomes.values() if e["outcome"] == "failed"]
        errors = [(str(e.get("why", "")), e.get("tried")) for e in failed]
        errors += [(report.fault, report.load.get("tried"))] * bool(report.fault)
        reasons = [
            self._copies.explain_absence(why, result.stderr)
            or explain_refusal(tried, why, code, self.source)
            for why, tried in errors
        ]
        return reasons[0] if reasons and all(reasons) else ""

    def _process_end(self, result: ProcessResult) -> str:
        if (result.timed_out and result.limit is None) or "Timeout (" in result.stderr:
            share = f"{self._seconds / SHARE:.3g} seconds of processor time"
            return f"A test did not end within {share}."
        return describe_failure(result, self._seconds)


class Report(NamedTuple):
    """The outcome of a run of pytest.

    Attributes:
        load: the event of a text, or of tests, that do not load; empty where they do.
        collected: the tests.
        outcomes: what happened in each that was reached: of its fixtures and parts, the worst.
        end: what ended it before its last test, as a sentence, or empty; None if nobody knows.
        wait: where it waited, and was ended for that.
    """

    load: Event
    collected: list[str]
    outcomes: dict[str, Event]
    end: str | None
    wait: Event | None

    @property
    def fault(self) -> str:
        """Why the text or the tests do not load, or empty."""
        return str(self.load.get("fault", ""))

    @classmethod
    def of(cls, events: Sequence[Event]) -> Self:
        """Read what the program wrote."""
        outcomes: dict[str, Event] = {}
        for event in events:
            if event.get("outcome") in _RANK:
                worst = outcomes.setdefault(event["test"], event)
                if _RANK[event["outcome"]] > _RANK[worst["outcome"]]:
                    outcomes[event["test"]] = event
        end = max((e["end"] for e in events if "end" in e), default=None)
        return cls(
            load=next((e for e in events if "fault" in e), {}),
            collected=field_of(events, "collected", []),
            outcomes=outcomes,
            end=f"{end} ended the run." if end else end,
            wait=next((e for e in events if "waited" in e), None),
        )


async def run_tests(
    modules: Mapping[str, str],
    code: str,
    copies: Copies,
    *,
    functions: Sequence[str],
    names: Sequence[str],
    seconds: float,
    waits: float = 0.0,
    apart: bool = False,
) -> tuple[ProcessResult, list[Event]]:
    """Run pytest on a text in the sandbox.

    The tests find what the text defines, and as ``before.NAME`` what a variable held before it.

    Args:
        modules: the source of the tests' modules, by the names of their files: ``test_….py``.
        code: the text's Python.
        copies: copies of the notebook's variables for it.
        functions: the tests whose names need not begin with ``test``.
        names: what the tests define; others of a text's own are left out.
        seconds: processor time for all of them; one may take a quarter of it.
        waits: seconds that a test may wait, three times that for loading; 0 for any time.
        apart: whether each module runs in a process of its own, in which tests marked as expected
            to fail are ordinary ones.

    Returns:
        How the run ended, and its events; with `apart` those of a module name it.
    """
    earlier = (name for source in modules.values() for name in _BEFORE.findall(source))
    return await run_without_secrets(
        "tests",
        {
            **await copies.files(code, *modules.values(), "\n".join(earlier)),
            "candidate.py": code,
            **modules,
        },
        seconds=seconds,
        each=seconds / SHARE,
        startup=_STARTUP * len(modules) if apart else 0.0,
        modules=[*modules],
        functions=functions,
        names=names,
        waits=waits,
        apart=apart,
    )


def _source(name: str, namespace: Mapping[str, Any]) -> str:
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
    with suppress(OSError, ValueError):
        if os.path.isfile(path):  # a pipe would be waited for
            return path.read_text("utf-8-sig")
    raise UsageError(f"There is no variable and no readable file {name!r} to take tests from.")


def _parse(source: str, name: str) -> ast.Module:
    try:
        return parse(source)
    except ERRORS as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        message = getattr(error, "msg", str(error))
        raise UsageError(f"The check {name!r} is not Python: {message}{line}.") from None


def _as_tests(tree: ast.Module) -> str:
    """Return statements that assert as tests, one for each; they run once, in their order."""
    body, tests = [], []
    for one in tree.body:
        source, error = unparse(one), f"_error_{one.lineno}"
        if _asserts(one):
            source = f"{error} = None\ntry:\n{textwrap.indent(source, '    ')}"
            source += f"\nexcept Exception as _error:\n    {error} = _error"
            test = f"def test_line_{one.lineno}():"
            tests += [test, f"    if {error}:", f"        raise {error}"]
        body.append(source)
    return "\n".join([*body, *tests])


def _asserts(node: ast.stmt) -> bool:
    """Return True if a statement asserts, by itself or as ``assert_equal(…)`` does."""
    found = re.search(r"\bassert|\b(?:raises|check)\w*\(", unparse(node), re.IGNORECASE)
    return found is not None and not isinstance(node, DEFINITION)
