"""A diff tells what changed, in signs and not only in colour."""

import random
import time

import pytest
from hostile import texts
from hypothesis import assume, given
from hypothesis import strategies as st

from ipyrefine.render.diff import Part, html_diff, text_diff, unified, words
from ipyrefine.render.escape import plain

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


def test_code_is_compared_by_line_with_signs(read_html):
    page = read_html(html_diff("a\nb", "a\n<c>", "code"))
    assert page.text == "  a\n\N{MINUS SIGN} b\n+ <c>"
    assert {"ins", "del"} <= page.tags


def test_code_in_a_diff_keeps_the_colours_of_its_whole_text():
    old, new = '"""\nif\n"""\nx = 1\n', '"""\nif so\n"""\nx = 1\n'
    assert '<ins>+ <span class="rf-t-s' in html_diff(old, new, "code")


def test_side_by_side_puts_what_was_removed_beside_what_was_added(read_html):
    page = read_html(html_diff("a\nb\nc", "a\nB\nD\nc", "code", sides=True))
    assert "\N{MINUS SIGN} b+ B+ D" in page.text
    assert {"table", "ins", "del"} <= page.tags


def test_prose_side_by_side_shows_each_text_with_what_is_its_own(read_html):
    page = read_html(html_diff("The red fox.", "The brown fox.", "prose", sides=True))
    assert page.text == "The \N{MINUS SIGN}red fox.The +brown fox."


@given(texts, texts)
def test_side_by_side_shows_every_changed_line(old, new):
    table = html_diff(old, new, "code", sides=True)
    tags = [part.tag for part in unified(old, new)]
    assert (table.count("<ins>"), table.count("<del>")) == (tags.count("+"), tags.count("-"))


def test_prose_is_compared_by_word_with_signs(read_html):
    page = read_html(html_diff("The red fox.", "The brown fox.", "prose"))
    assert page.text == "The \N{MINUS SIGN}red+brown fox."
    assert {"ins", "del"} <= page.tags


def test_changes_with_only_a_space_between_are_one_phrase():
    assert text_diff("see the red fox now", "see a blue fox now", form="prose") == (
        "see [-the red-]{+a blue+} fox now"
    )


def test_same_texts_say_so():
    assert "No change" in html_diff("a", "a", "code")
    assert text_diff("a", "a") == ""


def test_only_a_last_newline_changed_is_not_called_no_change():
    assert "Only line endings changed" in html_diff("a", "a\n", "code")


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
def test_texts_that_take_minutes_to_align_are_shown_one_after_the_other(between):
    """A hundred words, each just too rare to be left out as frequent, in a random order."""
    chance = random.Random(1)
    old, new = (between.join(f"w{chance.randrange(101)}" for _ in range(20_000)) for _ in "ab")
    parts = words(old, new) if between == " " else unified(old, new)
    for tag, text in (("-", old), ("+", new)):
        assert between.join(part.line for part in parts if part.tag == tag) == text
