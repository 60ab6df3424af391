"""Drafts that disagree ask one question; its answer verifies every draft anew, without a model."""

import asyncio
from collections.abc import Sequence
from functools import cache

import pytest
from kit import CODE, code, decide, finish, prompts, refinement, stages

from ipyrefine.core.decisions import DECISION, Answer, Continue
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Decided
from ipyrefine.core.model import (
    Choice,
    Clarification,
    Evidence,
    Limits,
    Question,
    Stage,
    StopReason,
    Task,
)
from ipyrefine.core.ports import Check
from ipyrefine.core.reducer import apply, require_possible
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.session.commands import parse_answer

CALL = "f([])"
TWO = Limits(candidates=2, max_revisions=2)


class Agreement:
    """A comparing check on texts like ``f = 1``, which say what they give on the one further input.

    Two drafts of a result are a quorum. An answer of the user's decides over any number of them.
    """

    name = "agreement"

    def __init__(self, others: Sequence[str] = (), left: int = 0) -> None:
        self._others, self._left = others, left

    def among(self, others: Sequence[str], left: int = 0) -> Check:
        return Agreement(others, left)

    async def __call__(self, text: str, task: Task) -> Evidence:
        gives = [one.removeprefix("f = ") for one in (text, *self._others)]
        detail = f"{gives.count(gives[0])} of {len(gives)} agree"
        if task.clarifications:
            right = gives[0] == task.clarifications[-1].result
            detail = f"{CALL} gives {gives[0]}, not {task.clarifications[-1].result}"
            return self._found(right, detail, decisive=right, drafts="agree")
        if gives.count(gives[0]) > 1:
            open_edge = Question(call="f(0)", choices=(Choice(result="1"), Choice(result="2")))
            edge = open_edge if gives[0] == "'edge'" else None
            return self._found(True, detail, decisive=True, drafts="agree", question=edge)
        if len(gives) == 1:
            return self._found(None, "there is no other draft yet")
        results = sorted(set(gives))
        choices = tuple(Choice(result=r, raises=r.endswith("Error")) for r in results)
        question = Question(call=CALL, choices=choices)
        drafts = "differ" if self._left == 0 else "open"
        return self._found(None, detail, drafts=drafts, question=question)

    def _found(self, passed: bool | None, detail: str, **fields: object) -> Evidence:
        basis = "examples" if passed else "agreement"
        found = {"name": self.name, "passed": passed, "detail": detail, "basis": basis}
        return Evidence.model_validate({**found, **fields})


def drafts(*results: str) -> list[str]:
    return [code(f"f = {result}") for result in results]


async def asked(*results: str) -> Refinement:
    """A run that stopped with the question which of two drafts is right."""
    replies = drafts(*(results or ("None", "ValueError")))
    loop = refinement(replies, CODE, checks=[Agreement()], limits=TWO, weak_critic=True)
    await finish(loop)
    return loop


async def test_a_pass_asks_about_an_edge_case_that_the_task_leaves_open() -> None:
    loop = await asked("'edge'", "'edge'")
    assert loop.state.stop_reason is StopReason.PASSED
    assert loop.state.question is not None
    assert loop.state.question.call == "f(0)"
    calls = loop.state.usage.calls
    assert stages(await decide(loop, Answer(result="'edge'"))) == ["check"]
    assert (loop.state.stop_reason, loop.state.usage.calls) == (StopReason.PASSED, calls)
    assert loop.state.question is None


@pytest.mark.parametrize(("choice", "text"), [(1, "f = None"), (2, "f = ValueError")])
async def test_an_answer_verifies_all_drafts_anew_without_a_call(choice: int, text: str) -> None:
    loop = await asked()
    calls = loop.state.usage.calls
    assert stages(await decide(loop, Answer(choice=choice))) == ["check", "check"]
    assert loop.state.usage.calls == calls
    assert (loop.state.text, loop.state.stop_reason) == (text, StopReason.PASSED)
    outcomes = [i.verdict and i.verdict.outcome for i in loop.state.iterations]
    assert sorted(map(str, outcomes)) == ["NEEDS_IMPROVEMENT", "PASS"]
    assert loop.state.question is None


async def test_a_user_who_continues_instead_leaves_the_question_open() -> None:
    replies = [*drafts("None", "ValueError"), code("f = 0")]
    loop = refinement(replies, CODE, checks=[Agreement()], limits=TWO, weak_critic=True)
    await finish(loop)
    ran = stages(await decide(loop, Continue(guidance="Return 0.")))
    assert "revise" in ran
    assert "Return 0." in prompts(loop, Stage.REVISE)[0]


# Answers


@cache
def question_run() -> Run:
    return asyncio.run(asked()).state


QUESTION = Question(
    call="f([])",
    choices=(Choice(result="None"), Choice(result="ValueError", raises=True)),
    setup="import m",
)


@pytest.mark.parametrize(
    ("words", "result", "raises"),
    [
        (["1"], "None", False),
        (["2"], "ValueError", True),
        (["3"], "3", False),
        (["0"], "0", False),
        (["None"], "None", False),
        (["[1,", "2]"], "[1, 2]", False),
        (["'a", "b'"], "'a b'", False),
        (["KeyError"], "KeyError", True),
        (["raises", "KeyError"], "KeyError", True),
        (["Raises", "errors.OwnError"], "OwnError", True),
        (["StopIteration"], "StopIteration", True),
    ],
)
def test_a_number_a_value_or_an_exception_is_an_answer(
    words: list[str], result: str, raises: bool
) -> None:
    run = question_run().model_copy(update={"question": QUESTION})
    answer = parse_answer(run, " ".join(words))
    require_possible(run, answer)
    assert apply(run, Decided(decision=answer)).task.clarifications == (
        Clarification(call="f([])", result=result, raises=raises, setup="import m"),
    )
    assert DECISION.validate_json(DECISION.dump_json(answer)) == answer


@pytest.mark.parametrize("words", [[], ["banana"], ["f(x)"], ["1 +"], ["raises"], ["(" * 9_999]])
def test_anything_else_is_refused_in_a_sentence(words: list[str]) -> None:
    answer = parse_answer(question_run(), " ".join(words))
    with pytest.raises(UsageError, match="Answer with the number of a result"):
        require_possible(question_run(), answer)


def test_a_choice_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="answers 1 to 2, not 3"):
        require_possible(question_run(), Answer(choice=3))
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        Answer(choice=0)


async def test_without_a_question_there_is_nothing_to_answer() -> None:
    loop = await asked("None", "None")
    with pytest.raises(UsageError, match="There is no question to answer"):
        loop.decide(Answer(choice=1))
