"""Processor time is counted exactly, so that a busy machine changes no verdict."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ipyrefine.checks.evaluation import Examples
from ipyrefine.core.model import Task
from ipyrefine.sandbox.sandbox import load_program, run_python

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
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize(("spent", "passes"), [(0.5, True), (0.7, False)])
async def test_beside_busy_loops_an_example_gets_the_very_time_it_has(
    spent: float, passes: bool
) -> None:
    evidence = await Examples(seconds=2)(BUSY.format(spent), TASK)  # one may take 0.5 s
    assert evidence.passed is passes, evidence.detail


@pytest.mark.usefixtures("load")
async def test_a_part_ends_at_its_limit_to_a_tenth() -> None:
    example = {"setup": "", "source": "f(1)", "holds": False, "expected": None, "index": 0}
    request = {"kind": "examples", "token": "t", "report": "r", "examples": [example]}
    request["seconds"] = 0.5
    files = {"candidate.py": BUSY.format(60), "request.json": json.dumps(request)}
    result = await run_python(load_program("run_parts"), seconds=9, files=files, report="r")
    assert result.exit_code == -signal.SIGPROF
    assert 0.5 <= result.processor_seconds < 0.6
