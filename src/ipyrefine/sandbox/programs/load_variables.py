"""Load the user's variables inside the sandbox, and tell what code did to their frames."""

import os
import pickle
import site
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

_FILE = "variables.pickle"
_MAX_FRAMES = 10
_MAX_NAMES = 10  # of columns in a line
_WIDTH = 60  # characters of a name

Facts = dict[str, Any]


def load() -> dict[str, Any]:
    """Return the variables in the file next to the script, and the notebook's modules.

    Those that cannot be read here are left out, and standard error says which and why.
    """
    with open(_FILE, "rb") as file:
        contents = pickle.load(file)
    for folder in contents["path"]:
        if os.path.basename(folder) in ("site-packages", "dist-packages"):
            site.addsitedir(folder)  # which reads its .pth files, as at the start of Python
    sys.path[:] = dict.fromkeys([*contents["path"], *sys.path])
    values = {}
    for name, content in {**contents["modules"], **contents["variables"]}.items():
        try:
            is_path = isinstance(content, str)
            values[name] = import_module(content) if is_path else pickle.loads(content)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            print(
                f"ipyrefine: the variable {name} cannot be read here ({message})", file=sys.stderr
            )
    for path in contents["submodules"]:
        with suppress(Exception):  # the code that uses it fails, and says so
            import_module(path)
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
    for library in ("pandas", "polars"):
        kind = getattr(sys.modules.get(library), "DataFrame", None)
        if kind is None or type(value) is not kind:
            continue
        nulls = value.isna().sum().tolist() if library == "pandas" else value.null_count().row(0)
        names = [str(name)[:_WIDTH] for name in value.columns]
        types = [str(kind)[:_WIDTH] for kind in value.dtypes]
        columns = {n: [t, int(k)] for n, t, k in zip(names, types, nulls, strict=True)}
        return {"rows": len(value), "count": len(names), "columns": columns}
    return None


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
