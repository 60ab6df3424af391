"""The panel in a kernel without a browser: what it leaves behind, and what stands in for it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kernel import Kernel
from kit import judgement as judged
from openai_server import ScriptedServer

from ipyrefine.notebook.waiting import NO_ANYWIDGET, NO_FRONT_END

CELL = (
    "%%refine -p prose --set as=task -n 0 --criteria tone --critique never --set journal=no\nGreet."
)
RECORD = "application/vnd.ipyrefine.run+json"
VIEW = "application/vnd.jupyter.widget-view+json"
ENDS = {
    "accepted": "%refine accept",
    "discarded": "get_ipython().magics_manager.registry['Refine'].latest.close()",
    "run again": "",
}
# Runs the cell and what ends it in the kernel itself, and sends nothing of it, as nobody listens:
# what the kernel keeps is the same, and it takes seconds instead of a minute.
MANY = f"""
import asyncio, gc, comm, ipywidgets
from ipyrefine import api
from ipyrefine.notebook.cell_run import CellRun
from ipyrefine.notebook.panel import Panel
from ipyrefine.providers.scripted import ScriptedModel
from kit import judgement as judged
from ipykernel.comm.comm import BaseComm
BaseComm.publish_msg = lambda *_, **__: None
api.choose_model = lambda *_, **__: ScriptedModel(["<text>\\nHello\\n</text>", judged(10)])
async def cell(code):
    shell = get_ipython()
    (await shell.run_cell_async(code, transformed_cell=shell.transform_cell(code))).raise_error()
async def runs(count):
    for number in range(count):
        await cell({CELL!r})
        await cell({[*ENDS.values()]!r}[number % 3])
    gc.collect()
    known = [o for o in gc.get_objects() if type(o) in (CellRun, Panel)]
    widgets = ipywidgets.Widget.get_manager_state()["state"]
    return len(widgets), len(comm.get_comm_manager().comms), len(known), len(asyncio.all_tasks())
"""


def reply(body: dict[str, Any]) -> str:
    asked = body["messages"][-1]["content"]
    return judged(10) if "whole score" in asked else "<text>\nHello\n</text>"


@pytest.fixture
def start() -> Iterator[Callable[..., Kernel]]:
    """Starts a kernel that shows panels and asks a scripted model."""
    with ScriptedServer(reply) as server, ExitStack() as kernels:

        def started(*, fresh: bool = False, **env: str) -> Kernel:
            env |= {"IPYREFINE_MODEL": "m", "OPENAI_BASE_URL": server.base_url}
            kernel = kernels.enter_context(Kernel(env, fresh=fresh))
            kernel.run("%load_ext ipyrefine\n%config Refine.ui = 'widgets'")
            return kernel

        yield started


def test_many_runs_in_one_kernel_leave_no_growing_list(start):
    """Accepted, discarded and run again in turn: widgets, comms, panels, runs and tasks."""
    support = str(Path(__file__).parents[1] / "support")
    kernel = start(PYTHONPATH=os.pathsep.join([support, os.environ.get("PYTHONPATH", "")]))
    assert kernel.run(MANY)["status"] == "ok"
    assert kernel.run("before = await runs(3)\nafter = await runs(30)")["status"] == "ok"
    assert kernel.value("before[0] > 0")  # the last one is still on screen
    assert kernel.value("after") == kernel.value("before")


def test_without_anywidget_one_sentence_and_the_plain_record_take_the_panels_place(start, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "anywidget.py").write_text("raise ImportError('not here')")
    path = os.pathsep.join([str(blocked), os.environ.get("PYTHONPATH", "")])
    kernel = start(fresh=True, PYTHONPATH=path)
    assert kernel.run(CELL)["status"] == "ok"
    shown = kernel.outputs()
    said = [one["text"] for one in shown if "text" in one]
    assert said == [NO_ANYWIDGET + "\n"], shown
    assert any(RECORD in one.get("data", {}) for one in shown)
    assert kernel.value("refined") == "'Hello'"
    assert kernel.run("%refine accept")["payload"][0]["text"] == "Hello"


def test_the_first_line_comes_before_anything_heavy_and_gives_way_to_the_panel_or_an_error(start):
    kernel = start(fresh=True)
    kernel.run("from ipyrefine.notebook.waiting import Placeholder\noriginal = Placeholder.show")
    kernel.run(
        "import sys\ndef show(self):\n    global loaded\n"
        "    loaded = {'openai'} & set(sys.modules)\n    original(self)\nPlaceholder.show = show"
    )
    kernel.outputs()
    assert kernel.run(CELL)["status"] == "ok"
    bundles = [one["data"] for one in kernel.outputs() if "data" in one]
    assert "Starting…" in bundles[0]["text/html"]
    assert kernel.value("loaded") == "set()"
    [panel] = [data for data in bundles if VIEW in data]
    assert panel["text/plain"] == NO_FRONT_END, "what a front-end without widgets shows"
    first, *_, record = [data for data in bundles if RECORD in data]
    assert "STOPPED" in first["text/html"], "what a page that is saved in mid-run holds"
    assert "Hello" in record["text/html"]
    assert kernel.run("%refine accept")["payload"][0]["text"] == "Hello"
    assert {"text/html": "", "text/plain": ""} in [
        one["data"] for one in kernel.outputs() if "data" in one
    ], "above a decided record, no static page says that the panel needs a kernel"
    assert kernel.run("%%refine --chek run\nx")["ename"] == "UsageError"
    data = [one["data"] for one in kernel.outputs() if "data" in one]
    assert [one["text/html"] == "" for one in data] == [False, True]
