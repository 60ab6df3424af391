"""A long text is revised by edits: what is found, what is put in its place, and what misses."""

import pytest
from kit import READY, critique, finding, refinement, requests, text

from ipyrefine.core.edits import Edit, apply, read_edits
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Stage

CODE = "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g(x):\n    return 2\n"


def edit(find: str, replace: str) -> str:
    return f"<find>\n{find}\n</find>\n<replace>\n{replace}\n</replace>\n"


@pytest.mark.parametrize(
    "reply",
    [
        "f1: shorter\n\n" + edit("a b", "c"),
        "f1: shorter\n<<<<<<< SEARCH\na b\n=======\nc\n>>>>>>> REPLACE\n",
        "f1: shorter\n```\n<<<<<<< \na b\n=======\nc\n>>>>>>> \n```\n",
        "f1: shorter\n<find>a b</find><replace>c</replace>",
    ],
)
def test_edits_are_read_in_each_form_that_models_write(reply: str) -> None:
    edits, before = read_edits(reply)
    assert edits == [Edit("a b", "c")]
    assert before.startswith("f1: shorter")


@pytest.mark.parametrize(
    ("old", "find", "replace", "new"),
    [
        ("one two three", "two", "2", "one 2 three"),
        (CODE, "    if x:\n        return 1", "    if not x:\n        return 1", None),
        (CODE, "if x:\n    return 1\n", "if not x:\n    return 1", None),  # its own indentation
        ("The long\nline of “prose”.", 'line  of "prose".', "end.", "The long\nend."),
        ("a\nb\nc\n", "b", "", "a\nc\n"),
        ("a b c", "b ", "", "a c"),
        ("a\nb\n", "b", "b\n\nc", "a\nb\n\nc\n"),
    ],
)
def test_a_piece_is_found_loosely_and_replaced(
    old: str, find: str, replace: str, new: str | None
) -> None:
    changed, misses = apply(old, [Edit(find.strip("\n"), replace)])
    assert misses == []
    assert changed == (new or CODE.replace("if x:", "if not x:"))


def test_an_edit_that_fits_nowhere_or_twice_changes_nothing_and_says_where_it_might() -> None:
    changed, misses = apply(CODE, [Edit("return 2", "return 3"), Edit("if y:\n    return 1", "")])
    assert changed == CODE
    assert [(miss.number, miss.times) for miss in misses] == [(1, 2), (2, 0)]
    assert "if x:\n        return 1" in misses[1].nearest


LONG = "\n".join(f"Line {n} of the letter." for n in range(100))
MISSING = edit("Line 7 of the lettter.", "Seven.")
FITTING = edit("Line 7 of the letter.", "Seven.")


def revised(draft: str, *revisions: str) -> Refinement:
    replies = {
        Stage.CRITIQUE: [critique(finding("Say seven.", quote="Line 7")), READY],
        Stage.REVISE: list(revisions),
    }
    return refinement(replies, draft=draft, limits=Limits(max_revisions=1))


async def test_a_long_text_is_revised_by_edits() -> None:
    loop = revised(LONG, "f1: seven\n" + FITTING)
    run = await loop.run()
    assert run.iterations[1].text == LONG.replace("Line 7 of the letter.", "Seven.")
    assert [change.finding for change in run.iterations[1].changes] == ["f1"]
    assert run.usage.calls == 3


async def test_an_edit_that_misses_is_asked_for_once_more_with_the_nearest_lines() -> None:
    loop = revised(LONG, MISSING, FITTING)
    run = await loop.run()
    assert "Seven." in run.iterations[1].text
    again = requests(loop, Stage.REVISE)[1].messages[-1].content
    assert "Line 7 of the letter." in again


async def test_of_edits_that_miss_twice_the_others_are_made_and_the_user_is_told() -> None:
    loop = revised(LONG, MISSING, MISSING + edit("Line 8 of the letter.", "Eight."))
    run = await loop.run()
    assert "Eight." in run.iterations[1].text
    assert "Line 7 of the letter." in run.iterations[1].text
    assert any("1 of the 2 edits" in warning for warning in run.warnings)


async def test_edits_that_all_miss_leave_the_text_as_it_was() -> None:
    run = await revised(LONG, MISSING, MISSING).run()
    assert run.iterations[1].failure
    assert run.iterations[1].text == LONG


async def test_a_model_that_gives_the_whole_long_text_is_taken_at_its_word() -> None:
    run = await revised(LONG, text(LONG.replace("Line 7 of the letter.", "Seven."))).run()
    assert "Seven." in run.iterations[1].text


async def test_a_short_text_is_asked_for_as_a_whole() -> None:
    loop = revised("Line 7", text("Hello, friend."))
    run = await loop.run()
    assert run.iterations[1].text == "Hello, friend."
    assert "<find>" not in requests(loop, Stage.REVISE)[0].messages[-1].content
