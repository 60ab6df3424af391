"""E. Draft, critique, rewrite, verify: four labelled phases, and the pasted template."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from loop_scripts import TASK, criticised, finish, found, judged, refinement, requests, stages, text

from ipyrefine.compose import compose
from ipyrefine.core.ports import Request
from ipyrefine.core.runs import Limits, StopReason
from ipyrefine.providers.scripted import ScriptedModel

WEAK = [found("too dull"), found("too curt"), found("no name given")]
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


def content(**parts: Any) -> Callable[[Request], str]:
    """A judge that is content with whatever it is asked about."""

    def reply(request: Request) -> str:
        asked: Any = request.json_schema
        names = asked["properties"]["criteria"]["items"]["properties"]["name"]["enum"]
        scores = [{"name": name, "reason": "", "score": 9} for name in names]
        answers = [{"item": 1, "yes": True}, {"item": 2, "yes": True}]
        return json.dumps({"criteria": scores, "checklist": answers, **parts})

    return reply


async def test_the_four_phases_run_in_order_and_by_name() -> None:
    loop = refinement(
        [text("a"), judged(5, found("old news")), criticised(*WEAK), text("b"),
         judged(9, fixed=("f1", "f2", "f3", "f4"))],
        limits=Limits(every_critique=True),
    )  # fmt: skip
    assert stages(await finish(loop)) == ["draft", "judge", "critique", "revise", "judge"]


async def test_not_ready_is_criticised_again() -> None:
    again = [found("still slow"), found("wrong date"), found("weak ending")]
    loop = refinement(
        [text("a"), judged(5), criticised(*WEAK), text("b"), judged(6, fixed=FIXED),
         criticised(*again), text("c"), judged(9, fixed=("f4", "f5", "f6"))],
        limits=Limits(every_critique=True),
    )  # fmt: skip
    assert stages(await finish(loop)).count("critique") == 2
    assert loop.run.stop_reason is StopReason.PASSED


async def test_the_named_categories_are_what_a_critique_files_its_findings_under() -> None:
    task = TASK.model_copy(update={"categories": ("hook", "length")})
    loop = refinement([text("a"), judged(9), criticised(*WEAK), text("b"),
                       judged(9, fixed=FIXED)], task)  # fmt: skip
    await finish(loop)
    asked = requests(loop)[2]
    assert "hook, length" in asked.messages[-1].content
    assert '"hook", "length"' in json.dumps(asked.json_schema)


async def test_three_weaknesses_at_least_are_asked_for() -> None:
    loop = refinement([text("a"), judged(9), criticised(*WEAK), text("b"), judged(9, fixed=FIXED)])
    await finish(loop)
    schema: Any = requests(loop)[2].json_schema
    assert schema["properties"]["findings"]["minItems"] == 3


async def test_every_fix_has_a_note_of_what_changed() -> None:
    notes = "f1: livelier\nf2: longer\nf3: named her"
    loop = refinement([text("a"), judged(9), criticised(*WEAK), text("b", notes),
                       judged(9, fixed=FIXED)])  # fmt: skip
    await finish(loop)
    changes = loop.run.iterations[1].changes
    assert [(c.finding, c.summary) for c in changes] == [
        ("f1", "livelier"), ("f2", "longer"), ("f3", "named her"),
    ]  # fmt: skip


async def test_the_verification_names_the_unchecked_items() -> None:
    task = TASK.model_copy(update={"checklist": ("Is it short?", "Is there a name?")})
    judgement = json.loads(judged(9))
    judgement["checklist"] = [{"item": 1, "yes": True}, {"item": 2, "yes": False}]
    loop = refinement([text("a"), json.dumps(judgement)], task, limits=Limits(max_iterations=0))
    await finish(loop)
    assert loop.run.verdict is not None
    assert "Is there a name?" in loop.run.verdict.why
    assert "Is there a name?" in loop.run.message
    assert [a.yes for a in loop.run.verdict.checklist] == [True, False]


async def test_at_the_cap_it_says_that_the_requirements_may_be_the_problem() -> None:
    replies = [text("v0"), judged(2, found("problem zero"))]
    for number in (1, 2, 3, 4):
        replies += [text(f"v{number}"), judged(2 + number, found(f"trouble{number} again"))]
    loop = refinement(replies)
    await finish(loop)
    assert len(loop.run.iterations) - 1 == 4
    assert "requirements may be the problem" in loop.run.message


async def test_what_it_cost_is_known_for_each_iteration_and_in_all() -> None:
    loop = refinement([text("a"), judged(5, found("dull")), text("b"), judged(9, fixed=("f1",))])
    await finish(loop)
    assert [i.usage.calls for i in loop.run.iterations] == [2, 2]
    assert loop.run.usage.tokens == sum(i.usage.tokens for i in loop.run.iterations) > 0


async def test_self_congratulation_does_not_pass() -> None:
    loop = refinement([text("a"), judged(10), *[criticised()] * 2, text("b")])
    events = await finish(loop)
    assert "critique" in stages(events)


@pytest.mark.parametrize("where", ["quoted", "unquoted"])
async def test_a_pasted_template_runs_as_its_four_stages(where: str) -> None:
    earlier = [{"id": id_, "fixed": True} for id_ in FIXED]
    model = ScriptedModel(
        [text("Dear you"), content(), criticised(*WEAK), text("Dear Ann", "f3: named"),
         content(earlier=earlier)]
    )  # fmt: skip
    cell = CELL.replace("[ITER", "> [ITER") if where == "quoted" else CELL
    loop = compose(cell, model=model)
    assert stages(await finish(loop)) == ["draft", "judge", "critique", "revise", "judge"]
    asked = [request.messages for request in model.requests]
    assert "without polishing" in asked[0][1].content
    assert "hook and length" in asked[2][1].content
    assert "for every weakness" in asked[3][1].content
    assert all("busy engineer" in messages[0].content for messages in asked)
    assert all("ITERATION" not in messages[0].content for messages in asked)
    assert loop.run.task is not None
    assert loop.run.task.checklist == ("Under 120 words?", "One call to action?")
    assert loop.run.text == "Dear Ann"


async def test_a_cosmetic_fix_is_not_believed() -> None:
    loop = refinement(
        [text("Hi there"), judged(5, found("too dull")), text("hi, there!", "f1: livelier"),
         judged(9, fixed=("f1",))],
        limits=Limits(max_iterations=1),
    )  # fmt: skip
    await finish(loop)
    assert not loop.run.iterations[1].changes[0].confirmed
    assert loop.run.stop_reason is not StopReason.PASSED


async def test_an_addition_nobody_asked_for_is_a_finding() -> None:
    code = TASK.model_copy(update={"text": "Write inc(n).", "form": "code"})
    extra = "def inc(n):\n    return n + 1\n\n\ndef dec(n):\n    return n - 1"
    loop = refinement(
        ["```python\ndef inc(n): ...\n```", judged(4, found("it is empty")),
         f"```python\n{extra}\n```", judged(9, fixed=("f1",))],
        code,
    )  # fmt: skip
    await finish(loop)
    assert [f.criterion for f in loop.run.iterations[1].actionable] == ["scope"]


async def test_a_finding_without_its_words_in_the_text_is_not_acted_on() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("too stiff", quote="Dear Sir"), found("too dull")),
         text("Hi Ann"), judged(9, fixed=("f2",))],
    )  # fmt: skip
    await finish(loop)
    assert not loop.run.iterations[0].findings[0].grounded
    assert "Dear Sir" not in requests(loop)[2].messages[-1].content


async def test_the_requirements_head_every_pass() -> None:
    loop = refinement([text("a"), judged(9), criticised(*WEAK), text("b"), judged(9, fixed=FIXED)])
    await finish(loop)
    heads = [request.messages[0].content for request in requests(loop)]
    assert len(heads) == 5
    assert len(set(heads)) == 1
    assert TASK.text in heads[0]
