"""`ipyrefine handout | report`: what a teacher hands out and gets back."""

import asyncio
import csv
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kit import finished

from ipyrefine import cli
from ipyrefine.core.decisions import Accept, Dismiss
from ipyrefine.core.model import Attempt, StopReason
from ipyrefine.core.run import Run
from ipyrefine.demo import notebooks
from ipyrefine.session.record import KEY, bundle

OURS = sorted(notebooks().glob("*.ipynb"))
v4: Any = nbformat.v4


def saved(path: Path, *cells: Any, **metadata: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(v4.new_notebook(cells=list(cells), metadata=metadata), path)
    return path


def handed_in(path: Path, *runs: Run) -> Path:
    outputs = [[v4.new_output("display_data", data=bundle(run))] for run in runs]
    return saved(path, *(v4.new_code_cell("%%refine", outputs=one) for one in outputs))


def sources(path: Path) -> list[str]:
    return [one.source for one in nbformat.read(path, as_version=4).cells]


# Handing out


def hand_out(path: Path, folder: Path) -> None:
    assert cli.main(["handout", str(path), "-o", str(folder / "lab")]) == 0


def test_the_teachers_page_shows_what_is_printed(tmp_path, capsys, monkeypatch):
    page = (notebooks() / "README.md").read_text("utf-8")
    found = re.search(r"^ipyrefine (handout .+)\n```\n\n```\n((?:.+\n)+)```", page, re.MULTILINE)
    assert found
    monkeypatch.chdir(tmp_path)
    assert cli.main(found[1].split()) == 0
    assert capsys.readouterr().out == found[2]


def test_our_notebooks_are_handed_out_by_number(tmp_path, capsys):
    """Without solutions and outputs, and with all that they read."""
    lab = tmp_path / "lab"
    numbers = [str(int(one.name[:2])) for one in OURS]
    assert cli.main(["handout", *numbers, "-o", str(lab)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all("solutions cut from 1 cell" in line for line in lines)
    assert [one.name for one in sorted(lab.glob("*.ipynb"))] == [one.name for one in OURS]
    for path in OURS:
        made: Any = nbformat.read(lab / path.name, as_version=4)
        nbformat.validate(made)
        told = "\n".join(one.source for one in made.cells)
        assert "<details" not in told
        assert "## Exercises" in told
        assert not any(one.get("outputs") or one.get("execution_count") for one in made.cells)
    read = ["recordings", "submissions.csv", "GLOSSARY.md"]
    whole = {p: p.read_bytes() for one in read for p in (notebooks() / one).rglob("*.*")} | {
        notebooks() / one: (notebooks() / one).read_bytes() for one in read[1:]
    }
    for path, content in whole.items():
        assert (lab / path.relative_to(notebooks())).read_bytes() == content
    assert cli.main(["handout", numbers[0], "-o", str(lab)]) == 0, "again it is the same"


@pytest.mark.parametrize(("source", "left"), [
    ("1. Why?\n\n<details>\n<summary>Solutions</summary>\n\nSo.\n\n</details>", "1. Why?"),
    ("Why?\n<DETAILS open><summary><b>Model solution</b></summary>So.</DETAILS>\nAnd?",
     "Why?\n\nAnd?"),
    ("Why?\n<details><summary>Solution</summary>a<details>b</details>So.</details>", "Why?"),
    ("Why?\n<details><summary>Solution</summary>So.", "Why?"),
    ("<details><summary>Hint</summary>Look.</details>\nWhy?",) * 2,
    ("<details><summary>Hint</summary>x\n<details><summary>Solution</summary>So.</details>"
     "\n</details>\nWhy?", "<details><summary>Hint</summary>x\n\n</details>\nWhy?"),
    ("Our solution is a fold: `<details>`.",) * 2,
    ("<details><summary>Why?</summary>The solution.</details>",) * 2,
    ("<details><summary>Solutions</summary>So.</details>", None),
])  # fmt: skip
def test_a_solution_is_cut_and_all_else_stays(tmp_path, source, left):
    path = saved(tmp_path / "x.ipynb", v4.new_markdown_cell(source), v4.new_code_cell(source))
    hand_out(path, tmp_path)
    kept = [] if left is None else [left]
    assert sources(tmp_path / "lab/x.ipynb") == [*kept, source], "code is not HTML"


def test_a_cell_with_the_tag_is_cut_and_no_run_stays_in_the_metadata(tmp_path):
    solved = v4.new_code_cell("x = 42", metadata={"tags": ["solution"]})
    made = {"widgets": {"state": "x"}, KEY: {"run": {}}, "language_info": {"name": "python"}}
    path = saved(tmp_path / "x.ipynb", v4.new_code_cell("x = ..."), solved, **made)
    hand_out(path, tmp_path)
    assert sources(tmp_path / "lab/x.ipynb") == ["x = ..."]
    stored = json.loads((tmp_path / "lab/x.ipynb").read_text())
    assert stored["metadata"] == {"language_info": {"name": "python"}}


@pytest.mark.parametrize("tag", ["solution", "Solutions"])
def test_what_only_a_solution_names_or_shows_stays_with_the_teacher(tmp_path, capsys, tag):
    """Files, pictures in the cell, and folds in a raw cell."""
    fold = "<details><summary>Solution</summary>![](attachment:{}) x</details>".format
    about = v4.new_markdown_cell(f"![](attachment:my%20task.png){fold('solved.png')}")
    about.attachments = {"my task.png": {"image/png": "dA=="}, "solved.png": {"image/png": "cw=="}}
    solved = v4.new_code_cell("import solved, data", metadata={"tags": [tag]})
    cells = about, v4.new_raw_cell(fold("raw")), solved, v4.new_code_cell("import data")
    for name in ("solved.py", "data.py"):
        (tmp_path / name).write_text("x = 1")
    path = saved(tmp_path / "x.ipynb", *cells)
    hand_out(path, tmp_path)
    assert "solutions cut from 3 cells; with data.py." in capsys.readouterr().out
    assert {one.name for one in (tmp_path / "lab").iterdir()} == {"x.ipynb", "data.py"}
    made: Any = nbformat.read(tmp_path / "lab/x.ipynb", as_version=4)
    assert [one.source for one in made.cells] == ["![](attachment:my%20task.png)", "import data"]
    assert [*made.cells[0].attachments] == ["my task.png"]


def test_what_a_notebook_names_goes_along_and_nothing_else(tmp_path, capsys):
    home = tmp_path / "course"
    for name in ("data/a.csv", "data/b.csv", "my plot.png", "helper.py", "more.py", "solutions.py",
                 "key.ipynb", ".env", "recordings/1.json", "other.txt", "notes.md"):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"# {name}\nimport more" if name == "helper.py" else name)
    cells = (
        '%config Refine.model = "recorded:recordings/1.json@5"',
        "import pandas as pd\nimport helper\nframes = [pd.read_csv(f'data/{n}.csv') for n in 'ab']",
        'open("key.ipynb"), open(".env"), name + "*", "recorded:recordings/2.json"',
    )
    about = v4.new_markdown_cell("![a](my%20plot.png) see [notes](notes.md#a), [key](key.ipynb)")
    path = saved(home / "x.ipynb", *map(v4.new_code_cell, cells), about)
    hand_out(path, tmp_path)
    lab = tmp_path / "lab"
    found = {one.relative_to(lab).as_posix() for one in lab.rglob("*.*") if one.is_file()}
    assert found == {"x.ipynb", "data/a.csv", "data/b.csv", "helper.py", "more.py", "notes.md",
                     "recordings/1.json", "my plot.png"}  # fmt: skip
    [line] = capsys.readouterr().out.splitlines()
    assert "no solutions found; with data/a.csv, " in line
    assert line.endswith("; without .env, recordings/2.json.")


def test_a_notebook_is_never_written_over(tmp_path, capsys):
    path = saved(tmp_path / "x.ipynb", v4.new_markdown_cell("<details><summary>Solution</summary>"))
    before = path.read_bytes()
    assert cli.main(["handout", str(path), "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"ipyrefine: {path} exists. Name another folder with -o.\n"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", "x", '{"cells": 1, "metadata": {}}', '{"cells": {}, "metadata": {}}',
     '{"cells": [1], "metadata": {}}', '{"metadata": {}}', '{"cells": [], "metadata": []}',
     '{"worksheets": [], "metadata": {}}', "[" * 9999,
     '{"worksheets": [], "metadata": {}, "nbformat": 3}',
     '{"cells": [], "metadata": {}, "nbformat": 5}',
     '{"cells": [], "metadata": {}, "nbformat": "4"}'],
)  # fmt: skip
def test_what_is_not_a_notebook_is_refused_in_a_line(tmp_path, capsys, content):
    """The good one before it is not handed out alone."""
    path, good = tmp_path / "x.ipynb", saved(tmp_path / "good.ipynb")
    path.write_text(content)
    lab = tmp_path / "lab"
    for words in (str(path), str(tmp_path / "none.ipynb"), "99", str(tmp_path)):
        assert cli.main(["handout", str(good), words, "-o", str(lab)]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert not lab.exists()
    assert cli.main(["report", str(path)]) == 1
    [line] = capsys.readouterr().out.splitlines()
    assert "damaged" not in line
    if "nbformat" in content:
        assert line == f"{path} is not a notebook of format 4. Save it again in JupyterLab."


def test_names_in_a_notebook_are_harmless(tmp_path, capsys):
    names = ("recorded:a\x00b.json", "recorded:\x1b[2J", "recorded:/etc/passwd", "recorded:../x")
    cells = [
        v4.new_markdown_cell(f"{name} '{'x' * 9999}' '../*.py' '**' '*' '/'") for name in names
    ]
    path = saved(tmp_path / "course/x.ipynb", *cells)
    (tmp_path / "x").write_text("secret")
    hand_out(path, tmp_path)
    assert [one.name for one in (tmp_path / "lab").iterdir()] == ["x.ipynb"]
    [line] = capsys.readouterr().out.splitlines()
    assert line.isprintable()


# Getting back


async def decided() -> Run:
    run = await finished(scores=(4,))
    reasons = (Dismiss(points=("f1",), reason="=1+1 is fine."), Accept(iteration=0))
    asked = Attempt(
        call="f(1)",
        gives="2",
        expected="1",
        predicted="3",
    )
    return run.replace(decisions=reasons, stop_reason=StopReason.ACCEPTED, attempts=(asked,))


def test_the_runs_of_a_class_are_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    passed = asyncio.run(finished("=Write a greeting.\nA short one."))
    handed_in(Path("class/ann/lab.ipynb"), passed, asyncio.run(decided()))
    handed_in(Path("class/bob/lab/lab.ipynb"))
    Path("class/cy").mkdir()
    Path("class/cy/lab.ipynb").write_text("{")
    found = [str(one) for one in sorted(Path("class").rglob("*.ipynb"))]
    assert cli.main(["report", *found, "--csv", "runs.csv"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    head, first, second, *below = out.splitlines()
    assert head.split() == ["student", "verdict", "basis", "task"]
    assert first.split()[:3] == ["ann", "PASS", "evaluator"]
    assert second.startswith("ann      NEEDS IMPROVEMENT  evaluator  Write a greeting.")
    assert below == [
        "  decisions: dismissed f1; accepted the draft",
        "  reasons: =1+1 is fine.",
        "  predictions: f(1): predicted 3, gives 2",
        f"{found[1]} holds no record of a run.",
        f"{found[2]} is neither a notebook nor an exported run.",
    ]
    with open("runs.csv", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [one["student"] for one in rows] == ["ann", "ann", "bob", "cy"]
    assert [one["cell"] for one in rows] == ["1", "2", "", ""]
    assert rows[0]["task"] == "'=Write a greeting.", "no spreadsheet computes it"
    assert rows[1]["reasons"] == "'=1+1 is fine."
    assert rows[3]["problem"] == below[-1]


@pytest.mark.parametrize(("files", "students"), [
    (["ann.ipynb", "bob.ipynb"], ["ann", "bob"]),
    (["ann/1.ipynb", "ann/2.ipynb", "bob/1.ipynb"], ["ann", "ann", "bob"]),
    (["ann/lab/1.ipynb", "bob/1.ipynb", "cy.ipynb"], ["ann", "bob", "cy"]),
    (["class/ann.ipynb"], ["ann"]),
])  # fmt: skip
def test_a_student_is_a_folder_or_a_file(tmp_path, capsys, files, students):
    [first] = notebooks().glob("01-*.ipynb")  # it has one run
    run = json.loads(first.read_text("utf-8"))
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(run))
    assert cli.main(["report", *(str(tmp_path / one) for one in files)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [one.split()[0] for one in lines[1:] if not one.startswith(" ")] == students


def test_a_damaged_record_is_a_line_and_the_others_are_listed(tmp_path, capsys):
    run = asyncio.run(finished())
    path = handed_in(tmp_path / "ann.ipynb", run, run)
    content = json.loads(path.read_text())
    data = content["cells"][0]["outputs"][0]["data"]
    for damaged in (1, {"version": 1}):
        data["application/vnd.ipyrefine.run+json"] = damaged
        path.write_text(json.dumps(content))
        assert cli.main(["report", str(path)]) == 1
        _, good, *problem = capsys.readouterr().out.splitlines()
        assert good.startswith("ann")
        assert len(problem) == 1
        assert str(path) in problem[0]


def test_a_table_takes_no_notebooks_place(tmp_path, capsys):
    """``--csv *.ipynb`` would."""
    path = handed_in(tmp_path / "ann.ipynb")
    before = path.read_bytes()
    assert cli.main(["report", str(path), "--csv", str(path)]) == 1
    assert "doesn't end in .csv" in capsys.readouterr().err
    assert path.read_bytes() == before
