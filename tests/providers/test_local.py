"""The embedded model: what goes wrong before it runs, and, marked `model`, the real thing."""

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

from ipyrefine import errors
from ipyrefine.core.ports import Delta, Message, Reply, Request
from ipyrefine.providers import local
from ipyrefine.providers.local import LocalModel

ASK = Request(messages=(Message(role="user", content="Say hello in one word."),), max_tokens=64)


@pytest.fixture(autouse=True)
def no_engines_left():
    yield
    local._stop_all()


async def items_of(model: LocalModel, request: Request = ASK) -> list:
    return [item async for item in model.stream(request)]


async def test_a_missing_file_is_told_with_the_command_that_fetches_it(tmp_path):
    with pytest.raises(errors.WeightsError, match=r"cannot be read .*ipyrefine pull"):
        await items_of(LocalModel(tmp_path / "none.gguf", name="m"))


@pytest.mark.parametrize("content", [b"", b"GG", b"<html>not found</html>"])
async def test_a_file_that_is_no_gguf_is_never_given_to_llama(tmp_path, monkeypatch, content):
    monkeypatch.setattr(local, "_spawn", lambda: pytest.fail("it was given the file"))
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(errors.WeightsError, match=r"damaged or is no model.*ipyrefine pull"):
        await items_of(LocalModel(path, name="m"))


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> LocalModel:
    """A model whose server is another program, on a file that could be one."""
    stand_in = tmp_path / "program.py"
    stand_in.write_text(text)
    monkeypatch.setattr(local, "_PROGRAM", stand_in)
    weights = tmp_path / "m.gguf"
    weights.write_bytes(b"GGUF")
    return LocalModel(weights, name="m")


async def test_a_missing_package_is_told_with_the_command_that_installs_it(tmp_path, monkeypatch):
    hide = "import sys, runpy; sys.modules['xllamacpp'] = None;"
    run = f"runpy.run_path({str(local._PROGRAM)!r}, run_name='__main__')"
    with pytest.raises(errors.NoModel, match=r'pip install "ipyrefine\[local\]"'):
        await items_of(program(tmp_path, monkeypatch, hide + run))


@pytest.mark.parametrize("end", ["os.abort()", "pass", "raise SystemExit(3)"])
async def test_a_crash_while_loading_is_an_error_and_leaves_us_alive(tmp_path, monkeypatch, end):
    model = program(tmp_path, monkeypatch, f"import os\n{end}")
    with pytest.raises(errors.WeightsError, match="could not be loaded"):
        await items_of(model)


async def test_stopping_ends_a_process_that_does_not_heed_its_input(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_LEAVE_S", 0.05)
    deaf = 'import time\nprint(\'{"address": "http://127.0.0.1:9"}\', flush=True)\ntime.sleep(60)'
    model = program(tmp_path, monkeypatch, deaf)
    engine = local._engine(model._path)
    await asyncio.to_thread(engine.load)
    assert engine.running
    process = engine._process
    local._stop_all()
    assert process.returncode not in (None, 0)
    assert not engine.running


async def test_a_server_that_died_is_started_again(tmp_path, monkeypatch):
    brief = 'print(\'{"address": "http://127.0.0.1:9"}\', flush=True)\ninput()\ninput()'
    engine = local._engine(program(tmp_path, monkeypatch, brief)._path)
    first = await asyncio.to_thread(engine.load)
    assert await asyncio.to_thread(engine.load) is first
    engine._process.kill()
    engine._process.wait()
    assert not engine.running
    assert await asyncio.to_thread(engine.load) is not first


@pytest.mark.parametrize(
    ("mine", "seen"),
    [
        ({}, {"GOMP_SPINCOUNT": "1000"}),
        ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
        ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
    ],
)
async def test_its_threads_wait_awake_but_shortly_unless_the_user_says_otherwise(
    tmp_path, monkeypatch, mine, seen
):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in mine.items():
        monkeypatch.setenv(name, value)
    told = tmp_path / "told"
    say = (
        "import json, os\n"
        "names = ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT')\n"
        "set_ = {name: os.environ[name] for name in names if name in os.environ}\n"
        f"open({str(told)!r}, 'w').write(json.dumps(set_))"
    )
    with pytest.raises(errors.WeightsError):
        await items_of(program(tmp_path, monkeypatch, say))
    assert json.loads(told.read_text()) == seen


async def test_loading_is_announced_before_it_begins(tmp_path):
    stream = LocalModel(tmp_path / "none.gguf", name="qwen").stream(ASK)
    assert await anext(stream) == Delta(kind="thinking", text="Loading the model qwen …\n")
    await stream.aclose()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200000 100000", 2), ("50000 100000", 1), ("max 100000", None), ("", None)],
)
def test_a_container_s_share_of_the_processors_is_respected(tmp_path, monkeypatch, text, expected):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(16), raising=False)
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert local._fewer_threads(quota) == expected


def test_fewer_processors_than_the_machine_has_are_respected(tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(3), raising=False)
    assert local._fewer_threads(tmp_path / "absent") == 3


def test_importing_the_module_loads_no_llama():
    code = "import sys, ipyrefine.providers.local; sys.exit('xllamacpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _weights() -> Path | None:
    found = os.environ.get("IPYREFINE_TEST_WEIGHTS")
    if found:
        return Path(found)
    directory = os.environ.get("IPYREFINE_MODEL_DIR")
    files = sorted(Path(directory).glob("*.gguf")) if directory else []
    return min(files, key=lambda file: file.stat().st_size, default=None)


@pytest.fixture
def weights() -> Path:
    path = _weights()
    if path is None:
        pytest.skip("set IPYREFINE_TEST_WEIGHTS to a GGUF file")
    return path


@pytest.mark.model
@pytest.mark.parametrize("size", [1_000, 50_000_000])
async def test_a_truncated_file_is_an_error_and_not_a_crash(weights, tmp_path, size):
    path = tmp_path / "cut.gguf"
    with weights.open("rb") as whole:
        path.write_bytes(whole.read(size))
    with pytest.raises(errors.WeightsError, match="could not be loaded"):
        await items_of(LocalModel(path, name="m"))


@pytest.mark.model
async def test_answers_from_this_process_alone(weights):
    model = LocalModel(weights, name="qwen")
    first = await items_of(model)
    assert first[0].kind == "thinking"
    reply = first[-1]
    assert isinstance(reply, Reply)
    assert reply.text == "".join(i.text for i in first if isinstance(i, Delta) and i.kind == "text")
    assert "hello" in reply.text.lower()
    assert (reply.finish, reply.usage.cost) == ("stop", 0.0)
    second = (await items_of(LocalModel(weights, name="again")))[-1]
    assert (await items_of(model))[0] != first[0]
    assert second.usage.cached_tokens > 0
    assert len(local._ENGINES) == 1
    address = (await asyncio.to_thread(local._engine(weights).load))._url
    assert address.startswith("http://127.0.0.1:")
    body = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
    for headers in ({}, {"Authorization": "Bearer guess"}):
        asked = HttpRequest(f"{address}/chat/completions", body, headers)
        with pytest.raises(OSError, match="401"):
            await asyncio.to_thread(urlopen, asked)


@pytest.mark.model
async def test_a_json_schema_is_enforced(weights):
    schema = {
        "type": "object",
        "properties": {"mood": {"enum": ["glad", "sad"]}, "age": {"type": "integer"}},
        "required": ["mood", "age"],
        "additionalProperties": False,
    }
    request = ASK.model_copy(update={"json_schema": schema})
    reply = (await items_of(LocalModel(weights, name="m"), request))[-1]
    made = json.loads(reply.text)
    assert set(made) == {"mood", "age"}
    assert made["mood"] in ("glad", "sad")
    assert isinstance(made["age"], int)


@pytest.mark.model
async def test_a_prompt_beyond_the_context_is_told_as_too_long(weights):
    request = ASK.model_copy(update={"messages": (Message(role="user", content="go " * 9_000),)})
    with pytest.raises(errors.RequestRejected, match="too long for"):
        await items_of(LocalModel(weights, name="m"), request)


@pytest.mark.model
async def test_loading_leaves_the_event_loop_free(weights):
    task = asyncio.create_task(items_of(LocalModel(weights, name="m")))
    longest, last = 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.01)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert longest < 0.25


_LEAVE = """
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
(engine,) = local._ENGINES.values()
print(engine._process.pid, engine._model._url.split(":")[2].split("/")[0], flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.model
@pytest.mark.parametrize(("how", "code"), [("left", 0), ("killed", -9)])
def test_leaving_in_the_middle_of_a_reply_is_quick_quiet_and_leaves_nothing(weights, how, code):
    """Neither the server's process nor its port outlives us, whether we end or are killed."""
    command = [sys.executable, "-c", _LEAVE, str(weights), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    pid, port = map(int, done.stdout.split())
    deadline = time.monotonic() + 5
    while (is_open(port) or Path(f"/proc/{pid}/cmdline").exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_open(port)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.model
async def test_interrupting_our_process_group_does_not_end_the_server(weights):
    await items_of(LocalModel(weights, name="m"))
    process = local._engine(weights)._process
    assert os.getpgid(process.pid) != os.getpgid(0)
