"""B. Self-refine with feedback lists, until done or three refinements.

- Your loop: list actions as feedback, refine the latest response, and stop at ``done`` or after
  three refinements.
- Here: `%%refine --prompts mine --set base=latest -n 3`, with your feedback prompt as
  ``mine["judge"]``. One model does every step: at most 8 calls.
- By default a revision starts from the best text again when the latest ranks below it; ``--base
  latest`` switches that off. The text returned is still the best. With our own prompts,
  ``--critique always`` lists findings for every text; ``--critique never`` leaves the judge's
  scores below the target.
"""

import json
import re
from typing import Any

import pytest
from kit import TASK, code, evaluated, finish, judgement, requests, status, text
from own_prompts import looped, problems

from ipyrefine import refine
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.core.ports import Reply
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel

FIBONACCI = "Write Python code that computes the Fibonacci sequence, as fibonacci(n)."
CRITIC = (
    "Give feedback on this code as a list of actions, and say done when none is left.\n\n{text}\n\n"
    'As JSON: {"feedback": ["action"], "done": false}'
)
ACTIONS = [
    ["Use a generator", "Add type hints"],
    ["Write a docstring", "Avoid the slice", "Handle zero"],
    ["Name the sequence", "Drop the print", "Shorten the loop"],
    [],
]
VERSIONS = [f"def fibonacci(n):\n    return [{number}]" for number in range(4)]


THRICE: dict[str, Any] = {"max_revisions": 3, "no_checks": ["all"], "journal": False}


def listed(actions: list[str]) -> dict[str, Any]:
    return {"feedback": actions, "done": not actions}


async def refined(actions: list[list[str]]) -> tuple[Run, ScriptedModel]:
    """Run one model for all steps: it writes, gives feedback on what it wrote, and so on."""
    pairs = zip(map(code, VERSIONS), actions, strict=True)
    model = ScriptedModel(one for text, said in pairs for one in (text, json.dumps(listed(said))))
    run = await refine(FIBONACCI, model=model, prompts={"judge": CRITIC}, **THRICE)
    return run, model


async def test_lists_of_two_three_and_three_actions_and_then_none_finish_in_four_rounds():
    run, model = await refined(ACTIONS)
    assert (run.text, run.stop_reason, run.usage.calls) == (VERSIONS[3], StopReason.PASSED, 8)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2]
    assert [problems(run, n) for n in range(4)] == ACTIONS
    for number, request in enumerate(model.requests[2::2]):
        prompt = request.messages[-1].content
        asked = [item for items in ACTIONS for item in items if item in prompt]
        assert asked == ACTIONS[number], "the latest list, and no other"
        assert [text in prompt for text in VERSIONS] == [n == number for n in range(4)]


async def test_a_function_may_return_the_list_with_done_and_no_model_is_asked_for_it():
    left = map(listed, ACTIONS)
    model = ScriptedModel(map(code, VERSIONS))
    run = await refine(FIBONACCI, model=model, checks=[lambda text: next(left)], **THRICE)
    assert (run.text, run.stop_reason, run.usage.calls) == (VERSIONS[3], StopReason.PASSED, 4)
    assert [problems(run, n) for n in range(4)] == ACTIONS
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2]
    for number, request in enumerate(model.requests[1:]):
        assert all(item in request.messages[-1].content for item in ACTIONS[number])


async def test_an_action_that_comes_back_after_it_was_done_is_regressed():
    run, model = await refined([["Add type hints"], ["Handle zero"], ["Add type hints"], []])
    statuses = [[*map(status, run.cells(one))] for one in run.iterations]
    assert statuses == [
        ["open"], ["resolved", "open"], ["regressed", "resolved"], ["resolved", "resolved"],
    ]  # fmt: skip
    assert "f1 (blocking, feedback): Add type hints" in model.requests[6].messages[-1].content


@pytest.mark.parametrize(
    "places",
    [("{response.code}", "{feedback.feedback}"), ("{text}", "{feedback}")],
    ids=["dotted", "plain"],
)
async def test_a_prompt_for_refining_gets_response_and_feedback_in_its_places(places):
    prompt = "<response>\n{}\n</response>\n<feedback>\n{}\n</feedback>".format(*places)
    _, [_, asked], _ = await looped(
        map(code, VERSIONS), map(listed, [ACTIONS[0], []]), prompts={"revise": prompt}
    )
    inside = re.search(
        r"<response>\n(.*)\n</response>\n<feedback>\n(.*)\n</feedback>", asked, re.DOTALL
    )
    assert inside[1] == VERSIONS[0]
    assert all(action in inside[2] for action in ACTIONS[0])


async def test_an_invalid_reply_is_sent_back_once_with_the_error_and_counted():
    loop = evaluated([text("Hi"), "It is fine.", judgement(9)], limits=Limits(critique="never"))
    await finish(loop)
    again = requests(loop)[2].messages
    assert again[-2].content == "It is fine."
    assert "it isn't one JSON object" in again[-1].content
    assert (loop.state.usage.calls, loop.state.stop_reason) == (3, StopReason.PASSED)
    assert any(w.startswith("Asked scripted again") for w in loop.state.warnings)


async def test_a_truncated_reply_is_never_asked_for_again_blindly():
    cut = Reply(text="It is", finish="length")
    task = TASK.model_copy(update={"checklist": ("Is there a name?",)})
    loop = evaluated([text("Hi"), cut], task, limits=Limits(max_revisions=0, critique="never"))
    await finish(loop)
    assert len(requests(loop)) == 2
    assert loop.state.verdict.outcome is Outcome.NOT_JUDGED
    assert "cut off" in loop.state.verdict.line
