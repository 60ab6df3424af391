"""Where the text of a reply begins and ends, also where a small model marks it carelessly."""

import pytest

from ipyrefine.core.replies import Splitter, written


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
def test_a_text_ends_at_its_mark_though_that_is_not_on_a_line_of_its_own(
    reply: str, text: str, thoughts: str
) -> None:
    told = written(reply, "prose")
    assert (told.text, told.thoughts) == (text, thoughts)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<text>\n<svg>\n<text>A</text>\n<text x='1'>B</text>\n</svg>\n</text>",
         "<svg>\n<text>A</text>\n<text x='1'>B</text>\n</svg>"),
        ("SVG draws words with <text>A</text> and shapes with <path>.",
         "SVG draws words with <text>A</text> and shapes with <path>."),
        ("Mark it by <text> in front.", "Mark it by <text> in front."),
    ],
)  # fmt: skip
def test_the_same_marks_inside_a_text_are_a_part_of_it(reply: str, text: str) -> None:
    assert written(reply, "prose").text == text


def test_a_second_end_mark_does_not_stream_as_the_begin_of_another_text() -> None:
    splitter = Splitter("prose")
    told = list(splitter.feed("<text>\nHi.\n</text>\n</text>\nThat was it.\n"))
    assert told == [("text", "Hi.\n"), ("thinking", "That was it.\n")]
