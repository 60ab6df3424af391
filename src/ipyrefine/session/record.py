"""Write the record of a run into a notebook, and read it from there or from an exported file.

In a notebook it is one output that needs no kernel.

A file from somebody else runs nothing here. Its records are validated as a whole, and its texts are
escaped wherever they are shown. Resuming takes from a file or the journal only built-in checks that
need nothing from the notebook; their code runs in the sandbox. Functions, tests, schemas,
variables, recordings and servers are used only if the user names them again: ``%refine resume
x.ipynb --check my_check``. The limits, the prompts and the model's name are the record's.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ipyrefine.core.model import Figure, Record, StopReason
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stored import VERSION, OtherVersion, parse_json, read_record
from ipyrefine.errors import UsageError
from ipyrefine.folders import read_file
from ipyrefine.render.html import record_html
from ipyrefine.render.terminal import record_text

MIME = "application/vnd.ipyrefine.run+json"
KEY = "ipyrefine"  # in the metadata of cells, and of a notebook that older versions exported
NOTEBOOK = "IPYREFINE_NOTEBOOK"  # the variable with the file that `ipyrefine run` executes
ACCEPT = "IPYREFINE_ACCEPT"  # and whether it accepts the ``best`` texts

DECIDED = (StopReason.ACCEPTED, StopReason.OVERRIDDEN)

MAX_FILE = 128 * 2**20  # bytes of a file with records
LIMIT = 650_000  # characters of a run's JSON; the renderings next to it grow with it
_TEXT_LIMIT, _DETAIL_LIMIT = 40_000, 1_000  # characters, in a run that is longer
_MAX_ITEMS = 20  # findings and warnings in a record whose texts are cut
_LEAST_TEXT = 60  # characters of a text that is cut


def bundle(
    run: Run, *, note: str = "", panel: str = "", cell: str = "", asked: str = ""
) -> dict[str, Any]:
    """Return the MIME bundle of a run, shortened if need be: plain text, HTML and the run itself.

    The HTML shows a note first; a panel with the given id stands for it while it is on the page.
    `cell` holds its text, and `asked` is what its task and options are recognised by.
    """
    run, whole = shorten(run)
    named = {"cut": not whole, "cell": cell, "asked": asked}
    more = {name: value for name, value in named.items() if value}
    return {
        "text/plain": record_text(run).partition("\n\n")[0],
        "text/html": record_html(run, note=note, panel=panel),
        MIME: as_json(run) | more,
    }


def as_json(run: Run) -> dict[str, Any]:
    """Return a run as JSON, without what is as by default, and the version of its format."""
    return {"version": VERSION, **_sparse(run)}


def _sparse(value: Any) -> Any:
    if isinstance(value, Record):
        fields = type(value).model_fields
        value = {
            name: one
            for name, one in value
            if name == "kind" or one != fields[name].get_default(call_default_factory=True)
        }
    if isinstance(value, dict):
        return {name: _sparse(one) for name, one in value.items()}
    return [*map(_sparse, value)] if isinstance(value, tuple) else value


class RecordDisplay:
    """Shows the record when a run stops, and keeps that one output up to date afterwards."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, run: Run, **shown: str) -> None:
        """Put the record of a stopped run into the cell's output; arguments as for `bundle`."""
        from IPython.display import display

        data = bundle(run, **shown)
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


# Reading


class Stored(NamedTuple):
    """A record as a file holds it, which may be anything.

    Attributes:
        cell: the number of the cell that shows it, from 1; 0 for none.
        cells: those of the file.
    """

    record: Any
    cell: int
    cells: list[Any]

    @property
    def whole(self) -> bool:
        """Whether its run can be resumed: its texts were not cut to fit a notebook."""
        return not member(self.record, "cut")

    def text_now(self, run: Run) -> str | None:
        """Return what the cell with a run's text holds: the one it was put into, else its like."""
        sources = [
            (member(cell, "id"), text_of(member(cell, "source")))
            for cell in self.cells
            if member(cell, "cell_type") == "code"
        ]
        place = member(self.record, "cell")
        own = (source for id_, source in sources if place and id_ == place)
        text = f"\n{run.text.strip()}"  # perhaps below lines of the cell's own
        alike = (one for _, one in sources if run.text and f"\n{one.strip()}".endswith(text))
        return next(own, next(alike, None))


def load(path: str | Path) -> list[Run]:
    """Return the runs in a file.

    Args:
        path: a notebook with `%%refine` cells, in their order, or an exported run (``.ipynb`` or
            ``.json``).

    Raises:
        UsageError: the file or a record in it cannot be read.
    """
    if not isinstance(path, str | Path):
        raise UsageError(f"load takes the path of a notebook or an exported run, not {path!r}.")
    return [read_one(one, Path(path)) for one in stored_records(read_content(Path(path)))]


def load_whole(path: Path, number: str = "") -> Run:
    """Return one run of a file, by its place from 0 or the last one, to be resumed.

    Raises:
        UsageError: there is no such run, or its texts were cut.
    """
    runs = [*stored_records(read_content(path))]
    if not runs:
        raise UsageError(f"{path} holds no record of a run.")
    number = number or str(len(runs) - 1)
    if not number.isdecimal() or len(number) > 9 or int(number) >= len(runs):
        raise UsageError(
            f"There is no run {number[:40]!r} in {path}. It holds 0 to {len(runs) - 1}."
        )
    one = runs[int(number)]
    if not one.whole:
        raise UsageError(f"The record in {path} was cut to fit the notebook. It can't be resumed.")
    return read_one(one, path)


def read_content(path: Path) -> dict[str, Any]:
    """Return the JSON of a notebook or an exported run; arguments and errors as for `load`."""
    content = read_json(path, MAX_FILE)
    if not isinstance(content, dict) or not {"nbformat", "cells", "version"} & content.keys():
        raise UsageError(f"{path} is neither a notebook nor an exported run.")
    if content.get("nbformat", 4) != 4:
        raise UsageError(f"{path} is not a notebook of format 4. Save it again in JupyterLab.")
    return content


def read_json(path: Path, most: int = sys.maxsize) -> Any:
    """Return the JSON in a file, also what other tools write as such; None where it holds none.

    Arguments and errors are those of `read_file`.
    """
    content = read_file(path, most)
    try:
        return parse_json(content, strict=False)
    except (ValueError, MemoryError):
        return None


def write_file(path: Path, content: str | bytes, *, replace: bool = True) -> None:
    """Write a file; where that fails, it holds what it held before.

    Raises:
        FileExistsError: it exists, and must not be replaced.
        UsageError: it cannot be written.
    """
    if isinstance(content, str):  # of invalid Unicode it has the code, as JSON writes that
        content = content.encode("utf-8", "backslashreplace")
    before = None
    try:
        before = path.read_bytes() if replace and path.is_file() else None
        with path.open("wb" if replace else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        if before is not None:  # there is room for that
            with suppress(OSError):
                path.write_bytes(before)
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be written ({why}).") from None


def stored_records(content: dict[str, Any]) -> Iterator[Stored]:
    """Yield what a notebook holds as records, or the whole of any other JSON."""
    if "cells" not in content:
        yield Stored(content, 0, [])
        return
    cells = listed(content["cells"])
    if exported := member(member(member(content, "metadata"), KEY), "run"):
        yield Stored(exported, 0, cells)
    for number, cell in enumerate(cells, start=1):
        outputs = (member(output, "data") for output in listed(member(cell, "outputs")))
        for data in (*outputs, member(member(member(cell, "metadata"), KEY), "record")):
            if isinstance(data, dict) and MIME in data:
                yield Stored(data[MIME], number, cells)


def member(value: Any, name: str) -> Any:
    """Return a member of an object in a file; None where it has none or is something else."""
    return value.get(name) if isinstance(value, dict) else None


def listed(value: Any) -> list[Any]:
    """Return a list of a file; empty for anything else."""
    return value if isinstance(value, list) else []


def read_one(stored: Stored, path: Path) -> Run:
    """Return the run of a record; nothing of it is called, evaluated or imported.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        ours = ("cut", "cell", "asked")
        return read_record({n: one for n, one in dict(stored.record).items() if n not in ours})
    except OtherVersion:
        raise UsageError(
            f"The record in {path} was written by another version of ipyrefine and can't be "
            "continued. You can still read it in the notebook."
        ) from None
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise UsageError(f"{path} holds a record that is damaged or was changed by hand.") from None


def saved_run(asked: str, source: str, place: int) -> Run | None:
    """Return the run in a cell's own output in the file that `ipyrefine run` executes.

    None where that holds none that is whole, or another program executes it.

    Args:
        asked: what the run's task and options are recognised by.
        source: the cell's text.
        place: which of the cells with this text it is, from 1.
    """
    path = Path(os.environ.get(NOTEBOOK, ""))
    with suppress(UsageError):
        same = [
            cell
            for cell in listed(read_content(path).get("cells"))
            if text_of(member(cell, "source")).rstrip("\n") == source
        ]
        for one in stored_records({"cells": same[place - 1 : place]}):
            if member(one.record, "asked") == asked:
                return read_one(one, path) if one.whole else None
    return None


def text_of(value: Any) -> str:
    """Return a text of a notebook, which may be a list of its lines; empty for anything else."""
    lines = value if isinstance(value, list) else [value]
    return "".join(line for line in lines if isinstance(line, str))


# Shortening


def shorten(run: Run, limit: int = LIMIT) -> tuple[Run, bool]:
    """Cut a run that is too long for a notebook.

    Figures, heads of new tables, the model's notes and long details go first. If that is not
    enough, the texts are cut, the chosen one last of all, and the record can be read but not
    resumed.

    Args:
        run: the run.
        limit: characters of its JSON.

    Returns:
        The run, with a warning that names what was left out, and whether it can be resumed.
    """
    if len(run.model_dump_json()) <= limit:
        return run, True
    texts = [one if one == run.chosen else _without_details(one) for one in run.iterations]
    short = _shortened(run, "figures, model notes and long check details are left out", texts)
    if len(short.model_dump_json()) <= limit:
        return short, True
    room = max(_LEAST_TEXT, limit // (8 * max(1, len(texts))))
    briefs = [
        one.replace(
            text=_cut(one.text, room),
            verdict=one.verdict and one.verdict.replace(why="", point="", line=""),
            **{"results": {}, "evidence": (), "changes": {}, "thoughts": ""},
        )
        if one.number != (run.chosen and run.chosen.number)
        else _without_details(
            one.replace(text=_cut(one.text), results=dict(islice(one.results.items(), _MAX_ITEMS)))
        )
        for one in run.iterations
    ]
    task = run.task.replace(text=_cut(run.task.text), materials=())
    run = run.without_replies().replace(
        setup=run.setup.replace(task=task, draft=None),
        warnings=run.warnings[-_MAX_ITEMS:],
    )
    return _shortened(run, "its texts are cut, so it can't be resumed from here", briefs), False


def _shortened(run: Run, omission: str, iterations: list[Iteration]) -> Run:
    warning = (
        f"This record was shortened to fit the notebook: {omission}. "
        "`%refine export FILE.json` writes the whole run."
    )
    named = {id_ for one in iterations for id_ in one.results}
    points = {id_: one for id_, one in run.points.items() if id_ in named}
    return run.replace(
        iterations=tuple(iterations), points=points, warnings=(*run.warnings, warning)
    )


def _without_details(one: Iteration) -> Iteration:
    evidence = tuple(
        e.replace(
            shows=_cut(e.shows, _DETAIL_LIMIT),
            outputs=tuple(o for o in e.outputs if not isinstance(o, Figure)),
            effects=tuple(one.replace(head=None) for one in e.effects),
            held=(),
        )
        for e in one.evidence
    )
    return one.replace(thoughts="", evidence=evidence)


def _cut(text: str, limit: int = _TEXT_LIMIT) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… (cut: {len(text):,} characters)"
