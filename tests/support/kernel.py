"""A real IPython kernel, driven as a notebook would, without a browser.

On Linux it is forked from a process with packages loaded, as loading them takes 2 s.
"""

import atexit
import contextlib
import functools
import json
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import local_provisioner

WAIT_S = 60.0


def until(condition: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Wait until something is so; a test whose time is up fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


class Forked:
    """A kernel that was forked, as `subprocess.Popen` shows a process."""

    stdin = stdout = stderr = returncode = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        return None if self._reached(0) else 0

    def wait(self) -> int:
        until(lambda: self.poll() == 0)
        return 0

    def send_signal(self, number: int) -> None:
        self._reached(number)

    def terminate(self) -> None:
        self._reached(signal.SIGTERM)

    def kill(self) -> None:
        self._reached(signal.SIGKILL)

    def _reached(self, number: int) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
            return True
        return False


@functools.cache
def server() -> Any:
    """Return the process that kernels are forked from."""
    command = [sys.executable, str(Path(__file__).with_name("kernel_server.py"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = subprocess.Popen(command, start_new_session=True, **pipes)
    atexit.register(started.communicate)  # it ends when its input does
    return started


def fork_kernel(
    command: Sequence[str], *, env: Mapping[str, str], forked: bool = False, **how: Any
) -> Any:
    """Stands for Jupyter's `launch_kernel`, which forks none."""
    if not forked or sys.platform != "linux":
        return launch_kernel(command, env=env, **how)
    arguments = command[command.index("-f") :]
    asked = {"arguments": arguments, "env": dict(env), "cwd": how.get("cwd") or os.getcwd()}
    server().stdin.write(json.dumps(asked).encode() + b"\n")
    server().stdin.flush()
    return Forked(int(server().stdout.readline()))


launch_kernel = local_provisioner.launch_kernel
local_provisioner.launch_kernel = fork_kernel


class Kernel:
    """A kernel process; use it as a context manager.

    Args:
        env: environment variables for it, on top of this process's.
        fresh: whether it is started as a user's is, not forked from one with packages loaded.
    """

    def __init__(self, env: Mapping[str, str], *, fresh: bool = False) -> None:
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(env={**os.environ, **env}, forked=not fresh)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop_channels()
        with contextlib.suppress(RuntimeError):
            self._manager.shutdown_kernel(now=True)

    @property
    def pid(self) -> int:
        return int(self._manager.provisioner.pid)

    def start(self, code: str) -> str:
        """Run code without waiting; returns the request's id."""
        return self._client.execute(code, stop_on_error=False)

    def finish(self, request: str, seconds: float = WAIT_S) -> dict[str, Any]:
        """Wait for a request's reply and return its content."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                message = self._client.get_shell_msg(timeout=left)
            except queue.Empty:
                break
            if message["parent_header"].get("msg_id") == request:
                return message["content"]
        raise TimeoutError(f"no reply in {seconds} s")

    def run(self, code: str) -> dict[str, Any]:
        """Run code to its end; returns the reply's content."""
        return self.finish(self.start(code))

    def value(self, expression: str) -> str:
        """The repr of an expression in the kernel."""
        request = self._client.execute(
            "", user_expressions={"v": expression}, silent=True, stop_on_error=False
        )
        found = self.finish(request)["user_expressions"]["v"]
        if found["status"] != "ok":
            raise AssertionError(found)
        return str(found["data"]["text/plain"])

    def outputs(self) -> list[dict[str, Any]]:
        """What it has published since the last call."""
        messages = []
        while True:
            try:
                messages.append(self._client.get_iopub_msg(timeout=0.3)["content"])
            except queue.Empty:
                return messages

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def shutdown(self) -> None:
        """Ask it to end, and wait until it has."""
        self._manager.shutdown_kernel()
