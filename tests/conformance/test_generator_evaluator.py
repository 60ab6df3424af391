"""A. Iterative workflow: a generator and an evaluator, until PASS."""

from typing import Any

import pytest
from kit import TASK, finding, finish, judgement, prompts, refinement, requests, text

from ipyrefine.core.model import Criterion, Limits, Outcome, StopReason
from ipyrefine.core.prompts import Prompts
from ipyrefine.providers.scripted import ScriptedModel

BARE = Limits(min_findings=0)  # trust the evaluator's first word, as this system does


async def test_thoughts_are_told_apart_from_the_response_shown_and_never_judged() -> None:
    evaluator = ScriptedModel([judgement(9)])
    loop = refinement([text("Hi", notes="Warm, then short.")], judge=evaluator, limits=BARE)
    await finish(loop)
    assert loop.state.iterations[0].thoughts == "Warm, then short."
    assert loop.state.text == "Hi"
    assert "Warm, then short." not in evaluator.requests[0].model_dump_json()


@pytest.mark.parametrize(
    ("score", "outcome"),
    [(9, Outcome.PASS), (5, Outcome.NEEDS_IMPROVEMENT), (1, Outcome.FAIL)],
)
async def test_an_evaluation_is_pass_needs_improvement_or_fail_by_a_schema(
    score: int, outcome: Outcome
) -> None:
    loop = refinement(
        [text("Hi"), judgement(score)], limits=Limits(max_revisions=0, min_findings=0)
    )
    await finish(loop)
    assert loop.state.verdict is not None
    assert loop.state.verdict.outcome is outcome
    schema = requests(loop)[1].json_schema
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"])


async def test_only_a_pass_stops_and_then_at_once() -> None:
    loop = refinement(
        [
            text("a"),
            judgement(1, finding("bad")),
            text("b"),
            judgement(5, finding("meh")),
            text("c"),
            judgement(9, fixed=("f1", "f2")),
        ],
        limits=BARE,
    )
    await finish(loop)
    assert (loop.state.text, loop.state.stop_reason) == ("c", StopReason.PASSED)


async def test_generator_and_evaluator_may_be_different_models() -> None:
    evaluator = ScriptedModel([judgement(9)], name="strict")
    loop = refinement([text("Hi")], judge=evaluator, limits=BARE)
    await finish(loop)
    assert (loop.state.setup.model, loop.state.setup.judge) == ("scripted", "strict")
    assert (len(requests(loop)), len(evaluator.requests)) == (1, 1)


async def test_the_generator_may_be_given_every_attempt_with_its_feedback() -> None:
    loop = refinement(
        [
            text("one"),
            judgement(3, finding("too dull")),
            text("two"),
            judgement(5, finding("too curt")),
            text("three"),
            judgement(9, fixed=("f1", "f2")),
        ],
        limits=Limits(min_findings=0, memory="all"),
    )
    await finish(loop)
    last = prompts(loop)[4]
    assert last.index("one") < last.index("too dull")
    assert "two" in last
    assert "too curt" in last


async def test_generator_and_evaluator_prompts_may_be_ones_own() -> None:
    own = Prompts(draft="GENERATE", judge="EVALUATE {text}")
    loop = refinement([text("Hi"), judgement(9)], prompts=own, limits=BARE)
    await finish(loop)
    assert [r.messages[1].content.split()[0] for r in requests(loop)] == ["GENERATE", "EVALUATE"]


@pytest.mark.parametrize("said", ["PASS", "\nPASS\n", '{"evaluation": "PASS"}', ""])
async def test_a_reply_that_is_no_evaluation_neither_passes_nor_loops(said: str) -> None:
    loop = refinement([text("Hi"), said, said], limits=Limits(max_revisions=0))
    await finish(loop)
    verdict = loop.state.verdict
    assert verdict is not None
    assert not verdict.verified
    assert loop.state.stop_reason is StopReason.REVISIONS
    assert loop.state.usage.calls == 3


async def test_an_evaluator_that_never_passes_cannot_keep_it_going_for_ever() -> None:
    def endless() -> Any:
        for number in range(1_000):
            yield text(f"version {number}")
            yield judgement(number % 7, finding(f"problem{number}"))

    loop = refinement(endless(), limits=Limits(min_findings=0))
    await finish(loop)
    assert loop.state.stop_reason in (StopReason.REVISIONS, StopReason.PLATEAU)
    assert len(loop.state.iterations) <= 5


async def test_requirements_like_a_complexity_are_criteria_by_name() -> None:
    task = TASK.model_copy(
        update={"criteria": (Criterion(name="complexity", definition="All in O(1)."),)}
    )
    reply = judgement({"complexity": 2}, reason="O(n)")
    loop = refinement([text("x"), reply], task, limits=Limits(max_revisions=0))
    await finish(loop)
    assert loop.state.verdict is not None
    assert "complexity" in loop.state.verdict.reason
    assert "All in O(1)." in requests(loop)[0].messages[0].content
