"""Texts are grouped by what they do on the inputs that a task gives."""

import pytest

from ipyrefine.checks.behaviour import (
    Behaviour,
    comparison_inputs,
    describe,
    group_behaviours,
    observe,
)
from ipyrefine.core.model import Clarification, Task
from ipyrefine.errors import UsageError

DOUBLE = "Write double(n).\n>>> double(3)\n6\n>>> double(10)\n20"


def code(text, **fields):
    return Task(text=text, form="code", **fields)


async def keys(task, *texts, seconds=10.0):
    inputs = comparison_inputs(code(task))
    behaviours = [await observe(text, inputs, seconds=seconds) for text in texts]
    return group_behaviours(behaviours, inputs), behaviours


def test_the_stated_calls_come_first_without_their_results_and_others_like_them_follow():
    inputs = comparison_inputs(code(DOUBLE))
    assert [example.source for example in inputs.examples[:2]] == ["double(3)", "double(10)"]
    assert inputs.stated == 2
    assert len(inputs.examples) > 6
    assert {example.expected for example in inputs.examples} == {""}


def test_without_a_stated_example_the_calls_come_from_annotated_types():
    inputs = comparison_inputs(code("```python\ndef area(a: float, b: float):\n    ...\n```"))
    assert inputs.stated == 0
    assert inputs.examples[0].source == "area(2.5, 2.5)"


def test_an_answer_of_the_users_is_a_stated_call():
    answered = code("Write f.", clarifications=(Clarification(call="f(2)", result="4"),))
    assert comparison_inputs(answered).examples[0].source == "f(2)"


def test_constants_of_the_code_are_put_into_calls():
    text = "def square(n):\n    'at most 99'\n    if n > 64 or n == 10**9: raise ValueError\n"
    broken = "def square(n) return 71"
    inputs = comparison_inputs(code("Write square(n).\n>>> square(3)\n4"), [text, broken])
    calls = {example.source for example in inputs.examples}
    assert {"square(63)", "square(64)", "square(65)"} <= calls
    assert not {"square(99)", "square(71)", "square(1000000000)"} & calls


def test_constants_take_the_place_of_arguments_of_their_type_only():
    text = "def f(s, xs, deep):\n    return 'ab' in s or 40 in xs or deep is True"
    task = "Write f.\n>>> f('q', [1, 2], False)\n3\n>>> f('q r', [], True)\n4"
    calls = {example.source for example in comparison_inputs(code(task), [text]).examples}
    assert {"f('ab', [1, 2], False)", "f('qab', [1, 2], False)", "f('q', [40, 2], False)"} <= calls
    assert "f('q r ab', [], True)" in calls
    assert not any(call.endswith((" 40)", " 0)", " 1)", " 2)")) for call in calls)


@pytest.mark.parametrize("text", ["Write a function.", "```python\ndef f(x):\n    ...\n```"])
def test_a_task_that_gives_nothing_to_call_is_refused_in_a_sentence(text):
    with pytest.raises(UsageError, match="State an example"):
        comparison_inputs(code(text))


def test_code_in_another_language_is_refused():
    with pytest.raises(UsageError, match="Python"):
        comparison_inputs(code(DOUBLE, language="java"))


async def test_the_same_results_written_otherwise_are_one_group_and_others_are_not():
    (one, same, other), _ = await keys(
        DOUBLE,
        "def double(n):\n    return n + n",
        "double = lambda n: 2.0 * n",
        "def double(n):\n    return n * n - 3 if n == 3 else 20",
    )
    assert one == same
    assert one != other


async def test_exceptions_differ_by_type_except_on_edge_cases():
    task = "Write first(xs).\n>>> first([4, 5])\n4"
    body = "def first(xs):\n    if not xs:\n        raise {}('empty')\n    return xs[0]"
    (index, value, none), _ = await keys(
        task,
        body.format("IndexError"),
        body.format("ValueError"),
        "def first(xs):\n    return xs[0] if xs else None",
    )
    assert index == value, "the task leaves open what an empty list raises"
    assert none != index
    (wrong_name, wrong_type), _ = await keys(task, "def First(xs): ...", "first = 3")
    assert wrong_name != wrong_type


async def test_what_is_printed_counts_where_nothing_is_returned():
    task = "Write greet(name).\n>>> greet('Ann')\nHello, Ann"
    (one, other, noisy, quiet), behaviours = await keys(
        task,
        "def greet(name):\n    print('Hello, ' + name)",
        "def greet(name):\n    print('Hello ' + name)",
        "def greet(name):\n    print('debugging')\n    return 1",
        "def greet(name):\n    return 1",
    )
    assert one != other
    assert noisy == quiet
    assert describe(behaviours[0].outcomes[0]) == "prints 'Hello, Ann\\n'"


async def test_what_does_not_load_is_grouped_by_its_error():
    (one, other, missing), behaviours = await keys(
        DOUBLE, "def double(n)\n    return 2", "return 3 +", "import no_such_module"
    )
    assert one == other != missing
    assert "SyntaxError" in behaviours[0].failure
    assert behaviours[0].outcomes == ()


async def test_endless_texts_are_one_group():
    (one, other), behaviours = await keys(
        DOUBLE,
        "def double(n):\n    while True: pass",
        "def double(n):\n    while 1: n = 2",
        seconds=1.0,
    )
    assert one == other
    assert "no answer" in describe(behaviours[0].outcomes[0])


async def test_objects_without_a_repr_of_their_own_are_never_taken_for_the_same():
    text = "class Box:\n    def __init__(self, n): self.n = n\ndef double(n): return Box({})"
    (one, other), behaviours = await keys(DOUBLE, text.format("n + n"), text.format("n"))
    assert one != other
    assert "can't be compared" in behaviours[0].failure


async def test_methods_are_compared_on_the_stated_examples():
    task = (
        "Write a Stack.\n>>> s = Stack()\n>>> s.push(1)\n>>> s.push(2)\n>>> s.pop()\n2\n"
        ">>> s = Stack()\n>>> s.pop()\nTraceback (most recent call last):\nIndexError: empty"
    )
    stack = (
        "class Stack:\n    def __init__(self): self.xs = []\n"
        "    def push(self, x): self.xs.append(x)\n    def pop(self): return self.xs.pop({})"
    )
    (one, same, queue), behaviours = await keys(
        task, stack.format(""), stack.format("-1"), stack.format("0")
    )
    assert one == same != queue
    assert [describe(outcome) for outcome in behaviours[2].outcomes] == [
        "gives 1",
        "raises IndexError",
    ]


def test_without_a_text_that_runs_all_groups_are_failures():
    inputs = comparison_inputs(code(DOUBLE))
    failures = [Behaviour(failure="a", kind="a"), Behaviour(failure="b"), Behaviour(failure="b")]
    assert len(set(group_behaviours(failures, inputs))) == 3
