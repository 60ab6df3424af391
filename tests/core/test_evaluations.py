"""What an evaluator's reply says: its verdict or score, and its feedback."""

import tomllib
from pathlib import Path

import pytest

from ipyrefine.core.evaluations import as_feedback, read_evaluation, read_score, require_answer
from ipyrefine.core.prompts import Prompts
from ipyrefine.errors import ReplyError, UsageError

ROWS = tomllib.loads((Path(__file__).parent / "evaluations.toml").read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS["said"], ids=lambda row: row["reply"])
def test_a_reply_says_what_stands_in_a_place_of_its_own(row):
    said = read_evaluation(row["reply"], row.get("own", {}))
    reading = said.reading
    assert (reading.says, reading.score) == (row.get("outcome"), row.get("score"))
    if "feedback" in row:
        assert "; ".join(one.words for one in said.remarks) == "; ".join(row["feedback"])


@pytest.mark.parametrize("row", ROWS["asked"], ids=lambda row: row["reply"])
def test_what_may_take_a_yes_back_or_says_nothing_clear_is_asked_about(row):
    with pytest.raises(ReplyError):
        read_evaluation(row["reply"], row.get("own", {}))


@pytest.mark.parametrize(
    "yes",
    [
        "APPROVED",
        "LGTM",
        "通过",
        "BESTANDEN",
        "ACCEPTÉ",
        "ДА",
        "はい",
        "합격",
        "OK!",
        "SÍ",
        "مقبول",
    ],
)
@pytest.mark.parametrize("shape", ["{}", "Verdict: **{}**.", '{{"evaluation": "{}"}}'])
def test_a_word_for_yes_that_the_prompts_declare_takes_the_place_of_pass(yes, shape):
    own = {"judge": "x", "pass": yes}
    assert read_evaluation(shape.format(yes), own).reading.says == "PASS"
    for reply in ("PASS", f"{yes}? No.", f"not {yes}"):
        with pytest.raises(ReplyError):
            read_evaluation(shape.format(reply), own)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ('{"feedback": ["Add a date.", "Say hi."]}', ["Add a date.", "Say hi."]),
        ('{"feedback": []}', []),
        ("PASS: nein", ["PASS: nein"]),
    ],
)
def test_words_that_say_nothing_clear_are_feedback_that_does_not_block(reply, words):
    points = as_feedback(reply)
    assert [one.words for one in points] == words
    assert not any(one.blocking for one in points)


def test_the_evaluator_that_ships_is_read_by_its_form():
    said = read_score('```json\n{"score": 8, "feedback": "Too stiff.", "fixed": []}\n```')
    assert (said.reading.score, [one.words for one in said.remarks]) == (0.8, ["Too stiff."])


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("8/10", "isn't one JSON object"),
        ('{"score": 8}\nNo, 3.', "isn't one JSON object"),
        ('{"score": 11}', "score: input should be less than or equal to 10"),
        ('{"score": "8/10"}', "score: .* number"),
        ('{"feedback": "dull"}', "score is missing"),
    ],
)
def test_another_form_is_asked_about_in_the_words_of_the_form(reply, problem):
    with pytest.raises(ReplyError, match=problem):
        read_score(reply)


@pytest.mark.parametrize(
    "own",
    [
        {"judge": "Say PASS or FAIL."},
        {"judge": "Set done if it is."},
        {"judge": "Rate it."},
        {"judge": "0 to 1?"},
        {"judge": "Say APPROVED.", "pass": "APPROVED"},
        {"judge": "Wie gut?", "scale": (1, 10)},
        {"draft": "Write."},
    ],
    ids=str,
)
def test_a_prompt_that_asks_for_something_that_is_read_is_taken(own):
    require_answer(Prompts.build(own).own())


def test_one_that_asks_for_nothing_that_is_read_is_refused_with_the_line_to_add():
    with pytest.raises(UsageError, match='Add "pass": "APPROVED" to the prompts'):
        require_answer({"judge": "Say APPROVED or REJECTED."})


@pytest.mark.parametrize("scale", [(10, 1), "high", (1, 2, 3), 7, ""])
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(UsageError, match="scale"):
        Prompts.build({"judge": "Score it.", "scale": scale})
