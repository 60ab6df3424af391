"""Replies → texts: in the form that was asked for, as they stream, cut off, and in circles."""

import json
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.core.critiques import read_critique
from ipyrefine.core.evaluations import read_evaluation
from ipyrefine.core.forms import FORMS, Asked, Splitter, WrittenText, repeats_itself
from ipyrefine.core.model import Form, Material, Task
from ipyrefine.errors import ReplyError

ROWS = tomllib.loads((Path(__file__).parent / "replies.toml").read_text("utf-8"))["row"]


def read(form: str, reply: str, **options: Any) -> WrittenText:
    """What the table of forms reads of a reply."""
    kind: Form = "prose" if form in ("words", "data") else "code"
    task = Task(text="", form=kind).replace(
        text=options.pop("task", ""), language=options.pop("language", "python")
    )
    if given := options.pop("given", ""):
        task = task.replace(materials=(Material(kind="variable", name=given, phrase="", text=""),))
    written: WrittenText = FORMS[form].read(reply, Asked(task, **options))
    return written


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_reply_is_read_in_its_form_or_asked_for_again(row):
    options = {key: row[key] for key in row if key in (*Asked._fields, "language", "given")}
    options["chooses"] = row["form"] == "either"
    if refused := row.get("refused"):
        with pytest.raises(ReplyError, match=refused):
            read(row["form"], row["reply"], **options)
        return
    written = read(row["form"], row["reply"], **options)
    assert (written.text, written.thoughts) == (row["text"], row.get("thoughts", ""))
    if chosen := row.get("chosen"):
        assert [written.form, written.kind, written.language] == chosen


@given(
    reply=st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda part: (
            st.lists(part, max_size=3)
            | st.dictionaries(
                st.sampled_from(["findings", "tests", "ready", "score", "thoughts", "response"])
                | st.text(max_size=3),
                part,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(json.dumps)
)
def test_no_reply_is_anything_but_read_or_refused(reply):
    for form in ("code", "words", "either", "edits", "data", "own"):
        with suppress(ReplyError):
            read(form, reply, base="x = 1")
    for parse in (lambda: read_critique(reply, "Hi"), lambda: read_evaluation(reply)):
        with suppress(ReplyError):
            parse()


# Texts as they stream

PROGRAM = """\
First the plan.

```python
def least(items):

    best = None
    \t
    return best


print(least([]))
```
"""
LETTER = """\
A plan: warm, short.
<text>
Dear all,

a < b, and <textual> is no mark.

</text>
"""


def split(form: Form, reply: str, sizes: list[int]) -> dict[str, str]:
    """What a splitter makes of a reply that comes in pieces of these sizes."""
    splitter, joined, start = Splitter(form), {"text": "", "thinking": ""}, 0
    for size in [*sizes, len(reply)]:
        for kind, piece in splitter.feed(reply[start : start + size]):
            joined[kind] += piece
        start += size
    return joined


@pytest.mark.parametrize(
    ("form", "row", "reply"), [("code", "code", PROGRAM), ("prose", "words", LETTER)]
)
@given(sizes=st.lists(st.integers(1, 9), max_size=60))
def test_what_streams_as_text_is_what_the_reply_s_text_will_be(form, row, reply, sizes):
    """Blank lines in it, whatever pieces it comes in, are neither lost nor an end of it."""
    streamed, written = split(form, reply, sizes), read(row, reply)
    assert streamed["text"].strip("\n") == written.text
    assert streamed["thinking"].strip() == written.thoughts


# Replies that go round in circles


LINE = "He was a member of the army and the guard.\n"
TABLE = "".join(f"assert f({n}) == {n * n}, 'square of {chr(97 + n)}'\n" for n in range(26))


@pytest.mark.parametrize(
    ("reply", "circles"),
    [
        (LINE * 20, True), ("".join(f"{n}. {LINE}" for n in range(40)), True),
        (TABLE + LINE * 60, True), (TABLE, False), (LINE * 3, False), ("", False),
    ],
    ids=["a line", "numbered", "at its end", "like lines", "a few times", "nothing"],
)  # fmt: skip
def test_a_reply_repeats_itself_when_its_end_is_one_thing_over_and_over(reply, circles):
    assert repeats_itself(reply) is circles
