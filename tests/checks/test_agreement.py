"""The check `agreement`: drafts compared on inputs that the task does not state."""

import pytest

from ipyrefine.api import build
from ipyrefine.checks import resolve
from ipyrefine.checks.agreement import Agreement
from ipyrefine.checks.inputs import first_calls, further_inputs, is_edge_case
from ipyrefine.core.model import Limits, Task
from ipyrefine.core.ports import ComparingCheck
from ipyrefine.core.stated import Example, read_examples
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel

TASK = Task(text="Write total(xs), the sum of a list.\n>>> total([1, 2])\n3\n>>> total([4])\n4\n")
RIGHT = "def total(xs):\n    return sum(xs)"
ALSO_RIGHT = "def total(xs):\n    n = 0\n    for x in xs:\n        n += x\n    return n"
EMPTY_FAILS = "def total(xs):\n    n = xs[0]\n    for x in xs[1:]:\n        n += x\n    return n"


async def test_three_drafts_are_judged_by_what_two_of_them_give_on_further_inputs():
    right = await Agreement().among([ALSO_RIGHT, RIGHT])(RIGHT, TASK)
    assert (right.passed, right.decisive) == (True, True)
    assert "2 other drafts" in right.detail
    assert "2 of 2 stated examples hold" in right.detail
    wrong = await Agreement().among([ALSO_RIGHT, RIGHT])(EMPTY_FAILS, TASK)
    assert wrong.passed is False
    assert 0 < wrong.score < 1
    first = wrong.detail.splitlines()[0]
    assert first.startswith("total([")
    assert "2 of 3 drafts agree" in first


async def test_a_draft_that_misses_a_stated_example_has_no_say():
    misses = "def total(xs):\n    return {1: 5, 2: 3}.get(len(xs), 0)"
    also = "def total(xs):\n    return {1: xs[0], 2: 3}.get(len(xs), 0) if xs else 0"
    alone = await Agreement().among([misses], left=1)(also, TASK)
    assert (alone.passed, alone.decisive, alone.basis) == (True, False, "examples")
    assert alone.detail == (await Agreement()(also, TASK)).detail
    outvoted = await Agreement().among([RIGHT, misses, misses])(also, TASK)
    assert not outvoted.decisive
    assert "2 drafts agree" not in outvoted.detail


async def test_drafts_that_print_other_things_do_not_agree():
    task = Task(text="Write greet(name).\n>>> greet('Ann')\nHello, Ann\n")
    right = "def greet(name):\n    print('Hello, ' + name)"
    other = "def greet(name):\n    print('Hello, Ann')"
    assert (await Agreement().among([right])(right, task)).drafts == "agree"
    evidence = await Agreement().among([other])(right, task)
    assert (evidence.drafts, evidence.question) == ("differ", None)


async def test_right_drafts_that_differ_where_the_task_leaves_it_open_settle_the_verdict():
    refusal = "raise ValueError('empty')"
    task = Task(text="Write mean(xs).\n>>> mean([1, 2, 6])\n3.0\n>>> mean([4, 4])\n4.0\n")
    plain = "def mean(xs):\n    return sum(xs) / len(xs)"
    guarded = f"def mean(xs):\n    if not xs:\n        {refusal}\n    return sum(xs) / len(xs)"
    evidence = await Agreement().among([guarded])(plain, task)
    assert (evidence.passed, evidence.decisive) == (True, True)


@pytest.mark.parametrize(
    ("source", "edge"),
    [
        ("f(0, [3, 4], 'ab')", True),
        ("f(2, [3, 4], 'ab')", False),
        ("f(3, [], 'ab')", True),
        ("f(g(0), [3, 4], 'ab')", False),
    ],
)
def test_smaller_than_anything_stated_is_the_edge(source, edge):
    stated = read_examples(">>> f(3, [3, 4], 'ab')\n1\n>>> f(9, [3, 4, 5], 'a')\n1\n>>> g(0)\n1\n")
    assert is_edge_case(Example(source=source, expected="", kind="equals"), stated) is edge


@pytest.mark.parametrize(
    ("stated", "changed"),
    [
        (">>> f(3)\n1", "f(0)"),
        (">>> f('ab')\n1", "f('ba')"),
        (">>> f([5, 2, 7])\n1", "f([5, 7])"),
        (">>> f('01', '10')\n1", "f('0101', '1010')"),
        (">>> f(1, 'x')\n1\n>>> f(2, 'y')\n1", "f(1, 'y')"),
        (">>> f(5, k=2.5)\n1", "f(5, k=3.0)"),
    ],
)
def test_each_kind_of_argument_is_changed_in_its_own_way(stated, changed):
    assert changed in [example.source for example in further_inputs(read_examples(stated))]


def test_it_needs_candidates_and_candidates_need_that_there_is_no_draft():
    (check,) = resolve(["agreement"], {})
    assert isinstance(check, ComparingCheck)
    model = ScriptedModel([])
    with pytest.raises(UsageError, match="--candidates 5"):
        build("Write f.", model=model, checks=[check])
    with pytest.raises(UsageError, match="there is a draft already"):
        build("", draft="x = 1", model=model, limits=Limits(candidates=2))


HEAD = Task(
    text="Complete it.\n\n```python\ndef half(s: str) -> str:\n    return s[::2]\n\n"
    'def total(n: int, xs: List[float]) -> float:\n    """n times the sum."""\n```',
    form="code",
)
TIMES = "def total(n, xs):\n    return n * sum(xs)"
ALSO_TIMES = "def total(n, xs):\n    return sum(n * x for x in xs)"
PLUS = "def total(n, xs):\n    return n + sum(xs)"


@pytest.mark.parametrize(
    ("others", "passed", "decisive"),
    [
        ([ALSO_TIMES, TIMES], True, True),
        ([ALSO_TIMES], None, False),
        ([PLUS, PLUS, PLUS], False, True),
    ],
    ids=["three give one result", "two do", "the others give another"],
)
async def test_where_no_example_is_stated_three_drafts_have_to_agree(others, passed, decisive):
    evidence = await Agreement().among(others)(TIMES, HEAD)
    assert (evidence.passed, evidence.decisive) == (passed, decisive)
    assert "The task states no examples." in evidence.detail


@pytest.mark.parametrize(
    ("head", "calls"),
    [
        ("def f(n: int):\n    ...", ["f(7)", "f(12)", "f(3)"]),
        ("def f(s: str, k: Optional[bool]):\n    pass", ["f('hello world', True)"]),
        ("def f(n: int | None = None):\n    pass", ["f(7)", "f(12)"]),
        ("def f(xs: list[str]):\n    '''Do.'''", ["f(['hello world', 'Abc 12', 'zxya'])"]),
        (
            "def f(m: Dict[str, int], t: Tuple[int, float]):\n    ...",
            ["f({'hello world': 7, 'Abc 12': 12, 'zxya': 3}, (7, 2.5))"],
        ),
        ("def f(n: int, *, k: str, quiet: bool = True):\n    ...", ["f(7, k='hello world')"]),
        ("def f(n: int):\n    return n", []),
        ("def f(n: int", []),
    ],
)
def test_first_calls_are_made_of_the_annotated_types(head, calls):
    found = [example.source for example in first_calls(f"Write it.\n```python\n{head}\n```")]
    assert found[: len(calls)] == calls
    assert bool(found) is bool(calls)


@pytest.mark.parametrize(
    ("task", "call"),
    [
        ("Write is_leap(year: int) -> bool, whether a year is a leap year.", "is_leap(7)"),
        ("Write `f(xs: list[int], k: int = 1)`; it is like g(n: int).", "f([7, 12, 3], 7)"),
        ("Write clamp(x, lo, hi).", None),
        ("Write f(n: Money).", None),
        ("Print f(a: 1, b).", None),
    ],
)
def test_first_calls_are_made_of_a_head_in_words(task, call):
    assert next((example.source for example in first_calls(task)), None) == call
