"""Result first: what a task states is run without an option, and no opinion passes a failure."""

from typing import Any, NamedTuple

import pytest
from kit import READY, Finds, code, critique, finding, finish, in_order, text, told

from ipyrefine import api, refine
from ipyrefine.core.decisions import Accept, Continue, Override
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.core.table import Result
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import say

INC = "Write inc(n), which adds one.\n\n>>> inc(1)\n2\n>>> inc(4)\n5\n"
RIGHT = "def inc(n):\n    return n + 1"
WRONG = ["def inc(n):\n    return n", "def inc(n):\n    return 2", "def inc(n):\n    return 5"]
SEA = "Describe the sea in at most five words."
SHORT, LONG = "Salt, wind and long light.", "The sea is salty and wide and deep."


def own_tests(*, passed: bool) -> Finds:
    """Unit tests of the user's, with what they find."""
    found = Result(name="tests:x", passed=passed, decisive=True, basis="tests", shows="ran")
    return Finds(found)


class Case(NamedTuple):
    """What is asked and replied, the stages that were asked, and each verdict with its basis."""

    task: str
    replies: list[str]
    stages: str
    verdicts: str
    options: dict[str, Any] | None = None


CASES = {
    "examples that hold, once the code was read": Case(
        INC, [code(RIGHT), READY], "draft critique", "PASS by examples"
    ),
    "an example that is missed is mended before anybody reads the code": Case(
        INC,
        [code(WRONG[0]), code(RIGHT), READY],
        "draft revise critique",
        "NEEDS_IMPROVEMENT by examples, PASS by examples",
    ),
    "examples that are not to be run": Case(
        INC, [code(RIGHT), READY], "draft critique", "PASS by critique", {"no_checks": ["examples"]}
    ),
    "a function of the user's does not pass a failed example": Case(
        INC,
        [code(WRONG[0])],
        "draft",
        "NEEDS_IMPROVEMENT by examples",
        {"checks": [lambda text: 1.0], "target": 0.9, "max_revisions": 0},
    ),
    "tests of the user's are the strongest": Case(
        INC, [code(RIGHT)], "draft", "PASS by tests", {"checks": [own_tests(passed=True)]}
    ),
    "tests of the user's must pass too": Case(
        INC,
        [code(RIGHT)],
        "draft",
        "NEEDS_IMPROVEMENT by tests",
        {"checks": [own_tests(passed=False)], "max_revisions": 0},
    ),
    "a constraint settles itself, and a critic reads the rest": Case(
        SEA, [text(SHORT), READY], "draft critique", "PASS by critique"
    ),
    "a constraint that is missed is mended before anybody reads the text": Case(
        SEA,
        [text(LONG), text(SHORT), READY],
        "draft revise critique",
        "NEEDS_IMPROVEMENT by constraints, PASS by critique",
    ),
    "prose is read, revised and read again": Case(
        "Describe the sea.",
        [text("The sea."), critique(finding("too curt")), text("The wide sea."), READY],
        "draft critique revise critique",
        "NEEDS_IMPROVEMENT by critique, PASS by critique",
    ),
    "prose that nobody reads is not judged": Case(
        "Describe the sea.", [text("Sea.")], "draft", "NOT_JUDGED by none", {"critique": "never"}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_verdict_rests_on_the_strongest_evidence_there_is(case):
    model = ScriptedModel(case.replies)
    run = await refine(case.task, model=model, **(case.options or {}))
    assert " ".join(request.purpose for request in model.requests) == case.stages
    verdicts = [i.verdict for i in run.iterations if i.verdict]
    assert ", ".join(f"{v.outcome} by {v.basis}" for v in verdicts) == case.verdicts
    assert run.converged is verdicts[-1].passed


@pytest.mark.parametrize("critic", ["auto", "always", "never"])
async def test_no_reader_passes_a_text_that_fails_an_example(critic):
    texts = iter(map(code, WRONG))

    def answer(request: Any) -> str:
        return critique() if request.purpose == "critique" else next(texts)

    model = ScriptedModel([answer] * 20)
    run = await refine(INC, model=model, max_revisions=2, critique=critic)
    assert [i.text for i in run.iterations] == WRONG
    assert not any(i.verdict and i.verdict.passed for i in run.iterations)
    assert not run.converged


@pytest.mark.parametrize(
    ("decision", "stop", "label"),
    [
        (Override(iteration=0, outcome=Outcome.PASS, reason="Good enough."),
         StopReason.OVERRIDDEN, "⚠ PASS (yours)"),
        (Accept(iteration=0), StopReason.ACCEPTED, "✎ NEEDS IMPROVEMENT"),
    ],
    ids=["override", "accept"],
)  # fmt: skip
async def test_the_user_may_take_a_text_that_fails_an_example_and_then_it_says_so(
    decision, stop, label
):
    loop = api.build(INC, model=in_order([code(WRONG[0])]), limits=Limits(max_revisions=0))
    await finish(loop)
    assert loop.state.stop_reason is StopReason.REVISIONS
    loop.decide(decision)
    await finish(loop)
    assert (loop.state.stop_reason, loop.state.text) == (stop, WRONG[0])
    assert str(say.verdict(loop.state, loop.state.chosen).label) == label


async def test_a_suggestion_beside_a_pass_is_acted_on_when_the_user_continues():
    named = finding("It has no docstring.", criterion="clarity", severity="minor")
    replies = [code(RIGHT), critique(named), code(f'"""Add."""\n{RIGHT}'), READY]
    loop = api.build(INC, model=in_order(replies))
    await finish(loop)
    loop.decide(Continue())
    await finish(loop)
    first, second = loop.state.iterations
    assert [one.words for one in told(loop.state, 0) if one.point.by_model] == [
        "It has no docstring."
    ]
    assert [i.verdict and i.verdict.passed for i in (first, second)] == [True, True]
    assert loop.state.stop_reason is StopReason.PASSED
