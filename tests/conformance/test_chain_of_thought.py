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

from kit import EVALUATED, decide, ended, finding, judgement, prompts, text, told
from own_prompts import EVALUATOR, looped, outcomes, said, sent

from ipyrefine import refine
from ipyrefine.core.decisions import Accept, Add, Continue
from ipyrefine.core.model import Limits, StopReason
from ipyrefine.core.table import Point
from ipyrefine.providers.scripted import ScriptedModel

COUNTER = "Implement a Java class Counter with increment(), reset() and get(), documented."
CLASSES = [
    f'/** Try {n}. */\npublic class Counter {{\n    String name = "c\\n{n}";\n}}' for n in range(4)
]
THOUGHTS = [f"My idea is number {n}." for n in range(4)]
FEEDBACK = ["reset is missing", "get has no javadoc", "increment is not synchronized", ""]
JUDGED = ["FAIL", "NEEDS_IMPROVEMENT", "NEEDS_IMPROVEMENT", "PASS"]
ROUNDS = [said(*pair) for pair in zip(JUDGED, FEEDBACK, strict=True)]


async def test_a_java_class_stays_java_with_the_thoughts_of_every_generation():
    chain = [*zip(THOUGHTS, CLASSES, strict=True)]
    run, writer, judge = await looped(
        (json.dumps({"thoughts": plan, "response": code}) for plan, code in chain), ROUNDS, COUNTER
    )
    assert [(i.thoughts, i.text) for i in run.iterations] == chain
    assert (run.text, run.stop_reason, run.usage.calls) == (CLASSES[3], StopReason.PASSED, 8)
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2]
    assert outcomes(run) == JUDGED
    assert (run.task.form, run.task.language) == ("code", "java")
    for number, asked in enumerate(writer[1:]):
        assert [code in asked for code in CLASSES] == [n == number for n in range(4)]
        assert [why in asked for why in FEEDBACK[:3]] == [n == number for n in range(3)]
    assert all(code in asked for code, asked in zip(CLASSES, judge, strict=True))
    assert not any(plan in asked for plan in THOUGHTS for asked in [*writer, *judge])


async def test_java_is_asked_for_as_java_once_its_writer_answers_in_it():
    writer = ScriptedModel(f"I would do it so.\n```java\n{c}\n```" for c in CLASSES)
    judge = ScriptedModel(map(json.dumps, ROUNDS))
    run = await refine(COUNTER, model=writer, judge=judge, prompts={"judge": EVALUATOR})
    assert [i.text for i in run.iterations] == CLASSES
    first, *others = sent(writer)
    assert "```python" not in first
    for asked in others:
        assert "```java" in asked
        assert "Java code" in asked
        assert "python" not in asked.lower()


async def test_the_solution_is_the_last_one_that_was_accepted():
    loop = await ended(
        [text("Hi"), judgement(5, finding("dull")), text("Ho"), judgement(3, finding("odd", "Ho"))],
        prompts=EVALUATED,
        limits=Limits(max_revisions=1),
    )
    assert loop.state.text == "Hi"
    await decide(loop, Accept(iteration=1))
    assert (loop.state.text, loop.state.stop_reason) == ("Ho", StopReason.ACCEPTED)


async def test_a_persons_and_a_models_feedback_are_both_acted_on_by_one_revision():
    loop = await ended(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Hallo Ann"),
            judgement(9, fixed=("f1", "f2")),
        ],
        limits=Limits(critique="always", step=True),
    )
    wish = Point(criterion="tone", blocking=True, words="Name her.")
    loop.decide(Add(point=wish))
    await decide(loop, Continue())
    assert "dull" in prompts(loop)[2]
    assert "Name her." in prompts(loop)[2]
    named = {one.words: one.point.by_model for one in told(loop.state, 1)}
    assert (named["dull"], named["Name her."]) == (True, False)
    assert loop.state.stop_reason is StopReason.PASSED
