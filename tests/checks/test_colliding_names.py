"""A name that a user or a model chooses decides nothing, even if it is one of ours."""

from collections.abc import Callable
from typing import Any

import pytest
from kit import (
    CODE,
    Suite,
    actionable,
    code,
    critique,
    finding,
    finish,
    refinement,
    written,
)

from ipyrefine import refine
from ipyrefine.checks import from_record, needs_reader, resolve
from ipyrefine.core.model import Limits, Task
from ipyrefine.core.run import Run
from ipyrefine.core.table import Result
from ipyrefine.providers.scripted import ScriptedModel

OURS = (
    "examples", "results", "run", "json", "length", "with", "without",
    "tests", "run on copies", "critic's tests", "no source", "evaluator's score", "feedback",
    "length:<=1 word", "constraints",
)  # fmt: skip
STATED = "Write f, which doubles.\n\n>>> f(2)\n4\n"
WRONG, RIGHT = code("def f(x):\n    return x"), code("def f(x):\n    return 2 * x")


def named(name: str, passes: bool = True) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        return passes

    check.__name__ = name
    return check


class Own:
    """A check of the user's as an object."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, text: str, task: Task) -> Any:
        return Result(name=self.name, passed=True, decisive=True)


async def doubled(checks: list[Any], reply: str) -> Run:
    model = ScriptedModel([reply])
    return await refine(STATED, model=model, checks=checks, max_revisions=0, journal=False)


@pytest.mark.parametrize("kind", [named, Own], ids=["functions", "objects"])
@pytest.mark.parametrize(
    ("reply", "outcome"), [(WRONG, "NEEDS_IMPROVEMENT"), (RIGHT, "PASS")], ids=["wrong", "right"]
)
async def test_checks_of_the_users_replace_none_of_ours(kind, reply, outcome):
    run = await doubled([kind(name) for name in OURS], reply)
    *own, examples, results = run.setup.checks
    assert (len({*own}), examples, results) == (len(OURS), "examples", "results")
    right = outcome == "PASS"
    evidence = [(e.name, e.passed) for e in run.iterations[0].evidence]
    assert evidence == [*((name, True) for name in own), (examples, right), (results, None)]
    verdict = run.iterations[0].verdict
    assert verdict is not None
    assert verdict.outcome == outcome


async def test_checks_of_the_users_that_fail_fail_the_text():
    run = await doubled([named(name, passes=False) for name in OURS], RIGHT)
    verdict = run.iterations[0].verdict
    assert verdict is not None
    assert verdict.outcome == "NEEDS_IMPROVEMENT"
    assert [one.point.check for one in actionable(run, 0)] == [*run.setup.checks[: len(OURS)]]


def test_checks_of_one_name_are_told_apart():
    first, second = resolve([lambda text: False, lambda text: True], {})
    assert first.name != second.name


async def test_a_check_that_passes_closes_no_finding_of_one_with_its_name():
    checks = [named("check", passes=False), named("check")]
    run = await refine(
        "Greet.", draft="Hi", model=ScriptedModel([]), checks=checks, max_revisions=0
    )
    assert len(actionable(run, 0)) == 1


@pytest.mark.parametrize("name", ["examples", "run", "json"])
def test_a_function_under_a_name_of_ours_is_asked_for_with_brackets(name):
    own = named(name)
    (check,) = resolve([f"{name}()"], {name: own})
    (same,) = resolve([own], {})
    assert check.name == same.name == f"{name}()"
    assert needs_reader([check.name]) == [check.name]
    assert from_record([check.name], [check]) == (check,)


async def test_a_finding_under_a_tests_name_contests_no_test():
    tests = 'def test_warm():\n    """Write a greeting."""\n    assert greet() == "Hi"'
    said = f"```python\n{tests}\n```\n" + critique(finding("no docs", criterion="test_warm"))
    replies = [code("a = 1"), said, code("a = 2", "f1: KEEP: none are asked for"), critique()]
    limits = Limits(max_revisions=1, critique="always")
    loop = refinement(replies, CODE, suite=Suite(), limits=limits)
    await finish(loop)
    assert [one.contests for one in written(loop.state)] == [()]
