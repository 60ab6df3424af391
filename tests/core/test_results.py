"""Results that the user confirms or corrects become examples, and every text is tried on them."""

from typing import Any

import pytest
from kit import (
    CODE,
    NO_FINDINGS,
    code,
    decide,
    ended,
    finish,
    refinement,
    stages,
    written,
)

from ipyrefine.checks.evaluation import Examples
from ipyrefine.checks.rows import Results
from ipyrefine.checks.suite import Suite
from ipyrefine.core.decisions import Accept, Dismiss, Expect, Retract
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Outcome, Stage, StopReason, Task
from ipyrefine.core.results import (
    claims,
    example_asked,
    expect,
    read_result,
    rows,
)
from ipyrefine.core.run import Run
from ipyrefine.core.table import Point, Result
from ipyrefine.core.typed import confirmations
from ipyrefine.errors import UsageError
from ipyrefine.kernel.variables import Copies
from ipyrefine.render.blocks import rivalry
from ipyrefine.render.say import verdict as verdict_words

STATED = """Write median(xs), the middle of the sorted items; of an even number, the mean of two.

>>> median([3, 1, 2])
2
>>> median([5])
5
"""
ONCE = Limits(max_revisions=0)
OPEN = "Write a function.\n```python\ndef median(xs: list[int]) -> float:\n    ...\n```"
LOWER = "def median(xs):\n    xs = sorted(xs)\n    return xs[(len(xs) - 1) // 2]"
MEAN = (
    "def median(xs):\n    xs = sorted(xs)\n    n = len(xs)\n"
    "    return (xs[(n - 1) // 2] + xs[n // 2]) / 2"
)


def task(text: str = STATED) -> Task:
    return CODE.replace(text=text)


RUNS: dict[Any, Run] = {}  # those played already, at their stop


async def ran(*texts: str, about: str = STATED, **options: Any) -> Refinement:
    """A run of a model too weak to criticise, at its stop."""
    key = (texts, about, str(options))
    played = RUNS.get(key)
    loop = refinement(
        [code(one, "f1: done") for one in texts[played.usage.calls if played else 0 :]],
        task(about),
        checks=[Examples(), Results()],
        weak_critic=True,
        run=played,
        **options,
    )
    if not played:
        await finish(loop)
        RUNS[key] = loop.state
    return loop


def shown(loop: Refinement) -> tuple[Result, ...]:
    return rows(loop.state, loop.state.chosen)


def gives(loop: Refinement) -> dict[str, str]:
    return {row.call: row.gives for row in shown(loop)}


def row(loop: Refinement, call: str) -> Result:
    return next(one for one in shown(loop) if one.call == call)


async def test_a_text_shows_what_it_gives_on_a_few_inputs_that_the_task_does_not_state():
    found = gives(await ran(LOWER))
    assert 3 <= len(found) <= 5
    assert found["median([])"] == "raises IndexError"
    assert "median([5])" not in found


@pytest.mark.parametrize(
    ("about", "text", "call"),
    [
        ("Write half(n: int) -> float.", "def half(n): return n / 2", "half(5)"),
        (
            "Write half(n, by). half(8, by=2) == 4",
            "def half(n, by): return n / by",
            "half(9, by=2)",
        ),
        ("Write half(n).\n>>> half(8)\n4", "def half(n): print(n // 2)", None),
        ("Write half(n).\n>>> half(8)\n4", "def half(n): return object()", None),
    ],
    ids=["a head in words", "an argument by its keyword", "what is printed", "an object"],
)
async def test_results_are_values_for_calls_like_the_tasks(about, text, call):
    found = (await Results()(text, task(about))).rows
    assert call in [one.call for one in found] if call else not found


async def test_a_confirmed_result_calls_no_model_and_moves_no_row():
    loop = await ran(LOWER)
    before, calls = list(gives(loop)), loop.state.usage.calls
    assert set(stages(await decide(loop, expect(shown(loop)[0])))) == {Stage.CHECK}
    assert loop.state.usage.calls == calls
    assert list(gives(loop)) == before
    assert [one.passed for one in shown(loop)][:2] == [True, None]
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.PASS, "confirmed")


@pytest.mark.parametrize(
    ("answered", "outcome"),
    [([0], Outcome.PASS), ([1], Outcome.NOT_JUDGED), ([1, 2], Outcome.PASS)],
)
async def test_where_nothing_is_stated_the_first_result_or_two_pass_a_text(answered, outcome):
    loop = await ran(MEAN, MEAN, about=OPEN)
    assert loop.state.verdict.outcome is Outcome.NOT_JUDGED
    for one in [shown(loop)[n] for n in answered]:
        await decide(loop, expect(one))
    assert loop.state.verdict.outcome is outcome


async def test_another_text_that_gives_the_right_result_takes_its_place_without_a_call():
    loop = await ran(MEAN, LOWER)
    await decide(loop, Expect(call="median([1, 2])", gives="1"))  # the user misreads the task
    assert loop.state.text == LOWER
    calls = loop.state.usage.calls
    await decide(loop, Expect(call="median([1, 2])", gives="1.5"))
    assert (loop.state.text, loop.state.usage.calls) == (MEAN, calls)
    assert len(loop.state.task.clarifications) == 1, "a later word takes the place of an earlier"


async def test_a_result_taken_back_is_as_never_said():
    loop = await ran(LOWER)
    before = shown(loop), loop.state.verdict
    first = shown(loop)[0]
    await decide(loop, expect(first))
    await decide(loop, Retract(call=first.call))
    assert (shown(loop), loop.state.verdict) == before
    with pytest.raises(UsageError, match="You expect no result of"):
        loop.decide(Retract(call=first.call))


HALF = "Write half(n: int) -> float."


@pytest.mark.parametrize(
    ("about", "text"),
    [
        (STATED, "def median(xs):\n    return xs[0]"),
        (HALF, "def half(n): return nn / 2"),
        (HALF, "import numpyy\ndef half(n): return n / 2"),
        (HALF, "def half(n):\n    from numpyy import x\n    return n"),
        (HALF, "def half(n):\n    if n: z = 1\n    return z"),
    ],
    ids=["an example is missed", "a name", "a module above", "a module",
         "a name unbound at times"],
)  # fmt: skip
async def test_that_a_text_is_broken_is_no_result(about, text):
    loop = await ran(text, about=about, limits=ONCE)
    assert not [one for one in shown(loop) if one.gives.startswith("raises ") or about == STATED]


async def test_an_accepted_text_stays_accepted_and_the_users_own_input_is_shown_with_the_rest():
    loop = await ran(MEAN)
    await decide(loop, Accept())
    await decide(loop, Expect(call="median([1, 2, 9, 9])", gives="5.5"))
    assert row(loop, "median([1, 2, 9, 9])").passed
    assert loop.state.stop_reason is StopReason.ACCEPTED


AVERAGE = (
    "def moving_average(values, window):\n"
    "    return [sum(values[i : i + window]) / window for i in range(len(values) - window + 1)]"
)


ABOUT_AVERAGE = "Write moving_average(values, window)."


@pytest.mark.parametrize("wrong", [[], [AVERAGE.replace(" + 1", "")]], ids=["right", "mended"])
async def test_a_function_of_which_nothing_is_known_asks_for_one_result(wrong):
    loop = await ran(*wrong, AVERAGE, about=ABOUT_AVERAGE, limits=ONCE)
    asked = example_asked(loop.state.chosen, shown(loop))
    assert asked.call == "moving_average([3, 1, 2], 2)"
    with pytest.raises(UsageError, match="Say what it should give"):
        confirmations(loop.state, ["1"])
    await decide(loop, expect(asked, "[2.0, 1.5]"))
    assert (loop.state.text, loop.state.stop_reason) == (AVERAGE, StopReason.PASSED)
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.PASS, "confirmed")
    assert [(one.gives, one.passed) for one in shown(loop)] == [("[2.0, 1.5]", True)]
    assert example_asked(loop.state.chosen, shown(loop)) is None


async def test_no_call_is_made_up_where_code_can_not_be_shut_in():
    class Open(Copies):
        async def may_run(self) -> bool:
            return False

    about = task("Write moving_average.")
    assert (await Results()(AVERAGE, about)).rows
    assert not (await Results(copies=Open())(AVERAGE, about)).rows


@pytest.mark.parametrize(
    ("text", "call", "result"),
    [
        ("def is_even(n): return n % 2 == 0", "is_even(5)", "False"),
        ("def shout(x): return x.upper()", "shout('hello world')", "'HELLO WORLD'"),
        ("def f(m): return [len(r) for r in zip(*m)]", "f([[1, 2], [3, 4]])", "[2, 2]"),
        ("def f(x): return y", "", ""),
        ("def f(x): return object()", "", ""),
        ("import random\ndef f(x): return random.random()", "", ""),
        ("def f(x): return x\nprint(f(3))", "", ""),
    ],
    ids=["a number", "a text", "a table", "a name is missing", "no data", "chance", "a cell"],
)  # fmt: skip
async def test_the_call_is_one_on_which_the_text_gives_something(text, call, result):
    found = (await Results()(text, task("Write it."))).rows
    assert [(one.call, one.gives) for one in found] == ([(call, result)] if call else [])


def middle(name: str, assertion: str) -> str:
    """A critique that only writes a test, which rests on the task."""
    test = f'def test_{name}():\n    """middle of the sorted items"""\n    assert {assertion}\n'
    return f"{NO_FINDINGS[0]}\n```python\n{test}```"


async def criticised(
    critic: str, *texts: str, note: str = "t1: done", then: str = NO_FINDINGS[0], **options: Any
) -> Any:
    """A run of a text and its revisions."""
    loop = await ended(
        {
            Stage.DRAFT: [code(one) for one in texts[:1]],
            Stage.REVISE: [code(one, note) for one in texts[1:]],
            Stage.CRITIQUE: [critic, then, then],
        },
        task(),
        checks=[Examples(), Results()],
        suite=Suite(Copies()),
        **options,
    )
    return loop


EMPTY = middle("empty", "median([]) is None")


async def test_a_dispute_says_what_the_critic_expects_and_what_the_text_gives():
    upheld = '{"findings": [], "upheld": ["test_even"], "ready": false, "because": "So."}'
    loop = await criticised(
        middle("even", "median([1, 2]) == 1"), *[MEAN] * 3,
        note="t1: KEEP: it is the mean", then=upheld, limits=Limits(max_revisions=2),
    )  # fmt: skip
    said = verdict_words(loop.state, loop.state.chosen).sentence
    assert said.endswith("`median([1, 2])` → `1.5`, expected `1`")
    assert loop.state.stop_reason is StopReason.UNJUDGED


async def test_who_gives_which_of_two_results_is_said_of_each_text_as_it_is():
    guarded = LOWER.replace("    xs =", "    if not xs:\n        return None\n    xs =")
    loop = await criticised(EMPTY, LOWER, guarded, limits=Limits())
    draft, revision = loop.state.iterations
    (first, *_), (second, *_) = rows(loop.state, draft), rows(loop.state, revision)
    assert first.call == second.call == "median([])"
    assert first.rivals
    assert second.rivals
    said = "the draft: IndexError, revision 1 and the critic: None"
    assert rivalry(loop.state, first) == rivalry(loop.state, second) == said


async def test_a_critics_test_that_does_not_follow_asks_and_no_longer_blocks():
    loop = await criticised(EMPTY, LOWER, limits=ONCE)
    text = loop.state.iterations[0]
    [test] = loop.state.tests
    assert [one.id for one in loop.state.cells(text) if one.blocks] == [test.id]
    await decide(loop, Dismiss(points=(test.id,)))
    run = loop.state
    assert not any(one.blocks for one in run.cells(run.iterations[0]))
    assert [one.id for one in run.tests] == [test.id], "texts are still tried on it"
    assert shown(loop)[0].rivals == ("None",)
    await decide(loop, Dismiss(points=(test.id,)))
    assert loop.state.tests == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("    assert f([]) == 0", [("f([])", "0")]),
        ("    n = 1\n    n += 1\n    assert f(n) == 2", [("f(n)", "2")]),
        ("    box = Box()\n    assert box.size() == 0", [("box.size()", "0")]),
        ("    with pytest.raises(ValueError):\n        f(-1)", [("f(-1)", "raises ValueError")]),
        ("    assert f(1) is None\n    assert f(2) == 2", [("f(1)", "None"), ("f(2)", "2")]),
        ("    assert f(1) < 2", []),
        ("    assert f(1) == g(1)", []),
        ("    box = []\n    assert f(box) == 1\n    assert f(box) == 2", []),
        ("    xs = []\n    assert f(xs) == 1", [("f(xs)", "1")]),
        ("@cases\ndef test_it(x):\n    assert f(x) == 1", []),
    ],
)
def test_a_critics_test_that_compares_results_has_a_row_for_each(source, expected):
    code = source if "def " in source else f"def test_it():\n{source}"
    found = claims(Point(kind="test", words="test_it", code=code, quote="q"))
    assert [(one.call, one.gives) for one in found] == expected


async def test_a_users_result_overrules_a_critics_test_that_says_otherwise():
    loop = await criticised(middle("even", "median([1, 2]) == 1"), MEAN, limits=ONCE)
    await decide(loop, Expect(call="median([1, 2])", gives="1.5"))
    assert [one.dropped for one in written(loop.state)] == ["you"]


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("3", "3"), (" [1, 2] ", "[1, 2]"), ("'a b'", "'a b'"), ("KeyError", "raises KeyError"),
        ("raises KeyError", "raises KeyError"), ("Raises errors.OwnError", "raises OwnError"),
        ("StopIteration", "raises StopIteration"),
    ],
)  # fmt: skip
def test_a_result_is_a_value_or_an_exception(words, result):
    assert read_result(words) == result


@pytest.mark.parametrize("words", ["", "banana", "f(x)", "1 +", "raises", "(" * 9_999])
def test_anything_else_is_refused_in_a_sentence(words):
    with pytest.raises(UsageError, match="A result is a value as Python"):
        read_result(words)
