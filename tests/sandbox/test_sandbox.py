"""What hostile code can and cannot do to the kernel that runs it."""

import asyncio
import errno
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from processes import find_processes
from shells import NO_HISTORY

from ipyrefine import refine
from ipyrefine.checks.evaluation import Examples
from ipyrefine.checks.python import RunsCleanly
from ipyrefine.checks.suite import Suite
from ipyrefine.checks.tests import Tests
from ipyrefine.core.model import Task
from ipyrefine.core.testing import read_tests
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.notebook.magic import Refine
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.sandbox import sandbox
from ipyrefine.sandbox.programs import confine
from ipyrefine.sandbox.sandbox import ProcessResult, Protection, run_python

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Every test's sandboxes lie in a folder of its own, which is empty again at its end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("ipyrefine-*")) == []
    assert find_processes(str(tmp_path)) == set()


async def test_code_that_catches_the_signal_of_its_limit_ends_and_what_it_reported_comes_back():
    catch = "import signal\nfor n in (24, 27, 14): signal.signal(n, signal.SIG_IGN)\n"
    report = "print('x', file=open('r', 'w'), flush=True)\n"
    ran = await run_python(f"{catch}{report}while True: pass", seconds=0.5, report="r")
    assert (ran.timed_out, ran.report) == (True, "x\n")


@linux
@pytest.mark.parametrize("make", ["os.symlink('/etc/passwd', 'r')", "os.mkfifo('r')"])
async def test_a_report_that_is_no_file_does_not_come_back(make):
    assert (await run_python(f"import os\n{make}", report="r")).report == ""


@pytest.fixture
def impatient(monkeypatch):
    """Wall limits of a second, which a waiting script reaches."""
    monkeypatch.setattr(sandbox, "_WALL_FACTOR", 0)
    monkeypatch.setattr(sandbox, "_WALL_FLOOR_S", 1)
    monkeypatch.setattr("ipyrefine.checks.python.IMPORT_SECONDS", 0)


WAITING = "import time\ntime.sleep(600)\n\ndef f(x):\n    return x"


async def test_a_check_that_hit_the_backstop_neither_passes_nor_fails_a_text(impatient):
    """Whatever the check; the verdict then rests on what else there is."""
    task = "Write f.\n\n>>> f(1)\n1"
    code = f"```python\n{WAITING}\n```"
    checks = [RunsCleanly(), Tests("def test_f():\n    assert f(1) == 1")]
    model = ScriptedModel([code] + ["YES"] * 40)
    run = await refine(task, model=model, checks=checks, journal=False, max_revisions=0)
    evidence = run.iterations[0].evidence
    assert {e.name for e in evidence} == {"run", "tests:tests", "examples"}
    assert [e.passed for e in evidence] == [None] * 3
    assert all("counts neither for nor against" in e.shows for e in evidence)
    assert run.verdict.basis in ("judge", "none")
    tests = read_tests("def test_two():\n    assert f(1) == 2\n")
    found = await Suite()(tests, WAITING, Task(text="t", form="code"))
    assert [one.passed for one in found.values()] == [None], "a critic's test stays untried"


async def test_an_example_that_a_text_misses_counts_though_it_waits_at_the_next(impatient):
    text = "import time\ndef f(x):\n    return time.sleep(600) if x == 3 else x"
    task = Task(text="f(1) == 1\nf(2) == 9\nf(3) == 3", form="code")
    evidence = await Examples()(text, task)
    assert evidence.passed is False
    assert "f(2): expected 9, got 2" in evidence.shows
    assert "f(3): expected 3, was not run" in evidence.shows
    with pytest.raises(CheckNotRun):
        await Examples()(text, Task(text="f(1) == 1\nf(2) == 2\nf(3) == 3", form="code"))


@pytest.mark.parametrize("write", ["print('x')", "__import__('os').write(2, b'x' * 65536)"])
async def test_a_flood_neither_fills_memory_nor_starves_the_loop(write):
    late = 0.0

    async def tick():
        nonlocal late
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late = max(late, time.monotonic() - before)

    ticking = asyncio.create_task(tick())
    ran = await asyncio.wait_for(run_python(f"while True: {write}", output_limit=5_000), 60)
    ticking.cancel()
    assert ran.limit == "output"
    assert len(ran.stdout) + len(ran.stderr) < 5_200
    assert late < 5


@linux
async def test_cancelling_kills_the_code_and_removes_its_folder(folders):
    task = asyncio.create_task(run_python("import time; time.sleep(60)"))
    async with asyncio.timeout(60):
        while not find_processes(str(folders)):  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_no_secret_of_the_environment_reaches_the_code(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    ran = await run_python("import os; print(dict(os.environ))")
    assert "planted" not in ran.stdout
    assert set(os.environ) & {"PATH"} <= set(eval(ran.stdout))


async def test_a_traceback_after_much_output_is_kept():
    ran = await run_python("import sys; sys.stderr.write('w' * 9000); 1/0", output_limit=2_000)
    assert "ZeroDivisionError" in ran.stderr


async def test_a_set_of_words_has_the_same_order_in_every_run():
    source = 'print({"pear", "fig", "plum", "lime", "date", "kiwi"})'
    assert len({(await run_python(source)).stdout for _ in range(2)}) == 1


@linux
def test_the_calls_have_the_numbers_that_the_kernel_gives_them():
    listed = (confine._CALLS + confine._MORE_CALLS).replace(",", "").split()
    assert len(set(listed[::3])) == len(listed) / 3
    limited = {line.split()[0] for line in (confine._ARGUMENTS + confine._TO_ITSELF).splitlines()}
    assert limited < set(listed[::3])
    headers = sorted(Path("/usr/include").glob("**/asm*/unistd*.h"))
    known = {"x86_64": dict[str, str](), "generic": dict[str, str]()}
    for path in headers:
        kind = "generic" if "generic" in str(path) else "x86_64" if "_64" in path.name else ""
        known.get(kind, {}).update(
            re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text(), re.M)
        )
    for column, numbers in enumerate(known.values(), start=1):
        if not numbers:
            pytest.skip("the kernel's headers are not installed")
        of_machine = dict(zip(listed[::3], listed[column::3], strict=True))
        wrong = {n: one for n, one in of_machine.items() if n in numbers and numbers[n] != one}
        assert wrong == {}


async def test_a_text_that_is_no_unicode_is_a_fault_of_the_text():
    ran = await run_python("print('\ud800')")
    assert ran.exit_code == 1
    assert "SyntaxError" in ran.stderr


NO_NAMESPACES = ("_LIBC.unshare(", "(lambda _: -1)(")
NETWORK = """
import asyncio, socket
try:
    socket.create_connection(("192.0.2.1", 53), timeout=0.5)
except OSError as error:
    print(error.errno)
socket.socketpair()
asyncio.run(asyncio.sleep(0))
"""
LOOPBACK = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
print([name for _, name in socket.if_nameindex()])
"""


@linux
@pytest.mark.parametrize("refused", [False, True], ids=["namespaces", "no namespaces"])
async def test_there_is_no_network_but_a_private_loopback(refused, refuse):
    if refused:
        refuse(*NO_NAMESPACES)
    ran = await run_python(NETWORK)
    assert (ran.stdout, ran.stderr) == (f"{errno.ENETUNREACH}\n", "")
    assert ran.protection.network
    local = await run_python(LOOPBACK)
    if ran.protection.disk:  # there are namespaces
        assert local.stdout == "['lo']\n"
    else:
        assert f"[Errno {errno.ENETUNREACH}]" in local.stderr


@linux
async def test_a_text_that_ends_just_beyond_its_limit_neither_passes_nor_fails():
    busy = "import time\nwhile time.process_time() < {}: pass"
    with pytest.raises(CheckNotRun, match="too near to the limit"):
        await run_python(busy.format(0.53), seconds=0.5)
    assert (await run_python(busy.format(0.53) + "\n1 / 0", seconds=0.5)).exit_code == 1


@pytest.fixture
def refuse(tmp_path, monkeypatch):
    """Replace a call of the limiter, as where a system refuses it."""

    def replace(call, answer):
        program = Path(sandbox.LIMITER).read_text("utf-8")
        refused = program.replace(call, answer)
        assert refused != program
        limiter = tmp_path / "limiter.py"
        limiter.write_text(refused)
        shutil.copy(Path(sandbox.LIMITER).with_name("overlay.py"), tmp_path)
        monkeypatch.setattr(sandbox, "LIMITER", limiter)

    return replace


@pytest.fixture
def refusing(refuse):
    """A system that makes no namespaces."""
    refuse(*NO_NAMESPACES)


@linux
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        NO_NAMESPACES,
        ('_write_file("/proc/self/uid_map"', '_write_file("/proc/self/none"'),
        ('if not _mount_at("/", None, _REC | _PRIVATE):', "if True:"),
    ],
    ids=["no namespaces", "no rights in the user namespace", "no mounts"],
)
async def test_namespaces_that_cannot_be_used_are_done_without_and_evidence_says_so(
    refuse, call, answer
):
    refuse(call, answer)
    ran = await run_python("print(1)")
    assert (ran.stdout, ran.protection.network, ran.protection.disk) == ("1\n", True, False)
    assert "fill the disk" in ran.protection_note
    evidence = await RunsCleanly()("x = 1", Task(text="t"))
    assert (evidence.passed, evidence.shows.splitlines()[-1]) == (True, ran.protection_note)


@linux
@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ('_mount_at("/proc", "proc", _NOSUID | _NODEV | _NOEXEC)', set()),
        ('_set_read_only("/", _RECURSIVE)', {"disk"}),
        ("_restrict_files(readable, writable)", {"files"}),
    ],
    ids=["a private /proc", "a read-only system", "Landlock"],
)
async def test_without_one_of_its_means_the_sandbox_protects_less_and_says_so(
    refuse, call, missing
):
    complete = (await run_python("pass")).protection
    if complete.gaps:
        pytest.skip(f"the sandbox is not complete on this system: {complete.gaps}")
    refuse(call, "(False, False)" if missing == {"files"} else "False")
    protection = (await run_python("pass")).protection
    assert {name for name, held in protection if not held} == missing


POOLS = """from multiprocessing import *
from multiprocessing import managers, pool, shared_memory
from concurrent.futures import *
"""


@linux
@pytest.mark.parametrize(
    ("source", "tried"),
    [
        (f"{POOLS}Pool(2)", False),
        (f"{POOLS}pool.ThreadPool(2)", False),
        (f"{POOLS}Queue()", False),
        (f"{POOLS}Value('i', 1)", False),
        (f"{POOLS}RawArray('i', 9)", False),
        (f"{POOLS}shared_memory.SharedMemory(create=True, size=9)", False),
        (f"{POOLS}list(ProcessPoolExecutor(2).map(abs, [1]))", False),
        ("import os\nos.kill(os.getppid(), 9)", False),
        ("import os\nos.sched_setaffinity(os.getpid(), {0})", False),
        ("import os\nos.memfd_create('x')", False),
        ("import socket\nsocket.create_server(('127.0.0.1', 0))", False),
        ("import os\ntry: os.kill(1, 9)\nexcept OSError as e: raise ValueError('x') from e", False),
        ("raise PermissionError(1, 'Operation not permitted')", True),
        ("import errno\nraise OSError(errno.ENOSYS, 'x')", True),
        ("try: 1 / 0\nexcept ArithmeticError as e: raise PermissionError(1, 'x') from e", True),
        (f"{POOLS}managers.BaseManager().start()\n1 / 0", True),
    ],
)
async def test_a_text_whose_call_the_sandbox_refuses_is_not_tried(refusing, source, tried):
    evidence = await RunsCleanly()(source, Task(text="t"))
    body = "".join(f"    {line}\n" for line in source.splitlines() if line not in POOLS)
    text = f"{POOLS}def f():\n{body}    return 1"
    example = await Examples()(text, Task(text="f() == 2", form="code"))
    outcomes = [evidence.passed, example.passed]
    assert outcomes == ([False] * 2 if tried else [None] * 2)
    assert tried or all("Not run: " in one.shows for one in (evidence, example))


@linux
@pytest.mark.parametrize("by", ["variable", "setting"])
async def test_a_required_sandbox_that_is_incomplete_runs_nothing(refusing, monkeypatch, by):
    if by == "variable":
        monkeypatch.setenv("IPYREFINE_SANDBOX", "required")
    else:
        shell = InteractiveShell(config=NO_HISTORY)
        monkeypatch.setattr(sandbox, "_mode", None)
        Refine(shell).sandbox = "required"
    with pytest.raises(CheckNotRun, match="a complete sandbox is required: here, code could fill"):
        await run_python("print(1)")


async def test_a_mode_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.setenv("IPYREFINE_SANDBOX", "always")
    with pytest.raises(UsageError, match="must be auto or required, not 'always'"):
        await run_python("print(1)")


def test_the_note_lists_what_was_not_protected():
    def note(**held):
        protection = Protection(**held)
        ran = ProcessResult(stdout="", stderr="", exit_code=0, seconds=0, protection=protection)
        return ran.protection_note

    assert note(**dict.fromkeys(Protection.model_fields, True)) == ""
    assert note(network=True, memory=True, disk=True) == (
        "(Sandbox incomplete on this system: the code could read your keys, read your files and "
        "reach your other processes.)"
    )


async def test_a_sandbox_that_cannot_be_set_up_says_nothing_of_the_code(tmp_path, monkeypatch):
    broken = tmp_path / "limiter.py"
    broken.write_text("raise SystemExit(1)")
    monkeypatch.setattr(sandbox, "LIMITER", broken)
    with pytest.raises(CheckNotRun, match="could not be started"):
        await run_python("print(1)")


async def test_there_is_room_for_polars_and_pandas_together():
    pytest.importorskip("polars")
    result = await run_python(
        "import polars\nlazy = polars.DataFrame({'n': [1, 2]}).lazy()\n"
        "print(lazy.filter(polars.col('n') > 1).collect().height)\nimport pandas"
    )
    assert (result.stdout, result.exit_code) == ("1\n", 0), result.stderr


@linux
@pytest.mark.parametrize("number", [signal.SIGCHLD, signal.SIGXCPU])
@pytest.mark.parametrize("seconds", [0.5, 10])
async def test_code_ends_in_a_kernel_that_ignores_the_signal_of_its_end(number, seconds):
    handler = signal.signal(number, signal.SIG_IGN)
    try:
        async with asyncio.timeout(20):
            ran = await run_python("while True: pass" if seconds < 1 else "", seconds=seconds)
    finally:
        signal.signal(number, handler)
    assert ran.timed_out is (seconds < 1)


async def test_code_runs_in_a_kernel_whose_folder_was_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    assert (await run_python("print(1)")).stdout == "1\n"


@pytest.mark.parametrize("error", [errno.ENOENT, errno.ENOSPC, errno.EROFS])
async def test_a_temporary_folder_that_cannot_be_written_is_a_sentence(error, monkeypatch):
    def fail(*_, **__):
        raise OSError(error, os.strerror(error), "/nope")

    monkeypatch.setattr(sandbox, "_fill", fail)
    with pytest.raises(UsageError, match=rf"{os.strerror(error)}\. Make room in the temporary"):
        await run_python("print(1)")
