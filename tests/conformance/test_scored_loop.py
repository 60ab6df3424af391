"""C. Scored loop: a target, patience, the best result, and a bound on everything.

- Your loop: score each text from 0 to 1, revise until the target, the cap, or too many stale steps.
- Here: `%%refine --check score --target 0.9 -n 3 --patience 3 --delta 0.01 --budget "30 calls"`,
  with ``score(text)`` or ``score(text, task)``, sync or async. Without the function a judge scores,
  in at most 2 × (1 + revisions) calls.
- By default patience is 2 (``--patience off``). With ``--target`` or a function there is no
  critique. The stop reason tells ``passed``, ``plateau``, ``revisions`` and ``budget`` apart.
"""

import json
from typing import Any

import pytest
from kit import (
    TASK,
    evaluated,
    finding,
    finish,
    judgement,
    requests,
    text,
)

from ipyrefine import refine
from ipyrefine.core.model import Budget, Criterion, Limits, StopReason
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel


@pytest.mark.parametrize(
    "budget",
    [
        Budget(calls=2),
        Budget(tokens=500),
        Budget(prompt_tokens=500),
        Budget(completion_tokens=10),
        Budget(seconds=0.02),
    ],
    ids=lambda budget: next(iter(budget.model_dump(exclude_none=True))),
)
async def test_a_bound_is_checked_before_every_call_and_keeps_the_best_text(budget: Budget) -> None:
    def endless() -> Any:
        for number in range(99):
            yield text(f"version {number}")
            yield judgement(number % 7, finding(f"problem{number} there"))

    loop = evaluated(endless(), limits=Limits(budget=budget, max_revisions=9, patience=9))
    await finish(loop)
    assert loop.state.stop_reason is StopReason.BUDGET
    assert loop.state.text == "version 0"
    assert len(requests(loop)) == loop.state.usage.calls


@pytest.mark.parametrize(
    "bad",
    [
        {"max_revisions": -1},
        {"target": 1.5},
        {"target": float("nan")},
        {"patience": 0},
        {"delta": -0.1},
        {"max_eval_chars": 0},
        {"memory": "some"},
    ],
    ids=lambda bad: next(iter(bad)),
)
def test_invalid_limits_are_value_errors(bad: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Limits(**bad)


def test_invalid_tasks_are_value_errors_before_any_call() -> None:
    twice = Criterion(name="tone", definition="Kind.")
    for criteria in ((), (twice, twice)):
        with pytest.raises(ValueError, match="criteri"):
            evaluated([], TASK.model_copy(update={"criteria": criteria}))
    with pytest.raises(UsageError, match="draft is empty"):
        evaluated([], draft=" \n")


# With a judge that only scores, and with evaluators as they are

SEVEN_EIGHT_NINE = (0.7, 0.8, 0.9)


def bare(score: float) -> str:
    return json.dumps({"score": score})


async def test_a_judge_that_only_scores_and_names_nothing_costs_six_calls() -> None:
    said = [bare(s) for s in SEVEN_EIGHT_NINE]
    writer, judge = ScriptedModel(text(f"v{n}") for n in range(3)), ScriptedModel(said)
    prompts = {"judge": "Rate this from 0 to 1.\n\n{text}\n\nAs JSON: a score."}
    run = await refine(
        TASK.text,
        model=writer,
        judge=judge,
        prompts=prompts,
        target=0.9,
        max_revisions=4,
        profile="prose",
        criteria=["tone"],
    )
    assert run.score_history == SEVEN_EIGHT_NINE
    assert (run.text, run.converged) == ("v2", True)
    assert run.usage.calls == 6
    assert [i.parent for i in run.iterations] == [None, 0, 1]
    for number, request in enumerate(writer.requests[1:]):
        asked = request.messages[-1].content
        assert f"v{number}" in asked
        assert f"{SEVEN_EIGHT_NINE[number]:.2f}" in asked, "the score is what there is to act on"


@pytest.mark.parametrize("target", [0.9, 1.0])
async def test_scores_beside_feedback_decide_and_the_feedback_is_acted_on(target: float) -> None:
    said = [{"score": s, "feedback": f"At {s} it is dull."} for s in (0.5, 0.6, 0.4, 0.95)]
    writer = ScriptedModel(text(f"v{n}") for n in range(4))
    judge = ScriptedModel(map(json.dumps, said))
    run = await refine(
        TASK.text,
        model=writer,
        judge=judge,
        prompts={"judge": "{text}\n\nScore and feedback, as JSON?"},
        target=target,
        max_revisions=3,
    )
    assert run.score_history == (0.5, 0.6, 0.4, 0.95)
    # A worse text is not gone on from, but told as what was tried.
    assert [i.parent for i in run.iterations] == [None, 0, 1, 1]
    last = writer.requests[3].messages[-1].content
    assert "At 0.6 it is dull." in last
    assert "v1" in last
    assert "At 0.4 it is dull." in last
    assert run.usage.calls == 8
    assert run.text == "v3"
    assert run.stop_reason is (StopReason.PASSED if target < 1 else StopReason.REVISIONS)


BRIEF = "Write a greeting in at most three words."


@pytest.mark.parametrize("result", [1.0, True, ("PASS", "")], ids=["score", "bool", "pair"])
async def test_an_evaluator_decides_where_the_task_states_constraints_that_hold(
    result: Any,
) -> None:
    writer = ScriptedModel([text("Hi Ann.")])
    run = await refine(BRIEF, model=writer, checks=[lambda text: result], target=0.9)
    assert run.setup.demands == ("length:<=3 words",)
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.basis) == ("PASS", "function")
    assert run.usage.calls == 1, "no model is asked to judge beside an evaluator"
