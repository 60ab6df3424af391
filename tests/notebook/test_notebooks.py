"""The notebooks that come with the source: their outputs, their recordings, the embedded model."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from notebooks import (
    BY_HAND,
    EXECUTE,
    FOLDER,
    NOTEBOOKS,
    RECORDINGS,
    UPDATE,
    CellFailed,
    execute,
    is_current,
    live,
    number,
    outcomes,
    outputs,
    replay,
)

from ipyrefine.providers.replay import Recording, read_recording
from ipyrefine.providers.weights import WEIGHTS
from ipyrefine.session.record import MIME

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
ON_THE_MODEL = ("01", "02")  # the others only need more of its minutes
EXERCISES_DECIDE = ("01", "03")  # on the run above them, whose record is another one then


# What a machine, a moment or a live page leaves in a notebook.
VOLATILE = re.compile(
    rf"{re.escape(str(Path.home()))}/|/tmp/|127\.0\.0\.1|0x[0-9a-f]{{6,}}|widget-view"
    r"|iopub|/site-packages/"
)


def outputs_of(notebook: Any, source: str) -> list[Any]:
    return next(c.outputs for c in notebook.cells if c.source.startswith(source))


def code_cells(path: Path) -> list[Any]:
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


@each
def test_a_notebook_is_valid_names_its_kernel_and_is_executed_from_top_to_bottom(
    path: Path,
) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    counts = [cell.execution_count for cell in code_cells(path)]
    assert counts == [*range(1, len(counts) + 1)]
    assert counts


@each
def test_a_notebook_is_titled_by_one_idea_and_ends_with_exercises(path: Path) -> None:
    texts = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown"]
    titles = [line for text in texts for line in text.splitlines() if re.match("# ", line)]
    assert texts[0].startswith("# ")
    assert len(titles) == 1
    assert any("**What to look at:**" in text for text in texts)
    assert texts[-1].startswith("## Exercise")


@each
def test_a_notebook_has_an_objective_solutions_and_the_minutes_that_teachers_are_told(
    path: Path,
) -> None:
    cells = nbformat.read(path, as_version=4).cells
    minutes = re.search(r"\*\*Objective:\*\* .+ \*\*Minutes:\*\* (\d+)\.", cells[0].source)
    assert minutes
    assert "**Before it:** " in cells[0].source
    table = (FOLDER / "README.md").read_text("utf-8")
    assert re.search(rf"^\| \[{number(path)}\].+ \| {minutes[1]} \| .+ \|$", table, re.MULTILINE)
    assert "<details>\n<summary>Solutions</summary>\n\n1. " in cells[-1].source


@each
def test_a_link_to_a_file_of_the_project_leads_there(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    links = re.findall(r"\]\(((?!http)[^)#]+)", "".join(c.source + "\n" for c in cells))
    assert [link for link in links if not (FOLDER / link).exists()] == []


@each
def test_a_teaching_cell_imports_public_names_only(path: Path) -> None:
    """`ipyrefine` itself, and no module inside it."""
    internal = re.compile(r"^\s*(?:from|import) ipyrefine\.\S+", re.MULTILINE)
    assert [line for cell in code_cells(path) for line in internal.findall(cell.source)] == []


@each
def test_stored_outputs_show_each_run_without_a_kernel_and_nothing_of_a_machine(
    path: Path,
) -> None:
    for cell in code_cells(path):
        assert not VOLATILE.search(json.dumps([cell.outputs, cell.metadata]))
        if cell.source.startswith("%%refine"):
            [record] = [output.data for output in cell.outputs if MIME in output.get("data", {})]
            assert {"text/html", "text/markdown", "text/plain"} <= set(record)


@each
async def test_the_recording_gives_the_stored_outputs_and_what_the_exercises_start_from(
    path: Path,
) -> None:
    """Without a model or a key; a call that is not in the recording fails the notebook."""
    stored = nbformat.read(path, as_version=4)
    deciding = number(path) in EXERCISES_DECIDE
    executed = await replayed(path, exercises=not deciding)
    if deciding:
        await replayed(path, exercises=True)
    del executed.cells[len(stored.cells) :]
    assert outcomes(executed) == outcomes(stored)
    if not is_current(path, executed):
        assert outputs(stored) == outputs(executed), (
            f"The outputs have changed. Store them with `{EXECUTE.format(number(path))}`."
        )


async def replayed(path: Path, **options: Any) -> Any:
    try:
        return await replay(path, **options)
    except CellFailed as failure:
        if "not in the recording" in failure.said:
            command = UPDATE.format(number(path))
            pytest.fail(f"The loop asks other things now. Record it with `{command}`.\n{failure}")
        raise


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_recording_is_of_the_embedded_model_or_by_hand_and_says_which_and_when(
    path: Path,
) -> None:
    recording: Recording = read_recording(path)
    assert recording.calls
    names = [source.name for source in recording.models]
    [notebook] = FOLDER.glob(f"{path.stem}-*.ipynb")
    first = nbformat.read(notebook, as_version=4).cells[0].source
    assert ("written by hand" in first) is (names == [BY_HAND])
    for source in recording.models:
        weights = WEIGHTS[source.name].sha256 if source.name != BY_HAND else ""
        assert source.weights == weights
    assert {call.model for call in recording.calls} == {one.name for one in recording.models}
    assert recording.ipyrefine
    assert recording.date >= "2026-11-01"
    assert path.stat().st_size < 200_000


@pytest.mark.model
@pytest.mark.timeout(900)  # its replies are drawn, and some are long
@pytest.mark.parametrize("digits", ON_THE_MODEL)
async def test_a_notebook_runs_on_the_embedded_model(digits: str, tmp_path: Path) -> None:
    path = next(path for path in NOTEBOOKS if number(path) == digits)
    notebook = live(nbformat.read(path, as_version=4))
    confirming = [c for c in notebook.cells if c.source.startswith("%refine confirm")]
    for cell in confirming:  # a model this small may write nothing that has results
        cell.metadata.tags = ["raises-exception"]
    await execute(notebook, tmp_path, {"IPYREFINE_MODEL": "qwen2.5-coder-0.5b"}, seconds=900)
    errors = [o for c in confirming for o in c.outputs if o.output_type == "error"]
    assert all("There is no result" in error.evalue for error in errors)
    if digits != "01":
        return
    records = [o.data for o in outputs_of(notebook, "%%refine") if "text/html" in o.get("data", {})]
    assert records, "the cell left no record"
    for mime in ("text/html", "text/markdown", "text/plain"):
        assert records[-1][mime].strip()
    printed = outputs_of(notebook, "print(refined)")
    assert "average" in "".join(o.text for o in printed if o.output_type == "stream")
    shown = outputs_of(notebook, "refined_run.score_history")[-1].data["text/plain"]
    assert "StopReason" in shown
