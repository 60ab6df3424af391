"""The folder on this machine where ipyrefine keeps things, and how files are read."""

import os
import sys
from pathlib import Path

import platformdirs

from ipyrefine.errors import UsageError


def home() -> Path:
    """Return the folder of what is kept: ``IPYREFINE_HOME``, else the user's data folder.

    Raises:
        UsageError: it is in a home that does not exist.
    """
    own = os.environ.get("IPYREFINE_HOME")
    path = os.path.expanduser(own or platformdirs.user_data_dir("ipyrefine"))
    if path.startswith("~"):
        raise UsageError(f"There is no home folder for {path}. Set IPYREFINE_HOME to a folder.")
    return Path(path)


def read_file(path: Path, most: int = sys.maxsize) -> bytes:
    """Return what a file holds.

    Args:
        path: the file.
        most: bytes that it may have.

    Raises:
        UsageError: it is not a regular file, cannot be read, or is larger.
    """
    try:
        regular, size = path.is_file(), path.stat().st_size
        content = path.read_bytes() if regular and size <= most else b""
    except (OSError, ValueError) as error:
        # A ValueError says that no file can have this name.
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read ({why}).") from None
    if not regular:  # a pipe would be waited for
        raise UsageError(f"{path} is not a file.")
    if size > most:
        raise UsageError(f"{path} is larger than {most >> 20} MB.")
    return content
