# ruff: noqa: RUF001
"""How a text is revised: by edits, anew, in selected lines alone, and as its user wishes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import (
    CODE,
    READY,
    code,
    critique,
    ended,
    finding,
    finish,
    prompts,
    refinement,
    requests,
    scoring,
    stages,
    text,
)

from ipyrefine.core.edits import Selection, apply, read_edits
from ipyrefine.core.engine import Refinement
from ipyrefine.core.forms import Asked, read_changes
from ipyrefine.core.model import Limits, Stage, StopReason, Task
from ipyrefine.core.points import read_notes
from ipyrefine.core.ports import Reply
from ipyrefine.core.prompts import SAMPLED
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError

# Edits
SOURCE = "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g(x):\n    return 2\n"


def edit(find: str, replace: str) -> str:
    return f"<find>\n{find}\n</find>\n<replace>\n{replace}\n</replace>\n"


def test_edits_are_read_with_what_stands_around_them():
    for reply in (
        "f1: shorter\n\n" + edit("a b", "c"),
        "f1: shorter\n<find>a b</find><replace>c</replace>",
    ):
        assert read_edits(reply) == ([("a b", "c")], "f1: shorter")


@pytest.mark.parametrize(
    ("old", "find", "replace", "new"),
    [
        ("one two three", "two", "2", "one 2 three"),
        ("a\nb\nc\n", "b", "", "a\nc\n"),
        ("a b  \nc\nd", "b\nc", "x", "a x\nd"),
        ("a\nb\n", "b", "b\n\nc", "a\nb\n\nc\n"),
    ],
)
def test_a_piece_is_found_letter_for_letter_and_replaced(old, find, replace, new):
    assert apply(old, [(find, replace)]) == (new, [])


def test_an_edit_that_fits_nowhere_or_twice_changes_nothing():
    changed, misses = apply(SOURCE, [("return 2", "return 3"), ("if y:\n    return 1", "")])
    assert changed == SOURCE
    assert misses[0] == "what edit 1 finds stands in the text 2 times: add to it"
    assert misses[1] == "what edit 2 finds does not stand in the text"


LONG = "\n".join(f"Line {n} of the letter." for n in range(100))
MISSING = edit("Line 7 of the lettter.", "Seven.")
FITTING = "f1: seven\n" + edit("Line 7 of the letter.", "Seven.")


def revised(draft: str, *revisions: str) -> Refinement:
    replies = {
        Stage.CRITIQUE: [critique(finding("Say seven.", quote="Line 7")), READY],
        Stage.REVISE: list(revisions),
    }
    return refinement(replies, draft=draft, limits=Limits(max_revisions=1))


@pytest.mark.parametrize(
    ("draft", "revision"),
    [
        (LONG, FITTING),
        (LONG, text(LONG.replace("Line 7 of the letter.", "Seven."), "f1: seven")),
        ("Line 7 of the letter.\nLine 8", FITTING),
    ],
    ids=["edits", "the whole text", "edits that were not asked for"],
)
async def test_a_text_is_revised_by_edits_or_by_a_whole_new_text(draft, revision):
    run = await revised(draft, revision).run()
    assert run.iterations[1].text == draft.replace("Line 7 of the letter.", "Seven.")
    assert [*run.iterations[1].changes] == ["f1"]
    assert run.usage.calls == 3


async def test_an_edit_that_misses_is_asked_for_once_more():
    loop = revised(LONG, MISSING, FITTING)
    run = await loop.run()
    assert "Seven." in run.iterations[1].text
    again = requests(loop, Stage.REVISE)[1].messages[-1].content
    assert "what edit 1 finds does not stand in the text. Answer again" in again


async def test_of_edits_that_miss_twice_the_others_are_made_and_the_user_is_told():
    loop = revised(LONG, MISSING, MISSING + edit("Line 8 of the letter.", "Eight."))
    run = await loop.run()
    assert "Eight." in run.iterations[1].text
    assert "Line 7 of the letter." in run.iterations[1].text
    assert any("1 of the 2 edits" in warning for warning in run.warnings)


async def test_edits_that_all_miss_leave_the_text_as_it_was():
    run = await revised(LONG, MISSING, MISSING).run()
    assert run.iterations[1].failure
    assert run.iterations[1].text == LONG


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


HEAD = "\n".join(DRAFT.split("\n")[:7])
COMMENTED = FIXED.replace("def pop(self):", "def pop(self):\n        # last")


@pytest.mark.parametrize(
    ("lines", "written", "restored"),
    [
        ((8, 9), FIXED, FIXED),
        (
            (9, 9),
            FIXED.replace("items", "stack").replace("class Stack", "class LIFO"),
            DRAFT.replace("self.items.pop(0)", "self.stack.pop()"),
        ),
        ((8, 9), f"import os\n\n{COMMENTED}", COMMENTED),
        ((8, 9), HEAD, HEAD),
        ((8, 9), "def pop(self):\n    return self.items.pop()", FIXED),
        ((1, 9), "x = 1", "x = 1"),
    ],
    ids=["inside", "around it", "lines added in and out", "it is gone", "it alone", "the whole"],
)
def test_what_is_written_inside_the_selection_stays_and_all_around_is_put_back(
    lines, written, restored
):
    assert select(*lines).restore(written) == restored


@pytest.mark.parametrize("lines", [(0, 1), (3, 2), (1, 10)])
def test_lines_that_the_draft_lacks_are_refused(lines):
    with pytest.raises(UsageError, match="The draft has 9"):
        Selection(DRAFT, lines)


def test_the_request_names_the_lines_by_number_and_first_words():
    assert select(5, 9).request == (
        "Change only lines 5 to 9 (from 'def push(self, x):' to 'return self.items.pop(0)') and "
        "repeat all other lines as they are."
    )
    assert select(9, 9).request.startswith("Change only line 9 ('return self.items.pop(0)')")


LINES = st.lists(st.sampled_from(["", "a", "  b", "c = 1", "return c", "\tx"]), min_size=1)


@given(LINES, LINES, st.data())
def test_whatever_is_written_the_lines_around_the_selection_are_the_drafts(draft, written, data):
    first = data.draw(st.integers(1, len(draft)))
    last = data.draw(st.integers(first, len(draft)))
    restored = select(first, last, "\n".join(draft)).restore("\n".join(written)).split("\n")
    before, after = draft[: first - 1], draft[last:]
    assert len(restored) >= len(before) + len(after)
    assert restored[: len(before)] == before
    assert restored[len(restored) - len(after) :] == after


# Samples, where a writer is too weak to edit
NO_CRITIC = Limits(critique="never")


@pytest.mark.parametrize(
    "note",
    [
        *("f1: shorter", "1. f1: shorter", "F1: shorter", "[f1] shorter", "**f1**: shorter"),
        *("| f1 | shorter |", "f1：shorter"),
        *("f1:\nshorter", "1) f1. shorter", "> f1 (tone): shorter"),
    ],
)
def test_a_note_is_read_in_any_list_form(note):
    notes = f"{note}\n{note.lower().replace('f1', 'f2')}"
    assert read_notes(notes, ["f1", "f2"])[0] == {"f1": "shorter", "f2": "shorter"}


@pytest.mark.parametrize(
    ("note", "ids"),
    [
        ("f1 and f2: both", ["f1", "f2"]), ("- **f1**, **f2** & f3: all", ["f1", "f2", "f3"]),
        ("f1/f3 – both", ["f1", "f3"]), ("f1:\nf2: done", ["f2"]),
        ("f1 is not a note", []), ("as f1 says: no", []), ("f11: x", []),
        ("Plan.\n- **f1**: mended\nf9: never asked for\nf1 is not a note", ["f1"]),
    ],
)  # fmt: skip
def test_a_note_may_be_of_several_findings(note, ids):
    assert [*read_notes(note, ["f1", "f2", "f3"])[0]] == ids


@pytest.mark.parametrize(
    "note",
    [
        *("f1: KEEP: so", "f1 KEEP: so", "**f1**: KEEP – so", "f1: “KEEP”: so", "f1: Keep: so"),
    ],
)
def test_a_contested_finding_is_kept_in_any_form(note):
    assert read_notes(note, ["f1"]) == ({"f1": "so"}, ("f1",))


@pytest.mark.parametrize("why", ["(as asked)", '"as asked"', "because it is asked"])
def test_a_finding_that_is_kept_without_a_colon_is_contested_too(why):
    assert read_notes(f"f1: KEEP {why}", ["f1"]) == ({"f1": why}, ("f1",))
    assert read_notes("f1: KEEP the name, drop the rest", ["f1"])[1] == ()


@pytest.mark.parametrize(
    "reply",
    [
        "```python\nx = 2\n```\n\nf1: shorter",
        "<find>\nx = 1\n</find>\n<replace>\nx = 2\n</replace>\nf1: shorter",
    ],
)
def test_a_note_may_stand_below_the_text(reply):
    written = read_changes(reply, Asked(CODE, base="x = 1"))
    assert written.text == "x = 2"
    assert read_notes(written.thoughts, ["f1"])[0] == {"f1": "shorter"}


@pytest.mark.parametrize("weak", [True, False])
async def test_a_writer_too_weak_to_edit_is_sampled_which_makes_a_draft(weak):
    """From what is wrong with the text and without its words, which it would only repeat."""
    check = scoring(0.2, 0.4, 1.0, target=1.0, basis="examples")
    replies = [code("x = 0"), code("x = 1"), code("y = 9")]
    loop = await ended(replies, CODE, checks=[check], limits=NO_CRITIC, weak_editor=weak)
    asked = requests(loop, Stage.REVISE)
    assert [("x = " in one.messages[-1].content) for one in asked] == [not weak] * 2
    assert [one.temperature for one in asked] == [SAMPLED if weak else None] * 2
    names = ["Draft 2", "Draft 3"] if weak else ["Revision 1", "Revision 2"]
    assert [loop.state.name(n) for n in (1, 2)] == names
    assert loop.state.message == f"{names[1]} passes."


async def test_a_text_of_the_user_s_is_always_edited():
    limits = Limits(max_revisions=1, revise="sample")
    loop = await ended([critique(finding("dull")), text("Ho"), READY], draft="Hi", limits=limits)
    assert "Hi" in prompts(loop, Stage.REVISE)[0]


# A wish of the user's

SLOW = "def has(xs, x):\n    return x in list(xs)"
BETTER = code("def has(xs, x):\n    return x in set(xs)")
STILL = critique(finding("It still walks through a list."))
WISHED: dict[str, tuple[dict[str, list[str]], dict[str, Any], list[str]]] = {
    "it is met, then read": ({"revise": [BETTER], "critique": [READY]}, {}, ["revise", "critique"]),
    "a critic finds that it is missed": (
        {"revise": [code(SLOW + "  #"), BETTER], "critique": [STILL, READY]},
        {},
        ["revise", "critique", "revise", "critique"],
    ),
    "where it is always read, that comes first": (
        {"revise": [BETTER], "critique": [STILL, READY]},
        {"limits": Limits(critique="always")},
        ["critique", "revise", "critique"],
    ),
    "by a writer too weak to criticise": ({"revise": [BETTER]}, {"weak_critic": True}, ["revise"]),
    "by one too weak to edit": (
        {"revise": [BETTER]},
        {"weak_critic": True, "weak_editor": True},
        ["revise"],
    ),
}


@pytest.mark.parametrize("case", WISHED)
async def test_what_the_user_wants_changed_in_a_text_of_their_own_is_done_at_once(case):
    replies, options, expected = WISHED[case]
    wish = "Make it O(1)."
    loop = refinement(replies, CODE.replace(text=wish), draft=SLOW, wish=wish, **options)
    assert stages(await finish(loop)) == expected
    assert loop.state.text.endswith("set(xs)")
    read = "critique" in replies
    assert loop.state.stop_reason is (StopReason.PASSED if read else StopReason.UNJUDGED)


class Has:
    def __init__(self, word: str) -> None:
        self.name, self._word = f"has {word}", word

    async def __call__(self, text: str, task: Task) -> Result:
        return Result(name=self.name, passed=self._word in text, basis="tests")


@pytest.mark.parametrize("repeated", [text("neither"), Reply(text="", finish="length")])
async def test_a_text_that_only_repeats_another_is_no_better_than_it(repeated):
    replies = {Stage.DRAFT: [text("only a")], Stage.REVISE: [text("neither"), *[repeated] * 3]}
    loop = await ended(replies, checks=[Has("a"), Has("b")], limits=Limits(critique="never"))
    assert (loop.state.best, loop.state.text) == (0, "only a")


async def test_a_revision_that_changes_nothing_is_no_progress_that_others_are_held_to():
    replies = {
        Stage.DRAFT: [text("neither")],
        Stage.REVISE: [text(one) for one in ("neither", "only a", "just a", "a and b")],
    }
    limits = Limits(critique="never", patience=2)
    loop = await ended(replies, checks=[Has("a"), Has("b")], limits=limits)
    assert loop.state.text == "a and b"
