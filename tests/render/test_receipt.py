"""The one line that a decided run comes to."""

import pytest

from ipyrefine.core.decisions import Accept
from ipyrefine.core.model import Outcome, Setup, StopReason, Task, Verdict
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Result
from ipyrefine.render import say

EXAMPLES = Result(name="examples", passed=True, basis="examples", tallies={"example": (3, 3)})
PASS = Verdict(outcome=Outcome.PASS, score=1.0, basis="examples")
FAILED = Verdict(
    outcome=Outcome.NEEDS_IMPROVEMENT, score=None, basis="critique",
    why="test_failed", point="test_empty", line="x",
)  # fmt: skip


def run_of(verdict: Verdict | None, **text: object) -> Run:
    iteration = Iteration(number=0, text="x = 1", verdict=verdict, **text)  # type: ignore[arg-type]
    return Run(
        setup=Setup(task=Task(text="Write it.", form="code"), model="m", judge="gpt"),
        iterations=(iteration,),
        best=None if verdict is None else 0,
        decisions=(Accept(iteration=0),),
        stop_reason=StopReason.ACCEPTED,
        message="You accepted the draft.",
    )


def line(run: Run) -> str:
    said = say.receipt(run)
    return str(said)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_of(PASS, evidence=(EXAMPLES,)), "✓ PASS · 3 of 3 examples hold · accepted"),
        (run_of(None, evidence=(EXAMPLES,)),
         "… RUNS · 3 of 3 examples hold, accepted before it had a verdict"),
        (run_of(FAILED),
         "✎ NEEDS IMPROVEMENT · `test_empty`: x · accepted"),
    ],
)  # fmt: skip
def test_it_says_what_the_text_rests_on(run, expected):
    assert line(run) == expected
