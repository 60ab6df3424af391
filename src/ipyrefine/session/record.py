"""The static record: one output that says it all without a kernel, and how it is read back."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from ipyrefine.core.runs import Run
from ipyrefine.errors import UsageError
from ipyrefine.render.html import record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.text import record_text
from ipyrefine.session.bounding import bounded

MIME = "application/vnd.ipyrefine.run+json"
KEY = "ipyrefine"  # of a notebook's, or a cell's, metadata
VERSION = 1


def bundle(run: Run, *, note: str = "", folded: bool = False) -> dict[str, Any]:
    """Make the MIME bundle of a run: plain text, Markdown, HTML and the run itself.

    Args:
        run: the run; a long one is shortened, which the record then says.
        note: a sentence the HTML says first.
        folded: whether the HTML takes one line until it is opened.
    """
    run, whole = bounded(run)
    return {
        "text/plain": record_text(run),
        "text/markdown": record_markdown(run),
        "text/html": record_html(run, note=note, folded=folded),
        MIME: as_json(run) | ({} if whole else {"cut": True}),
    }


def as_json(run: Run) -> dict[str, Any]:
    """A run as JSON, for a record or a file, with the version of its form."""
    return {"version": VERSION, **run.model_dump(mode="json", exclude_defaults=True)}


def load(path: str | Path) -> list[Run]:
    """Read the runs that a file carries.

    Args:
        path: a notebook with `%%refine` cells, in their order, or an exported run (``.ipynb`` or
            ``.json``).

    Raises:
        UsageError: it cannot be read, or its records were made by another version.
    """
    return [one.run for one in read(Path(path))]


class Recorded(NamedTuple):
    """A run as a file carries it; `whole` unless its texts were cut to fit a notebook."""

    run: Run
    whole: bool


def read(path: Path) -> list[Recorded]:
    """Read the records that a file carries; arguments and errors as for `load`."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror or error}).") from None
    except ValueError:
        raise UsageError(f"{path} is neither a notebook nor an exported run.") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} is neither a notebook nor an exported run.")
    return recorded(content, path)


def recorded(content: dict[str, Any], path: Path) -> list[Recorded]:
    """Find the records in a notebook's, or an exported run's, JSON.

    Raises:
        UsageError: a record was made by another version; `path` is named.
    """
    return [_recorded(record, path) for record in _records(content)]


def _records(content: dict[str, Any]) -> list[Any]:
    if "cells" not in content:
        return [content]
    exported = content.get("metadata", {}).get(KEY, {}).get("run")
    outputs = (out for cell in content["cells"] for out in cell.get("outputs", ()))
    shown = [out["data"][MIME] for out in outputs if MIME in out.get("data", {})]
    return [exported, *shown] if exported else shown


def _recorded(record: Any, path: Path) -> Recorded:
    try:
        known = dict(record)
        version, cut = known.pop("version", VERSION), known.pop("cut", False)
        if version > VERSION or not known.get("task"):
            raise ValueError
        return Recorded(Run.model_validate(known), whole=not cut)
    except (ValidationError, ValueError, TypeError, AttributeError):
        raise UsageError(
            f"{path} holds a record that this version of ipyrefine cannot read."
        ) from None


class RecordDisplay:
    """Shows the record when a run stops, and keeps that one output up to date afterwards."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, run: Run, *, note: str = "", folded: bool = False) -> None:
        """Put the record of a stopped run into the cell's output; arguments as for `bundle`."""
        from IPython.display import display

        data = bundle(run, note=note, folded=folded)
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
