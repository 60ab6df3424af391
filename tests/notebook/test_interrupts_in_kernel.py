"""Interrupt, re-run and shutdown of a real kernel with a `%%refine` cell; Ctrl-C in a terminal."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.parametrize(
    ("start", "wait"), [("async def", "await asyncio.sleep(600)"), ("def", "time.sleep(600)")]
)
def test_an_interrupt_ends_a_check_and_keeps_the_best(kernel, server, start, wait):
    server.requests.clear()
    Trial(server, "none", Answer())
    kernel.run(f"import time\nbegan = []\n{start} slow(text):\n    began.append(text)\n    {wait}")
    request = kernel.start(CELL.replace("-p prose", "-p prose -c slow"))
    until(lambda: server.requests)
    time.sleep(0.5)
    kernel.interrupt()
    assert kernel.finish(request)["ename"] == "Interrupted"
    assert kernel.value("began") == "['Hello']"
    assert kernel.value("refined") == "'Hello'"
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


def test_shutting_the_kernel_down_leaves_the_server(server):
    trial = fresh(server, "revise")
    with Kernel(settings(server)) as running:
        running.run("%load_ext ipyrefine")
        running.start(CELL)
        until(lambda: trial.asked == 1)
        pid = running.pid
        running.shutdown()
        assert server.left.wait(AT_ONCE)
        assert not Path(f"/proc/{pid}/stat").exists() or sys.platform != "linux"


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal is a pty here")
def test_ctrl_c_in_a_terminal_keeps_the_best_and_the_session(server):
    pexpect = pytest.importorskip("pexpect")
    trial = fresh(server, "judge")
    env = {**os.environ, **settings(server), "TERM": "xterm"}
    env["PROMPT_TOOLKIT_NO_CPR"] = "1"  # nobody answers where the cursor is
    command = "-m IPython --no-banner --no-confirm-exit --colors=nocolor --ext=ipyrefine"
    shell = pexpect.spawn(
        sys.executable, command.split(), env=env, timeout=30, encoding="utf-8",
        # A test run that was started in the background hands its deafness to Ctrl-C on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        shell.expect(r"In \[")
        for line in [*CELL.split("\n"), "", ""]:
            shell.send(f"{line}\r")
        until(lambda: trial.asked == 1)
        time.sleep(0.1)
        began = time.monotonic()
        shell.sendintr()
        shell.expect("Interrupted; ")
        assert server.left.wait(AT_ONCE)
        assert server.left_at - began < AT_ONCE
        shell.expect(r"In \[")
        shell.send("print('kept', ascii(refined), refined_run.stop_reason.value)\r")
        shell.expect("kept 'Hello' cancelled")
        shell.expect(r"In \[")
        shell.send("exit\r")
        shell.expect(pexpect.EOF)
    finally:
        shell.close(force=True)
    assert shell.exitstatus == 0
