"""Programs that benchmarks measure from outside, each in a process of its own."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SUPPORT = Path(__file__).parent


class Slow:
    """A scripted server in its own process, so that its work is not counted as ours."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.base_url = self._line()

    def latest(self) -> float:
        """When the latest request came, in seconds since 1970; 0 before the first."""
        assert self._process.stdin
        print(file=self._process.stdin, flush=True)
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


@contextlib.contextmanager
def slow_server(seconds: float) -> Iterator[Slow]:
    """A server of greetings whose replies take so many seconds."""
    command = [sys.executable, str(SUPPORT / "serve_greetings.py"), str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Slow(process)
        process.kill()


def output(python: str, code: str) -> list[str]:
    """What a program prints, as its lines."""
    run = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout.splitlines()
