"""Remember facts about servers across kernels: what they take, and what may be sent to them.

They are in `servers.json`, in the user's folder of what is kept. Whatever is wrong with that file,
a server is then one not met before.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ipyrefine.folders import home

_LOCK_SECONDS = 2.0


def facts_about(base_url: str) -> dict[str, Any]:
    """Return what is remembered of a server, by name; empty for one not met before.

    Args:
        base_url: its address.
    """
    facts = _read(_path()).get(base_url)
    return facts if isinstance(facts, dict) else {}


def remember_about(base_url: str, **facts: Any) -> bool:
    """Add facts about a server to those it has, and return whether they could be stored.

    Args:
        base_url: its address.
        **facts: JSON values by name; None forgets one.
    """
    path = _path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(f"{path}.lock", timeout=_LOCK_SECONDS):
            servers = _read(path)
            merged = {**facts_about(base_url), **facts}
            servers[base_url] = {name: fact for name, fact in merged.items() if fact is not None}
            _write(path, servers)
    except (OSError, Timeout):
        return False
    return True


def _path() -> Path:
    return home() / "servers.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, servers: dict[str, Any]) -> None:
    """Replace the file as a whole, so that nobody reads half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(servers, file, indent=1, sort_keys=True)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
