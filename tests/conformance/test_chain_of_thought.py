"""D. Evaluator-optimizer: the solution with every generation and its thoughts."""

from loop_scripts import finish, found, judged, refinement, requests, text

from ipyrefine.core.records import Criterion, Finding, Severity
from ipyrefine.core.runs import Decision, Limits, StopReason


async def test_the_run_holds_every_generation_with_its_thoughts_and_the_solution() -> None:
    loop = refinement(
        [text("Hi", notes="Short."), judged(5, found("dull")), text("Hi Ann", notes="Her name."),
         judged(9, fixed=("f1",))],
    )  # fmt: skip
    await finish(loop)
    chain = [(i.thoughts, i.text) for i in loop.run.iterations]
    assert chain == [("Short.", "Hi"), ("Her name.", "Hi Ann")]
    assert loop.run.text == "Hi Ann"


async def test_the_solution_is_the_last_one_that_was_accepted() -> None:
    loop = refinement([text("Hi"), judged(5, found("dull")), text("Ho"), judged(3, found("odd"))],
                      limits=Limits(max_iterations=1))  # fmt: skip
    await finish(loop)
    assert loop.run.text == "Hi"
    loop.decide(Decision(kind="accept", iteration=1))
    await finish(loop)
    assert (loop.run.text, loop.run.stop_reason) == ("Ho", StopReason.ACCEPTED)


async def test_criteria_can_demand_documentation() -> None:
    task_criteria = (Criterion(name="documentation", definition="Every function is documented."),)
    from loop_scripts import TASK

    task = TASK.model_copy(update={"criteria": task_criteria})
    loop = refinement(
        [text("def f(): ..."), judged(2, names=("documentation",))],
        task,
        limits=Limits(max_iterations=0),
    )
    await finish(loop)
    assert "Every function is documented." in requests(loop)[1].messages[0].content
    assert loop.run.verdict is not None
    assert loop.run.verdict.criteria[0].name == "documentation"


async def test_a_persons_and_a_models_feedback_are_both_acted_on_by_one_revision() -> None:
    loop = refinement(
        [text("Hi"), judged(5, found("dull")), text("Hallo Ann"), judged(9, fixed=("f1", "f2"))],
        limits=Limits(step=True),
    )
    await finish(loop)
    wish = Finding(id="", criterion="tone", severity=Severity.BLOCKING, problem="Name her.")
    loop.decide(Decision(kind="add", finding=wish))
    loop.decide(Decision(kind="continue"))
    await finish(loop)
    asked = requests(loop)[2].messages[-1].content
    assert "dull" in asked
    assert "Name her." in asked
    assert [f.author for f in loop.run.iterations[1].findings] == ["model", "user"]
    assert loop.run.stop_reason is StopReason.PASSED
