"""Running a text as Python in a process of its own, so that nothing it does hangs the kernel.

What is isolated: the process, its working folder, its input, its environment, its time, memory,
output and number of processes. Windows limits only time and output, macOS not the memory, and
processes are counted on Linux alone. What is not: the network, files this user can read or
write, and this user's other processes; the code runs with the user's rights. A process that
leaves the sandbox's process group is found by its environment and folder on Linux, and nowhere
else.
"""

import asyncio
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ipyrefine.checks import processes
from ipyrefine.errors import UsageError
from ipyrefine.loop.records import Record

Stopped = Literal["time", "output", "processes"]

_LIMITER = Path(__file__).with_name("sandbox_program.py")
_FILE_MB = 64
_FLOOD = 16  # output beyond this many times what is kept ends the run
_LOOK_S = 0.05
_LEAVE_S = 2.0
_ORPHAN_S = 5
_COLLECT_BYTES = 4_000_000


class Ran(Record):
    """What became of a run.

    Attributes:
        stdout: standard output; its middle is left out when it was longer than the limit.
        stderr: standard error, likewise.
        exit_code: the exit status, negative for a signal; None when the run was stopped.
        seconds: wall time.
        stopped: the limit that ended the run, or None when it ended by itself.
        collected: the content of the file asked for, empty when there is none.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    stopped: Stopped | None = None
    collected: str = ""

    @property
    def timed_out(self) -> bool:
        """Whether the wall-time limit ended the run."""
        return self.stopped == "time"


async def run_python(
    source: str,
    *,
    seconds: float = 10,
    memory_mb: int = 1024,
    output_limit: int = 64_000,
    files: Mapping[str, str] | None = None,
    collect: str | None = None,
) -> Ran:
    """Run code as a script in a fresh interpreter and an empty folder, and clean up after it.

    The run and all processes it started are killed when it ends, at a limit, and when the
    awaiting task is cancelled. It reads an empty input and sees none of this process's
    environment but ``PATH`` and ``LANG``.

    Args:
        source: the script.
        seconds: wall time allowed.
        memory_mb: megabytes of address space allowed to each process.
        output_limit: bytes kept of standard output, and of standard error.
        files: name and content of files to put beside the script.
        collect: name of a file in the script's folder to read when the run has ended.

    Raises:
        UsageError: this platform cannot start a process.
    """
    if sys.platform == "emscripten":
        raise UsageError(
            "Code cannot be run as a check in a browser's Python; use a check function instead."
        )
    folder = _folder()
    try:
        script = _furnish(folder, source, files or {})
        command = _command(script, seconds, memory_mb)
        try:
            ran = await _supervise(command, folder, seconds, output_limit)
        except NotImplementedError:
            # Jupyter on Windows has a loop that cannot start processes.
            ran = await asyncio.to_thread(_on_own_loop, command, folder, seconds, output_limit)
        return ran.model_copy(update={"collected": _collect(folder, collect)}) if collect else ran
    except OSError as error:
        raise UsageError(
            f"Python could not be started to run a check: {error.strerror or error}."
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Capped:
    """The first and the last half of what a stream said, within a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.seen = 0

    def add(self, data: bytes) -> None:
        self.seen += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]

    def text(self) -> str:
        missing = self.seen - len(self._head) - len(self._tail)
        gap = f"\n[… {missing} bytes left out …]\n".encode() if missing else b""
        return bytes(self._head + gap + self._tail).decode(errors="replace")


class _Process(asyncio.SubprocessProtocol):
    """A process's output and end; it ends when it exits, even if a child holds its pipes."""

    def __init__(self, output_limit: int) -> None:
        self.streams = {1: _Capped(output_limit), 2: _Capped(output_limit)}
        self.ended = asyncio.Event()
        self.flooded = False
        self._most = _FLOOD * output_limit
        self._closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.streams[fd].add(data)
        if self.streams[fd].seen > self._most:
            self.flooded = True
            self.ended.set()

    def process_exited(self) -> None:
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()

    async def until(self, seconds: float, folder: str) -> Stopped | None:
        """Wait for the end, or for a limit, and say which limit it was."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        crowd = processes.Crowd(folder)
        while not self.ended.is_set():
            left = deadline - clock()
            if left <= 0:
                return "time"
            if crowd.too_many():
                return "processes"
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), min(left, _LOOK_S))
        return "output" if self.flooded else None

    async def close(self) -> None:
        """Wait, not for long, until it has exited and its pipes have been read."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), _LEAVE_S)


async def _supervise(command: list[str], folder: str, seconds: float, output_limit: int) -> Ran:
    loop = asyncio.get_running_loop()
    started = loop.time()
    transport, process = await loop.subprocess_exec(
        lambda: _Process(output_limit),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        cwd=folder,
        env=_environment(folder),
        start_new_session=True,
    )
    try:
        try:
            stopped = await process.until(seconds, folder)
        finally:
            processes.kill(transport.get_pid(), folder)
            await process.close()
    finally:
        transport.close()
    return Ran(
        stdout=process.streams[1].text(),
        stderr=process.streams[2].text(),
        exit_code=None if stopped else transport.get_returncode(),
        seconds=loop.time() - started,
        stopped=stopped,
    )


def _on_own_loop(command: list[str], folder: str, seconds: float, output_limit: int) -> Ran:
    factory = getattr(asyncio, "ProactorEventLoop", None)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_supervise(command, folder, seconds, output_limit))


def _folder() -> str:
    # Processes are known by this path, and the system knows them by the real one.
    return os.path.realpath(tempfile.mkdtemp(prefix="ipyrefine-"))


def _furnish(folder: str, source: str, files: Mapping[str, str]) -> Path:
    script = Path(folder, "main.py")
    for path, text in [(script, source), *((Path(folder, n), t) for n, t in files.items())]:
        # What is no valid text is a fault of the text, for the interpreter to report.
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return script


def _collect(folder: str, name: str) -> str:
    path = Path(folder, name)
    # Anything but a plain file (a link, a pipe) was put there by the code, and may block.
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_COLLECT_BYTES).decode(errors="replace")


def _command(script: Path, seconds: float, memory_mb: int) -> list[str]:
    if sys.platform == "win32":
        return [sys.executable, "-I", "-X", "utf8", str(script)]
    wall = math.ceil(seconds)
    # Threads add up to more processor than wall time.
    limits = [
        wall * (os.cpu_count() or 1) + 1,
        wall + _ORPHAN_S,
        memory_mb * 2**20,
        _FILE_MB * 2**20,
    ]
    return [sys.executable, "-I", "-S", str(_LIMITER), *map(str, limits), str(script)]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _head(path: Path, limit: int) -> bytes:
    """Read what was reported, bounded: the code could have written there too."""
    if not path.exists():
        return b""
    with path.open("rb") as file:
        return file.read(limit)


def _environment(folder: str) -> dict[str, str]:
    kept = ("PATH", "LANG", "SYSTEMROOT") if sys.platform == "win32" else ("PATH", "LANG")
    own = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), folder)
    # One buffer per core would not fit into the address space on a large machine.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {name: os.environ[name] for name in kept if name in os.environ} | own | threads
