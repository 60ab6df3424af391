"""A kernel that ends in the middle of an embedded model's reply leaves no process behind.

The kernel, the model's provider and the program it starts are the real ones; only llama.cpp
itself, which that program serves, is a stand-in that needs no weights.
"""

import os
import signal
import sys
from pathlib import Path

import pytest
from kernel import Kernel, until

from ipyrefine.journal.store import Journal

SUPPORT = Path(__file__).parents[1] / "support"
SETUP = """\
%load_ext ipyrefine
from pathlib import Path
from ipyrefine import api
from ipyrefine.providers.local import LocalModel
api.choose_model = lambda *_, **__: LocalModel(Path({!r}), name="embedded")
"""
CELL = "%%refine -p prose --target 0.8 --critique always --set as=task -n 2\nWrite a greeting."

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    paths = [str(SUPPORT), str(SUPPORT / "fake_llama"), os.environ.get("PYTHONPATH", "")]
    return {"FAKE_LLAMA": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.mark.parametrize(("stage", "end"), [("draft", "shutdown"), ("judge", "killed")])
def test_a_kernel_that_ends_takes_the_embedded_model_with_it(tmp_path, world, stage, end):
    (tmp_path / "stage").write_text(stage)
    with Kernel(world) as kernel:
        kernel.run(SETUP.format(str(tmp_path / "model.gguf")))
        kernel.start(CELL)
        until((tmp_path / "streaming").exists)
        child = int((tmp_path / "pid").read_text())
        assert is_there(child)
        if end == "killed":
            os.kill(kernel.pid, signal.SIGKILL)
        else:
            kernel.shutdown()
        until(lambda: not is_there(child), seconds=5)
    kept = Journal().get().run
    assert kept.text == ("" if stage == "draft" else "Hello")
