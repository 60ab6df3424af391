"""Where the journal lies, and that nobody else can read it."""

import os
from pathlib import Path

import platformdirs

_FOLDER, _FILE = 0o700, 0o600


def home() -> Path:
    """The folder of what ipyrefine keeps: ``IPYREFINE_HOME``, else the user's data directory."""
    given = os.environ.get("IPYREFINE_HOME")
    return Path(given).expanduser() if given else Path(platformdirs.user_data_dir("ipyrefine"))


def default_path() -> Path:
    """The journal's file; it has a folder of its own, which is private whatever `home` is."""
    return home() / "journal" / "runs.db"


def make_private(path: Path) -> None:
    """Create a file and its folder for this user alone, or make them so.

    SQLite gives the files it puts beside a database the permissions of the database.

    Raises:
        OSError: they cannot be created.
    """
    path.parent.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    _restrict(path.parent, _FOLDER)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, _FILE))
    _restrict(path, _FILE)


def _restrict(path: Path, mode: int) -> None:
    if path.stat().st_mode & 0o777 & ~mode:
        path.chmod(mode)
