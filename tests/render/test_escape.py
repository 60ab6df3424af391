"""Foreign text is displayed and never acts; prose in a cell keeps its line breaks."""

import re

import mistune
import pytest
from hostile import texts
from hypothesis import example, given

from ipyrefine.render.escape import fence, plain, strip_colours
from ipyrefine.render.formatting import keep_line_breaks, prose


@given(texts)
def test_plain_text_holds_no_control_but_newline_and_tab(text):
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", plain(text)
    )
    assert plain(plain(text)) == plain(text)


def test_what_was_hidden_is_shown_and_ordinary_text_of_any_script_is_left_alone():
    assert plain("a\x1b[31mb\u202ec\r\nd\te\x7f\ud800") == "a␛[31mb⟨U+202E⟩c\nd\te␡\ufffd"
    scripts = ("naïve 漢字 עברית", "\u0645\u06cc\u200c\u062e", "\U0001f469\u200d\U0001f467 e\u0301")
    assert "".join(map(plain, scripts)) == "".join(scripts)


def test_colours_are_dropped_and_other_escapes_are_not():
    assert strip_colours("\x1b[1;31mred\x1b[0m\x1b[2J") == "red\x1b[2J"


@given(texts)
def test_prose_html_is_only_text_with_each_sign_of_tex_in_a_node_of_its_own(text):
    html = str(prose(text))
    assert set(re.findall(r"<[^>]*>", html)) <= {"<br>", "<span>", "</span>"}
    assert not re.search(r"(?<!<span>)[$\\]", html)


@given(texts)
@example("```\n````\n`````")
def test_a_fence_is_closed_by_its_own_last_line_only(text):
    first, *body, last = fence(text, "py`\nx").split("\n")
    marks = re.match(r"`{3,}", first).group()
    assert (first, last) == (f"{marks}pyx", marks)
    assert not any(re.fullmatch(rf" {{0,3}}`{{{len(marks)},}}\s*", line) for line in body)
    assert "\n".join(body).rstrip("\n") == plain(text).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("Dear Ann,\n\nIt came late.\nWe are sorry.\n\nBest regards,\nBo Lopez\nSupport\n", 3),
        ("Roses are red,\nviolets are blue.", 1),
        ("此致\n敬礼", 1),
        ("مع التحية\nعمر", 1),
        ("Rue 1\\\nParis  \nFrance", 2),
        ("> Rue 1\n> Paris", 1),
        ("- one\n- two\n1. three\n2. four", 0),
        ("# Plan\nGo.\n\nTitle\n=====\nx", 0),
        ("```\na\nb\n```", 0),
        ("| a | b |\n|---|---|\n| 1 | 2 |", 0),
        ("<div>\n<b>x</b>\n</div>", 0),
        ("", 0),
    ],
)
def test_a_line_break_of_a_paragraph_stays_one_in_markdown(text, breaks):
    kept = keep_line_breaks(text)
    assert str(mistune.html(kept)).count("<br") == breaks
    assert [line.rstrip() for line in kept.split("\n")] == [*map(str.rstrip, text.split("\n"))]
