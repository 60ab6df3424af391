"""Making the teaching notebooks: calls are made once, outputs are stored, a failure says where."""

import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from notebooks import CellFailed, is_current, outcomes, record, store
from openai_server import ScriptedServer

SETTING = """\
%load_ext ipyrefine
%config Refine.model = "recorded:recordings/09.json"
def short(text):
    return len(text) < 20
"""
TASK = "%%refine -p microcopy --check short\nWrite the label of a button that saves."
LATER = "import pathlib\nassert pathlib.Path('ready').exists(), 'not ready'"


def notebook(folder: Path, *cells: str) -> Path:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    path = folder / "09-small.ipynb"
    nbformat.write(made, path)
    return path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda body: "<text>\nSave\n</text>") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("IPYREFINE_MODEL", "served")
        yield server


async def test_a_failure_names_the_cell_and_the_next_try_asks_only_what_is_missing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    path = notebook(tmp_path, SETTING, TASK, LATER, TASK.replace("saves", "undoes"))
    with pytest.raises(CellFailed, match=r"cell 3 \(import pathlib\): AssertionError: not ready"):
        await record(path)
    assert len(server.requests) == 1
    assert outcomes(nbformat.read(path, as_version=4)) == []
    (tmp_path / "ready").touch()
    assert await record(path)
    assert len(server.requests) == 2
    runs = outcomes(nbformat.read(path, as_version=4))
    assert [run["stop"] for run in runs] == ["passed", "passed"]


async def test_a_good_recording_is_kept_with_its_outputs_and_one_that_asks_other_things_made_anew(
    tmp_path: Path, server: ScriptedServer
) -> None:
    path = notebook(
        tmp_path, SETTING, TASK, "import sys; print(1, file=sys.stderr)\nprint(refined)"
    )
    assert await record(path)
    stored = path.read_bytes()
    assert b"stderr" not in stored.partition(b'"outputs"')[2].replace(b"sys.stderr", b"")
    assert not await record(path)
    assert path.read_bytes() == stored, "two executions store the same bytes"
    assert len(server.requests) == 1
    path.write_text(path.read_text("utf-8").replace("that saves", "that undoes"), "utf-8")
    assert await record(path)
    calls = json.loads((tmp_path / "recordings" / "09.json").read_text("utf-8"))["calls"]
    assert [call["purpose"] for call in calls] == ["draft"]
    assert len(server.requests) == 2


def test_a_changed_output_is_seen_and_stored_once_but_an_image_drawn_anew_is_no_fault(
    tmp_path: Path,
) -> None:
    path = notebook(tmp_path, "print('Save')", "draw()")
    executed = nbformat.read(path, as_version=4)
    printed, drawn = executed.cells
    printed.outputs = [nbformat.v4.new_output("stream", text="Save")]
    for image in ("old", "new"):
        drawn.outputs = [nbformat.v4.new_output("display_data", {"image/png": image})]
        assert store(path, executed)
        assert not store(path, executed)
    drawn.outputs[0].data["image/png"] = "drawn elsewhere"
    assert is_current(path, executed)
    printed.outputs[0].text = "Send"
    assert not is_current(path, executed)
    assert store(path, executed)
    assert is_current(path, executed)
