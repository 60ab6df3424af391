"""`ipyrefine verify`: the suites of a notebook's records are run again, without a model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kit import READY
from shells import Front

from ipyrefine import cli
from ipyrefine.core.decisions import Accept, Override
from ipyrefine.core.expectations import read_tests
from ipyrefine.core.model import (
    Clarification,
    Material,
    Outcome,
    Setup,
    StopReason,
    Task,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stored import VERSION
from ipyrefine.errors import UsageError
from ipyrefine.session.export import export
from ipyrefine.session.record import KEY, MIME, bundle
from ipyrefine.session.verify import Verified, exit_status, verify

TASK = "Write half. half(4) == 2\nOf nothing it is 0."
RIGHT = "def half(x):\n    return (x or 0) / 2"
WRONG = "def half(x):\n    return (x or 1) / 2"
CONFIRMED = Clarification(call="half(None)", result="0")
TESTS = 'def test_nothing():\n    """Of nothing it is 0."""\n    assert half(0) == 0\n'


def run_of(
    text: str = RIGHT,
    task: str = TASK,
    *,
    confirmed: tuple[Clarification, ...] = (CONFIRMED,),
    tests: str = TESTS,
    accepted: bool = True,
    **more: Any,
) -> Run:
    asked = Task(text=task, clarifications=confirmed, **{"form": "code", **more})
    decided: Any = {"decisions": (Accept(iteration=0),), "stop_reason": StopReason.ACCEPTED}
    return Run(
        setup=Setup(task=asked, model="m", judge="critic"),
        iterations=(Iteration(number=0, text=text),),
        expectations=tuple(one.replace(grounded=True) for one in read_tests(tests)),
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


def verified(path: Path, **options: Any) -> list[Verified]:
    return asyncio.run(verify(path, **options))


ALL = "1 of 1 example, 1 of 1 result confirmed in this file, 1 of 1 test"


def test_a_suite_that_holds_says_what_holds(tmp_path):
    [one] = verified(notebook(tmp_path / "x.ipynb", run_of(), below=RIGHT))
    assert (one.cell, one.state, one.why, one.altered) == (1, "holds", ALL, ())
    assert str(one) == f"cell 1: holds ({ALL}) · Write half. half(4) == 2"
    assert exit_status([one]) == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WRONG, "half(None): expected 0, got 0.5"),
        (RIGHT.replace("/ 2", "/ 3"), "half(4): expected 2, got 1.333"),
        (RIGHT.replace("half", "third"), "half(4): expected 2, raised NameError"),
        ("def half(x):\n    raise SystemExit", "half(4): expected 2"),
        ("def half(x):\n    return 0 if not x else x / 2", ""),
    ],
    ids=["confirmed", "example", "name", "exit", "kept"],
)
def test_a_cell_that_changed_is_tried_where_that_is_asked(tmp_path, text, line):
    path = notebook(tmp_path / "x.ipynb", run_of(), below=f"%%time\n{text}", cell="held")
    [one] = verified(path)
    assert (one.state, exit_status([one])) == ("changed since", 1)
    [one] = verified(path, cells=True)
    assert (one.state, exit_status([one])) == (("fails", 1) if line else ("holds", 0))
    assert one.why.startswith(line or ALL)
    assert one.why.endswith("; its cell has changed since")


def test_an_accepted_text_without_its_cell_is_not_taken_for_the_cells(tmp_path):
    path = notebook(tmp_path / "x.ipynb", run_of(), run_of(accepted=False), below="x = 1")
    assert [one.state for one in verified(path)] == ["holds", "holds"]
    found = verified(path, cells=True)
    assert [one.state for one in found] == ["not run", "holds"]
    assert exit_status(found[:1]) == 3


def test_a_critics_failing_test_is_named(tmp_path):
    run = run_of("def half(x):\n    return x / 2 if x else 0 if x is None else 1")
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
    assert exit_status(found) == 3
    assert (partly.state, partly.why.partition(";")[0]) == ("not confirmed", "1 of 1 example")
    assert "helper" in partly.why
    assert exit_status([partly]) == 3


def test_a_notebook_without_tests_or_records_says_so(tmp_path):
    bare = run_of(task="Write half.", confirmed=(), tests="")
    found = verified(notebook(tmp_path / "x.ipynb", bare))
    assert ([one.state for one in found], exit_status(found)) == (["no tests"], 4)
    assert exit_status(verified(notebook(tmp_path / "y.ipynb"))) == 4
    with pytest.raises(UsageError, match="cannot be read"):
        verified(tmp_path / "none.ipynb")


@pytest.mark.parametrize(
    ("place", "value", "altered", "status"),
    [
        ((MIME, "iterations", 0, "text"), RIGHT + "\n", ("a text",), 1),
        ((MIME, "iterations", 0, "verdict"), {"outcome": "PASS", "score": None}, ("a verdict",), 1),
        ((MIME, "setup", "task", "text"), TASK + " Now.", ("the record",), 1),
        (("text/html",), "<p>PASS</p>", ("its HTML",), 1),
        (("text/markdown",), "PASS", ("its Markdown",), 1),
        (("text/html",), None, (), 0),
        ((MIME, "iterations"), 1, ("the record",), 1),
        ((MIME, "version"), VERSION - 1, (), 3),
    ],
    ids=["text", "verdict", "task", "HTML", "Markdown", "no HTML", "damaged", "older"],
)
def test_what_was_altered_is_named(tmp_path, place, value, altered, status):
    path = notebook(tmp_path / "x.ipynb", run_of())
    content = json.loads(path.read_text())
    part = content["cells"][0]["outputs"][0]["data"]
    *way, last = place
    for name in way:
        part = part[name]
    part[last] = value
    if value is None:
        del part[last]
    path.write_text(json.dumps(content))
    found = verified(path)
    assert ([one.altered for one in found], exit_status(found)) == ([altered], status)


def passing(basis: Any, **more: Any) -> Run:
    """A run whose text passed on some basis."""
    run = run_of(**more)
    verdict = Verdict(outcome=Outcome.PASS, score=None, basis=basis)
    return run.replace(iterations=(run.iterations[0].replace(verdict=verdict),))


def pop(part: Any, name: str) -> None:
    del part[name]


# What somebody may do to a record for a wrong text to be taken for a right one.
TAMPERS: dict[str, Any] = {
    "text": lambda run: run["iterations"][0].update(text=RIGHT + "\n# better"),
    "verdict": lambda run: run["iterations"][0]["verdict"].update(outcome="FAIL"),
    "basis": lambda run: run["iterations"][0]["verdict"].update(basis="confirmed"),
    "because": lambda run: run["iterations"][0]["verdict"].update(
        because={"kind": "by_user", "words": "Fine."}
    ),
    "score": lambda run: run["iterations"][0]["verdict"].update(score=1.0),
    "no verdict": lambda run: run["iterations"][0].update(verdict=None),
    "evidence": lambda run: run["iterations"][0]["evidence"].append(
        {"name": "suite", "passed": True, "basis": "tests"}
    ),
    "findings": lambda run: run["iterations"][0].update(critiqued=True),
    "no tests": lambda run: run.update(expectations=[]),
    "another test": lambda run: run["expectations"][0].update(code="def test_x(): pass"),
    "a dismissed test": lambda run: run["expectations"][0].update(status="dismissed"),
    "a test without grounds": lambda run: run["expectations"][0].update(grounded=False),
    "an empty test": lambda run: run["expectations"][0].update(vacuous=True),
    "task": lambda run: run["setup"]["task"].update(text=TASK.replace("== 2", "== 2.0")),
    "no examples": lambda run: run["setup"]["task"].update(text="Write half."),
    "confirmed": lambda run: run["setup"]["task"]["clarifications"][0].update(result="0.0"),
    "none confirmed": lambda run: run["setup"]["task"].update(clarifications=[]),
    "checks": lambda run: run["setup"].update(checks=["examples"]),
    "form": lambda run: run["setup"]["task"].update(form="prose"),
    "model": lambda run: run["setup"].update(model="gpt-99", judge="gpt-99"),
    "best": lambda run: run.update(best=0),
    "decisions": lambda run: run["decisions"].append(
        {"kind": "override", "iteration": 0, "outcome": "PASS"}
    ),
    "another reason": lambda run: run["decisions"][0].update(reason="Checked by Ada."),
    "warnings": lambda run: run["warnings"].append("All is well."),
    "nothing": lambda run: None,
}
# And what it does to the digests, which would tell.
UNSEALED: dict[str, Any] = {
    "kept": lambda record: None,
    "deleted": lambda record: pop(record, "digests"),
    "emptied": lambda record: record.update(digests={}),
    "of another form": lambda record: record.update(digests=[1]),
    "of the text and verdict alone": lambda record: pop(record["digests"], "run"),
    "of the page alone": lambda record: [
        pop(record["digests"], n) for n in ("run", "text", "verdict")
    ],
    "of others": lambda record: record.update(digests=dict.fromkeys(record["digests"], "0" * 64)),
}


@pytest.mark.parametrize("unseal", UNSEALED.values(), ids=UNSEALED)
@pytest.mark.parametrize("tamper", TAMPERS.values(), ids=TAMPERS)
def test_no_record_that_was_altered_or_lost_its_digests_is_said_to_hold(
    tmp_path, monkeypatch, tamper, unseal
):
    async def all_hold(*_: Any) -> tuple[str, str, str]:
        return "holds", ALL, ""

    monkeypatch.setattr("ipyrefine.session.verify._try", all_hold)
    path = notebook(tmp_path / "x.ipynb", passing("confirmed"))
    content = json.loads(path.read_text())
    record = content["cells"][0]["outputs"][0]["data"][MIME]
    before = json.dumps(record, sort_keys=True)
    tamper(record)
    unseal(record)
    path.write_text(json.dumps(content))
    [one] = verified(path)
    if json.dumps(record, sort_keys=True) == before:
        assert (one.state, one.altered, exit_status([one])) == ("holds", (), 0)
    else:
        assert one.state != "holds"
        assert one.altered
        assert exit_status([one]) == 1


@pytest.mark.parametrize("name", ["text/plain", "text/markdown", "text/html"])
def test_a_page_whose_digest_was_deleted_is_not_confirmed(tmp_path, name):
    path = notebook(tmp_path / "x.ipynb", run_of())
    content = json.loads(path.read_text())
    data = content["cells"][0]["outputs"][0]["data"]
    data[name] = "PASS"
    del data[MIME]["digests"][name]
    path.write_text(json.dumps(content))
    [one] = verified(path)
    assert (one.state, one.altered) == ("not confirmed", ("its digests",))


@pytest.mark.parametrize(
    ("run", "state", "why"),
    [
        (passing("examples"), "holds", ALL),
        (passing("confirmed"), "holds", ALL),
        (passing("tests"), "not confirmed", "your tests"),
        (passing("function"), "not confirmed", "your function"),
        (passing("evaluator"), "not confirmed", "your evaluator"),
        (passing("critique"), "not confirmed", "a critic's reading"),
        (passing("schema"), "not confirmed", "`schema`"),
        (passing("confirmed", confirmed=()), "not confirmed", "confirmed results"),
        (passing("examples", task="Write half."), "not confirmed", "examples"),
        (passing("user"), "not confirmed", "`user`"),
        (passing("evaluator", task="Write half.", confirmed=(), tests=""), "not confirmed",
         "your evaluator"),
        (passing("critique", form="prose"), "not confirmed", "a critic's reading"),
        (passing("tests", text=WRONG), "fails", "half(None)"),
        (passing("user").replace(decisions=(Override(iteration=0, outcome=Outcome.PASS),),
                                 stop_reason=StopReason.OVERRIDDEN), "holds",
         "PASS is the user's word"),
        (run_of(), "holds", ALL),
    ],
)  # fmt: skip
def test_a_pass_holds_only_where_what_it_rests_on_was_run_again(tmp_path, run, state, why):
    [one] = verified(notebook(tmp_path / "x.ipynb", run))
    assert (one.state, one.altered) == (state, ()), one.why
    assert why in one.why
    assert exit_status([one]) == {"holds": 0, "fails": 1}.get(state, 3)


def test_an_exported_run_is_verified_and_its_cell_is_the_last(tmp_path):
    for ending in ("ipynb", "json"):
        [one] = verified(export(run_of(), tmp_path / f"run.{ending}"))
        assert (one.cell, one.state, one.altered) == (0, "holds", ())
    path = tmp_path / "run.ipynb"
    content = json.loads(path.read_text())
    content["cells"][-1]["source"] = WRONG
    path.write_text(json.dumps(content))
    assert [one.state for one in verified(path, cells=True)] == ["fails"]
    content["metadata"][KEY]["run"]["iterations"][0]["text"] = WRONG
    path.write_text(json.dumps(content))
    [one] = verified(path)
    assert (one.state, one.altered) == ("fails", ("a text",))


def test_nothing_of_a_file_runs_outside_of_the_sandbox(tmp_path):
    mark = tmp_path / "owned"
    text = f"open({str(mark)!r}, 'w').write('x')\n{RIGHT}"
    asked = run_of(text, confirmed=(CONFIRMED.replace(setup=f"open({str(mark)!r}, 'w')"),))
    verified(notebook(tmp_path / "x.ipynb", asked))
    assert not mark.exists()


def test_the_cell_that_a_text_was_put_into_is_in_the_record(monkeypatch):
    front = Front(monkeypatch, [f"```python\n{RIGHT}\n```", READY])
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "ipyrefine.session.record.RecordDisplay.show",
        lambda _, run, **options: shown.append(bundle(run, **options)[MIME]),
    )
    for cell in (f"%%refine -p code --task\n{TASK}", "%refine accept 0 replace"):
        front.run(cell, "home")
    assert "cell" not in shown[0]
    assert shown[-1]["cell"] == "home"


def test_the_command_prints_a_line_for_each_and_ends_with_the_status(tmp_path, capsys):
    path = str(notebook(tmp_path / "x.ipynb", run_of(), run_of(WRONG)))
    assert cli.main(["verify", path]) == 1
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("cell 1: holds (")
    assert second.startswith("cell 2: fails (")
    assert cli.main(["verify", path, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [one["state"] for one in printed] == ["holds", "fails"]
