"""`ipyrefine demo`: one task, refined live or replayed, in the terminal or in JupyterLab.

`task.txt` holds the task and `recording.json` its recording. To replace them, change the task,
delete the recording and run ``IPYREFINE_RECORD=1 ipyrefine demo --replay`` with a model configured.
"""

import argparse
import asyncio
import math
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import nbformat.sign

from ipyrefine import api
from ipyrefine.core.model import Limits
from ipyrefine.errors import Interrupted, NoModel, UsageError
from ipyrefine.folders import home
from ipyrefine.journal.writer import open_journal
from ipyrefine.providers import weights
from ipyrefine.providers.replay import PREFIX, read_recording
from ipyrefine.session.screen import Transcript, ask
from ipyrefine.session.session import Session

_nbformat: Any = nbformat  # it has no types
_sign: Any = nbformat.sign
TASK = Path(__file__).with_name("task.txt")
RECORDING = Path(__file__).with_name("recording.json")
SPEED = 5  # times the recorded pace
_TOKENS = 400  # of a reply; the task's code takes some 120
_NO_RUNTIME = (
    'The embedded model needs `pip install "ipyrefine[local]"`. Or set OPENAI_API_KEY, or see a '
    "recorded run with `ipyrefine demo --replay`."
)
_FETCH = """\
Fetching {name}: {size:.1f} GB, about {minutes} min at 100 Mbit/s.
A run then takes some 20 s on two cores. Without a download: set OPENAI_API_KEY,
or see a recorded run with `ipyrefine demo --replay`.
"""
_LAB = """\
The notebooks replay recorded runs. To run your own cells on this machine, fetch a model:
`ipyrefine pull {name}` ({size:.1f} GB).
"""
_NEXT = """\
Next, in Jupyter or IPython:  %load_ext ipyrefine, then a cell that starts
with %%refine.  A notebook that shows it:  ipyrefine demo --lab
"""
_REPLAYED = """
Replayed from {model}, {date}.  Live:  ipyrefine demo
"""


def run_demo(options: argparse.Namespace) -> int:
    """Refine the demonstration's task, print what happens, and return the exit status.

    Raises:
        UsageError: an option cannot be used.
        RefineError: what ended the run early.
    """
    name = options.model or os.environ.get("IPYREFINE_MODEL")
    server = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    embedded = name in weights.WEIGHTS or not (name or server)
    names = [name] if name in weights.WEIGHTS else [weights.DEFAULT, weights.LIGHT]
    missing = embedded and not any(map(weights.find, names))
    wanted = weights.WEIGHTS[names[0]]
    if options.lab:
        if missing:
            print(_LAB.format(name=wanted.name, size=wanted.size / 1e9))
        return _open_lab(name)
    if options.max_revisions < 0:
        raise UsageError("--max-revisions must be 0 or more.")
    note = _NEXT
    if options.replay:
        if options.model:
            raise UsageError("--replay needs no model. Leave out --model.")
        name = f"{PREFIX}{RECORDING}@{SPEED}"
        if RECORDING.exists():
            recording = read_recording(RECORDING)
            note = _REPLAYED.format(model=recording.models[0].name, date=recording.date) + note
    elif missing:
        if find_spec("xllamacpp") is None:
            raise NoModel(_NO_RUNTIME)
        minutes = math.ceil(wanted.size * 8 / 1e8 / 60)
        print(_FETCH.format(name=wanted.name, size=wanted.size / 1e9, minutes=minutes), flush=True)
        weights.pull(wanted.name)
    # Small models mend code by trying again: only the number of revisions stops them.
    limits = {"max_revisions": options.max_revisions, "patience": None}
    if embedded or options.replay:
        limits["max_tokens"] = _TOKENS
    return asyncio.run(_refine(name, Limits.model_validate(limits), note))


async def _refine(name: str | None, limits: Limits, note: str) -> int:
    refinement = api.build(TASK.read_text("utf-8"), model=name, profile="code", limits=limits)
    display = Transcript(below=note.count("\n") + 3)
    session = Session(refinement, [display], open_journal(name="demo"))
    run = await session.go()
    if session.interrupted:
        kept = ". The best text so far is above." if run.text else " before the first draft."
        raise Interrupted(f"Interrupted{kept}")
    api.raise_failure(refinement)
    print(note, flush=True)
    await ask(session)
    return 0


def _open_lab(model: str | None) -> int:
    """Open a copy of the first notebook, which needs no model."""
    if find_spec("jupyterlab") is None:
        raise UsageError('JupyterLab is not installed: `pip install "ipyrefine[notebooks]"`.')
    copies = home() / "notebooks"
    _copy_notebooks(notebooks(), copies)
    print(
        f"Your copies of the notebooks are in {copies}. Delete one to get a fresh copy.", flush=True
    )
    command = [sys.executable, "-m", "jupyterlab", str(copies / "00-rows-that-went-missing.ipynb")]
    if getattr(os, "geteuid", lambda: 1)() == 0:  # as in most containers
        print("JupyterLab refuses root by default. Starting it with --allow-root.", flush=True)
        command.append("--allow-root")
    lab = subprocess.Popen(command, env=os.environ | ({"IPYREFINE_MODEL": model} if model else {}))
    while True:
        try:
            return lab.wait()
        except KeyboardInterrupt:  # JupyterLab got it, too, and asks whether to shut down
            continue


def notebooks() -> Path:
    """Return the folder of the notebooks: in the package, or in the checkout that it runs from."""
    installed = Path(__file__).with_name("notebooks")
    return installed if installed.is_dir() else Path(__file__).parents[3] / "notebooks"


def _copy_notebooks(source: Path, target: Path) -> None:
    """Copy what is not there yet; the copies are trusted, so that their records look right."""
    notary = _sign.NotebookNotary()

    def copy(one: str, other: str) -> None:
        if not os.path.exists(other):
            shutil.copyfile(one, other)
            if other.endswith(".ipynb"):
                notary.sign(_nbformat.read(other, as_version=4))

    shutil.copytree(source, target, copy_function=copy, dirs_exist_ok=True)
    notary.store.close()
