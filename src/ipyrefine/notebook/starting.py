"""How a run starts: from a `%%refine` cell, or from where an earlier one stopped."""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from ipyrefine import checks
from ipyrefine.checks import variables
from ipyrefine.core.runs import Run
from ipyrefine.errors import UsageError
from ipyrefine.journal.recorder import Recorder, recorder
from ipyrefine.journal.store import Journal
from ipyrefine.notebook import asking, options
from ipyrefine.notebook.cell import CellRun
from ipyrefine.notebook.placeholder import Opening
from ipyrefine.providers.errors import safe_url
from ipyrefine.resuming import go_on

# What a run that goes on may be given anew; everything else was settled when it started.
_CHANGEABLE = frozenset(
    ("model", "judge", "base_url", "check", "var", "output", "apply", "journal", "plain", "quiet")
)
_KEPT = ("check", "var", "output", "apply")


def from_cell(magics: Any, line: str, body: str, opening: Opening) -> CellRun:
    """Make a run of a `%%refine` cell.

    Args:
        magics: the configured magics, with their shell.
        line: the options.
        body: the cell below them.
        opening: the panel's place in the cell's output.

    Raises:
        UsageError: an option or the body cannot be used; nothing was started.
        NoModel: no model is configured.
    """
    chosen = options.parse(line)
    if not body.strip():
        raise UsageError("The cell is empty: write a task or a draft below %%refine.")
    refinement, resolved = asking.refinement(magics, chosen, body)
    journal = recorder(
        chosen.journal and magics.journal,
        name=chosen.name or "",
        settings=_settings(chosen, chosen.base_url or magics.base_url),
    )
    return CellRun(magics, chosen, refinement, resolved, journal, opening)


class Earlier(NamedTuple):
    """A run to go on with, the options it had, and what its next events are written with."""

    run: Run
    settings: dict[str, Any]
    journal: Recorder | None


def from_run(magics: Any, words: list[str]) -> CellRun:
    """Make a run of an earlier one: ``[NAME | FILE.ipynb [k]] [options]``.

    Args:
        magics: the configured magics, with their shell.
        words: which run, and the options it goes on with.

    Raises:
        UsageError: there is no such run, or an option cannot be used.
        JournalError: the journal cannot be read.
        NoModel: the run's model is not to be had here.
    """
    cut = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    chosen = _checked(options.read(words[cut:]))
    earlier = _earlier(words[:cut], chosen.journal and magics.journal)
    settings = earlier.settings
    for name in _KEPT:
        setattr(chosen, name, getattr(chosen, name) or settings.get(name))
    space = magics.shell.user_ns
    resolved = checks.resolve(
        chosen.check or earlier.run.checks,
        space,
        target=earlier.run.limits.target,
        variables=variables.gather(chosen.var or [], space),
    )
    refinement = go_on(
        earlier.run,
        model=chosen.model,
        judge=chosen.judge,
        base_url=chosen.base_url or settings.get("base_url") or magics.base_url or None,
        checks=resolved,
    )
    return CellRun(magics, chosen, refinement, resolved, earlier.journal)


def _earlier(words: list[str], keep: bool) -> Earlier:
    which = words[0] if words else ""
    if which.lower().endswith((".ipynb", ".json")):
        run = _from_file(Path(which).expanduser(), words[1:])
        return Earlier(run, {}, recorder(keep, origin=run))
    if len(words) > 1:
        raise UsageError("Say one run: %refine resume NAME, or %refine resume FILE.ipynb 0.")
    stored = Journal().get(which)
    journal = Journal().recorder(stored) if keep else None
    return Earlier(stored.run, stored.settings, journal)


def _from_file(path: Path, words: list[str]) -> Run:
    from ipyrefine.session.record import read

    runs = read(path)
    if not runs:
        raise UsageError(f"{path} holds no record of a run.")
    number = words[0] if words else str(len(runs) - 1)
    if not number.isdecimal() or int(number) >= len(runs):
        raise UsageError(f"{path} holds the runs 0 to {len(runs) - 1}, not {number!r}.")
    chosen = runs[int(number)]
    if not chosen.whole:
        raise UsageError(f"The record in {path} was cut, so that it cannot be gone on with.")
    return chosen.run


def _checked(chosen: argparse.Namespace) -> argparse.Namespace:
    for name, default in vars(options.read([])).items():
        if name not in _CHANGEABLE and getattr(chosen, name) != default:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} was settled when the run started; resume cannot change it.")
    return chosen


def _settings(chosen: argparse.Namespace, base_url: str) -> dict[str, Any]:
    """What `from_run` needs of the options; an address without its credentials."""
    kept = {name: getattr(chosen, name) for name in _KEPT if getattr(chosen, name)}
    return kept | ({"base_url": safe_url(base_url)} if base_url else {})
