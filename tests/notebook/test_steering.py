"""`%refine` in words: every decision of the panel can be typed, and means the same."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from refining import judged, text
from shells import scripted_shell

from ipyrefine.core.events import BestChanged, DraftReady, RunStarted, VerdictReached
from ipyrefine.core.fold import fold
from ipyrefine.core.records import Criterion, Finding, Outcome, Severity, Task, Verdict
from ipyrefine.core.runs import Decision, Limits
from ipyrefine.errors import UsageError
from ipyrefine.session.commands import COMMANDS
from ipyrefine.session.deciding import DECISIONS, decision, own_finding

CELL = "%%refine -p prose --task --criteria tone --min-findings 0 -n 0\nWrite a greeting."
FLAT = Finding(
    id="f1", criterion="tone", severity=Severity.MINOR, problem="Flat.", quote="Hello", fix="Mend."
)
NEEDS = Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=0.4)
RUN = fold([
    RunStarted(
        task=Task(text="Greet.", criteria=(Criterion(name="tone", definition="Warm."),)),
        limits=Limits(), model="m", judge="m",
    ),
    DraftReady(text="Hello"),
    VerdictReached(iteration=0, verdict=NEEDS, findings=(FLAT,)),
    BestChanged(iteration=0),
])  # fmt: skip
CHANGED = own_finding("Cold.", id="f1", criterion="tone", quote="Hello", fix="Mend.",
                      severity=Severity.MINOR)  # fmt: skip
ADDED = own_finding("No name.", quote="Hello", fix="Add one.")
NOT_YET = Outcome.NEEDS_IMPROVEMENT

# What is typed, and the decision that the panel's own control sends.
TYPED: list[tuple[list[str], Decision]] = [
    (["accept"], Decision(kind="accept", iteration=0)),
    (["accept", "0"], Decision(kind="accept", iteration=0)),
    (["override", "pass", "good", "enough"],
     Decision(kind="override", outcome=Outcome.PASS, text="good enough")),
    (["override", "fail", "0", "too cold"],
     Decision(kind="override", iteration=0, outcome=NOT_YET, text="too cold")),
    (["continue"], Decision(kind="continue", rounds=1)),
    (["continue", "3", "shorter"], Decision(kind="continue", rounds=3, text="shorter")),
    (["branch", "0", "2", "warmer"],
     Decision(kind="branch", iteration=0, rounds=2, text="warmer")),
    (["select", "f1,", "f2", "briefly"],
     Decision(kind="select", findings=("f1", "f2"), text="briefly")),
    (["dismiss", "f1", "as", "meant"],
     Decision(kind="dismiss", findings=("f1",), text="as meant")),
    (["add", "No name.", "Hello", "Add one."], Decision(kind="add", finding=ADDED)),
    (["add", "f1", "Cold."], Decision(kind="add", finding=CHANGED)),
    (["guide", "be", "brief"], Decision(kind="guide", text="be brief")),
    (["rubric", "tone", "0.6"],
     Decision(kind="rubric", criteria=RUN.task.criteria if RUN.task else (), target=0.6)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "meant"), TYPED, ids=[" ".join(words) for words, _ in TYPED])
def test_what_is_typed_is_the_decision_of_the_panels_control(
    words: list[str], meant: Decision
) -> None:
    name, *rest = words
    assert decision(RUN, name, rest) == meant


def test_every_kind_of_decision_is_typed_above_or_has_its_own_command() -> None:
    assert {words[0] for words, _ in TYPED} == set(DECISIONS)
    kinds = set(Decision.model_fields["kind"].annotation.__args__)  # type: ignore[union-attr]
    assert kinds <= {*DECISIONS, "edit"} <= set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["override", "maybe"], "Say which"),
        (["branch", "7"], "There is no iteration '7'"),
        (["add"], "Put the finding in quotes"),
        (["add", "f9", "Cold."], "There is no finding 'f9'"),
        (["rubric", "tone", "1.5"], "from 0 to 1"),
    ],
)
def test_words_that_mean_nothing_here_are_told(words: list[str], sentence: str) -> None:
    name, *rest = words
    with pytest.raises(UsageError, match=sentence):
        decision(RUN, name, rest)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    replies = [part for n in range(9) for part in (text(f"Version {n}"), judged(4))]
    with scripted_shell(monkeypatch, replies) as shell:
        yield shell


def run(shell: Any, cell: str) -> None:
    async def go() -> Any:
        return await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))

    asyncio.run(go()).raise_error()


def test_a_branch_a_diff_and_the_users_own_text_by_command(shell: Any, capsys: Any) -> None:
    run(shell, CELL)
    run(shell, "%refine continue")
    run(shell, "%refine branch 0")
    shell.user_ns["mine"] = "Good morning"
    run(shell, "%refine edit mine")
    made = shell.user_ns["refined_run"]
    assert [i.parent for i in made.iterations] == [None, 0, 0, 0]
    assert made.iterations[3].author == "user"
    capsys.readouterr()
    run(shell, "%refine diff 0 3")
    assert "{+Good morning+}" in capsys.readouterr().out
    run(shell, "%refine show")
    assert "└─ Iteration 3 (your text)" in capsys.readouterr().out


def test_the_last_word_of_accept_says_where_the_text_goes(shell: Any, capsys: Any) -> None:
    run(shell, CELL)
    run(shell, "%refine accept none")
    assert getattr(shell, "rl_next_input", None) is None
    run(shell, "%refine apply insert")
    assert shell.rl_next_input == "Version 0"


def test_stop_ends_a_pause_and_close_the_run(shell: Any) -> None:
    run(shell, CELL.replace("-n 0", "-n 2 --step"))
    assert shell.user_ns["refined_run"].stop_reason == "paused"
    run(shell, "%refine stop")
    assert shell.user_ns["refined_run"].stop_reason == "cancelled"
    assert shell.user_ns["refined"] == "Version 0"
    run(shell, "%refine close")
    assert shell.user_ns["refined_run"].stop_reason == "cancelled"
