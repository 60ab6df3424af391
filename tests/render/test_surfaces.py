"""HTML and terminal show the same of a run."""

import re

import pytest
from kit import EVALUATED, finding, judgement, refinement, text

from ipyrefine.core.model import Limits, Setup, StopReason, Task
from ipyrefine.core.run import Iteration, Run
from ipyrefine.notebook.magic import Refine
from ipyrefine.render.html import record_html
from ipyrefine.render.terminal import record_text
from ipyrefine.session.commands import usage

EVERY = pytest.mark.parametrize("render", [record_text, record_html])


_PARTS = (
    "What it says it changed", "Model notes", "the warning",
    "back again", "the detail", "You gave guidance: the guidance", "No usable text from the model:",
    "★", "“the demand”",
)  # fmt: skip
_NUMBERS = (
    "Criteria",
    "Checklist",
    "Usage by stage",
    "the definition",
    "1,000",
    "free",
    "the item",
)


@EVERY
def test_every_surface_has_the_same_parts_and_a_saved_one_no_settings(render, make_run, read_html):
    output = read_html(render(make_run()).replace("**", "")).text
    assert [part for part in _PARTS if part not in output] == []
    assert {part in output for part in _NUMBERS} == {render is record_text}


@EVERY
def test_a_text_is_called_a_draft_a_revision_or_a_text_and_what_it_is_read_for_criteria(
    render, make_run, read_html
):
    said = read_html(render(make_run())).text + usage() + str(Refine.refine.getdoc())
    assert re.findall(r"(?i)(?<!--max-)\b(?:iterations?|rubric)\b", said) == []


@pytest.mark.parametrize(("size", "most"), [(400, 1.3), (100, 2), (30, 4)])
def test_a_record_of_ten_texts_grows_with_their_changes_and_not_with_their_lines(size, most):
    task = Task(text="Compute the rows.", form="code")
    lines, texts = [f"    value_{n} = compute(row[{n}], scale={n})" for n in range(size)], []
    for number in range(10):
        lines[size // 10 * number] += f"  # revision {number}"
        texts.append(
            Iteration(number=number, parent=number - 1 if number else None, text="\n".join(lines))
        )
    run = Run(setup=Setup(task=task), iterations=tuple(texts), stop_reason=StopReason.CANCELLED)
    record = record_text(run) + record_html(run)
    assert len(record.encode()) <= most * sum(len(one.text.encode()) for one in texts)
    assert "unchanged lines" in record


@EVERY
async def test_what_an_evaluator_said_of_a_text_is_a_row_and_stands_below_no_other_text(
    render, read_html
):
    said = ["It is too short.", "It is too long.", "It is too blunt."]
    drafts = [text(one) for one in ("Hi", "Hello there", "Oh")]
    replies = {"draft": drafts[:1], "revise": drafts[1:]}
    replies["judge"] = [judgement(3, finding(one)) for one in said]
    loop = refinement(replies, prompts=EVALUATED, limits=Limits(max_revisions=2))
    run = await loop.run()
    output = " ".join(read_html(render(run)).text.split()).partition("Details")[0]
    parts = re.split(r"(?:Draft|Revision \d) +(?=It is)", output)
    found = [[one for one in said if one in part] for part in parts]
    shown = run.chosen.number  # its rows stand in the table above
    assert found == [[said[shown]], *([] if n == shown else [one] for n, one in enumerate(said))]
