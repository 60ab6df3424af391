"""E. Draft, critique, rewrite, verify: four labelled phases, and the pasted template.

- Your loop: a template with four labelled phases, categories, a minimum number of weaknesses, and a
  checklist.
- Here: `%%refine -n 1`, with the template pasted below it, ``[ITERATION 1]`` to ``[ITERATION 4]``.
  Its categories, numbers and checklist replace the profile's. One pass is four calls; ``-n 3``
  repeats from the critique.
- By default the critic also verifies: it reads the revision with the words of the fourth phase.
  Every text is criticised (``--critique never`` switches that off), and an unfilled
  ``[placeholder]`` is a warning.
"""

from typing import Any

from kit import (
    TASK,
    critique,
    finding,
    finish,
    judgement,
    refinement,
    requests,
    text,
)

from ipyrefine import refine
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.labels import stop_sentence


async def test_the_verification_names_the_unchecked_items() -> None:
    task = TASK.model_copy(update={"checklist": ("Is it short?", "Is there a name?")})
    unmet = finding("Is there a name? No.", criterion="checklist")
    loop = refinement([text("a"), critique(unmet)], task, limits=Limits(max_revisions=0))
    await finish(loop)
    assert "2. Is there a name?" in requests(loop)[1].messages[0].content
    assert loop.state.verdict is not None
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    assert "Is there a name?" in loop.state.verdict.because.problem
    assert "Is there a name?" in stop_sentence(loop.state)


async def test_an_addition_nobody_asked_for_can_be_filed_under_scope() -> None:
    extra = finding("A joke that nobody asked for.", quote="knock knock", criterion="scope")
    loop = refinement(
        [text("Hi, knock knock"), critique(extra), text("Hi"), judgement(9, fixed=("f1",))]
    )
    await finish(loop)
    assert [f.criterion for f in loop.state.iterations[0].actionable] == ["scope"]
    assert "scope" in requests(loop)[1].messages[-1].content
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.PASSED)


# The template as it is pasted: four calls, and what comes after "not ready"

BASIC = """\
[ITERATION 1]
Write an opening email to the data teams of museums about our cataloguing tool.

[ITERATION 2]
Read it again. Name 3 weaknesses in: accuracy, tone and call to action.

[ITERATION 3]
Write it anew without these weaknesses, and note for each what you changed.

[ITERATION 4]
Is it ready to be sent? If it is not, what is missing?
"""
MAILS = [f"Dear museum, this is mail {n}." for n in range(5)]
NAMED = [
    ["The price is wrong", "It sounds stiff", "Nobody is asked for anything"],
    ["The year is missing", "Greeting feels cold", "Two links compete there"],
    ["The price is wrong", "Jokes fall flat", "Signature lacks phone"],
    ["Subject shouts loudly", "Second paragraph rambles", "Date format confuses"],
]
# The findings that a text has, by its number; the price is named twice.
NEW = [("f1", "f2", "f3"), ("f4", "f5", "f6"), ("f1", "f7", "f8"), ("f9", "f10", "f11")]


def pasted(passes: int) -> ScriptedModel:
    """A model that finds something in every text but the last of so many passes."""
    replies: list[Any] = [text(MAILS[0])]
    fixed: tuple[str, ...] = ()
    for number, problems in enumerate(NAMED[:passes]):
        weak = [finding(problem, criterion="tone") for problem in problems]
        replies += [judgement(5, *weak, fixed=fixed), text(MAILS[number + 1], "f1: mended")]
        fixed = NEW[number]
    return ScriptedModel([*replies, judgement(9, fixed=fixed)])


async def test_not_ready_leads_to_a_critique_of_the_newest_text_each_time() -> None:
    model = pasted(4)
    run = await refine(BASIC, model=model)
    assert (run.text, run.stop_reason) == (MAILS[4], StopReason.PASSED)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2, 3]
    assert run.usage.calls == 2 + 4 * 2, "what verifies a text also says what it still lacks"
    critiques = [r.messages[-1].content for r in model.requests if r.purpose == "critique"]
    shown = [max(n for n, mail in enumerate(MAILS) if mail in asked) for asked in critiques]
    assert shown == [0, 1, 2, 3, 4]


async def test_a_weakness_that_was_fixed_and_is_named_again_is_regressed_and_acted_on() -> None:
    model = pasted(4)
    run = await refine(BASIC, model=model)
    [price] = [f.id for f in run.iterations[0].findings if f.problem == NAMED[0][0]]
    statuses = [{f.id: f.status.value for f in i.findings}[price] for i in run.iterations]
    assert statuses == ["open", "resolved", "regressed", "resolved", "resolved"]
    revisions = [r.messages[-1].content for r in model.requests if r.purpose == "revise"]
    assert [f"- {price} (" in asked for asked in revisions] == [True, False, True, False]
    assert "The price is wrong" in revisions[2]
