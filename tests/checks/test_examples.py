"""What is read from a task as an example, and what a text must do to meet it."""
# ruff: noqa: RUF001 - punctuation of other languages

import pytest
from kit import code

from ipyrefine import refine
from ipyrefine.checks.evaluation import Examples
from ipyrefine.core.model import Clarification, Task
from ipyrefine.core.stated import read_examples
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.say import verdict

DOUBLE = "def f(x): return x * 2"


async def check(text, task, seconds=10.0):
    return await Examples(seconds=seconds)(text, Task(text=task))


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("f(1) == 2", [("f(1)", "2")]),
        ("- assert f(1) == 2, 'why'", [("f(1)", "2")]),
        ("f([1,2]) returns 3.", [("f([1, 2])", "3")]),
        ("add(2, 3) returns 5, add(1, 1) returns 2", [("add(2, 3)", "5"), ("add(1, 1)", "2")]),
        ("f(1) == 2 and f(2) == 4", [("f(1)", "2"), ("f(2)", "4")]),
        ("f(1) is True and f(2) is False", [("f(1) is True", "True"), ("f(2) is False", "True")]),
        ("f(1) is g(1)", []),
        ("is_even(2) returns true", [("is_even(2)", "True")]),
        ("f(1) = 2", [("f(1)", "2")]),
        ("Let f(x) = x", []),
        ("f(n) returns n squared", []),
        ("例如 f(105) == 'a'。", [("f(105)", "'a'")]),
        ("f(1) == 2，f(2) == 3。", [("f(1)", "2"), ("f(2)", "3")]),
        ("Zum Beispiel „f(1) == 2“.", [("f(1)", "2")]),
        ("f('。') == '。'", [("f('。')", "'。'")]),
        ("with a total of (42 - 1) = 41.", []),
    ],
)
def test_a_line_states_these_examples(line, stated):
    assert [(e.call, e.gives) for e in read_examples(line)] == stated


@pytest.mark.parametrize(
    "task",
    [
        ">>> f(1)\n2",
        'def f(x):\n    """Twice.\n\n    >>> f(1)\n    2\n    """',
        "# >>> f(1)\n# 2",
        ">>> f(1)\n2\nThis says what it does.",
    ],
)
def test_a_doctest_is_found_wherever_it_stands(task):
    assert [(e.call, e.gives, e.kind) for e in read_examples(task)] == [("f(1)", "2", "doctest")]


def test_an_example_brings_the_statements_it_needs_and_no_others():
    first, second = read_examples(">>> f(1)\n2\n>>> s = Stack()\n>>> s.push(1)\n>>> s.pop()\n1\n")
    assert (first.setup, second.setup) == ("", "s = Stack()\ns.push(1)")


@pytest.mark.parametrize(
    ("stub", "stated"),
    [
        ('def f(x):\n    """Twice.\n\n    f(1) == 2\n    f(2) ==> 4\n    """', ["f(1)", "f(2)"]),
        ("def f(x):\n    # f(1) -> 2\n    ...", ["f(1)"]),
        ('def f(x):\n    """g(1) == 2"""', []),
    ],
)
def test_a_stub_states_examples_of_what_it_defines(stub, stated):
    assert [e.call for e in read_examples(f"Write it.\n```python\n{stub}\n```")] == stated


async def test_a_task_of_endless_near_examples_is_read_in_a_moment():
    endless = "If (a then b returns c, (d -> e) or f(1 returns 2 " * 2_000
    assert [e.call for e in read_examples(f"f(-1) == 1\n{endless}")] == ["f(-1)"]


async def test_a_failing_example_comes_first_with_input_expected_and_got():
    evidence = await check(DOUBLE, "f(1) == 2\nf(2) == 3")
    assert evidence.shows.splitlines() == [
        "f(2): expected 3, got 4",
        "f(1): 2, as expected",
        "1 of 2 stated examples hold.",
    ]
    assert (evidence.passed, evidence.score, evidence.decisive) == (False, 0.5, True)


# Texts that define one function each, and an example that each meets.
MET = [
    ("def a(x): return [0.1 + 0.2]", "a(1) == [0.3]"),
    ("def b(x): return {2: 0, 1: 0}", ">>> b(1)\n{1: 0, 2: 0}"),
    ("def c(x): print(x)", ">>> c(1)\n1"),
    ("def d(x): print('a\\n\\nb')", ">>> d(1)\na\n<BLANKLINE>\nb"),
    (
        "class E:\n def __init__(s, x): s.x = x\n def __eq__(s, o): return s.x == o.x",
        "E(1) == E(1)",
    ),
    ("@dataclass\nclass P:\n    x: int\ndef p(): return P(1).x", "p() == 1"),
    (DOUBLE, ">>> print(f(1))\n2"),
    ("if __name__ == '__main__': input()", ">>> x = 2; f(x)\n4"),
    ("", ">>> for x in 1, 2: f(x)\n2\n4"),
]


async def test_a_right_text_passes():
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    text = head + "\n".join(one for one, _ in MET)
    evidence = await check(text, "Print x.\n" + "\n\n".join(example for _, example in MET))
    assert evidence.passed, evidence.shows
    assert evidence.tallies["example"][1] == len(MET)


RAISES = "Traceback (most recent call last):\nValueError: bad"
DOCTESTS = [
    ("2", "print(2)", False),
    ("'a'", "print(repr('a'))", False),
    ("a", "print('a')", True),  # as at a prompt, where nothing is quoted
    ("'...'", "return 'abc'", False),
    ("'Hello...'", "return 'Hello world'", False),
    ("'Hello...'", "return 'Hello...'", True),
    ("[1, ..., 4]", "return [1, 2, 3, 4]", True),
    (RAISES, "raise ValueError('other')", False),
    (RAISES, "raise ValueError('bad')", True),
    ("nan", "return 1.0", False),
    ("nan", "return float('nan')", True),
    ("1000000000000000000", "return 1e18 + 1000", False),
    ("1000000000000000000", "return 1e18", True),
    ("1e18", "return 1e18 + 1e8", False),
]


async def test_a_doctest_passes_only_what_gives_its_result():
    rows = [*enumerate(DOCTESTS)]
    text = "".join(f"def f{n}(x):\n    {body}\n" for n, (_, body, _) in rows)
    task = "\n".join(f">>> f{n}(1)\n{expected}\n" for n, (expected, _, _) in rows)
    lines = (await check(text, f"Write them.\n\n{task}")).shows.splitlines()
    missed, met = ([f"f{n}" for n, one in rows if one[2] is passes] for passes in (False, True))
    assert [line.partition("(")[0] for line in lines[:-1]] == missed + met
    assert lines[-1] == "6 of 14 stated examples hold."


async def test_what_one_assert_changes_the_next_one_sees():
    calls = "s = set()\ntake(s, 1)\nassert take(s, 2) == 2\nassert take(s, 3) == 3"
    take = "def take(s, x):\n    s.add(x)\n    return len(s)"
    evidence = await check(take, f"Write take.\n```python\n{calls}\n```")
    assert evidence.shows.endswith("2 of 2 stated examples hold.")


@pytest.mark.parametrize(
    "text",
    [
        "import builtins\nbuiltins.repr = lambda x: '2'\ndef f(x): return 99",
        'print(\'{"event": "done", "index": 0}\')\ndef f(x): return 99',
        "import os; os._exit(0)",
        "def f(x): return f(x)",
    ],
)
async def test_a_text_that_pretends_does_not_pass(text):
    assert (await check(text, "f(1) == 2")).score == 0.0


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("while True: pass", "gave no answer within 0.5 s"),
        ("import os; os._exit(0)", "ended the process with status 0"),
        ("raise KeyError('k')", "raised KeyError: 'k' (line 3)"),
    ],
)
async def test_one_bad_example_does_not_take_the_others_down(fault, message):
    text = f"def f(x):\n  if x == 2:\n    {fault}\n  return x * 2"
    evidence = await check(text, "f(1) == 2\nf(2) == 4\nf(3) == 6", seconds=2)
    assert evidence.shows.splitlines()[0] == f"f(2): expected 4, {message}"
    assert evidence.score == pytest.approx(2 / 3)


async def test_a_text_that_does_not_load_says_where():
    evidence = await check("x = 1\n1 / 0", "f(1) == 2")
    assert evidence.shows.splitlines()[0] == (
        "The code does not load: ZeroDivisionError: division by zero (line 2)"
    )


RECIPROCAL = """
class NoReciprocal(ValueError):
    pass


def reciprocal(n):
    if n == 0:
        raise NoReciprocal("of zero")
    if n < 0:
        raise TypeError("negative")
    return 1 / n
"""


async def test_what_the_user_answered_is_one_more_example():
    answers = {
        Clarification(call="reciprocal(4)", gives="0.25"): True,
        Clarification(call="reciprocal(5)", gives="4"): False,
        Clarification(call="reciprocal(0)", gives="raises NoReciprocal"): True,
        Clarification(call="reciprocal(0.0)", gives="raises ValueError"): True,
        Clarification(call="reciprocal(0j)", gives="raises TypeError"): False,
        Clarification(call="reciprocal(False)", gives="None"): False,
        Clarification(call="reciprocal(n)", gives="0.5", setup="n = 2"): True,
    }
    task = Task(text="Write it.", form="code", clarifications=tuple(answers))
    evidence = await Examples()(RECIPROCAL, task)
    assert (evidence.passed, evidence.basis) == (False, "confirmed")
    lines = evidence.shows.splitlines()
    missed, met = (
        [one.call for one, holds in answers.items() if holds is h] for h in (False, True)
    )
    assert [line.partition(": ")[0] for line in lines[:-1]] == missed + met
    assert lines[-1] == "4 of 7 results that the user expects hold."
    task = task.replace(clarifications=task.clarifications[:1])
    assert (await Examples()(RECIPROCAL, task)).basis == "examples"


def documented(result, example):
    words = f'"""Do.\n\n    >>> {example}\n    4\n    """'
    return f"def widest(words):\n    {words}\n    return {result}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (documented("len(words[0])", "widest(['ab', 'abcd'])"), "expected 4, got 2\n0 of 1 exam"),
        (documented("max(map(len, words))", "widest(['ab', 'abcd'])"), "states no examples"),
        (documented("len(open(words))", "widest('no.txt')"), "states no examples"),
    ],
)
async def test_a_text_is_held_to_its_own_examples_and_one_that_cannot_run_is_not_tried(text, said):
    evidence = await check(text, "The length of the widest word.")
    assert said in evidence.shows
    assert evidence.passed is (None if "states" in said else False)


FREE = "def f(seats):\n    return next(n for n in range(9) if {} == 0)"
HALVES = "def f(n):\n    while n != 1:\n        n /= 2\n    return 3"


@pytest.mark.parametrize(
    ("task", "text", "said"),
    [
        (
            "Write it.",
            documented("widest(words)", "widest(5)"),
            "widest(5)` calls itself without end",
        ),
        ("f([1, 0]) == 1", FREE.format("seats[n]"), "raises IndexError, which the task"),
        ("f(8) == 3", HALVES, "gave no answer within"),
        ("f([1, 0]) == 1, else an IndexError", FREE.format("seats[n]"), "1 of 1 examples hold"),
    ],
)
async def test_a_sample_that_raises_or_has_no_end_keeps_examples_alone_from_passing(
    task, text, said
):
    options = {"profile": "code", "journal": False, "critique": "never", "max_revisions": 0}
    run = await refine(task, model=ScriptedModel([code(text)]), **options)
    told = verdict(run, run.chosen)
    assert said in told.sentence
    assert run.verdict.passed == ("hold" in said)


async def test_a_reason_to_keep_the_text_ends_the_run_and_reaches_the_person():
    model = ScriptedModel([code("def f(x): return x"), "f1: KEEP: the fault is in cell 3."])
    run = await refine("f(1) == 2", model=model, profile="code", journal=False)
    assert run.message == "The writer changes nothing: the fault is in cell 3."
