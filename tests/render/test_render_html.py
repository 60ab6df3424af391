"""A run as HTML: complete, harmless, and readable without style."""

import re
import time

import pytest
from hostile import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyrefine.core.model import (
    Budget,
    Limits,
    Outcome,
    Setup,
    Status,
    StopReason,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import document, labels
from ipyrefine.render.blocks import blocks_html
from ipyrefine.render.escape import html_code, plain, strip_colours
from ipyrefine.render.html import panel_parts, record_html
from ipyrefine.render.style import STYLE
from ipyrefine.render.view import View

OUR_TAGS = re.compile(
    "div|section|header|footer|style|p|strong|b|i|span|em|details|summary|ul|ol|li|pre|code|ins|del"
    "|small|blockquote|br|mark|table|tr|th|td"
)
OUR_ATTRIBUTES = re.compile(
    "class|style|open|tabindex|role|aria-live|aria-hidden|width|height|scope|title"
)
BARE = Setup(task=Task(text="Write."))
PROGRAM_OUTPUT = {"setup", "detail", "thoughts"}


@settings(max_examples=60, deadline=None)
@given(raw=texts, form=st.sampled_from(["code", "prose"]))
def test_no_text_in_any_field_becomes_markup_and_all_of_it_is_shown(raw, form, make_run, read_html):
    fields = {}
    raw = raw.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # as records do

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
    flat = re.sub(r"@(?:media|container)[^{]*\{|:is\([^)]*\)", "", STYLE)
    selectors = re.findall(r"([^{}]+)\{", flat)
    assert selectors
    for selector in ",".join(selectors).split(","):
        assert selector.strip().startswith(".ipyrefine")


def body_of(run, **view):
    return panel_parts(run, View(**view))["text"]


def test_a_text_can_be_compared_with_the_best_instead_of_its_parent(make_run):
    run = make_run().model_copy(update={"best": 2})
    assert "Compared with" not in body_of(run, shown=1)
    assert "Compared with revision 2" in body_of(run, shown=1, best=True)
    assert "<ins" not in body_of(run, shown=0)
    assert 'rf-sides"' in body_of(run, shown=1, sides=True)


def without_folds(html):
    innermost = re.compile("<details[^>]*>(?:(?!<details).)*?</details>", re.DOTALL)
    while innermost.search(html):
        html = innermost.sub("", html)
    return html


def test_the_record_shows_verdict_basis_difference_and_text_open(make_run, read_html):
    html = record_html(make_run(form="prose"))
    unfolded = without_folds(html)
    text = read_html(unfolded).text
    assert text.index("✓ PASS") < text.index("examples passed") < text.index("the revised")
    assert "<ins>revised</ins>" in unfolded
    assert "<del>draft</del>" in unfolded
    assert "<button" not in html


def test_a_markdown_export_keeps_the_record_in_one_piece(make_run, read_html):
    code = "def f():\n\n    return 1\n  \n\nf()"
    html = record_html(make_run(lambda field: code if field in ("revised", "detail") else field))
    assert not re.search(r"\n[ \t]*\n", html)
    assert code in read_html(html).text


def test_the_record_has_every_iteration_folded_behind_the_result(make_run, read_html):
    text = read_html(record_html(make_run(form="prose"))).text
    assert text.index("the revised") < text.index("History") < text.index("the message")
    history = text.partition("History")[2]
    assert history.index("Draft") < history.index("Revision 1") < history.index("Revision 2")


def top(run, read_html, **view):
    return read_html(panel_parts(run, View(**view))["top"]).text


def test_the_header_of_a_stopped_run_says_what_it_took(make_run, read_html):
    text = read_html(record_html(make_run())).text
    assert "12 s · 3,456 tokens · $0.0012" in text


def test_the_header_of_a_running_run_names_its_stage_and_has_one_clock(make_run, read_html):
    run = make_run().model_copy(update={"stop_reason": None, "stage": "judge"})
    text = top(run, read_html, seconds=12.0, under_way=2, rate=" · 23 tokens/s")
    assert text.startswith("Judging")
    assert "revision 2 of 4 · 12 s · 23 tokens/s" in text
    assert text.count("12 s") == 1


@pytest.mark.parametrize("cost", [None, 0.0])
def test_an_unknown_cost_and_none_at_all_are_left_out(make_run, cost, read_html):
    run = make_run()
    usage = run.usage.model_copy(update={"cost": cost})
    assert "$" not in top(run.model_copy(update={"usage": usage}), read_html)


def version_of(run, number):
    return blocks_html([document.version(run, run.iterations[number])])


def test_an_iteration_shows_what_must_not_be_overlooked(make_run, read_html):
    run = make_run()
    first = read_html(version_of(run, 0)).text
    assert "⚠ doubtful: quote not in the text" in first
    assert "✗ failed" in first
    assert "? no result" in first
    assert "■ blocking" in first
    second = read_html(version_of(run, 1)).text
    assert "★ best" in second
    assert "Difference from iteration 0" in second
    assert "No usable text from the model: the flaw" in read_html(version_of(run, 2)).text


def test_open_findings_come_before_settled_ones_and_blocking_before_minor(make_run):
    html = version_of(make_run(), 0)
    marks = ["the id", ">f4<", ">f2<", ">Doubtful<", ">f3<"]
    assert sorted(marks, key=html.index) == marks


def test_an_iteration_is_folded_in_the_history(make_run):
    run = make_run()
    assert version_of(run, 0).startswith('<details class="rf-iteration"><summary>')


def test_a_text_without_a_verdict_is_never_shown_as_an_outcome(read_html):
    run = Run(setup=BARE, iterations=(Iteration(number=0, text="x"),))
    assert "NOT VERIFIED" in read_html(record_html(run)).text
    assert "rf-badge" not in version_of(run, 0)


def test_what_nothing_decides_on_is_not_judged_and_grey():
    verdict = Verdict(outcome=Outcome.NOT_JUDGED, score=None, reason="Nothing can be run.")
    run = Run(setup=BARE, iterations=(Iteration(number=0, text="x", verdict=verdict),))
    html = record_html(run)
    assert '<strong class="rf-badge rf-quiet">? NOT JUDGED</strong>' in html
    assert "Nothing can be run." in html


def test_a_run_that_only_began_renders(read_html):
    assert read_html(record_html(Run.begin(BARE))).balanced


@pytest.mark.parametrize("reason", list(StopReason))
def test_every_stop_says_what_the_engine_says_of_it(reason, read_html):
    run = Run(setup=BARE).model_copy(update={"stop_reason": reason, "message": "Precisely this."})
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
    body_of(run, shown=0)
    started = time.process_time()
    for _ in range(20):
        body_of(run, shown=0)
    assert (time.process_time() - started) / 20 < 0.05


def test_what_each_stage_consumed_is_in_a_table(make_run, read_html):
    run = make_run().model_copy(update={"spent": {"judge": Usage(calls=2, prompt_tokens=1500)}})
    text = read_html(blocks_html(document.usage(run))).text
    assert "Judging" in text
    assert "1,500" in text
    assert labels.NONE in text  # neither the cache nor the price is known


def test_the_stage_is_announced_and_the_clock_beside_it_is_not(make_run):
    run = make_run().model_copy(update={"stop_reason": None, "stage": "revise"})
    html = panel_parts(run, View(under_way=3))["top"]
    announced = html.partition('role="status"')[2].partition("</div>")[0]
    assert "Revising" in announced
    assert "data-clock" not in announced


def test_the_place_of_a_streamed_text_is_empty_and_takes_the_keyboard(make_run, read_html):
    run = make_run().model_copy(update={"stop_reason": None, "stage": "revise"})
    page = read_html(panel_parts(run, View(streaming="text", under_way=3))["text"])
    assert page.text == ""
    assert {("data-stream", ""), ("tabindex", "0")} <= page.attributes
    thinking = read_html(panel_parts(run, View(streaming="thinking", under_way=3))["text"])
    assert thinking.text == "Thinking…"


@pytest.mark.parametrize("stage", ["draft", "revise", "judge", None])
def test_no_control_is_shown_that_can_do_nothing(make_run, stage):
    stopped = {"stop_reason": None, "stage": stage} if stage else {}
    run = make_run().model_copy(update=stopped)
    html = "".join(panel_parts(run, View(under_way=3)).values())
    assert "disabled" not in html
    assert ('data-action="stop"' in html) is bool(stage)
    assert ('data-action="continue"' in html) is not stage
    assert ('data-action="guide"' in html) is bool(stage)


def test_a_replay_is_a_remark_and_no_warning(make_run, read_html):
    warnings = ("A replay of m, recorded on 2026-01-01.", "The server is slow.")
    run = make_run().model_copy(update={"warnings": warnings})
    notices = read_html(panel_parts(run, View())["notices"]).text
    assert "A replay" not in notices
    assert "⚠ The server is slow." in notices
    assert "A replay of m" in read_html(record_html(run)).text


def test_of_many_iterations_the_timeline_shows_those_that_matter(make_run, read_html):
    run = make_run()
    many = tuple(run.iterations[0].model_copy(update={"number": n}) for n in range(1000))
    run = run.model_copy(update={"iterations": many, "best": 500})
    html = panel_parts(run, View(shown=300))["top"]
    shown = re.findall(
        'data-action="show" data-iteration="([0-9]+)" aria|"show" data-iteration="([0-9]+)">', html
    )
    assert len(html) < 8_000
    for number in (0, 299, 300, 301, 500, 998, 999):
        assert f'data-iteration="{number}"' in html
    assert shown


def test_a_branch_is_marked_in_the_timeline(make_run):
    run = make_run()
    third = run.iterations[2].model_copy(update={"parent": 0})
    run = run.model_copy(update={"iterations": (*run.iterations[:2], third)})
    assert "⑂ 0" in panel_parts(run, View())["top"]


def test_a_fixed_finding_without_a_place_stands_below_the_text_unless_one_change_fixed_it(make_run):
    def run_of(old, new):
        run = make_run(lambda field: {"draft": old, "revised": new}.get(field, field))
        fixed = run.iterations[0].findings[0].model_copy(update={"quote": "", "status": "open"})
        done = fixed.model_copy(update={"status": Status.RESOLVED})
        first = run.iterations[0].model_copy(update={"findings": (fixed,)})
        second = run.iterations[1].model_copy(update={"findings": (done,)})
        return run.model_copy(update={"iterations": (first, second), "best": 1})

    one = body_of(run_of("a = 1\nb = 2", "a = 3\nb = 2"))
    assert one.index("a = ") < one.index("✓ Fixed") < one.index("b = ")
    two = body_of(run_of("a = 1\nb = 2\nc = 3", "a = 3\nb = 2\nc = 4"))
    assert two.index("✓ Fixed") > two.index("c = ")
