"""A diff tells what changed, in signs and not only in colour."""

import random
import re
import time
from html import unescape

import pytest
from hostile import texts
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.render.diff import (
    lay_out,
    prose_html,
    rows,
    text_diff,
    text_lines,
    words,
)
from ipyrefine.render.escape import plain

lines = st.lists(st.sampled_from("abcd"), max_size=6).map("\n".join)


@given(texts | lines, texts | lines)
def test_a_comparison_gives_both_texts_back(old, new):
    parts, found = words(old, new), rows(old, new)
    assert "".join(p.text for p in parts if p.tag in " -") == plain(old)
    assert "".join(p.text for p in parts if p.tag in " +") == plain(new)
    last = plain(old).removesuffix("\n"), plain(new).removesuffix("\n")
    assert [r.old for r in found if r.old is not None] == [*range(last[0].count("\n") + 1)]
    assert [r.new for r in found if r.new is not None] == [*range(last[1].count("\n") + 1)]


def test_far_unchanged_lines_are_counted_and_few_are_shown():
    old = "\n".join(map(str, range(20)))
    diff = text_diff(old, old.replace("10", "ten")).split("\n")
    assert diff[0] == "⋯ 7 unchanged lines"
    assert diff[4:6] == ["- 10", "+ ten"]
    assert diff[-1] == "⋯ 6 unchanged lines"
    assert text_diff("1\n2\n3\n4\n5", "1\n2\n3\n4\nfive").startswith("  1\n  2")


def compare(old, new, form="code", quotes=()):
    return text_lines(new, old, form, "python", quotes)


def html_lines(old, new, form="code", **options):
    return [str(one.html) for one in compare(old, new, form, **options)]


def folds(old, new, form="code", *, whole=False):
    return [*lay_out(compare(old, new, form), whole=whole)]


def test_code_is_compared_by_line_with_numbers_and_signs_and_marks_inside():
    found = text_lines("a\nx = <second> + 1", "a\nx = <first> + 1", "code", "")
    assert [line.gutter for line in found] == ["1   ", "  \N{MINUS SIGN} ", "2 + "]
    assert [line.html for line in found] == [
        "a",
        "x = &lt;<mark>first</mark>&gt; + 1",
        "x = &lt;<mark>second</mark>&gt; + 1",
    ]


def test_prose_is_compared_by_word_and_quotes_are_marked():
    [line] = html_lines("The red fox.", "The brown fox.", "prose")
    assert line == "The <del>red</del><ins>brown</ins> fox."
    text = "It begins here.\nNobody promised a voucher of ten euros to anybody."
    marked = html_lines(
        text.replace("begins", "starts"), text, "prose", quotes=["a voucher of ten euros"]
    )
    assert "<mark>a voucher of ten euros</mark>" in marked[1]


def test_a_long_unchanged_stretch_is_folded():
    old = "\n".join(f"line {n}" for n in range(200))
    parts = folds(old, old.replace("line 20\n", "line twenty\n"))
    assert [part.fold for part in parts if part.fold] == [
        "17 unchanged lines", "176 unchanged lines"
    ]  # fmt: skip
    assert sum(len(part.lines) for part in parts) == 201


PARAGRAPHS = "\n\n".join(f"Paragraph {n} goes on. " * 20 for n in range(6))


def test_markdown_of_a_whole_text_looks_as_it_means_and_keeps_every_character():
    def tags(html):
        return re.sub(" class=[^>]*", "", html)

    text = "# Plan\n\n- **count** the `boats`\n- 5*3*2 and a_b_c\n```\n*x*\n```"
    head, _, first, second, _, block, _ = map(tags, html_lines(text, text, "prose"))
    assert head == "<strong><span># </span>Plan</strong>"
    assert first == (
        "<span><span>- </span><span>**</span><strong>count</strong><span>**</span> the "
        "<span>`</span><code>boats</code><span>`</span></span>"
    )
    assert second == "<span><span>- </span>5*3*2 and a_b_c</span>"
    assert block == "<code>*x*</code>"
    assert tags(prose_html("<img onerror=x> **<b>**")) == (
        "&lt;img onerror=x&gt; <span>**</span><strong>&lt;b&gt;</strong><span>**</span>"
    )


@pytest.mark.parametrize("quote", ["# Plan", "Plan", "- count", "count", "**all** of", "1. Go"])
def test_a_passage_is_marked_in_a_heading_a_list_and_between_signs(quote):
    text = "# Plan\n- count **all** of it\n1. Go now"
    html = "".join(html_lines(text, text, "prose", quotes=[quote]))
    marked = re.sub("<[^>]*>", "", html.partition("<mark>")[2].partition("</mark>")[0])
    assert marked == quote.removeprefix("# ").removeprefix("- ")


def test_a_difference_of_prose_shows_markdown_as_it_is_written_line_by_line():
    old = "# Plan\n\n1. Count the *boats*. Twice.\n2. Go.\n"
    new = old.replace("boats", "ships").replace("Plan", "The plan")
    assert html_lines(old, new, "prose") == [
        "# <del>Plan</del><ins>The plan</ins>", "",
        "1. Count the *<del>boats</del><ins>ships</ins>*. Twice.", "2. Go.", "",
    ]  # fmt: skip


@given(st.text("ab *_`#-.\n<"), st.text("ab *_`#-.\n<"))
def test_however_it_is_marked_up_a_text_and_its_difference_are_there_to_the_letter(old, new):
    assert unescape(re.sub("<(?!br)[^>]*>", "", prose_html(new)).replace("<br>", "\n")) == new
    lines = text_lines(new, old, "prose", "", ["a"])
    kept = re.sub("<del>.*?</del>", "", "".join(line.html for line in lines))
    assert unescape(re.sub("<[^>]*>", "", kept)).replace("\n", "") == new.replace("\n", "")


def test_a_long_text_that_is_compared_with_nothing_starts_with_its_first_lines():
    text = "\n".join(map(str, range(200)))
    first, rest = folds(text, text, whole=True)
    assert (len(first.lines), rest.fold) == (40, "160 more lines")
    two = "\n\n".join(PARAGRAPHS.split("\n\n")[:2])
    assert [part.fold for part in folds(two, two, "prose", whole=True)] == [""]


def test_texts_that_take_minutes_to_align_are_compared_in_good_time():
    """A hundred words, each just too rare to be left out as frequent, in a random order."""
    between = " "
    chance = random.Random(1)
    old, new = (between.join(f"w{chance.randrange(101)}" for _ in range(20_000)) for _ in "ab")
    started = time.process_time()
    words(old, new)
    text_diff(old, new)
    assert time.process_time() - started < 10
