"""A long text is revised by edits; of selected lines alone, whatever a model writes elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import READY, critique, finding, refinement, requests, text

from ipyrefine.core.edits import Edit, Selection, apply, read_edits
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Stage
from ipyrefine.errors import UsageError

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


async def test_edits_of_a_short_text_are_made_though_none_were_asked_for() -> None:
    run = await revised("Line 7\nLine 8", "f1: seven\n" + edit("Line 7", "Seven.")).run()
    assert run.iterations[1].text == "Seven.\nLine 8"


# A selection

DRAFT = """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop(0)"""
FIXED = DRAFT.replace("pop(0)", "pop()")


def select(first: int, last: int, draft: str = DRAFT) -> Selection:
    return Selection(draft, (first, last))


def test_a_change_inside_the_selection_stays() -> None:
    assert select(8, 9).restore(FIXED) == FIXED


def test_a_change_around_the_selection_is_put_back() -> None:
    written = FIXED.replace("items", "stack").replace("class Stack", "class LIFO")
    restored = select(9, 9).restore(written)
    assert restored == DRAFT.replace("self.items.pop(0)", "self.stack.pop()")


def test_lines_added_inside_stay_and_lines_added_outside_go() -> None:
    written = "import os\n\n" + FIXED.replace("def pop(self):", "def pop(self):\n        # last")
    restored = select(8, 9).restore(written)
    assert restored == FIXED.replace("def pop(self):", "def pop(self):\n        # last")


@pytest.mark.parametrize(
    ("lines", "written", "restored"),
    [
        ((8, 9), "\n".join(DRAFT.split("\n")[:7]), "\n".join(DRAFT.split("\n")[:7])),
        ((8, 9), "def pop(self):\n    return self.items.pop()", FIXED),  # the lines alone
        ((1, 9), "x = 1", "x = 1"),
    ],
)
def test_a_part_that_is_gone_alone_or_the_whole_is_put_in_its_place(
    lines: tuple[int, int], written: str, restored: str
) -> None:
    assert select(*lines).restore(written) == restored


@pytest.mark.parametrize("lines", [(0, 1), (3, 2), (1, 10)])
def test_lines_that_the_draft_lacks_are_refused(lines: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="The draft has 9"):
        Selection(DRAFT, lines)


def test_the_request_names_the_lines_by_number_and_first_words() -> None:
    assert select(5, 9).request == (
        "Change only lines 5 to 9 (from 'def push(self, x):' to 'return self.items.pop(0)') and "
        "repeat all other lines as they are."
    )
    assert select(9, 9).request.startswith("Change only line 9 ('return self.items.pop(0)')")


LINES = st.lists(st.sampled_from(["", "a", "  b", "c = 1", "return c", "\tx"]), min_size=1)


@given(LINES, LINES, st.data())
def test_whatever_is_written_the_lines_around_the_selection_are_the_drafts(
    draft: list[str], written: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(draft)))
    last = data.draw(st.integers(first, len(draft)))
    restored = select(first, last, "\n".join(draft)).restore("\n".join(written)).split("\n")
    before, after = draft[: first - 1], draft[last:]
    assert len(restored) >= len(before) + len(after)
    assert restored[: len(before)] == before
    assert restored[len(restored) - len(after) :] == after
