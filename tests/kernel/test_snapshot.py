"""Snapshots: what a forked child of the kernel may do while it pickles, and what is left of it."""

import asyncio
import ctypes
import gc
import mmap
import multiprocessing
import os
import pickle
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from ipyrefine.kernel import mappings, snapshot
from ipyrefine.kernel.snapshot import CALLER_WAITS, take

REASON = snapshot._why_no_fork()
pytestmark = pytest.mark.skipif(bool(REASON), reason=f"no child can be forked: {REASON}")

ATTACKS = {
    "writes a file": "open(FOLDER + '/hit', 'w').write('x')",
    "removes a file": "os.remove(FOLDER + '/kept')",
    "renames a file": "os.rename(FOLDER + '/kept', FOLDER + '/hit')",
    "cuts a file": "os.truncate(FOLDER + '/kept', 0)",
    "changes a mode": "os.chmod(FOLDER + '/kept', 0)",
    "changes a time": "os.utime(FOLDER + '/kept', (1, 1))",
    "makes a folder": "os.mkdir(FOLDER + '/hit')",
    "forks": "os.fork()",
    "becomes another program": "os.execv('/bin/sh', ['sh', '-c', 'touch ' + FOLDER + '/hit'])",
    "starts a program": "subprocess.run(['touch', FOLDER + '/hit'], check=True)",
    "connects": "socket.create_connection(('127.0.0.1', PORT), 2)",
    "kills its parent": "os.kill(os.getppid(), signal.SIGKILL)",
    "stops its parent": "os.kill(os.getppid(), signal.SIGSTOP)",
}
SHARED = {
    "a mapped file": "FILE[0] = 2; assert FILE[0] == 2",
    "a mapped file that is written back": "FILE[1] = 2; FILE.flush()",
    "a deleted file": "GONE[0] = 2",
    "a mapping that was only read": "C.mprotect(ctypes.c_void_p(READ), 1, 3); READ_BYTE[0] = 2",
    "a value of processes": "VALUE.value = 2",
    "an array of processes": "ARRAY[0] = 2",
    "shared memory": "MEMORY.buf[0] = 2",
    "memory without a file": "PAGES[0] = 2",
}
HARMLESS = {
    "prints": "print('boo'); sys.stderr.write('boo'); os.write(1, b'boo')",
    "starts a thread": "t = threading.Thread(target=int); t.start(); t.join()",
    "ignores an alarm": "signal.signal(signal.SIGALRM, signal.SIG_IGN)",
}
IMPORTS = "import gc, os, signal, socket, subprocess, sys, threading, time\n"


def reduced_by(code: str, **names: Any) -> Any:
    """An object that runs some code as it is pickled."""
    space: dict[str, Any] = {"__name__": "__main__", **names}
    lines = "".join(f"        {line}\n" for line in code.split("; "))
    exec(f"{IMPORTS}class X:\n    def __reduce__(self):\n{lines}        return int, ()\n", space)
    return space["X"]()


async def reasons(**values: Any) -> dict[str, str]:
    """Why values were not copied, by name."""
    taken = await take(values, values)
    assert not taken.note
    return {one.name: one.reason for one in taken.copies}


def has_no_child() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kept").write_text("whole")
    os.utime(tmp_path / "kept", (10, 10))
    return tmp_path


async def test_an_object_reaches_nothing_while_it_is_pickled(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        names = {"FOLDER": str(folder), "PORT": server.getsockname()[1]}
        bad = {name: reduced_by(code, **names) for name, code in ATTACKS.items()}
        found = await reasons(**bad, frame=pandas.DataFrame({"a": [1]}))
        with pytest.raises(TimeoutError):
            server.accept()
    assert found.pop("frame") == ""
    assert [n for n, one in found.items() if not one.startswith("it cannot be copied")] == []
    kept = (folder / "kept").stat()
    assert (os.listdir(folder), kept.st_size, kept.st_mtime) == (["kept"], 5, 10)
    assert kept.st_mode & 0o777 != 0


async def test_an_object_changes_nothing_that_is_shared(folder, monkeypatch):
    for name in ("register", "unregister"):  # which would start a process that outlives the test
        monkeypatch.setattr(resource_tracker, name, lambda *_: None)
    for name in ("kept", "gone"):
        (folder / name).write_bytes(bytes([1, 1, 1, 1]))
    with (folder / "kept").open("r+b") as file, mmap.mmap(-1, 10) as pages:
        read = numpy.memmap(folder / "kept", mode="r")
        names: dict[str, Any] = {
            "FILE": mmap.mmap(file.fileno(), 0),
            "GONE": numpy.memmap(folder / "gone", mode="r+"),
            "READ": read.ctypes.data,
            "READ_BYTE": (ctypes.c_char * 1).from_address(read.ctypes.data),
            "VALUE": multiprocessing.Value("b", 1, lock=False),
            "ARRAY": multiprocessing.RawArray("b", [1]),
            "MEMORY": SharedMemory(create=True, size=1),
            "PAGES": pages,
            "C": ctypes.CDLL(None),
            "ctypes": ctypes,
        }
        (folder / "gone").unlink()
        names["MEMORY"].buf[0] = pages[0] = 1
        bad = {name: reduced_by(code, **names) for name, code in SHARED.items()}
        await reasons(**bad, last=bytes(read))
        file_byte, gone, value = names["FILE"][:2], names["GONE"][0], names["VALUE"].value
        held = [value, names["ARRAY"][0], names["MEMORY"].buf[0], pages[0]]
        names["MEMORY"].close()
        names["MEMORY"].unlink()
    assert (file_byte, gone, held) == (b"\1\1", 1, [1, 1, 1, 1])
    assert (folder / "kept").read_bytes() == bytes([1, 1, 1, 1])


async def test_memory_that_cannot_be_made_private_is_not_shared(
    monkeypatch,
):
    monkeypatch.setattr(mappings, "_open_files", lambda *_: iter(()))
    monkeypatch.setattr(snapshot, "_free_memory", lambda: 8)
    taken = await take(["x"], {"x": 1})
    why = "OSError: too much memory is shared"
    assert taken.note == f"the child that was to make them failed ({why})"


ANSWERS = {
    "no field": "{}",
    "an unknown field": '{"name": "x", "reason": "r", "more": 1}',
    "another type": '{"name": "x", "seconds": "x"}',
    "no number": '{"name": "x", "seconds": NaN}',
    "a place beyond the end": '{"name": "x", "start": 0, "stop": 1000000}',
    "a negative place": '{"name": "x", "start": -5, "stop": 5}',
    "neither a copy nor a reason": '{"name": "x"}',
    "a list": '["x"]',
    "nothing": "null",
    "no JSON": "x = 1",
    "no text": "\udcff",
    "depth": "[" * 100_000,
    "length": '"' + "x" * 1_000_000 + '"',
    "a name that nobody asked for": '{"name": "other", "reason": "r"}',
    "a name twice": '{"name": "x", "reason": "r"}\n{"name": "x", "reason": "r"}',
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_of_the_child_that_is_none_gives_no_copies(answer):
    lines = answer.encode("utf-8", "surrogateescape") + b"\n"
    namespace: dict[str, Any] = {"x": 1, "other": 2}
    copies, note = snapshot._read_answer(lines, ["x"], namespace, 100)
    assert (copies, note) == ([], snapshot._UNREADABLE)


async def test_an_object_that_writes_the_childs_answer_ends_in_copies_of_the_kernel():
    writes = reduced_by(r"[os.write(n, b'{}\n') for n in range(3, 99) if F(n)]", F=_is_pipe)
    taken = await take(["x", "y"], {"x": writes, "y": 1})
    assert taken.note == snapshot._UNREADABLE
    assert taken.copies[1].stop


def _is_pipe(number: int) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(number).st_mode)
    except OSError:
        return False


async def test_what_an_object_does_to_the_child_alone_is_let_be(
    capfd,
):
    found = await reasons(**{name: reduced_by(code) for name, code in HARMLESS.items()})
    assert found == dict.fromkeys(HARMLESS, "")
    assert capfd.readouterr() == ("", "")


async def test_the_child_has_no_open_file_of_the_kernel(folder):
    ours, theirs = socket.socketpair()
    theirs.settimeout(0.1)
    with (folder / "kept").open() as file, ours, theirs:
        sends = reduced_by("os.write(SOCKET, b'boo')", SOCKET=ours.fileno())
        moves = reduced_by("os.lseek(FILE, 3, 0)", FILE=file.fileno())
        found = await reasons(sends=sends, moves=moves)
        assert all("Bad file descriptor" in one for one in found.values())
        assert file.read() == "whole"
        with pytest.raises(TimeoutError):
            theirs.recv(1)


async def test_what_the_kernel_no_longer_needs_is_not_deleted_by_the_child():
    gc.disable()
    try:
        held: list[Any] = [tempfile.TemporaryDirectory()]
        name, _ = held[0].name, held.append(held)
        del held
        assert await reasons(x=reduced_by("gc.collect()")) == {"x": ""}
        assert name.rpartition("/")[2] in os.listdir(tempfile.gettempdir())
        with pytest.warns(ResourceWarning, match="cleaning up"):
            gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "time.sleep(60)",
        "signal.signal(14, signal.SIG_IGN); a = threading.Lock(); a.acquire(); a.acquire()",
    ],
    ids=["computes", "sleeps", "waits for a lock"],
)
async def test_a_child_that_does_not_end_is_killed(monkeypatch, code):
    monkeypatch.setattr(snapshot, "_SECONDS", 0.3)
    monkeypatch.setattr(snapshot, "_PATIENCE", 0.2)
    assert await reasons(x=reduced_by(code), y=1) == {
        "x": "copying it takes too long",
        "y": "copying it takes too long",
    }
    assert has_no_child()


async def test_an_interrupt_ends_the_child():
    slow = reduced_by("time.sleep(60)")
    task = asyncio.ensure_future(take(["x"], {"x": slow}))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert has_no_child()


async def test_a_front_ends_interrupt_does_not_end_the_child():
    interrupted = reduced_by("signal.raise_signal(signal.SIGINT)")
    reason = (await reasons(x=interrupted))["x"]
    assert "Operation not permitted" in reason or reason == ""


async def test_children_may_be_reaped_by_nobody():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert await reasons(x=1) == {"x": ""}
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_many_snapshots_leave_no_process_and_no_descriptor():
    await reasons(x=1)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await reasons(x=list(range(100)))
    assert len(os.listdir("/proc/self/fd")) == before
    assert has_no_child()


async def test_no_child_is_forked_while_another_thread_runs_code_of_the_notebook(
    monkeypatch,
):
    space: dict[str, Any] = {"__name__": "__main__"}
    main = type(sys)("__main__")
    vars(main).update(space)
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec("import time\ndef spin():\n    while not ended: time.sleep(0.01)\nended = []", vars(main))
    thread = threading.Thread(target=vars(main)["spin"])
    thread.start()
    try:
        taken = await take(["x"], {"x": [1]})
        assert taken.note == "another thread runs code of the notebook"
        assert taken.copies[0].stop
    finally:
        vars(main)["ended"].append(1)
        thread.join()
    assert not (await take(["x"], {"x": [1]})).note


def test_a_thread_that_waits_for_this_one_changes_nothing(monkeypatch):
    main = type(sys)("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec("def wait(thread):\n    thread.start()\n    thread.join()\n", vars(main))
    found = list[str]()

    def look(waits: bool) -> None:
        CALLER_WAITS.set(waits)
        found.append(snapshot._why_no_fork())

    for waits in True, False:
        vars(main)["wait"](threading.Thread(target=look, args=(waits,)))
    assert found == ["", "another thread runs code of the notebook"]


async def test_no_child_is_forked_after_one_that_held_the_kernel_long(
    monkeypatch,
):
    monkeypatch.setattr(snapshot, "_hold", 0.4)
    assert (await take(["x"], {"x": 1})).note == "the last fork held the kernel for 0.4 seconds"


async def test_a_frame_for_which_memory_is_short_goes_as_its_first_rows(
    monkeypatch,
):
    monkeypatch.setattr(snapshot, "_memory_of_its_own", lambda: 0)
    frame = pandas.DataFrame({"a": numpy.random.default_rng(1).random(500_000)})
    monkeypatch.setattr(snapshot, "_free_memory", lambda: 4_000_000)
    (one,) = (await take(["x"], {"x": frame})).copies
    assert one.rows is not None
    assert 10_000 < one.rows < 500_000 == one.of


async def test_what_a_failed_child_wrote_is_not_taken_for_a_copy():
    raises = reduced_by("raise KeyboardInterrupt")
    values = {"own": reduced_by("pass"), "y": [1, 2], "x": raises}
    taken = await take(values, values)
    assert taken.note == "the child that was to make them failed (KeyboardInterrupt)"
    one, descriptor = taken.copies[1], taken.content.descriptor
    assert descriptor is not None
    assert pickle.loads(os.pread(descriptor, one.stop - one.start, one.start)) == [1, 2]


async def test_two_names_of_one_object_stay_so():
    rows = [1]
    taken = await take(["a", "b"], {"a": rows, "b": rows})
    assert len({(one.start, one.stop) for one in taken.copies}) == 1


async def test_a_kernel_is_held_for_the_fork_only():
    began = time.monotonic()
    task = asyncio.ensure_future(take(["x"], {"x": reduced_by("time.sleep(1)")}))
    await asyncio.sleep(0)
    held = time.monotonic() - began
    await task
    assert held < time.monotonic() - began - 0.5
