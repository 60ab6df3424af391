"""Executes the teaching notebooks, on their recordings or to make them anew.

``python tests/support/notebooks.py 03 05`` records notebooks 03 and 05 anew on the configured
model (``IPYREFINE_MODEL``, else the embedded one); ``--go-on`` keeps the calls there are.
"""

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from ipyrefine.loop.runs import Run
from ipyrefine.notebook.record import recorded

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RECORDINGS = FOLDER / "recordings"
OUTCOMES = RECORDINGS / "outcomes.json"
RECORD_ANEW = "record it anew with `python tests/support/notebooks.py {}`"
_REPLAYED = re.compile(r'"?recorded:recordings/\d\d\.json"?')


def number(path: Path) -> str:
    """The two digits a notebook's name starts with."""
    return path.name[:2]


def live(notebook: Any) -> Any:
    """The notebook with the configured model in place of its recording."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = _REPLAYED.sub('""', cell.source)
    return notebook


async def execute(notebook: Any, home: Path, env: Mapping[str, str], seconds: int = 120) -> Any:
    """Execute a notebook in its folder, with a journal of its own; returns it with outputs."""
    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    )
    given = os.environ | {"IPYREFINE_HOME": str(home), "MPLBACKEND": "agg"} | dict(env)
    await client.async_execute(env=given)
    return notebook


def outcomes(notebook: Any) -> list[dict[str, Any]]:
    """What became of each run that a notebook carries."""
    runs = [one.run for one in recorded(json.loads(json.dumps(notebook)), FOLDER)]
    return [outcome(run) for run in runs]


def outcome(run: Run) -> dict[str, Any]:
    """What became of a run: why it stopped, each score, and which text is the best."""
    return {
        "task": (run.task.text if run.task else "").splitlines()[0],
        "stop": run.stop_reason,
        "scores": list(run.score_history),
        "best": run.best,
        "tokens": run.usage.tokens,
    }


def known() -> dict[str, Any]:
    """The outcomes of the recorded runs, by notebook."""
    return json.loads(OUTCOMES.read_text("utf-8")) if OUTCOMES.exists() else {}


async def record(path: Path, go_on: bool) -> None:
    """Make a notebook's recording from a run on the configured model."""
    recording = RECORDINGS / f"{number(path)}.json"
    if not go_on:
        recording.unlink(missing_ok=True)
    began = time.monotonic()
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as home:
        await execute(notebook, Path(home), {"IPYREFINE_RECORD": "1"}, seconds=3600)
    all_of_them = known() | {number(path): outcomes(notebook)}
    text = json.dumps(all_of_them, indent=1, sort_keys=True, ensure_ascii=False)
    OUTCOMES.write_text(text + "\n", "utf-8")
    print(f"{path.stem}: {time.monotonic() - began:.0f} s")
    for came in outcomes(notebook):
        print("  ", came)


async def main() -> None:
    """Record the notebooks that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", nargs="+", help="its number, such as 03")
    parser.add_argument("--go-on", action="store_true", help="keep the calls recorded before")
    options = parser.parse_args()
    for path in NOTEBOOKS:
        if number(path) in options.notebook:
            await record(path, options.go_on)


if __name__ == "__main__":
    asyncio.run(main())
