"""Inputs made from what a task states, and from annotated types."""

import pytest

from ipyrefine.checks.inputs import first_calls, further_inputs, is_edge_case
from ipyrefine.core.stated import Example, read_examples


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
