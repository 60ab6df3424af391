"""Executes the teaching notebooks, on their recordings or to make them.

``python tests/support/notebooks.py 01 03`` records notebooks 01 and 03 on the configured model
(``IPYREFINE_MODEL``, else the embedded one); without numbers, all of them. One whose recording
still replays is skipped, one that was interrupted goes on where it was, and ``--anew`` begins
again. A notebook that fails names its cell, and the others go on.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError

from ipyrefine.core.run import Run
from ipyrefine.journal.store import Journal
from ipyrefine.session.audit import audit
from ipyrefine.session.record import Recorded, read_json

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RECORDINGS = FOLDER / "recordings"
OUTCOMES = RECORDINGS / "outcomes.json"
RECORD_ANEW = "record it anew with `python tests/support/notebooks.py {}`"
_REPLAYED = re.compile(r'"?recorded:recordings/\d\d\.json"?')
_NO_MODEL = {"IPYREFINE_MODEL": "recorded:none.json", "IPYREFINE_RECORD": ""}


class CellFailed(Exception):
    """A cell of a notebook did not run to its end.

    Attributes:
        said: the error's own message.
    """

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


def number(path: Path) -> str:
    """The two digits a notebook's name starts with."""
    return path.name[:2]


def live(notebook: Any) -> Any:
    """The notebook with the configured model in place of its recording."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = _REPLAYED.sub('""', cell.source)
    return notebook


async def execute(
    notebook: Any,
    home: Path,
    env: Mapping[str, str],
    seconds: int = 120,
    folder: Path = FOLDER,
) -> Any:
    """Execute a notebook in a folder, with a journal of its own; returns it with outputs.

    Raises:
        CellFailed: a cell raised, took more than so many seconds, or ended the kernel.
    """
    reached = ["the start"]
    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: reached.append(_place(cell, cell_index)),
    )
    given = os.environ | {"IPYREFINE_HOME": str(home), "MPLBACKEND": "agg"} | dict(env)
    try:
        await client.async_execute(env=given)
    except CellExecutionError as error:
        said = f"{error.ename}: {error.evalue}"
        raise CellFailed(f"{reached[-1]}: {said}", said) from None
    except (CellControlSignal, DeadKernelError) as error:
        said = str(error).splitlines()[0]
        raise CellFailed(f"{reached[-1]}: {said}", said) from None
    return notebook


def _place(cell: Any, index: int) -> str:
    """A cell by its number, counted from one, and its first line."""
    return f"cell {index + 1} ({(cell.source.splitlines() or [''])[0]})"


def outcomes(notebook: Any) -> list[dict[str, Any]]:
    """What became of each run that a notebook carries, or what it printed of runs in Python."""
    runs = [one.run for one in read_json(json.loads(json.dumps(notebook)), FOLDER)]
    if runs:
        return [outcome(run) for run in runs]
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return [{"printed": o.text.splitlines()} for o in outputs if o.get("name") == "stdout"]


def outcome(run: Run) -> dict[str, Any]:
    """Return a run's verdict with its basis, why it stopped, its scores and its best text."""
    return {
        "task": (run.task.text if run.task else "").splitlines()[0],
        "verdict": run.verdict.outcome if run.verdict else None,
        "basis": run.verdict.basis if run.verdict else None,
        "stop": run.stop_reason,
        "scores": list(run.score_history),
        "best": run.best,
        "calls": run.usage.calls,
        "tokens": run.usage.tokens,
    }


def known(file: Path = OUTCOMES) -> dict[str, Any]:
    """The outcomes of the runs that were recorded to their end, by notebook."""
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


async def replayed(path: Path, audits: list[str] | None = None) -> list[dict[str, Any]]:
    """Execute a notebook on its recording alone; returns what became of its runs.

    Args:
        path: the notebook.
        audits: filled with what an audit says of each run, in the journal and in the outputs.

    Raises:
        CellFailed: a cell asks what is not in the recording, or fails otherwise.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as home:
        await execute(notebook, Path(home), _NO_MODEL, folder=path.parent)
        if audits is not None:
            audits += [str(await audit(one)) for one in _recorded(notebook, Path(home))]
    return outcomes(notebook)


def _recorded(notebook: Any, home: Path) -> list[Recorded]:
    """Every run of an executed notebook: those of its journal, and those in its outputs."""
    journal = Journal(home / "journal" / "runs.db")
    kept = [Recorded(journal.get(str(one.number)).run, True) for one in journal.runs()]
    return kept + read_json(json.loads(json.dumps(notebook)), FOLDER)


async def record(path: Path, *, anew: bool = False) -> bool:
    """Make a notebook's recording on the configured model, or keep the one that is good.

    A recording that was begun is gone on with; one that was finished and no longer replays into
    the same runs is made anew.

    Args:
        path: the notebook; its recording lies beside it in `recordings/`.
        anew: whether to begin again in any case.

    Returns:
        Whether the model was asked.

    Raises:
        CellFailed: a cell failed; the calls so far are kept.
    """
    recording = path.parent / "recordings" / f"{number(path)}.json"
    file = recording.parent / OUTCOMES.name
    before = known(file)
    finished = recording.exists() and number(path) in before
    if finished and not anew and await _replays_into(path, before[number(path)]):
        return False
    if finished or anew:
        recording.unlink(missing_ok=True)
        _write(file, {name: came for name, came in before.items() if name != number(path)})
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as home:
        env = {"IPYREFINE_RECORD": "1"}
        await execute(notebook, Path(home), env, seconds=3600, folder=path.parent)
    came = await replayed(path)  # a model that failed without a word would be missed here
    _write(file, known(file) | {number(path): came})
    return True


async def _replays_into(path: Path, expected: list[dict[str, Any]]) -> bool:
    try:
        return json.loads(json.dumps(await replayed(path))) == expected
    except CellFailed as failure:
        print(f"{path.stem} no longer replays. {failure}", flush=True)
        return False


def _write(file: Path, came: Mapping[str, Any]) -> None:
    text = json.dumps(came, indent=1, sort_keys=True, ensure_ascii=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", "utf-8")


async def record_all(paths: Sequence[Path], *, anew: bool = False) -> list[str]:
    """Record notebooks one after the other and tell of each; returns what failed, a line each."""
    failed = []
    for path in paths:
        began = time.monotonic()
        print(f"{path.stem} …", flush=True)
        try:
            asked = await record(path, anew=anew)
        except CellFailed as failure:
            failed.append(f"{path.stem}, {failure}")
            print(f"  failed: {failure}", flush=True)
            continue
        said = f"recorded in {time.monotonic() - began:.0f} s" if asked else "good as it is"
        print(f"  {said}", *known().get(number(path), []), sep="\n  ", flush=True)
    return failed


def main() -> None:
    """Record the notebooks that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = [number(path) for path in NOTEBOOKS]
    parser.add_argument("notebook", nargs="*", help=f"its number: {', '.join(numbers)}")
    parser.add_argument("--anew", action="store_true", help="keep nothing recorded before")
    options = parser.parse_args()
    if strange := set(options.notebook) - set(numbers):
        parser.error(f"there is no notebook {', '.join(sorted(strange))}")
    chosen = [path for path in NOTEBOOKS if number(path) in (options.notebook or numbers)]
    if failed := asyncio.run(record_all(chosen, anew=options.anew)):
        sys.exit("Run it again to go on:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
