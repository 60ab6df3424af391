"""The folder on this machine where ipyrefine keeps things."""

import os
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
