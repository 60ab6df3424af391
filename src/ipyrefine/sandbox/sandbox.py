"""Run untrusted Python in a subprocess with limits, so that it cannot hang or harm the kernel.

On Linux, where the system allows it, the code runs in namespaces of its own: it has no network but
a private loopback, sees no process but its own, and its working folder vanishes with it. Landlock
lets it read Python, its packages and the system's libraries, and write its own folder. It has no
capabilities, and seccomp refuses it keyrings, other processes and memory that no limit counts.
Time, memory, output, processes and disk are limited for all of its processes together.

What is missing elsewhere, `ProcessResult.protection` says; it comes from the processes that set the
sandbox up, by a file that the code cannot reach. Evidence repeats it in words.

| checked code | Linux with namespaces | Linux without | macOS, Windows |
|---|---|---|---|
| network | a private loopback only | none | **open** |
| environment, memory and keyring of the kernel | unreadable | unreadable | **readable** |
| files but Python's and the system's | unreadable | unreadable | **readable, writable** |
| other processes | invisible | visible, out of reach | **within reach** |
| memory, disk of all its processes together | limited | memory only | **unlimited** |

- Most containers forbid namespaces, and so does Ubuntu since 24.04 for programs without an AppArmor
  profile. The mode and owner of files of yours can then be changed, though not their content.
- Before Linux 5.13, or with Landlock switched off, all files can be read. Before 6.12 other
  processes can be reached without namespaces. On other machines than x86-64 and ARM, seccomp is
  not used: the keyring can be read, and the network is open without namespaces.
- macOS limits processor time, output and the size of a file; Windows wall time and output.
- Sockets in folders can be connected to, except in ``/run`` and ``/tmp`` with namespaces.

Code that only waits (``time.sleep(100)``) ends at a limit of wall time. That counts neither for nor
against a text, and so does a run that exceeds its processor time by less than a fifth: a busy
machine looks the same.
"""

import ast
import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import dropwhile, islice
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

from ipyrefine.core.model import Record
from ipyrefine.errors import CheckNotRun, UsageError

Limit = Literal["time", "memory", "output", "processes"]
Mode = Literal["auto", "required"]

_PROGRAMS = Path(__file__).parent / "programs"
LIMITER = _PROGRAMS / "confine.py"
_MODE_VARIABLE = "IPYREFINE_SANDBOX"

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

SLACK = 1.2  # what a busy machine may make of processor time, as a multiple
_FLOOD = 16  # output beyond this many times the kept bytes ends the run
_LOOK_S = 0.1
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
        files: name and content of files to put next to the script.
        report: name of a file in the script's folder to read after the run.
        reads: further files and folders that it may read.

    Raises:
        CheckNotRun: it did not end within five times ``seconds`` and ten seconds more, though it
            did not use its processor time up: it waits, or the machine is busy. Or it succeeded,
            but used up to a fifth more than ``seconds``. Or a protection is required and missing.
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
            "seconds": (seconds + startup) * SLACK,
            "wall": _WALL_FACTOR * seconds + _WALL_FLOOR_S + startup,
            "memory": memory_mb * 2**20,
            "file": _FILE_MB * 2**20,
            "disk": _DISK_MB * 2**20 + sum(entry.stat().st_size for entry in os.scandir(folder)),
            "kernel": os.getpid(),
            "home": os.path.expanduser("~"),  # noqa: ASYNC240 - it blocks nothing
            "reads": [*reads, *import_folders()],
            "required": get_mode() == "required",
        }
        try:
            result = await _supervise(request, folder, output_limit)
        except NotImplementedError:
            # Jupyter on Windows has a loop that cannot start processes.
            result = await asyncio.to_thread(_supervise_on_own_loop, request, folder, output_limit)
    except OSError as error:
        raise UsageError(
            f"Python could not be started to run a check: {error.strerror or error}."
        ) from error
    finally:
        await _in_thread(remove_folder, folder)
    if result.exit_code == 0 and result.processor_seconds > seconds + startup:
        raise _not_run(
            f"It used {result.processor_seconds:.3g} seconds of processor time, which is too near "
            f"to the limit of {seconds + startup:.3g} to tell.",
            result.report,
        )
    return result


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
    start, windows = time.monotonic(), sys.platform == "win32"
    if windows and request["required"]:
        raise _refusal(Protection())
    with ExitStack() as files:
        results, *streams = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        command, options = _command(request, results.fileno())
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
            **options,
        )
        outcome: dict[str, Any] = {}
        limit: str | None = None
        exited = asyncio.ensure_future(process.wait())
        try:
            wall = request["seconds"] if windows else request["wall"] + _GRACE_S
            while not limit and not exited.done():
                await asyncio.wait([exited], timeout=_LOOK_S)
                if any(os.fstat(one.fileno()).st_size > _FLOOD * output_limit for one in streams):
                    limit = "output"
                elif time.monotonic() - start > wall:
                    limit = "time" if windows else "wall"
        finally:
            if not windows:
                with suppress(ProcessLookupError):
                    process.terminate()
                await asyncio.wait([exited], timeout=_STOP_S)
                outcome = _read_results(results)
            if not outcome.get("clean"):
                await _in_thread(kill_processes, process.pid, folder)
                await asyncio.wait([exited], timeout=_STOP_S)
        stdout, stderr = (_excerpt(one, output_limit) for one in streams)
    if windows:
        outcome = {"status": process.returncode, "report": _read_report(folder, request["report"])}
    protection = Protection.model_validate(outcome.get("protection", {}))
    used, seconds = outcome.get("seconds", 0.0), time.monotonic() - start
    limit = limit or outcome.get("limit")
    status = outcome.get("status", -9)  # whoever killed the supervisor
    if not windows and status == -signal.SIGXCPU:
        limit = "time"
    if outcome.get("refused"):
        raise _refusal(protection)
    if limit == "wall":
        raise _not_run(
            f"It did not end within {seconds:.0f} seconds, but used {used:.2g} seconds of "
            "processor time only: it waits, or the machine is busy.",
            outcome.get("report", ""),
        )
    if not windows and limit is None and ("error" in outcome or "protection" not in outcome):
        reason = outcome.get("error", "its first process was killed")
        raise CheckNotRun(f"The sandbox could not be started: {reason}.")
    return ProcessResult(
        stdout=stdout,
        stderr=stderr,
        exit_code=None if limit else status,
        seconds=seconds,
        processor_seconds=used,
        limit=cast("Limit | None", limit),
        report=outcome.get("report", ""),
        protection=protection,
    )


def _not_run(reason: str, report: str) -> CheckNotRun:
    error = CheckNotRun(f"{reason} That counts neither for nor against it.")
    error.report = report
    return error


def _refusal(protection: Protection) -> CheckNotRun:
    return CheckNotRun(
        f"Not run, because a complete sandbox is required: here, code could {protection.gaps}."
    )


def _excerpt(stream: IO[bytes], limit: int) -> str:
    """Return the first and the last half of an output, within a number of bytes."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    data = stream.read(limit if size <= limit else limit // 2)
    if size > limit:
        stream.seek(-(limit // 2), os.SEEK_END)
        data += f"\n[… {size - limit} bytes left out …]\n".encode() + stream.read(limit // 2)
    return data.decode(errors="replace")


def _read_results(file: IO[bytes]) -> dict[str, Any]:
    """Return what the processes of the sandbox wrote, as one record."""
    file.seek(0)
    outcome: dict[str, Any] = {}
    for line in file:
        with suppress(ValueError, SyntaxError):  # a line that its writer did not end
            outcome |= ast.literal_eval(line.decode())
    return outcome


def _read_report(folder: str, name: str | None) -> str:
    path = Path(folder, name or "")
    return path.read_bytes()[:_REPORT_BYTES].decode(errors="replace") if path.is_file() else ""


def _supervise_on_own_loop(
    request: Mapping[str, Any], folder: str, output_limit: int
) -> ProcessResult:
    factory = getattr(asyncio, "ProactorEventLoop", None)
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_supervise(request, folder, output_limit))


def _make_folder() -> str:
    # Processes are found by this path, and the system knows them by the real one.
    return os.path.realpath(tempfile.mkdtemp(prefix="ipyrefine-"))


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


def remove_folder(folder: str) -> None:
    """Remove a folder with all that is in it, however deep.

    Args:
        folder: the folder; nothing else may be at work in it.
    """
    if sys.platform == "win32":
        shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:  # folders in it may be closed, and deeper than Python can go
        command = 'chmod -R u+rwx "$1"; rm -rf "$1"'
        subprocess.run(["sh", "-c", command, "sh", folder], capture_output=True, check=False)


def _write_files(folder: str, source: str, files: Mapping[str, str | bytes]) -> Path:
    script = Path(folder, "main.py")
    for name, content in {**files, script.name: source}.items():
        # Invalid Unicode is a fault of the text, for the interpreter to report.
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        Path(folder, name).write_bytes(data)
    return script


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
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for _ in range(_KILL_PASSES):  # one may start another while it is being killed
        survivors = find_processes(folder)
        for pid in survivors:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not survivors:
            return


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
