"""Wrong texts that once passed by a loose comparison, and right ones near them."""

import pytest

from ipyrefine.checks.evaluation import Examples
from ipyrefine.checks.schema import Schema
from ipyrefine.checks.text import UNITS, Without, count_sentences
from ipyrefine.core.model import Task

_RAISES = "Traceback (most recent call last):\nValueError: bad"


@pytest.mark.parametrize(
    ("expected", "body", "passes"),
    [
        ("2", "print(2)", False),
        ("'a'", "print(repr('a'))", False),
        ("a", "print('a')", True),  # as at a prompt, where nothing is quoted
        ("'...'", "return 'abc'", False),
        ("'Hello...'", "return 'Hello world'", False),
        ("'Hello...'", "return 'Hello...'", True),
        ("[1, ..., 4]", "return [1, 2, 3, 4]", True),
        (_RAISES, "raise ValueError('other')", False),
        (_RAISES, "raise ValueError('bad')", True),
        ("nan", "return 1.0", False),
        ("nan", "return float('nan')", True),
        ("1000000000000000000", "return 1e18 + 1000", False),
        ("1000000000000000000", "return 1e18", True),
        ("1e18", "return 1e18 + 1e8", False),
        ("0.3", "return 0.1 + 0.2", True),
    ],
)
async def test_a_doctest_passes_only_what_gives_its_result(
    expected: str, body: str, passes: bool
) -> None:
    task = Task(text=f"Write f.\n\n>>> f(1)\n{expected}\n")
    evidence = await Examples()(f"def f(x):\n    {body}\n", task)
    assert evidence.passed is passes, evidence.detail


@pytest.mark.parametrize("task", ["Write f, which prints x.\n\n>>> f(2)\n2", ">>> print(f(2))\n2"])
async def test_what_a_task_wants_printed_may_be_printed(task: str) -> None:
    text = "def f(x):\n    print(x)" if "Write" in task else "def f(x):\n    return x"
    assert (await Examples()(text, Task(text=task))).passed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("either/or/both", 3),
        ("one\u200btwo\u2060three", 3),
        ("The end.Then more", 4),
        ("60 km/h on example.com", 4),
        ("see https://example.com/some/page", 2),
        ("a well-known don't", 3),
        ("one—two—three", 3),
        ("red,green,blue|grey", 4),
        ("1,204 items x,y", 3),
    ],
)
def test_words_joined_without_a_space_are_counted_apart(text: str, words: int) -> None:
    assert UNITS["word"](text) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The end.Then more.And more", 3),
        ("一つ目です。二つ目です。「三つ目。」", 3),
        ("He uses example.com and 3.14.", 1),
        ("Is it? Yes! Good.", 3),
    ],
)
def test_sentences_joined_without_a_space_are_counted_apart(text: str, sentences: int) -> None:
    assert count_sentences(text) == sentences


@pytest.mark.parametrize("text", ["a cat", "a c\u200bat", "a c\xadat", "CAT\u2060"])
async def test_a_word_to_leave_out_is_found_behind_invisible_characters(text: str) -> None:
    assert not (await Without("cat")(text, Task(text="x"))).passed


@pytest.mark.parametrize(
    ("schema", "text", "passes"),
    [
        ({"type": "string", "pattern": "^[a-z]+$"}, '"abc\\n"', False),
        ({"type": "string", "pattern": "^[a-z]+$"}, '"abc"', True),
        ({"type": "string", "pattern": r"^[a$]+\$$"}, '"a$$"', True),
        ({"type": "array"}, "[NaN]", False),
        ({"type": "number"}, "1e999", False),
    ],
)
async def test_a_schema_passes_only_what_follows_it(
    schema: object, text: str, passes: bool
) -> None:
    assert (await Schema(schema, label="s")(text, Task(text="x"))).passed is passes
