"""Drafts that disagree ask one question; its answer verifies every draft anew, without a model."""

from collections.abc import Sequence

import pytest
from kit import CODE, code, decide, finish, prompts, refinement, stages

from ipyrefine.core.decisions import Continue, Expect
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Choice, Evidence, Limits, Question, Stage, StopReason, Task
from ipyrefine.core.ports import Check

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
    answer = Expect(call="f(0)", result="'edge'")
    assert stages(await decide(loop, answer)) == ["check"]
    assert (loop.state.stop_reason, loop.state.usage.calls) == (StopReason.PASSED, calls)
    assert loop.state.question is None


@pytest.mark.parametrize("result", ["None", "ValueError"])
async def test_an_answer_verifies_all_drafts_anew_without_a_call(result: str) -> None:
    loop = await asked()
    calls = loop.state.usage.calls
    answer = Expect(call=CALL, result=result, raises=result != "None")
    assert stages(await decide(loop, answer)) == ["check", "check"]
    assert loop.state.usage.calls == calls
    assert (loop.state.text, loop.state.stop_reason) == (f"f = {result}", StopReason.PASSED)
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
