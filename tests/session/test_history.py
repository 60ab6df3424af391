"""How often the user agreed."""

import re
from argparse import ArgumentParser

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
from ipyrefine.core.model import Basis, Evidence, Limits, Outcome, Setup, Task, Verdict
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.journal.store import Journal, Summary
from ipyrefine.session import history
from ipyrefine.session.history import agreement


def run_with(outcome: Outcome, *decisions: Decision, basis: Basis = "none") -> Run:
    setup = Setup(task=Task(text="Hi"), model="m", judge="j", limits=Limits(critique="never"))
    verdict = Verdict(outcome=outcome, score=None, basis=basis)
    holds = outcome is Outcome.PASS
    shown = Evidence(name=basis, passed=holds, decisive=True, basis=basis)
    events: list[Event] = [
        RunStarted(setup=setup),
        DraftReady(text="Hello"),
        *([EvidenceReady(iteration=0, evidence=shown)] if basis != "none" else []),
        VerdictReached(iteration=0, verdict=verdict),
        BestChanged(iteration=0),
    ]
    return replay([*events, *(Decided(decision=decision) for decision in decisions)])


ACCEPT = Accept(iteration=0)
PASS_IT = Override(iteration=0, outcome=Outcome.PASS)
NEEDS_WORK = Override(iteration=0, outcome=Outcome.NEEDS_IMPROVEMENT)


def test_without_a_decision_there_is_nothing_to_compare():
    assert agreement([]).startswith("Nothing to compare yet.")
    assert agreement([run_with(Outcome.PASS)]).startswith("Nothing to compare yet.")


def test_verdicts_are_counted_by_basis_as_they_were_before_the_users_word():
    runs = [
        *[run_with(Outcome.PASS, ACCEPT, basis="examples")] * 3,
        run_with(Outcome.PASS, NEEDS_WORK, basis="examples"),
        run_with(Outcome.PASS, ACCEPT, basis="tests"),
        run_with(Outcome.NEEDS_IMPROVEMENT, PASS_IT, basis="examples"),
        run_with(Outcome.NEEDS_IMPROVEMENT, NEEDS_WORK, basis="examples"),
        run_with(Outcome.NOT_JUDGED, PASS_IT),
    ]
    assert [re.split(" {2,}", line.strip()) for line in agreement(runs).splitlines()] == [
        ["verdict", "you agreed (precision)", "of all that you took or sent back (recall)"],
        ["PASS · examples", "3 of 4, 75% (30% to 95%)", "3 of 6, 50% (19% to 81%)"],
        ["PASS · tests", "1 of 1, 100% (21% to 100%)", "1 of 6, 17% (3% to 56%)"],
        ["all that passed", "4 of 5, 80% (38% to 96%)", "4 of 6, 67% (30% to 90%)"],
        ["NEEDS IMPROVEMENT · examples", "1 of 2, 50% (9% to 91%)", "1 of 2, 50% (9% to 91%)"],
        ["NOT JUDGED", "you took 1 of 1"],
        ["Over 8 texts that you decided on; 95% Wilson intervals."],
    ]


def test_the_latest_word_on_a_text_counts():
    lines = agreement([run_with(Outcome.PASS, ACCEPT, NEEDS_WORK, basis="tests")]).splitlines()
    assert "0 of 1" in lines[1]


def test_a_text_that_was_accepted_before_it_was_read_is_not_counted():
    run = run_with(Outcome.PASS, ACCEPT, basis="tests")
    late = run.iterations[0].replace(read_late=True)
    assert agreement([run.replace(iterations=(late,))]).startswith("Nothing to compare yet.")


def test_a_list_of_runs_has_sixty_characters_of_each_task_at_eighty_columns(monkeypatch):
    task = "Write `median(xs)`, the middle of the sorted numbers, for even lengths the mean of both"
    one = Summary(12, "letter", 1e9, task, "NEEDS_IMPROVEMENT", "evaluator", "accepted", 14)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(Journal, "runs", lambda *_, **__: [one])
    parser = ArgumentParser()
    history.add_arguments(parser)
    listed = history.history(parser.parse_args([]))
    assert f"letter · {task[:60]}" in listed
    assert max(map(len, listed.splitlines())) <= 80
