"""What a critic says the task leaves open belongs to the run, until the user answers it."""

import json
from typing import Any

import pytest
from kit import code, ended, finding, finish, question, text

from ipyrefine import refine
from ipyrefine.core import decisions
from ipyrefine.core.actions import decision_sentence
from ipyrefine.core.critiques import read_critique
from ipyrefine.core.model import Clarification, Criterion, Limits, Setup, Task
from ipyrefine.core.points import answer, left_open
from ipyrefine.core.results import expect, rows
from ipyrefine.core.run import Run
from ipyrefine.core.table import Cell, Result
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel

CODE = "def last(xs):\n    return xs[-1] if xs else None"
TASK = "Write `last(xs)` that returns the last item."
CALL = {"question": "What of an empty list?", "options": [None, "IndexError"], "call": "last( [] )"}
WORDS = {"question": "Keep the salutation?", "options": ["yes", "no"]}


def reply(*questions: Any, ready: bool = True, findings: Any = (), **more: Any) -> str:
    fields = {"findings": [*findings], "questions": [*questions], "ready": ready, **more}
    return json.dumps(fields | {"because": "So."})


async def run_of(*replies: str, task: str = TASK, **options: Any) -> tuple[Run, ScriptedModel]:
    model = ScriptedModel(replies)
    return await refine(task, model=model, journal=False, **options), model


async def test_a_question_neither_blocks_a_text_nor_counts_as_a_weakness():
    run, _ = await run_of(text("Dear Ann"), reply(WORDS), task="Write a mail.", profile="email")
    assert run.verdict.passed
    short = reply(WORDS, ready=False, findings=[finding("It is curt.")])
    run, model = await run_of(
        text("Dear Ann"), short, short, task="Write a mail.", profile="email",
        min_findings=2, max_revisions=0,
    )  # fmt: skip
    assert len(model.requests) == 3, "one weakness and one question are not two weaknesses"


async def test_a_question_with_a_call_is_a_row_with_its_options():
    run, _ = await run_of(code(CODE), reply(CALL))
    asked = [row for row in rows(run, run.iterations[0]) if row.source == "open"]
    assert [row.call for row in asked] == ["last([])"]
    assert {*asked[0].rivals} <= {"None", "raises IndexError"}
    answered = expect(asked[0], "IndexError")
    assert (answered.call, answered.gives) == ("last([])", "raises IndexError")


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        (CALL, []),
        ({"question": "What should last([]) give?", "options": ["None", "fail"]}, []),
        (WORDS, [WORDS["question"]]),
    ],
)
async def test_what_the_user_expects_of_a_call_answers_each_question_about_it(asked, left):
    run, _ = await run_of(code(CODE), reply(asked))
    example = Clarification(call="last([])", gives="raises IndexError")
    setup = run.setup.replace(task=run.task.replace(clarifications=(example,)))
    run = run.model_copy(update={"setup": setup})
    assert [one.words for one in left_open(run, run.iterations[0])] == left


@pytest.mark.parametrize(
    "fields",
    [
        {"options": ["fail", "give nothing"]}, {"options": ["None"]}, {"call": "3"},
        {"call": "an empty list"}, {"call": None},
    ],
    ids=["words for results", "one result", "a value", "no Python", "nothing"],
)  # fmt: skip
def test_a_question_whose_options_no_input_shows_has_no_call(fields):
    [asked] = read_critique(reply({**CALL, **fields}), CODE).remarks
    assert asked.call == ""
    assert (asked.kind, asked.blocking) == ("question", False)


def test_an_answer_is_what_the_next_revision_acts_on():
    asked = question("Keep the salutation?", "yes", "no")
    said = answer(Cell(asked, Result(passed=False)), "no")
    assert (said.id, said.words, said.blocking) == ("q1", "Keep the salutation? no", True)
    run = Run(setup=Setup(task=Task(text="Write a mail.")))
    told = decision_sentence(run, decisions.Add(point=said))
    assert told == "You answered q1: Keep the salutation? no"
    with pytest.raises(UsageError, match="no open question"):
        answer(Cell(said, Result(passed=False)), "yes")


@pytest.mark.parametrize(
    ("item", "options"),
    [
        ("What of None?", ()),
        ({"question": "Which?", "options": [1, None, [2], "x"]}, ("1", "None", "[2]", "x")),
    ],
    ids=["words", "a dict"],
)
def test_the_options_of_a_question_are_read(item, options):
    [asked] = read_critique(reply(item), CODE).remarks
    assert asked.options == options


async def test_an_answered_or_dismissed_question_is_not_asked_again():
    other = {"question": "Sign with the full name?", "options": ["yes", "no"]}
    model = ScriptedModel([
        text("Dear Ann"), reply(WORDS, other, ready=False),
        "q2: as said\n\n<text>\nDear Ann, hello. Bob Ray\n</text>",
        reply(WORDS, other, fixed=["q2"]),
    ])  # fmt: skip
    task = Task(text="Write a mail.", criteria=(Criterion(name="tone", definition="Warm."),))
    loop = await ended(model, task, limits=Limits(max_revisions=0))
    [salutation, name] = left_open(loop.state, loop.state.iterations[0])
    loop.decide(decisions.Dismiss(points=(salutation.id,)))
    loop.decide(decisions.Add(point=answer(loop.state.latest(name.id), "yes")))
    loop.decide(decisions.Continue())
    await finish(loop)
    revise, critic = (request.messages[-1].content for request in model.requests[2:])
    assert "Sign with the full name? yes" in revise
    assert "Keep the salutation?" not in revise
    assert "Settled already, not to be named again:\n- Keep the salutation?" in critic
    assert left_open(loop.state, loop.state.iterations[1]) == []
    assert loop.state.verdict.passed
