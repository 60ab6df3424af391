"""Run untrusted Python in a subprocess with limits, so that it cannot hang or harm the kernel.

On Linux, where the system allows it, the code runs in namespaces of its own: it has no network but
a private loopback, sees no process but its own, and its working folder vanishes with it. Landlock
lets it read Python, its packages and the system's libraries, and write its own folder. It has no
capabilities, and seccomp allows it the system calls that ``programs/confine.py`` lists, and no
others: none for keyrings, other processes or memory that no limit counts. It can limit and schedule
only itself. Where it needs another call, it is not tried; that is no fault of it. Time, memory,
output, processes and disk are limited for all of its processes together.

What is missing elsewhere, `ProcessResult.protection` says; it comes from the processes that set the
sandbox up, by a file that the code cannot reach. Evidence repeats it in words.

| checked code | Linux with namespaces | Linux without | macOS, Windows |
|---|---|---|---|
| network | a private loopback only | none | **open** |
| environment, memory and keyring of the kernel | unreadable | unreadable | **readable** |
| files of the notebook's folder, but hidden ones | under an overlay | on copies | on copies |
| other files but Python's and the system's | unreadable | unreadable | **readable, writable** |
| other processes | invisible | visible, out of reach | **within reach** |
| memory, disk of all its processes together | limited | memory only | **unlimited** |

- Most containers forbid namespaces, and so does Ubuntu since 24.04 for programs without an AppArmor
  profile. Calls that change the mode, owner or times of a file then do nothing.
- Without namespaces there is no shared memory, and so no ``multiprocessing`` pool, queue or value.
- Before Linux 5.13, or with Landlock switched off, all files can be read, and shared memory of
  others without namespaces. Before 6.12, code without namespaces cannot signal what it started. On
  other machines than x86-64 and ARM, seccomp is not used: the keyring can be read, and without
  namespaces the network is open and other processes can be reached.
- macOS limits processor time, output and the size of a file; Windows wall time only.
- Sockets in folders can be connected to, except in ``/run`` and ``/tmp`` with namespaces.

Code that only waits (``time.sleep(100)``) ends at a limit of wall time. That counts neither for nor
against a text, and so does a run that exceeds its processor time by less than a fifth: a busy
machine looks the same.
"""

import ast
import asyncio
import io
import json
import marshal
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from functools import cache
from importlib.util import MAGIC_NUMBER
from itertools import dropwhile, islice
from pathlib import Path
from typing import IO, Any, Literal, Union, cast, get_args

from ipyrefine.core.model import Record
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.sandbox.programs import overlay

with suppress(ImportError):  # Windows has none
    import fcntl

Limit = Literal["time", "memory", "output", "processes"]
Mode = Literal["auto", "required"]
Event = dict[str, Any]
Change = tuple[str, int | None, int | None]
FileContent = Union[str, bytes, "SharedBytes"]

_PROGRAMS = Path(__file__).parent / "programs"
LIMITER = _PROGRAMS / "confine.py"
_MODE_VARIABLE = "IPYREFINE_SANDBOX"
_WINDOWS = sys.platform == "win32"
# A set of strings has the same order in every run, unless a run is to find what depends on it.
HASH_SEED = ContextVar("ipyrefine_hash_seed", default="0")

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
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
_FIRST_LOOK_S, _LOOK_S = 0.005, 0.05
_STOP_S = 8.0  # for the supervisor to kill what it started
_ALARM = -27  # SIGPROF, by which a program limits the processor time of a part

EXCESSES: Mapping[Limit, str] = {
    "time": "took too long",
    "memory": "used too much memory",
    "output": "printed without end",
    "processes": "started too many processes",
}
_GAPS = {
    "network": "reach the network",
    "keys": "read your keys",
    "files": "read your files",
    "processes": "reach your other processes",
    "memory": "fill the memory",
    "disk": "fill the disk",
}


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
        """Return in words what the code could do without the missing protections, if any."""
        missing = [phrase for name, phrase in _GAPS.items() if not getattr(self, name)]
        return " and ".join(filter(None, [", ".join(missing[:-1]), *missing[-1:]]))


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
        files: what it did to files of the folder that it was shown, as `overlay.changes` has it.
        opened: whether it opened something there that was closed.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    processor_seconds: float = 0.0
    limit: Limit | None = None
    report: str = ""
    protection: Protection = Protection()
    files: tuple[Change, ...] = ()
    opened: bool = False

    @property
    def timed_out(self) -> bool:
        """Return True if a time limit ended the run, the sandbox's or one that a program set."""
        return self.limit == "time" or self.exit_code == _ALARM

    @property
    def protection_note(self) -> str:
        """Return a note for people on what was not protected, or an empty string."""
        gaps = self.protection.gaps
        return gaps and f"(Sandbox incomplete on this system: the code could {gaps}.)"


class SharedBytes:
    """Bytes that sandboxes read where they are in memory, by a descriptor; else they get a copy.

    Args:
        file: what `memory_file` returned, which is not needed any longer.
        room: bytes of memory that a sandbox may take on top for them.
        seconds: processor time that it may take on top to read them.

    Attributes:
        descriptor: an open file that can only be read; None where the system has none in memory.
        content: the bytes then.
    """

    def __init__(self, file: IO[bytes], room: int = 0, seconds: float = 0.0) -> None:
        self.room, self.seconds = room, seconds
        self.descriptor: int | None = None
        self.content = file.getvalue() if isinstance(file, io.BytesIO) else b""
        if not isinstance(file, io.BytesIO):
            seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
            self.descriptor = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY | os.O_CLOEXEC)
            self.close = weakref.finalize(self, os.close, self.descriptor)


def memory_file() -> IO[bytes]:
    """Return an empty file in memory."""
    if not hasattr(os, "memfd_create"):
        return io.BytesIO()
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    return open(os.memfd_create("ipyrefine", flags), "w+b", buffering=0)


_mode: Mode | None = None


def set_mode(mode: Mode | None) -> None:
    """Set what happens to checks where a protection is missing.

    ``auto`` runs them and says so; ``required`` does not; None leaves it to ``IPYREFINE_SANDBOX``.
    """
    global _mode
    _mode = mode


def _get_mode() -> Mode:
    """Return the mode that was set, else that of ``IPYREFINE_SANDBOX``, else ``auto``.

    Raises:
        UsageError: the variable has another value.
    """
    mode = _mode or os.environ.get(_MODE_VARIABLE) or "auto"
    if mode not in get_args(Mode):
        raise UsageError(f"{_MODE_VARIABLE} must be auto or required, not {mode!r}.")
    return cast("Mode", mode)


def load_program(name: str) -> str:
    """Return the source of a script in ``programs/``, by its name without ``.py``."""
    return (_PROGRAMS / f"{name}.py").read_text("utf-8")


@cache
def compiled_program(name: str) -> bytes:
    """Return such a script as bytecode for `runpy`, which saves each run the time to compile it."""
    code = compile(load_program(name), f"{name}.py", "exec", dont_inherit=True)
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


async def run_python(
    source: str,
    *,
    seconds: float = 10,
    startup: float = 0,
    memory_mb: int = 1024,
    output_limit: int = 64_000,
    files: Mapping[str, FileContent] | None = None,
    report: str | None = None,
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
        files: name and content of files to put next to the script; ``folder.txt`` is the plan of a
            folder to show it (`programs.overlay`).
        report: name of a file in the script's folder to read after the run.

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
    given = {**(files or {}), "main.py": source}
    shared = [one for one in given.values() if isinstance(one, SharedBytes)]
    startup += sum(one.seconds for one in shared)
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix="ipyrefine-")
        folder = os.path.realpath(folder)  # noqa: ASYNC240 - as the system calls it
        _fill(folder, given)
        request = {
            "script": os.path.join(folder, "main.py"),
            "report": report,
            "seconds": (seconds + startup) * SLACK,
            "wall": _WALL_FACTOR * seconds + _WALL_FLOOR_S + startup,
            "output": _FLOOD * output_limit,
            "memory": memory_mb * 2**20 + sum(one.room for one in shared),
            "file": _FILE_MB * 2**20,
            "disk": _DISK_MB * 2**20 + sum(map(_size, given.values())),
            "kernel": os.getpid(),
            "home": os.path.expanduser("~"),  # noqa: ASYNC240 - it blocks nothing
            "reads": import_path(),
            "required": _get_mode() == "required",
        }
        passed = [one.descriptor for one in shared if one.descriptor is not None]
        result = await _supervise(request, folder, output_limit, passed)
    except OSError as error:
        room = " Make room in the temporary folder, or have TMPDIR name another and restart."
        advice = "" if error.filename == sys.executable else room
        raise UsageError(
            f"Python could not be started to run a check: {error.strerror or error}.{advice}"
        ) from error
    finally:
        await asyncio.to_thread(_remove_folder, folder)
    if result.exit_code == 0 and result.processor_seconds > seconds + startup:
        raise _not_run(
            f"It used {result.processor_seconds:.3g} seconds of processor time, which is too near "
            f"to the limit of {seconds + startup:.3g} to tell.",
            result.report,
        )
    return result


async def run_parts(
    kind: Literal["examples", "tests", "cell"],
    files: Mapping[str, FileContent],
    *,
    seconds: float,
    each: float,
    startup: float = 0,
    **request: Any,
) -> tuple[ProcessResult, list[Event]]:
    """Run the parts of a text by the program ``run_parts``, which says what each kind is.

    Args:
        kind: what is run.
        files: ``candidate.py`` and the files that it needs.
        seconds: processor time allowed to all parts together.
        each: processor time allowed to one part.
        startup: as for `run_python`.
        request: what the program has to know of this kind.

    Returns:
        How the process ended, and its events; lines that the text may have written do not count.

    Raises:
        CheckNotRun: as for `run_python`; it has the events up to then.
    """
    token, report = secrets.token_hex(16), secrets.token_hex(16)
    asked = {"kind": kind, "token": token, "report": report, "seconds": each * SLACK, **request}
    try:
        result = await run_python(
            load_program("run_parts"),
            seconds=seconds,
            startup=startup,
            files={**files, "request.json": json.dumps(asked)},
            report=report,
        )
    except CheckNotRun as error:
        error.events = _read_events(error.report, token)
        raise
    events = _read_events(result.report, token)
    for tried in (event["tried"] for event in events if isinstance(event.get("tried"), dict)):
        tried["opened"] = result.opened
    return result, events


def _read_events(report: str, token: str) -> list[Event]:
    events = []
    for line in report.splitlines():
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict) and event.get("token") == token:
                events.append(event)
    return events


def field_of(events: Iterable[Event], name: str, default: Any = None) -> Any:
    """Return the first value of a field of events; without one, a default."""
    return next((event[name] for event in events if name in event), default)


def _size(content: FileContent) -> int:
    return len(content.content if isinstance(content, SharedBytes) else content)


def _fill(folder: str, files: Mapping[str, FileContent]) -> None:
    for name, content in files.items():
        if isinstance(content, SharedBytes):
            if content.descriptor is not None:
                continue
            content = content.content
        # Invalid Unicode is a fault of the text, for the interpreter to report.
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        Path(folder, name).write_bytes(data)


async def _supervise(
    request: Mapping[str, Any], folder: str, output_limit: int, passed: Sequence[int]
) -> ProcessResult:
    start = time.monotonic()
    if _WINDOWS and request["required"]:
        raise _refusal(Protection())
    plan = overlay.read_plan(folder) if _WINDOWS else {}
    for path in overlay.show(plan, folder) if plan else ():
        os.unlink(path)  # nothing would tell that it was opened
    with ExitStack() as files:
        results, *streams = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        argument = ascii({**request, "results": results.fileno()})
        process = subprocess.Popen(  # noqa: ASYNC220 - a loop in Jupyter on Windows cannot
            [sys.executable, "-s", "-P", "-X", "utf8", request["script"]]
            if _WINDOWS
            else [sys.executable, "-I", str(LIMITER), argument],
            stdin=subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
            pass_fds=() if _WINDOWS else (results.fileno(), *passed),
        )
        try:
            wall = request["seconds"] if _WINDOWS else request["wall"] + _GRACE_S
            ended = await _wait(process, wall)
        finally:
            if process.poll() is None:
                _terminate(process)
                await _wait(process, _STOP_S)
                process.kill()
                process.wait()
        stdout, stderr = (_excerpt(one, output_limit) for one in streams)
        outcome = _read_results(results)
    seconds = time.monotonic() - start
    if _WINDOWS:
        outcome = {"status": process.returncode, "report": _read_report(folder, request["report"])}
        outcome["files"] = overlay.changes(plan) if plan else ()
    base = os.path.join(folder, overlay.BASE)  # paths in it stand for those without it
    stdout, stderr, report = (
        text.replace(base, "") for text in (stdout, stderr, outcome.get("report", ""))
    )
    limit = outcome.get("limit") or (None if ended else "time" if _WINDOWS else "wall")
    complete = _WINDOWS or {"protection", "status"} <= outcome.keys()
    if not limit and ("error" in outcome or not complete):
        reason = outcome.get("error", "its first process was killed")
        raise CheckNotRun(f"The sandbox could not be started: {reason}.")
    protection = Protection.model_validate(outcome.get("protection", {}))
    used = outcome.get("seconds", 0.0)
    if outcome.get("refused"):
        raise _refusal(protection)
    if limit == "wall":
        raise _not_run(
            f"It did not end within {seconds:.0f} seconds, but used {used:.2g} seconds of "
            "processor time only: it waits, or the machine is busy.",
            report,
        )
    return ProcessResult(
        stdout=stdout,
        stderr=stderr,
        exit_code=None if limit else outcome.get("status"),
        seconds=seconds,
        processor_seconds=used,
        limit=cast("Limit | None", limit),
        report=report,
        protection=protection,
        files=outcome.get("files", ()),
        opened=outcome.get("opened", False),
    )


async def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Return True if a process ended within some seconds."""
    end, pause = time.monotonic() + seconds, _FIRST_LOOK_S
    while process.poll() is None:
        if time.monotonic() > end:
            return False
        await asyncio.sleep(pause)
        pause = min(1.2 * pause, _LOOK_S)
    return True


def _terminate(process: "subprocess.Popen[bytes]") -> None:
    if _WINDOWS:
        tree = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
        subprocess.run(tree, capture_output=True, check=False)
    else:
        process.terminate()


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
    file.seek(0)
    outcome: dict[str, Any] = {}
    for line in file:
        with suppress(ValueError, SyntaxError):  # a line that its writer did not end
            outcome |= ast.literal_eval(line.decode())
    return outcome


def _read_report(folder: str, name: str | None) -> str:
    path = Path(folder, name or "")
    return path.read_bytes()[:_REPORT_BYTES].decode(errors="replace") if path.is_file() else ""


def working_folder() -> str:
    """Return the folder that this process works in; the root where that was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.sep


def import_path() -> list[str]:
    """Return Python's import path, in its order, without the working folder."""
    here = Path(working_folder()).resolve()
    entries = [Path(here, entry).resolve() for entry in sys.path if entry]
    return [str(one) for one in dict.fromkeys(entries) if one != here and one.exists()]


def _remove_folder(folder: str) -> None:
    """Remove a folder with all that is in it, however deep; nothing else may be at work in it."""
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(folder) and not _WINDOWS:  # deeper than Python can go, or closed
        command = 'chmod -R u+rwx "$1"; rm -rf "$1"'
        subprocess.run(["sh", "-c", command, "sh", folder], capture_output=True, check=False)


def _environment(folder: str) -> dict[str, str]:
    names = ("PATH", "LANG", "SYSTEMROOT") if _WINDOWS else ("PATH", "LANG")
    homes = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR")
    folders = dict.fromkeys(homes, folder)
    # One buffer, or one heap, per core would not fit into the address space on a large machine.
    threads = dict.fromkeys((*_THREADS, "MALLOC_ARENA_MAX"), "1")
    known = {name: os.environ[name] for name in names if name in os.environ}
    # Matplotlib opens no window.
    return known | folders | threads | {"MPLBACKEND": "Agg", "PYTHONHASHSEED": HASH_SEED.get()}


def describe_failure(result: ProcessResult, seconds: float) -> str:
    """Return why a script failed, and at which line of the text.

    An exception gives its type and the first line of its message, then a few further lines.
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
    """Return the lines of the exception that ended a script, else its last line."""
    lines = [line.rstrip() for line in stderr.splitlines() if line.strip()]
    if _TRACEBACK not in lines:
        return lines[-1:]
    start = len(lines) - lines[::-1].index(_TRACEBACK)
    below = dropwhile(lambda line: line[0].isspace(), lines[start:])  # the frames
    return list(islice(below, 1 + _MORE_LINES)) or lines[-1:]
