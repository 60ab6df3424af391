"""Load the user's variables inside the sandbox, and tell what code did to their frames."""

import ast
import difflib
import os
import pickle
import site
import sys
import traceback
from types import FrameType
from typing import Any

_FILE = "variables.pickle"
_TEXT = "candidate.py"
_MAX_FRAMES = 10
_MAX_NAMES = 10  # of columns in a line
_WIDTH = 60  # characters of a name

Facts = dict[str, Any]


def load() -> dict[str, Any]:
    """Return the variables in the file beside the script.

    Those that cannot be read here are left out, and standard error says which and why.
    """
    with open(_FILE, "rb") as file:
        contents = pickle.load(file)
    for folder in contents["path"]:
        if os.path.basename(folder) in ("site-packages", "dist-packages"):
            site.addsitedir(folder)  # which reads its .pth files, as at the start of Python
    sys.path[:] = dict.fromkeys([*contents["path"], *sys.path])
    values = {}
    for name, content in contents["variables"].items():
        try:
            values[name] = pickle.loads(content)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            print(
                f"ipyrefine: the variable {name} cannot be read here ({message})", file=sys.stderr
            )
    return values


def measure(values: dict[str, Any]) -> dict[str, Facts]:
    """Return the rows, and the type and nulls of each column, of the frames among some values."""
    found = {}
    for name, value in values.items():
        try:
            facts = _measure_frame(value) if name[:1] != "_" else None
        except Exception:  # a frame of the text's own making
            continue
        if facts:
            found[name] = facts
    return found


def _measure_frame(value: Any) -> Facts | None:
    library = _library_of(value)
    if not library:
        return None
    nulls = value.isna().sum().tolist() if library == "pandas" else value.null_count().row(0)
    names = [str(name)[:_WIDTH] for name in value.columns]
    types = [str(kind)[:_WIDTH] for kind in value.dtypes]
    columns = {n: [t, int(k)] for n, t, k in zip(names, types, nulls, strict=True)}
    return {"rows": len(value), "count": len(names), "columns": columns}


def _library_of(value: Any) -> str:
    """Return whose frame a value is; empty if it is none."""
    for library in ("pandas", "polars"):
        kind = getattr(sys.modules.get(library), "DataFrame", None)
        if kind is not None and type(value) is kind:
            return library
    return ""


def compare(before: dict[str, Facts], after: dict[str, Facts]) -> list[str]:
    """Return a line for each frame that changed or is new."""
    lines = []
    for name, new in after.items():
        size, old = f"{new['rows']:,} rows × {new['count']:,} columns", before.get(name)
        if old is None:
            lines.append(f"{name}: new, {size}")
        elif old != new:
            was = f"{old['rows']:,} rows × {old['count']:,} columns"
            parts = [size if was == size else f"{was} → {size}", *_changes(old, new)]
            lines.append(f"{name}: {'; '.join(parts)}")
    return lines[:_MAX_FRAMES]


def _changes(old: Facts, new: Facts) -> list[str]:
    """Return what changed in the columns, a phrase for each kind of change."""
    was, now = old["columns"], new["columns"]
    both = [name for name in now if name in was]
    kinds = {
        "new columns": [name for name in now if name not in was],
        "columns gone": [name for name in was if name not in now],
        "types": [f"{n} {was[n][0]} → {now[n][0]}" for n in both if was[n][0] != now[n][0]],
        "nulls added": [f"{now[n][1] - was[n][1]:,} in {n}" for n in both if now[n][1] > was[n][1]],
    }
    return [f"{kind}: {_list(names)}" for kind, names in kinds.items() if names]


def _list(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join([*names[:_MAX_NAMES], *([f"{more} more"] if more > 0 else [])])


def describe_frames(error: BaseException) -> list[str]:
    """Return the columns of each frame on the line of the text at which pandas raised an error."""
    steps = list(traceback.walk_tb(error.__traceback__))
    own = [n for n, (frame, _) in enumerate(steps) if frame.f_code.co_filename == _TEXT]
    if not own or not any(_is_pandas(frame) for frame, _ in steps[own[-1] + 1 :]):
        return []
    frame, line = steps[own[-1]]
    values = {**frame.f_globals, **frame.f_locals}
    frames = {name: values[name] for name in _names_at(line) if _library_of(values.get(name))}
    missing = error.args[0] if type(error) is KeyError and error.args else None
    return [
        f"{name} has the columns {_columns(frame, missing)}{_index(frame)}."
        for name, frame in frames.items()
    ]


def _is_pandas(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "pandas"


def _names_at(line: int) -> list[str]:
    """Return the names in the smallest statement of the text that holds a line."""
    with open(_TEXT, "rb") as text:
        nodes = list(ast.walk(ast.parse(text.read())))
    holding = [
        node
        for node in nodes
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    least = min(holding, key=lambda node: (node.end_lineno or 0) - node.lineno)
    return list(dict.fromkeys(x.id for x in ast.walk(least) if isinstance(x, ast.Name)))


def _columns(frame: Any, missing: object) -> str:
    """Return columns with their types; those most like a missing one first, if there are many."""
    columns = list(zip(map(repr, frame.columns), map(str, frame.dtypes), strict=True))
    if isinstance(missing, str) and len(columns) > _MAX_NAMES:
        columns.sort(key=lambda one: -difflib.SequenceMatcher(None, missing, one[0]).ratio())
    return _list([f"{n[:_WIDTH]} ({kind[:_WIDTH]})" for n, kind in columns]) or "(none)"


def _index(frame: Any) -> str:
    """Return what a frame is indexed by, unless its rows are only numbered."""
    index = getattr(frame, "index", None)  # polars has none
    if index is None or type(index).__name__ == "RangeIndex":
        return ""
    names = [repr(name)[:_WIDTH] for name in index.names if name is not None]
    return f", indexed by {_list(names) or index.dtype}"
