"""A run as a file of its own: a notebook, Markdown or JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipyrefine.core.runs import Run, StopReason
from ipyrefine.errors import UsageError
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.stages import Part, parts
from ipyrefine.session.record import KEY, VERSION, as_json


def export(run: Run, path: str | Path, *, force: bool = False) -> Path:
    """Write a run to a file.

    Args:
        run: the run.
        path: its ending decides what is written: ``.ipynb``, ``.md`` or ``.json``.
        force: whether a file that is there may be replaced.

    Returns:
        The file's path.

    Raises:
        UsageError: the ending is none of these, the file exists, or it cannot be written.
    """
    path = Path(path).expanduser()
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError(f"The file's ending decides what is written: use {', '.join(FORMS)}.")
    text = form(run)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{path} exists: choose another name, or replace it with --force."
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}).") from None
    return path


def as_notebook(run: Run) -> Any:
    """Make a notebook of a run: a cell for every stage, and the run under our metadata key.

    Every text is quoted in Markdown, as what a model wrote must not run by accident; only a text
    that the user accepted is a code cell, the last one.
    """
    from nbformat import v4

    make: Any = v4
    cells = [_cell(part) for part in parts(run)]
    decided = run.stop_reason in (StopReason.ACCEPTED, StopReason.OVERRIDDEN)
    if decided and run.task and run.task.form == "code":
        cells.append(make.new_code_cell(run.text, metadata={KEY: {"stage": "result"}}))
    notebook = make.new_notebook(cells=cells)
    notebook.metadata[KEY] = {"version": VERSION, "run": as_json(run)}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def _cell(part: Part) -> Any:
    from nbformat import v4

    make: Any = v4
    about: dict[str, Any] = {"stage": part.stage}
    if part.iteration is not None:
        about["iteration"] = part.iteration
    return make.new_markdown_cell(part.markdown, metadata={KEY: about})


def _notebook(run: Run) -> str:
    import nbformat

    form: Any = nbformat
    notebook = as_notebook(run)
    form.validate(notebook)
    return str(form.writes(notebook)) + "\n"


def _json(run: Run) -> str:
    return json.dumps(as_json(run), indent=2, ensure_ascii=False) + "\n"


FORMS: dict[str, Callable[[Run], str]] = {
    ".ipynb": _notebook,
    ".md": record_markdown,
    ".json": _json,
}
