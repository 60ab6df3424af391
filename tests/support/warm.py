"""Sandboxed runs that are forked from a process with packages loaded, not started one by one.

The supervisor confines them as ever; what is spared are two starts of Python and the imports.
"""

import array
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ipyrefine.sandbox import sandbox

SERVER = Path(__file__).with_name("warm_server.py")
PROGRAM = sandbox.load_program("run_parts").encode()
LARGE = re.compile(rb"numpy|pandas|matplotlib|polars|pyplot")


class Run:
    """A forked run, as `subprocess.Popen` shows a process."""

    def __init__(self, pid: int, alive: int) -> None:
        self.pid, self._alive = pid, alive
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            with suppress(BlockingIOError):
                os.read(self._alive, 1)
                os.close(self._alive)
                self.returncode = 0
        return self.returncode

    def _send(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self._send(15)

    def kill(self) -> None:
        self._send(9)

    def wait(self) -> None:
        if self.returncode is None:
            os.set_blocking(self._alive, True)
            self.poll()


def names_large(folder: str, descriptors: Sequence[int]) -> bool:
    """Whether what a run is given, but for its program, names a large package."""
    given = [one.read_bytes() for one in Path(folder).iterdir() if one.is_file()]
    given += [os.pread(one, 1 << 24, 0) for one in descriptors]
    return any(LARGE.search(one) for one in given if one != PROGRAM)


class Warm:
    """Stands for `subprocess` in the sandbox.

    Args:
        path: of the socket of a server; by default one starts at the first run.
    """

    DEVNULL, run = subprocess.DEVNULL, staticmethod(subprocess.run)

    def __init__(self, path: str = "") -> None:
        self._lock, self._open = threading.Lock(), ExitStack()
        self._path = path

    @property
    def line(self) -> str:
        """Code by which another process forks its runs from here; it leaves no name."""
        self._connect().close()
        return f"__import__('runpy').run_path({__file__!r})['join']({self._path!r})\n"

    def stop(self) -> None:
        self._open.close()

    def _start(self) -> None:
        folder = self._open.enter_context(TemporaryDirectory(prefix="warm-"))
        self._path = f"{folder}/s"
        command = [sys.executable, "-s", "-P", "-X", "utf8", str(SERVER), self._path]
        server = subprocess.Popen(
            [*command, str(sandbox.LIMITER)],
            env=sandbox._environment(folder),
            stdin=subprocess.PIPE,  # it ends when this closes
        )
        assert server.stdin
        self._open.enter_context(server.stdin)
        server.wait()  # until it listens, as it goes on in a fork

    def _connect(self, *, large: bool = False) -> socket.socket:
        with self._lock:
            if not self._path:
                self._start()
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.connect(f"{self._path}-large" if large else self._path)
        return server

    def Popen(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str, **how: Any) -> Any:
        if env["PYTHONHASHSEED"] != "0":
            return subprocess.Popen(command, env=env, cwd=cwd, **how)
        alive, held = os.pipe()
        os.set_blocking(alive, False)
        null = os.open(os.devnull, os.O_RDONLY)
        outputs = [how[name].fileno() for name in ("stdout", "stderr")]
        asked = {
            "argument": command[-1],
            "cwd": cwd,
            "env": dict(env),
            "numbers": [0, 1, 2, *how["pass_fds"]],
        }
        came = array.array("i", [null, *outputs, *how["pass_fds"], held])
        with self._connect(large=names_large(cwd, how["pass_fds"])) as server:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, came)
            server.sendmsg([repr(asked).encode()], [rights])
            pid = int(server.recv(100))
        os.close(null)
        os.close(held)
        return Run(pid, alive)


def join(path: str) -> None:
    """Fork this process's runs from another one's server."""
    sandbox.subprocess = Warm(path)  # type: ignore[assignment]
