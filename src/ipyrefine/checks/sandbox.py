"""Running a text as Python in a process of its own, so that nothing it does hangs the kernel.

What is isolated: the process, its working folder, its input, its environment, its time, memory,
output and number of processes. Windows limits only time and output, macOS not the memory, and
processes are counted on Linux alone. The network is cut off (but for a loopback of its own) where
a Linux lets this user make a network namespace; many containers don't, and no other system has
one: `Ran.offline` says which it was. What is not isolated: files this user can read or write,
local sockets among them, and this user's other processes; the code runs with the user's rights.
A process that leaves the sandbox's process group is found by its environment and folder on Linux,
and nowhere else.
"""

import asyncio
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ipyrefine.checks import processes
from ipyrefine.checks.watching import Stopped, Watched
from ipyrefine.core.records import Record
from ipyrefine.errors import UsageError

_LIMITER = Path(__file__).parent / "programs" / "limits.py"
_FILE_MB = 64
_ORPHAN_S = 5
_OFFLINE = ".offline"  # the limiter leaves it; code that forges it only hides a note
ONLINE = "(The code could reach the network: this system cannot cut it off.)"
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
        offline: whether the network was out of its reach.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    stopped: Stopped | None = None
    collected: str = ""
    offline: bool = False

    @property
    def timed_out(self) -> bool:
        """Whether the wall-time limit ended the run."""
        return self.stopped == "time"

    @property
    def reach(self) -> str:
        """What a person should know about what the code could reach; empty for nothing."""
        return "" if self.offline else ONLINE


async def run_python(
    source: str,
    *,
    seconds: float = 10,
    memory_mb: int = 1024,
    output_limit: int = 64_000,
    files: Mapping[str, str | bytes] | None = None,
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
        found = {"collected": _collect(folder, collect) if collect else ""}
        return ran.model_copy(update={**found, "offline": _left(folder, _OFFLINE)})
    except OSError as error:
        raise UsageError(
            f"Python could not be started to run a check: {error.strerror or error}."
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _supervise(command: list[str], folder: str, seconds: float, output_limit: int) -> Ran:
    loop = asyncio.get_running_loop()
    started = loop.time()
    transport, process = await loop.subprocess_exec(
        lambda: Watched(output_limit),
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


def _furnish(folder: str, source: str, files: Mapping[str, str | bytes]) -> Path:
    script = Path(folder, "main.py")
    for name, content in {**files, script.name: source}.items():
        # What is no valid text is a fault of the text, for the interpreter to report.
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        Path(folder, name).write_bytes(data)
    return script


def _left(folder: str, name: str) -> bool:
    return os.path.lexists(os.path.join(folder, name))


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


def _environment(folder: str) -> dict[str, str]:
    kept = ("PATH", "LANG", "SYSTEMROOT") if sys.platform == "win32" else ("PATH", "LANG")
    own = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), folder)
    # One buffer per core would not fit into the address space on a large machine.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {name: os.environ[name] for name in kept if name in os.environ} | own | threads
