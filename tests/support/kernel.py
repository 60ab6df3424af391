"""A real IPython kernel, driven as a notebook would, without a browser."""

import contextlib
import os
import queue
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from jupyter_client.manager import KernelManager

WAIT_S = 60.0


def until(condition: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Wait until something is so; a test whose time is up fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


class Kernel:
    """A kernel process; use it as a context manager.

    Args:
        env: environment variables for it, on top of this process's.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(env={**os.environ, **env})
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
