"""Inputs made from what a task states, and from annotated types."""

import pytest

from ipyrefine.checks.inputs import (
    first_calls,
    further_inputs,
    is_edge_case,
    natural_inputs,
    own_calls,
)
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
    assert is_edge_case(Example(call=source), stated) is edge


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
    assert changed in [example.call for example in further_inputs(read_examples(stated))]


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
        ("'a_b'", ["", "a_b_a", "b_a", "A_B", "a"]),
        ("'Hi, all!'", ["", "Hi, all! Hi,", "all! Hi,", "HI, ALL!", "Hi,"]),
        ("'(())'", ["", "(())(", "))((", "(()", "("]),
        ("'PT1H'", ["", "PT2H", "hello", "pt1h", "P"]),
        ("'level'", ["", "level level", "hello", "LEVEL", "l"]),
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
    ("head", "odd"),
    [
        ("def f(xs: list[int], k: int | None): ...", ["f([3, 1], None)"]),
        ("def f(xs: Optional[list], k: int): ...", ["f(None, 4)"]),
        ("def f(xs, k=None): ...", ["f([3, 1], None)"]),
        ("def f(xs, k=1) -> None: ...", []),
        ("def g(xs, k=None): ...", []),
        ("", []),
    ],
)
def test_none_is_tried_where_the_signature_allows_it(head, odd):
    task = f"Write it.\n```python\n{head}\n```\n>>> f([3, 1], 4)\n1"
    found = [one.call for one in natural_inputs(read_examples(task), task)]
    assert [one for one in found if "None" in one] == odd


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("def moving_average(values, window): ...", "moving_average([3, 1, 2], 2)"),
        ("def initials(name): ...", "initials('hello world')"),
        ("def f(x: float, k=3): ...", "f(2.5)"),
        ('def f(x):\n    """Do.\n\n    >>> f("PT1H")\n    60\n    """', "f('PT1H')"),
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
    assert own_calls(f"class A:\n    def {head.replace('(', '(self, ', 1)}: ...", "")


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (
            "class LRUCache:\n    def __init__(self, size): ...\n    def get(self, key): ...\n"
            "    def put(self, key, value): ...",
            "cache = LRUCache(5); cache.put('hello world', 2); cache.put('Anna', 1); "
            "cache.get('hello world')",
        ),
        (
            "@dataclass\nclass Account:\n    owner_name: str\n    sum: int = 0\n"
            "    def pay(self, n): ...\n    @property\n    def total(self): ...",
            "account = Account('hello world'); account.pay(5); account.pay(2); account.total",
        ),
        ("class With:\n    def a(self): ...", "it = With(); it.a()"),
        ("class Sum:\n    def add(self, n): ...", "it = Sum(); it.add(5); it.add(2)"),
        ("class Empty: ...", ""),
        (
            "@dataclass\nclass Bank:\n    all: dict = field(default_factory=dict)\n"
            "    def open(self, name): ...\n    def pay(self, name, n): ...",
            "bank = Bank(); bank.pay('hello world', 2); bank.pay('Anna', 1); "
            "bank.open('hello world')",
        ),
        ("class Node: ...\nclass Chain:\n    def size(self): ...", "chain = Chain(); chain.size()"),
    ],
)
def test_of_a_class_it_is_a_scenario(code, lines):
    first = next(iter(own_calls(code, "Write it, of Node.")), None)
    assert "; ".join([*first.setup.splitlines(), first.call] if first else []) == lines
