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
    critique,
    decide,
    evaluated,
    finding,
    finish,
    judgement,
    requests,
    scored,
    stages,
    text,
)
from openai_server import Failure, ScriptedServer

from ipyrefine import refine
from ipyrefine.checks.functions import CallableCheck
from ipyrefine.core.decisions import Continue
from ipyrefine.core.events import Event, VerdictReached
from ipyrefine.core.model import Budget, Criterion, Limits, Price, StopReason
from ipyrefine.core.ports import Reply, Request
from ipyrefine.core.run import Run
from ipyrefine.errors import AccessDenied, UsageError
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("scores", "target", "limits", "seen", "kept", "why"),
    [
        ((0.5, 0.95), 0.9, {}, 2, "version 1", "passed"),
        ((0.92,), 0.9, {}, 1, "version 0", "passed"),
        ((0.5,) * 9, 1, {"patience": 3, "max_revisions": 9}, 4, "version 0", "plateau"),
        ((0.4, 0.7, 0.5, 0.3), 1, {"max_revisions": 3, "patience": 9}, 4, "version 1", "revisions"),
        ((0.7, 0.7, 0.7), 1, {"max_revisions": 2, "patience": 9}, 3, "version 0", "revisions"),
        ((0.4,), 1, {"max_revisions": 0}, 1, "version 0", "revisions"),
        (
            (0.5, 0.52, 0.54, 0.56, 0.9),
            1,
            {"delta": 0.05, "patience": 3, "max_revisions": 9},
            4,
            "version 3",
            "plateau",
        ),
    ],
    ids=["one revision", "none", "constant", "best kept", "ties", "no revisions", "delta"],
)
async def test_score_sequences(
    scores: tuple[float, ...], target: float, limits: Any, seen: int, kept: str, why: str
) -> None:
    loop = scored(*scores, target=target, **limits)
    await finish(loop)
    assert loop.state.score_history == scores[:seen]
    assert (loop.state.text, loop.state.stop_reason) == (kept, StopReason(why))
    assert loop.state.converged == (why == "passed")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_custom_evaluator_scores_and_no_model_is_asked_to_judge(is_async: bool) -> None:
    seen = []

    def score(text: str) -> float:
        seen.append(text)
        return 0.2 * len(seen)

    async def later(text: str) -> float:
        return score(text)

    check = CallableCheck(later if is_async else score, target=0.9)
    loop = evaluated(
        (text(f"version {n}") for n in range(9)),
        checks=[check],
        limits=Limits(target=0.9, max_revisions=3, patience=9),
    )
    events = await finish(loop)
    assert "judge" not in stages(events)
    assert [round(s or 0, 1) for s in loop.state.score_history] == [0.2, 0.4, 0.6, 0.8]
    assert len(seen) == 4
    # Writing alone: half of what a loop with a judge may cost.
    assert loop.state.usage.calls == (1 + 3)


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


async def test_every_text_can_be_checkpointed_by_reading_the_events() -> None:
    loop = scored(0.2, 0.4, 0.6, target=1, max_revisions=2)
    checkpoints: list[tuple[int, str]] = []

    def save(event: Event, run: Run) -> None:
        if isinstance(event, VerdictReached):
            checkpoints.append((event.iteration, run.iterations[event.iteration].text))

    await finish(loop, save)
    assert checkpoints == [(0, "version 0"), (1, "version 1"), (2, "version 2")]


async def test_every_call_is_traced_with_its_stage_and_its_cost() -> None:
    loop = evaluated(
        [text("Hi"), judgement(5), critique(finding("dull")), text("Ho"), judgement(9)]
    )
    events = await finish(loop)
    traced = [(e.stage, e.iteration, e.usage.calls) for e in events if e.type == "call_ended"]
    stages_of_two_texts = ("draft", "judge", "critique", "revise", "judge")
    assert traced == list(zip(stages_of_two_texts, (0, 0, 0, 1, 1), (1,) * 5, strict=True))


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


@pytest.mark.parametrize("bad", [{"calls": 0}, {"tokens": -1}, {"cost": 0.0}, {"seconds": 0}])
def test_invalid_budgets_are_value_errors(bad: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Budget(**bad)


def test_invalid_tasks_are_value_errors_before_any_call() -> None:
    twice = Criterion(name="tone", definition="Kind.")
    for criteria in ((), (twice, twice)):
        with pytest.raises(ValueError, match="criteri"):
            evaluated([], TASK.model_copy(update={"criteria": criteria}))
    with pytest.raises(UsageError, match="draft is empty"):
        evaluated([], draft=" \n")


async def test_after_its_end_the_loop_goes_on_for_as_many_revisions_as_asked() -> None:
    loop = scored(0.4, 0.5, 0.6, 0.7, target=1, max_revisions=1)
    await finish(loop)
    await decide(loop, Continue(revisions=2))
    assert loop.state.score_history == (0.4, 0.5, 0.6, 0.7)


class Billed(ScriptedModel):
    """A model that charges a dollar per million tokens, read or written."""

    price = Price(prompt=1, completion=1)

    async def stream(self, request: Request) -> Any:
        async for part in super().stream(request):
            if isinstance(part, Reply):
                cost = part.usage.tokens / 1_000_000
                usage = part.usage.model_copy(update={"cost": cost})
                part = part.model_copy(update={"usage": usage})
            yield part


async def test_a_bound_in_dollars_holds_before_every_call() -> None:
    def endless() -> Any:
        for number in range(99):
            yield text(f"version {number}")
            yield judgement(number % 7, finding(f"problem{number} there"))

    loop = evaluated(
        Billed(endless()),
        limits=Limits(budget=Budget(cost=0.0008), max_revisions=9, patience=9, critique="never"),
    )
    await finish(loop)
    assert loop.state.stop_reason is StopReason.BUDGET
    assert loop.state.text == "version 1"  # judged better than the first; the next was not paid for
    assert 0 < (loop.state.cost or 0) <= 0.0008


async def test_a_busy_server_is_asked_again_after_its_wait_and_a_refused_key_is_final() -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    with ScriptedServer() as server:
        model = OpenAIModel("m", base_url=server.base_url, api_key="k", sleep=wait)
        server.then(Failure(429, headers={"Retry-After": "3"}), text("Hi"), Failure(401))
        loop = evaluated(model)
        await finish(loop)
        assert len(server.requests) == 3
    assert waits[0] >= 3
    assert len(waits) == 1
    assert isinstance(loop.error, AccessDenied)
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.FAILED)


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


async def test_an_async_evaluator_of_text_and_context_halves_the_calls() -> None:
    scores = iter((0.4, 0.7, 0.5, 0.8))
    seen: list[tuple[str, object]] = []

    async def evaluate(text: str, context: object) -> float:
        seen.append((text, context))
        return next(scores)

    writer = ScriptedModel(text(f"v{n}") for n in range(4))
    run = await refine(TASK.text, model=writer, checks=[evaluate], target=0.9, max_revisions=3)
    assert run.score_history == (0.4, 0.7, 0.5, 0.8)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 1]
    assert [text for text, _ in seen] == ["v0", "v1", "v2", "v3"]
    assert (run.text, run.stop_reason) == ("v3", StopReason.REVISIONS)
    assert run.usage.calls == 4


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


async def test_an_evaluator_does_not_pass_a_text_that_misses_a_stated_constraint() -> None:
    writer = ScriptedModel([text("Hi Ann, how are you?"), text("Hi Ann.")])
    run = await refine(BRIEF, model=writer, checks=[lambda text: 1.0], target=0.9)
    assert [i.text for i in run.iterations] == ["Hi Ann, how are you?", "Hi Ann."]
    assert "5 words: 2 too many" in writer.requests[1].messages[-1].content
    assert (run.text, run.stop_reason) == ("Hi Ann.", StopReason.PASSED)
    assert run.usage.calls == 2
