"""The list of runs, and how often the user agreed."""

import pytest

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
from ipyrefine.core.table import Result
from ipyrefine.journal.store import Journal, Stored, Summary, UnreadableRun
from ipyrefine.session import history
from ipyrefine.session.history import agreement


def run_with(outcome: Outcome, *decisions: Decision, basis: Basis = "none") -> Run:
    setup = Setup(task=Task(text="Hi"), model="m", judge="j", limits=Limits(critique="never"))
    verdict = Verdict(outcome=outcome, score=None, basis=basis)
    holds = outcome is Outcome.PASS
    shown = Result(name=basis, passed=holds, decisive=True, basis=basis)
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


SHOWN = [
    *[run_with(Outcome.PASS, ACCEPT, basis="examples")] * 3,
    run_with(Outcome.PASS, NEEDS_WORK, basis="examples"),
    run_with(Outcome.NEEDS_IMPROVEMENT, PASS_IT, basis="examples"),
    run_with(Outcome.NEEDS_IMPROVEMENT, NEEDS_WORK, basis="examples"),
]
UNREAD = run_with(Outcome.PASS, ACCEPT)
UNREAD = UNREAD.replace(iterations=(UNREAD.iterations[0].replace(verdict=None),))


@pytest.mark.parametrize(("runs", "agreed"), [
    ([*SHOWN, run_with(Outcome.NOT_JUDGED, PASS_IT)], "4 of 6 verdicts"),  # as they were shown
    ([run_with(Outcome.PASS, ACCEPT, NEEDS_WORK, basis="tests")], "0 of 1 verdict"),  # the latest
    ([UNREAD], ""),  # accepted before it was read
    ([], ""),
    ([run_with(Outcome.PASS), run_with(Outcome.NOT_JUDGED, PASS_IT)], ""),
])  # fmt: skip
def test_verdicts_are_counted_that_the_user_ruled_on(runs, agreed):
    assert agreement(runs) == (agreed and f"You agreed with {agreed} that you ruled on.")


def test_the_list_says_how_often_the_user_agreed_with_what_it_lists(monkeypatch):
    shown = {
        "1": run_with(Outcome.PASS, ACCEPT, basis="tests"),
        "2": run_with(Outcome.PASS, NEEDS_WORK, basis="tests"),
    }

    def get(_: Journal, name: str) -> Stored:
        if name not in shown:
            raise UnreadableRun("Damaged.")
        return Stored(shown[name], {}, None)

    rows = [Summary(n, "x", 1e9, "Hi", "PASS", "tests", "accepted", 1) for n in (1, 2, 3)]
    monkeypatch.setattr(Journal, "runs", lambda *_, limit, **__: rows[:limit])
    monkeypatch.setattr(Journal, "get", get)
    for number, line in ((1, "1 of 1 verdict"), (20, "1 of 2 verdicts")):
        listed = history.history(number=number)
        assert f"You agreed with {line} that you ruled on." in listed.splitlines()
