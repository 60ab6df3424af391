"""What a teacher hands out and gets back: notebooks without solutions, and a table of their runs.

A solution is a fold (``<details>``) whose summary has that word, or a cell with the tag
``solution``. Nothing of a file runs.
"""

import csv
import glob
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import chdir
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ipyrefine.core.actions import decision_words
from ipyrefine.core.coach import predictions
from ipyrefine.core.model import bare
from ipyrefine.core.points import first_line
from ipyrefine.errors import UsageError
from ipyrefine.kernel.folder import look
from ipyrefine.kernel.redaction import has_known_form
from ipyrefine.render import say
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import align, wrap
from ipyrefine.session import record

_FOLD = re.compile(r"(<details\b[^>]*>|</details\s*>)", re.IGNORECASE)
_SOLUTION = re.compile(r"\s*<summary\b[^>]*>(?:(?!</summary).)*\bsolutions?\b", re.I | re.S)
_TAG = re.compile(r"solutions?", re.I)
_RECORDING = re.compile(r"recorded:([^\s\"'@]+)")
_NAME = re.compile(r"""\]\(([^)#\s]+)|"([^"\n]+)"|'([^'\n]+)'""")  # of a link, or a string
_MODULE = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)
_FORMULA = tuple("=+-@\t\r")  # a spreadsheet computes what starts with one
_HEAD = ("student", "verdict", "basis", "task")
_BELOW = ("decisions", "reasons", "predictions")
_COLUMNS = ("student", "file", "cell", "task", "verdict", "basis", *_BELOW, "problem")
Row = dict[str, str]  # one run, or in its column "problem" why there is none


def handout(paths: Iterable[Path], folder: Path) -> list[str]:
    """Copy notebooks without solutions and outputs, and the files that they name, into a folder.

    These are ordinary files below the notebook's folder; no other notebooks, and nothing secret.
    It returns a line for each notebook.

    Raises:
        UsageError: a notebook can't be read, or the folder has another file of that name.
    """
    lines = []
    for path, content in [(one, _read(one)) for one in paths]:  # all, before one is written
        metadata, cells = content["metadata"], content["cells"]
        sources = [record.text_of(one.get("source")) for one in cells]
        kept = [*map(_for_student, cells, sources)]
        content["cells"] = [one for one in kept if one["source"].strip()]
        for name in ("widgets", record.KEY):  # what a page showed of a run, and an exported run
            metadata.pop(name, None)
        _write(folder / path.name, f"{json.dumps(content, indent=1)}\n")
        beside, lacking = _files_beside(path, "\n".join(one["source"] for one in kept))
        for name, data in beside.items():
            _write(folder / name, data)
        cut = sum(one["source"] != source for one, source in zip(kept, sources, strict=True))
        said = [f"solutions cut from {say.count(cut, 'cell')}" if cut else "no solutions found"]
        for how, names in (("with", sorted(beside)), ("without", sorted(lacking))):
            said += [f"{how} {', '.join(names)}"] if names else []
        lines.append(plain(f"{folder / path.name}: {'; '.join(said)}."))
    return lines


def _read(path: Path) -> dict[str, Any]:
    content = record.read_content(path)
    cells = content.get("cells")
    parts = [content.get("metadata"), *cells] if isinstance(cells, list) else [None]
    if not all(isinstance(one, dict) for one in parts):
        raise UsageError(f"{path} is not a notebook of format 4. Save it again in JupyterLab.")
    return content


def _write(path: Path, data: str | bytes) -> None:
    """Write a file of a handout, with its folder; one that is there already may be the same."""
    data = data.encode() if isinstance(data, str) else data
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        record.write_file(path, data, replace=path.is_file() and path.read_bytes() == data)
    except FileExistsError:
        raise UsageError(f"{path} exists. Name another folder with -o.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}).") from None


def _for_student(cell: dict[str, Any], source: str) -> dict[str, Any]:
    """Return a cell without outputs and record; its source is empty where all is a solution."""
    metadata = cell.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop(record.KEY, None)
    tags = record.listed(record.member(metadata, "tags"))
    if any(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in tags):
        source = ""
    if cell.get("cell_type") == "code":
        return {**cell, "source": source, "outputs": [], "execution_count": None}
    cell = {**cell, "source": _without_folds(source)}
    if isinstance(files := cell.get("attachments"), dict):
        shown = unquote(cell["source"])
        cell["attachments"] = {name: files[name] for name in files if name in shown}
    return cell


def _without_folds(source: str) -> str:
    """Cut the folds with solutions, with what is folded inside of them."""
    kept, depth, parts = [], 0, _FOLD.split(source)
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        depth += part.lower().startswith("<details") and bool(depth or _SOLUTION.match(after))
        kept += [] if depth else [part]
        depth -= depth > 0 and part.lower().startswith("</details")
    return "".join(kept).rstrip() if len(kept) < len(parts) else source


def _files_beside(path: Path, source: str) -> tuple[dict[str, bytes], set[str]]:
    """Return the files that go along, and the names of those that should and can't."""
    recordings = {*map(os.path.normpath, _RECORDING.findall(source))}
    asked, goes = set[str](), dict[str, bytes]()
    with chdir(path.parent):
        folder, sources = look(), [source]
        for one in sources:  # it grows, by those of modules
            asked |= _names_in(one)
            new = {one for one in folder.states if _is_named(one, asked)} - goes.keys()
            goes |= {one: Path(one).read_bytes() for one in new if not one.endswith(".ipynb")}
            sources += [goes[one].decode(errors="replace") for one in new if one.endswith(".py")]
        # Recordings hold requests, in which much looks like a secret.
        beside = {name: data for name, data in goes.items() if not has_known_form(data)}
        there = recordings & {*folder.states, *folder.closed}
        beside |= {one: Path(one).read_bytes() for one in there}
        asked = recordings | {one for one in asked if os.path.isfile(one)}
    return beside, {one for one in asked - beside.keys() if not one.endswith(".ipynb")}


def _names_in(source: str) -> set[str]:
    named = [re.sub(r"\{[^}]*\}", "*", name) for name in map("".join, _NAME.findall(source))]
    named += [*map(unquote, named)]
    named += [file for name in _MODULE.findall(source) for file in (f"{name}.py", f"{name}/*.py")]
    # A pattern has to say what kind of file it is; "*" alone would bring everything.
    asked = {one for one in named if not glob.has_magic(one) or re.search(r"\.\w+$", one)}
    return {*map(os.path.normpath, asked)}


def _is_named(path: str, names: set[str]) -> bool:
    folder, name = os.path.split(path)
    parts = [path, *[name] * (folder in names)]  # "data" and "x.csv" may be joined
    return any(fnmatchcase(part, one) for part in parts for one in names)


def report(paths: Sequence[Path]) -> list[Row]:
    """Return the runs in notebooks.

    A student's name is that of the folder below the one that all have in common, else the file's.
    """
    full, found = [Path(os.path.abspath(one)) for one in paths], []
    common = os.path.commonpath([one.parent for one in full])
    for path, whole in zip(paths, full, strict=True):
        folder, *rest = whole.relative_to(common).parts
        row = dict.fromkeys(_COLUMNS, "")
        row |= {"student": folder if rest else whole.stem, "file": str(path)}
        try:
            stored = [*record.stored_records(record.read_content(path))]
        except UsageError as error:
            found.append(row | {"problem": str(error)})
        else:
            none = row | {"problem": f"{path} holds no record of a run."}
            found += [row | _run(one, path) for one in stored] or [none]
    return found


def _run(stored: record.Stored, path: Path) -> Row:
    try:
        run = record.read_one(stored, path)
    except UsageError as error:
        return {"cell": str(stored.cell), "problem": str(error)}
    said = [decision_words(run, one) for one in run.decisions]
    predicted = [
        f"{call}: predicted {bare(one.predicted)}, gives {bare(one.gives)}"
        for one in predictions(run)
        if one.predicted and (call := one.code.replace("\n", "; "))
    ]
    return {
        "cell": str(stored.cell),
        "task": first_line(run.setup.subject),
        "verdict": say.verdict(run, run.chosen).label.word,
        "basis": run.verdict.basis if run.verdict else "",
        "decisions": "; ".join(did for did, _ in said),
        "reasons": "; ".join(why for _, why in said if why),
        "predictions": "; ".join(predicted),
    }


def report_text(rows: Sequence[Row], columns: int) -> str:
    """Return the runs as a table for people, with decisions and predictions below each."""
    runs = [one for one in rows if not one["problem"]]
    lines = align([_HEAD, *([one[name] for name in _HEAD] for one in runs)], columns)
    printed = lines[: bool(runs)]
    for one, line in zip(runs, lines[1:], strict=True):
        below = [f"{name}: {one[name]}" for name in _BELOW if one[name]]
        printed += [line, *(part for said in below for part in wrap(said, columns, "  ", "    "))]
    return "\n".join([*printed, *(plain(one["problem"]) for one in rows if one["problem"])])


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write the runs as a table for a spreadsheet, which is kept from computing what they say.

    Raises:
        UsageError: the file has another ending, or cannot be written.
    """
    if path.suffix.lower() != ".csv":
        raise UsageError(f"{path} doesn't end in .csv. Name the table's file after --csv.")
    table = csv.writer(made := io.StringIO())
    table.writerow(_COLUMNS)
    for one in rows:
        cells = [plain(one[name]) for name in _COLUMNS]
        table.writerow(f"'{c}" if c.startswith(_FORMULA) else c for c in cells)
    record.write_file(path, f"\ufeff{made.getvalue()}")  # the mark tells Excel that it is UTF-8
