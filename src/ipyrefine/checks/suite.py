"""Run a critic's tests on a text, in the sandbox, with pytest."""

import ast
import re
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from time import monotonic
from typing import Any

from ipyrefine.checks.blame import is_own_fault
from ipyrefine.checks.evaluation import Evaluation, not_tried, shorten
from ipyrefine.checks.outputs import read_fault
from ipyrefine.checks.refusals import explain_refusal
from ipyrefine.checks.tests import SHARE, WIDTH, Report, run_tests
from ipyrefine.checks.undefined import OnCopies
from ipyrefine.core.model import Task
from ipyrefine.core.results import claims
from ipyrefine.core.stated import as_example
from ipyrefine.core.syntax import parse, tree_of, try_parse, unparse
from ipyrefine.core.table import Point, Result
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.magics import python_part
from ipyrefine.sandbox.sandbox import Event, ProcessResult, describe_failure

_SECONDS = 10.0  # processor time for all tests of a text
_WAITS = 5.0  # seconds that a test may wait
_OWN_MODULE = re.compile(r"^test_\d+\.")  # before an exception's class of the tests' own
_WORST = (False, None, True)  # of the results of a test with parameters

_Results = dict[str, Result]


class Suite(OnCopies):
    """Runs pytest functions on a text, as the modules they were written in.

    Where one ends the process, or waits, the others run in another.
    """

    async def __call__(self, tests: Sequence[Point], text: str, task: Task) -> _Results:
        """Run the tests on a text, and return what each shows, by their names."""
        code = python_part(text).code
        results = await self._results(tests, code, task.text)
        for test in tests:  # those that ran on first rows only say nothing
            lack = self._copies.conditions(code, f"{test.module}\n{test.code}")
            one = results[test.words]
            if lack and one.passed is not None:
                shown = not_tried("it", lack) + (f" {one.shows}" if one.shows else "")
                one = one.replace(passed=None, shows=shown)
            results[test.words] = one.replace(conditions=lack)
        results = await self._with_values(tests, results, text)
        source = "\n".join(f"{one.module}\n{one.code}" for one in tests)
        computed = self._copies.may_compute(code, source)
        return {name: one.replace(computed=computed) for name, one in results.items()}

    async def _with_values(self, tests: Sequence[Point], results: _Results, text: str) -> _Results:
        """Add the text's values to the results of failing tests that compare results."""
        failing = [one for one in tests if results[one.words].passed is False]
        tried = [(one.words, [*map(as_example, claims(one))]) for one in failing]
        calls = tuple(call for _, of_test in tried for call in of_test)
        if not calls:
            return results
        evaluation = Evaluation(text, seconds=_SECONDS, copies=self._copies, waits=_WAITS)
        try:
            every = iter(await evaluation.results(calls))
        except CheckNotRun:
            return results
        missed = _Results()
        for name, of_test in tried:
            given = list(islice(every, len(of_test)))
            # A single claim is the one that fails, though its values may be equal: `f(1) is 1`.
            wrong = [one for one in given if not one.passed or len(given) == 1]
            if wrong and wrong[0].rivals:
                shown = {"shows": results[name].shows, "faults": results[name].faults}
                missed[name] = wrong[0].on_input(passed=False, **shown)
        return results | missed

    async def _results(self, tests: Sequence[Point], code: str, task: str = "") -> _Results:
        left, results, apart = list(tests), _Results(), set[str]()
        deadline = monotonic() + 3 * _SECONDS + len(tests)  # each has a process of its own
        while left and monotonic() < deadline:
            results |= await self._run(left, code, task, apart)
            left = [one for one in left if one.words not in results]
        late = Result(shows="No time was left to run it.")
        return {one.words: results.get(one.words, late) for one in tests}

    async def _run(self, tests: Sequence[Point], code: str, task: str, apart: set[str]) -> _Results:
        """Return the results up to a test that ends the sandbox.

        Tests whose module does not load are added to `apart`, to run with what they need of it.
        """
        sources = {}
        for number, one in enumerate(tests):
            alone = one.words in apart or not one.module
            last = [] if alone else tree_of(one.code).body[-1:]
            parts = [one.module, *map(unparse, last)] if last else [one.code]
            sources[f"test_{number}.py"] = "\n\n\n".join(parts)
        names = [one.words for one in tests]
        late = ""
        try:
            result, events = await run_tests(
                sources,
                code,
                self._copies,
                functions=names,
                names=names,
                seconds=_SECONDS,
                waits=_WAITS,
                apart=True,
            )
        except CheckNotRun as error:
            result = ProcessResult(stdout="", stderr="", exit_code=None, seconds=0.0)
            events, late = [*error.events], str(error)

        def judge(event: Event) -> Result:
            said = str(event.get("why") or event["fault"]).removeprefix("The tests do not load: ")
            said = _OWN_MODULE.sub("", said)
            absence = self._copies.explain_absence(said, result.stderr)
            absence = absence or explain_refusal(event.get("tried"), said, code, *sources.values())
            if absence:
                return Result(shows=absence)
            fault = read_fault(event)
            if is_own_fault(event, sources, code, task):
                line = shorten(f"It fails in its own lines: {said}", WIDTH)
                return Result(shows=line, broken=True, faults=(fault,))
            return Result(passed=False, shows=shorten(said, WIDTH), faults=(fault,))

        def read(report: Report, result: ProcessResult) -> Result:
            """Return the result of a test: with parameters, it is as good as the worst of them."""
            found = [_outcome(*one, judge) for one in report.outcomes.items()]
            if report.wait:
                line = f"It did not end within {_WAITS:g} seconds, in which it waited."
                own = is_own_fault(report.wait, sources, code, task)
                found.append(Result(shows=line, broken=own))
            elif late:
                found.append(Result(shows=late))
            elif report.end != "":
                most = _SECONDS if result.limit else _SECONDS / SHARE
                why = shorten(report.end or describe_failure(result, most), WIDTH)
                reached = report.collected or result.limit
                found.append(Result(passed=False if reached else None, shows=why))
            elif not found:
                line = "It fails in its own lines: pytest finds no test in it."
                found.append(Result(shows=line, broken=True))
            elif len(report.collected) > len(found):
                line = f"Only {len(found):,} of its cases could be run."
                found.append(Result(shows=line))
            return min(found, key=lambda one: _WORST.index(one.passed))

        whole = Report.of([one for one in events if "module" not in one])
        if whole.fault:  # the text does not load
            lost = judge({"why": whole.fault, "tried": whole.load.get("tried")})
            return dict.fromkeys(names, lost.replace(faults=(read_fault(whole.load),)))
        results = _Results()
        for file, name in zip(sources, names, strict=True):
            own = [one for one in events if one.get("module") == file]
            ended = [one["status"] for one in own if "status" in one]
            if not own or (not ended and result.limit == "time" and results):
                continue
            end = result.replace(exit_code=ended[-1], limit=None) if ended else result
            try:
                report = Report.of(own)
                if not report.fault or name in apart:
                    results[name] = judge(report.load) if report.fault else read(report, end)
            except Exception:  # the test wrote to it
                line = "It fails in its own lines: its report cannot be read."
                results[name] = Result(shows=line, broken=True)
            apart.add(name)
        if results or apart:
            return results
        return dict.fromkeys(names, read(whole, result).replace(passed=None))


def _outcome(test: str, event: Event, judge: Callable[[Event], Result]) -> Result:
    _, bracket, parameters = test.partition("[")
    why = f"{bracket}{parameters} {event.get('why', '')}".strip()
    if event["outcome"] == "passed":
        return Result(passed=True)
    if event["outcome"] == "skipped":
        return Result(shows=f"It was skipped: {shorten(why, WIDTH)}", broken=True)
    return judge({**event, "why": why})


def as_function(point: Point, own: Collection[str]) -> str:
    """Return a test as one piece of a module with other tests.

    What a function without parameters needs is inside of it; else it stands above.
    """
    tree = _OwnImports(own).visit(try_parse(point.code) or ast.Module([], []))
    *before, test = tree.body or [ast.Pass()]
    before = [one for one in before if unparse(one) not in ("pass", "import pytest")]
    if isinstance(test, ast.AsyncFunctionDef):
        test = _without_plugin(test)
    if not isinstance(test, ast.FunctionDef):
        return ""
    if not (test.decorator_list or unparse(test.args)):
        kept = [one for one in before if "import *" in unparse(one)]  # no function may hold it
        start = int(ast.get_docstring(test) is not None)
        test.body[start:start] = [one for one in before if one not in kept]
        before = kept
    return "\n\n".join(map(unparse, [*before, test]))


def _without_plugin(test: ast.AsyncFunctionDef) -> Any:
    """Return an async test as a function that runs it."""
    head = f"def {test.name}():\n import asyncio\n async def _test(): ...\n asyncio.run(_test())"
    outer: Any = parse(head).body[0]
    outer.args, outer.body[1].body = test.args, test.body
    marks = ("pytest.mark.asyncio", "pytest.mark.anyio")
    outer.decorator_list = [m for m in test.decorator_list if not unparse(m).startswith(marks)]
    return outer


class _OwnImports(ast.NodeTransformer):
    """Leaves out imports of a text's own names."""

    def __init__(self, own: Collection[str]) -> None:
        self._own = set(own)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.Pass() if {one.asname or one.name for one in node.names} <= self._own else node
