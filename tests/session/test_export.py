"""A run as a file of its own."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kit import finished

import ipyrefine
from ipyrefine.core.decisions import Accept
from ipyrefine.core.model import StopReason
from ipyrefine.core.stored import VERSION
from ipyrefine.errors import UsageError
from ipyrefine.session.export import export


def cells_of(path: Path) -> Any:
    notebook: Any = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return notebook.cells


async def test_the_notebook_has_a_cell_for_the_task_each_text_and_the_result(tmp_path):
    run = await finished(scores=(4, 10))
    cells = cells_of(export(run, tmp_path / "run.ipynb"))
    titles = [cell.source.partition("\n")[0].partition(" ·")[0] for cell in cells]
    assert titles == ["## Task", "## Draft", "## Revision 1", "## Result"]
    assert {cell.cell_type for cell in cells} == {"markdown"}
    assert "Version 1" in cells[-1].source


@pytest.mark.parametrize("ending", ["ipynb", "json"])
async def test_an_exported_run_is_read_back_whole(tmp_path, ending):
    run = await finished()
    assert ipyrefine.load(export(run, tmp_path / f"run.{ending}")) == [run]


async def test_only_accepted_code_can_be_run(tmp_path):
    run = await finished()
    code = run.replace(setup=run.setup.replace(task=run.task.replace(form="code")))
    passed = cells_of(export(code, tmp_path / "passed.ipynb"))
    assert {cell.cell_type for cell in passed} == {"markdown"}
    accepted = code.replace(stop_reason=StopReason.ACCEPTED, decisions=(Accept(iteration=0),))
    last = cells_of(export(accepted, tmp_path / "accepted.ipynb"))[-1]
    assert (last.cell_type, last.source) == ("code", "Version 0")


async def test_an_existing_file_is_replaced_only_by_force(tmp_path):
    run = await finished()
    path = export(run, tmp_path / "run.json")
    path.write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        export(run, path)
    assert path.read_text() == "mine"
    assert json.loads(export(run, path, force=True).read_text())["version"] == VERSION


@pytest.mark.parametrize(("name", "said"), [("run.pdf", "ending"), ("no/run.json", "cannot be")])
async def test_a_place_that_cannot_be_written_is_named(tmp_path, name, said):
    run = await finished()
    with pytest.raises(UsageError, match=said):
        export(run, tmp_path / name)
