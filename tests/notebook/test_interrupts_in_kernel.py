"""Interrupt, re-run and shutdown of a real kernel with a `%%refine` cell; Ctrl-C in a terminal."""

import time
from collections.abc import Iterator

import pytest
from faulty import GOOD, STAGES, Trial
from kernel import Kernel, until
from openai_server import Answer, ScriptedServer

AT_ONCE = 20.0  # seconds: the claim is one; uninterrupted, each would wait for ever
LEFT = "[t for t in asyncio.all_tasks() if 'ipyrefine' in repr(t.get_coro())]"
CELL = "%%refine -p prose --target 0.8 --critique always --set as=task -n 2\nWrite a greeting."


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def settings(server: ScriptedServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "IPYREFINE_MODEL": "m", "OPENAI_API_KEY": ""}


@pytest.fixture(scope="module")
def kernel(server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    home = str(tmp_path_factory.mktemp("kernel"))
    folders = {"IPYTHONDIR": home, "JUPYTER_RUNTIME_DIR": home, "IPYREFINE_HOME": home}
    with Kernel({**settings(server), **folders}) as running:
        running.run("%load_ext ipyrefine\nimport asyncio")
        yield running


def fresh(server: ScriptedServer, stage: str) -> Trial:
    server.requests.clear()
    server.left.clear()
    return Trial(server, stage, Answer(GOOD[stage], chunk=4, stall_after=3))


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_leaves_the_server_within_a_second_and_keeps_the_best(kernel, server, stage):
    trial = fresh(server, stage)
    request = kernel.start(CELL)
    until(lambda: trial.asked == 1)
    time.sleep(0.1)
    began = time.monotonic()
    kernel.interrupt()
    reply = kernel.finish(request)
    assert server.left.wait(AT_ONCE)
    assert server.left_at - began < AT_ONCE
    assert (reply["status"], reply["ename"]) == ("error", "Interrupted")
    assert reply["evalue"].startswith("Interrupted; ")
    assert kernel.value("refined") == ("''" if stage == "draft" else "'Hello'")
    assert kernel.value("refined_run.stop_reason.value") == "'cancelled'"
    assert kernel.value(LEFT) == "[]"


def test_running_the_cell_again_ends_what_its_first_run_was_still_at(kernel, server):
    """The first run goes on by the Continue button while its cell has long ended."""
    server.requests.clear()
    good = Trial(server, "none", Answer())
    assert kernel.run(CELL)["status"] == "ok"
    assert kernel.value("refined_run.stop_reason.value") == "'passed'"
    trial = fresh(server, "revise")
    kernel.run(
        "from ipyrefine.core.decisions import Continue\n"
        "first = get_ipython().magics_manager.registry['Refine'].latest\n"
        "first.decide(Continue())"
    )
    until(lambda: trial.asked == 1)
    server.default = good._answer
    began = time.monotonic()
    request = kernel.start(CELL)
    assert server.left.wait(AT_ONCE)
    assert server.left_at - began < AT_ONCE
    assert kernel.finish(request)["status"] == "ok"
    assert kernel.value("first.session.running") == "False"
    assert kernel.value("refined") == "'Hello again'"
