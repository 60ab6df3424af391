"""A cell with `[ITERATION n]` headings is a task and four stages."""

import pytest

from ipyrefine.core.template import read_template


def test_a_stage_is_known_by_its_name_before_its_number() -> None:
    template = read_template("T\n[ITERATION 1] critique\nA\n[ITERATION 2] rewrite\nB\n")
    assert template is not None
    assert (template.critique, template.revise, template.draft) == ("A", "B", "")


def test_without_a_task_before_them_the_drafts_section_is_the_task() -> None:
    template = read_template("[ITERATION 1]\nWrite a poem.\n[ITERATION 2]\nBe strict.\n")
    assert template is not None
    assert template.task == "Write a poem."
    assert "Be strict." in template.prompts().critique
    assert template.prompts().draft.count("Write a poem.") == 0


@pytest.mark.parametrize("body", ["", "Write a poem.", "See [ITERATION 1] of the plan."])
def test_a_text_without_such_headings_is_no_template(body: str) -> None:
    assert read_template(body) is None
