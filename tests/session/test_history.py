"""How often judge and user agreed."""

from ipyrefine.core.decisions import Accept, Decision, Override
from ipyrefine.core.events import (
    BestChanged,
    Decided,
    DraftReady,
    Event,
    EvidenceReady,
    RunStarted,
    VerdictReached,
)
from ipyrefine.core.model import CriterionScore, Evidence, Limits, Outcome, Setup, Task, Verdict
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.session.history import Ruling, agreement, rulings


def run_with(outcome: Outcome, clarity: float, *decisions: Decision) -> Run:
    criteria = (CriterionScore(name="clarity", score=clarity),)
    verdict = Verdict(
        outcome=outcome, score=clarity, basis="judge", criteria=criteria, opinion=clarity
    )
    return with_verdict(verdict, *decisions)


def with_verdict(verdict: Verdict, *decisions: Decision, evidence: Evidence | None = None) -> Run:
    setup = Setup(task=Task(text="Hi"), limits=Limits(target=0.8), model="m", judge="j")
    events: list[Event] = [
        RunStarted(setup=setup),
        DraftReady(text="Hello"),
        *([EvidenceReady(iteration=0, evidence=evidence)] if evidence else []),
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
        Ruling("j", "judge", "the verdict", True),
        Ruling("j", "judge", "clarity", True),
    ]


def test_an_override_of_a_text_that_was_not_judged_is_neither() -> None:
    assert next(rulings(run_with(Outcome.NOT_JUDGED, 0.5, PASS_IT))).agreed is None


def test_an_override_is_disagreement_with_the_verdict_either_way() -> None:
    assert not next(rulings(run_with(Outcome.NEEDS_IMPROVEMENT, 0.9, PASS_IT))).agreed
    assert not next(rulings(run_with(Outcome.PASS, 0.9, NEEDS_WORK))).agreed


def test_a_run_without_a_decision_says_nothing() -> None:
    assert list(rulings(run_with(Outcome.PASS, 0.9))) == []
    assert agreement([]).startswith("Nothing to compare yet.")


def test_the_table_counts_per_judge_and_criterion() -> None:
    runs = [run_with(Outcome.PASS, 0.9, ACCEPT), run_with(Outcome.PASS, 0.9, NEEDS_WORK)]
    lines = agreement(runs).splitlines()
    assert lines[0].split() == ["verdict", "from", "about", "agreed", "with", "you"]
    assert [line.split() for line in lines[1:]] == [
        ["j", "clarity", "1", "of", "2", "(50%)"],
        ["j", "opinion", "1", "of", "2", "(50%)"],
    ]


def test_an_overridden_verdict_of_the_checks_still_counts_for_them() -> None:
    evidence = Evidence(name="examples", passed=True, decisive=True, basis="examples")
    verdict = Verdict(outcome=Outcome.PASS, score=1.0, basis="examples")
    run = with_verdict(verdict, NEEDS_WORK, evidence=evidence)
    assert run.verdict
    assert run.verdict.basis == "user"
    assert list(rulings(run)) == [Ruling("checks", "examples", "the verdict", False)]
