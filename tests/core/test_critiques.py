"""What a critic replies is read in whichever form it comes, and quotes are matched loosely."""

import json

import pytest

from ipyrefine.core.critiques import parse_critique
from ipyrefine.core.expectations import (
    Expectation,
    contains_quote,
    in_force,
    name_apart,
    read_tests,
    rests_on,
)
from ipyrefine.core.model import Severity
from ipyrefine.core.results import claims
from ipyrefine.errors import ReplyError

TEST = 'def test_empty():\n    """An empty list gives 0."""\n    assert f([]) == 0\n'
FIELDS = {
    "findings": [
        {"task": "in plain words", "place": "Dear Sir", "problem": "Stiff.", "blocks": False}
    ],
    "questions": [{"question": "What of None?", "options": ["0", "TypeError"]}],
    "ready": False,
    "because": "An empty list is not handled.",
}
DATA = json.dumps(FIELDS)
LISTED = """Findings:
1. Stiff.

**Questions**
- What of None? (0 / TypeError)

Not ready: An empty list is not handled.
"""


@pytest.mark.parametrize(
    "reply",
    [
        f"Let me think.\n\n```python\n{TEST}```\n\n```json\n{DATA}\n```",
        f"<tests>\n{TEST}</tests>\n{DATA}",
        json.dumps({**FIELDS, "tests": [TEST]}),
        json.dumps({**FIELDS, "tests": [{"code": TEST}]}),
        f"It reads {{odd}} and {{'x': 1}}.\n```\n{TEST}```\n{DATA[:-1]},}}",
        f"```python\n{TEST}```\n{LISTED}",
    ],
    ids=["fences", "tags", "json", "json objects", "a trailing comma", "headings"],
)
def test_a_critique_is_read_in_each_form_that_models_write(reply: str) -> None:
    critique = parse_critique(reply, "Dear Sir, hello.")
    assert [one.name for one in critique.expectations] == ["test_empty"]
    assert [one.problem for one in critique.findings] == ["Stiff."]
    assert critique.questions == ("What of None? (0 / TypeError)",)
    assert critique.ready is False
    assert critique.reason == "An empty list is not handled."


@pytest.mark.parametrize(
    ("words", "ready"),
    [
        ("Verdict: FAIL. The price is missing.", False),
        ("Ready? No.", False),
        ("Ready: No \N{EN DASH} the price is missing.", False),
        ("Verdict: needs work", False),
        ("## Verdict\n\nReject.", False),
        ("**Verdict:** not ready", False),
        ("Not ready: the price is missing.", False),
        ("Ready: almost", False),
        ("Ready: yes, but the price is missing", False),
        ("Verdict: ready once the price is there", False),
        ("Verdict: nein", False),
        ("## Ready\n\nNo, the price is missing.", False),
        ("Ready: yes", True),
        ("Ready? Yes. All three wishes are there.", True),
        ("Ready. All three wishes are there.", True),
        ("**Ready**: true", True),
        ("Verdict: PASS", True),
        ("Verdict: **approved**", True),
        ("## Verdict\n\nReady.", True),
        ("### Ready\n\n是。", True),
    ],
)
def test_only_a_yes_is_a_yes_in_words(words: str, ready: bool) -> None:
    assert parse_critique(f"Findings:\n{words}\n", "x").ready is ready


@pytest.mark.parametrize(
    ("word", "ready"),
    [
        *[(yes, True) for yes in (True, "true", "Yes", "ready", "Yes.", "ja")],
        *[(no, False) for no in (False, "false", "almost", "not yet", "needs work", "", 0, [])],
        ("yes, once the price is there", False),
        ("ready if you add the price", False),
        (None, None),
    ],
)
def test_only_a_yes_is_a_yes_in_json(word: object, ready: bool | None) -> None:
    assert parse_critique(json.dumps({"findings": [], "ready": word}), "x").ready is ready
    assert parse_critique(json.dumps({"findings": [], "verdict": word}), "x").ready is ready


def test_a_block_in_another_language_hides_no_test_behind_it() -> None:
    shown = 'It gives\n```json\n{"a": 1}\n```\nwhere 2 is asked.\n'
    [test] = parse_critique(f"{shown}```python\n{TEST}```\n{DATA}", "").expectations
    assert test.name == "test_empty"


def test_a_finding_keeps_its_demand_and_loses_a_place_that_is_not_there() -> None:
    (found,) = parse_critique(DATA, "Hello.").findings
    assert (found.demand, found.quote) == ("in plain words", "")
    assert found.severity is Severity.MINOR
    (placed,) = parse_critique(DATA, "**Dear** Sir").findings
    assert placed.quote == "Dear Sir"


def test_a_finding_blocks_unless_it_says_otherwise_and_an_empty_one_is_none() -> None:
    named = [{"problem": "Wrong."}, "Too long.", {"problem": " "}, {"severity": "minor"}]
    found = parse_critique(json.dumps({"findings": named}), "x").findings
    assert [(one.problem, one.blocks) for one in found] == [("Wrong.", True), ("Too long.", True)]


@pytest.mark.parametrize(
    "reply", ["", "Looks fine to me.", '{"verdict": 1}', "{", "```python\n1\n```"]
)
def test_a_reply_with_nothing_to_read_is_refused(reply: str) -> None:
    with pytest.raises(ReplyError):
        parse_critique(reply, "x")


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("the shortest path", True),
        ("The  Shortest\nPATH", True),
        ("“the shortest `path`”", True),
        ("the shortest … two nodes", True),
        ("return the shortest route between two nodes", True),  # one word of seven differs
        ("a path", False),
        ("the longest route", False),
        ("", True),
    ],
)
def test_a_quote_is_found_loosely(quote: str, stands: bool) -> None:
    assert contains_quote("Return *the shortest* path between two nodes.", quote) is stands


def test_a_docstring_rests_on_the_task_by_itself_or_by_what_it_quotes() -> None:
    task = "Return the words sorted by length, the longest first."
    assert rests_on(task, "sorted by length")
    assert rests_on(task, "The task says 'the longest first', so ties keep their order.")
    assert not rests_on(task, "Ties keep their order.")


def test_a_test_brings_the_imports_and_helpers_it_needs_and_no_others() -> None:
    source = (
        "import math\nimport json\nLIMIT = 3\ndef make(n):\n    return [LIMIT] * n\n\n"
        "def test_one():\n    assert f(make(2)) == 6\n\ndef test_two():\n    assert math.pi\n"
    )
    one, two = read_tests(source)
    assert "LIMIT = 3" in one.code
    assert "import" not in one.code
    assert two.code.startswith("import math\n")


def test_new_tests_have_names_of_their_own_and_repeated_ones_are_left_out() -> None:
    known = name_apart(read_tests(TEST), (), 0)
    other = read_tests(TEST.replace("== 0", "is None"))
    again = read_tests(TEST.replace("test_empty", "test_nothing"))
    fresh = name_apart([*other, *again], known, 1)
    assert [(one.name, one.iteration) for one in fresh] == [("test_empty_2", 1)]
    assert "def test_empty_2" in fresh[0].code


def test_texts_are_tried_on_12_tests_of_a_critique_and_on_40_of_a_run() -> None:
    def tests(first: int) -> list[Expectation]:
        numbers = range(first, first + 15)
        return read_tests("\n".join(f"def test_{n}():\n    assert f({n})\n" for n in numbers))

    run: list[Expectation] = []
    for number in range(4):
        run += name_apart(tests(15 * number), run, number)
    assert [one.untried for one in run[:15]] == [""] * 12 + ["many"] * 3
    assert len(run) == 60
    assert len(in_force(run)) == 40


def test_a_test_that_cannot_be_run_is_kept_with_the_reason() -> None:
    (broken,) = read_tests("def test_one(:\n    assert f(1)\n")
    (long,) = read_tests(f"def test_two():\n    assert f('{'1' * 20_000}')\n")
    assert [(one.name, one.untried) for one in name_apart([broken, long], (), 0)] == [
        ("test_one", "broken"), ("test_two", "long")
    ]  # fmt: skip
    assert not in_force([broken, long])


def test_a_test_that_is_nested_too_deeply_is_kept_and_not_tried() -> None:
    deep = f"def test_f():\n    assert f() == {'-' * 900}1\n"
    (test,) = read_tests(deep)
    assert test.untried
    assert name_apart([test], [], 0)[0].name == "test_f"
    assert claims(test) == claims(Expectation(name="test_f", code=deep)) == ()
