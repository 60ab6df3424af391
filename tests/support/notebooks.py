"""Record the teaching notebooks, and store them with the outputs that their recordings give.

``python tests/support/notebooks.py 01 03`` brings notebooks 01 and 03 up to date; without numbers,
all of them. One whose recording still replays is executed from it, and its outputs are stored. Any
other is recorded on the configured model (``IPYREFINE_MODEL``, else the embedded one) first: an
interrupted recording continues, and ``--anew`` starts over. ``--execute`` never asks a model. A
recording whose replies were written by hand is recorded with the same replies, in their order. A
notebook that fails names its cell, and the others go on.
"""

import argparse
import asyncio
import copy
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kernel  # noqa: F401 - so that kernels can be forked
import nbformat
from markupsafe import Markup
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from numbers_in_words import numbers_in_words
from openai_server import ScriptedServer

from ipyrefine.core.run import Run
from ipyrefine.providers.replay import BY_HAND, read_recording
from ipyrefine.session.record import MIME, bundle, read_one, stored_records

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RECORDINGS = FOLDER / "recordings"
UPDATE = "python tests/support/notebooks.py {}"
EXECUTE = f"{UPDATE} --execute"
_REPLAYED = re.compile(r'"?recorded:recordings/\d\d\.json"?')
_EXERCISE = re.compile(r"^```python\n(.+?)^```", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
_NO_FIGURE = re.compile(
    r"```.*?```|`[^`]*`|\]\([^)]*\)|^\s*\d+\. |\b(?:notebook|exercise) \d+",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_IMAGE = re.compile("image/")
_CLOCK = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b")
_INLINE = "module://matplotlib_inline.backend_inline"
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
    keep: int | None = None,
) -> Any:
    """Execute a notebook in a folder, with a journal of its own; returns it with outputs.

    Of a notebook with more than ``keep`` cells, what it was before the next began is returned.

    Raises:
        CellFailed: a cell raised, took more than so many seconds, or ended the kernel.
    """
    reached, kept = ["the start"], notebook

    def start(cell: Any, cell_index: int) -> None:
        nonlocal kept
        reached.append(_place(cell, cell_index))
        if cell_index == keep:
            kept = copy.deepcopy(notebook)
            del kept.cells[keep:]

    client = NotebookClient(
        notebook,
        timeout=seconds,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=start,
    )
    given = os.environ | {"IPYREFINE_HOME": str(home), "MPLBACKEND": _INLINE} | dict(env)
    try:
        await client.async_execute(env=given, forked=True)
    except CellExecutionError as error:
        said = f"{error.ename}: {error.evalue}"
        raise CellFailed(f"{reached[-1]}: {said}", said) from None
    except (CellControlSignal, DeadKernelError) as error:
        said = str(error).splitlines()[0]
        raise CellFailed(f"{reached[-1]}: {said}", said) from None
    return kept


def _place(cell: Any, index: int) -> str:
    """A cell by its number, counted from one, and its first line."""
    return f"cell {index + 1} ({(cell.source.splitlines() or [''])[0]})"


def outcomes(notebook: Any) -> list[dict[str, Any]]:
    """What became of each run that a notebook carries, or what it printed of runs in Python."""
    runs = [read_one(one, FOLDER) for one in stored_records(json.loads(json.dumps(notebook)))]
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


async def replay(path: Path) -> Any:
    """Execute a notebook on its recording alone; returns it with the outputs to store.

    Raises:
        CellFailed: a cell asks what is not in the recording, or fails otherwise.
    """
    return (await replay_exercises(path, lambda _: []))[0]


async def replay_exercises(
    path: Path, proposed: Callable[[str], list[str]] = _EXERCISE.findall
) -> tuple[Any, list[Any]]:
    """Execute a notebook, then the cells that its exercises propose.

    Args:
        path: the notebook.
        proposed: returns those cells' sources, of the last cell's source.

    Returns:
        The notebook as `replay` returns it, and all cells as the last of them left them.
    """
    notebook = nbformat.read(path, as_version=4)
    own = len(notebook.cells)
    notebook.cells += map(nbformat.v4.new_code_cell, proposed(notebook.cells[-1].source))
    with tempfile.TemporaryDirectory() as home:
        executed = await execute(notebook, Path(home), _NO_MODEL, folder=path.parent, keep=own)
    whole = copy.deepcopy(notebook.cells)
    return _stable(executed), whole


def printed(cells: Iterable[Any]) -> str:
    """Return what cells show as text."""
    found = (output for cell in cells for output in cell.get("outputs", []))
    return "\n".join(
        one.get("text") or _words(one.get("data", {})) or one.get("evalue", "") for one in found
    )


def _words(data: Any) -> str:
    html = data.get("text/html", "").rpartition("</style>")[2].replace("<", " <")
    return Markup(html).striptags() or data.get("text/plain", "")


def figures(text: str, *, words: bool = False) -> set[float]:
    """Return the numbers that a text names, without those of code, links, lists and notebooks.

    Args:
        text: prose, or what was printed.
        words: whether numbers in words count, too.
    """
    prose = _NO_FIGURE.sub(" ", text)
    found = {float(one.replace(",", "")) for one in _NUMBER.findall(prose)}
    return found | (numbers_in_words(prose) if words else set())


def numbered(text: str) -> dict[str, str]:
    """Return the items of a numbered list, such as exercises or their solutions."""
    _, *parts = re.split(r"^(\d+)\. ", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _stable(notebook: Any) -> Any:
    """Return an executed notebook without what differs between machines, and between two runs."""
    notebook.metadata.language_info.pop("version", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when each cell ran
        if cell.cell_type == "code":
            # Standard error has progress bars and a library's notices.
            cell.outputs = _join([o for o in cell.outputs if o.get("name") != "stderr"])
        for output in cell.get("outputs", []):
            if MIME in output.get("data", {}):
                output.data = nbformat.from_dict(_record(output.data[MIME]))
    return notebook


def _join(outputs: Sequence[Any]) -> list[Any]:
    """Return outputs with what was printed in pieces as one: chance cuts it."""
    joined = list[Any]()
    for output in outputs:
        if joined and output.get("name") == joined[-1].get("name") == "stdout":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _record(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's record with zero for all seconds, which a replay spends on nothing."""
    [one] = stored_records(_without_seconds(stored))
    return bundle(read_one(one, FOLDER))


def _without_seconds(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_seconds(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: one if name == "budget" else 0.0 if name == "seconds" else _without_seconds(one)
        for name, one in value.items()
    }


def outputs(notebook: Any, *, images: bool = False) -> list[Any]:
    """Return the outputs of a notebook's cells, at one time of day; of images only the kind.

    Args:
        notebook: the notebook.
        images: whether images are returned too, which may differ on another machine.
    """
    found = copy.deepcopy([cell.get("outputs") for cell in notebook.cells])
    for output in (output for cell in found for output in cell or ()):
        if "text" in output:
            output["text"] = _CLOCK.sub("2026-06-01 12:00", output["text"])
    for output in (output for cell in found if not images for output in cell or ()):
        for kind in filter(_IMAGE.match, output.get("data", {})):
            output.data[kind] = ""
    return found


def is_current(path: Path, executed: Any) -> bool:
    """Return whether a notebook is stored with the outputs that an execution gave."""
    return outputs(nbformat.read(path, as_version=4)) == outputs(executed)


def store(path: Path, executed: Any) -> bool:
    """Store a notebook with its outputs if they or its images have changed; returns whether."""
    kept = nbformat.read(path, as_version=4)
    if changed := outputs(kept, images=True) != outputs(executed, images=True):
        nbformat.write(executed, path)
    return changed


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
    notebook = nbformat.read(path, as_version=4)
    finished = any(cell.get("outputs") for cell in notebook.cells)
    if finished and not anew and await _replays(path):
        return False
    written = _written_by_hand(recording)
    replies = [text for text, _ in written]
    if finished or anew or replies:
        recording.unlink(missing_ok=True)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, path)
    with tempfile.TemporaryDirectory() as home, ScriptedServer().then(*replies) as server:
        env = {"IPYREFINE_RECORD": "1"}
        if replies:
            env |= {"IPYREFINE_MODEL": BY_HAND, "OPENAI_BASE_URL": server.base_url}
        await execute(notebook, Path(home), env, seconds=3600, folder=path.parent)
        if server.queue:
            raise CellFailed(f"{len(server.queue)} replies by hand were not asked for", "")
    for before, after in zip(written, _written_by_hand(recording), strict=True):
        if before != after:
            raise CellFailed(f"written for a {before[1]}, asked for as a {after[1]}", before[0])
    store(path, await replay(path))  # a model that failed without a word would be missed here
    return True


def _written_by_hand(recording: Path) -> list[tuple[str, str]]:
    """Return the replies of a recording that a person wrote, each with the stage it is for."""
    calls = read_recording(recording).calls if recording.exists() else ()
    return [(call.joined("text"), call.purpose) for call in calls if call.model == BY_HAND]


async def _replays(path: Path) -> bool:
    """Return whether a notebook replays into its stored runs; if so, store its outputs."""
    try:
        executed = await replay(path)
    except CellFailed as failure:
        print(f"{path.stem} no longer replays. {failure}", flush=True)
        return False
    if same := outcomes(executed) == outcomes(nbformat.read(path, as_version=4)):
        store(path, executed)
    return same


async def update(paths: Sequence[Path], *, anew: bool = False, live: bool = True) -> list[str]:
    """Bring notebooks up to date one after the other; returns what failed, a line each.

    Args:
        paths: the notebooks.
        anew: whether all are recorded again.
        live: whether a model may be asked; without it they are only executed.
    """
    failed = []
    for path in paths:
        began = time.monotonic()
        print(f"{path.stem} …", flush=True)
        try:
            if live:
                done = "recorded" if await record(path, anew=anew) else "still replays"
            else:
                done = "stored" if store(path, await replay(path)) else "current"
        except CellFailed as failure:
            failed.append(f"{path.stem}, {failure}")
            print(f"  failed: {failure}", flush=True)
            continue
        print(f"  {done}, {time.monotonic() - began:.0f} s", flush=True)
        for one in outcomes(nbformat.read(path, as_version=4)):
            print(f"  {one}", flush=True)
    return failed


def main() -> None:
    """Bring the named notebooks up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = [number(path) for path in NOTEBOOKS]
    parser.add_argument("notebook", nargs="*", help=f"its number: {', '.join(numbers)}")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--anew", action="store_true", help="record again, whatever is recorded")
    how.add_argument("--execute", action="store_true", help="store the outputs; ask no model")
    options = parser.parse_args()
    if unknown := set(options.notebook) - set(numbers):
        parser.error(f"there is no notebook {', '.join(sorted(unknown))}")
    chosen = [path for path in NOTEBOOKS if number(path) in (options.notebook or numbers)]
    if failed := asyncio.run(update(chosen, anew=options.anew, live=not options.execute)):
        sys.exit("Failed:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
