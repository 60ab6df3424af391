"""`%refine` in words: every decision of the panel can be typed, and means the same."""

import shlex
from typing import Any

import pytest
from kit import judgement as judged
from kit import text
from shells import error_of, scripted_shell

from ipyrefine.core import decisions
from ipyrefine.core.actions import parse_decision, require_possible
from ipyrefine.core.decisions import (
    Accept,
    Add,
    Continue,
    Criteria,
    Decision,
    Dismiss,
    Drop,
    Edit,
    Expect,
    Guide,
    Override,
    Predict,
    Retract,
)
from ipyrefine.core.events import BestChanged, DraftReady, EvidenceReady, RunStarted, VerdictReached
from ipyrefine.core.model import Criterion, Outcome, Setup, StopReason, Task, Verdict
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Point, Result
from ipyrefine.core.typed import confirmations, parse_iteration
from ipyrefine.errors import Unreachable, UsageError
from ipyrefine.session.commands import question_in

CELL = "%%refine -p prose --set as=task --criteria tone --min-findings 0 -n 0\nWrite a greeting."
TONE = Criterion(name="tone", definition="Warm.")
FLAT = Point(id="f1", criterion="tone", blocking=False, words="Flat.", place="Hello", fix="Mend.")
COLD = FLAT.replace(words="Cold.", source="you")
NAMELESS = Point(criterion="yours", words="No name.", place="Hello", fix="Add one.", source="you")
NEEDS_WORK = Outcome.NEEDS_IMPROVEMENT
RUN = replay([
    RunStarted(setup=Setup(task=Task(text="Greet.", criteria=(TONE,)), model="m", judge="m")),
    DraftReady(text="Hello"),
    EvidenceReady(iteration=0, evidence=Result(
        name="results", passed=None, counts=False,
        rows=(Result(call="median([])", gives="0"), Result(call="median([1])", gives="1")),
    )),
    VerdictReached(
        iteration=0,
        verdict=Verdict(outcome=NEEDS_WORK, score=0.4),
        points=(FLAT,),
        results={"f1": Result(passed=False)},
    ),
    BestChanged(iteration=0),
])  # fmt: skip

STOPPED = RUN.replace(stop_reason=StopReason.REVISIONS)
COACHED = RUN.replace(setup=RUN.setup.replace(attempts=()))
LINEAGE = [(None, "model"), (None, "model"), (1, "model"), (2, "user"), (2, "model")]
FIVE = Run(
    setup=Setup(task=Task(text="Greet."), model="m"),
    iterations=tuple(
        Iteration(number=number, parent=parent, author=author, text=str(number))
        for number, (parent, author) in enumerate(LINEAGE)
    ),
)
FOUR = FIVE.replace(iterations=FIVE.iterations[:4])

# What is typed, and the decision that the panel's own control sends.
TYPED: dict[str, Decision] = {
    "accept": Accept(iteration=0),
    "override improve 2 typos left": Override(outcome=NEEDS_WORK, reason="2 typos left"),
    "override fail 0 much too cold": Override(
        iteration=0, outcome=Outcome.FAIL, reason="much too cold"
    ),
    "continue": Continue(),
    "continue 3 shorter": Continue(revisions=3, guidance="shorter"),
    "continue be brief": Guide(guidance="be brief"),
    "continue from here on": Guide(guidance="from here on"),
    "continue f9 is a name": Guide(guidance="f9 is a name"),
    "continue from draft": Continue(iteration=0),
    "continue from 0 2 warmer": Continue(iteration=0, revisions=2, guidance="warmer"),
    "continue f1, f2 briefly": Continue(points=("f1", "f2"), guidance="briefly"),
    "dismiss f1 as meant": Dismiss(points=("f1",), reason="as meant"),
    "dismiss length:<=3 words": Drop(demand="length:<=3 words"),
    "add 'No name.' Hello 'Add one.'": Add(point=NAMELESS),
    "add f1 Cold.": Add(point=COLD),
    "should 1 2": Expect(call="median([])", gives="2"),
    "should 1 raises ValueError": Expect(call="median([])", gives="raises ValueError"),
    "should 1 ?": Retract(call="median([])"),
    "should median([2]) == 2": Expect(call="median([2])", gives="2"),
    "edit criteria tone 0.6": Criteria(criteria=(TONE,), target=0.6),
}
OF_OTHER_RUNS: dict[str, tuple[Run, Decision]] = {
    "continue shorter": (STOPPED, Continue(guidance="shorter")),
    "should ValueError": (COACHED, Predict(gives="raises ValueError")),
    "override pass revision of mine": (
        FOUR, Override(outcome=Outcome.PASS, reason="revision of mine")
    ),
}  # fmt: skip


@pytest.mark.parametrize(("typed", "run", "decision"), [
    *((typed, RUN, decision) for typed, decision in TYPED.items()),
    *((typed, *expected) for typed, expected in OF_OTHER_RUNS.items()),
])  # fmt: skip
def test_what_is_typed_is_the_decision_of_the_panels_control(typed, run, decision):
    name, *args = shlex.split(typed)
    assert parse_decision(run, name, args) == decision


def test_every_kind_of_decision_is_typed_above_or_has_its_own_command():
    schema = decisions.DECISION.json_schema()["discriminator"]["mapping"]
    typed = {*map(type, TYPED.values()), Edit, Predict}
    assert {one.model_fields["kind"].default for one in typed} == set(schema)


@pytest.mark.parametrize(("typed", "sentence"), [
    ("override maybe", "Say which"),
    ("continue from 7", "There is no text 7"),
    ("continue f8 f9", "There is no finding 'f8'"),
    ("dismiss f9", "There is no finding 'f9'"),
    ("dismiss nonsense", "There is no demand 'nonsense'"),
    ("add", "Put the finding in quotes"),
    ("edit criteria tone 1.5", "from 0 to 1"),
    ("should", 'Use %refine should 2 "VALUE"'),
    ("should 3 0", "There is no result 3: this run has results 1 to 2"),
    ("should 1 banana", "A result is a value as Python"),
    ("should median([])", "Use %refine should"),
])  # fmt: skip
def test_words_that_mean_nothing_here_are_refused(typed, sentence):
    name, *args = shlex.split(typed)
    with pytest.raises(UsageError, match=sentence):
        require_possible(RUN, parse_decision(RUN, name, args))


def test_results_are_confirmed_by_their_numbers():
    first, second = Expect(call="median([])", gives="0"), Expect(call="median([1])", gives="1")
    assert confirmations(RUN, ["1", "2"]) == [first, second]
    for words in ([], ["3"], ["x"]):
        with pytest.raises(UsageError, match=r"Say which results|There is no result"):
            confirmations(RUN, words)


@pytest.mark.parametrize(("words", "number"), [
    ("0", 0), ("draft", 0), ("draft 2", 1), ("Draft-2 rest", 1), ("1", 2), ("revision 1", 2),
    ("your edit", 3), ("edit", 3),
])  # fmt: skip
def test_an_iteration_is_found_by_the_name_that_is_shown(words, number):
    assert parse_iteration(FOUR, words.split()) == number


def test_a_number_in_two_names_is_asked_about():
    with pytest.raises(UsageError, match="say which of draft-2, revision-2"):
        parse_iteration(FIVE, ["2"])


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    replies = [part for n in range(9) for part in (text(f"Version {n}"), judged(4))]
    return scripted_shell(monkeypatch, replies)


def run(shell: Any, cell: str) -> None:
    if error := error_of(shell, cell):
        raise error


def test_a_branch_a_diff_and_the_users_own_text_by_command(shell, capsys):
    run(shell, CELL)
    run(shell, "%refine continue")
    run(shell, "%refine continue from 0")
    shell.user_ns["mine"] = "Good morning"
    run(shell, "%refine edit mine")
    refined = shell.user_ns["refined_run"]
    assert [i.parent for i in refined.iterations] == [None, 0, 0, 2]
    assert refined.iterations[3].author == "user"
    capsys.readouterr()
    run(shell, "%refine diff 0 edit")
    assert "{+Good morning+}" in capsys.readouterr().out
    run(shell, "%refine show")
    assert "Your edit" in capsys.readouterr().out


INSTEAD = {
    "apply": "Type %refine accept insert.",
    "select": "Type %refine continue f1.",
    "guide": 'Type %refine continue "guidance".',
    "branch": "Type %refine continue from 0.",
    "output": "Type %refine show output.",
    "confirm": "Type %refine right 1.",
    "expect": 'Type %refine should 1 "VALUE".',
    "predict": "Type %refine should VALUE.",
    "drop": "Type %refine dismiss CHECK.",
    "criteria": "Type %refine edit criteria.",
    "kind": "Type %refine continue as prose.",
    "pass": "Type %refine override pass.",
    "confrm": "Did you mean %refine right 1?",
    "acept": "Did you mean %refine accept?",
    "zzz": "There is no command 'zzz'. %refine lists them.",
}
REFUSED = {
    "contine": "There is no command 'contine'. Did you mean %refine continue?",
    "edit mien": "No variable named 'mien'. Did you mean mine?",
    "edit number": "'number' is a variable of type int, not a text.",
    "show 3": "There is no text 3.",
    "accept and run": "There is no text 'and'. This run has draft",
    "accept 0 replce": "%refine accept takes no 'replce'.",
    "diff 0 0 0": "%refine diff takes no '0'.",
    f"right {'9' * 5_000}": "There is no result 9999",
    "edit": "Put it into a variable and use %refine edit NAME.",
    "show setings": "There is no 'setings' to show. Did you mean settings?",
    "resume nobody": "no run 'nobody'",
    "resume -n 3": "--max-revisions was settled",
    "resume none.ipynb": "cannot be read",
    "export": "Name a file",
}


def test_what_is_no_command_or_cannot_be_carried_out_says_what_to_type_or_why(shell):
    shell.user_ns.update(mine="Good morning", number=3)
    run(shell, CELL)
    said = {f"{word} 1": sentence for word, sentence in INSTEAD.items()} | REFUSED
    errors = {words: error_of(shell, f"%refine {words}") for words in said}
    assert {type(error) for error in errors.values()} == {UsageError}
    assert [words for words in said if said[words] not in str(errors[words])] == []


@pytest.mark.parametrize("words", ["accept", "accept 3", "override pass 3", "diff", "show 0"])
def test_a_run_without_a_text_says_how_to_write_one(monkeypatch, words):
    shell = scripted_shell(monkeypatch, [Unreachable("Gone.")])
    error_of(shell, "%%refine --plain\nGreet.")
    assert "There is no text yet." in str(error_of(shell, f"%refine {words}"))


def test_without_a_command_the_commands_to_decide_with_are_printed(shell, capsys):
    run(shell, "%refine")
    help_text = capsys.readouterr().out
    assert "  accept [k]" in help_text
    lines = help_text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_one_part_of_a_run_is_shown_by_its_name(shell, capsys):
    run(shell, CELL)
    capsys.readouterr()
    run(shell, "%refine show settings")
    printed = capsys.readouterr().out
    assert "Write a greeting." in printed
    assert "Version 0" not in printed
    run(shell, "%refine show output")
    assert capsys.readouterr().out == "This run has no output to show.\n"
    run(shell, "%refine show 0")
    assert capsys.readouterr().out == "Version 0\n"


@pytest.mark.parametrize(("decision", "question"), [
    (Continue(guidance="Why a set?"), ("Why a set?", 0)),
    (Guide(guidance="为什么？"), ("为什么？", 0)),  # noqa: RUF001
    (Continue(iteration=1, guidance="Use a list. Why not?\n"), ("Use a list. Why not?\n", 1)),
    (Continue(guidance="Why? Use a list."), None),
    (Continue(), None),
    (Dismiss(points=("f1",), reason="Why?"), None),
    (Override(outcome=NEEDS_WORK, reason="Why?"), None),
])  # fmt: skip
def test_guidance_that_ends_with_a_question_mark_asks(decision, question):
    stopped = RUN.replace(stop_reason=StopReason.CANCELLED)
    assert question_in(stopped, decision) == question
    assert question_in(RUN, decision) is None, "a run under way is not stopped to be asked"
    empty = stopped.replace(iterations=(), best=None)
    assert getattr(decision, "iteration", None) is not None or question_in(empty, decision) is None
