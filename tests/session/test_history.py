"""How often judge and user agreed."""

from ipyrefine.core.decisions import Accept, Decision, Override
from ipyrefine.core.events import (
    BestChanged,
    Decided,
    DraftReady,
    Event,
    RunStarted,
    VerdictReached,
)
from ipyrefine.core.model import CriterionScore, Limits, Outcome, Setup, Task, Verdict
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.session.history import Ruling, agreement, rulings


def run_with(outcome: Outcome, clarity: float, *decisions: Decision) -> Run:
    criteria = (CriterionScore(name="clarity", score=clarity),)
    verdict = Verdict(outcome=outcome, score=clarity, criteria=criteria)
    setup = Setup(task=Task(text="Hi"), limits=Limits(target=0.8), model="m", judge="j")
    events: list[Event] = [
        RunStarted(setup=setup),
        DraftReady(text="Hello"),
        VerdictReached(iteration=0, verdict=verdict),
        BestChanged(iteration=0),
    ]
    return replay([*events, *(Decided(decision=decision) for decision in decisions)])


ACCEPT = Accept(iteration=0)
PASS_IT = Override(iteration=0, outcome=Outcome.PASS)
NEEDS_WORK = Override(iteration=0, outcome=Outcome.NEEDS_IMPROVEMENT)


def test_an_accepted_pass_is_agreement() -> None:
    run = run_with(Outcome.PASS, 0.9, ACCEPT)
    assert list(rulings(run)) == [
        Ruling("j", "the verdict", True),
        Ruling("j", "clarity", True),
    ]


def test_an_accepted_text_that_did_not_pass_is_not() -> None:
    run = run_with(Outcome.NEEDS_IMPROVEMENT, 0.5, ACCEPT)
    assert [one.agreed for one in rulings(run)] == [False, False]


def test_an_override_is_disagreement_with_the_verdict_either_way() -> None:
    assert not next(rulings(run_with(Outcome.NEEDS_IMPROVEMENT, 0.9, PASS_IT))).agreed
    assert not next(rulings(run_with(Outcome.PASS, 0.9, NEEDS_WORK))).agreed


def test_the_last_word_on_a_text_counts() -> None:
    run = run_with(Outcome.PASS, 0.9, NEEDS_WORK, ACCEPT)
    assert len(list(rulings(run))) == 2


def test_a_run_without_a_decision_says_nothing() -> None:
    assert list(rulings(run_with(Outcome.PASS, 0.9))) == []
    assert "No verdict" in agreement([])


def test_the_table_counts_per_judge_and_criterion() -> None:
    runs = [run_with(Outcome.PASS, 0.9, ACCEPT), run_with(Outcome.PASS, 0.9, NEEDS_WORK)]
    lines = agreement(runs).splitlines()
    assert lines[0].split() == ["judge", "about", "agreed", "with", "you"]
    assert "1 of 2 (50%)" in lines[1]
    assert "1 of 2 (50%)" in lines[2]
