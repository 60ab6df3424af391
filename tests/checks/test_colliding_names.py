"""A name that a user or a model chooses decides nothing, even if it is one of ours."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from kit import CODE, Suite, code, critique, finding, finish, refinement, text

from ipyrefine import refine
from ipyrefine.checks import from_record, needs_reader, resolve
from ipyrefine.core.model import Criterion, Evidence, Limits, Task
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.labels import check_name

OURS = (
    "examples", "results", "run", "json", "length", "with", "without",
    "tests", "run on copies", "critic's tests", "no source", "evaluator's score", "feedback",
    "length:<=1 word", "constraints",
)  # fmt: skip
CRITERIA = ("feedback", "verdict", "scope", "guidance", "no source", "evaluator's score", "$.price")
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
        return Evidence(name=self.name, passed=True, decisive=True)


async def doubled(check: Any, reply: str) -> Run:
    model = ScriptedModel([reply])
    return await refine(STATED, model=model, checks=[check], max_revisions=0, journal=False)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("kind", [named, Own], ids=["function", "object"])
async def test_a_check_of_the_users_replaces_none_of_ours(kind: Any, name: str) -> None:
    for reply, outcome in ((WRONG, "NEEDS_IMPROVEMENT"), (RIGHT, "PASS")):
        neutral, run = await doubled(kind("neutral"), reply), await doubled(kind(name), reply)
        assert run.setup.checks[1:] == neutral.setup.checks[1:] == ("examples", "results")
        evidence = run.iterations[0].evidence
        assert [(e.name, e.passed) for e in evidence] == [
            (run.setup.checks[0] if e.name == "neutral" else e.name, e.passed)
            for e in neutral.iterations[0].evidence
        ]
        verdict = run.iterations[0].verdict
        assert verdict is not None
        assert verdict.outcome == outcome


@pytest.mark.parametrize("name", OURS)
async def test_a_check_of_the_users_that_fails_fails_the_text(name: str) -> None:
    run = await doubled(named(name, passes=False), RIGHT)
    verdict = run.iterations[0].verdict
    assert verdict is not None
    assert verdict.outcome == "NEEDS_IMPROVEMENT"
    assert [one.check for one in run.iterations[0].actionable] == [run.setup.checks[0]]


def test_checks_of_one_name_are_told_apart() -> None:
    first, second = resolve([lambda text: False, lambda text: True], {})
    assert first.name != second.name


async def test_a_check_that_passes_closes_no_finding_of_one_with_its_name() -> None:
    checks = [named("check", passes=False), named("check")]
    run = await refine(
        "Greet.", draft="Hi", model=ScriptedModel([]), checks=checks, max_revisions=0
    )
    assert len(run.iterations[0].actionable) == 1


@pytest.mark.parametrize("name", ["examples", "run", "json"])
def test_a_function_under_a_name_of_ours_is_asked_for_with_brackets(name: str) -> None:
    own = named(name)
    (check,) = resolve([f"{name}()"], {name: own})
    (same,) = resolve([own], {})
    assert check.name == same.name == f"{name}()"
    assert needs_reader([check.name]) == [check.name]
    assert from_record([check.name], [check]) == (check,)


@pytest.mark.parametrize(("name", "words"), [("length", "length"), ("without", "without")])
def test_a_function_is_shown_under_its_name(name: str, words: str) -> None:
    assert check_name(name) == words


def told(run: Run) -> Any:
    """What came of a run, apart from its criteria's names."""
    findings = [
        (f.id, f.severity, f.status, f.contests, f.author)
        for iteration in run.iterations
        for f in iteration.findings
    ]
    return (run.stop_reason, [i.verdict and i.verdict.outcome for i in run.iterations], findings)


async def contested(name: str) -> Run:
    """A critic names a weakness, the reviser contests it, the critic stands by it or is silent."""
    said = critique(finding("too cold to be read", criterion=name))
    again = json.dumps({"findings": [], "ready": False, "upheld": ["f1"], "because": "Cold."})
    replies = [text("a"), said, text("b", "f1: KEEP: it is meant so"), again]
    loop = refinement(replies, limits=Limits(max_revisions=1, critique="always"))
    await finish(loop)
    return loop.state


async def evaluated(name: str) -> Run:
    """An evaluator's feedback stands beside a criterion, and a passing word closes it."""
    task = Task(text="Greet.", criteria=(Criterion(name=name, definition="Be warm."),))
    replies = [text("a"), "FAIL: too cold", text("b"), "PASS"]
    prompts = Prompts(judge="PASS or FAIL?")
    loop = refinement(replies, task, prompts=prompts, limits=Limits(max_revisions=1))
    await finish(loop)
    return loop.state


@pytest.mark.parametrize("play", [contested, evaluated])
@pytest.mark.parametrize("name", CRITERIA)
async def test_a_criterions_name_decides_nothing(play: Callable[[str], Any], name: str) -> None:
    assert told(await play(name)) == told(await play("warmth"))


async def test_a_finding_under_a_tests_name_contests_no_test() -> None:
    tests = 'def test_warm():\n    """Write a greeting."""\n    assert greet() == "Hi"'
    said = f"```python\n{tests}\n```\n" + critique(finding("no docs", criterion="test_warm"))
    replies = [code("a = 1"), said, code("a = 2", "f1: KEEP: none are asked for"), critique()]
    limits = Limits(max_revisions=1, critique="always")
    loop = refinement(replies, CODE, suite=Suite(), limits=limits)
    await finish(loop)
    assert [one.contests for one in loop.state.expectations] == [0]
