"""Find the processes of a sandbox, on Linux."""

import os
import sys
from contextlib import suppress
from pathlib import Path


def find_processes(folder: str) -> set[int]:
    """Return the ids of processes that work in a folder or have it in their environment."""
    pids = set[int]()
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        # Processes end while we look, and those of other users cannot be read.
        with suppress(OSError):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            path = Path("/proc", name)
            inside = os.readlink(path / "cwd").startswith(folder)
            if inside or os.fsencode(folder) in (path / "environ").read_bytes():
                pids.add(int(name))
    return pids
