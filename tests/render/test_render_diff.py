"""A diff tells what changed, in signs and not only in colour."""

import random
import re
import time

import pytest
from hostile import texts
from hypothesis import assume, given
from hypothesis import strategies as st

from ipyrefine.render.diff import Part, revert, rows, text_diff, unified, words
from ipyrefine.render.escape import plain
from ipyrefine.render.text import line_of, mark, sides_html, text_html

lines = st.lists(st.sampled_from("abcd"), max_size=6).map("\n".join)


@given(lines, lines)
def test_line_diff_gives_both_texts_back(old, new):
    assume(old.splitlines() != new.splitlines())
    before, after = [], []
    for part in unified(old, new):
        omitted = old.splitlines()[len(before) : len(before) + part.lines]
        passage = omitted if part.tag == "@" else [part.line]
        before += passage if part.tag != "+" else []
        after += passage if part.tag != "-" else []
    assert (before, after) == (old.splitlines(), new.splitlines())


@given(lines)
def test_equal_lines_have_no_difference(text):
    assert unified(text, text) == []


@given(texts, texts)
def test_word_diff_gives_both_texts_back(old, new):
    parts = words(old, new)
    assert "".join(p.line for p in parts if p.tag in " -") == plain(old)
    assert "".join(p.line for p in parts if p.tag in " +") == plain(new)


@given(lines, lines)
def test_word_diff_of_long_texts_gives_both_texts_back(old, new):
    kept = "The same line over and over.\n" * 150
    old, new = f"{old}\n{kept}{new}", f"{new}\n{kept}{old}"
    parts = words(old, new)
    assert "".join(p.line for p in parts if p.tag in " -") == plain(old)
    assert "".join(p.line for p in parts if p.tag in " +") == plain(new)


def test_in_a_long_text_of_which_every_line_changed_the_words_are_still_told_apart():
    old = "".join(f"Line {n} of a text, version one.\n" for n in range(300))
    changed = [p for p in words(old, old.replace("one", "two")) if p.tag != " "]
    assert changed == [Part("-", "one"), Part("+", "two")] * 300


def test_unchanged_lines_far_away_are_counted():
    old = "\n".join(map(str, range(20)))
    tags = [(p.tag, p.line) for p in unified(old, old.replace("10", "ten"))]
    assert tags[0] == ("@", "7 unchanged lines")
    assert ("-", "10") in tags
    assert ("+", "ten") in tags
    assert tags[-1] == ("@", "6 unchanged lines")


def diff_html(old, new, form):
    return text_html(new, form, old=old)


def test_code_is_compared_by_line_with_numbers_and_signs(read_html):
    page = read_html(diff_html("a\nb", "a\n<c>", "code"))
    assert page.text == "1   a\n  \N{MINUS SIGN} b\n2 + <c>"
    assert {"ins", "del"} <= page.tags


def test_code_in_a_diff_keeps_the_colours_of_its_whole_text():
    old, new = '"""\nif\n"""\nx = 1\n', '"""\nif so\n"""\nx = 1\n'
    html = mark(diff_html(old, new, "code"), [])
    added = html.partition("<ins")[2].partition("</ins>")[0]
    assert '+ </span><span class="rf-t-s' in added


def test_what_differs_inside_a_changed_line_is_marked():
    html = diff_html("x = first + 1", "x = second + 1", "code")
    assert "<mark>first</mark>" in html
    assert "<mark>second</mark>" in html
    assert html.count("<mark>") == 2


def test_a_line_without_a_counterpart_has_no_marks():
    assert "<mark>" not in diff_html("a = 1", "a = 1\nprint(b)", "code")


@given(lines, lines)
def test_every_line_of_both_texts_is_a_row(old, new):
    found = rows(old, new)
    assert [row.old for row in found if row.old is not None] == list(range(len(old.split("\n"))))
    assert [row.new for row in found if row.new is not None] == list(range(len(new.split("\n"))))


@given(texts, texts)
def test_marks_leave_the_text_as_it_is(old, new):
    shown = mark(plain(new).replace("&", "&amp;").replace("<", "&lt;"), [(0, 3), (5, 9)])
    assert shown.replace("<mark>", "").replace("</mark>", "").count("&lt;") == plain(new).count("<")


def test_a_long_unchanged_stretch_is_folded_and_can_be_opened(read_html):
    old = "\n".join(f"line {n}" for n in range(40))
    html = diff_html(old, old.replace("line 20", "line twenty"), "code")
    assert html.count('<details class="rf-fold">') == 2
    assert "⋯ 17 unchanged lines" in html
    assert read_html(html).text.count("line ") == 41


def test_a_note_stands_below_its_line_and_keeps_it_unfolded(read_html):
    text = "\n".join(f"line {n}" for n in range(200))
    html = text_html(text, "code", notes={150: ["<p>the note</p>"]})
    before = html.partition("<p>the note</p>")[0]
    assert read_html(before).text.endswith("line 150")
    unfolded = read_html(re.sub("<details.*?</details>", "", html, flags=re.DOTALL)).text
    assert "line 147" in unfolded
    assert "line 140" not in unfolded


@pytest.mark.parametrize(("form", "old", "new", "hunk", "reverted"), [
    ("code", "a\nb\nc\nd", "a\nB\nc\nD", 0, "a\nb\nc\nD"),
    ("code", "a\nb\nc\nd", "a\nB\nc\nD", 1, "a\nB\nc\nd"),
    ("code", "a", "a\nb", 0, "a"),
    ("code", "a\nb", "b", 0, "a\nb"),
    ("prose", "The red fox sat.", "The brown fox ran.", 0, "The red fox ran."),
    ("prose", "The red fox sat.", "The brown fox ran.", 1, "The brown fox sat."),
])  # fmt: skip
def test_one_change_is_taken_back_and_the_others_stay(form, old, new, hunk, reverted):
    assert revert(old, new, form, hunk) == reverted


@given(lines, lines)
def test_the_only_change_taken_back_gives_the_text_before(old, new):
    changes = {row.hunk for row in rows(old, new)} - {None}
    assume(len(changes) == 1)
    assert revert(old, new, "code", 0) == old


def test_a_change_that_does_not_exist_cannot_be_taken_back():
    with pytest.raises(IndexError):
        revert("a", "b", "code", 1)


def test_every_change_has_its_own_control():
    html = text_html("a\nB\nc\nD", "code", old="a\nb\nc\nd", revert=lambda n: f"[{n}]")
    assert (html.count("[0]"), html.count("[1]")) == (1, 1)
    html = text_html("a B c D", "prose", old="a b c d", revert=lambda n: f"[{n}]")
    assert (html.count("[0]"), html.count("[1]")) == (1, 1)


@pytest.mark.parametrize(("quote", "line"), [
    ("two", 1), ("one\ntwo", 1), ("one  two", 1), ("'three'", 2), ("four", None), ("", None),
])  # fmt: skip
def test_a_quote_is_found_by_its_line_loose_about_white_space(quote, line):
    assert line_of("one\ntwo\nthree", quote) == line


def test_side_by_side_puts_what_was_removed_beside_what_was_added(read_html):
    html = sides_html("a\nb\nc", "a\nB\nD\nc", "code")
    page = read_html(html)
    assert {"table", "ins", "del"} <= page.tags
    row = html.split("<tr>")[2]
    assert row.index("<del") < row.index("<ins")


def test_prose_side_by_side_shows_each_text_with_what_is_its_own(read_html):
    page = read_html(sides_html("The red fox.", "The brown fox.", "prose"))
    assert page.text == "The red fox.The brown fox."


@given(texts, texts)
def test_side_by_side_shows_every_changed_line(old, new):
    table = sides_html(f"{old}\nend", f"{new}\nend", "code")
    tags = [row.tag for row in rows(f"{old}\nend", f"{new}\nend")]
    assert (table.count("<ins"), table.count("<del")) == (tags.count("+"), tags.count("-"))


def test_prose_is_compared_by_word(read_html):
    html = diff_html("The red fox.", "The brown fox.", "prose")
    assert "<del>red</del><ins>brown</ins>" in html


def test_changes_with_only_a_space_between_are_one_phrase():
    assert text_diff("see the red fox now", "see a blue fox now", form="prose") == (
        "see [-the red-]{+a blue+} fox now"
    )


def test_same_texts_say_so():
    assert "No change" in diff_html("a", "a", "code")
    assert text_diff("a", "a") == ""


@given(texts, texts)
def test_text_diff_has_escapes_only_when_asked(old, new):
    assert "\x1b" not in text_diff(old, new)
    assert "\x1b" not in text_diff(old, new, form="prose")


def test_coloured_diff_marks_removed_and_added():
    assert text_diff("a", "b", colour=True) == "\x1b[31m- a\x1b[0m\n\x1b[32m+ b\x1b[0m"


def test_large_texts_of_repeated_words_are_compared_in_good_time():
    old = "the quick brown fox jumps over it. " * 900
    started = time.process_time()
    words(old, old.replace("quick", "slow"))
    unified("x = 1\ny = 2\n" * 2000, "y = 2\nz = 3\n" * 2000)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("between", [" ", "\n"])
def test_texts_that_take_minutes_to_align_are_compared_in_parts_or_shown_one_after_the_other(
    between,
):
    """A hundred words, each just too rare to be left out as frequent, in a random order."""
    chance = random.Random(1)
    old, new = (between.join(f"w{chance.randrange(101)}" for _ in range(20_000)) for _ in "ab")
    started = time.process_time()
    parts = words(old, new) if between == " " else unified(old, new)
    assert time.process_time() - started < 10
    joined = "" if between == " " else between
    for tag, text in (("-", old), ("+", new)):
        assert joined.join(part.line for part in parts if part.tag in (" ", tag)) == text


@pytest.mark.parametrize("size", [250, 600, 5_000])
@pytest.mark.parametrize("vocabulary", [60, 400, 3_000])
@pytest.mark.parametrize("end", [".", ""])
def test_three_changed_words_of_a_long_paragraph_are_all_that_differs(size, vocabulary, end):
    """Some words are frequent, as in any language."""
    chance = random.Random(size)
    old = [f"w{int(chance.expovariate(1) * vocabulary / 6)}" for _ in range(size)]
    old = [word + end * (n % 14 == 13) for n, word in enumerate(old)]
    new = list(old)
    for place in (size // 4, size // 2, size * 3 // 4):
        new[place] = "changed"
    started = time.process_time()
    changed = [p for p in words(" ".join(old), " ".join(new)) if p.tag != " "]
    assert time.process_time() - started < 2
    assert [p.line for p in changed if p.tag == "+"] == ["changed"] * 3
    assert sum(len(p.line.split()) for p in changed if p.tag == "-") == 3
