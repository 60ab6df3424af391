"""Guards against loops that only seem to improve a text."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_scripts import (
    TASK,
    Scores,
    code,
    criticised,
    finish,
    found,
    judged,
    refinement,
    requests,
    text,
)

from ipyrefine.core.changes import changes, cosmetic
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.records import Finding, Severity, Status, Task
from ipyrefine.core.runs import Decision, Limits, StopReason

FINDING = Finding(
    id="f1", criterion="tone", severity=Severity.MINOR, quote="return 1", problem="wrong"
)

# A first text, a revision that only repeats it, and one that does not.
REPEATED = (
    text("Good day"),
    judged(5, found("dull")),
    text("Good day"),
    text("Hey you"),
    judged(9, fixed=("f1",)),
)


async def test_a_critique_that_names_too_little_is_asked_for_once_more() -> None:
    full = criticised(*[found(p) for p in ("dull", "curt", "stale")])
    loop = refinement(
        [text("Hi"), judged(9), criticised(found("dull")), full, text("Ho"),
         judged(9, fixed=("f1", "f2", "f3"))],
    )  # fmt: skip
    await finish(loop)
    assert any("it names 1 of 3 findings" in w for w in loop.run.warnings)
    assert len(loop.run.iterations[0].findings) == 3


async def test_what_a_critique_names_is_kept_even_if_it_stays_too_little() -> None:
    loop = refinement(
        [text("Hi"), judged(9), *[criticised(found("dull"))] * 2, text("Ho"),
         judged(9, fixed=("f1",))],
    )  # fmt: skip
    await finish(loop)
    assert [f.problem for f in loop.run.iterations[0].findings] == ["dull"]
    assert any("names 1 of 3" in w for w in loop.run.warnings)


async def test_a_revision_that_changes_nothing_is_not_judged_and_is_shown_as_such() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("dull")), text("Hi")], limits=Limits(max_iterations=1)
    )
    await finish(loop)
    verdict = loop.run.iterations[1].verdict
    assert verdict is not None
    assert verdict.why == "The revision changed nothing."
    assert loop.run.best == 0


async def test_a_cosmetic_revision_is_said_to_be_one_and_its_claims_are_not_believed() -> None:
    loop = refinement(
        [text("Hi there"), judged(5, found("dull")), text("hi   there!", "f1: livelier"),
         judged(9, fixed=("f1",))],
        limits=Limits(max_iterations=1),
    )  # fmt: skip
    await finish(loop)
    revision = loop.run.iterations[1]
    assert not revision.changes[0].confirmed
    assert revision.findings[0].status is Status.OPEN
    assert loop.run.stop_reason is not StopReason.PASSED
    assert any("spacing and punctuation only" in w for w in loop.run.warnings)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("x = 1\n", "x  =  1\n\n", True),
        ("x = 1\n", "x = 2\n", False),
        ("x = 1\n", "x = 1  # one\n", False),
        ("if x:\n  a()\nb()", "if x:\n  a()\n  b()", False),
        ("not python (", "not  python (", True),
    ],
)
def test_code_is_cosmetically_changed_if_it_is_the_same_program(
    old: str, new: str, same: bool
) -> None:
    assert cosmetic(old, new, "code") is same


LINES = st.lists(st.sampled_from(["One two", "one  two.", "ONE", "", " - ", "three"]), max_size=5)


@given(old=LINES, new=LINES)
def test_prose_is_the_same_when_its_words_are(old: list[str], new: list[str]) -> None:
    one, other = "\n".join(old), "\n".join(new)
    words = re.findall(r"\w+", one.lower()), re.findall(r"\w+", other.lower())
    assert cosmetic(one, other, "prose") is (words[0] == words[1])


def test_a_claim_far_from_the_place_it_is_about_is_not_confirmed() -> None:
    old = "\n".join(["a = 1", *["pass"] * 9, "return 1"])
    far, near = old.replace("a = 1", "a = 2"), old.replace("return 1", "return 2")
    assert not changes("f1: mended", (FINDING,), old, far, "prose")[0].confirmed
    assert changes("f1: mended", (FINDING,), old, near, "prose")[0].confirmed


async def test_going_back_and_forth_between_two_texts_stops_as_a_plateau_and_says_so() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("dull")), text("Ho"), judged(3, found("odd")), text("Ho")],
        limits=Limits(patience=9),
    )
    await finish(loop)
    assert loop.run.stop_reason is StopReason.PLATEAU
    assert "iteration 2 is iteration 1 over again" in loop.run.message
    assert loop.run.text == "Hi"


async def test_the_user_may_go_on_after_going_back_and_forth() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("dull")), text("Ho"), judged(3, found("odd")), text("Ho"),
         text("Hi Ann"), judged(9, fixed=("f1", "f2", "f3"))],
    )  # fmt: skip
    await finish(loop)
    loop.decide(Decision(kind="continue", text="name her"))
    await finish(loop)
    assert loop.run.text == "Hi Ann"


async def test_on_a_stall_the_temperature_rises_and_what_failed_is_named() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("dull")), text("Ho ho"), judged(3), text("Hey you"), judged(4)]
    )
    await finish(loop)
    first, second = requests(loop)[2], requests(loop)[4]
    assert first.temperature == 0 < second.temperature
    assert "Ho ho" in second.messages[-1].content
    assert "Ho ho" not in first.messages[-1].content


async def test_a_text_that_its_revision_only_repeats_is_written_anew() -> None:
    """From what is wrong with it and without its words, which would only be repeated again."""
    loop = refinement(REPEATED)
    await finish(loop)
    mend, anew = requests(loop)[2:4]
    assert "Good day" in mend.messages[-1].content
    assert "Good day" not in anew.messages[-1].content
    assert "dull" in anew.messages[-1].content
    assert anew.temperature > 0.5
    assert [i.text for i in loop.run.iterations] == ["Good day", "Good day", "Hey you"]


CODE = TASK.model_copy(update={"form": "code"})


@pytest.mark.parametrize(
    ("task", "scores", "anew"),
    [(CODE, (0.2, 0.1), True), (CODE, (0.2,), False), (TASK, (0.2, 0.1), False)],
    ids=["several of code", "one of code", "several of prose"],
)
async def test_code_whose_first_texts_all_miss_a_check_is_written_anew(
    task: Task, scores: tuple[float, ...], anew: bool
) -> None:
    """A weak model mends nothing that it is shown, and several chances have shown it weak."""
    write = code if task.form == "code" else text
    replies = [*(write(f"x = {n}") for n in range(len(scores))), write("y = 9")]
    check = Scores(*scores, 1.0, target=1.0)
    limits = Limits(candidates=len(scores), max_iterations=1)
    loop = refinement(replies, task, checks=[check], limits=limits)
    await finish(loop)
    prompt = requests(loop)[-1].messages[-1].content
    assert ("x = 0" not in prompt) is anew
    assert "scored" in prompt, "what the checks found is told either way"
    assert loop.run.text.strip() == "y = 9"


async def test_what_the_user_says_of_such_code_is_acted_on_in_its_own_words() -> None:
    replies = [code("x = 0"), code("x = 1"), code("y = 9")]
    loop = refinement(replies, CODE, checks=[Scores(0.2, 0.1, 0.3, target=1.0)],
                      limits=Limits(candidates=2, max_iterations=0))  # fmt: skip
    await finish(loop)
    loop.decide(Decision(kind="continue", text="keep the name x", rounds=1))
    await finish(loop)
    assert "x = 0" in requests(loop)[-1].messages[-1].content


@pytest.mark.parametrize(
    "own", [{"prompts": Prompts(revise="MEND {text}")}, {"limits": Limits(memory="all")}]
)
async def test_but_not_where_the_user_said_how_to_revise_or_what_to_remember(own: Any) -> None:
    loop = refinement(REPEATED, **own)
    await finish(loop)
    assert "Good day" in requests(loop)[3].messages[-1].content


async def test_a_text_of_the_user_s_is_never_written_anew() -> None:
    loop = refinement(REPEATED[1:], draft="Good day")
    await finish(loop)
    assert "Good day" in requests(loop)[2].messages[-1].content


async def test_nor_is_a_revision_of_a_text_of_the_user_s() -> None:
    """What the user wrote by hand lives on in it, and would be lost with its words."""
    loop = refinement(
        [text("Hi"), judged(2), judged(3, found("cold")),
         text("Good day"), judged(5, found("dull")), text("Good day"),
         text("Hey you"), judged(9, fixed=("f1",))],
        limits=Limits(max_iterations=0),
    )  # fmt: skip
    await finish(loop)
    loop.decide(Decision(kind="edit", text="Good evening"))
    await finish(loop)
    loop.decide(Decision(kind="continue", rounds=3))
    await finish(loop)
    assert [i.text for i in loop.run.iterations][-3:] == ["Good day", "Good day", "Hey you"]
    assert "Good day" in requests(loop)[-2].messages[-1].content


async def test_a_weakness_that_comes_back_is_shown_as_regressed() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("too dull")), text("Ho"),
         judged(6, found("too curt"), fixed=("f1",)), text("He"),
         judged(7, found("Too DULL"), fixed=("f2",))],
        limits=Limits(max_iterations=2),
    )  # fmt: skip
    await finish(loop)
    statuses = {f.id: f.status for f in loop.run.iterations[2].findings}
    assert statuses == {"f1": Status.REGRESSED, "f2": Status.RESOLVED}


async def test_something_nobody_asked_for_can_be_named_as_a_finding() -> None:
    extra = found("A joke that the task does not ask for.", quote="knock knock")
    extra["criterion"] = "scope"
    loop = refinement(
        [text("Hi, knock knock"), judged(9, extra), text("Hi"), judged(9, fixed=("f1",))]
    )
    await finish(loop)
    assert loop.run.iterations[0].findings[0].criterion == "scope"
    for request in requests(loop)[1:2]:
        assert "scope" in json.dumps(request.json_schema)
        assert "the task does not ask for" in request.messages[-1].content


async def test_the_task_stands_unchanged_at_the_head_of_every_call() -> None:
    loop = refinement(
        [text("Hi"), judged(9), criticised(*[found(p) for p in ("dull", "curt", "stale")]),
         text("Ho"), judged(9, fixed=("f1", "f2", "f3"))],
    )  # fmt: skip
    await finish(loop)
    heads = {request.messages[0].content for request in requests(loop)}
    assert len(requests(loop)) == 5
    assert len(heads) == 1
    assert TASK.text in heads.pop()
