"""The notebooks that come with the source, on their recordings and on the embedded model."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebooks import (
    FOLDER,
    NOTEBOOKS,
    RECORD_ANEW,
    RECORDINGS,
    CellFailed,
    execute,
    known,
    live,
    number,
    replayed,
)

from ipyrefine.errors import UsageError
from ipyrefine.providers.replay import Recording, read_recording
from ipyrefine.providers.weights import WEIGHTS
from ipyrefine.session.audit import Result

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
ON_THE_MODEL = ("01", "02")  # the others only need more of its minutes


def outputs(notebook: Any, source: str) -> list[Any]:
    return next(c.outputs for c in notebook.cells if c.source.startswith(source))


def test_they_are_numbered_from_one() -> None:
    assert [number(path) for path in NOTEBOOKS] == [f"{n:02}" for n in range(1, 9)]


@each
def test_a_notebook_is_valid_names_its_kernel_and_carries_no_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    for cell in code:
        assert cell.outputs == []
        assert cell.execution_count is None


@each
def test_a_notebook_says_what_to_look_at_and_ends_with_exercises(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert any("**What to look at:**" in text for text in texts)
    assert texts[-1].startswith("## Exercise")


@each
async def test_a_notebook_replays_its_recording_into_the_same_runs(path: Path) -> None:
    """Without a model or a key; a call that is not in the recording fails the notebook.

    Every verdict in its outputs and in the journal is recomputed, and none differs.
    """
    audits: list[str] = []
    try:
        came = await replayed(path, audits)
    except CellFailed as failure:
        if "not in the recording" in failure.said:
            stale = f"The loop asks other things now: {RECORD_ANEW.format(number(path))}"
            pytest.fail(f"{stale}\n{failure}")
        raise
    assert came == known()[number(path)]
    assert [one for one in audits if one.startswith(Result.DIFFERS)] == []


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("0*.json")), ids=lambda path: path.stem)
def test_a_recording_is_of_the_embedded_model_and_says_which_and_when(path: Path) -> None:
    recording: Recording = read_recording(path)
    assert recording.calls
    for source in recording.models:
        assert source.weights == WEIGHTS[source.name].sha256
    assert {call.model for call in recording.calls} == {one.name for one in recording.models}
    assert recording.ipyrefine
    assert recording.date >= "2026-11-01"
    assert path.stat().st_size < 200_000


def test_a_notebook_made_live_names_no_recording() -> None:
    for path in NOTEBOOKS:
        code = [c.source for c in live(nbformat.read(path, as_version=4)).cells]
        assert "recorded:recordings" not in json.dumps([s for s in code if "Refine.model" in s])


def test_a_stale_recording_names_the_command_that_mends_it() -> None:
    assert RECORD_ANEW.format("03").endswith("`python tests/support/notebooks.py 03`")
    with pytest.raises(UsageError, match="IPYREFINE_RECORD=1"):
        read_recording(FOLDER / "recordings" / "99.json")


@pytest.mark.model
@pytest.mark.parametrize("digits", ON_THE_MODEL)
async def test_a_notebook_runs_on_the_embedded_model(digits: str, tmp_path: Path) -> None:
    path = next(path for path in NOTEBOOKS if number(path) == digits)
    notebook = live(nbformat.read(path, as_version=4))
    await execute(notebook, tmp_path, {"IPYREFINE_MODEL": "qwen2.5-coder-0.5b"}, seconds=900)
    if digits != "01":
        return
    records = [o.data for o in outputs(notebook, "%%refine") if "text/html" in o.get("data", {})]
    assert records, "the cell left no record"
    for mime in ("text/html", "text/markdown", "text/plain"):
        assert records[-1][mime].strip()
    printed = outputs(notebook, "print(refined)")
    assert "Stack" in "".join(o.text for o in printed if o.output_type == "stream")
    shown = outputs(notebook, "refined_run.score_history")[-1].data["text/plain"]
    assert "StopReason" in shown
