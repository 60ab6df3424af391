"""D. Evaluator-optimizer: the solution with every generation and its thoughts."""

from kit import TASK, decide, finding, finish, judgement, prompts, refinement, requests, text

from ipyrefine.core.decisions import Accept, Add, Continue
from ipyrefine.core.model import Criterion, Finding, Limits, Severity, StopReason


async def test_the_run_holds_every_generation_with_its_thoughts_and_the_solution() -> None:
    loop = refinement(
        [
            text("Hi", notes="Short."),
            judgement(5, finding("dull")),
            text("Hi Ann", notes="Her name."),
            judgement(9, fixed=("f1",)),
        ],
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


async def test_criteria_can_demand_documentation() -> None:
    task_criteria = (Criterion(name="documentation", definition="Every function is documented."),)
    task = TASK.model_copy(update={"criteria": task_criteria})
    loop = refinement(
        [text("def f(): ..."), judgement({"documentation": 2})],
        task,
        limits=Limits(max_revisions=0),
    )
    await finish(loop)
    assert "Every function is documented." in requests(loop)[1].messages[0].content
    assert loop.state.verdict is not None
    assert loop.state.verdict.criteria[0].name == "documentation"


async def test_a_persons_and_a_models_feedback_are_both_acted_on_by_one_revision() -> None:
    loop = refinement(
        [
            text("Hi"),
            judgement(5, finding("dull")),
            text("Hallo Ann"),
            judgement(9, fixed=("f1", "f2")),
        ],
        limits=Limits(step=True),
    )
    await finish(loop)
    wish = Finding(criterion="tone", severity=Severity.BLOCKING, problem="Name her.")
    loop.decide(Add(finding=wish))
    await decide(loop, Continue())
    asked = prompts(loop)[2]
    assert "dull" in asked
    assert "Name her." in asked
    assert [f.author for f in loop.state.iterations[1].findings] == ["model", "user"]
    assert loop.state.stop_reason is StopReason.PASSED
