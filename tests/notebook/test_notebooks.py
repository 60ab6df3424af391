"""The notebooks that come with the source: their outputs, their recordings, the embedded model."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
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
    figures,
    is_current,
    live,
    number,
    numbered,
    outcomes,
    outputs,
    printed,
    replay_exercises,
)

from ipyrefine.core.actions import commands
from ipyrefine.core.coach import open_puzzle
from ipyrefine.core.model import bare
from ipyrefine.notebook.options import parse
from ipyrefine.providers.replay import Recording, read_recording
from ipyrefine.providers.weights import WEIGHTS
from ipyrefine.session.record import MIME, read_one, stored_records

ON_THE_MODEL = ("01", "02")  # the others only need more of its minutes

# What a machine, a moment or a live page leaves in a notebook.
VOLATILE = re.compile(
    rf"{re.escape(str(Path.home()))}/|/tmp/|127\.0\.0\.1|0x[0-9a-f]{{6,}}|widget-view"
    r"|iopub|/site-packages/"
)

VERDICT = re.compile(r"\b(?:PASS|NEEDS IMPROVEMENT|FAILS?|NOT JUDGED|NOT RUN|NOTHING FOUND|RUNS)\b")


each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path: Path, kind: str) -> list[Any]:
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == kind]


@each
def test_a_notebook_is_valid_and_stored_as_executed_from_top_to_bottom(path):
    """It shows each run without a kernel, and nothing of a machine."""
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    cells = cells_of(path, "code")
    assert cells
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    for cell in cells:
        assert not VOLATILE.search(json.dumps([cell.outputs, cell.metadata]))
        if cell.source.startswith("%%refine"):
            [record] = [output.data for output in cell.outputs if MIME in output.get("data", {})]
            assert {"text/html", "text/plain"} <= set(record)


@each
def test_a_notebook_has_one_idea_an_objective_solutions_and_the_minutes_that_teachers_are_told(
    path,
):
    texts = [cell.source for cell in cells_of(path, "markdown")]
    titles = [line for text in texts for line in text.splitlines() if line.startswith("# ")]
    assert texts[0].startswith("# ")
    assert len(titles) == 1
    minutes = re.search(r"\*\*Objective:\*\* .+ \*\*Minutes:\*\* (\d+)\.", texts[0])
    assert minutes
    assert "**Before it:** " in texts[0]
    table = (FOLDER / "README.md").read_text("utf-8")
    assert re.search(rf"^\| \[{number(path)}\].+ \| {minutes[1]} \| .+ \|$", table, re.MULTILINE)
    assert any("**What to look at:**" in text for text in texts)
    assert texts[-1].startswith("## Exercise")
    assert "<details>\n<summary>Solutions</summary>\n\n1. " in texts[-1]


@each
def test_its_links_to_the_project_lead_there_and_its_code_imports_public_names_only(path):
    cells = nbformat.read(path, as_version=4).cells
    links = re.findall(r"\]\(((?!http)[^)#]+)", "".join(c.source + "\n" for c in cells))
    assert [link for link in links if not (FOLDER / link).exists()] == []
    internal = re.compile(r"^\s*(?:from|import) ipyrefine\.\S+", re.MULTILINE)
    code = "\n".join(cell.source for cell in cells_of(path, "code"))
    assert internal.findall(code) == []


@each
def test_its_commands_and_options_exist(path):
    sources = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    assert set(re.findall(r"(?<!%)%refine (\w+)", sources)) <= set(commands())
    for line in re.findall(r"%%refine (-[^\n`]+)", sources):
        parse(line)


@each
async def test_the_recording_gives_the_stored_outputs_and_what_the_exercises_start_from(
    path, warm_kernels
):
    """Without a model or a key; a call that is not in the recording fails the notebook."""
    stored = nbformat.read(path, as_version=4)
    try:
        executed, whole = await replay_exercises(path)
    except CellFailed as failure:
        if "not in the recording" in failure.said:
            command = UPDATE.format(number(path))
            pytest.fail(f"The loop asks other things now. Record it with `{command}`.\n{failure}")
        raise
    assert outcomes(executed) == outcomes(stored)
    if not is_current(path, executed):
        assert outputs(stored) == outputs(executed), (
            f"The outputs have changed. Store them with `{EXECUTE.format(number(path))}`."
        )
    agree(whole[: len(stored.cells)], whole[len(stored.cells) :])


def agree(own: list[Any], proposed: list[Any]) -> None:
    """Hold what a notebook tells to what its cells and its exercises' cells show."""
    shown, last = printed([*own, *proposed]), own[-1].source
    exercises, solutions = last.split("<summary>Solutions</summary>")
    passages = [
        passage
        for cell in own
        if cell.cell_type == "markdown"
        for passage in cell.source.split("\n\n")
        if passage.startswith("**What to look at:**")
    ]
    told = figures("\n\n".join([*passages, solutions]), words=True)
    assert told - figures(shown) == set()
    at = {name: [c for c in proposed if c.source in text] for name, text in items(exercises)}
    for name, solution in items(solutions):
        there = printed(at.get(name, ()))
        told, came = verdicts(solution), verdicts(there) or verdicts(shown)
        assert told <= came, f"Exercise {name} shows {came}, and its solution tells {told}."
    for record in stored_records(json.loads(json.dumps({"cells": [*own, *proposed]}))):
        if puzzle := open_puzzle(read_one(record, FOLDER)):
            assert bare(puzzle.gives) in shown + solutions, puzzle.call


def items(text: str) -> Iterable[tuple[str, str]]:
    return numbered(text).items()


def verdicts(text: str) -> set[str]:
    return set(VERDICT.findall(text.replace("NEEDS_", "NEEDS ").replace("NOT_", "NOT ")))


MEASURED = ("MEASURED", "STAGES", "EFFORT", "PAIRS")
PRINTED = [*FOLDER.parent.glob("bench/kept/printed/*.md")]


@each
def test_what_it_tells_of_measurements_is_what_the_benches_print(path):
    """What can't be measured again is not taught as a number."""
    known = figures("\n".join(page.read_text("utf-8") for page in PRINTED))
    known |= figures(printed(cells_of(path, "code")))
    passages = (p for cell in cells_of(path, "markdown") for p in cell.source.split("\n\n"))
    told = [
        figures(one, words=True) for one in passages if re.search("measured", one, re.IGNORECASE)
    ]
    assert set().union(*told) - known == set()


@pytest.mark.parametrize(("digits", "tables"), [("07", 3), ("11", 1)])
def test_its_tables_of_measurements_are_what_the_benches_print(digits, tables):
    [path] = (path for path in NOTEBOOKS if number(path) == digits)
    known = figures("\n".join(page.read_text("utf-8") for page in PRINTED))
    found = [
        ast.literal_eval(node.value)
        for cell in cells_of(path, "code")
        for node in ast.walk(ast.parse(re.sub(r"(?m)^%.*", "", cell.source)))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in MEASURED
    ]
    assert len(found) == tables
    assert set(leaves(found)) - known == set()


def leaves(value: Any) -> Iterator[float]:
    if isinstance(value, int):
        yield value
    else:
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_recording_is_of_the_embedded_model_or_by_hand_and_says_which_and_when(path):
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
async def test_a_notebook_runs_on_the_embedded_model(digits, tmp_path):
    path = next(path for path in NOTEBOOKS if number(path) == digits)
    notebook = live(nbformat.read(path, as_version=4))
    confirming = [c for c in notebook.cells if c.source.startswith("%refine right")]
    for cell in confirming:  # a model this small may write nothing that has results
        cell.metadata.tags = ["raises-exception"]
    await execute(notebook, tmp_path, {"IPYREFINE_MODEL": "qwen2.5-coder-0.5b"}, seconds=900)
    errors = [o for c in confirming for o in c.outputs if o.output_type == "error"]
    assert all("There is no result" in error.evalue for error in errors)
