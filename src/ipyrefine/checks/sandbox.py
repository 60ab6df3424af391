"""Run untrusted Python in a subprocess with limits, so that it cannot hang or harm the kernel.

Isolated: the process, its working folder, its input, its environment, its time, memory, output and
number of processes. Windows limits time and output only; macOS does not limit memory; processes are
counted on Linux alone. The network is cut off (except for a private loopback) where Linux lets this
user create a network namespace. Many containers don't, and no other system has one;
`ProcessResult.offline` tells which it was.

Not isolated: files this user can read or write, local sockets among them, and this user's other
processes. The code runs with the user's rights. A process that leaves the sandbox's process group
is found on Linux only, by its environment and folder.
"""

import asyncio
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ipyrefine.core.model import Record
from ipyrefine.errors import UsageError

Limit = Literal["time", "output", "processes"]

_PROGRAMS = Path(__file__).parent / "programs"
LIMITER = _PROGRAMS / "limits.py"
NETWORK_NOTE = "(The code could reach the network: this system cannot cut it off.)"

_FILE_MB = 64
_ORPHAN_S = 5  # seconds after which a script ends by itself when the kernel is gone
_OFFLINE = ".offline"  # written by the limiter; code that forges it only hides a note
_REPORT_BYTES = 4_000_000
_ERROR_WIDTH = 500

_FLOOD = 16  # output beyond this many times the kept bytes ends the run
_POLL_S = 0.05
_CLOSE_S = 2.0

_PROC = Path("/proc")
_MAX_PROCESSES = 64
_KILL_PASSES = 100


class ProcessResult(Record):
    """The result of a sandboxed run.

    Attributes:
        stdout: standard output; the middle is cut out where it exceeded the limit.
        stderr: standard error, likewise.
        exit_code: the exit status, negative for a signal; None when a limit ended the run.
        seconds: wall time.
        limit: the limit that ended the run, or None when it ended by itself.
        report: the content of the report file, empty when there is none.
        offline: whether the network was cut off.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    limit: Limit | None = None
    report: str = ""
    offline: bool = False

    @property
    def timed_out(self) -> bool:
        """Return whether the wall-time limit ended the run."""
        return self.limit == "time"

    @property
    def network_note(self) -> str:
        """Return a note for people where the code could reach the network, else an empty string."""
        return "" if self.offline else NETWORK_NOTE


def load_program(name: str) -> str:
    """Return the source of a script in ``programs/``, by its name without ``.py``."""
    return (_PROGRAMS / f"{name}.py").read_text("utf-8")


async def run_python(
    source: str,
    *,
    seconds: float = 10,
    memory_mb: int = 1024,
    output_limit: int = 64_000,
    files: Mapping[str, str | bytes] | None = None,
    report: str | None = None,
) -> ProcessResult:
    """Run a script in a fresh interpreter and an empty folder, and clean up after it.

    The script and every process it started are killed when it ends, at a limit, and when the
    awaiting task is cancelled. Its standard input is empty, and of this process's environment it
    sees ``PATH`` and ``LANG`` only.

    Args:
        source: the script.
        seconds: wall time allowed.
        memory_mb: megabytes of address space allowed to each process.
        output_limit: bytes to keep of standard output, and of standard error.
        files: name and content of files to put beside the script.
        report: name of a file in the script's folder to read after the run.

    Raises:
        UsageError: this platform cannot start a process.
    """
    if sys.platform == "emscripten":
        raise UsageError(
            "Code cannot be run as a check in a browser's Python. Use a check function instead."
        )
    folder = _make_folder()
    try:
        script = _write_files(folder, source, files or {})
        command = _command(script, seconds, memory_mb)
        try:
            result = await _supervise(command, folder, seconds, output_limit)
        except NotImplementedError:
            # Jupyter on Windows has a loop that cannot start processes.
            result = await asyncio.to_thread(
                _supervise_on_own_loop, command, folder, seconds, output_limit
            )
        content = _read_report(Path(folder, report)) if report else ""
        return result.model_copy(update={"report": content, "offline": _is_offline(folder)})
    except OSError as error:
        raise UsageError(
            f"Python could not be started to run a check: {error.strerror or error}."
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def describe_failure(result: ProcessResult, seconds: float) -> str:
    """Return one line on why a script failed, with the line of the text where it did.

    Args:
        result: the run.
        seconds: the wall time it was allowed.
    """
    if result.timed_out:
        return f"It did not end within {seconds:.3g} seconds."
    if result.limit == "output":
        return "It was stopped, because it printed without end."
    if result.limit == "processes":
        return "It was stopped, because it started too many processes."
    if result.exit_code is not None and result.exit_code < 0:
        return f"It was killed by signal {-result.exit_code}."
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    if not lines:
        return f"It ended with exit status {result.exit_code} and no message."
    places = re.findall(r'candidate\.py", line (\d+)|candidate\.py on line (\d+)', result.stderr)
    where = f" (line {places[-1][0] or places[-1][1]})" if places else ""
    return lines[-1].strip()[:_ERROR_WIDTH] + where


async def _supervise(
    command: list[str], folder: str, seconds: float, output_limit: int
) -> ProcessResult:
    loop = asyncio.get_running_loop()
    start = loop.time()
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
            limit = await process.wait(seconds, folder)
        finally:
            kill_processes(transport.get_pid(), folder)
            await process.close()
    finally:
        transport.close()
    return ProcessResult(
        stdout=process.streams[1].text(),
        stderr=process.streams[2].text(),
        exit_code=None if limit else transport.get_returncode(),
        seconds=loop.time() - start,
        limit=limit,
    )


def _supervise_on_own_loop(
    command: list[str], folder: str, seconds: float, output_limit: int
) -> ProcessResult:
    factory = getattr(asyncio, "ProactorEventLoop", None)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_supervise(command, folder, seconds, output_limit))


def _make_folder() -> str:
    # Processes are found by this path, and the system knows them by the real one.
    return os.path.realpath(tempfile.mkdtemp(prefix="ipyrefine-"))


def _is_offline(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, _OFFLINE))


def _write_files(folder: str, source: str, files: Mapping[str, str | bytes]) -> Path:
    script = Path(folder, "main.py")
    for name, content in {**files, script.name: source}.items():
        # Invalid Unicode is a fault of the text, for the interpreter to report.
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        Path(folder, name).write_bytes(data)
    return script


def _read_report(path: Path) -> str:
    # Anything but a plain file (a link, a pipe) was put there by the code, and may block.
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_REPORT_BYTES).decode(errors="replace")


def _command(script: Path, seconds: float, memory_mb: int) -> list[str]:
    if sys.platform == "win32":
        return [sys.executable, "-I", "-X", "utf8", str(script)]
    wall = math.ceil(seconds)
    # Threads add up to more processor time than wall time.
    limits = [
        wall * (os.cpu_count() or 1) + 1,
        wall + _ORPHAN_S,
        memory_mb * 2**20,
        _FILE_MB * 2**20,
    ]
    return [sys.executable, "-I", "-S", str(LIMITER), *map(str, limits), str(script)]


def _environment(folder: str) -> dict[str, str]:
    names = ("PATH", "LANG", "SYSTEMROOT") if sys.platform == "win32" else ("PATH", "LANG")
    folders = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), folder)
    # One buffer per core would not fit into the address space on a large machine.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {name: os.environ[name] for name in names if name in os.environ} | folders | threads


class _Excerpt:
    """Keep the first and the last half of a stream, within a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append data to the stream."""
        self.size += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]

    def text(self) -> str:
        """Return both halves, with a note of how much is missing between them."""
        missing = self.size - len(self._head) - len(self._tail)
        gap = f"\n[… {missing} bytes left out …]\n".encode() if missing else b""
        return bytes(self._head + gap + self._tail).decode(errors="replace")


class _Process(asyncio.SubprocessProtocol):
    """A process's output and end; it ends when it exits, even if a child holds its pipes."""

    def __init__(self, output_limit: int) -> None:
        self.streams = {1: _Excerpt(output_limit), 2: _Excerpt(output_limit)}
        self._end = asyncio.Event()
        self._pipes_end = asyncio.Event()
        self._flood = False
        self._max_output = _FLOOD * output_limit

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the output; a flood ends the process."""
        self.streams[fd].add(data)
        if self.streams[fd].size > self._max_output:
            self._flood = True
            self._end.set()

    def process_exited(self) -> None:
        """Note the exit, whoever still holds the pipes."""
        self._end.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the pipes were read to their end."""
        self._pipes_end.set()

    async def wait(self, seconds: float, folder: str) -> Limit | None:
        """Wait for the exit or for a limit; return that limit."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        tasks_before = _count_tasks()
        while not self._end.is_set():
            time_left = deadline - clock()
            if time_left <= 0:
                return "time"
            if _has_too_many_processes(folder, tasks_before):
                return "processes"
            with suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), min(time_left, _POLL_S))
        return "output" if self._flood else None

    async def close(self) -> None:
        """Wait briefly until the process has exited and its pipes are read."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._pipes_end.wait(), _CLOSE_S)


def kill_processes(leader: int, folder: str) -> None:
    """Kill a sandbox's process group, and processes that left the group where they can be found.

    Args:
        leader: the id of the sandbox's first process.
        folder: the sandbox's folder, which identifies its processes.
    """
    if sys.platform == "win32":
        tree = ["taskkill", "/T", "/F", "/PID", str(leader)]
        subprocess.run(tree, capture_output=True, check=False)
        return
    for _ in range(_KILL_PASSES):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        # Repeat, as a process may start another one while it is being killed.
        survivors = find_processes(folder)
        if not survivors:
            return
        for pid in survivors:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def find_processes(folder: str) -> set[int]:
    """Return the ids of processes that work in a folder or have it in their environment.

    Args:
        folder: the sandbox's folder.

    Returns:
        The ids; always empty outside Linux.
    """
    if not sys.platform.startswith("linux"):
        return set()
    mark = os.fsencode(folder)
    pids = set()
    for name in os.listdir(_PROC):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        # Processes end while we look, and those of other users cannot be read.
        with suppress(OSError):
            inside = os.readlink(_PROC / name / "cwd").startswith(folder)
            if inside or mark in (_PROC / name / "environ").read_bytes():
                pids.add(int(name))
    return pids


def _has_too_many_processes(folder: str, tasks_before: int) -> bool:
    # The system's own limit counts all processes of the user, notebooks included, and does not
    # hold for an administrator, so they are counted from outside. That is slow on a machine with
    # many processes; the total costs one read.
    return (
        _count_tasks() - tasks_before > _MAX_PROCESSES
        and len(find_processes(folder)) > _MAX_PROCESSES
    )


def _count_tasks() -> int:
    """Return how many tasks the whole system runs; 0 outside Linux."""
    try:
        return int((_PROC / "loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0
