"""Run a critic's tests on a text, in the sandbox, with pytest."""

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from textwrap import indent
from time import monotonic
from typing import Any

from ipyrefine.checks.evaluation import Evaluation, holds, not_tried, read_choice, shorten
from ipyrefine.checks.tests import WIDTH, Report, run_tests
from ipyrefine.core.expectations import Expectation, suite_evidence
from ipyrefine.core.model import Evidence, Task, TestResult
from ipyrefine.core.results import claims
from ipyrefine.core.stated import as_example
from ipyrefine.core.syntax import names_bound, names_used, parse, try_parse
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.variables import conditions, explain_absence, may_compute
from ipyrefine.sandbox.sandbox import describe_failure

_SECONDS = 10.0  # processor time for all tests of a text
_WORST = (False, None, True)  # of the results of a test with parameters


class Suite:
    """Runs pytest functions on a text.

    Each is a test by itself: where one ends the process, the others run in another.

    Args:
        files: files to put next to the text, such as `kernel.variables.Variables.files`.
    """

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._files = dict(files or {})

    async def __call__(
        self, expectations: Sequence[Expectation], text: str, task: Task
    ) -> Evidence:
        """Return what the tests show of a text."""
        start = monotonic()
        code = python_part(text).code
        source = _module(expectations)
        try:
            results = await self._results(expectations, code)
        except CheckNotRun as error:
            results = {one.name: (None, str(error)) for one in expectations}
        found = [
            TestResult(name=name, passed=ok, line=line) for name, (ok, line) in results.items()
        ]
        found = self._with_conditions(expectations, found, code)
        found = await self._with_values(expectations, found, text)
        evidence = suite_evidence(expectations, found, monotonic() - start)
        return evidence.model_copy(update={"computed": may_compute(self._files, code, source)})

    def _with_conditions(
        self, expectations: Sequence[Expectation], results: list[TestResult], code: str
    ) -> list[TestResult]:
        """Return the results; those of tests that ran on first rows say nothing."""
        tests = {one.name: one.code for one in expectations}
        found = []
        for one in results:
            lack = conditions(self._files, code, tests[one.name])
            if lack and one.passed is not None:
                line = not_tried("it", lack) + (f" {one.line}" if one.line else "")
                one = one.replace(passed=None, line=line)
            found.append(one.replace(conditions=lack))
        return found

    async def _with_values(
        self, expectations: Sequence[Expectation], results: list[TestResult], text: str
    ) -> list[TestResult]:
        """Return the results with what the text gives where a test that fails compares results."""
        failing = {one.name for one in results if one.passed is False}
        tried = [
            (one.name, [*map(as_example, claims(one))])
            for one in expectations
            if one.name in failing
        ]
        calls = tuple(call for _, of_test in tried for call in of_test)
        if not calls:
            return results
        evaluation = Evaluation(text, seconds=_SECONDS, files=self._files)
        outcomes = iter(await evaluation.outcomes(calls))
        missed = dict[str, dict[str, Any]]()
        for name, of_test in tried:
            given = list(islice(outcomes, len(of_test)))
            wrong = (n for n, one in enumerate(of_test) if not holds(one, given[n]))
            # A single claim is the one that fails, though its values may be equal: `f(1) is 1`.
            number = 0 if len(of_test) == 1 else next(wrong, None)
            if number is not None and given:
                missed[name] = {"claim": number, "gives": read_choice(given[number])}
        return [one.replace(**missed.get(one.name, {})) for one in results]

    async def vacuous(self, expectations: Sequence[Expectation], text: str) -> frozenset[str]:
        """Return the names of tests that say nothing of a text.

        They use none of its names, or pass both on it and on a text whose functions are all empty.
        One that an empty function passes and the text fails does say something: that None is right.
        """
        code = python_part(text).code
        tree = try_parse(code)
        if tree is None:
            return frozenset()
        own = set[str]().union(*map(names_bound, tree.body))
        idle = {one.name for one in expectations if not _uses(one.code, own)}
        left = [one for one in expectations if one.name not in idle]
        stub = _emptied(tree)
        if not stub:
            return frozenset(idle)
        try:
            for source in (stub, code):
                results = await self._results(left, source)
                left = [one for one in left if results[one.name][0]]
        except CheckNotRun:
            return frozenset(idle)
        return frozenset(idle | {one.name for one in left})

    async def _results(
        self, expectations: Sequence[Expectation], code: str
    ) -> dict[str, tuple[bool | None, str]]:
        left, results = list(expectations), dict[str, tuple[bool | None, str]]()
        deadline = monotonic() + 3 * _SECONDS
        while left and monotonic() < deadline:
            results |= await self._run(left, code)
            left = [one for one in left if one.name not in results]
        late = (None, "No time was left to run it.")
        return {one.name: results.get(one.name, late) for one in expectations}

    async def _run(
        self, expectations: Sequence[Expectation], code: str
    ) -> dict[str, tuple[bool | None, str]]:
        """Return the results up to the first test that ends the process, which has failed."""
        names = [one.name for one in expectations]
        report = await run_tests(
            _module(expectations),
            code,
            self._files,
            functions=names,
            names=names,
            seconds=_SECONDS,
        )
        if report.fault:
            why = explain_absence(self._files, report.fault, report.result.stderr)
            line = why or shorten(report.fault, WIDTH)
            return dict.fromkeys(names, (None if why else False, line))
        results = self._outcomes(report)
        if len(results) < len(names):
            why = report.end or describe_failure(report.result, _SECONDS)
            first = next(name for name in names if name not in results)
            if not report.collected:
                return dict.fromkeys(names, (None, why))
            results[first] = (False, shorten(f"did not end. {why}", WIDTH))
        return results

    def _outcomes(self, report: Report) -> dict[str, tuple[bool | None, str]]:
        found = dict[str, tuple[bool | None, str]]()
        for test, event in report.outcomes.items():
            # A test with parameters is as good as the worst of them.
            name, _, parameters = test.partition("[")
            why = str(event.get("why", ""))
            why = f"[{parameters} {why}" if parameters else why
            result: tuple[bool | None, str] = (True, "")
            if event["outcome"] == "skipped":
                result = (None, f"It was skipped: {shorten(why, WIDTH)}")
            elif event["outcome"] != "passed":
                absence = explain_absence(self._files, why, report.result.stderr)
                result = (None if absence else False, absence or shorten(why, WIDTH))
            if name not in found or _WORST.index(result[0]) < _WORST.index(found[name][0]):
                found[name] = result
        return found


def _module(expectations: Iterable[Expectation]) -> str:
    """Return the tests as one module, each with its imports and helpers inside of it."""
    return "\n\n".join(filter(None, map(as_function, expectations)))


def as_function(expectation: Expectation, own: Collection[str] = ()) -> str:
    """Return a test as one function, with the imports and helpers that it needs inside of it.

    Args:
        expectation: the test.
        own: the text's names where it stands above, so that no test needs to import them.
    """
    tree = try_parse(expectation.code) or ast.Module([], [])
    *needed, test = _OwnImports(own).visit(tree).body or [ast.Pass()]
    if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    outer = [one for one in needed if "import *" in ast.unparse(one)]  # no function may hold it
    inner = [one for one in needed if one not in outer and not isinstance(one, ast.Pass)]
    start = 1 if ast.get_docstring(test) is not None else 0
    body = "\n".join(map(ast.unparse, test.body[start:] or [ast.Pass()]))
    if isinstance(test, ast.AsyncFunctionDef):
        inner += parse("import asyncio as _asyncio").body
        body = f"async def _test():\n{indent(body, '    ')}\n_asyncio.run(_test())"
    top = ast.unparse(ast.Module([*test.body[:start], *inner], []))
    lines = [
        *map(ast.unparse, outer),
        *(f"@{ast.unparse(one)}" for one in test.decorator_list),
        f"def {test.name}({ast.unparse(test.args)}):",
        indent("\n".join(filter(None, [top, body])), "    "),
    ]
    return "\n".join(lines)


class _OwnImports(ast.NodeTransformer):
    """Leaves out imports of a text's own names."""

    def __init__(self, own: Collection[str]) -> None:
        self._own = set(own)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.Pass() if {one.asname or one.name for one in node.names} <= self._own else node


def _uses(code: str, names: set[str]) -> bool:
    """Return whether a test reads one of a text's names, also by importing it."""
    tree = try_parse(code)
    if tree is None:
        return False
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    imported = {alias.name for node in imports for alias in node.names}
    return bool((names_used(tree) | imported) & names)


def _emptied(tree: ast.Module) -> str:
    """Return a module's source with all of its functions empty; nothing where it has none."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        function.body = [ast.Pass()]
    return ast.unparse(tree) if functions else ""
