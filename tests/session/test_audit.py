"""Audits: what a notebook carries is recomputed, and a verdict that somebody changed is named."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden
import nbformat
import pytest
from kit import CODE, code, finish, finished, refinement, text

from ipyrefine import cli
from ipyrefine.checks import resolve
from ipyrefine.core.decisions import Override
from ipyrefine.core.model import Limits, Outcome, Task
from ipyrefine.core.run import Run
from ipyrefine.session.audit import Result, audit, code_to_run, summarize
from ipyrefine.session.record import OMITTED, Recorded, as_json, bundle, load, shorten

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.json"))
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
ADD = CODE.model_copy(update={"text": "Write add(a, b).\n\n>>> add(1, 2)\n3\n>>> add(2, 2)\n4"})
PROSE = Task(text="Write a greeting in at most 5 words.")


def audited(run: Run, **options: Any) -> tuple[Result, str]:
    came = asyncio.run(audit(Recorded(run, True), **options))
    return came.result, came.reason


async def checked(task: Task, *texts: str, checks: tuple[str, ...] = ("examples",)) -> Run:
    """A run whose texts get their verdicts from built-in checks."""
    replies = [(code if task.form == "code" else text)(one) for one in texts]
    limits = Limits(max_revisions=len(texts) - 1, critique="never", opinion="never", patience=9)
    loop = refinement(replies, task, checks=resolve(checks, {}), limits=limits)
    await finish(loop)
    return loop.state


@pytest.fixture(scope="module")
def passed() -> Run:
    return asyncio.run(checked(ADD, WRONG, RIGHT))


def changed(run: Run, number: int = -1, /, **fields: Any) -> Run:
    """A run with other fields in one of its verdicts, as a file could have them."""
    record = as_json(run)
    record["iterations"][number]["verdict"] |= fields
    del record["version"]
    return Run.model_validate(record)


def of_iteration(run: Run, number: int = -1, /, **fields: Any) -> Run:
    record = as_json(run)
    record["iterations"][number] |= fields
    del record["version"]
    return Run.model_validate(record)


def of_evidence(run: Run, number: int = -1, /, **fields: Any) -> Run:
    evidence = [one.model_dump(mode="json") for one in run.iterations[number].evidence]
    return of_iteration(run, number, evidence=[evidence[0] | fields, *evidence[1:]])


def test_a_verdict_on_evidence_holds(passed: Run) -> None:
    assert passed.verdict is not None
    assert (passed.verdict.outcome, passed.verdict.basis) == (Outcome.PASS, "examples")
    assert audited(passed) == (Result.HOLDS, "")


def test_outputs_that_differ_change_no_verdict() -> None:
    run = asyncio.run(checked(CODE, "print(id(object()))\n3", checks=("run decisive",)))
    assert [one.kind for one in run.iterations[0].evidence[0].outputs] == ["printed", "value"]
    assert audited(run) == (Result.HOLDS, "")
    for outputs in ((), [{"kind": "printed", "text": "PASS"}]):
        assert audited(of_evidence(run, 0, outputs=outputs)) == (Result.HOLDS, "")


def test_what_constraints_leave_open_holds_as_not_judged() -> None:
    run = asyncio.run(checked(PROSE, "Hello.", checks=("length:<=5 words",)))
    assert audited(run) == (Result.HOLDS, "")


def test_agreement_of_drafts_is_computed_again() -> None:
    task = ADD.model_copy(
        update={"text": "Write `def add(a: int, b: int) -> int`.\n>>> add(1, 2)\n3"}
    )
    limits = Limits(candidates=3, max_revisions=0, critique="never", opinion="never")
    replies = [code(RIGHT), code(RIGHT + "# 2"), code(RIGHT + "# 3")]
    loop = refinement(replies, task, checks=resolve(["agreement"], {}), limits=limits)
    asyncio.run(finish(loop))
    assert loop.state.verdict is not None
    assert loop.state.verdict.basis == "agreement"
    assert audited(loop.state) == (Result.HOLDS, "")
    other = of_iteration(loop.state, 0, text=RIGHT.replace("a + b", "a * b + 1"))
    assert audited(other)[0] is Result.DIFFERS


def test_an_opinion_is_not_called_more_than_that() -> None:
    assert audited(asyncio.run(finished(scores=(9,)))) == (Result.OPINION, "")


TAMPERED: dict[str, Callable[[Run], Run]] = {
    "a PASS for a text that failed": lambda run: changed(run, 0, outcome="PASS"),
    "a whole PASS": lambda run: changed(
        run, 0, outcome="PASS", score=1.0, required_passed=True, reason="examples passed."
    ),
    "evidence too": lambda run: changed(
        of_evidence(run, 0, passed=True, score=1.0),
        0, outcome="PASS", score=1.0, required_passed=True,
    ),
    "the text": lambda run: of_iteration(run, text=WRONG.replace("-", "*")),
    "the text of both": lambda run: of_iteration(run, 0, text=RIGHT),
    "the score": lambda run: changed(run, score=0.5),
    "the basis": lambda run: changed(run, basis="schema"),
    "a PASS of nobody's": lambda run: changed(run, 0, basis="user", outcome="PASS"),
    "a FAIL": lambda run: changed(run, outcome="FAIL"),
    "no judgement": lambda run: changed(run, 0, outcome="NOT_JUDGED", basis="none", score=None),
    "evidence that went": lambda run: of_iteration(run, evidence=[]),
    "evidence that is not required": lambda run: of_evidence(run, 0, required=False),
    "another best": lambda run: run.model_copy(update={"best": 0}),
    "a stop": lambda run: run.model_copy(update={"iterations": run.iterations[:1], "best": 0}),
}  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_a_change_by_hand_is_named(passed: Run, tamper: Callable[[Run], Run]) -> None:
    result, reason = audited(tamper(passed))
    assert result is Result.DIFFERS
    assert reason


def test_a_changed_text_is_named_with_what_its_check_finds(passed: Run) -> None:
    _, reason = audited(of_iteration(passed, text=WRONG.replace("-", "*")))
    assert reason.startswith("iteration 1: examples fails now, recorded is that it passes. add(1,")


def test_a_user_s_verdict_needs_the_user_s_decision(passed: Run) -> None:
    decision = Override(iteration=0, outcome=Outcome.PASS)
    loop = refinement([], ADD, run=passed)
    loop.decide(decision)
    asyncio.run(loop.run())
    assert audited(loop.state)[0] is Result.UNKNOWN
    forged = loop.state.model_copy(update={"decisions": ()})
    assert audited(forged) == (
        Result.DIFFERS,
        "it says that you passed it, but no decision of yours is recorded",
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda run: run.model_copy(update={"iterations": ()}), "it has no verdict"),
        (lambda run: run.model_copy(update={"stale": (0, 1)}), "the rubric changed after it"),
    ],
)
def test_what_cannot_be_recomputed_says_why(
    passed: Run, change: Callable[[Run], Run], reason: str
) -> None:
    run = change(passed).model_copy(update={"stop_reason": None, "best": None})
    assert audited(run) == (Result.UNKNOWN, reason)


def test_a_function_of_the_notebook_cannot_be_called_again() -> None:
    async def made() -> Run:
        def polite(text: str) -> bool:
            return True

        loop = refinement([text("Hello.")], PROSE, checks=resolve([polite], {}))
        await finish(loop)
        return loop.state

    run = asyncio.run(made())
    assert code_to_run([run]) == 0
    assert audited(run) == (Result.UNKNOWN, "the check polite is not in the record")
    assert audited(changed(run, outcome="FAIL"))[0] is Result.DIFFERS


def test_code_with_variables_of_the_notebook_cannot_be_run_again(passed: Run) -> None:
    record = as_json(passed)
    record["setup"]["task"]["text"] += (
        "\n\nThese variables exist already; the code may use them by name:\ndf (DataFrame)"
    )
    del record["version"]
    result, reason = audited(Run.model_validate(record))
    assert (result, reason) == (
        Result.UNKNOWN,
        "its code uses variables that are not in the record",
    )


def test_a_module_that_is_missing_here_is_no_difference(passed: Run) -> None:
    result, reason = audited(of_iteration(passed, text=f"import no_such_module\n{RIGHT}"))
    assert (result, reason) == (
        Result.UNKNOWN,
        "its code needs a module that is not installed here",
    )


def test_a_shortened_record_holds_as_far_as_it_goes(passed: Run) -> None:
    short = of_iteration(passed, 0, text=OMITTED, evidence=[], findings=[])
    assert audited(short)[0] is Result.HOLDS
    cut = Recorded(shorten(passed, 100)[0], False)
    assert asyncio.run(audit(cut)).reason == "its texts were cut to fit the notebook"


def test_without_leave_nothing_is_run(passed: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipyrefine.checks.sandbox.subprocess", None, raising=False)
    assert code_to_run([passed]) == 2
    assert audited(passed, run_checks=False) == (Result.UNKNOWN, "its checks were not run again")
    assert audited(changed(passed, 0, outcome="PASS"), run_checks=False)[0] is Result.DIFFERS


# What the project's own loop and files come to


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_verdict_of_the_loop_follows_from_its_record(path: Path) -> None:
    """The checks of these runs are stand-ins, so that only what follows from them is recomputed."""
    run = asyncio.run(golden.play(golden.read(path))).run
    assert audited(run, run_checks=False)[0] is not Result.DIFFERS
    for iteration in run.iterations:
        verdict = iteration.verdict
        if verdict and verdict.outcome is Outcome.NEEDS_IMPROVEMENT and not iteration.override:
            forged = changed(run, iteration.number, outcome="PASS")
            assert audited(forged, run_checks=False)[0] is Result.DIFFERS


# The command


def notebook(path: Path, *runs: Run) -> Path:
    v4: Any = nbformat.v4
    cells = [
        v4.new_code_cell("%%refine\nx", outputs=[v4.new_output("display_data", data=bundle(run))])
        for run in runs
    ]
    nbformat.write(v4.new_notebook(cells=cells), path)
    return path


Command = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    def run(*words: object) -> tuple[int, list[str], str]:
        status = cli.main(["audit", *map(str, words)])
        ended = capsys.readouterr()
        return status, ended.out.splitlines(), ended.err

    return run


def test_the_command_says_what_holds_and_what_differs(
    command: Command, passed: Run, tmp_path: Path
) -> None:
    good = notebook(tmp_path / "good.ipynb", passed)
    assert command(good, "--yes") == (
        0,
        ["0: ✓ PASS · 2 examples 1.00: holds", "1 run: 1 holds."],
        "",
    )
    opinion = asyncio.run(finished(scores=(9,)))
    mixed = notebook(tmp_path / "mixed.ipynb", passed, opinion)
    status, out, _ = command(mixed, "--yes")
    assert status == 3
    assert out[1:] == [
        "1: ○ PASS · judge's opinion, 0.90: opinion, not asked again",
        "2 runs: 1 holds, 1 opinion.",
    ]
    bad = notebook(tmp_path / "bad.ipynb", changed(passed, 0, outcome="PASS"), opinion)
    status, out, _ = command(bad, good, "--yes")
    assert status == 1
    assert out[0] == f"{bad}:"
    assert (
        "differs (iteration 0: its record comes to NEEDS IMPROVEMENT (basis: examples))" in out[1]
    )
    assert out[-1] == "3 runs: 1 holds, 1 opinion, 1 differs."


def test_code_is_run_only_with_leave(
    command: Command, passed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = notebook(tmp_path / "x.ipynb", passed)
    status, out, error = command(path)
    assert (status, out) == (2, [])
    assert "--yes" in error
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda prompt: asked.append(prompt) or "n")
    status, out, _ = command(path)
    assert asked == ["Run the checks of 2 texts in the sandbox? [y/N] "]
    assert (status, out[0]) == (
        3,
        "0: ✓ PASS · 2 examples 1.00: cannot be recomputed (its checks were not run again)",
    )


def test_a_notebook_without_code_to_run_is_audited_without_asking(
    command: Command, tmp_path: Path
) -> None:
    path = notebook(tmp_path / "x.ipynb", asyncio.run(finished(scores=(9,))))
    assert command(path)[0] == 3
    assert command(notebook(tmp_path / "none.ipynb"))[:2] == (
        0,
        [f"{tmp_path / 'none.ipynb'} holds no record of a run."],
    )


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"version": 3}'])
def test_a_file_that_cannot_be_read_ends_with_2(
    command: Command, tmp_path: Path, content: str
) -> None:
    (tmp_path / "x.ipynb").write_text(content)
    status, out, error = command(tmp_path / "x.ipynb")
    assert (status, out) == (2, [])
    assert error.count("\n") == 1


def test_a_line_says_it_in_one_line_without_escapes(
    command: Command, passed: Run, tmp_path: Path
) -> None:
    hostile = of_evidence(passed, 1, name="x\x1b[2J\n\u202e", detail="\x1b]0;title\x07")
    path = notebook(tmp_path / "x.ipynb", hostile)
    _, out, _ = command(path, "--yes")
    assert len(out) == 2
    assert all(line.isprintable() for line in out)


def test_rules_are_stored_and_the_oldest_is_named(passed: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    record = as_json(passed)
    assert record["rules"] == 3
    del record["rules"]  # written before records had it
    path.write_text(json.dumps(record))
    assert load(path) == [passed]


def test_the_summary_counts_each_kind(passed: Run) -> None:
    came = [asyncio.run(audit(Recorded(passed, True)))] * 2
    assert summarize(came) == "2 runs: 2 hold."
