"""`tests:NAME`: pytest tests of the user's, run on the text."""

from pathlib import Path
from typing import Any

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.tests import Tests
from ipyrefine.core.model import Task
from ipyrefine.core.table import Evidence
from ipyrefine.errors import UsageError

TASK = Task(text="Write inc.")
INC = "def inc(n):\n    return n + 1\n"
SOURCE = """
import pytest
from inc_module import inc as imported


@pytest.mark.parametrize("n", [1, 2])
def test_up(n):
    assert inc(n) == imported(n) == n + 1


def test_type():
    assert isinstance(inc(1), float)


@pytest.mark.skip
def test_later():
    assert False
"""


def check_inc():
    assert inc(1) == 2, "one up"  # type: ignore[name-defined]  # noqa: F821


async def outcome(source: Any, text: str = INC, seconds: float = 20) -> Evidence:
    return await Tests(source, seconds=seconds)(text, TASK)


async def test_every_test_is_listed_with_its_line_and_the_score_is_the_part_that_passes() -> None:
    evidence = await outcome(SOURCE)
    assert (evidence.passed, evidence.score) == (False, 2 / 3)
    first, *others = evidence.detail.splitlines()
    assert first.startswith("test_type: assert False")
    assert "isinstance(2, float)" in first
    assert "(line 12 of the tests)" in first
    assert "test_up[1]: passed" in others
    assert "test_later: skipped, unconditional skip" in others
    assert others[-1] == "2 of 3 tests pass. 1 skipped."


@pytest.mark.parametrize("name", ["text", "function", "functions", "file"])
async def test_tests_come_from_a_text_a_function_functions_or_a_file(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "test_inc.py"
    file.write_text("import shop.inc\nfrom shop.inc import inc\ndef test_it(): assert inc(1) == 2")
    space = {
        "text": "def test_it(): assert inc(1) == 2",
        "function": check_inc,
        "functions": [check_inc],
    }
    (check,) = resolve([f"tests:{file if name == 'file' else name}"], space)
    assert (await check(INC, TASK)).passed
    evidence = await check("def inc(n): return 0", TASK)
    assert (evidence.passed, evidence.score) == (False, 0.0)


async def test_classes_and_fixtures_are_as_pytest_has_them() -> None:
    source = (
        "import unittest\n"
        "@pytest.fixture\ndef one(): return 1\n"
        "class TestInc:\n    def test_it(self, one): assert inc(one) == 2\n"
        "class MoreTests(unittest.TestCase):\n    def test_it(self): self.assertEqual(inc(1), 3)\n"
    )
    evidence = await outcome(source)
    assert evidence.score == 0.5
    assert evidence.detail.startswith("MoreTests::test_it: AssertionError: 2 != 3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def inc(n): return n +", "The code does not load: SyntaxError"),
        ("1 / 0", "The code does not load: ZeroDivisionError: division by zero (line 1)"),
        ("def inc(n):\n    while True: pass", "was not reached. A test did not end within 0.5"),
        ("def inc(n):\n    import os; os.kill(os.getpid(), 11)", "killed by signal 11"),
        ("def inc(n): return [0] * 10**12", "MemoryError"),
    ],
)
async def test_a_text_that_breaks_is_evidence_against_itself(text: str, message: str) -> None:
    evidence = await outcome("def test_it(): assert inc(1) == 2", text, seconds=2)
    assert evidence.passed is False
    assert message in evidence.detail


BARE = """\
# Check the small ones
values = [1, 2]
assert inc(1) == 2, "one"
### BEGIN HIDDEN TESTS
assert inc(2) == 9
stack = Stack()
stack.push(1)
assert stack.pop() == 1
stack.push(inc(2))
assert stack.pop() == 3
for value in values:
    assert inc(value) == value + 1
assert_equal(inc(3), 4)
with pytest.raises(TypeError):
    inc("a")
### END HIDDEN TESTS
"""
STACK = """\
class Stack(list):
    push = list.append

def inc(n): return n + 1

def assert_equal(a, b): assert a == b
"""


async def test_statements_that_assert_are_a_test_each_and_run_in_their_order() -> None:
    evidence = await outcome(BARE, STACK)
    assert evidence.passed is False
    assert evidence.tallies[0].held == 6
    assert evidence.tallies[0].of == 7
    assert evidence.detail.splitlines()[0] == "test_line_5: assert 3 == 9 + where 3 = inc(2)"
    assert "test_line_8: passed" in evidence.detail
    assert (await outcome(BARE.replace("9", "3"), STACK)).passed


@pytest.mark.parametrize("source", ["assert inc(1) == 2", "check = 2\nassert inc(1) == check"])
async def test_a_text_that_breaks_bare_asserts_misses_all_of_them(source: str) -> None:
    assert (await outcome(source, "def inc(n): return n + 1")).passed
    evidence = await outcome(source, "def dec(n): return n - 1")
    assert evidence.passed is False
    assert "NameError" in evidence.detail


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "no variable and no readable file"),
        ("number", "not a int"),
        ("empty", "holds no test"),
        ("broken", r"is not Python: .* \(line 1\)"),
    ],
)
def test_what_holds_no_tests_is_refused_before_anything_runs(name: str, message: str) -> None:
    space = {"number": 3, "empty": "x = 1", "broken": "def test(:"}
    with pytest.raises(UsageError, match=message):
        resolve([f"tests:{name}"], space)
