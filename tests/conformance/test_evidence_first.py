"""Evidence first: what a task states is run without an option, and no opinion passes a failure."""

import json
from collections import Counter
from typing import Any

import pytest
from kit import READY, code, critique, finding, finish, in_order, text

from ipyrefine import api, refine
from ipyrefine.core.decisions import Accept, Continue, Override
from ipyrefine.core.model import Evidence, Limits, Outcome, StopReason, Task
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel

INC = "Write inc(n), which adds one.\n\n>>> inc(1)\n2\n>>> inc(4)\n5\n"
RIGHT = "def inc(n):\n    return n + 1"
WRONG = ["def inc(n):\n    return n", "def inc(n):\n    return 2", "def inc(n):\n    return 5"]
SEA = "Describe the sea in at most five words."


def purposes(model: ScriptedModel) -> Counter[str]:
    return Counter(request.purpose for request in model.requests)


async def test_a_task_that_states_examples_passes_on_them_once_it_was_read() -> None:
    model = ScriptedModel([code(RIGHT), READY])
    run = await refine(INC, model=model)
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "examples")
    assert run.stop_reason is StopReason.PASSED
    assert purposes(model) == {"draft": 1, "critique": 1}
    assert (run.setup.checks, run.setup.demands) == (("examples", "results"), ("2 examples",))


async def test_a_draft_that_misses_an_example_is_revised_before_anybody_reads_it() -> None:
    model = ScriptedModel([code(WRONG[0]), code(RIGHT), READY])
    run = await refine(INC, model=model)
    assert (run.text, run.stop_reason) == (RIGHT, StopReason.PASSED)
    assert [r.purpose for r in model.requests] == ["draft", "revise", "critique"]
    assert "inc(1): expected 2, got 1" in model.requests[1].messages[-1].content
    first = run.iterations[0].verdict
    assert first is not None
    assert (first.outcome, first.basis) == (Outcome.NEEDS_IMPROVEMENT, "examples")


@pytest.mark.parametrize("critic", ["auto", "always", "never"])
async def test_no_reader_passes_a_text_that_fails_an_example(critic: Any) -> None:
    replies = {
        "draft": [code(WRONG[0])],
        "revise": [code(text) for text in WRONG[1:]],
        "critique": [critique()] * 9,
    }

    def answer(request: Any) -> Any:
        item = replies[request.purpose].pop(0)
        return item if isinstance(item, str) else item(request)

    model = ScriptedModel([answer] * 20)
    limits = Limits(max_revisions=2, critique=critic)
    run = await refine(INC, model=model, limits=limits)
    assert [i.text for i in run.iterations] == WRONG
    assert not any(i.verdict and i.verdict.passed for i in run.iterations)
    assert not run.converged


async def failed() -> Any:
    loop = api.build(INC, model=in_order([code(WRONG[0])]), limits=Limits(max_revisions=0))
    await finish(loop)
    assert loop.state.stop_reason is StopReason.REVISIONS
    return loop


async def test_the_user_may_pass_a_failed_example_and_then_it_says_so() -> None:
    loop = await failed()
    loop.decide(Override(iteration=0, outcome=Outcome.PASS, reason="Good enough."))
    await finish(loop)
    verdict = loop.state.verdict
    assert (verdict.outcome, verdict.basis) == (Outcome.PASS, "user")
    assert verdict.over_failed_check
    assert loop.state.stop_reason is StopReason.OVERRIDDEN


async def test_accepting_a_failed_text_is_the_users_choice_and_no_pass() -> None:
    loop = await failed()
    loop.decide(Accept(iteration=0))
    await finish(loop)
    assert loop.state.stop_reason is StopReason.ACCEPTED
    assert loop.state.text == WRONG[0]
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT


async def test_a_function_of_the_users_does_not_pass_a_failed_example() -> None:
    model = ScriptedModel([code(WRONG[0])])
    run = await refine(INC, model=model, checks=[lambda text: 1.0], target=0.9, max_revisions=0)
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.required_passed) == ("NEEDS_IMPROVEMENT", False)


async def test_without_the_check_the_text_is_read_and_the_basis_says_so() -> None:
    model = in_order([code(RIGHT), READY])
    run = await refine(INC, model=model, no_checks=["examples"])
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "critique")
    assert run.setup.checks == ("results",)


async def test_constraints_settle_themselves_and_a_critic_reads_the_rest() -> None:
    model = in_order([text("Salt, wind and long light."), READY])
    run = await refine(SEA, model=model)
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "critique")
    assert run.setup.demands == ("length:<=5 words",)
    assert run.usage.calls == 2


async def test_a_constraint_that_is_missed_is_revised_before_anybody_reads_it() -> None:
    long = "The sea is salty and wide and deep."
    model = in_order([text(long), text("Salt, wind and long light."), READY])
    run = await refine(SEA, model=model)
    first = run.iterations[0].verdict
    assert first is not None
    assert (first.outcome, first.basis) == (Outcome.NEEDS_IMPROVEMENT, "constraints")
    assert run.stop_reason is StopReason.PASSED
    assert run.usage.calls == 3


async def test_prose_is_read_revised_and_read_again() -> None:
    replies = [text("The sea."), critique(finding("too curt")), text("The wide sea."), READY]
    run = await refine("Describe the sea.", model=in_order(replies))
    outcomes = [i.verdict.outcome for i in run.iterations if i.verdict]
    assert outcomes == [Outcome.NEEDS_IMPROVEMENT, Outcome.PASS]
    assert (run.text, run.stop_reason) == ("The wide sea.", StopReason.PASSED)
    assert run.usage.calls == 4


async def test_prose_that_nobody_reads_is_not_judged() -> None:
    model = in_order([text("The sea.")])
    run = await refine("Describe the sea.", model=model, critique="never")
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.NOT_JUDGED, "none")
    assert run.stop_reason is StopReason.UNJUDGED
    assert not run.converged


class Suite:
    """A unit test of the user's, with what it was told to find."""

    name = "tests:suite"

    def __init__(self, *passed: bool) -> None:
        self._passed = list(passed)

    async def __call__(self, text: str, task: Task) -> Evidence:
        passed = self._passed.pop(0)
        return Evidence(name=self.name, passed=passed, decisive=True, basis="tests", detail="test")


async def test_the_strongest_evidence_names_the_verdict_and_all_of_it_must_pass() -> None:
    run = await refine(INC, model=ScriptedModel([code(RIGHT)]), checks=[Suite(True)])
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "tests")
    run = await refine(
        INC, model=ScriptedModel([code(RIGHT)]), checks=[Suite(False)], max_revisions=0
    )
    assert run.verdict is not None
    assert not run.verdict.passed


async def test_a_suggestion_beside_a_pass_is_acted_on_when_the_user_continues() -> None:
    named = finding("It has no docstring.", criterion="clarity", severity="minor")
    replies = [code(RIGHT), critique(named), code(f'"""Add."""\n{RIGHT}'), READY]
    loop = api.build(INC, model=in_order(replies))
    await finish(loop)
    loop.decide(Continue())
    await finish(loop)
    run: Run = loop.state
    [found] = [f for f in run.iterations[0].findings if f.author == "model"]
    assert found.problem == "It has no docstring."
    assert run.iterations[0].verdict is not None
    assert run.iterations[0].verdict.passed
    assert run.stop_reason is StopReason.PASSED


async def test_the_record_of_a_run_says_the_basis_of_each_verdict() -> None:
    run = await refine(INC, model=ScriptedModel([code(WRONG[0]), code(RIGHT), READY]))
    stored = json.loads(run.model_dump_json())
    assert [i["verdict"]["basis"] for i in stored["iterations"]] == ["examples", "examples"]
