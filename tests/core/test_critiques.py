"""What a critic replies is read in one form or asked about, and quotes are matched loosely."""

import json
import tomllib
from pathlib import Path

import pytest

from ipyrefine.core.critiques import read_critique, read_tests_of
from ipyrefine.core.quotes import contains_quote, rests_on
from ipyrefine.core.results import claims
from ipyrefine.core.table import Point
from ipyrefine.core.testing import name_apart, read_tests
from ipyrefine.errors import ReplyError

TEST = 'def test_empty():\n    """An empty list gives 0."""\n    assert f([]) == 0\n'
FIELDS = {
    "because": "An empty list is not handled.",
    "findings": [
        {"task": "in plain words", "place": "Dear Sir", "problem": "Stiff.", "blocks": False}
    ],
    "questions": [{"question": "What of None?", "options": ["0", "TypeError"]}],
    "ready": False,
}
DATA = json.dumps(FIELDS)
SAID = {
    "YES": '{"findings": [], "ready": true}',
    "NO": '{"findings": [{"problem": "No price."}], "ready": false}',
}
ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").with_stem("critiques").read_text("utf-8"))


def said(**fields: object) -> str:
    return json.dumps({"findings": [], "ready": True, **fields})


def test_a_critique_is_tests_and_one_json_object():
    reply = f"Let me think.\n\n```python\n{TEST}```\n\n```json\n{DATA}\n```\n"
    critique = read_critique(reply, "Dear Sir, hello.")
    assert [one.words for one in read_tests_of(reply, "")] == ["test_empty"]
    [stiff, question] = critique.remarks
    assert (stiff.words, stiff.quote, stiff.place) == ("Stiff.", "in plain words", "Dear Sir")
    assert not stiff.blocking
    assert (question.kind, question.options) == ("question", ("0", "TypeError"))
    assert critique.reading.ready is False
    assert critique.reading.reason == "An empty list is not handled."


@pytest.mark.parametrize("name", ROWS["no"])
def test_no_no_and_nothing_unclear_is_taken_for_ready(name):
    reply = ROWS["no"][name]
    for word, shape in SAID.items():
        reply = reply.replace(word, shape)
    try:
        critique = read_critique(reply, "x")
    except ReplyError:
        assert not name.startswith("a No in a block")
    else:
        assert (critique.reading.ready, critique.weaknesses[0].words) == (False, "No price.")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"ready": "almost"}, "ready: input should be a valid boolean"),
        ({"findings": [{"fix": "Name it."}]}, "findings.0.problem is missing"),
        ({"fixed": "f1"}, "fixed: input should be a valid list, not 'f1'"),
        ({"data": [{"id": "d1"}]}, "data: input should be a valid dictionary"),
    ],
)
def test_what_is_wrong_with_its_object_is_said(fields, sentence):
    with pytest.raises(ReplyError, match=sentence):
        read_critique(said(**fields), "x")


def test_what_is_missing_or_null_is_no_answer():
    for critique in (read_critique(said(), "x"), read_critique(said(upheld=None, data=None), "x")):
        assert (critique.remarks, critique.fixed, critique.upheld) == ((), (), None)
    assert read_critique(said(upheld=[]), "x").upheld == ()


def test_ids_may_have_a_reason_and_a_word_may_be_written_as_text():
    critique = read_critique(said(fixed=["f1: it greets"], upheld=["test_a"], ready="no"), "x")
    assert (critique.fixed, critique.upheld) == (("f1",), ("test_a",))
    assert critique.reading.ready is False


@pytest.mark.parametrize("row", ROWS["words"], ids=lambda row: row["points"][0])
def test_a_templates_critic_may_answer_in_words(row):
    critique = read_critique(row["reply"], "x", in_words=True)
    assert [one.words for one in critique.weaknesses] == row["points"]
    assert all(one.blocking for one in critique.remarks)
    assert critique.reading.ready is False


@pytest.mark.parametrize("reply", ["", " \n", '{"findings": [], "ready": tr', said(ready="almost")])
def test_an_object_that_cannot_be_read_is_no_critique_in_words(reply):
    with pytest.raises(ReplyError):
        read_critique(reply, "x", in_words=True)


def test_a_finding_loses_a_place_that_is_not_there():
    assert [one.place for one in read_critique(DATA, "Hello.").weaknesses] == [""]
    assert [one.place for one in read_critique(DATA, "**Dear** Sir").weaknesses] == ["Dear Sir"]


def test_a_block_in_another_language_hides_no_test_behind_it():
    shown = 'It gives\n```json\n{"a": 1}\n```\nwhere 2 is asked.\n'
    [test] = read_tests_of(f"{shown}```python\n{TEST}```\n{DATA}", "")
    assert test.words == "test_empty"
    assert read_critique(f"{shown}```python\n{TEST}```\n{DATA}", "").reading.ready is False


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("the shortest path", True),
        ("The  Shortest\nPATH", True),
        ("“the shortest `path`”", True),
        ("the shortest … two nodes", True),
        ("return the shortest route between two nodes", False),
        ("a path", False),
        ("the longest route", False),
        ("", True),
    ],
)
def test_a_quote_is_found_loosely(quote, stands):
    assert contains_quote("Return *the shortest* path between two nodes.", quote) is stands


def test_a_test_brings_the_imports_and_helpers_it_needs_and_no_others():
    source = (
        "import math\nimport json\nLIMIT = 3\ndef make(n):\n    return [LIMIT] * n\n\n"
        "def test_one():\n    assert f(make(2)) == 6\n\ndef test_two():\n    assert math.pi\n"
    )
    one, two = read_tests(source)
    assert "LIMIT = 3" in one.code
    assert "import" not in one.code
    assert two.code.startswith("import math\n")


def test_new_tests_have_names_of_their_own_and_repeated_ones_are_left_out():
    known = name_apart(read_tests(TEST), (), 0)
    other = read_tests(TEST.replace("== 0", "is None"))
    again = read_tests(TEST.replace("test_empty", "test_nothing"))
    fresh = name_apart([*other, *again], known, 1)
    assert [(one.words, one.text) for one in fresh] == [("test_empty_2", 1)]
    assert "def test_empty_2" in fresh[0].code


def test_texts_are_tried_on_12_tests_of_a_critique_and_on_40_of_a_run():
    def tests(first: int) -> list[Point]:
        numbers = range(first, first + 15)
        return read_tests("\n".join(f"def test_{n}():\n    assert f({n})\n" for n in numbers))

    run: list[Point] = []
    for number in range(4):
        run += name_apart(tests(15 * number), run, number)
    assert [one.dropped for one in run[:15]] == [""] * 12 + ["many"] * 3
    assert len(run) == 60
    assert sum(not one.dropped for one in run) == 40


def test_a_test_that_cannot_be_run_is_kept_with_the_reason():
    sources = {
        "test_one": "def test_one(:\n    assert f(1)\n",
        "test_two": f"def test_two():\n    assert f('{'1' * 20_000}')\n",
        "test_deep": f"def test_deep():\n    assert f() == {'-' * 900}1\n",
    }
    tests = [test for source in sources.values() for test in read_tests(source)]
    assert [test.words for test in tests if not test.dropped] == ["test_deep"]
    named = {one.words: one.dropped for one in name_apart(tests, (), 0)}
    assert [*named] == [*sources]
    assert (named["test_one"], named["test_two"]) == ("broken", "long")
    deep = Point(kind="test", words="test_deep", code=sources["test_deep"])
    assert claims(tests[-1]) == claims(deep) == ()


@pytest.mark.parametrize(
    "source",
    [">>> f(1)\n1\n", "def check(candidate):\n    assert candidate(1) == 1\n", "assert f(1) ==\n",
     "assert f(1) == 1\n", "class TestF:\n    def test_one(self):\n        assert f(1) == 1\n"],
    ids=["a prompt", "another function", "no Python", "an assertion", "a class"],
)  # fmt: skip
def test_what_cannot_be_run_as_a_test_is_named(source):
    [test] = read_tests(source, "x = 1")
    assert (test.dropped, bool(test.reason)) == ("broken", True)


def test_code_that_a_critic_quotes_or_proposes_is_no_test():
    text = "def f(x):\n    return x\nassert f(1) == 1\n"
    proposed = "def f(x):\n    assert x\n    return x + 1\n"
    for source in (text, proposed):
        assert not read_tests(source, text)
    [test] = read_tests(f"{proposed}{TEST}", text)
    assert "return" not in f"{test.module}\n{test.code}", "it is tried on the text's function"


ASKED = """\
Write a function `total(items)`. Return the sum of the squares of all **positive** numbers in a \
list; an empty list gives 0.
- Raise ValueError if an item is not a number.
- Sort the words by length, the longest first, and keep ties in their order.
Read "[a, b] (c)" and 'x["y"]' as one name. It adds two numbers.
Gib die Summe aller Zahlen zurück. Leere Listen ergeben 0.
返回列表中所有正数的平方和。空列表返回0。
Renvoie la somme des nombres positifs, sans modifier la liste.
No gaps. f([]) returns [].
"""
QUOTED = [
    "The task says 'the longest first', so ties keep their order.", "«an empty list gives 0»",
    "„Gib die Summe aller Zahlen zurück“", "「返回列表中所有正数的平方和」", "空列表返回0。",
    '"the longest first" / "keep ties in their order"',
    "keep ties in their order\n\nSo the first stays first.", "Return the sum [...] in a list",
    "Return the sum of the squares … in a list", '"f([]) returns []": nothing stays nothing',
    "- Raise ValueError if an item\n  is not a number", "(an empty list gives 0)",
    "RAISE VALUEERROR IF AN ITEM IS NOT A NUMBER!", "No gaps", "sans modifier la liste",
    '"Read "[a, b] (c)" and \'x["y"]\' as one name": so it is one.',
    'The task says "\'x["y"]\' as one name", in brackets.',
]  # fmt: skip
NOT_QUOTED = [
    '"the"', '","', "", "…", "Task:", "two numbers", '"two numbers" … must return a list',
    "It adds two lists", "an empty string gives 0", "gives 0 … an empty string",
    "in a list … Write a function", "Ties keep the order of input.",
    "Raise TypeError if an item is not a number", "Returns a sum", "-4 numbers in a list",
    "返回", "返回字符串", "Die Liste wird sortiert", '"[a, b] (d)" and "x" as names',
]  # fmt: skip


@pytest.mark.parametrize(
    ("docstring", "rests"),
    [*((one, True) for one in QUOTED), *((one, False) for one in NOT_QUOTED)],
)
def test_a_test_rests_on_words_that_are_copied_from_the_task(docstring, rests):
    [test] = read_tests(f"def test_one():\n    {docstring!r}\n    assert total([]) == 0\n")
    assert rests_on(ASKED, test.quote) is rests
