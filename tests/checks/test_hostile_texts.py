"""A text that hangs, crashes, exits, forks, floods or allocates is evidence in every check.

One that only waits is none: a busy machine makes the same impression.
"""

import sys
import time

import pytest

from ipyrefine.checks import sandbox
from ipyrefine.checks.examples import Examples
from ipyrefine.checks.python import RunsCleanly
from ipyrefine.checks.tests import Tests
from ipyrefine.core.model import Task
from ipyrefine.errors import CheckNotRun

TASK = Task(text="Write f(). f() == 1")
CHECKS = {
    "examples": lambda: Examples(seconds=1.5),
    "run": lambda: RunsCleanly(seconds=1.5),
    "tests": lambda: Tests("def test_it(): assert f() == 1", seconds=1.5),
}
DEEDS = {
    "hangs": "while True: pass",
    "sleeps": "import time; time.sleep(60)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "exits": "import os; os._exit(0)",
    "exits politely": "raise SystemExit(3)",
    "forks": "import os\nwhile True: os.fork()",
    "floods": "import os\nwhile True: os.write(2, b'x' * 65536)",
    "fills the disk": "with open('x', 'wb') as file:\n    while True: file.write(b'x' * 10**6)",
    "allocates": "x = []\nwhile True: x.append(bytearray(10**7))",
    "threads": "import threading\nthreading.Thread(target=__import__('time').sleep, args=[60])"
    ".start()\nraise ValueError",
    "reads input": "input()",
}


@pytest.mark.skipif(sys.platform != "linux", reason="not every limit exists elsewhere")
@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("when", ["loaded", "called"])
async def test_it_is_evidence_soon_and_says_why(
    check: str, deed: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = DEEDS[deed]
    if when == "called":
        text = "def f():\n" + "".join(f"    {line}\n" for line in text.splitlines())
        text += "f()\n" if check == "run" else ""
    began = time.monotonic()
    if deed == "sleeps" or (check, deed) == ("run", "threads"):
        monkeypatch.setattr(sandbox, "_WALL_FLOOR_S", 0)
        with pytest.raises(CheckNotRun, match="it waits, or the machine is busy"):
            await CHECKS[check]()(text, TASK)
        return
    evidence = await CHECKS[check]()(text, TASK)
    took = time.monotonic() - began
    # The notebook could have answered it, so `run` cannot tell.
    expected = None if (check, deed) == ("run", "reads input") else False
    assert evidence.passed is expected
    assert evidence.detail.splitlines()[0].strip()
    assert len(evidence.detail) < 2_000
    assert took < 20
