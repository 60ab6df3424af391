"""Inputs made from what a task states, and from annotated types."""

import pytest

from ipyrefine.checks.inputs import (
    first_calls,
    natural_inputs,
    own_calls,
)
from ipyrefine.core.stated import read_examples


@pytest.mark.parametrize(
    ("head", "calls"),
    [
        ("def f(n: int):\n    ...", ["f(5)", "f(2)", "f(10)"]),
        ("def f(s: str, k: Optional[bool]):\n    pass", ["f('hello world', True)"]),
        ("def f(n: int | None = None):\n    pass", ["f(5)", "f(2)"]),
        ("def f(xs: list[str]):\n    '''Do.'''", ["f(['fig', 'apple', 'pear'])"]),
        (
            "def f(m: Dict[str, int], t: Tuple[int, float]):\n    ...",
            ["f({'fig': 3, 'apple': 1, 'pear': 2}, (2, 2.5))"],
        ),
        ("def f(n: int, *, k: str, quiet: bool = True):\n    ...", ["f(2, k='hello world')"]),
        ("def f(n: int):\n    return n", []),
        ("def f(n: int", []),
    ],
)
def test_first_calls_are_made_of_the_annotated_types(head, calls):
    found = [example.call for example in first_calls(f"Write it.\n```python\n{head}\n```")]
    assert found[: len(calls)] == calls
    assert bool(found) is bool(calls)


@pytest.mark.parametrize(
    ("task", "call"),
    [
        ("Write is_leap(year: int) -> bool, whether a year is a leap year.", "is_leap(5)"),
        ("Write `f(xs: list[int], k: int = 1)`; it is like g(n: int).", "f([3, 1, 2], 2)"),
        ("Write clamp(x: int, lo: int, hi: int).", "clamp(5, 2, 10)"),
        ("Write clamp(x, lo, hi).", None),
        ("Write f(n: Money).", None),
        ("Print f(a: 1, b).", None),
    ],
)
def test_first_calls_are_made_of_a_head_in_words(task, call):
    assert next((example.call for example in first_calls(task)), None) == call


def tried(stated: str) -> list[str]:
    return [one.call for one in natural_inputs(read_examples(stated))]


@pytest.mark.parametrize(
    ("value", "calls"),
    [
        ("'ada lovelace'", ["", "ada lovelace ada", "lovelace ada", "ADA LOVELACE", "ada"]),
        ("'(())'", ["", "(())(", "))((", "("]),
        ("'PT1H'", ["", "PT2H", "H1TP", "pt1h", "P"]),
        ("[3, 1, 2]", [[], [3, 1, 2, 3], [2, 1, 3], [-3, 1, 2], [3], [3, 1]]),
        ("12", [0, 22, 13, -12, 1]),
        ("{'a': 1, 'b': 2}", [{}, {"a": 1}, {"b": 2}]),
        ("True", [False]),
        ("None", []),
    ],
)
def test_a_person_tries_none_several_another_an_odd_and_a_single_one(value, calls):
    assert tried(f">>> f({value})\n1") == [f"f({one!r})" for one in calls]


def test_inputs_in_a_row_change_different_arguments_of_the_longest_example():
    found = tried(">>> f([3, 1], 4)\n1")
    assert found[:4] == ["f([], 4)", "f([3, 1], 14)", "f([1, 3], 4)", "f([3, 1], -4)"]
    assert tried(">>> f([1, 2], [3, 4])\n1")[1] == "f([1, 2, 1], [3, 4, 3])"
    assert tried(">>> f()\n1") == []
    assert tried(">>> f(**{'a': 1})\n1") == ["f(**{})"]
    assert tried(">>> f(3)\n1\n>>> f(50)\n1")[1] == "f(60)"


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("def moving_average(values, window): ...", "moving_average([3, 1, 2], 2)"),
        ("def initials(name): ...", "initials('hello world')"),
        ("def f(x: float, k=3): ...", "f(2.5)"),
        ("def f(): ...", "f()"),
        ("def f(a, *, b): ...", "f(5, b=2)"),
        ("def g(n): ...\ndef _h(n): ...", "g(5)"),
        ("def g(n): ...\ndef main(): ...", "g(5)"),
        ("x = 3", None),
        ("def f(", None),
    ],
)
def test_a_text_suggests_a_call_of_what_it_defines(code, call):
    found = own_calls(code, "Write g.")
    assert next((one.call for one in found), None) == call


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("Turn '1h 30m' into minutes.", ["f('hello world')", "f('1h 30m')"]),
        ("It's what they don't say.", ["f('hello world')", "f(5)"]),
        ("Say “a” or “b”.", ["f('hello world')", "f('a')", "f('b')"]),
    ],
)
def test_what_the_task_quotes_is_tried_after_the_likeliest_value(said, calls):
    assert [one.call for one in own_calls("def f(s): ...", said)][: len(calls)] == calls


@pytest.mark.parametrize(
    "head", ["f(a: A, b: B, c: C, d: D, e: E, g: G)", "f(a: dict[list[int], int])", "f(*a, **b)"]
)
def test_whatever_the_types_are_there_is_a_call(head):
    assert own_calls(f"def {head}: ...", "")
