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

import pytest
from kit import (
    READY,
    TASK,
    critique,
    finding,
    finish,
    judgement,
    prompts,
    refinement,
    requests,
    stages,
    text,
)

from ipyrefine import api, refine
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.labels import stop_sentence

WEAK = [finding("too dull"), finding("too curt"), finding("no name given")]
FIXED = ("f1", "f2", "f3")
CELL = """\
Write a cold email to a busy engineer about our linter.

[ITERATION 1: DRAFT]
Write the first version without polishing.
[ITERATION 2: CRITIQUE]
Name weaknesses in hook and length.
[ITERATION 3: REWRITE]
Say what you changed for every weakness.
[ITERATION 4: VERIFY]
- [ ] Under 120 words?
- [ ] One call to action?
"""


async def test_the_four_phases_run_in_order_and_by_name() -> None:
    loop = refinement(
        [
            text("a"),
            critique(*WEAK),
            text("b"),
            judgement(9, fixed=FIXED),
        ],
        limits=Limits(critique="always"),
    )
    assert stages(await finish(loop)) == ["draft", "critique", "revise", "critique"]


async def test_not_ready_is_criticised_again() -> None:
    again = [finding("still slow"), finding("wrong date"), finding("weak ending")]
    loop = refinement(
        [
            text("a"),
            critique(*WEAK),
            text("b"),
            judgement(6, *again, fixed=FIXED),
            text("c"),
            judgement(9, fixed=("f4", "f5", "f6")),
        ],
        limits=Limits(critique="always"),
    )
    assert stages(await finish(loop)).count("critique") == 3
    assert loop.state.stop_reason is StopReason.PASSED


async def test_every_fix_has_a_note_of_what_changed() -> None:
    notes = "f1: livelier\nf2: longer\nf3: named her"
    loop = refinement([text("a"), critique(*WEAK), text("b", notes), judgement(9, fixed=FIXED)])
    await finish(loop)
    changes = loop.state.iterations[1].changes
    assert [(c.finding, c.summary) for c in changes] == [
        ("f1", "livelier"),
        ("f2", "longer"),
        ("f3", "named her"),
    ]


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


async def test_at_the_cap_it_says_that_the_requirements_may_be_the_problem() -> None:
    replies = [text("v0"), judgement(2, finding("problem zero"))]
    for number in (1, 2, 3, 4):
        trouble = finding(f"trouble{number} again")
        replies += [text(f"v{number}"), judgement(2 + number, trouble, fixed=[f"f{number}"])]
    loop = refinement(replies)
    await finish(loop)
    assert len(loop.state.iterations) - 1 == 4
    assert "say what you need more exactly" in stop_sentence(loop.state)


async def test_what_it_cost_is_known_for_each_iteration_and_in_all() -> None:
    loop = refinement(
        [text("a"), judgement(5, finding("dull")), text("b"), judgement(9, fixed=("f1",))]
    )
    await finish(loop)
    assert [i.usage.calls for i in loop.state.iterations] == [2, 2]
    assert loop.state.usage.tokens == sum(i.usage.tokens for i in loop.state.iterations) > 0


async def test_self_congratulation_does_not_pass() -> None:
    loop = refinement([text("a, and it is perfect"), critique(*WEAK), text("b"), READY])
    events = await finish(loop)
    assert stages(events)[:3] == ["draft", "critique", "revise"]


@pytest.mark.parametrize("where", ["quoted", "unquoted"])
async def test_a_pasted_template_runs_as_its_four_stages(where: str) -> None:
    model = ScriptedModel(
        [
            text("Dear you"),
            critique(*WEAK),
            text("Dear Ann", "f3: named"),
            judgement(9, fixed=FIXED),
        ]
    )
    cell = CELL.replace("[ITER", "> [ITER") if where == "quoted" else CELL
    loop = api.build(cell, model=model)
    assert stages(await finish(loop)) == ["draft", "critique", "revise", "critique"]
    asked = [request.messages for request in model.requests]
    assert "without polishing" in asked[0][1].content
    assert "hook and length" in asked[1][1].content
    assert "for every weakness" in asked[2][1].content
    assert "Under 120 words?" in asked[3][1].content
    assert all("busy engineer" in messages[0].content for messages in asked)
    assert all("ITERATION" not in messages[0].content for messages in asked)
    assert loop.state.task.checklist == ("Under 120 words?", "One call to action?")
    assert loop.state.text == "Dear Ann"


async def test_a_cosmetic_fix_is_named_as_one() -> None:
    loop = refinement(
        [
            text("Hi there"),
            judgement(5, finding("too dull")),
            text("hi, there!", "f1: livelier"),
            judgement(6),
        ],
        limits=Limits(max_revisions=1),
    )
    await finish(loop)
    assert any("spacing and punctuation only" in warning for warning in loop.state.warnings)


async def test_an_addition_nobody_asked_for_can_be_filed_under_scope() -> None:
    extra = finding("A joke that nobody asked for.", quote="knock knock", criterion="scope")
    loop = refinement(
        [text("Hi, knock knock"), critique(extra), text("Hi"), judgement(9, fixed=("f1",))]
    )
    await finish(loop)
    assert [f.criterion for f in loop.state.iterations[0].actionable] == ["scope"]
    assert "scope" in requests(loop)[1].messages[-1].content
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.PASSED)


async def test_a_finding_without_its_words_in_the_text_is_acted_on_without_a_place() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("too stiff", quote="Dear Sir"), finding("too dull")),
            text("Hi Ann"),
            judgement(9, fixed=("f1", "f2")),
        ],
    )
    await finish(loop)
    [stiff] = [f for f in loop.state.iterations[0].findings if f.problem == "too stiff"]
    assert stiff.quote == ""
    assert "too stiff" in prompts(loop)[2]


async def test_the_requirements_head_every_pass() -> None:
    loop = refinement([text("a"), critique(*WEAK), text("b"), judgement(9, fixed=FIXED)])
    await finish(loop)
    heads = [request.messages[0].content for request in requests(loop)]
    assert len(heads) == 4
    assert len(set(heads)) == 1
    assert TASK.text in heads[0]


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


async def test_the_basic_template_is_four_calls() -> None:
    model = pasted(1)
    run = await refine(BASIC, model=model)
    assert [r.purpose for r in model.requests] == ["draft", "critique", "revise", "critique"]
    assert (run.usage.calls, run.text, run.stop_reason) == (4, MAILS[1], StopReason.PASSED)
    assert "at least 3 weaknesses" in model.requests[1].messages[-1].content
    assert "accuracy, tone, call to action" in model.requests[1].messages[-1].content
    assert all("data teams of museums" in r.messages[0].content for r in model.requests)


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
