"""The embedded model: its failures before it runs, and, marked `model`, the real one."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest
from openai_server import items_of

from ipyrefine import errors
from ipyrefine.core.ports import Delta, Message, Reply, Request
from ipyrefine.providers import local
from ipyrefine.providers.local import LocalModel
from ipyrefine.providers.weights import LIGHT, find

ASK = Request(messages=(Message(role="user", content="Say hello in one word."),), max_tokens=64)


@pytest.fixture(autouse=True)
def no_servers_left():
    yield
    local.stop_servers()


def fake_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> Path:
    """Replace the server by another program; return a file that looks like weights."""
    program = tmp_path / "program.py"
    program.write_text(code)
    monkeypatch.setattr(local, "PROGRAM", program)
    weights = tmp_path / "m.gguf"
    weights.write_bytes(b"GGUF")
    return weights


async def test_a_missing_package_is_reported_with_the_command_that_installs_it(
    tmp_path, monkeypatch
):
    hide = "import sys, runpy; sys.modules['xllamacpp'] = None;"
    run = f"runpy.run_path({str(local.PROGRAM)!r}, run_name='__main__')"
    with pytest.raises(errors.NoModel, match=r'pip install "ipyrefine\[local\]"'):
        await items_of(LocalModel(fake_server(tmp_path, monkeypatch, hide + run), name="m"), ASK)


@pytest.mark.parametrize("end", ["os.abort()", "pass", "raise SystemExit(3)"])
async def test_a_crash_while_loading_is_an_error_and_leaves_us_alive(tmp_path, monkeypatch, end):
    path = fake_server(tmp_path, monkeypatch, f"import os\n{end}")
    with pytest.raises(errors.WeightsError, match="could not be loaded"):
        await items_of(LocalModel(path, name="m"), ASK)


async def test_stopping_ends_a_process_that_ignores_its_input(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "STOP_SECONDS", 0.05)
    deaf = 'import time\nprint(\'{"address": "http://127.0.0.1:9"}\', flush=True)\ntime.sleep(60)'
    server = local.server_for(fake_server(tmp_path, monkeypatch, deaf))
    await asyncio.to_thread(server.start)
    assert server.is_running
    process = server.process
    local.stop_servers()
    assert process.returncode not in (None, 0)
    assert not server.is_running


async def test_a_server_that_died_is_started_again(tmp_path, monkeypatch):
    brief = 'print(\'{"address": "http://127.0.0.1:9"}\', flush=True)\ninput()\ninput()'
    server = local.server_for(fake_server(tmp_path, monkeypatch, brief))
    first = await asyncio.to_thread(server.start)
    assert await asyncio.to_thread(server.start) is first
    server.process.kill()
    server.process.wait()
    assert not server.is_running
    assert await asyncio.to_thread(server.start) is not first


async def test_loading_is_announced_before_it_begins(tmp_path):
    stream = LocalModel(tmp_path / "none.gguf", name="qwen").stream(ASK)
    assert await anext(stream) == Delta(kind="thinking", text="Loading the model qwen …\n")
    await stream.aclose()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200000 100000", 2), ("50000 100000", 1), ("max 100000", None), ("", None)],
)
def test_a_container_s_limit_of_processors_is_respected(tmp_path, monkeypatch, text, expected):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(16), raising=False)
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert local.allowed_processors(quota) == expected
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(3), raising=False)
    assert local.allowed_processors(tmp_path / "absent") == 3


@pytest.fixture
def weights() -> Path:
    path = find(LIGHT)
    if path is None:
        pytest.skip(f"fetch the weights first: ipyrefine pull {LIGHT}")
    return path


@pytest.mark.model
@pytest.mark.parametrize("size", [1_000, 50_000_000])
async def test_a_truncated_file_is_an_error_and_not_a_crash(weights, tmp_path, size):
    path = tmp_path / "cut.gguf"
    with weights.open("rb") as whole:
        path.write_bytes(whole.read(size))
    with pytest.raises(errors.WeightsError, match="could not be loaded"):
        await items_of(LocalModel(path, name="m"), ASK)


@pytest.mark.model
async def test_answers_from_this_process_alone(weights):
    model = LocalModel(weights, name="qwen")
    first = await items_of(model, ASK)
    process = local.server_for(weights).process
    assert os.getpgid(process.pid) != os.getpgid(0), "interrupting ours leaves it alone"
    assert first[0].kind == "thinking"
    reply = first[-1]
    assert isinstance(reply, Reply)
    assert reply.text == "".join(i.text for i in first if isinstance(i, Delta) and i.kind == "text")
    assert "hello" in reply.text.lower()
    assert (reply.finish, reply.usage.cost) == ("stop", 0.0)
    second = (await items_of(LocalModel(weights, name="again"), ASK))[-1]
    assert (await items_of(model, ASK))[0] != first[0]
    assert second.usage.cached_tokens > 0
    assert len(local.SERVERS) == 1
    address = (await asyncio.to_thread(local.server_for(weights).start)).base_url
    assert address.startswith("http://127.0.0.1:")
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
    for headers in ({}, {"Authorization": "Bearer guess"}):
        request = HttpRequest(f"{address}/chat/completions", body, headers)
        with pytest.raises(OSError, match="401"):
            await asyncio.to_thread(urlopen, request)


@pytest.mark.model
async def test_loading_leaves_the_event_loop_free(weights):
    task = asyncio.create_task(items_of(LocalModel(weights, name="m"), ASK))
    longest, last = 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert longest < 0.25


_EXIT = """
import asyncio, os, signal, sys
from pathlib import Path
from ipyrefine.core.ports import Delta, Message, Request
from ipyrefine.providers import local

loop = asyncio.new_event_loop()
words = "Count from 1 to 1000, one number per line."
ask = Request(messages=(Message(role="user", content=words),), max_tokens=4000)
stream = local.LocalModel(Path(sys.argv[1]), name="m").stream(ask)

async def begin():
    async for item in stream:
        if isinstance(item, Delta) and item.kind == "text":
            return

loop.run_until_complete(begin())
(server,) = local.SERVERS.values()
print(server.process.pid, server.start().base_url.split(":")[2].split("/")[0], flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.model
@pytest.mark.parametrize(("how", "code"), [("left", 0), ("killed", -9)])
def test_exiting_in_the_middle_of_a_reply_is_quick_and_quiet_and_leaves_nothing(weights, how, code):
    """Neither the server's process nor its port outlives ours, however that ends."""
    command = [sys.executable, "-c", _EXIT, str(weights), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    pid, port = map(int, done.stdout.split())
    deadline = time.monotonic() + 60
    while (is_open(port) or Path(f"/proc/{pid}/cmdline").exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_open(port)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
