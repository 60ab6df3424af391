"""Write a run to a file of its own: a notebook, Markdown or JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipyrefine.core.model import StopReason
from ipyrefine.core.run import Run
from ipyrefine.core.stored import VERSION
from ipyrefine.errors import UsageError
from ipyrefine.render import document
from ipyrefine.render.markdown import Part, parts, record_markdown
from ipyrefine.session.record import KEY, as_json


def export(run: Run, path: str | Path, *, force: bool = False) -> Path:
    """Write a run to a file and return its path.

    Args:
        run: the run.
        path: its ending decides the format: ``.ipynb``, ``.md`` or ``.json``.
        force: whether an existing file may be replaced.

    Raises:
        UsageError: the ending is none of these, the file exists, or it cannot be written.
    """
    path = Path(path).expanduser()
    write = _FORMATS.get(path.suffix.lower())
    if write is None:
        raise UsageError(f"The file's ending decides the format. Use {', '.join(_FORMATS)}.")
    text = write(run)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{path} exists. Choose another name, or replace it with --force."
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}).") from None
    return path


def _make_notebook(run: Run) -> Any:
    """Return a notebook with a cell for every stage, and the run in its metadata.

    Every text is quoted in Markdown, as what a model wrote must not run by accident. Only a text
    that the user accepted is a code cell, the last one, if it is Python.
    """
    from nbformat import v4

    make: Any = v4
    cells = [_make_cell(part, run) for part in parts(run)]
    settled = run.stop_reason in (StopReason.ACCEPTED, StopReason.OVERRIDDEN)
    if settled and run.task.is_python:
        cells.append(make.new_code_cell(run.text, metadata={KEY: {"stage": "result"}}))
    notebook = make.new_notebook(cells=cells)
    notebook.metadata[KEY] = {"version": VERSION, "run": as_json(run)}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def _make_cell(part: Part, run: Run) -> Any:
    """Return a cell for a part; that of a check has the figures that its text drew."""
    from nbformat import v4

    make: Any = v4
    metadata: dict[str, Any] = {"stage": part.stage}
    text, pictures = part.markdown, dict[str, Any]()
    if part.iteration is not None:
        metadata["iteration"] = part.iteration
        for block in document.outputs(run.iterations[part.iteration]):
            if part.stage == "check" and isinstance(block, document.Picture):
                name = f"figure-{len(pictures)}.png"
                pictures[name] = {"image/png": block.png}
                text += f"\n\n![{block.caption}](attachment:{name})"
    cell = make.new_markdown_cell(text, metadata={KEY: metadata})
    if pictures:
        cell.attachments = pictures
    return cell


def _format_notebook(run: Run) -> str:
    import nbformat

    form: Any = nbformat
    notebook = _make_notebook(run)
    form.validate(notebook)
    return str(form.writes(notebook)) + "\n"


def _format_json(run: Run) -> str:
    return json.dumps(as_json(run), indent=2, ensure_ascii=False) + "\n"


_FORMATS: dict[str, Callable[[Run], str]] = {
    ".ipynb": _format_notebook,
    ".md": record_markdown,
    ".json": _format_json,
}
