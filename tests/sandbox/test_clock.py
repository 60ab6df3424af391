"""Processor time is counted exactly, so that a busy machine changes no verdict."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ipyrefine.checks.evaluation import Examples
from ipyrefine.core.model import Task
from ipyrefine.sandbox.sandbox import ProcessResult, load_program, run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a timer of Linux")

TASK = Task(text="Write f.\n\nf(1) == 1\n")
BUSY = """
import time
def f(x):
    start = time.process_time()
    while time.process_time() - start < {}: pass
    return x
"""


@pytest.fixture
def load() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


async def part(seconds: float) -> ProcessResult:
    """Run an example that never ends, of which each may take some seconds."""
    example = {"setup": "", "source": "f(1)", "holds": False, "expected": None, "index": 0}
    request = {"kind": "examples", "token": "t", "report": "r", "examples": [example]}
    files = {"candidate.py": BUSY.format(60)}
    files["request.json"] = json.dumps({**request, "seconds": seconds})
    return await run_python(load_program("run_parts"), seconds=9, files=files, report="r")


@pytest.mark.usefixtures("load")
async def test_beside_busy_loops_an_example_gets_the_very_time_it_has():
    within, beyond, endless = await asyncio.gather(
        *(Examples(seconds=1.2)(BUSY.format(spent), TASK) for spent in (0.3, 0.45)), part(0.3)
    )
    assert within.passed, within.shows  # one may take 0.3 s
    assert beyond.passed is False, beyond.shows
    assert endless.exit_code == -signal.SIGPROF
    assert 0.3 <= endless.processor_seconds < 0.6
