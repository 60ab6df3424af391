"""Replies → records: where a text begins and ends, also when cut off; schemas and their parsers."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.core.critiques import parse_critique
from ipyrefine.core.evaluations import parse_evaluation
from ipyrefine.core.model import Form
from ipyrefine.core.replies import Splitter, parse_text, repeats_itself
from ipyrefine.errors import ReplyError

# Texts


@pytest.mark.parametrize(
    ("reply", "text", "thoughts"),
    [
        ("Plan.\n<text>\nHi.\nBye.</text>", "Hi.\nBye.", "Plan."),
        ("Plan.\n<text>\nHi. </text>\n\n", "Hi. ", "Plan."),
        ("<text>\nHi.</text>\n\n<text>\nHi.</text>", "Hi.", ""),
        ("<text>\nHi.</text>\n\n<text>\nHi.\n</text>", "Hi.", ""),
        ("1. Who: all.\n2. Plan: <text>Hi.</text>", "Hi.", "1. Who: all.\n2. Plan:"),
        ("Hi, all.</text>\n", "Hi, all.", ""),
        ("<text>Hi.</text>", "Hi.", ""),
    ],
)
def test_a_text_ends_at_its_tag_even_if_that_is_not_on_a_line_of_its_own(
    reply: str, text: str, thoughts: str
) -> None:
    written = parse_text(reply, "prose")
    assert (written.text, written.thoughts) == (text, thoughts)


SVG = "<svg>\n<text>A</text>\n<text x='1'>B</text>\n</svg>"
INLINE = "SVG draws words with <text>A</text> and shapes with <path>."


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (f"<text>\n{SVG}\n</text>", SVG),
        (INLINE, INLINE),
        ("Mark it by <text> in front.", "Mark it by <text> in front."),
    ],
)
def test_the_same_tags_inside_a_text_are_a_part_of_it(reply: str, text: str) -> None:
    assert parse_text(reply, "prose").text == text


# Texts that are cut off


@pytest.mark.parametrize(
    ("reply", "form"),
    [
        ("```python\nx = 1\ny = ", "code"),
        ("```python\nx = 1\n```\nand then\n```python\ny = ", "code"),
        ("x = 1", "code"),
        ("<text>\nHi", "prose"),
        ("Hi", "prose"),
    ],
)
def test_a_cut_text_whose_end_is_not_marked_is_not_whole(reply: str, form: Form) -> None:
    with pytest.raises(ReplyError, match="breaks off"):
        parse_text(reply, form, cut=True)


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


@pytest.mark.parametrize(("form", "reply"), [("code", PROGRAM), ("prose", LETTER)])
@given(sizes=st.lists(st.integers(1, 9), max_size=60))
def test_what_streams_as_text_is_what_the_reply_s_text_will_be(
    form: Form, reply: str, sizes: list[int]
) -> None:
    """Blank lines in it, whatever pieces it comes in, are neither lost nor an end of it."""
    streamed, written = split(form, reply, sizes), parse_text(reply, form)
    assert streamed["text"].strip("\n") == written.text
    assert streamed["thinking"].strip() == written.thoughts


# Schemas


@given(
    reply=st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda part: (
            st.lists(part, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["findings", "questions", "tests", "ready", "fixed", "score", "feedback"]
                )
                | st.text(max_size=3),
                part,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(json.dumps)
)
def test_no_reply_is_anything_but_read_or_refused(reply: str) -> None:
    parsers = (
        lambda: parse_critique(reply, "Hi"),
        lambda: parse_evaluation(reply),
        lambda: parse_text(reply, "code"),
        lambda: parse_text(reply, "prose"),
    )
    for parse in parsers:
        with suppress(ReplyError):
            parse()


# What prompts of the user's reply to

JAVA = "public class A {\n    int size;\n}"


@pytest.mark.parametrize(
    ("reply", "language"),
    [("x = 1", "java"), (JAVA, "java"), (JAVA, "python"), ('{"a": 1}', "python")],
)
def test_code_of_another_language_needs_a_fence(reply: str, language: str) -> None:
    with pytest.raises(ReplyError, match="no code block"):
        parse_text(reply, "code", language=language)
    assert parse_text(reply, "code", language=language, own=True).text == reply


# Replies that go round in circles


LINE = "He was a member of the army and the guard.\n"
TABLE = "".join(f"assert f({n}) == {n * n}, 'square of {chr(97 + n)}'\n" for n in range(26))


@pytest.mark.parametrize(
    ("reply", "circles"),
    [
        (LINE * 20, True),
        ("".join(f"{n}. {LINE}" for n in range(40)), True),
        (TABLE + LINE * 60, True),
        (TABLE, False),
        (LINE * 3, False),
        ("", False),
    ],
    ids=["a line", "numbered", "at its end", "like lines", "a few times", "nothing"],
)
def test_a_reply_repeats_itself_when_its_end_is_one_thing_over_and_over(
    reply: str, circles: bool
) -> None:
    assert repeats_itself(reply) is circles
