"""Long texts are sent whole, beside the user's own; evidence is cut in its middle."""

import pytest
from kit import CODE, Finds, code, ended, finding, judgement, prompts, text

from ipyrefine.core.model import Limits, Stage
from ipyrefine.core.prompts import Prompts, cut_middle
from ipyrefine.core.table import Result

LONG = "\n".join(f"Line {n} says what it says, and no more than that." for n in range(4_500))
EDIT = "<find>\nLine 7 says\n</find>\n<replace>\nLine 7 tells\n</replace>"


def critical() -> list[object]:
    return [judgement(4, finding("Line 7 is dull.")), judgement(9, fixed=["f1"])]


async def test_a_text_of_60_000_tokens_is_read_and_edited_whole():
    loop = await ended({Stage.CRITIQUE: critical(), Stage.REVISE: [EDIT]}, draft=LONG)
    assert loop.state.text == LONG.replace("Line 7 says", "Line 7 tells")
    first, revise, second = prompts(loop)
    assert len(LONG) > 4 * 50_000
    assert all(LONG in one for one in (first, revise))
    assert loop.state.text in second
    assert loop.state.warnings == ()


async def test_every_prompt_begins_with_the_user_s_text_which_stands_there_once():
    """So a server that keeps what it has read reads a long one once in a run."""
    flat = judgement(4, finding("Flat."), fixed=["f1"])
    critiques = [judgement(4, finding("Cold.")), flat, judgement(9, fixed=["f2"])]
    replies = {Stage.CRITIQUE: critiques, Stage.REVISE: [text("Hello"), text("Hello!")]}
    loop = await ended(replies, draft="Hi")
    asked = prompts(loop)
    assert len({prompt[: prompt.index("</material")] for prompt in asked}) == 1
    assert all(prompt.count("\nHi\n") == 1 for prompt in asked)
    same = "It is still that one, word for word."
    assert [same in prompt for prompt in asked] == [True, True, False, False, False]
    assert "\n-Hi\n+Hello\n" in asked[2]


async def test_a_prompt_of_the_user_s_gets_the_original_where_it_has_the_place():
    for template, there in (("{text}", False), ("{original}{text}", True)):
        replies = {Stage.CRITIQUE: critical(), Stage.REVISE: [text("Hello")]}
        loop = await ended(replies, draft="Hi", prompts=Prompts(critique=template))
        assert ("the user's own text" in prompts(loop)[2]) is there


@pytest.mark.parametrize("last", ["KeyError: 'revenues'", f"ValueError: {'x' * 5_000}"])
async def test_of_long_evidence_the_first_line_and_the_start_of_the_last_one_are_sent(last):
    detail = "It failed with 3 orders.\n" + "\n".join(f"frame {n}" for n in range(900))
    check = Finds(Result(name="run", passed=False, shows=f"{detail}\n{last}"))
    limits = Limits(max_revisions=1, critique="never")
    loop = await ended([code("f()"), code("g()")], CODE, checks=[check], limits=limits)
    (sent,) = prompts(loop, Stage.REVISE)
    assert "It failed with 3 orders." in sent
    assert last[:20] in sent
    assert "characters left out" in sent
    assert "frame 450" not in sent


def test_what_is_short_is_not_cut():
    assert cut_middle("a\nb", 1_500) == "a\nb"
    assert len(cut_middle("x" * 9_000, 1_500)) < 1_600
