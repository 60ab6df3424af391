"""What hostile code can and cannot do to the kernel that runs it."""

import asyncio
import errno
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ipyrefine.checks import sandbox
from ipyrefine.checks.python import RunsCleanly
from ipyrefine.checks.sandbox import find_processes, run_python
from ipyrefine.core.model import Task

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Every test's sandboxes lie in a folder of its own, which is empty again at its end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("ipyrefine-*")) == []
    assert find_processes(str(tmp_path)) == set()


def pids():
    """The processes that are there and not just waiting to be reaped."""
    return {int(p.parent.name) for p in Path("/proc").glob("[0-9]*/stat") if " Z " not in read(p)}


def read(path):
    try:
        return path.read_text()
    except OSError:
        return " Z "


async def test_output_and_status_come_back():
    ran = await run_python("import sys; print('hé'); sys.exit(3)")
    assert (ran.stdout, ran.exit_code, ran.limit) == ("hé\n", 3, None)


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)"])
async def test_a_hang_ends_at_the_limit(code):
    ran = await run_python(code, seconds=0.5)
    assert ran.timed_out
    assert ran.seconds < 3


@pytest.mark.parametrize(
    "write", ["print('x')", "print('x' * 1000)", "__import__('os').write(2, b'x' * 65536)"]
)
async def test_a_flood_neither_fills_memory_nor_starves_the_loop(write):
    late = 0.0

    async def tick():
        nonlocal late
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late = max(late, time.monotonic() - before)

    ticking = asyncio.create_task(tick())
    ran = await asyncio.wait_for(run_python(f"while True: {write}", output_limit=5_000), 8)
    ticking.cancel()
    assert ran.limit == "output"
    assert len(ran.stdout) + len(ran.stderr) < 5_200
    assert late < 1


async def test_a_traceback_after_much_output_is_kept():
    ran = await run_python("import sys; sys.stderr.write('w' * 9000); 1/0", output_limit=2_000)
    assert "ZeroDivisionError" in ran.stderr


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="no limit on memory")
async def test_memory_without_end_is_an_error_in_the_code():
    ran = await run_python("x = []\nwhile True: x.append(bytearray(10**7))", memory_mb=200)
    assert "MemoryError" in ran.stderr


@linux
async def test_a_fork_bomb_is_stopped():
    ran = await run_python("import os\nwhile True: os.fork()", seconds=5)
    assert ran.limit == "processes"


@linux
@pytest.mark.parametrize("escape", ["", "start_new_session=True", "start_new_session=True, env={}"])
async def test_a_child_left_behind_is_killed_and_not_waited_for(escape, folders):
    code = f"import subprocess as s; print(s.Popen(['/bin/sleep', '60'], {escape}).pid)"
    ran = await run_python(code, seconds=5)
    assert (ran.exit_code, ran.limit) == (0, None)
    assert int(ran.stdout) not in pids()


@linux
async def test_cancelling_kills_the_code_and_removes_its_folder(folders):
    task = asyncio.create_task(run_python("import time; time.sleep(60)"))
    for _ in range(100):
        await asyncio.sleep(0.02)
        if find_processes(str(folders)):
            break
    assert find_processes(str(folders))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_no_secret_of_the_environment_reaches_the_code(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    ran = await run_python("import os; print(dict(os.environ))")
    assert "planted" not in ran.stdout
    assert set(os.environ) & {"PATH"} <= set(eval(ran.stdout))


async def test_there_is_no_input():
    assert "EOFError" in (await run_python("input()")).stderr


async def test_a_text_that_is_no_unicode_is_a_fault_of_the_text():
    ran = await run_python("print('\ud800')")
    assert ran.exit_code == 1
    assert "SyntaxError" in ran.stderr


async def test_a_link_put_in_the_place_of_the_report_is_not_followed():
    ran = await run_python("import os; os.symlink('/etc/passwd', 'r')", report="r")
    assert ran.report == ""


async def test_a_loop_that_cannot_start_processes_gets_help(monkeypatch):
    def refuse(*_args, **_options):
        raise NotImplementedError

    monkeypatch.setattr(asyncio.get_running_loop(), "subprocess_exec", refuse)
    assert (await run_python("print(1)")).stdout == "1\n"


NETWORK = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
print("loopback")
try:
    socket.create_connection(("192.0.2.1", 53), timeout=0.5)
except OSError as error:
    print(type(error).__name__, error.errno)
print([name for _, name in socket.if_nameindex()])
"""


@linux
async def test_the_network_is_cut_off_where_the_system_allows_it_and_else_said_so():
    ran = await run_python(NETWORK)
    loopback, error, interfaces = ran.stdout.splitlines()
    assert loopback == "loopback"
    if ran.offline:
        assert error == f"OSError {errno.ENETUNREACH}"
        assert interfaces == "['lo']"
        assert ran.network_note == ""
    else:
        assert "could reach the network" in ran.network_note


@pytest.fixture
def refusing(tmp_path, monkeypatch):
    """A system that makes no network namespace."""
    program = Path(sandbox.LIMITER).read_text("utf-8")
    refused = program.replace("unshare = ctypes.CDLL(None).unshare", "unshare = lambda flags: -1")
    assert refused != program
    limiter = tmp_path / "limiter.py"
    limiter.write_text(refused)
    monkeypatch.setattr(sandbox, "LIMITER", limiter)


@linux
async def test_a_system_that_cannot_cut_the_network_off_runs_the_code_all_the_same(refusing):
    ran = await run_python("print(1)")
    assert (ran.stdout, ran.offline) == ("1\n", False)
    evidence = await RunsCleanly()("x = 1", Task(text="t"))
    assert (evidence.passed, evidence.detail.splitlines()[-1]) == (True, sandbox.NETWORK_NOTE)


async def test_bytes_are_put_beside_the_script_as_they_are():
    ran = await run_python("print(open('b', 'rb').read())", files={"b": b"\xff\x00"})
    assert ran.stdout == "b'\\xff\\x00'\n"
