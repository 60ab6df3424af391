"""A run as Markdown: no text in it breaks out, and it says everything."""

import pytest
from hostile import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyrefine.core.model import Setup, Task
from ipyrefine.core.run import Run
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


def test_every_field_appears(make_run):
    output = record_markdown(make_run())
    for field in ("message", "revised", "problem", "fix", "summary", "flaw", "detail", "reason"):
        assert f"the {field}" in output
    assert output.startswith("**✓ PASS · tests** · score 0.91")
    assert "| 1 ★ | ✓ PASS · tests | 0.91 |" in output


def test_folds_are_closed_and_separated_so_that_markdown_works_inside(make_run):
    output = record_markdown(make_run())
    assert output.count("<details>") == output.count("\n\n</details>") == 5
    assert output.count("</summary>\n\n") == 5


def test_code_differences_are_a_diff_block(make_run):
    assert "```diff\n- the draft\n+ the revised\n```" in record_markdown(make_run())
    prose = record_markdown(make_run(form="prose"))
    assert "the [-draft-]{+revised+}" in prose


def test_a_run_that_only_began_renders():
    run = Run.begin(Setup(task=Task(text="Write.")))
    assert record_markdown(run).startswith("**? NOT VERIFIED**")
