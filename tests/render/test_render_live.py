"""What is shown while a text is written: the stage, the time, and the text or its end."""

import re

from hostile import texts
from hypothesis import given, settings

from ipyrefine.core.runs import Budget, Limits, Run
from ipyrefine.render.live import (
    TAIL_CHARACTERS,
    TAIL_LINES,
    stage_html,
    stream_html,
    tail_html,
    time_html,
)


@settings(deadline=None)
@given(texts)
def test_what_streams_is_text_only(raw):
    html = stage_html(raw, 0, 4) + stream_html(raw, thinking=True) + tail_html(raw, thinking=True)
    assert set(re.findall(r"<(\w+)", html)) <= {"p", "strong", "pre", "code"}


def test_the_stage_is_announced_and_the_time_beside_it_is_not(read_html):
    stage = read_html(stage_html("revise", 2, 4))
    assert stage.text == "Revising · iteration 2 of 4"
    assert ("role", "status") in stage.attributes
    run = Run(seconds=12, limits=Limits(budget=Budget(calls=7)))
    time = read_html(time_html(run))
    assert (time.text.strip(), time.attributes) == ("· 12 s · 7 calls left", set())


def test_the_tail_is_the_end_of_a_long_text(read_html):
    text = read_html(tail_html("\n".join(f"line {i}" for i in range(1000)))).text
    assert text.startswith("⋯")
    assert text.endswith("line 999")
    assert text.count("line ") == TAIL_LINES
    assert read_html(tail_html("x" * 100_000)).text.count("x") == TAIL_CHARACTERS


def test_thinking_is_named_as_such(read_html):
    assert "Thinking…hm" in read_html(tail_html("hm", thinking=True)).text
    assert read_html(stream_html("1", thinking=True)).text == "Thinking…"
    assert read_html(tail_html("hm")).text == "hm"


def test_a_place_for_a_stream_names_it_and_takes_the_keyboard(read_html):
    attributes = read_html(stream_html("abc")).attributes
    assert {("data-stream", "abc"), ("tabindex", "0")} <= attributes
