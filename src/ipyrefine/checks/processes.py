"""Finding, counting and killing the processes of one sandbox."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_MOST = 64
_PASSES = 100


def kill(leader: int, folder: str) -> None:
    """Kill a sandbox's process group, and what left the group where that can be found.

    Args:
        leader: the id of the sandbox's first process.
        folder: the sandbox's folder, by which its processes are known.
    """
    if sys.platform == "win32":
        tree = ["taskkill", "/T", "/F", "/PID", str(leader)]
        subprocess.run(tree, capture_output=True, check=False)
        return
    for _ in range(_PASSES):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        # Again and again, as those which are being killed may still start others.
        left = members(folder)
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def members(folder: str) -> set[int]:
    """The ids of processes that work in the folder or have it in their environment (Linux)."""
    if not sys.platform.startswith("linux"):
        return set()
    mark = os.fsencode(folder)
    found = set()
    for name in os.listdir(_PROC):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        # Processes end while we look, and those of other users cannot be read.
        with suppress(OSError):
            inside = os.readlink(_PROC / name / "cwd").startswith(folder)
            if inside or mark in (_PROC / name / "environ").read_bytes():
                found.add(int(name))
    return found


class Crowd:
    """Tells when a sandbox has started too many processes.

    The limit a system offers for this counts all processes of the user, notebooks included, and
    does not hold for an administrator, so they are counted from outside.

    Args:
        folder: the sandbox's folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._before = _tasks()

    def too_many(self) -> bool:
        """Whether there are more than 64 of them now; always False outside Linux."""
        # Counting is slow on a machine with many processes; the sum of all costs one read.
        return _tasks() - self._before > _MOST and len(members(self._folder)) > _MOST


def _tasks() -> int:
    try:
        return int((_PROC / "loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0
