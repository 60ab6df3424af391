"""How often the user agreed."""

from ipyrefine.core.decisions import Accept, Decision, Override
from ipyrefine.core.events import (
    BestChanged,
    Decided,
    DraftReady,
    Event,
    RunStarted,
    VerdictReached,
)
from ipyrefine.core.model import Outcome, Setup, Task, Verdict
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.session.history import agreement


def run_with(outcome: Outcome, *decisions: Decision) -> Run:
    setup = Setup(task=Task(text="Hi"), model="m", judge="j")
    events: list[Event] = [
        RunStarted(setup=setup),
        DraftReady(text="Hello"),
        VerdictReached(iteration=0, verdict=Verdict(outcome=outcome, score=None)),
        BestChanged(iteration=0),
    ]
    return replay([*events, *(Decided(decision=decision) for decision in decisions)])


ACCEPT = Accept(iteration=0)
PASS_IT = Override(iteration=0, outcome=Outcome.PASS)
NEEDS_WORK = Override(iteration=0, outcome=Outcome.NEEDS_IMPROVEMENT)


def test_without_a_decision_there_is_nothing_to_compare() -> None:
    assert agreement([]).startswith("Nothing to compare yet.")
    assert agreement([run_with(Outcome.PASS)]).startswith("Nothing to compare yet.")


def test_an_accepted_pass_is_agreement_and_an_override_is_none_either_way() -> None:
    runs = [
        run_with(Outcome.PASS, ACCEPT),
        run_with(Outcome.PASS, NEEDS_WORK),
        run_with(Outcome.NEEDS_IMPROVEMENT, PASS_IT),
        run_with(Outcome.NOT_JUDGED, PASS_IT),
    ]
    lines = agreement(runs).splitlines()
    assert lines[0].split() == ["verdict", "agreed", "with", "you"]
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "NEEDS IMPROVEMENT",
        "NOT JUDGED",
        "PASS",
    ]
    assert [line.split("  ")[-1].strip() for line in lines[1:]] == [
        "0 of 1 (0%)",
        "1 decided by you",
        "1 of 2 (50%)",
    ]
