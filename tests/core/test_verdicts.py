"""What a verdict rests on: evidence first, then a reader's word, else nothing."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from kit import (
    EVALUATED,
    READY,
    Finds,
    critique,
    decide,
    finding,
    finish,
    judgement,
    prompts,
    refinement,
    status,
    text,
    told,
)
from png import PNG

from ipyrefine.core.decisions import Continue, Guide
from ipyrefine.core.model import Basis, Figure, Limits, Outcome, StopReason, Task, Verdict
from ipyrefine.core.table import Evidence
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import words

ONCE = Limits(max_revisions=0, critique="never")
PASS, NEEDS, NOT_JUDGED = Outcome.PASS, Outcome.NEEDS_IMPROVEMENT, Outcome.NOT_JUDGED


def found(basis: Basis, passed: bool | None = True, **fields: Any) -> Evidence:
    """Evidence of a check named as its basis; one that passes settles the verdict."""
    fields = {"name": basis, "decisive": bool(passed), "detail": f"{basis} ran", **fields}
    return Evidence(basis=basis, passed=passed, **fields)


async def first_verdict(*evidence: Evidence, judge: Sequence[Any] = (), **options: Any) -> Verdict:
    """The verdict on one text with this evidence; the judge is asked as often as it has replies."""
    checks = [Finds(one) for one in evidence]
    loop = refinement([text("Hi"), *judge], checks=checks, **{"limits": ONCE, **options})
    await finish(loop)
    assert len(loop.model.requests) == 1 + len(judge)
    verdict = loop.state.verdict
    assert verdict is not None
    return verdict


# The table of bases


@pytest.mark.parametrize("basis", ["tests", "function", "examples"])
async def test_evidence_settles_a_text_without_a_reader(basis: Basis) -> None:
    verdict = await first_verdict(found(basis))
    assert (verdict.outcome, verdict.basis, verdict.score) == (PASS, basis, 1.0)
    assert verdict.why == "checks_passed"


@pytest.mark.parametrize("basis", ["tests", "function", "schema", "examples", "constraints"])
async def test_a_required_check_that_fails_is_the_basis_of_the_verdict(basis: Basis) -> None:
    verdict = await first_verdict(found(basis, passed=False, detail="2 of 3\nmore"))
    assert (verdict.outcome, verdict.basis) == (NEEDS, basis)
    assert not verdict.required_passed
    assert (verdict.why, verdict.point, verdict.line) == ("failed", basis, "2 of 3")


@pytest.mark.parametrize("basis", ["schema", "constraints", "run"])
async def test_what_may_hold_of_a_wrong_text_too_is_no_basis_alone(basis: Basis) -> None:
    assert (await first_verdict(found(basis))).outcome is NOT_JUDGED
    loop = refinement([text("Hi"), READY], checks=[Finds(found(basis))])
    await finish(loop)
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (PASS, "critique")


@pytest.mark.parametrize("decisive", [True, False])
async def test_a_text_that_nobody_judged_says_what_holds_of_it(decisive: bool) -> None:
    holds = Finds(found("constraints", name="length", decisive=decisive))
    loop = refinement([text("Hi")], checks=[holds], limits=ONCE)
    await finish(loop)
    verdict = loop.state.verdict
    assert (verdict.outcome, verdict.basis, verdict.why) == (NOT_JUDGED, "none", "no_critic")
    said = words.verdict(loop.state, loop.state.chosen).sentence
    assert said == "Nobody was asked to read it. Passed: length."


async def test_a_critic_that_was_measured_too_weak_is_not_asked() -> None:
    verdict = await first_verdict(weak_critic=True, limits=Limits(max_revisions=0))
    assert (verdict.outcome, verdict.basis) == (NOT_JUDGED, "none")
    assert (verdict.why, verdict.point, verdict.line) == ("weak_critic", "", "")


async def test_the_evaluator_is_asked_after_the_slowest_check_and_told_what_it_found() -> None:
    model = ScriptedModel([text("Hi there"), judgement(9)])

    class Slow(Finds):
        async def __call__(self, text: str, task: Task) -> Evidence:
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(model.requests) == 1
            return await super().__call__(text, task)

    check = Slow(Evidence(name="links", passed=True, detail="all 17 links work"))
    loop = refinement(model, checks=[check], limits=ONCE, prompts=EVALUATED)
    await finish(loop)
    assert loop.error is None
    assert "links: passed. all 17 links work" in prompts(loop)[-1]


RAN = found("run", name="run on copies")
FAILED_RUN = RAN.model_copy(update={"passed": False, "detail": "KeyError: 'a' (line 1)"})


async def test_code_that_only_runs_passes_on_no_evidence_and_spares_no_evaluator() -> None:
    drawn = RAN.model_copy(update={"outputs": (Figure(png=PNG),)})
    for ran in (RAN, drawn):
        verdict = await first_verdict(ran, judge=[judgement(3)], prompts=EVALUATED)
        assert (verdict.outcome, verdict.basis) == (NEEDS, "evaluator")
        verdict = await first_verdict(ran)
        assert (verdict.outcome, verdict.basis, verdict.score) == (NOT_JUDGED, "run", None)
        assert verdict.why == "only_ran"


async def test_code_that_runs_and_was_not_run_by_another_check_says_why() -> None:
    missing = found("tests", None, not_run=True, detail="Not run: it needs the network.")
    verdict = await first_verdict(RAN, missing)
    assert (verdict.outcome, verdict.basis) == (NOT_JUDGED, "none")
    assert verdict.line == "Not run: it needs the network."


async def test_code_that_runs_is_better_than_code_that_fails_whatever_came_later() -> None:
    loop = refinement(
        [text("Hi 0"), text("Hi 1")],
        checks=[Finds(FAILED_RUN, RAN)],
        limits=Limits(critique="never"),
    )
    await finish(loop)
    assert (loop.state.text, loop.state.stop_reason) == ("Hi 1", StopReason.UNJUDGED)
    assert loop.state.verdict.why == "only_ran"


# What a critic said


async def test_what_the_critic_no_longer_has_to_say_is_resolved() -> None:
    fixed = '{"findings": [], "fixed": ["f1"], "ready": false, "because": "f2 stands."}'
    replies = [text("Hi"), critique(finding("curt"), finding("no name")), text("Hi you"), fixed]
    loop = refinement(replies, limits=Limits(max_revisions=1))
    await finish(loop)
    curt, nameless = told(loop.state, 1)[:2]
    assert (status(curt), status(nameless)) == ("resolved", "open")
    verdict = loop.state.iterations[1].verdict
    assert verdict.outcome is Outcome.NEEDS_IMPROVEMENT


async def test_a_late_finding_about_words_that_stood_before_is_a_suggestion() -> None:
    late = critique(finding("stiff", quote="Dear all"), finding("lost the date"))
    replies = [text("Dear all, hi"), critique(finding("curt")), text("Dear all, hello"), late]
    loop = refinement(replies, limits=Limits(max_revisions=1))
    await finish(loop)
    blocks = {f.words: f.blocks for f in told(loop.state, 1)}
    assert (blocks["stiff"], blocks["lost the date"]) == (False, True)


async def test_without_an_evaluator_a_revision_is_taken_to_meet_what_it_was_written_for() -> None:
    loop = refinement([text("Hi"), text("Hi Ann")], checks=[Finds(found("tests"))], limits=Limits())
    await finish(loop)
    await decide(loop, Guide(guidance="Name her."))
    await decide(loop, Continue())
    assert (loop.state.text, loop.state.stop_reason) == ("Hi Ann", StopReason.PASSED)
    assert status(told(loop.state, 1)[0]) == "resolved"
