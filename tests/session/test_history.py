"""The list of runs, and how often the user agreed."""

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
from ipyrefine.core.model import Basis, Limits, Outcome, Setup, Task, Verdict
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.core.table import Evidence
from ipyrefine.journal.store import Journal, Stored, Summary, UnreadableRun
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


def test_without_a_ruling_on_a_verdict_nothing_is_said():
    assert agreement([]) == ""
    assert agreement([run_with(Outcome.PASS), run_with(Outcome.NOT_JUDGED, PASS_IT)]) == ""


def test_verdicts_are_counted_as_they_were_before_the_users_word():
    runs = [
        *[run_with(Outcome.PASS, ACCEPT, basis="examples")] * 3,
        run_with(Outcome.PASS, NEEDS_WORK, basis="examples"),
        run_with(Outcome.NEEDS_IMPROVEMENT, PASS_IT, basis="examples"),
        run_with(Outcome.NEEDS_IMPROVEMENT, NEEDS_WORK, basis="examples"),
        run_with(Outcome.NOT_JUDGED, PASS_IT),
    ]
    assert agreement(runs) == "You agreed with 4 of 6 verdicts that you ruled on."


def test_the_latest_word_on_a_text_counts():
    line = agreement([run_with(Outcome.PASS, ACCEPT, NEEDS_WORK, basis="tests")])
    assert line == "You agreed with 0 of 1 verdict that you ruled on."


def test_a_text_that_was_accepted_before_it_was_read_is_not_counted():
    run = run_with(Outcome.PASS, ACCEPT, basis="tests")
    late = run.iterations[0].replace(read_late=True)
    assert agreement([run.replace(iterations=(late,))]) == ""


def test_the_list_says_how_often_the_user_agreed_with_what_it_lists(monkeypatch):
    shown = {
        "1": run_with(Outcome.PASS, ACCEPT, basis="tests"),
        "2": run_with(Outcome.PASS, NEEDS_WORK, basis="tests"),
    }

    def get(_: Journal, name: str) -> Stored:
        if name not in shown:
            raise UnreadableRun("Damaged.")
        return Stored(int(name), "x", shown[name], {}, 0, True)

    rows = [Summary(n, "x", 1e9, "Hi", "PASS", "tests", "accepted", 1) for n in (1, 2, 3)]
    monkeypatch.setattr(Journal, "runs", lambda *_, limit, **__: rows[:limit])
    monkeypatch.setattr(Journal, "get", get)
    for number, line in ((1, "1 of 1 verdict"), (20, "1 of 2 verdicts")):
        listed = history.history(number=number)
        assert f"You agreed with {line} that you ruled on." in listed.splitlines()


def test_a_list_of_runs_has_sixty_characters_of_each_task_at_eighty_columns(monkeypatch):
    task = "Write `median(xs)`, the middle of the sorted numbers, for even lengths the mean of both"
    one = Summary(12, "letter", 1e9, task, "NEEDS_IMPROVEMENT", "evaluator", "accepted", 14)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(Journal, "runs", lambda *_, **__: [one])
    listed = history.history()
    assert f"letter · {task[:60]}" in listed
    assert max(map(len, listed.splitlines())) <= 80
