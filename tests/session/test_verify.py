"""The suites of a notebook's records are run again, without a model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kit import READY
from shells import Front

from ipyrefine.core.decisions import Accept, Override
from ipyrefine.core.model import Clarification, Material, Outcome, Setup, StopReason, Task, Verdict
from ipyrefine.core.points import with_ids
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stored import OLDEST
from ipyrefine.core.table import Result
from ipyrefine.core.testing import read_tests
from ipyrefine.errors import UsageError
from ipyrefine.session.record import MIME, bundle
from ipyrefine.session.verify import Verified, verify

TASK = "Write half. half(4) == 2\nOf nothing it is 0."
RIGHT = "def half(x):\n    return (x or 0) / 2"
WRONG = "def half(x):\n    return (x or 1) / 2"
CONFIRMED = Clarification(call="half(None)", gives="0")
TESTS = 'def test_nothing():\n    """Of nothing it is 0."""\n    assert half(0) == 0\n'


def run_of(
    text: str = RIGHT,
    task: str = TASK,
    *,
    confirmed: tuple[Clarification, ...] = (CONFIRMED,),
    tests: str = "",
    accepted: bool = True,
    **more: Any,
) -> Run:
    asked = Task(text=task, clarifications=confirmed, **{"form": "code", **more})
    decided: Any = {"decisions": (Accept(iteration=0),), "stop_reason": StopReason.ACCEPTED}
    return Run(
        setup=Setup(task=asked, model="m", judge="critic"),
        iterations=(Iteration(number=0, text=text),),
        points={one.id: one for one in with_ids((), read_tests(tests))},
        **decided if accepted else {},
    )


def notebook(path: Path, *runs: Run, below: str | None = None, cell: str = "") -> Path:
    """A notebook with these records, as a page saves it, and a cell below them."""
    make: Any = nbformat.v4
    made = make.new_notebook()
    for run in runs:
        output = make.new_output("display_data", data=bundle(run, cell=cell))
        made.cells.append(make.new_code_cell(f"%%refine\n{run.task.text}", outputs=[output]))
    if below is not None:
        made.cells.append(make.new_code_cell(below, id=cell or "other"))
    nbformat.write(made, path)
    # A page writes numbers and the order of keys its own way.
    text = path.read_text().replace(": 0.0", ": 0")
    path.write_text(json.dumps(json.loads(text), sort_keys=True))
    return path


def verified(path: Path) -> list[Verified]:
    return asyncio.run(verify(path))


ALL = "1 of 1 example, 1 of 1 result confirmed in this file"


def test_a_suite_that_holds_says_what_holds(tmp_path):
    [one] = verified(notebook(tmp_path / "x.ipynb", run_of(tests=TESTS), below=RIGHT))
    assert (one.cell, one.state, one.why) == (1, "holds", f"{ALL}, 1 of 1 test")
    assert str(one) == f"cell 1: holds ({ALL}, 1 of 1 test) · Write half. half(4) == 2"


@pytest.mark.parametrize(("text", "line"), [
    (WRONG, "half(None): expected 0, got 0.5"),
    (RIGHT.replace("half", "third"), "half(4): expected 2, raised NameError"),
    ("def half(x)\n    return 0", "The code does not load: SyntaxError"),
    ("def half(x):\n    return 0 if not x else x / 2", ""),
], ids=["confirmed", "name", "syntax", "kept"])  # fmt: skip
def test_what_the_cell_of_an_accepted_text_holds_now_is_tried(tmp_path, text, line):
    path = notebook(tmp_path / "x.ipynb", run_of(), below=f"%%time\n{text}", cell="held")
    [one] = verified(path)
    assert one.state == ("fails" if line else "holds")
    assert one.why.startswith(line or ALL)
    assert one.why.endswith("; its cell has changed since")


def test_a_critics_failing_test_is_named(tmp_path):
    text = "def half(x):\n    return x / 2 if x else 0 if x is None else 1"
    run = run_of(text, tests=TESTS)
    [one] = verified(notebook(tmp_path / "x.ipynb", run))
    assert one.state == "fails"
    assert one.why.startswith("test_nothing: assert 1 == 0")


def test_what_needs_a_variable_or_a_module_that_is_not_there_is_not_run(tmp_path):
    df = Material(kind="variable", name="df", phrase="df", text="df")
    needs = {
        "df": run_of("total = df['a'].sum()\ndef half(x): return 2", materials=(df,)),
        "helper": run_of("def half(x): return helper(x)"),
        "nowhere_to_be_found": run_of("import nowhere_to_be_found\ndef half(x): return 2"),
    }
    part = run_of("def half(x): return 2 if x else helper(x)")
    *found, partly = verified(notebook(tmp_path / "x.ipynb", *needs.values(), part))
    assert [one.state for one in found] == ["not run"] * 3
    assert all(name in one.why for name, one in zip(needs, found, strict=True))
    assert (partly.state, partly.why.partition(";")[0]) == ("not confirmed", "1 of 1 example")
    assert "helper" in partly.why


def test_a_notebook_without_tests_or_records_says_so(tmp_path):
    bare = run_of(task="Write half.", confirmed=())
    found = verified(notebook(tmp_path / "x.ipynb", bare))
    assert [one.state for one in found] == ["no tests"]
    with pytest.raises(UsageError, match="cannot be read"):
        verified(tmp_path / "none.ipynb")


@pytest.mark.parametrize(("place", "value", "state"), [
    (("iterations", 0, "text"), WRONG, "fails"),
    (("iterations", 0, "text"), RIGHT + "\n", "holds"),
    (("setup", "task", "text"), TASK.replace("== 2", "== 3"), "fails"),
    (("iterations",), 1, "fails"),
    (("version",), OLDEST - 1, "not run"),
], ids=["wrong text", "same text", "task", "damaged", "older"])  # fmt: skip
def test_a_record_is_a_claim_and_what_it_says_now_is_run(tmp_path, place, value, state):
    path = notebook(tmp_path / "x.ipynb", run_of())
    content = json.loads(path.read_text())
    part = content["cells"][0]["outputs"][0]["data"][MIME]
    *way, last = place
    for name in way:
        part = part[name]
    part[last] = value
    path.write_text(json.dumps(content))
    found = verified(path)
    assert [one.state for one in found] == [state]


def passing(basis: Any, **more: Any) -> Run:
    """A run whose text passed on some basis."""
    return judged(run_of(**more), Outcome.PASS, basis)


def judged(run: Run, outcome: Outcome, basis: Any, *found: Result) -> Run:
    """The run with such a verdict on its text, after these checks."""
    verdict = Verdict(outcome=outcome, score=None, basis=basis)
    return run.replace(iterations=(run.iterations[0].replace(verdict=verdict, evidence=found),))


@pytest.mark.parametrize(("run", "state", "why"), [
    (passing("examples"), "holds", ALL),
    (passing("tests"), "not confirmed", "your tests"),
    (passing("evaluator"), "not confirmed", "your evaluator"),
    (passing("critique"), "not confirmed", "a critic's reading"),
    (passing("confirmed", confirmed=()), "not confirmed", "confirmed results"),
    (passing("user"), "not confirmed", "`user`"),
    (passing("tests", text=WRONG), "fails", "half(None)"),
    (passing("user").replace(decisions=(Override(iteration=0, outcome=Outcome.PASS),),
                             stop_reason=StopReason.OVERRIDDEN), "holds",
     "PASS is the user's word"),
    (run_of(), "holds", ALL),
])  # fmt: skip
def test_a_pass_holds_only_where_what_it_rests_on_was_run_again(tmp_path, run, state, why):
    [one] = verified(notebook(tmp_path / "x.ipynb", run))
    assert one.state == state, one.why
    assert why in one.why


TEST = Result(name="tests:suite", passed=True, decisive=True, basis="tests")
CHECK = Result(name="no_floats decisive", passed=True, decisive=True, basis="function")


@pytest.mark.parametrize(("found", "outcome", "basis", "names"), [
    ((TEST,), "PASS", "tests", "tests:suite"),
    ((TEST, CHECK), "PASS", "tests", "tests:suite and no_floats"),
    ((TEST.replace(passed=False),), "NEEDS_IMPROVEMENT", "tests", "tests:suite"),
    ((CHECK.replace(name="length:<=9 lines", basis="constraints", passed=False),),
     "NEEDS_IMPROVEMENT", "constraints", "at most 9 lines"),
    ((Result(name="run", passed=None, not_run=True, basis="run"),), "NOT_JUDGED", "none", ""),
    ((TEST.replace(passed=False),), "PASS", "user", ""),  # over a failed test
    ((CHECK.replace(passed=False, counts=False),), "PASS", "confirmed", ""),
    ((Result(name="examples", passed=True, decisive=True, basis="confirmed"),),
     "PASS", "confirmed", ""),
])  # fmt: skip
def test_a_check_that_decided_and_cannot_be_run_from_the_file_is_named(
    tmp_path, found, outcome, basis, names
):
    run = judged(run_of(accepted=False), Outcome[outcome], basis, *found)
    if basis == "user":
        decided = (Override(iteration=0, outcome=Outcome.PASS),)
        run = run.replace(decisions=decided, stop_reason=StopReason.OVERRIDDEN)
    [one] = verified(notebook(tmp_path / "x.ipynb", run))
    sentence = f"; the verdict rests on {names}, which can't be run from this file"
    assert one.state == ("not confirmed" if names else "holds")
    assert one.why == ALL + (sentence if names else "; PASS is the user's word" * (basis == "user"))


def test_nothing_of_a_file_runs_outside_of_the_sandbox(tmp_path):
    mark = tmp_path / "owned"
    text = f"open({str(mark)!r}, 'w').write('x')\n{RIGHT}"
    confirmed = (CONFIRMED.replace(setup=f"open({str(mark)!r}, 'w')"),)
    tests = TESTS.replace("    assert", f"    open({str(mark)!r}, 'w')\n    assert")
    asked = run_of(text, confirmed=confirmed, tests=tests)
    verified(notebook(tmp_path / "x.ipynb", asked))
    assert not mark.exists()


def test_the_cell_that_a_text_was_put_into_is_in_the_record(monkeypatch):
    front = Front(monkeypatch, [f"```python\n{RIGHT}\n```", READY])
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "ipyrefine.session.record.RecordDisplay.show",
        lambda _, run, **options: shown.append(bundle(run, **options)[MIME]),
    )
    for cell in (f"%%refine -p code --set as=task\n{TASK}", "%refine accept 0 replace"):
        front.run(cell, "home")
    assert "cell" not in shown[0]
    assert shown[-1]["cell"] == "home"
