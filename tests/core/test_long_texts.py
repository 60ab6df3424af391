"""Long texts are sent whole, beside the user's own; evidence is cut in its middle."""

import pytest
from kit import CODE, READY, Finds, code, finding, finish, judgement, prompts, refinement, text

from ipyrefine.core.model import Limits, Stage
from ipyrefine.core.prompts import cut_middle
from ipyrefine.core.table import Evidence
from ipyrefine.providers.scripted import ScriptedModel

LONG = "\n".join(f"Line {n} says what it says, and no more than that." for n in range(4_500))
EDIT = "<find>\nLine 7 says\n</find>\n<replace>\nLine 7 tells\n</replace>"


def critical() -> list[object]:
    return [judgement(4, finding("Line 7 is dull.")), judgement(9, fixed=["f1"])]


async def test_a_text_of_60_000_tokens_is_read_and_edited_whole() -> None:
    loop = refinement({Stage.CRITIQUE: critical(), Stage.REVISE: [EDIT]}, draft=LONG)
    await finish(loop)
    assert loop.state.text == LONG.replace("Line 7 says", "Line 7 tells")
    first, revise, second = prompts(loop)
    assert len(LONG) > 4 * 50_000
    assert all(LONG in one for one in (first, revise))
    assert loop.state.text in second
    assert loop.state.warnings == ()


async def test_every_prompt_begins_with_the_user_s_text_which_stands_there_once() -> None:
    """So a server that keeps what it has read reads a long one once in a run."""
    flat = judgement(4, finding("Flat."), fixed=["f1"])
    critiques = [judgement(4, finding("Cold.")), flat, judgement(9, fixed=["f2"])]
    replies = {Stage.CRITIQUE: critiques, Stage.REVISE: [text("Hello"), text("Hello!")]}
    loop = refinement(replies, draft="Hi")
    await finish(loop)
    asked = prompts(loop)
    assert len({prompt[: prompt.index("</material")] for prompt in asked}) == 1
    assert all(prompt.count("\nHi\n") == 1 for prompt in asked)
    same = "It is still that one, word for word."
    assert [same in prompt for prompt in asked] == [True, True, False, False, False]
    assert "\n-Hi\n+Hello\n" in asked[2]


async def test_a_prompt_of_the_user_s_gets_the_original_where_it_has_the_place() -> None:
    from ipyrefine.core.prompts import Prompts

    for template, there in (("{text}", False), ("{original}{text}", True)):
        replies = {Stage.CRITIQUE: critical(), Stage.REVISE: [text("Hello")]}
        own = Prompts(critique=template)
        loop = refinement(replies, draft="Hi", prompts=own)
        await finish(loop)
        assert ("the user's own text" in prompts(loop)[2]) is there


@pytest.mark.parametrize(
    ("limits", "window", "sentence"),
    [
        (Limits(max_tokens=2_048), None, ""),  # edits are short
        (Limits(max_tokens=None), 8_192, "and scripted holds 8,192"),
        (Limits(max_tokens=None), 128_000, ""),
    ],
)
async def test_a_limit_that_cannot_hold_the_text_is_named_before_the_first_call(
    limits: Limits, window: int | None, sentence: str
) -> None:
    model = ScriptedModel([READY])
    model.context_tokens = window
    loop = refinement(model, draft=LONG, limits=limits)
    await finish(loop)
    assert bool(loop.state.warnings) is bool(sentence)
    assert sentence in " ".join(loop.state.warnings)


async def test_a_reply_limit_is_named_where_the_text_is_written_out_again() -> None:
    loop = refinement([READY], draft=LONG, limits=Limits(max_tokens=2_048), weak_editor=True)
    await finish(loop)
    assert "a reply may take 2,048" in loop.state.warnings[0]


@pytest.mark.parametrize("last", ["KeyError: 'revenues'", f"ValueError: {'x' * 5_000}"])
async def test_of_long_evidence_the_first_line_and_the_start_of_the_last_one_are_sent(
    last: str,
) -> None:
    detail = "It failed with 3 orders.\n" + "\n".join(f"frame {n}" for n in range(900))
    check = Finds(Evidence(name="run", passed=False, detail=f"{detail}\n{last}"))
    limits = Limits(max_revisions=1, critique="never")
    loop = refinement([code("f()"), code("g()")], CODE, checks=[check], limits=limits)
    await finish(loop)
    (sent,) = prompts(loop, Stage.REVISE)
    assert "It failed with 3 orders." in sent
    assert last[:20] in sent
    assert "characters left out" in sent
    assert "frame 450" not in sent


def test_what_is_short_is_not_cut() -> None:
    assert cut_middle("a\nb", 1_500) == "a\nb"
    assert len(cut_middle("x" * 9_000, 1_500)) < 1_600
