"""Guards against loops that only seem to improve a text."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import (
    CODE,
    TASK,
    Scores,
    code,
    critique,
    decide,
    finding,
    finish,
    judgement,
    prompts,
    refinement,
    requests,
    text,
)

from ipyrefine.core.decisions import Continue, Edit
from ipyrefine.core.findings import changes, is_cosmetic
from ipyrefine.core.model import (
    LOW_SCORE,
    Change,
    Finding,
    Limits,
    Outcome,
    Severity,
    Stage,
    Status,
    StopReason,
    Task,
)
from ipyrefine.core.ports import Reply
from ipyrefine.core.prompts import Prompts

# A draft, a revision that only repeats it, and one that does not.
REPEATED = (
    text("Good day"),
    judgement(5, finding("dull")),
    text("Good day"),
    text("Hey you"),
    judgement(9, fixed=("f1",)),
)


async def test_a_critique_that_names_too_little_is_asked_for_once_more() -> None:
    full = critique(*[finding(p) for p in ("dull", "curt", "stale")])
    loop = refinement(
        [
            text("Hi"),
            judgement(9),
            critique(finding("dull")),
            full,
            text("Ho"),
            judgement(9, fixed=("f1", "f2", "f3")),
        ],
        limits=Limits(min_findings=3),
    )
    await finish(loop)
    assert any("it names 1 of 3 findings" in w for w in loop.state.warnings)
    assert len(loop.state.iterations[0].findings) == 3


async def test_what_a_critique_names_is_kept_even_if_it_stays_too_little() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(9),
            *[critique(finding("dull"))] * 2,
            text("Ho"),
            judgement(9, fixed=("f1",)),
        ],
        limits=Limits(min_findings=3),
    )
    await finish(loop)
    assert [f.problem for f in loop.state.iterations[0].findings] == ["dull"]
    assert any("names 1 of 3" in w for w in loop.state.warnings)


@pytest.mark.parametrize(
    "replies", [("{", "["), (Reply(text="{", finish="incomplete"),)], ids=["unreadable", "broken"]
)
async def test_a_critique_that_cannot_be_read_is_said_and_blocks_nothing(
    replies: tuple[Any, ...],
) -> None:
    loop = refinement([text("Hi"), judgement(9), *replies], limits=Limits(max_revisions=0))
    await finish(loop)
    verdict = loop.state.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis) == (Outcome.PASS, "judge")
    assert any(w.startswith("No critique of the draft") for w in loop.state.warnings)


async def test_a_revision_that_changes_nothing_is_not_judged_and_is_shown_as_such() -> None:
    loop = refinement(
        [text("Hi"), judgement(5, finding("dull")), text("Hi")], limits=Limits(max_revisions=1)
    )
    await finish(loop)
    verdict = loop.state.iterations[1].verdict
    assert verdict is not None
    assert verdict.reason == "The revision changed nothing."
    assert loop.state.best == 0


async def test_a_cosmetic_revision_is_remarked_on() -> None:
    loop = refinement(
        [
            text("Hi there"),
            judgement(5, finding("dull")),
            text("hi   there!", "f1: livelier"),
            judgement(6),
        ],
        limits=Limits(max_revisions=1),
    )
    await finish(loop)
    assert "Revision 1 changes spacing and punctuation only." in loop.state.warnings


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
    assert is_cosmetic(old, new, "code") is same


LINES = st.lists(st.sampled_from(["One two", "one  two.", "ONE", "", " - ", "three"]), max_size=5)


@given(old=LINES, new=LINES)
def test_prose_is_the_same_when_its_words_are(old: list[str], new: list[str]) -> None:
    one, other = "\n".join(old), "\n".join(new)
    words = re.findall(r"\w+", one.lower()), re.findall(r"\w+", other.lower())
    assert is_cosmetic(one, other, "prose") is (words[0] == words[1])


def test_a_note_counts_where_it_names_a_finding_that_was_to_be_acted_on() -> None:
    known = Finding(id="f1", criterion="tone", severity=Severity.MINOR, problem="wrong")
    notes = "Plan.\n- **f1**: mended\nf2: never asked for\nf1 is not a note"
    assert changes(notes, (known,)) == (Change(finding="f1", summary="mended"),)


async def test_going_back_and_forth_between_two_texts_stops_as_a_plateau_and_says_so() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Ho"),
            judgement(3, finding("odd")),
            text("Ho"),
        ],
        limits=Limits(patience=9),
    )
    await finish(loop)
    assert loop.state.stop_reason is StopReason.PLATEAU
    assert "Revision 2 repeats revision 1" in loop.state.message
    assert loop.state.text == "Hi"


async def test_the_user_may_go_on_after_going_back_and_forth() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Ho"),
            judgement(3, finding("odd")),
            text("Ho"),
            text("Hi Ann"),
            judgement(9, fixed=("f1", "f2", "f3")),
        ],
    )
    await finish(loop)
    await decide(loop, Continue(guidance="name her"))
    assert loop.state.text == "Hi Ann"


async def test_on_a_stall_the_temperature_rises_and_what_failed_is_named() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Ho ho"),
            judgement(3),
            text("Hey you"),
            judgement(4),
        ]
    )
    await finish(loop)
    first, second = requests(loop, Stage.REVISE)[:2]
    assert first.temperature == 0 < second.temperature
    assert "Ho ho" in second.messages[-1].content
    assert "Ho ho" not in first.messages[-1].content


async def test_a_text_that_its_revision_only_repeats_is_written_anew() -> None:
    """From what is wrong with it and without its words, which would only be repeated again."""
    loop = refinement(REPEATED)
    await finish(loop)
    mend, anew = prompts(loop, Stage.REVISE)
    assert "Good day" in mend
    assert "Good day" not in anew
    assert "dull" in anew
    assert requests(loop, Stage.REVISE)[1].temperature > 0.5
    assert [i.text for i in loop.state.iterations] == ["Good day", "Good day", "Hey you"]


@pytest.mark.parametrize(
    ("task", "scores", "anew"),
    [(CODE, (0.2, 0.1), True), (CODE, (0.2,), False), (TASK, (0.2, 0.1), False)],
    ids=["several of code", "one of code", "several of prose"],
)
async def test_code_whose_drafts_all_miss_a_check_is_written_anew(
    task: Task, scores: tuple[float, ...], anew: bool
) -> None:
    """A weak model mends nothing that it is shown, and several chances have shown it weak."""
    write = code if task.form == "code" else text
    replies = [*(write(f"x = {n}") for n in range(len(scores))), write("y = 9")]
    check = Scores(*scores, 1.0, target=1.0, basis="examples")
    limits = Limits(candidates=len(scores), max_revisions=1)
    loop = refinement(replies, task, checks=[check], limits=limits)
    await finish(loop)
    prompt = prompts(loop)[-1]
    assert ("x = 0" not in prompt) is anew
    assert "scored" in prompt, "what the checks found is told either way"
    assert loop.state.text.strip() == "y = 9"


async def test_prose_that_an_edit_did_not_mend_is_written_anew() -> None:
    """Of 41 drafts of a small model, edits mended 2 and samples 6."""
    check = Scores(0.2, 0.1, 1.0, target=1.0, basis="constraints")
    replies = [text("Good day"), text("Good days"), text("Hey you")]
    loop = refinement(replies, TASK, checks=[check], limits=Limits(opinion="never"))
    await finish(loop)
    mend, anew = prompts(loop, Stage.REVISE)
    assert "Good day" in mend
    assert "Good day" not in anew
    assert "scored" in anew, "what the checks found is told"


@pytest.mark.parametrize("task", [TASK, CODE], ids=["prose", "code"])
@pytest.mark.parametrize(("second", "anew"), [(0.2, True), (0.5, False)], ids=["not", "a little"])
async def test_a_revision_that_did_not_help_is_not_edited_further(
    task: Task, second: float, anew: bool
) -> None:
    """It ties with the text before, so the next one goes on from it."""
    write = code if task.form == "code" else text
    replies = [write("x = 0"), write("x = 1"), write("y = 9")]
    check = Scores(0.2, second, 1.0, target=1.0, basis="examples")
    loop = refinement(replies, task, checks=[check], limits=Limits(opinion="never"))
    await finish(loop)
    assert loop.state.iterations[2].parent == 1
    assert ("x = 1" not in prompts(loop, Stage.REVISE)[1]) is anew


@pytest.mark.parametrize(
    ("how", "anew"),
    [
        ({}, [False, True]),
        ({"limits": Limits(revise="edit")}, [False, False]),
        ({"limits": Limits(revise="anew")}, [True, True]),
        ({"revise_anew": True}, [True, True]),
        ({"basis": "function"}, [False, False]),
        ({"draft": "x = 0"}, [False, False]),
    ],
    ids=["auto", "edit", "anew", "known as better anew", "a function's", "a user's text"],
)
async def test_code_that_misses_an_example_is_edited_first_then_written_anew(
    how: dict[str, Any], anew: list[bool]
) -> None:
    basis = how.pop("basis", "examples")
    check = Scores(0.2, 0.1, 1.0, target=1.0, basis=basis)
    drafted = [] if "draft" in how else [code("x = 0")]
    loop = refinement([*drafted, code("x = 1"), code("y = 9")], CODE, checks=[check], **how)
    await finish(loop)
    assert ["x = 0" not in prompt for prompt in prompts(loop, Stage.REVISE)] == anew


async def test_what_the_user_says_of_such_code_is_acted_on_in_its_own_words() -> None:
    replies = [code("x = 0"), code("x = 1"), code("y = 9")]
    loop = refinement(
        replies,
        CODE,
        checks=[Scores(0.2, 0.1, 0.3, target=1.0, basis="examples")],
        limits=Limits(candidates=2, max_revisions=0),
    )
    await finish(loop)
    await decide(loop, Continue(guidance="keep the name x"))
    assert "x = 0" in prompts(loop)[-1]


@pytest.mark.parametrize(
    "own", [{"prompts": Prompts(revise="MEND {text}")}, {"limits": Limits(memory="all")}]
)
async def test_but_not_where_the_user_said_how_to_revise_or_what_to_remember(own: Any) -> None:
    loop = refinement(REPEATED, **own)
    await finish(loop)
    assert "Good day" in prompts(loop, Stage.REVISE)[1]


async def test_a_text_of_the_user_s_is_never_written_anew() -> None:
    loop = refinement(REPEATED[1:], draft="Good day")
    await finish(loop)
    assert "Good day" in prompts(loop, Stage.REVISE)[1]


async def test_nor_is_a_revision_of_a_text_of_the_user_s() -> None:
    """What the user wrote by hand lives on in it, and would be lost with its words."""
    loop = refinement(
        [
            text("Hi"),
            judgement(2),
            judgement(3, finding("cold")),
            text("Good day"),
            judgement(5, finding("dull")),
            text("Good day"),
            text("Hey you"),
            judgement(9, fixed=("f1",)),
        ],
        limits=Limits(max_revisions=0),
    )
    await finish(loop)
    await decide(loop, Edit(text="Good evening"))
    await decide(loop, Continue(revisions=3))
    assert [i.text for i in loop.state.iterations][-3:] == ["Good day", "Good day", "Hey you"]
    assert "Good day" in prompts(loop)[-2]


async def test_a_weakness_that_comes_back_is_shown_as_regressed() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("too dull")),
            text("Ho"),
            judgement(6, finding("too curt"), fixed=("f1",)),
            text("He"),
            judgement(7, finding("Too DULL"), fixed=("f3",)),
            text("Hey"),
            judgement(7),
        ],
        limits=Limits(max_revisions=3),
    )
    await finish(loop)
    named = [f for f in loop.state.iterations[2].findings if f.check != LOW_SCORE]
    assert {f.problem: f.status for f in named} == {
        "too dull": Status.REGRESSED,
        "too curt": Status.RESOLVED,
    }


async def test_something_nobody_asked_for_can_be_named_as_a_finding() -> None:
    extra = finding("A joke that the task does not ask for.", quote="knock knock")
    extra["criterion"] = "scope"
    loop = refinement(
        [text("Hi, knock knock"), judgement(9, extra), text("Hi"), judgement(9, fixed=("f1",))]
    )
    await finish(loop)
    assert loop.state.iterations[0].findings[0].criterion == "scope"
    assert "scope" in json.dumps(requests(loop, Stage.CRITIQUE)[0].json_schema)
    assert "the task does not ask for" in prompts(loop, Stage.CRITIQUE)[0]


async def test_the_task_stands_unchanged_at_the_head_of_every_call() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(9),
            critique(*[finding(p) for p in ("dull", "curt", "stale")]),
            text("Ho"),
            judgement(9, fixed=("f1", "f2", "f3")),
        ],
    )
    await finish(loop)
    heads = {request.messages[0].content for request in requests(loop)}
    assert len(requests(loop)) == 5
    assert len(heads) == 1
    assert TASK.text in heads.pop()
