"""A run as Markdown: no text in it breaks out, and it says everything."""

import pytest
from hostile import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyrefine.core.runs import Run
from ipyrefine.render.markdown import record_markdown


@settings(max_examples=60, deadline=None)
@given(raw=texts, form=st.sampled_from(["code", "prose"]))
def test_no_text_in_any_field_becomes_markup(raw, form, make_run, read_html):
    mistune = pytest.importorskip("mistune")
    render = mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "url"])
    run = make_run(lambda field: f"«{field}:{raw}»", form)
    quiet = make_run(lambda field: f"«{field}»", form)
    page, reference = (read_html(render(record_markdown(r))) for r in (run, quiet))
    assert page.tags <= reference.tags | {"br", "span", "p"}
    assert {name for name, _ in page.attributes} <= {"class", "style"}
    assert page.balanced


def test_everything_is_told(make_run):
    shown = record_markdown(make_run())
    for field in ("message", "revised", "problem", "fix", "summary", "flaw", "detail", "reason"):
        assert f"the {field}" in shown
    assert shown.startswith("**✓ PASS** · score 0.91")
    assert "| 1 ★ | ✓ PASS | 0.91 |" in shown


def test_folds_are_closed_and_separated_so_that_markdown_works_inside(make_run):
    shown = record_markdown(make_run())
    assert shown.count("<details>") == shown.count("\n\n</details>") == 4
    assert shown.count("</summary>\n\n") == 4


def test_code_differences_are_a_diff_block(make_run):
    assert "```diff\n- the draft\n+ the revised\n```" in record_markdown(make_run())
    prose = record_markdown(make_run(form="prose"))
    assert "the [-draft-]{+revised+}" in prose


def test_a_run_without_anything_still_renders():
    assert record_markdown(Run()).startswith("**? NOT VERIFIED**")
