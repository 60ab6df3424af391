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
import re
from typing import Any

import pytest
from kit import READY, code, evaluated, finish, judgement, text
from own_prompts import EVALUATOR, GENERATOR, STACK, looped, outcomes, said, sent

from ipyrefine import refine
from ipyrefine.core.decisions import Guide
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.terminal import record_text

ATTEMPTS = [f"class MinStack:\n    size = {n}" for n in range(5)]
PLANS = [f"I think of plan {n}." for n in range(5)]
COMPLAINTS = ["pop is linear", "no docstrings", "crashes when empty", "getMin is slow", ""]
OUTCOMES = ["FAIL", "NEEDS_IMPROVEMENT", "NEEDS_IMPROVEMENT", "FAIL", "PASS"]
ROUNDS = [said(*pair) for pair in zip(OUTCOMES, COMPLAINTS, strict=True)]
GENERATED = [
    f"Thoughts: {plan}\n\nResponse:\n{code}" for plan, code in zip(PLANS, ATTEMPTS, strict=True)
]


def words(content: str) -> list[str]:
    return content.split()


def pieces(numbers: range) -> list[str]:
    """Attempts, each with the complaint about it."""
    return [piece for n in numbers for piece in (ATTEMPTS[n], COMPLAINTS[n])]


@pytest.mark.parametrize("memory", ["best", "all"])
async def test_four_complaints_and_a_pass_go_from_attempt_to_attempt(memory):
    run, writer, judge = await looped(GENERATED, ROUNDS, memory=memory, max_revisions=9)
    assert (run.text, run.stop_reason, run.usage.calls) == (ATTEMPTS[4], "passed", 10)
    assert [(i.thoughts, i.text) for i in run.iterations] == [*zip(PLANS, ATTEMPTS, strict=True)]
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2, 3]
    assert outcomes(run) == OUTCOMES
    assert (run.setup.model, run.setup.judge) == ("writer", "evaluator")
    for number, asked in enumerate(writer[1:]):
        assert asked.startswith(GENERATOR)
        assert STACK in asked
        remembered = pieces(range(0 if memory == "all" else number, number + 1))
        assert [piece for piece in pieces(range(4)) if piece in asked] == remembered
        assert [asked.count(piece) for piece in remembered] == [1] * len(remembered)
        assert sorted(remembered, key=asked.index) == remembered, "each with its own complaint"
    assert not any(plan in asked for plan in PLANS for asked in [*writer, *judge])


async def test_a_function_of_task_and_text_is_given_each_by_its_name():
    seen = []

    def evaluate(task: Any, text: str) -> tuple[str, str]:
        seen.append((task.text, text))
        return "PASS", ""

    own = {"draft": GENERATOR}
    run = await refine(STACK, model=ScriptedModel(GENERATED), checks=[evaluate], prompts=own)
    assert (seen, run.stop_reason) == ([(STACK, ATTEMPTS[0])], "passed")


USAGE = "stack = MinStack()\n" + "stack.push(1)\n" * 20
OLD = ATTEMPTS[0] + "\n    # It was longer once, as nothing was left out of it."


@pytest.mark.parametrize("own", [{}, {"draft": GENERATOR}], ids=["our prompt", "own prompt"])
@pytest.mark.parametrize(
    "reply",
    [
        f"{code(ATTEMPTS[1])}\n\nUsage:\n\n{code(USAGE)}",
        f"Usage:\n\n{code(USAGE)}\n\nSo:\n\n{code(ATTEMPTS[1])}",
        f"It was:\n\n{code(OLD)}\n\nBetter:\n\n{code(ATTEMPTS[1])}",
        f"Thoughts: I use it so.\n\nResponse:\n{code(ATTEMPTS[1])}\n\nUsage:\n{code(USAGE)}",
        f"```bash\npip install {'x' * 99}\n```\n\n{code(ATTEMPTS[1])}",
    ],
    ids=["usage after", "usage before", "old and new", "labelled", "a command"],
)
async def test_the_code_that_the_task_names_is_the_text_not_the_longest(reply, own):
    run = await refine(
        "Write a class MinStack.",
        model=ScriptedModel([reply]),
        checks=[lambda text: True],
        prompts=own,
    )
    assert (run.text, run.usage.calls) == (ATTEMPTS[1], 1)


@pytest.mark.parametrize("task", [STACK, "Write `f(n)`.\n\nf(2) == 4"], ids=["judged", "failing"])
async def test_the_latest_is_returned_where_all_are_equally_bad(task):
    left = iter(COMPLAINTS)
    run = await refine(
        task,
        model=ScriptedModel(code(f"def f(n):\n    return -{n}") for n in range(3)),
        checks=[lambda text: ("NEEDS_IMPROVEMENT", next(left))],
        max_revisions=2,
    )
    assert (run.text, run.stop_reason) == ("def f(n):\n    return -2", StopReason.REVISIONS)


@pytest.mark.parametrize("first", ["PASS", "FAIL"])
async def test_a_stated_example_blocks_a_pass_and_stands_beside_the_feedback(first):
    replies = [code("def double(n):\n    return n + 1"), code("def double(n):\n    return 2 * n")]
    task = "Write `double(n)`.\n\ndouble(2) == 4"
    rounds = [said(first, "" if first == "PASS" else "It is slow."), said("PASS")]
    run, writer, judge = await looped(replies, rounds, task)
    assert outcomes(run) == ["NEEDS_IMPROVEMENT" if first == "PASS" else "FAIL", "PASS"]
    assert len(judge) == 2, "it is asked whatever the example shows"
    feedback = writer[1].split("Feedback:")[1]
    assert re.search("expected 4, got 3" if first == "PASS" else "slow.\n\n.*expected 4", feedback)


# The places of prompts


@pytest.mark.parametrize("place", ["text", "content", "response", "response.code", "solution"])
async def test_places_of_an_evaluators_prompt_are_filled(place):
    prompt = f"PASS or FAIL?\nOriginal task: {{task}}\nTo evaluate: <<{{{place}}}>>"
    _, _, [asked] = await looped([code("x = 1")], [said("PASS")], prompts={"judge": prompt})
    assert asked == f"PASS or FAIL?\nOriginal task: {STACK}\nTo evaluate: <<x = 1>>"


async def test_places_of_a_generators_prompt_are_filled():
    prompt = "Do it.\n{context}\nTask: {task}"
    _, [first, second], _ = await looped(
        GENERATED, [ROUNDS[0], ROUNDS[4]], prompts={"draft": prompt}
    )
    assert words(first) == words(f"Do it.\nTask: {STACK}")
    assert all(piece in second for piece in pieces(range(1)))
    assert "{" not in second


async def test_places_of_a_prompt_for_revisions_are_filled():
    places = ["attempts", "feedback", "evidence", "text", "content", "task"]
    prompt = "Do better." + "".join(f" <<{{{place}}}>>" for place in places)
    _, [_, asked], _ = await looped(GENERATED, [ROUNDS[0], ROUNDS[4]], prompts={"revise": prompt})
    assert asked.startswith("Do better. <<")
    assert not any(f"{{{place}}}" in asked for place in places)


async def test_a_prompt_for_revisions_without_a_place_for_feedback_has_it_all_the_same():
    prompt = "Do better.\n{text}"
    _, [_, asked], _ = await looped(GENERATED, [ROUNDS[0], ROUNDS[4]], prompts={"revise": prompt})
    assert words(asked) == words(
        f"Do better. {ATTEMPTS[0]} Feedback: {COMPLAINTS[0]} Task: {STACK}"
    )


async def test_a_place_that_nobody_fills_is_named_before_the_first_call():
    writer, judge = ScriptedModel([code("x = 1")]), ScriptedModel(["PASS"])
    warned: list[int] = []

    def watch(event: Any, run: Run) -> None:
        if event.type == "warned" and "{audience}" in event.message:
            warned.append(len(writer.requests))

    prompts = {"draft": "For {audience}.", "judge": 'Say {"evaluation": "PASS"} or not.'}
    run = await refine(STACK, model=writer, judge=judge, prompts=prompts, on_event=watch)
    assert (warned, run.stop_reason, len(run.warnings)) == ([0], "passed", 1)


@pytest.mark.parametrize("stage", ["system", "critique", "judge", "revise"])
async def test_no_place_is_compulsory(stage):
    own = {stage: "Be strict and say PASS or FAIL."}
    judge = ScriptedModel(["PASS" if stage == "judge" else READY])
    run = await refine(
        "Write an email.", model=ScriptedModel([text("Hi")]), judge=judge, prompts=own
    )
    assert run.text == "Hi"
    assert "Hi" in sent(judge)[0]
    assert "Write an email." in sent(judge)[0]


@pytest.mark.parametrize("memory", ["best", "all"])
@pytest.mark.parametrize("own", [{}, {"draft": GENERATOR}], ids=["our prompt", "own prompt"])
async def test_feedback_of_several_paragraphs_keeps_them(memory, own):
    rounds = ScriptedModel([json.dumps(said("FAIL", "First.\n\nSecond:\n- a\n- b")), "PASS"])
    writer, prompts = ScriptedModel(map(code, ATTEMPTS)), {"judge": EVALUATOR, **own}
    await refine(STACK, model=writer, judge=rounds, prompts=prompts, memory=memory)
    assert re.search(r"First\.\n\s*\n\s*Second:\n\s*- a\n\s*- b", sent(writer)[1])


@pytest.mark.parametrize("own", [{"jugde": "x"}, {"judge": ""}, {"judge": 3}], ids=str)
async def test_prompts_that_cannot_be_used_are_refused_before_any_call(own):
    writer = ScriptedModel([])
    with pytest.raises(UsageError, match="prompt"):
        await refine(STACK, model=writer, prompts=own)
    assert not writer.requests


# The evaluator that ships, and replies that are no evaluation


@pytest.mark.parametrize(
    ("score", "outcome"), [(9, Outcome.PASS), (5, Outcome.NEEDS_IMPROVEMENT), (1, Outcome.FAIL)]
)
async def test_an_evaluation_is_pass_needs_improvement_or_fail_by_its_score(score, outcome):
    limits = Limits(max_revisions=0, critique="never")
    loop = evaluated([text("Hi"), judgement(score)], limits=limits)
    await finish(loop)
    verdict = loop.state.verdict
    assert (verdict.outcome, verdict.score, verdict.basis) == (outcome, score / 10, "evaluator")


async def test_of_an_evaluator_that_gives_words_no_score_and_no_target_are_told():
    replies, prompts = [text("Hi"), "FAIL: no name", text("Hi Ann"), "PASS"], Prompts(judge="?")
    loop = evaluated(replies, limits=Limits(), prompts=prompts)
    await finish(loop)
    assert loop.state.stop_reason is StopReason.PASSED
    loop.decide(Guide(guidance="greet Bob, too"))
    await loop.end()
    printed = record_text(loop.state)
    assert "The evaluator passes it, but f" in " ".join(printed.split())
    assert "Scores" not in printed
    assert "target" not in printed


@pytest.mark.parametrize(
    "reply",
    ["Hm, hard to say.", '{"note": "unsure"}', '{"evaluation": "SUPER"}', "PASS. All is right."],
)
async def test_an_evaluation_that_stays_unreadable_is_feedback_and_the_run_goes_on(reply):
    run, writer, _ = await looped(GENERATED, [reply, reply, said("PASS")])
    assert (outcomes(run), run.text) == (["NOT_JUDGED", "PASS"], ATTEMPTS[1])
    assert reply in writer[1]
    assert run.iterations[0].evaluation.said == reply


async def test_unreadable_evaluations_are_acted_on_up_to_the_cap_and_settle_nothing():
    run, _, judge = await looped(GENERATED, ["PASS? No."] * 8, max_revisions=2)
    assert outcomes(run) == ["NOT_JUDGED"] * 3
    assert (run.stop_reason, len(judge)) == ("unjudged", 5), "two are asked again, and no more"


async def test_a_list_without_an_item_or_done_is_asked_about_once_and_ends_the_run():
    run, _, judge = await looped(GENERATED, ['{"feedback": []}'] * 2)
    assert (outcomes(run), run.stop_reason, len(judge)) == (["NOT_JUDGED"], "unjudged", 2)


async def test_an_evaluators_own_words_for_yes_and_no_are_those_of_its_prompts():
    prompts = {"judge": "Gut so?", "pass": "BESTANDEN", "fail": "DURCHGEFALLEN"}
    replies = ["Knapp BESTANDEN", "DURCHGEFALLEN: pop fehlt", "BESTANDEN"]
    run, writer, judge = await looped(GENERATED, replies, prompts=prompts)
    assert (outcomes(run), run.text) == (["FAIL", "PASS"], ATTEMPTS[1])
    assert "pop fehlt" in writer[1]
    assert '"Verdict: BESTANDEN", "Verdict: DURCHGEFALLEN"' in judge[1]
    assert len(judge) == 3


async def test_a_prompt_that_names_no_word_for_yes_is_refused_before_the_first_call():
    writer = ScriptedModel([])
    with pytest.raises(UsageError, match='Add "pass": "APPROVED"'):
        await refine(STACK, model=writer, prompts={"judge": "Say APPROVED or REJECTED."})
    assert not writer.requests


async def test_an_empty_evaluation_neither_passes_nor_loops():
    loop = evaluated([text("Hi"), "", ""], limits=Limits(max_revisions=0))
    await finish(loop)
    assert (loop.state.verdict.outcome, loop.state.verdict.basis) == (Outcome.NOT_JUDGED, "none")
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.UNJUDGED)
    assert loop.state.usage.calls == 3
