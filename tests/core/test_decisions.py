"""What a user may decide, and what each decision makes of a run, beyond the golden traces."""

import asyncio
from functools import cache, partial
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import (
    Finds,
    actionable,
    at,
    calls,
    critique,
    decide,
    ended,
    evaluated,
    finding,
    finish,
    judgement,
    prompts,
    refinement,
    scored,
    stages,
    status,
    text,
    told,
)

from ipyrefine import api
from ipyrefine.checks.text import Length
from ipyrefine.core.actions import decision_sentence, parse_decision, require_possible
from ipyrefine.core.decisions import (
    DECISION,
    Accept,
    Add,
    Continue,
    Criteria,
    Decision,
    Dismiss,
    Drop,
    Edit,
    Expect,
    Guide,
    Predict,
    Retract,
)
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Criterion, Limits, Outcome, Record, Stage, StopReason
from ipyrefine.core.run import Run
from ipyrefine.core.table import Point, Result
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel

POINT = Point(criterion="tone", blocking=False, words="rude")
ONCE = Limits(max_revisions=0, critique="never")
WARMTH = Criterion(name="warmth", definition="It is warm.")


async def stopped(*more: Any, **limits: Any) -> Refinement:
    """A run that stopped at its first text; its critique has two findings, f1 and f2."""
    weak = [finding("stiff", quote="Dear Sir"), finding("no name given", severity="minor")]
    loop = await ended(
        [text("Dear Sir"), critique(*weak), *more], limits=Limits(max_revisions=0, **limits)
    )
    return loop


async def test_a_dismissed_finding_is_not_acted_on_and_never_raised_again():
    again = finding("It is too STIFF.", quote="Dear Sir")
    weak = [finding("stiff", quote="Dear Sir"), finding("no name given")]
    replies = [
        text("Dear Sir"), judgement(5, *weak),
        text("Dear Sir!"), judgement(6, again, finding("cold"), fixed=("f2",)),
        text("Dear Sir,"), judgement(9),
    ]  # fmt: skip
    loop = refinement(replies, limits=Limits(max_revisions=2))
    dismiss = Dismiss(points=("f1",), reason="it is a bank")
    await finish(loop, at("critique_ready", partial(loop.decide, dismiss)))
    statuses = {one.id: status(one) for one in told(loop.state, 1)}
    assert statuses == {"f1": "dismissed", "f2": "resolved", "f3": "open"}
    assert all("f1 (" not in prompt for prompt in prompts(loop, Stage.REVISE))
    assert "- stiff (because: it is a bank)" in prompts(loop, Stage.CRITIQUE)[-1]


async def test_findings_of_a_dropped_criterion_no_longer_count():
    loop = await stopped(judgement(9))
    await decide(loop, Criteria(criteria=(WARMTH,)))
    assert {*map(status, told(loop.state, 0))} == {"dismissed"}


async def test_a_remark_on_a_stopped_run_makes_no_call_and_takes_no_acceptance_back():
    loop = scored(0.4, 0.7, target=1, max_revisions=1)
    await finish(loop)
    await decide(loop, Accept(iteration=0))
    assert stages(await decide(loop, Guide(guidance="shorter next time"))) == []
    assert (loop.state.stop_reason, loop.state.text) == (StopReason.ACCEPTED, "version 0")


IMPOSSIBLE = {
    "no such iteration": Continue(iteration=7), "no such finding": Dismiss(points=("f9",)),
    "no guidance": Guide(guidance=" "),
    "an empty edit": Edit(text="  "), "an empty finding": Add(point=POINT.replace(words=" ")),
    "no criteria at all": Criteria(),
    "a quote that is not there": Add(point=POINT.replace(place="Moin")),
}  # fmt: skip


@pytest.mark.parametrize("decision", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
async def test_an_impossible_decision_is_refused_before_anything_happens(decision):
    loop = await stopped()
    before = loop.state
    with pytest.raises(UsageError):
        loop.decide(decision)
    assert loop.state == before


@pytest.mark.parametrize(
    "decision",
    [Accept(), Guide(guidance="warmer"), Edit(text="Hi"), Continue(guidance="warmer")],
    ids=lambda decision: decision.kind,
)
def test_nothing_is_decided_on_a_text_that_is_still_to_be_written(decision):
    with pytest.raises(ValueError, match="There is no text yet"):
        evaluated([]).decide(decision)


# As words after `%refine`, as sentences and as JSON

WORDS = st.sampled_from(
    ["pass", "fail", "0", "1", "7", "f1", "f2,", "f9", "blocking", "minor", "0.5", "1.5", "tone,"]
) | st.text(max_size=6)


# The commands that are not called as their decisions.
TYPED: dict[type[Record], str] = {
    **dict.fromkeys((Expect, Retract, Predict), "should"),
    Guide: "continue",
    Drop: "dismiss",
    Criteria: "edit",
}


@cache
def stopped_run() -> Run:
    return asyncio.run(stopped()).state


@pytest.mark.parametrize("command", get_args(get_args(Decision)[0]), ids=lambda one: one.__name__)
@settings(max_examples=25)
@given(words=st.lists(WORDS, max_size=4))
def test_words_are_a_decision_with_a_sentence_or_refused(command, words):
    run, name = stopped_run(), TYPED.get(command, command.model_fields["kind"].default)
    words = ["criteria", *words] if command is Criteria else words
    try:
        decision = (
            Edit(text=" ".join(words))
            if command is Edit
            else parse_decision(run, name, list(words))
        )
        require_possible(run, decision)
    except UsageError as error:
        outcome = str(error)
    else:
        outcome = decision_sentence(run, decision)
        assert outcome.startswith("You ")
        assert DECISION.validate_json(DECISION.dump_json(decision)) == decision
    assert outcome


# Demands that were read wrongly
SHORT = "length:<=3 words"
# The user's own tests, which pass and settle the verdict.
TESTED = Result(name="tests:suite", passed=True, score=1.0, decisive=True, basis="tests")


async def demanded(*replies: str, checks: tuple[object, ...] = (), **options: object) -> Refinement:
    checks = (Length("<=3 words"), *checks)
    loop = evaluated(list(replies), checks=checks, demands=(SHORT,), limits=ONCE, **options)
    await finish(loop)
    return loop


async def test_a_text_that_only_the_demand_failed_is_judged_on_the_rest_as_all_later_ones():
    loop = await demanded(text("Hello to all of you"), judgement(9), judgement(8))
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    assert loop.state.verdict.score == 0.9
    assert calls(await decide(loop, Drop(demand=SHORT))) == {}
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.PASS, "evaluator")
    assert loop.state.stop_reason is StopReason.PASSED
    assert (loop.state.setup.checks, loop.state.setup.demands) == ((), ())
    assert not actionable(loop.state, 0)
    await decide(loop, Edit(text="Hello to each and all"))
    assert [i.evidence for i in loop.state.iterations] == [(), ()]
    again = api.resume(loop.state, model=ScriptedModel([text("Hi")]))
    assert (again.checks, again.state.demands) == ((), ())


async def test_evidence_that_is_left_settles_the_text_without_a_call_or_a_check():
    loop = await demanded(text("Hello to all of you"), checks=(Finds(TESTED),))
    for name in ("tests:suite", "length:<=9 words"):
        with pytest.raises(UsageError, match=f"There is no demand '{name}'. This run has: {SHORT}"):
            loop.decide(Drop(demand=name))
    assert stages(await decide(loop, Drop(demand=SHORT))) == []
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.PASS, "tests")
