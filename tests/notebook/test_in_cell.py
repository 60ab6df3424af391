"""What a text changes in the cell that its draft is from, as a page shows it there."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shells import Front

from ipyrefine.notebook.in_cell import hunks

OLD = "import math\n\ndef area(r):\n    return math.pi * r"
NEW = OLD.replace("* r", "* r**2")
LINES = st.lists(st.sampled_from(["", "a", "a b", "a c", "    d", "é𝄞 x"]), min_size=1, max_size=8)


def with_changes(old: str, found: list[dict[str, Any]]) -> str:
    """Return a text with its changes made, which have to fit it."""
    lines, made, at = old.split("\n"), list[str](), 0
    for one in found:
        gone = ["".join(pieces) for pieces in one["gone"]]
        made += lines[at : one["at"]]
        at = one["at"] + len(gone)
        assert gone == lines[one["at"] : at]
        made += ["".join(pieces) for pieces in one["added"]]
    return "\n".join([*made, *lines[at:]])


@settings(max_examples=40)
@given(LINES, LINES)
def test_the_changes_make_the_new_text_of_the_old_one(old, new):
    before, after = "\n".join(old), "\n".join(new)
    made = with_changes(before, hunks(before, after))
    assert made.rstrip("\n") == after.rstrip("\n")
    assert hunks(before, before) == []


def test_what_differs_within_a_line_is_every_second_piece():
    [one] = hunks(OLD, NEW)
    assert one["at"] == 3
    assert [pieces[1::2] for pieces in one["added"]] == [["**2"]]
    assert hunks("a", "b\na") == [{"at": 0, "gone": [], "added": [["b"]]}]
    assert hunks("a\nb", "a") == [{"at": 1, "gone": [["b"]], "added": []}]


@pytest.mark.parametrize(
    ("options", "source", "reply", "placed"),
    [
        ("--set cell=home", OLD, f"```python\n{NEW}\n```", NEW),
        ("--set cell=home", f"# Areas.\n%%time\n{OLD}", f"```python\n{NEW}\n```", ...),
        ("--set cell=home -p prose --draft", "We is.", "We are.", "We are."),
        ("--draft", OLD, f"```python\n{NEW}\n```", NEW),  # the line of the magic goes, too
        ("", "Write area(r).", f"```python\n{NEW}\n```", None),
        ("--set cell=home", "# Write area(r).", f"```python\n{NEW}\n```", None),
    ],
)
def test_a_draft_is_compared_with_its_cell_as_accepting_would_change_that(
    monkeypatch, options, source, reply, placed
):
    front = Front(monkeypatch, [reply] * 4)
    front.shell.user_ns["changed"] = lambda text: text not in source
    cell = f"%%refine {options} -n 1 --critique never -c changed\n{source}"
    front.run(cell, "refining")
    run = front.magics.latest
    found = run.origin(run.session.run.best)
    if placed is None:
        assert found is None
        return
    is_named = "cell=home" in options
    assert (found["cell"], found["base"]) == (("home", source) if is_named else ("refining", cell))
    assert found["type"] == ("markdown" if "prose" in options else "code")
    assert run.origin(None) == {
        **found, "hunks": [], "iteration": None,
    }  # fmt: skip
    front.run("%refine accept replace", "later")
    [put] = front.puts
    assert put["expected_source"] == found["base"]
    assert put["text"] == with_changes(found["base"], found["hunks"])
    assert placed in (..., put["text"])
