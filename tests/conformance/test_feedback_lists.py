"""B. Self-refine with feedback lists, until done or three refinements.

- Your loop: list actions as feedback, refine the latest response, and stop at ``done`` or after
  three refinements.
- Here: `%%refine --prompts mine --base latest -n 3`, with your feedback prompt as
  ``mine["judge"]``. One model does every step: at most 8 calls.
- By default a revision starts from the best text again when the latest ranks below it; ``--base
  latest`` switches that off. The text returned is still the best. With our own prompts,
  ``--critique always`` lists findings for every text; ``--critique never`` leaves the judge's
  scores below the target.
"""

import json
from typing import Any

from kit import NO_FINDINGS, TASK, code, evaluated, finding, finish, judgement, requests, text

from ipyrefine import refine
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.core.ports import Reply
from ipyrefine.providers.scripted import ScriptedModel

THREE = Limits(max_revisions=3, patience=9)


async def test_the_history_holds_response_feedback_and_refined_response() -> None:
    loop = evaluated(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Hi Ann", "f1: her name"),
            judgement(9, fixed=("f1",)),
        ],
        limits=THREE,
    )
    await finish(loop)
    first, refined = loop.state.iterations
    [dull] = [f for f in first.findings if f.author == "model"]
    assert (first.text, dull.problem) == ("Hi", "dull")
    assert (refined.parent, refined.text) == (0, "Hi Ann")
    assert [(c.finding, c.summary) for c in refined.changes] == [(dull.id, "her name")]


async def test_three_refinements_by_one_model_cost_at_most_eight_calls() -> None:
    replies = [part for n in range(4) for part in (text(f"v{n}"), judgement(2 + n))]
    loop = evaluated(replies, limits=THREE.model_copy(update={"critique": "never"}))
    await finish(loop)
    assert len(loop.state.iterations) == 4
    assert loop.state.usage.calls == 8
    assert loop.state.stop_reason is StopReason.REVISIONS


async def test_eight_calls_are_enough_even_if_the_first_text_has_to_be_criticised() -> None:
    loop = evaluated(
        [text("v0"), judgement(9), *NO_FINDINGS, text("v1"), judgement(9)], limits=THREE
    )
    await finish(loop)
    assert loop.state.usage.calls <= 8


async def test_an_invalid_reply_is_sent_back_once_with_the_error_and_counted() -> None:
    loop = evaluated([text("Hi"), "It is fine.", judgement(9)], limits=Limits(critique="never"))
    await finish(loop)
    again = requests(loop)[2].messages
    assert again[-2].content == "It is fine."
    assert "it holds no verdict, done or score" in again[-1].content
    assert loop.state.usage.calls == 3
    assert loop.state.stop_reason is StopReason.PASSED
    assert any(w.startswith("Asked scripted again") for w in loop.state.warnings)


async def test_a_truncated_reply_is_never_asked_for_again_blindly() -> None:
    cut = Reply(text="It is", finish="length")
    task = TASK.model_copy(update={"checklist": ("Is there a name?",)})
    loop = evaluated([text("Hi"), cut], task, limits=Limits(max_revisions=0, critique="never"))
    await finish(loop)
    assert len(requests(loop)) == 2
    assert loop.state.verdict is not None
    assert loop.state.verdict.outcome is Outcome.NOT_JUDGED
    assert "cut off" in loop.state.verdict.because.detail


# With feedback in its own shape, over four rounds

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


def lists(actions: list[list[str]]) -> list[str]:
    return [json.dumps({"feedback": items, "done": not items}) for items in actions]


def interleaved(texts: list[str], replies: list[str]) -> ScriptedModel:
    """One model for all steps: it writes, then gives feedback on what it wrote, and so on."""
    return ScriptedModel(
        [part for pair in zip(map(code, texts), replies, strict=True) for part in pair]
    )


async def test_lists_of_two_three_and_three_actions_and_then_none_finish_in_four_rounds() -> None:
    model = interleaved(VERSIONS, lists(ACTIONS))
    run = await refine(FIBONACCI, model=model, prompts={"judge": CRITIC}, max_revisions=3)
    assert (run.text, run.stop_reason) == (VERSIONS[3], StopReason.PASSED)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2]
    assert run.usage.calls == 8
    open_actions = [[f.problem for f in i.findings if f.actionable] for i in run.iterations]
    assert open_actions == ACTIONS
    revisions = [request.messages[-1].content for request in model.requests[2::2]]
    for number, prompt in enumerate(revisions):
        asked = [item for items in ACTIONS for item in items if item in prompt]
        assert asked == ACTIONS[number], "the latest list, and no other"
        assert [text in prompt for text in VERSIONS] == [n == number for n in range(4)]


async def test_an_action_that_comes_back_after_it_was_done_is_regressed() -> None:
    back = [["Add type hints"], ["Handle zero"], ["Add type hints"], []]
    model = interleaved(VERSIONS, lists(back))
    run = await refine(FIBONACCI, model=model, prompts={"judge": CRITIC}, max_revisions=3)
    statuses = [[f.status.value for f in i.findings] for i in run.iterations]
    assert statuses == [
        ["open"],
        ["resolved", "open"],
        ["regressed", "resolved"],
        ["resolved", "resolved"],
    ]
    assert "f1 (blocking, feedback): Add type hints" in model.requests[6].messages[-1].content


async def test_feedback_that_is_never_done_ends_after_three_refinements_with_the_latest() -> None:
    endless = [[f"Change number {number}"] for number in ["once", "again", "more", "still"]]
    model = interleaved(VERSIONS, lists(endless))
    run = await refine(FIBONACCI, model=model, prompts={"judge": CRITIC}, max_revisions=3)
    assert run.usage.calls == 8
    assert (run.text, run.stop_reason) == (VERSIONS[3], StopReason.REVISIONS)


async def test_a_function_may_return_the_list_with_done_and_no_model_is_asked_for_it() -> None:
    left = iter(ACTIONS)

    def feedback(text: str) -> dict[str, Any]:
        items = next(left)
        return {"feedback": items, "done": not items}

    model = ScriptedModel(map(code, VERSIONS))
    run = await refine(FIBONACCI, model=model, checks=[feedback], max_revisions=3)
    assert (run.text, run.stop_reason) == (VERSIONS[3], StopReason.PASSED)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2]
    assert run.usage.calls == 4
    for number, request in enumerate(model.requests[1:]):
        assert all(item in request.messages[-1].content for item in ACTIONS[number])
