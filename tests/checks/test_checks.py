"""Checks: what they read from a task, and what hostile code cannot do to them."""

from typing import Any

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.examples import Examples, extract
from ipyrefine.checks.functions import CallableCheck
from ipyrefine.checks.python import RunsCleanly
from ipyrefine.checks.sandbox import run_python
from ipyrefine.errors import UsageError
from ipyrefine.loop.records import Task

TASK = Task(text="Write inc.\n\n>>> inc(1)\n2\n\ninc(2) == 3")


def test_examples_are_read_from_doctests_and_from_lines() -> None:
    told = extract("Do it: f(1) == 2, f(2) -> 3 and f('a') returns 'b'.\n>>> x = 1\n>>> f(x)\n2\n")
    assert {(e.setup, e.source, e.expected) for e in told} == {
        ("x = 1\n", "f(x)", "2"), ("", "f(1)", "2"), ("", "f(2)", "3"), ("", "f('a')", "'b'"),
    }  # fmt: skip


async def test_an_example_that_fails_is_told_with_input_expected_and_got() -> None:
    evidence = await Examples()("def inc(n): return 7", TASK)
    assert (evidence.passed, evidence.score) == (False, 0.0)
    assert "inc(1): expected 2, got 7" in evidence.detail


async def test_examples_that_hold_pass() -> None:
    evidence = await Examples()("def inc(n): return n + 1", TASK)
    assert (evidence.passed, evidence.score) == (True, 1.0)


async def test_a_task_without_examples_gives_nothing_to_check() -> None:
    evidence = await Examples()("x = 1", Task(text="Write something."))
    assert evidence.passed is None


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import os; os._exit(0)",
        "raise SystemExit(0)",
        "def inc(n):\n    while True: pass",
        "x = 'a' * 10**12",
        "import sys; sys.stdout.write('x' * 10**8)",
        "import builtins; builtins.repr = lambda x: '2'",
        "def inc(n): return inc(n)",
        "class inc:\n    def __init__(self, n): pass\n    def __eq__(self, o): return True",
        "this is not python",
        "input()",
    ],
)
async def test_hostile_code_is_evidence_against_itself(code: str) -> None:
    evidence = await Examples(seconds=2)(code, TASK)
    assert evidence.passed is False


async def test_a_key_in_the_environment_does_not_reach_the_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    ran = await run_python("import os; print(dict(os.environ))")
    assert "planted" not in ran.stdout


async def test_output_without_end_is_cut() -> None:
    ran = await run_python("while True: print('x' * 1000)", seconds=1, output_limit=5_000)
    assert ran.timed_out
    assert len(ran.stdout) <= 5_000


@pytest.mark.parametrize(
    ("code", "passed", "said"),
    [
        ("x = 1", True, "runs"),
        ("1 / 0", False, "ZeroDivisionError"),
        ("x = (", False, "SyntaxError"),
    ],
)
async def test_run_says_whether_the_code_runs(code: str, passed: bool, said: str) -> None:
    evidence = await RunsCleanly()(code, TASK)
    assert evidence.passed is passed
    assert said in evidence.detail


async def asynchronous(text: str) -> bool:
    return "x" in text


def asserting(text: str) -> None:
    assert "x" in text, "no x"


@pytest.mark.parametrize("function", [lambda t: "x" in t, asynchronous, asserting])
async def test_functions_check_by_their_result_or_an_assertion(function: Any) -> None:
    check = CallableCheck(function)
    assert (await check("x", TASK)).passed
    assert (await check("y", TASK)).passed is False


@pytest.mark.parametrize("result", [float("nan"), 1.5, -0.1, object()])
async def test_a_result_that_is_no_score_is_an_error_not_a_zero(result: Any) -> None:
    with pytest.raises(UsageError, match="returned"):
        await CallableCheck(lambda _: result)("x", TASK)


@pytest.mark.parametrize("name", ["exampels", "number"])
def test_an_unknown_check_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match=r"check"):
        resolve([name], {"number": 3})
