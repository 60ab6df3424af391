"""A demand that was read wrongly is dropped: no text is held to it, and no check runs again."""

import pytest
from kit import Finds, calls, decide, evaluated, finish, judgement, stages, text

from ipyrefine import api
from ipyrefine.checks.text import Length
from ipyrefine.core.decisions import Drop, Edit
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Evidence, Limits, Outcome, StopReason
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel

SHORT = "length:<=3 words"
ONCE = Limits(max_revisions=0, critique="never")


# The user's own tests, which pass and settle the verdict.
TESTED = Evidence(name="tests:suite", passed=True, score=1.0, decisive=True, basis="tests")


async def stopped(*replies: str, checks: tuple[object, ...] = (), **options: object) -> Refinement:
    checks = (Length("<=3 words"), *checks)
    loop = evaluated(list(replies), checks=checks, demands=(SHORT,), limits=ONCE, **options)
    await finish(loop)
    return loop


async def test_a_text_that_only_the_demand_failed_is_judged_on_the_rest() -> None:
    loop = await stopped(text("Hello to all of you"), judgement(9))
    assert loop.state.verdict is not None
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    assert loop.state.verdict.score == 0.9
    assert calls(await decide(loop, Drop(demand=SHORT))) == {}
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.PASS, "evaluator")
    assert loop.state.stop_reason is StopReason.PASSED
    assert (loop.state.setup.checks, loop.state.setup.demands) == ((), ())
    assert not loop.state.iterations[0].actionable


async def test_evidence_that_is_left_settles_the_text_without_a_call_or_a_check() -> None:
    loop = await stopped(text("Hello to all of you"), checks=(Finds(TESTED),))
    assert stages(await decide(loop, Drop(demand=SHORT))) == []
    assert loop.state.verdict is not None
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.PASS, "tests")


async def test_neither_later_texts_nor_a_resumed_run_are_held_to_it() -> None:
    loop = await stopped(text("Hello to all of you"), judgement(9), judgement(8))
    await decide(loop, Drop(demand=SHORT))
    await decide(loop, Edit(text="Hello to each and all"))
    assert [i.evidence for i in loop.state.iterations] == [(), ()]
    again = api.resume(loop.state, model=ScriptedModel([text("Hi")]))
    assert (again.checks, again.state.demands) == ((), ())


async def test_only_what_is_demanded_of_the_form_can_be_dropped() -> None:
    loop = await stopped(text("Hello"), checks=(Finds(TESTED),))
    for name in ("tests:suite", "length:<=9 words"):
        with pytest.raises(UsageError, match=f"There is no demand '{name}'. This run has: {SHORT}"):
            loop.decide(Drop(demand=name))
