"""Checks: what they read from a task, and what hostile code cannot do to them."""

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.examples import Examples
from ipyrefine.checks.python import RunsCleanly
from ipyrefine.core.records import Task
from ipyrefine.errors import UsageError

TASK = Task(text="Write inc.\n\n>>> inc(1)\n2\n\ninc(2) == 3")


async def test_an_example_that_fails_is_told_with_input_expected_and_got() -> None:
    evidence = await Examples()("def inc(n): return 7", TASK)
    assert (evidence.passed, evidence.score) == (False, 0.0)
    assert "inc(1): expected 2, got 7" in evidence.detail


async def test_examples_that_hold_pass() -> None:
    evidence = await Examples()("def inc(n): return n + 1", TASK)
    assert (evidence.passed, evidence.score) == (True, 1.0)


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


@pytest.mark.parametrize("name", ["exampels", "number"])
def test_an_unknown_check_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match=r"check"):
        resolve([name], {"number": 3})
