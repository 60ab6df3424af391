"""D. Evaluator-optimizer: the solution with every generation and its thoughts.

- Your loop: the generator returns thoughts and a response, the evaluator a verdict and feedback;
  the result is the solution with its chain of thoughts.
- Here: `%%refine --prompts mine --memory all -n 10`, or `%%refine -n 0` and ``%refine continue 1
  "your feedback"`` for a person's. ``[(i.thoughts, i.text) for i in refined_run.iterations]`` is
  the chain. Java stays Java.
- By default thoughts are shown and stored, but never judged or tested. Patience and critique are as
  in the first loop.
"""

import json

import pytest
from kit import decide, finding, finish, judgement, prompts, refinement, text

from ipyrefine import refine
from ipyrefine.core.decisions import Accept, Add, Continue
from ipyrefine.core.model import Finding, Limits, Severity, StopReason
from ipyrefine.providers.scripted import ScriptedModel


async def test_the_run_holds_every_generation_with_its_thoughts_and_the_solution() -> None:
    loop = refinement(
        [
            text("Hi", notes="Short."),
            judgement(5, finding("dull")),
            text("Hi Ann", notes="Her name."),
            judgement(9, fixed=("f1",)),
        ]
    )
    await finish(loop)
    chain = [(i.thoughts, i.text) for i in loop.state.iterations]
    assert chain == [("Short.", "Hi"), ("Her name.", "Hi Ann")]
    assert loop.state.text == "Hi Ann"


async def test_the_solution_is_the_last_one_that_was_accepted() -> None:
    loop = refinement(
        [text("Hi"), judgement(5, finding("dull")), text("Ho"), judgement(3, finding("odd"))],
        limits=Limits(max_revisions=1),
    )
    await finish(loop)
    assert loop.state.text == "Hi"
    await decide(loop, Accept(iteration=1))
    assert (loop.state.text, loop.state.stop_reason) == ("Ho", StopReason.ACCEPTED)


async def test_a_persons_and_a_models_feedback_are_both_acted_on_by_one_revision() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Hallo Ann"),
            judgement(9, fixed=("f1", "f2")),
        ],
        limits=Limits(critique="always", step=True),
    )
    await finish(loop)
    wish = Finding(criterion="tone", severity=Severity.BLOCKING, problem="Name her.")
    loop.decide(Add(finding=wish))
    await decide(loop, Continue())
    asked = prompts(loop)[2]
    assert "dull" in asked
    assert "Name her." in asked
    named = {f.problem: f.author for f in loop.state.iterations[1].findings}
    assert (named["dull"], named["Name her."]) == ("model", "user")
    assert loop.state.stop_reason is StopReason.PASSED


# A Java class, by a generator and an evaluator that both reply with JSON

COUNTER = "Implement a Java class Counter with increment(), reset() and get(), documented."
GENERATOR = (
    "Solve the task, and learn from the feedback if there is any. Reply with one line of JSON:\n"
    '{"thoughts": "in short", "response": "the code"}'
)
EVALUATOR = (
    "Is this code right, fast and documented?\n\n{text}\n\nReply with one line of JSON:\n"
    '{"evaluation": "PASS, NEEDS_IMPROVEMENT or FAIL", "feedback": "what to change"}'
)
JSON_PROMPTS = {"draft": GENERATOR, "revise": f"{GENERATOR}\n\n{{text}}", "judge": EVALUATOR}
CLASSES = [
    f'/** Try {n}. */\npublic class Counter {{\n    String name = "c\\n{n}";\n}}' for n in range(4)
]
THOUGHTS = [f"My idea is number {n}." for n in range(4)]
FEEDBACK = ["reset is missing", "get has no javadoc", "increment is not synchronized", ""]
JUDGED = ["FAIL", "NEEDS_IMPROVEMENT", "NEEDS_IMPROVEMENT", "PASS"]


def evaluations() -> ScriptedModel:
    pairs = zip(JUDGED, FEEDBACK, strict=True)
    return ScriptedModel(json.dumps({"evaluation": said, "feedback": why}) for said, why in pairs)


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "bare"])
async def test_a_java_class_stays_java_with_the_thoughts_of_every_generation(fenced: bool) -> None:
    replies = [
        json.dumps({"thoughts": t, "response": c}) for t, c in zip(THOUGHTS, CLASSES, strict=True)
    ]
    writer = ScriptedModel(f"```json\n{r}\n```" if fenced else r for r in replies)
    judge = evaluations()
    run = await refine(COUNTER, model=writer, judge=judge, prompts=JSON_PROMPTS)
    assert [(i.thoughts, i.text) for i in run.iterations] == list(
        zip(THOUGHTS, CLASSES, strict=True)
    )
    assert (run.text, run.stop_reason) == (CLASSES[3], StopReason.PASSED)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2]
    assert run.usage.calls == 8
    assert (run.task.form, run.task.language) == ("code", "java")
    for number, request in enumerate(writer.requests[1:]):
        asked = request.messages[-1].content
        assert CLASSES[number] in asked
        assert FEEDBACK[number] in asked
        assert not any(why in asked for why in FEEDBACK[number + 1 : 3])
    everything = [request.model_dump_json() for request in judge.requests]
    assert not any(thought in said for thought in THOUGHTS for said in everything)
    assert [CLASSES[n] in r.messages[-1].content for n, r in enumerate(judge.requests)] == [
        True
    ] * 4


async def test_java_is_what_is_asked_for_and_fenced_without_a_word_about_python() -> None:
    writer = ScriptedModel(f"I would do it so.\n```java\n{c}\n```" for c in CLASSES)
    run = await refine(COUNTER, model=writer, judge=evaluations(), prompts={"judge": EVALUATOR})
    assert [i.text for i in run.iterations] == CLASSES
    assert (run.text, run.stop_reason) == (CLASSES[3], StopReason.PASSED)
    for request in writer.requests:
        whole = "\n".join(message.content for message in request.messages)
        assert "```java" in whole
        assert "Java code" in whole
        assert "python" not in whole.lower()
