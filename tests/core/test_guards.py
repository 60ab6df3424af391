"""Guards against loops that only seem to improve a text."""

import pytest
from kit import (
    CODE,
    READY,
    Scores,
    code,
    critique,
    decide,
    finding,
    finish,
    prompts,
    refinement,
    requests,
    text,
)

from ipyrefine.core.decisions import Continue
from ipyrefine.core.findings import changes
from ipyrefine.core.model import Change, Finding, Limits, Severity, Stage
from ipyrefine.core.prompts import SAMPLED

NO_CRITIC = Limits(critique="never")


def test_a_note_counts_where_it_names_a_finding_that_was_to_be_acted_on() -> None:
    known = Finding(id="f1", criterion="tone", severity=Severity.MINOR, problem="wrong")
    notes = "Plan.\n- **f1**: mended\nf2: never asked for\nf1 is not a note"
    assert changes(notes, (known,)) == (Change(finding="f1", summary="mended"),)


@pytest.mark.parametrize("weak", [True, False])
async def test_a_writer_too_weak_to_edit_is_sampled_which_makes_a_draft(weak: bool) -> None:
    """From what is wrong with the text and without its words, which it would only repeat."""
    check = Scores(0.2, 0.4, 1.0, target=1.0, basis="examples")
    replies = [code("x = 0"), code("x = 1"), code("y = 9")]
    loop = refinement(replies, CODE, checks=[check], limits=NO_CRITIC, weak_editor=weak)
    await finish(loop)
    asked = requests(loop, Stage.REVISE)
    assert [("x = " in one.messages[-1].content) for one in asked] == [not weak] * 2
    assert [one.temperature for one in asked] == [SAMPLED if weak else None] * 2
    names = ["Draft 2", "Draft 3"] if weak else ["Revision 1", "Revision 2"]
    assert [loop.state.name(n) for n in (1, 2)] == names
    assert loop.state.message == f"{names[1]} passes."


async def test_what_the_user_says_of_such_code_is_acted_on_in_its_own_words() -> None:
    replies = [code("x = 0"), code("y = 9")]
    check = Scores(0.2, 0.3, target=1.0, basis="examples")
    limits = Limits(max_revisions=0, critique="never")
    loop = refinement(replies, CODE, checks=[check], limits=limits, weak_editor=True)
    await finish(loop)
    await decide(loop, Continue(guidance="keep the name x"))
    assert "x = 0" in prompts(loop)[-1]


async def test_a_text_of_the_user_s_is_always_edited() -> None:
    limits = Limits(max_revisions=1, revise="sample")
    loop = refinement([critique(finding("dull")), text("Ho"), READY], draft="Hi", limits=limits)
    await finish(loop)
    assert "Hi" in prompts(loop, Stage.REVISE)[0]
