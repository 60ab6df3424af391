"""Probabilities of yes and no, from whatever a server sends as log-probabilities."""

import math
from typing import Any

import pytest

from ipyrefine.core.ports import Message, Reply, Request
from ipyrefine.providers.answers import AnswerTables, answer_grammar

LINE = Request(messages=(Message(role="user", content="Good?"),), answers=1)


def token(text: Any, table: Any = None, logprob: Any = -0.1) -> dict[str, Any]:
    if isinstance(table, dict):
        table = [{"token": word, "logprob": value} for word, value in table.items()]
    return {"token": text, "logprob": logprob, "top_logprobs": table}


def log(**likelihoods: float) -> dict[str, float]:
    return {word: math.log(likelihood) for word, likelihood in likelihoods.items()}


def read(text: str, *tokens: Any, answers: int = 9) -> tuple[float | None, ...]:
    tables = AnswerTables()
    for one in tokens:
        tables.feed({"content": [one]}, "")
    probabilities = tables.probabilities(text, answers)
    Reply(text=text, probabilities=probabilities)  # none is outside 0..1
    return probabilities


def share(table: dict[str, float]) -> float | None:
    (probability,) = read("yes", token("yes", table))
    return probability


def test_it_is_the_share_of_yes_in_yes_and_no():
    assert share(log(yes=0.3, no=0.1, maybe=0.6)) == pytest.approx(0.75)


@pytest.mark.parametrize(
    "spelling", [" yes", "Yes", "YES", "▁yes", "Ġyes", "y", "Y", "ye", "yes,", "yes\n", "**Yes"]
)
def test_all_spellings_of_a_word_count(spelling):
    assert share(log(yes=0.2, no=0.2) | {spelling: math.log(0.4)}) == pytest.approx(0.75)


@pytest.mark.parametrize("other", ["yesterday", "not", "nope", "", " ", ".", "ok"])
def test_other_words_do_not_count(other):
    assert share(log(yes=0.2, no=0.2) | {other: math.log(0.4)}) == pytest.approx(0.5)


def test_a_word_of_several_tokens_is_read_where_it_starts():
    start, end = token(" y", log(y=0.3, n=0.1)), token("es", log(es=0.9, no=0.1))
    assert read("no yes", token("no", log(yes=0.1, no=0.9)), start, end) == (
        pytest.approx(0.1),
        pytest.approx(0.75),
    )


def test_numbers_lines_and_thinking_beside_the_answers_are_passed_over():
    yes, no = token("yes", log(yes=0.8, no=0.2)), token(" no", log(yes=0.2, no=0.8))
    thought = token("yes", log(yes=0.5, no=0.5))
    around = [token("</think>"), token("\n\n"), token("1"), token(". ")]
    end = token("<|im_end|>", log(yes=0.5, no=0.5))
    tokens = (thought, *around, yes, token("\n2."), no, end)
    assert read("\n\n1. yes\n2. no", *tokens) == (pytest.approx(0.8), pytest.approx(0.2))


def test_one_probability_comes_for_each_answer_found_and_no_more_than_were_asked_for():
    assert read("yes no maybe yes") == (None, None, None)
    assert read("yes no yes", answers=2) == (None, None)
    assert read("") == read("maybe") == ()


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(None, id="no table"),
        pytest.param([], id="an empty one, as of a token that was only verified"),
        pytest.param({"yes": 0.0}, id="the token alone, at log-probability 0"),
        pytest.param(log(well=0.6, hm=0.4), id="neither word"),
        pytest.param({"yes": -math.inf, "no": -9999}, id="both impossible"),
    ],
)
def test_a_token_without_its_table_has_no_probability(table):
    assert read("yes", token("yes", table, 0.0)) == (None,)


def test_a_written_token_below_the_table_counts_beside_the_other_word():
    assert read("yes", token("yes", log(hm=0.9, no=0.03), math.log(0.01))) == (pytest.approx(0.25),)
    assert read("yes", token("yes", log(hm=0.9, well=0.1), math.log(0.01))) == (None,)


def test_text_without_log_probabilities_stands_for_itself():
    tables = AnswerTables()
    tables.feed({"content": [token("yes", log(yes=0.9, no=0.1))]}, "yes")
    tables.feed(None, " no")
    tables.feed({"content": [token(" yes", log(yes=0.8, no=0.2))]}, " yes")
    assert tables.probabilities("yes no yes", 3) == (pytest.approx(0.9), None, pytest.approx(0.8))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(10**5_000, id="5,000 digits"),
        pytest.param(-(10**5_000), id="5,000 digits below zero"),
        *(math.nan, math.inf, -math.inf, 0.5, 1, -0.0, 1e-9, 1e308),
        *("-1", "", None, True, [], [[[]]], {}, {"logprob": -1}),
    ],
    ids=repr,
)
def test_no_value_raises_or_leads_outside_0_to_1(value):
    for table in ({"yes": value, "no": value}, {"yes": value, "no": -1.0, "x": -1.0}):
        read("yes", token("yes", table, value))
    read("yes", token("yes", [value, {"token": value, "logprob": -1.0}], -1.0))
    read("yes", token(value, log(yes=0.5, no=0.5)), value)
    read("yes", token("yes", value))
    tables = AnswerTables()
    tables.feed(value, "yes")
    tables.feed({"content": value}, "")
    assert tables.probabilities("yes", 1) == (None,)


def test_rounding_above_zero_is_certainty():
    assert share({"yes": 1e-7, "no": -math.inf}) == 1.0
    assert share({"yes": -0.0, "no": -2_000.0}) == 1.0


def test_endless_tables_and_replies_are_read_in_bounded_time():
    rows = [{"token": "a" * 50, "logprob": -1.0}] * 100_000
    tables = AnswerTables()
    for _ in range(6_000):
        tables.feed({"content": [token("yes ", rows[:100])]}, "")
    tables.feed({"content": [token("no", rows)] * 10}, "")
    assert set(tables.probabilities("yes " * 50_000, 10**9)) == {None}
    tables = AnswerTables()
    tables.feed({"content": [token("a" * 1_000_000, log(yes=0.5, no=0.5))]}, "")
    assert tables.probabilities("b" + "a" * 9_000 + " yes", 1) == (None,)


@pytest.mark.parametrize(
    ("answers", "written", "rule"),
    [
        (1, "", '("yes" | "no")'),
        (3, "", '("yes" | "no") (" " ("yes" | "no")){2}'),
        (1, "yes", '" " ("yes" | "no")'),
    ],
)
def test_the_grammar_allows_one_line_of_answers(answers, written, rule):
    before = (Message(role="assistant", content=written),) if written else ()
    request = LINE.model_copy(update={"messages": LINE.messages + before, "answers": answers})
    assert answer_grammar(request) == f"root ::= {rule}"
