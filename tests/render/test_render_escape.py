"""Foreign text is displayed and never acts."""

import re

import pytest
from hostile import SNIPPETS, texts
from hypothesis import example, given

from ipyrefine.render.escape import (
    fence,
    html_prose,
    html_text,
    markdown_text,
    plain,
    strip_colours,
)


@given(texts)
def test_plain_text_holds_no_control_but_newline_and_tab(text):
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", plain(text)
    )


@given(texts)
def test_plain_text_is_stable(text):
    assert plain(plain(text)) == plain(text)


def test_plain_shows_what_was_hidden():
    assert plain("a\x1b[31mb\u202ec\r\nd\te\x7f") == "a␛[31mb⟨U+202E⟩c\nd\te␡"


def test_ordinary_text_of_any_script_is_left_alone():
    for text in (
        "naïve 漢字 עברית",
        "\u0645\u06cc\u200c\u062e",
        "\U0001f469\u200d\U0001f467 e\u0301",
        "a\tb\nc",
    ):
        assert plain(text) == text


def test_lone_surrogates_become_encodable():
    assert plain("a\ud800b").encode() == "a\ufffdb".encode()


def test_colours_are_dropped_and_other_escapes_are_not():
    assert strip_colours("\x1b[1;31mred\x1b[0m\x1b[2J") == "red\x1b[2J"


@given(texts)
def test_html_is_only_text_and_gives_the_text_back(text):
    """Checked against the tokenizer of `html.parser`, in content and in an attribute."""
    from html.parser import HTMLParser

    seen = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append((tag, attrs))

        def handle_data(self, data):
            seen.append(data)

    reader = Reader()
    reader.feed(f'<b title="{html_text(text)}">{html_text(text)}</b>')
    reader.close()
    assert seen[0] == ("b", [("title", plain(text))])
    assert "".join(seen[1:]) == plain(text)


@given(texts)
def test_prose_html_adds_only_line_breaks_and_spans_without_attributes(text):
    tags = set(re.findall(r"<[^>]*>", html_prose(text)))
    assert tags <= {"<br>", "<span>", "</span>"}
    assert not re.search(r"(?<!<span>)[$\\]", html_prose(text))


@given(texts)
@example("```\n````\n`````")
def test_a_fence_is_closed_by_its_own_last_line_only(text):
    first, *body, last = fence(text, "py`\nx").split("\n")
    marks = re.match(r"`{3,}", first).group()
    assert last == marks
    assert first == f"{marks}pyx"
    assert not any(re.fullmatch(rf" {{0,3}}`{{{len(marks)},}}\s*", line) for line in body)
    assert "\n".join(body).rstrip("\n") == plain(text).rstrip("\n")


@given(texts)
def test_markdown_text_is_one_line_without_tags_of_the_text(text):
    line = markdown_text(text)
    assert "\n" not in line
    assert set(re.findall(r"<[^>]*>", line)) <= {"<br>", "<span>", "</span>"}
    assert "$" not in line


@pytest.mark.parametrize("text", SNIPPETS)
def test_markdown_shows_text_literally(text, read_html):
    """A Markdown renderer with tables, links and strike-through finds nothing to do."""
    mistune = pytest.importorskip("mistune")
    render = mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "url"])
    page = read_html(render(markdown_text(text)))
    assert page.tags <= {"p", "br", "span"}
    assert "".join(page.text.split()) == "".join(plain(text).split())
