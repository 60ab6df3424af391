"""A critic's finding on code is tried: its input is run, and what comes out has the last word."""

import time
from typing import Any

import pytest
from kit import critique, finding, finish, judgement, refinement

from ipyrefine.checks import trial
from ipyrefine.checks.trial import Trial
from ipyrefine.core.model import Finding, Limits, Severity, StopReason, Task
from ipyrefine.kernel.variables import Variables

TASK = Task(text="Write inc(n).\n\n>>> inc(1)\n2\n", form="code")
RIGHT = "def inc(n):\n    return n + 1"
WRONG = "def inc(n):\n    return n + 1 if n > 0 else n"
FINDING = Finding(criterion="correctness", severity=Severity.BLOCKING, problem="inc is wrong")


async def shown(text: str, call: str, expected: str, task: Task = TASK) -> bool | None:
    found = FINDING.model_copy(update={"input": call, "expected": expected})
    return await Trial()(found, text, task)


@pytest.mark.parametrize("call", ["inc(0)", ">>> inc(0)"])
async def test_an_input_that_shows_the_problem_confirms_the_finding(call):
    assert await shown(WRONG, call, "1") is True


async def test_an_input_that_gives_what_is_expected_refutes_the_finding():
    assert await shown(RIGHT, "inc(0)", "1") is False


async def test_values_are_compared_and_not_their_spelling():
    text = "def pair(n):\n    return {'a': [n, 0.1 + 0.2]}"
    assert await shown(text, "pair(1)", "{ 'a': [1, 0.3] }") is False


async def test_what_the_task_states_counts_and_not_what_the_finding_says():
    text, refuted = RIGHT, False
    assert await shown(text, "inc( 1 )", "3") is refuted


async def test_a_stated_example_is_tried_whatever_the_finding_expects():
    expected = ""
    assert await shown("def inc(n):\n    return n", "inc(1)", expected) is True


@pytest.mark.parametrize("expected", ["ValueError", "raises ValueError"])
async def test_an_exception_may_be_expected(expected):
    strict = "def inc(n):\n    if n < 0:\n        raise ValueError(n)\n    return n + 1"
    assert await shown(strict, "inc(-1)", expected) is False
    assert await shown(RIGHT, "inc(-1)", expected) is True


async def test_code_that_hangs_shows_the_problem(monkeypatch):
    monkeypatch.setattr(trial, "_SECONDS", 0.5)
    began = time.monotonic()
    assert await shown("def inc(n):\n    while True: pass", "inc(7)", "8") is True
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("call", ["", "n = 1", "inc(", "lambda: inc(1)"])
async def test_what_is_no_call_cannot_be_tried(call):
    assert await shown(WRONG, call, "1") is None


@pytest.mark.parametrize("expected", ["", "n + 1", "an Error"])
async def test_what_is_no_value_cannot_be_expected(expected):
    assert await shown(WRONG, "inc(0)", expected) is None


@pytest.mark.parametrize(
    "hostile",
    ["(" * 50_000, "9" * 100_000, "\x00", "__import__('os').system('exit 1')"],
    ids=range(4),
)
async def test_a_hostile_finding_is_answered_soon_and_breaks_nothing(hostile):
    began = time.monotonic()
    assert await shown(RIGHT, "inc(0)", hostile) in (None, True)
    assert await shown(RIGHT, hostile, "1") is None or hostile.startswith("__import__")
    assert time.monotonic() - began < 10


async def test_the_code_has_the_variables_of_the_notebook():
    found = FINDING.model_copy(update={"input": "inc(1)", "expected": "4"})
    task = TASK.model_copy(update={"text": "Write inc(n)."})
    add = "def inc(n):\n    return n + step"
    assert await Trial(Variables({"step": 3}).files)(found, add, task) is False
    assert await Trial(Variables({"step": 2}).files)(found, add, task) is True


# In a whole refinement

OPEN = Task(text="Write inc(n), which adds one to a number.", form="code")


def claim(call: str, expected: str, **fields: Any) -> dict[str, str]:
    named = finding("inc(0) is wrong", criterion="correctness")
    return {**named, "input": call, "expected": expected, **fields}


async def run(text: str, *replies: Any) -> Any:
    script = [f"```python\n{text}\n```", judgement(9), *replies]
    loop = refinement(script, OPEN, trial=Trial(), limits=Limits(max_revisions=1))
    await finish(loop)
    return loop.state


async def test_a_wrong_result_that_is_shown_counts_and_is_acted_on():
    better = f"```python\n{RIGHT}\n```"
    state = await run(WRONG, critique(claim("inc(0)", "1")), better, judgement(9, fixed=["f1"]))
    [found] = state.iterations[0].findings
    assert (found.verified, found.blocks) == ("yes", True)
    assert (state.text, state.stop_reason) == (RIGHT, StopReason.PASSED)


@pytest.mark.parametrize(
    "named", [claim("inc(0)", "1"), claim("", "")], ids=["not shown", "no input"]
)
async def test_a_wrong_result_that_nothing_shows_is_doubtful_and_blocks_nothing(named):
    state = await run(RIGHT, critique(named))
    [found] = state.iterations[0].findings
    assert (found.doubtful, found.blocks) == (True, False)
    assert (state.text, state.stop_reason) == (RIGHT, StopReason.PASSED)


@pytest.mark.parametrize("call", ["open('kept', 'w')", "(lambda: 1)()"])
async def test_a_call_of_anything_but_the_texts_own_names_is_not_run(call):
    assert await shown(RIGHT, call, "1") is None
