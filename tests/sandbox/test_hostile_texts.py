"""A text that hangs, crashes, exits, forks, floods or allocates is evidence."""

import sys

import pytest

from ipyrefine.checks.python import RunsCleanly
from ipyrefine.core.model import Task

TASK = Task(text="Write f(). f() == 1")
DEEDS = {
    "hangs": "while True: pass",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "floods": "import os\nwhile True: os.write(2, b'x' * 65536)",
    "allocates": "x = []\nwhile True: x.append(bytearray(10**7))",
}


@pytest.mark.skipif(sys.platform != "linux", reason="not every limit exists elsewhere")
@pytest.mark.parametrize("deed", DEEDS)
async def test_it_is_evidence_and_says_why(deed: str) -> None:
    evidence = await RunsCleanly(seconds=1.5)(DEEDS[deed], TASK)
    assert evidence.passed is False
    assert evidence.detail.splitlines()[0].strip()
    assert len(evidence.detail) < 2_000
