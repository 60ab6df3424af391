"""Only the selected lines of a draft change, whatever a model writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.core.selection import Selection
from ipyrefine.errors import UsageError

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


def test_a_selection_that_was_removed_leaves_the_rest() -> None:
    written = "\n".join(DRAFT.split("\n")[:7])
    assert select(8, 9).restore(written) == written


def test_an_answer_of_the_selected_lines_alone_is_indented_into_their_place() -> None:
    written = "def pop(self):\n    return self.items.pop()"
    assert select(8, 9).restore(written) == FIXED


def test_the_whole_text_may_be_selected() -> None:
    assert select(1, 9).restore("x = 1") == "x = 1"


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
