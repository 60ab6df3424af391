"""The list of fonts that matplotlib draws with, made once, as looking for them takes seconds."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs

from ipyrefine.checks.sandbox import run_python

_SECONDS = 120.0
_LIST = "fonts.json"
_NAME = re.compile(r"fontlist-v[\w.]+\.json")
_FIND = f"""\
import os, shutil
import matplotlib, matplotlib.font_manager as fonts
name = f"fontlist-v{{fonts.FontManager.__version__}}.json"
shutil.copy(os.path.join(matplotlib.get_cachedir(), name), "{_LIST}")
print(name)
"""
_lists: dict[str, Mapping[str, bytes]] = {}  # by the folder they are kept in


@cache
def matplotlib_version() -> str:
    """Return the version of matplotlib that is installed here; empty for none."""
    try:
        return version("matplotlib")
    except PackageNotFoundError:
        return ""


async def font_files() -> Mapping[str, bytes]:
    """Return the file that spares matplotlib its search for fonts in a sandbox, by its name.

    It is made in the sandbox, so that it lists no font that cannot be read there, and kept in the
    user's cache. Without it, a figure takes longer.

    Raises:
        CheckNotRun: a complete sandbox is required and not there, or the machine is too busy.
    """
    folder = Path(platformdirs.user_cache_dir("ipyrefine"), "fonts", matplotlib_version())
    if str(folder) not in _lists:
        _lists[str(folder)] = _read(folder) or await _make(folder)
    return _lists[str(folder)]


def _read(folder: Path) -> Mapping[str, bytes]:
    with suppress(OSError):
        return {path.name: path.read_bytes() for path in folder.glob("fontlist-v*.json")}
    return {}


async def _make(folder: Path) -> Mapping[str, bytes]:
    result = await run_python(_FIND, seconds=_SECONDS, report=_LIST)
    name = result.stdout.strip()
    if result.exit_code != 0 or not _NAME.fullmatch(name) or not result.report:
        return {}
    content = result.report.encode()
    _keep(folder / name, content)
    return {name: content}


def _keep(path: Path, content: bytes) -> None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{os.getpid()}.tmp")
        unfinished.write_bytes(content)
        unfinished.replace(path)
