"""Run untrusted Python in a subprocess with limits, so that it cannot hang or harm the kernel.

On Linux, where the system allows it, the code runs in namespaces of its own: it has no network but
a private loopback, sees no process but its own, and its working folder vanishes with it. Everything
else is read-only. It has no capabilities, and no way to get any. Landlock hides the home folder,
the kernel's folder, ``/tmp`` and ``/run``, except where Python's packages are. Time, memory,
output, processes and disk are limited for all of its processes together.

What is missing elsewhere, `ProcessResult.protection` says; it comes from the processes that set the
sandbox up, by a file that the code cannot reach. Evidence repeats it in words.

| checked code | Linux with namespaces | Linux without | macOS, Windows |
|---|---|---|---|
| network | a private loopback only | **open** | **open** |
| the kernel's environment and memory, with its keys | unreadable | unreadable | **readable** |
| home, the kernel's folder, `/tmp` | unreadable | unreadable | **readable** |
| other files | read-only | read-only | **as for the user** |
| other processes | invisible | visible, out of reach | **within reach** |
| memory, disk of all its processes together | limited | memory only | **unlimited** |

- Most containers forbid namespaces, and so does Ubuntu since 24.04 for programs without an AppArmor
  profile. Files are then limited one by one, and their mode and owner can be changed. Landlock
  still hides files and keys, and no process stays behind.
- Before Linux 5.13, or with Landlock switched off, all files can be read, and without namespaces
  keys too. Before 6.12 other processes can be reached without namespaces.
- macOS limits processor time, output and the size of a file; Windows wall time and output.
- Nowhere isolated: files of the user elsewhere can be read, sockets in folders connected to.

Code that only waits (``time.sleep(100)``) ends at a limit of wall time, and counts neither for nor
against a text, as a busy machine looks the same.
"""

import ast
import asyncio
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ipyrefine.core.model import Record
from ipyrefine.errors import CheckNotRun, UsageError

Limit = Literal["time", "memory", "output", "processes"]
Mode = Literal["auto", "required"]

_PROGRAMS = Path(__file__).parent / "programs"
LIMITER = _PROGRAMS / "limits.py"
_MODE_VARIABLE = "IPYREFINE_SANDBOX"

_FOLDER_VARIABLES = (
    "IPYREFINE_HOME",
    "IPYTHONDIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)

_FILE_MB = 64
_DISK_MB = 256
# Wall time is a backstop only: a busy machine must not change what a check finds.
_WALL_FACTOR = 5
_WALL_FLOOR_S = 10
_GRACE_S = 10  # the supervisor keeps the wall limit itself; this is for one that cannot
_REPORT_BYTES = 4_000_000
_ERROR_WIDTH = 500
_MORE_LINES = 5  # of an exception's message, below its first
_TRACEBACK = "Traceback (most recent call last):"

_FLOOD = 16  # output beyond this many times the kept bytes ends the run
_CLOSE_S = 2.0
_STOP_S = 8.0  # for the supervisor to kill what it started
_CLEAN_S = 5.0
_ALARM = -27  # SIGPROF, by which a program limits the processor time of a part

_PROC = Path("/proc")
_KILL_PASSES = 100


class Protection(Record):
    """What a sandbox protected, as those processes found that set it up.

    Attributes:
        network: there was no network but a private loopback.
        keys: the kernel's environment and memory could not be read.
        files: the home folder could not be read, nor anything outside the sandbox be written.
        processes: other processes could not be reached, and none was left behind.
        memory: the memory of all processes together was limited.
        disk: the size of all files together was limited.
    """

    network: bool = False
    keys: bool = False
    files: bool = False
    processes: bool = False
    memory: bool = False
    disk: bool = False

    @property
    def gaps(self) -> str:
        """What the code could do for want of protection, in words; empty for nothing."""
        phrases = {
            "reach the network": self.network,
            "read your keys": self.keys,
            "read your files": self.files,
            "reach your other processes": self.processes,
            "fill the memory": self.memory,
            "fill the disk": self.disk,
        }
        missing = [phrase for phrase, protected in phrases.items() if not protected]
        return " and ".join(filter(None, [", ".join(missing[:-1]), *missing[-1:]]))

    @property
    def note(self) -> str:
        """A note for people on what was not protected; empty for nothing."""
        return f"(Sandbox incomplete on this system: the code could {self.gaps}.)" * bool(self.gaps)


class ProcessResult(Record):
    """The result of a sandboxed run.

    Attributes:
        stdout: standard output; the middle is cut out where it exceeded the limit.
        stderr: standard error, likewise.
        exit_code: the exit status, negative for a signal; None when a limit ended the run.
        seconds: wall time.
        processor_seconds: processor time of all its processes; 0 on Windows.
        limit: the limit that ended the run, or None when it ended by itself.
        report: the content of the report file, empty when there is none.
        protection: what was protected.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    processor_seconds: float = 0.0
    limit: Limit | None = None
    report: str = ""
    protection: Protection = Protection()

    @property
    def timed_out(self) -> bool:
        """Return whether a time limit ended the run, the sandbox's or one that a program set."""
        return self.limit == "time" or (self.exit_code is not None and self.exit_code == _ALARM)

    @property
    def protection_note(self) -> str:
        """Return a note for people on what was not protected, or an empty string."""
        return self.protection.note


_mode: Mode | None = None


def set_mode(mode: Mode | None) -> None:
    """Say what happens to checks where a protection is missing.

    Args:
        mode: ``auto`` runs them and says so; ``required`` does not run them; None leaves it to
            ``IPYREFINE_SANDBOX``.
    """
    global _mode
    _mode = mode


def get_mode() -> Mode:
    """Return the mode that was set, else that of ``IPYREFINE_SANDBOX``, else ``auto``.

    Raises:
        UsageError: the variable has another value.
    """
    mode = _mode or os.environ.get(_MODE_VARIABLE) or "auto"
    for known in get_args(Mode):
        if mode == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(f"{_MODE_VARIABLE} must be auto or required, not {mode!r}.")


def load_program(name: str) -> str:
    """Return the source of a script in ``programs/``, by its name without ``.py``."""
    return (_PROGRAMS / f"{name}.py").read_text("utf-8")


async def run_python(
    source: str,
    *,
    seconds: float = 10,
    startup: float = 0,
    memory_mb: int = 1024,
    output_limit: int = 64_000,
    files: Mapping[str, str | bytes] | None = None,
    report: str | None = None,
    reads: Sequence[str] = (),
) -> ProcessResult:
    """Run a script in a fresh interpreter and an empty folder, and clean up after it.

    The script and every process it started are killed when it ends, at a limit, and when the
    awaiting task is cancelled. Its standard input is empty, and of this process's environment it
    sees ``PATH`` and ``LANG`` only.

    Args:
        source: the script.
        seconds: processor time allowed to all processes together; on Windows, wall time.
        startup: seconds on top of it, for what a script does before it limits its time itself.
        memory_mb: megabytes of memory allowed to them, and of address space to each.
        output_limit: bytes to keep of standard output, and of standard error.
        files: name and content of files to put beside the script.
        report: name of a file in the script's folder to read after the run.
        reads: further files and folders that it may read.

    Raises:
        CheckNotRun: it did not end within five times ``seconds`` and ten seconds more, though it
            did not use its processor time up: it waits, or the machine is busy. Or a protection is
            required and missing.
        UsageError: this platform cannot start a process.
    """
    if sys.platform == "emscripten":
        raise UsageError(
            "Code cannot be run as a check in a browser's Python. Use a check function instead."
        )
    folder = _make_folder()
    try:
        script = _write_files(folder, source, files or {})
        request = {
            "script": str(script),
            "report": report,
            "seconds": seconds + startup,
            "wall": _WALL_FACTOR * seconds + _WALL_FLOOR_S + startup,
            "memory": memory_mb * 2**20,
            "file": _FILE_MB * 2**20,
            "disk": _DISK_MB * 2**20 + _size(folder),
            "kernel": os.getpid(),
            "hidden": _hidden_folders(),
            "reads": [*reads, *import_folders()],
            "required": get_mode() == "required",
        }
        try:
            return await _supervise(request, folder, output_limit)
        except NotImplementedError:
            # Jupyter on Windows has a loop that cannot start processes.
            return await asyncio.to_thread(_supervise_on_own_loop, request, folder, output_limit)
    except OSError as error:
        raise UsageError(
            f"Python could not be started to run a check: {error.strerror or error}."
        ) from error
    finally:
        await _in_thread(remove_folder, folder)


async def _in_thread(function: Any, *arguments: Any) -> None:
    """Call a function that may take long, and wait for it a few seconds at most."""
    call = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(call), _CLEAN_S)


def describe_failure(result: ProcessResult, seconds: float) -> str:
    """Return why a script failed, with the line of the text where it did.

    An exception gives its type and the first line of its message, then a few further lines.

    Args:
        result: the run.
        seconds: the processor time it was allowed.
    """
    if result.timed_out:
        return f"It did not end within {seconds:.3g} seconds of processor time."
    if result.limit:
        return f"It was stopped, because it {EXCESSES[result.limit]}."
    if result.exit_code is not None and result.exit_code < 0:
        return f"It was killed by signal {-result.exit_code}."
    first, *more = _exception_lines(result.stderr) or [""]
    if not first:
        return f"It ended with exit status {result.exit_code} and no message."
    places = re.findall(r'candidate\.py", line (\d+)|candidate\.py on line (\d+)', result.stderr)
    where = f" (line {places[-1][0] or places[-1][1]})" if places else ""
    lines = [first.strip()[:_ERROR_WIDTH] + where, *(line[:_ERROR_WIDTH] for line in more)]
    return "\n".join(lines)


def _exception_lines(stderr: str) -> list[str]:
    """Return the lines of the exception that ended a script; the last line where there is none."""
    lines = [line.rstrip() for line in stderr.splitlines() if line.strip()]
    if _TRACEBACK not in lines:
        return lines[-1:]
    start = len(lines) - lines[::-1].index(_TRACEBACK)
    below = dropwhile(lambda line: line[0].isspace(), lines[start:])  # the frames
    return list(islice(below, 1 + _MORE_LINES)) or lines[-1:]


EXCESSES: Mapping[Limit, str] = {
    "time": "took too long",
    "memory": "used too much memory",
    "output": "printed without end",
    "processes": "started too many processes",
}


async def _supervise(request: Mapping[str, Any], folder: str, output_limit: int) -> ProcessResult:
    loop = asyncio.get_running_loop()
    start = loop.time()
    windows = sys.platform == "win32"
    if windows and request["required"]:
        raise _refusal(Protection())
    with tempfile.TemporaryFile() as results:
        command, options = _command(request, results.fileno())
        transport, process = await loop.subprocess_exec(
            lambda: _Process(output_limit),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
            **options,
        )
        outcome: dict[str, Any] = {}
        limit: str | None
        try:
            try:
                wall = request["seconds"] if windows else request["wall"] + _GRACE_S
                limit = await process.wait(wall)
            finally:
                if not windows:
                    await _stop(transport, process)
                    outcome = _read_results(results)
                if not outcome.get("clean"):
                    await _in_thread(kill_processes, transport.get_pid(), folder)
                await process.close()
        finally:
            transport.close()
    if windows:
        limit = "time" if limit == "wall" else limit
        path = Path(folder, request["report"]) if request["report"] else None
        outcome = {"status": transport.get_returncode(), "report": _read_report(path)}
    protection = Protection.model_validate(outcome.get("protection", {}))
    used, seconds = outcome.get("seconds", 0.0), loop.time() - start
    limit = limit or outcome.get("limit")
    status = outcome.get("status", -9)  # whoever killed the supervisor
    if not windows and status == -signal.SIGXCPU:
        limit = "time"
    _require_run(outcome, protection, limit, seconds, used, set_up=windows or limit is not None)
    return ProcessResult(
        stdout=process.streams[1].text(),
        stderr=process.streams[2].text(),
        exit_code=None if limit else status,
        seconds=seconds,
        processor_seconds=used,
        limit=cast("Limit | None", limit),
        report=outcome.get("report", ""),
        protection=protection,
    )


def _require_run(
    outcome: Mapping[str, Any],
    protection: Protection,
    limit: str | None,
    seconds: float,
    used: float,
    *,
    set_up: bool,
) -> None:
    """Raise an error where nothing can be said of the code."""
    if outcome.get("refused"):
        raise _refusal(protection)
    if limit == "wall":
        error = CheckNotRun(
            f"It did not end within {seconds:.0f} seconds, but used {used:.2g} seconds of "
            "processor time only: it waits, or the machine is busy. That counts neither for nor "
            "against it."
        )
        error.report = outcome.get("report", "")
        raise error
    if not set_up and ("error" in outcome or "protection" not in outcome):
        reason = outcome.get("error", "its first process was killed")
        raise CheckNotRun(f"The sandbox could not be started: {reason}.")


def _refusal(protection: Protection) -> CheckNotRun:
    return CheckNotRun(
        f"Not run, because a complete sandbox is required: here, code could {protection.gaps}."
    )


async def _stop(transport: asyncio.SubprocessTransport, process: "_Process") -> None:
    """Let the supervisor end what it started, and itself."""
    with suppress(ProcessLookupError):
        transport.terminate()
    await process.wait_for_exit(_STOP_S)


def _read_results(file: Any) -> dict[str, Any]:
    """Return what the processes of the sandbox wrote, as one record."""
    file.seek(0)
    outcome: dict[str, Any] = {}
    for line in file:
        with suppress(ValueError, SyntaxError):  # a line that its writer did not end
            outcome |= ast.literal_eval(line.decode())
    return outcome


def _supervise_on_own_loop(
    request: Mapping[str, Any], folder: str, output_limit: int
) -> ProcessResult:
    factory = getattr(asyncio, "ProactorEventLoop", None)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_supervise(request, folder, output_limit))


def _make_folder() -> str:
    # Processes are found by this path, and the system knows them by the real one.
    return os.path.realpath(tempfile.mkdtemp(prefix="ipyrefine-"))


def _hidden_folders() -> list[str]:
    """Return the folders of the user's that the code must not read, the home first."""
    named = [os.environ.get(name, "") for name in _FOLDER_VARIABLES]
    with suppress(OSError):  # it may have been removed
        named.append(os.getcwd())
    return [os.path.expanduser("~"), *filter(os.path.isabs, named)]


def import_folders() -> list[str]:
    """Return the folders that Python imports from here, and the sandbox's Python by itself not.

    These are those of ``PYTHONPATH``, ``pip install --user`` and code: outside of ``sys.prefix``
    and not the working folder.
    """
    own = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    return [
        folder
        for folder in import_path()
        if not any(Path(folder).is_relative_to(prefix) for prefix in own)
    ]


def import_path() -> list[str]:
    """Return what Python imports from, in its order, without the working folder."""
    here = Path.cwd().resolve()
    entries = [Path(entry).resolve() for entry in sys.path if entry]
    return [str(one) for one in dict.fromkeys(entries) if one != here and one.exists()]


def _size(folder: str) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def remove_folder(folder: str) -> None:
    """Remove a folder with all that is in it, however deep, in constant stack and few open files.

    Args:
        folder: the folder; nothing else may be at work in it.
    """
    waiting, count = [folder], 0
    while waiting:
        current = waiting.pop()
        with suppress(OSError):
            os.chmod(current, stat.S_IRWXU)
            with os.scandir(current) as entries:
                inner = list(entries)
            for entry in inner:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                # Moved up, a folder's path never gets too long for the system.
                count += 1
                target = os.path.join(folder, f".remove-{count}")
                os.chmod(entry.path, stat.S_IRWXU)
                os.rename(entry.path, target)
                waiting.append(target)
            if current != folder:
                os.rmdir(current)
    with suppress(OSError):
        os.rmdir(folder)


def _write_files(folder: str, source: str, files: Mapping[str, str | bytes]) -> Path:
    script = Path(folder, "main.py")
    for name, content in {**files, script.name: source}.items():
        # Invalid Unicode is a fault of the text, for the interpreter to report.
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        Path(folder, name).write_bytes(data)
    return script


def _read_report(path: Path | None) -> str:
    # Anything but a plain file was put there by the code, and may block.
    if path is None or path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_REPORT_BYTES).decode(errors="replace")


def _command(request: Mapping[str, Any], results: int) -> tuple[list[str], dict[str, Any]]:
    """Return what starts the script, and how."""
    if sys.platform == "win32":
        return [sys.executable, "-I", "-X", "utf8", request["script"]], {}
    argument = ascii({**request, "results": results})
    return [sys.executable, "-I", str(LIMITER), argument], {"pass_fds": (results,)}


def _environment(folder: str) -> dict[str, str]:
    names = ("PATH", "LANG", "SYSTEMROOT") if sys.platform == "win32" else ("PATH", "LANG")
    homes = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR")
    folders = dict.fromkeys(homes, folder)
    # One buffer per core would not fit into the address space on a large machine.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    known = {name: os.environ[name] for name in names if name in os.environ}
    return known | folders | threads | {"MPLBACKEND": "Agg"}  # matplotlib opens no window


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
        self._exit = asyncio.Event()
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
        self._exit.set()
        self._end.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the pipes were read to their end."""
        self._pipes_end.set()

    async def wait(self, seconds: float) -> Literal["output", "wall"] | None:
        """Wait for the exit or for a limit; return that limit."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._end.wait(), seconds)
        return "output" if self._flood else None if self._exit.is_set() else "wall"

    async def wait_for_exit(self, seconds: float) -> None:
        """Wait until the process has exited, for some seconds at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exit.wait(), seconds)

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
