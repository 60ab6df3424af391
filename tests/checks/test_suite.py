"""A critic's tests are run on a text as ordinary pytest, each by itself."""

from functools import partial

import pytest

from ipyrefine.checks.suite import Suite
from ipyrefine.core.expectations import Expectation, read_tests
from ipyrefine.core.model import Evidence, Task
from ipyrefine.kernel.variables import Variables

TASK = Task(text="Write it.", form="code")


def grounded(source: str) -> list[Expectation]:
    return [one.model_copy(update={"grounded": True}) for one in read_tests(source)]


async def run(text: str, source: str, **variables: object) -> Evidence:
    return await Suite(Variables.of(variables).files)(grounded(source), text, TASK)


FORMS = """
import asyncio, datetime, decimal
import pytest

def test_state():
    stack = Stack()
    stack.push(1)
    assert stack.pop() == 1

def test_generator():
    assert list(count(3)) == [0, 1, 2]

async def test_async():
    assert await later(2) == 4

def test_exception():
    with pytest.raises(ValueError, match="negative"):
        root(-1)

def test_date():
    assert tomorrow(datetime.date(2024, 2, 28)) == datetime.date(2024, 2, 29)

def test_decimal():
    assert half(decimal.Decimal("0.3")) == decimal.Decimal("0.15")

def test_float():
    assert third(1) == pytest.approx(0.3333, abs=1e-3)

def test_mutated():
    items = [3, 1]
    assert order(items) is None and items == [1, 3]

def test_printed(capsys):
    greet("Ann")
    assert capsys.readouterr().out == "Hello, Ann\\n"

@pytest.mark.parametrize("n", [1, 2])
def test_parameters(n):
    assert third(3 * n) == n
"""
RIGHT = """
import asyncio, datetime
class Stack:
    def __init__(self): self.items = []
    def push(self, one): self.items.append(one)
    def pop(self): return self.items.pop()
def count(n):
    for i in range(n): yield i
async def later(n):
    await asyncio.sleep(0)
    return n * 2
def root(x):
    if x < 0: raise ValueError("x is negative")
def tomorrow(day): return day + datetime.timedelta(days=1)
def half(x): return x / 2
def third(x): return x / 3
def order(items): items.sort()
def greet(name): print(f"Hello, {name}")
"""


async def test_each_natural_way_to_show_a_bug_is_run() -> None:
    right = await run(RIGHT, FORMS)
    assert [one for one in right.results if not one.passed] == []
    assert len(right.results) == 10
    wrong = await run(RIGHT.replace("n * 2", "n").replace("negative", "odd"), FORMS)
    failing = {one.name: one.line for one in wrong.results if not one.passed}
    assert set(failing) == {"test_async", "test_exception"}
    assert "2 == 4" in failing["test_async"]


async def test_a_failing_test_says_what_came_out_and_quotes_the_task() -> None:
    source = 'def test_nine():\n    """The square of 3."""\n    assert f(3) == 9\n'
    evidence = await run("def f(x): return x + x", source)
    assert evidence.failed
    assert "6 == 9" in evidence.results[0].line
    (found,) = evidence.findings
    assert (found.criterion, found.demand) == ("test_nine", "The square of 3.")


@pytest.mark.parametrize("end", ["import os; os._exit(0)", "raise SystemExit"])
async def test_a_test_that_ends_the_process_fails_alone(end: str) -> None:
    calls = {"a": "f(1)", "b": "g()", "c": "f(2)"}
    source = "".join(f"def test_{n}():\n    assert {call}\n" for n, call in calls.items())
    evidence = await run(f"def f(x): return x\ndef g():\n    {end}\n", source)
    assert [(one.name, one.passed) for one in evidence.results] == [
        ("test_a", True),
        ("test_b", False),
        ("test_c", True),
    ]


async def test_a_text_that_does_not_load_fails_all_of_them() -> None:
    evidence = await run("def f(:", "def test_a():\n    assert f(1)\n")
    assert evidence.failed


async def test_a_test_that_says_nothing_of_the_text_is_vacuous() -> None:
    source = (
        "def test_other():\n    assert 1 + 1 == 3\n"
        "def test_any():\n    assert f(0) is None or True\n"
        "def test_real():\n    assert f(3) == 9\n"
    )
    vacuous = partial(Suite().vacuous, grounded(source))
    assert await vacuous("def f(x): return x * x") == {"test_other", "test_any"}


@pytest.mark.parametrize(
    ("source", "claim", "gives"),
    [
        ('def test_f():\n    """q"""\n    assert f(1) == 1\n    assert f(2) == 4\n', 1, "2"),
        (
            '@pytest.mark.parametrize("x", [1, 0])\ndef test_f(x):\n    """q"""\n'
            "    with pytest.raises(ZeroDivisionError):\n        1 / f(x)\n",
            0,
            "1.0",
        ),
    ],
    ids=["several lines", "parameters"],
)
async def test_of_several_results_the_first_that_is_missed_is_known(
    source: str, claim: int, gives: str
) -> None:
    evidence = await run("def f(x):\n    return x", f"import pytest\n{source}")
    (result,) = evidence.results
    assert result.gives
    assert (result.claim, result.gives.result) == (claim, gives)
