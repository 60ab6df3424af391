"""A. Iterative workflow: a generator and an evaluator, until PASS.

- Your loop: generate, evaluate as PASS, NEEDS_IMPROVEMENT or FAIL with feedback, and repeat until
  PASS, with all attempts in memory.
- Here: `%%refine --prompts mine --memory all -n 10`, with your evaluator prompt as
  ``mine["judge"]``; or `%%refine --check evaluate --memory all -n 10`, with a function that returns
  ``("FAIL", "feedback")``.
- By default there is a cap (``-n``), and a text whose check failed does not pass whatever the
  evaluator says: what the task states is run, and shown beside its feedback. Your prompts are sent
  as they stand, and ask for no critique. ``-n`` switches patience off.
"""

import json
from typing import Any

import pytest
from kit import evaluated, finding, finish, judgement, requests, text

from ipyrefine import refine
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.core.prompts import Prompts
from ipyrefine.providers.scripted import ScriptedModel

BARE = Limits(critique="never")  # trust the evaluator's first word, as this system does


@pytest.mark.parametrize(
    ("score", "outcome"), [(9, Outcome.PASS), (5, Outcome.NEEDS_IMPROVEMENT), (1, Outcome.FAIL)]
)
async def test_an_evaluation_is_pass_needs_improvement_or_fail_by_its_score(
    score: int, outcome: Outcome
) -> None:
    loop = evaluated(
        [text("Hi"), judgement(score)], limits=Limits(max_revisions=0, critique="never")
    )
    await finish(loop)
    assert loop.state.verdict is not None
    assert loop.state.verdict.outcome is outcome
    assert loop.state.verdict.score == score / 10
    assert loop.state.verdict.basis == "evaluator"


async def test_generator_and_evaluator_may_be_different_models() -> None:
    evaluator = ScriptedModel([judgement(9)], name="strict")
    loop = evaluated([text("Hi")], judge=evaluator, limits=BARE)
    await finish(loop)
    assert (loop.state.setup.model, loop.state.setup.judge) == ("scripted", "strict")
    assert (len(requests(loop)), len(evaluator.requests)) == (1, 1)


async def test_generator_and_evaluator_prompts_may_be_ones_own() -> None:
    own = Prompts(draft="GENERATE", judge="EVALUATE {text}")
    loop = evaluated([text("Hi"), judgement(9)], prompts=own, limits=BARE)
    await finish(loop)
    asked = [request.messages[-1].content for request in requests(loop)]
    assert [prompt.split()[0] for prompt in asked] == ["GENERATE", "EVALUATE"]
    assert loop.state.stop_reason is StopReason.PASSED


@pytest.mark.parametrize("said", ["Lovely!", '{"evaluation": "SUPER"}'])
async def test_a_reply_that_is_no_evaluation_is_feedback_and_the_loop_goes_on_to_its_cap(
    said: str,
) -> None:
    loop = evaluated(
        [text("Hi"), said, said, text("Ho"), said, said], limits=Limits(max_revisions=1)
    )
    await finish(loop)
    verdicts = [i.verdict for i in loop.state.iterations if i.verdict]
    assert [(v.outcome, v.basis) for v in verdicts] == [
        (Outcome.NEEDS_IMPROVEMENT, "evaluator")
    ] * 2
    assert said in requests(loop)[3].messages[-1].content
    assert (loop.state.text, loop.state.stop_reason) == ("Ho", StopReason.REVISIONS)


async def test_an_empty_evaluation_neither_passes_nor_loops() -> None:
    loop = evaluated([text("Hi"), "", ""], limits=Limits(max_revisions=0))
    await finish(loop)
    assert loop.state.verdict is not None
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.NOT_JUDGED, "none")
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.UNJUDGED)
    assert loop.state.usage.calls == 3


async def test_an_evaluator_that_never_passes_cannot_keep_it_going_for_ever() -> None:
    def endless() -> Any:
        for number in range(1_000):
            yield text(f"version {number}")
            yield judgement(number % 7, finding(f"problem{number}"))

    loop = evaluated(endless(), limits=Limits(critique="never"))
    await finish(loop)
    assert loop.state.stop_reason in (StopReason.REVISIONS, StopReason.PLATEAU)
    assert len(loop.state.iterations) <= 5


# With a generator's and an evaluator's own prompts and replies, over five rounds

STACK = "Write a Python class MinStack with push(x), pop() and get_min(), all in O(1)."
GENERATOR = (
    "Solve the task. Reflect on feedback to an earlier try, if there is any.\n\n"
    "Thoughts: what the task and the feedback ask for\nResponse: the code"
)
EVALUATOR = (
    "Look at correctness, speed and style.\n\n{text}\n\nAnswer with JSON:\n"
    '{"evaluation": "PASS, NEEDS_IMPROVEMENT or FAIL", "feedback": "what to change and why"}'
)
OWN = {
    "draft": GENERATOR,
    "revise": f"{GENERATOR}\n\nThe latest try:\n{{text}}",
    "judge": EVALUATOR,
}
ATTEMPTS = [f"class MinStack:\n    size = {n}" for n in range(5)]
PLANS = [f"I think of plan {n}." for n in range(5)]
COMPLAINTS = ["pop is linear", "no docstrings", "crashes when empty", "get_min is slow"]
OUTCOMES = ["FAIL", "NEEDS_IMPROVEMENT", "NEEDS_IMPROVEMENT", "FAIL", "PASS"]


def generated(*, fenced: bool) -> list[str]:
    written = [f"```python\n{code}\n```" if fenced else code for code in ATTEMPTS]
    return [
        f"Thoughts: {plan}\n\nResponse:\n{code}" for plan, code in zip(PLANS, written, strict=True)
    ]


def evaluations() -> list[str]:
    pairs = zip(OUTCOMES, [*COMPLAINTS, ""], strict=True)
    return [json.dumps({"evaluation": outcome, "feedback": said}) for outcome, said in pairs]


def assert_each_latest_complaint_is_acted_on(asked: list[str]) -> None:
    """Each revision is asked for with the latest attempt and the complaint about it."""
    assert len(asked) == len(COMPLAINTS)
    for number, prompt in enumerate(asked):
        assert ATTEMPTS[number] in prompt
        assert COMPLAINTS[number] in prompt
        later = [*ATTEMPTS[number + 1 :], *COMPLAINTS[number + 1 :]]
        assert not any(words in prompt for words in (*later, *PLANS))


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "plain"])
@pytest.mark.parametrize("memory", ["best", "all"])
async def test_four_complaints_and_a_pass_go_from_attempt_to_attempt(
    fenced: bool, memory: str
) -> None:
    writer, judge = ScriptedModel(generated(fenced=fenced)), ScriptedModel(evaluations())
    run = await refine(STACK, model=writer, judge=judge, prompts=OWN, memory=memory)
    assert (run.text, run.stop_reason) == (ATTEMPTS[4], StopReason.PASSED)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2, 3]
    assert [i.text for i in run.iterations] == ATTEMPTS
    assert [i.thoughts for i in run.iterations] == PLANS
    assert [i.verdict.outcome for i in run.iterations if i.verdict] == OUTCOMES
    assert run.usage.calls == 10
    asked = [request.messages[-1].content for request in writer.requests[1:]]
    assert_each_latest_complaint_is_acted_on(asked)
    remembered = [sum(code in prompt for code in ATTEMPTS) for prompt in asked]
    assert remembered == ([1, 2, 3, 4] if memory == "all" else [1, 1, 1, 1])
    for number, request in enumerate(judge.requests):
        prompt = request.messages[-1].content
        assert [code in prompt for code in ATTEMPTS].index(True) == number
        assert not any(plan in request.model_dump_json() for plan in PLANS)
        assert request.json_schema is None, "the evaluator's own prompt says how to answer"


async def test_a_function_that_returns_the_outcome_and_the_feedback_is_the_evaluator() -> None:
    seen: list[str] = []

    def evaluate(text: str) -> tuple[str, str]:
        seen.append(text)
        return OUTCOMES[len(seen) - 1], [*COMPLAINTS, ""][len(seen) - 1]

    writer = ScriptedModel(generated(fenced=False))
    run = await refine(STACK, model=writer, checks=[evaluate], prompts=OWN | {"judge": EVALUATOR})
    assert seen == ATTEMPTS
    assert (run.text, run.stop_reason) == (ATTEMPTS[4], StopReason.PASSED)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2, 3]
    assert run.usage.calls == 5
    asked = [request.messages[-1].content for request in writer.requests[1:]]
    assert_each_latest_complaint_is_acted_on(asked)


async def test_an_evaluator_that_only_complains_never_keeps_the_first_draft() -> None:
    writer, judge = ScriptedModel(generated(fenced=True)), ScriptedModel(evaluations())
    run = await refine(STACK, model=writer, judge=judge, prompts=OWN, max_revisions=2)
    assert run.stop_reason is StopReason.REVISIONS
    assert run.text == ATTEMPTS[2]
    assert COMPLAINTS[2] in run.verdict.because.problem


@pytest.mark.parametrize(
    "said",
    [
        "PASS",
        "**PASS**",
    ],
)
async def test_the_word_pass_alone_passes_where_the_evaluators_prompt_asks_for_it(
    said: str,
) -> None:
    judge = ScriptedModel(["FAIL: pop is linear", "NEEDS_IMPROVEMENT\nNo docstrings.", said])
    run = await refine(
        STACK,
        model=ScriptedModel(generated(fenced=False)),
        judge=judge,
        prompts=OWN | {"judge": "Say PASS, NEEDS_IMPROVEMENT or FAIL, and why.\n\n{text}"},
    )
    assert (run.text, run.stop_reason) == (ATTEMPTS[2], StopReason.PASSED)
    findings = [[f.problem for f in i.findings if f.actionable] for i in run.iterations]
    assert findings == [["pop is linear"], ["No docstrings."], []]
