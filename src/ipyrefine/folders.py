"""The folder on this machine where ipyrefine keeps things."""

import os
from pathlib import Path

import platformdirs


def home() -> Path:
    """Return the folder of what is kept: ``IPYREFINE_HOME``, else the user's data folder."""
    own = os.environ.get("IPYREFINE_HOME")
    return Path(own).expanduser() if own else Path(platformdirs.user_data_dir("ipyrefine"))
