"""Prose that becomes a cell of Markdown keeps the line breaks that its author meant."""

import textwrap

import mistune
import pytest

from ipyrefine.render.formatting import keep_line_breaks

WORDS = "one two three four five six seven eight nine ten eleven twelve " * 8


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("Dear Ann,\n\nIt came late.\nWe are sorry.\n\nBest regards,\nBo Lopez\nSupport\n", 3),
        ("Roses are red,\nviolets are blue.", 1),
        ("此致\n敬礼", 1),
        ("مع التحية\nعمر", 1),
        ("Rue 1\\\nParis  \nFrance", 2),
        ("> Rue 1\n> Paris", 1),
        (textwrap.fill(WORDS, 78), 0),
        (textwrap.fill(WORDS, 65), 0),
        (textwrap.indent(textwrap.fill(WORDS, 78), "> "), 0),
        ("- one\n- two\n1. three\n2. four", 0),
        ("# Plan\nGo.\n\nTitle\n=====\nx", 0),
        ("```\na\nb\n```", 0),
        ("| a | b |\n|---|---|\n| 1 | 2 |", 0),
        ("<div>\n<b>x</b>\n</div>", 0),
        ("", 0),
    ],
)
def test_a_break_is_kept_where_the_next_word_had_room(text: str, breaks: int) -> None:
    kept = keep_line_breaks(text)
    assert str(mistune.html(kept)).count("<br") == breaks
    assert [line.rstrip() for line in kept.split("\n")] == [*map(str.rstrip, text.split("\n"))]
