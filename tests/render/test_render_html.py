"""A run as HTML: complete, harmless, and readable without style."""

import re
import time

import pytest
from hostile import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyrefine.core.model import (
    Budget,
    Finding,
    Limits,
    Outcome,
    Setup,
    Severity,
    StopReason,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import labels
from ipyrefine.render.escape import html_code, plain, strip_colours
from ipyrefine.render.html import (
    TAIL_CHARACTERS,
    TAIL_LINES,
    View,
    finding_html,
    iteration_html,
    record_html,
    spent_html,
    stage_html,
    stream_html,
    summary_line,
    tail_html,
    time_html,
)
from ipyrefine.render.style import STYLE

OUR_TAGS = re.compile(
    "div|style|p|strong|span|em|details|summary|ul|li|pre|code|ins|del|small|blockquote|br"
    "|svg|title|line|text|circle|mark|button|table|tr|th|td"
)
OUR_ATTRIBUTES = re.compile(
    "class|style|open|tabindex|role|aria-live|aria-hidden|viewbox|width|height|font-size|fill"
    "|x|y|x1|x2|y1|y2|cx|cy|r|stroke|stroke-dasharray|stroke-width|opacity|text-anchor"
    "|font-weight|type|scope"
)
BARE = Setup(task=Task(text="Write."))
PROGRAM_OUTPUT = {"detail", "thoughts"}


@settings(max_examples=60, deadline=None)
@given(raw=texts, form=st.sampled_from(["code", "prose"]))
def test_no_text_in_any_field_becomes_markup_and_all_of_it_is_shown(raw, form, make_run, read_html):
    fields = {}

    def say(field):
        fields[field] = f"«{field}:{raw}»"
        return fields[field]

    page = read_html(record_html(make_run(say, form)))
    assert all(OUR_TAGS.fullmatch(tag) for tag in page.tags)
    assert all(OUR_ATTRIBUTES.fullmatch(name) for name, _ in page.attributes)
    assert page.balanced
    assert not [v for _, v in page.attributes if "«" in v or "script" in v]
    for field, value in fields.items():
        text = strip_colours(value) if field in PROGRAM_OUTPUT else value
        assert plain(text) in page.text, field


@settings(deadline=None)
@given(raw=texts, language=st.sampled_from(["python", "json", ""]))
def test_highlighted_code_is_the_same_text(raw, language, read_html):
    page = read_html(html_code(raw, language))
    assert page.tags <= {"span"}
    assert page.text == plain(raw)


def test_code_is_highlighted_with_classes_that_the_style_colours():
    names = set(
        re.findall(r'class="(rf-t-k\w?)"', html_code("def f():\n    return None", "python"))
    )
    assert names == {"rf-t-k", "rf-t-kc"}
    assert all(f".{name}" in STYLE for name in names)


def test_every_style_rule_stays_inside_the_panel():
    flat = re.sub(r"@media[^{]*\{|:is\([^)]*\)", "", STYLE)
    selectors = re.findall(r"([^{}]+)\{", flat)
    assert selectors
    for selector in ",".join(selectors).split(","):
        assert selector.strip().startswith(".ipyrefine")


def test_a_text_can_be_compared_with_the_best_instead_of_its_parent(make_run):
    run = make_run().model_copy(update={"best": 2})
    assert "Difference from iteration 0" in iteration_html(run, 1)
    assert "Difference from iteration 2" in iteration_html(run, 1, view=View(best=True))
    assert "Difference from iteration" not in iteration_html(run, 0)
    assert 'rf-sides"' in iteration_html(run, 1, view=View(sides=True))


def test_the_record_shows_the_chosen_text_before_the_iterations(make_run, read_html):
    text = read_html(record_html(make_run(form="prose"))).text
    assert text.index("the message") < text.index("the revised") < text.index("Draft")
    assert text.index("Draft") < text.index("Revision 1") < text.index("Revision 2")


def test_the_summary_is_one_line_with_everything_that_counts(make_run, read_html):
    page = read_html(summary_line(make_run()))
    assert page.text == (
        "✓ PASS · tests · score 0.91 · best: revision 1 · 2 of 4 revisions · 3,456 tokens · 12 s"
        " · $0.0012 · stopped: passed"
    )


def test_the_summary_of_a_running_run_names_its_stage(make_run, read_html):
    run = make_run().model_copy(update={"stop_reason": None, "stage": "judge"})
    assert read_html(summary_line(run)).text.startswith("Judging…")


def test_an_unknown_cost_is_left_out(make_run):
    run = make_run()
    usage = run.usage.model_copy(update={"cost": None})
    assert "$" not in summary_line(run.model_copy(update={"usage": usage}))


def test_an_iteration_shows_what_must_not_be_overlooked(make_run, read_html):
    run = make_run()
    first = read_html(iteration_html(run, 0)).text
    assert "⚠ doubtful: quote not in the text" in first
    assert "✗ failed" in first
    assert "? no result" in first
    assert "■ blocking" in first
    second = read_html(iteration_html(run, 1)).text
    assert "★ best" in second
    assert "Difference from iteration 0" in second
    assert "No usable text from the model: the flaw" in read_html(iteration_html(run, 2)).text


def test_open_findings_come_before_settled_ones_and_blocking_before_minor(make_run):
    html = iteration_html(make_run(), 0)
    marks = ["the id", ">f4<", ">f2<", ">Doubtful<", ">f3<"]
    assert sorted(marks, key=html.index) == marks


def test_an_iteration_is_folded_unless_asked(make_run):
    run = make_run()
    assert iteration_html(run, 0).startswith('<details class="rf-iteration"><summary>')
    assert iteration_html(run, 0, open=True).startswith('<details class="rf-iteration" open>')


def test_an_iteration_that_does_not_exist_is_an_error(make_run):
    with pytest.raises(IndexError):
        iteration_html(make_run(), 9)


def test_a_text_without_a_verdict_is_never_shown_as_an_outcome():
    run = Run(setup=BARE, iterations=(Iteration(number=0, text="x"),))
    assert "NOT VERIFIED" in summary_line(run)
    assert "rf-badge" not in iteration_html(run, 0)


def test_what_nothing_decides_on_is_not_judged_and_grey():
    verdict = Verdict(outcome=Outcome.NOT_JUDGED, score=None, reason="Nothing can be run.")
    run = Run(setup=BARE, iterations=(Iteration(number=0, text="x", verdict=verdict),))
    html = iteration_html(run, 0)
    assert '<strong class="rf-badge rf-quiet">? NOT JUDGED</strong>' in html
    assert "Nothing can be run." in html


def test_a_run_that_only_began_renders(read_html):
    assert read_html(record_html(Run.begin(BARE))).balanced


@pytest.mark.parametrize("reason", list(StopReason))
def test_every_stop_reason_has_a_sentence_and_the_engines_own_comes_first(reason, read_html):
    run = Run(setup=BARE, stop_reason=reason)
    assert labels.STOP_SENTENCES[reason] in read_html(record_html(run)).text
    run = run.model_copy(update={"message": "Precisely this."})
    assert "Precisely this." in read_html(record_html(run)).text


def test_what_is_left_of_the_budget_is_never_negative(make_run):
    def left(**bounds):
        setup = Setup(task=BARE.task, limits=Limits(budget=Budget(**bounds)))
        return labels.budget_left(make_run().model_copy(update={"setup": setup}))

    bounded = left(tokens=3000, calls=7, cost=0.05, seconds=90)
    assert bounded == "0 tokens, 2 calls, $0.0488, 1 min 18 s left"
    tokens = left(prompt_tokens=5_000, completion_tokens=457)
    assert tokens == "2,000 prompt tokens, 1 completion token left"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01, "< 0.1 s"),
        (0.3, "0.3 s"),
        (12.4, "12 s"),
        (59.7, "1 min 00 s"),
        (65, "1 min 05 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_durations_read_naturally(value, text):
    assert labels.seconds(value) == text


def test_an_iteration_of_300_lines_renders_quickly_once_highlighted(make_run):
    code = "\n".join(f"def f{i}(x): return x + {i}" for i in range(300))
    run = make_run(lambda field: code if field in ("draft", "revised") else field)
    iteration_html(run, 0)
    started = time.process_time()
    for _ in range(20):
        iteration_html(run, 0)
    assert (time.process_time() - started) / 20 < 0.02


def test_a_quote_is_shown_in_its_place_among_the_lines_around_it():
    text = "one\ntwo\nthree four\nfive\nsix"
    finding = Finding(id="f1", criterion="c", severity=Severity.MINOR, quote="four", problem="x")
    html = finding_html(finding, "prose", text)
    assert "In context, line 3" in html
    assert "two\nthree <mark>four</mark>\nfive" in html
    assert "one" not in html
    assert "<mark>" not in finding_html(finding, "prose", "no such words")


def test_what_each_stage_consumed_is_in_a_table(make_run, read_html):
    run = make_run().model_copy(update={"spent": {"judge": Usage(calls=2, prompt_tokens=1500)}})
    text = read_html(spent_html(run)).text
    assert "Judging" in text
    assert "1,500" in text
    assert labels.NONE in text  # neither the cache nor the price is known


@settings(deadline=None)
@given(texts)
def test_what_streams_is_text_only(raw):
    html = stage_html(raw, 0, 4) + stream_html(raw, thinking=True) + tail_html(raw, thinking=True)
    assert set(re.findall(r"<(\w+)", html)) <= {"p", "strong", "pre", "code"}


def test_the_stage_is_announced_and_the_time_beside_it_is_not(read_html):
    stage = read_html(stage_html("revise", 2, 4))
    assert stage.text == "Revising · revision 2 of 4"
    assert ("role", "status") in stage.attributes
    setup = Setup(task=BARE.task, limits=Limits(budget=Budget(calls=7)))
    run = Run(setup=setup, seconds=12)
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
