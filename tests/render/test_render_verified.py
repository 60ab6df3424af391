"""What a verdict rests on is shown with it, wherever a run is shown."""

import pytest

from ipyrefine.render.html import record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.text import record_text

EVERY = [record_text, record_html, record_markdown]


@pytest.mark.parametrize("render", EVERY)
def test_a_score_is_shown_with_the_words_it_rests_on(render, make_run):
    said = render(make_run())
    assert "the cited" in said
    assert said.count("quote not found in the text") == 2  # of a finding, and of this score


@pytest.mark.parametrize("render", EVERY)
def test_every_question_of_the_checklist_is_shown_with_its_answer_and_no_comes_first(
    render, make_run
):
    said = render(make_run())
    assert "Checklist: 1 of 2 met" in said
    assert "✗ no" in said.split("the asked")[0]
    assert said.index("✗ no") < said.index("✓ yes") < said.index("Is it short?")


@pytest.mark.parametrize("render", EVERY)
def test_without_a_checklist_none_is_shown(render, make_run):
    run = make_run()
    bare = run.iterations[0].verdict.model_copy(update={"checklist": ()})
    first = run.iterations[0].model_copy(update={"verdict": bare})
    run = run.model_copy(update={"iterations": (first, *run.iterations[1:])})
    assert "Checklist:" not in render(run)
