"""Drafts that disagree ask one question; its answer verifies every draft anew, without a model."""

from collections.abc import Sequence

from kit import CODE, code, decide, finish, prompts, refinement, stages

from ipyrefine.core.decisions import Continue, Expect
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Choice, Evidence, Limits, Question, Stage, StopReason, Task
from ipyrefine.core.ports import Check

QUESTION = Question(call="f(0)", choices=(Choice(result="1"), Choice(result="2")))


class Asks:
    """A comparing check that asks its question until it is answered.

    Args:
        passed: whether it passes the text all the same.
    """

    name = "agreement"

    def __init__(self, *, passed: bool) -> None:
        self._passed = passed

    def among(self, others: Sequence[str], left: int = 0) -> Check:
        return self

    async def __call__(self, text: str, task: Task) -> Evidence:
        passed = self._passed or bool(task.clarifications)
        return Evidence(
            name=self.name,
            passed=passed or None,
            basis="examples" if passed else "agreement",
            decisive=passed,
            drafts="agree" if passed else "differ",
            question=None if task.clarifications else QUESTION,
        )


async def asked(*, passed: bool) -> Refinement:
    """A run that stopped with a question about its draft."""
    replies = [code("f = 1"), code("f = 2")]
    limits = Limits(max_revisions=2)
    checks = [Asks(passed=passed)]
    loop = refinement(replies, CODE, checks=checks, limits=limits, weak_critic=True)
    await finish(loop)
    return loop


async def test_a_pass_asks_about_an_edge_case_that_the_task_leaves_open() -> None:
    loop = await asked(passed=True)
    assert loop.state.stop_reason is StopReason.PASSED
    assert loop.state.question == QUESTION
    calls = loop.state.usage.calls
    assert stages(await decide(loop, Expect(call="f(0)", result="1"))) == ["check"]
    assert (loop.state.stop_reason, loop.state.usage.calls) == (StopReason.PASSED, calls)
    assert loop.state.question is None


async def test_a_user_who_continues_instead_leaves_the_question_open() -> None:
    loop = await asked(passed=False)
    assert loop.state.stop_reason is StopReason.QUESTION
    assert "f(0)" in loop.state.message
    ran = stages(await decide(loop, Continue(guidance="Return 0.")))
    assert "revise" in ran
    assert "Return 0." in prompts(loop, Stage.REVISE)[0]
    assert loop.state.question == QUESTION
