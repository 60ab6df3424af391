"""Take a snapshot: copies of what code needs of the notebook, made in a forked child of the kernel.

The child has every object as it is, so that the kernel is held for a fork only. It runs no model's
code, but pickling runs the objects' own: so it first shuts itself in. It can then write nothing but
its pipe and its memory file, start no process, signal none, and ends at a time and a size. Memory
that it shares with the kernel, such as a mapped file, becomes its own. Only what libraries have run
at each fork (`os.register_at_fork`, ``pthread_atfork``) runs before that, with the kernel's rights.

Where it cannot shut itself in, or where a fork would harm, values of exactly known types are copied
in the kernel instead.
"""

import asyncio
import gc
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple, NoReturn

from pydantic import Field, TypeAdapter, ValidationError

from ipyrefine.errors import describe
from ipyrefine.kernel.copying import TOO_SLOW, Copy, Output, copy_names
from ipyrefine.sandbox.sandbox import SharedBytes, import_path, memory_file

with suppress(ImportError):  # Windows has none
    import resource

# Set where another thread waits for this one, and runs no code of the notebook meanwhile.
CALLER_WAITS = ContextVar("ipyrefine_caller_waits", default=False)
_MAX_BYTES = 2**30  # that the child, the copies and a sandbox take together
_MAX_ANSWER = 2**24  # bytes
_SHARE = 4  # of the memory that is left, one part of so many
_ROOM = 4  # what a sandbox takes of a copy: itself, and three times what it is once it is read
_SECONDS = 10.0  # for all copies
_MAX_BYTES_IN_KERNEL = 50 * 2**20
_SECONDS_IN_KERNEL = 5.0
_LONGEST_HOLD = 0.3  # seconds that a fork may hold the kernel; after a longer one there is none
_PATIENCE = 2.0  # seconds beyond the child's own time until it is killed
# The child's answer, line by line: a copy, or why there are none.
_LINE = TypeAdapter[Copy | str](Copy | Annotated[str, Field(max_length=500)])
_UNREADABLE = "the answer of the child that was to make them cannot be read"
_hold = 0.0  # seconds that the last fork held the kernel


class Snapshot(NamedTuple):
    """Copies of names.

    Attributes:
        content: the pickles; closed once nobody has it.
        copies: the result for each name.
        note: why they were made in the kernel, as a clause; empty where a child made them.
    """

    content: SharedBytes
    copies: tuple[Copy, ...]
    note: str = ""


async def take(names: Iterable[str], namespace: Mapping[str, Any]) -> Snapshot:
    """Take a snapshot of some names, and of those that their functions use.

    Names that the namespace lacks are left out.
    """
    import cloudpickle  # noqa: F401 - the child finds it imported

    names, note, file = [*names], _why_no_fork(), memory_file()
    with file:
        copies = list[Copy]()
        if not note:
            copies, note = await _copy_in_child(names, namespace, file)
        if note:
            copies = await asyncio.to_thread(_copy_here, names, namespace, file)
        made = {one.start: one for one in copies if one.stop}.values()
        room, seconds = sum(one.room for one in made), sum(one.seconds for one in made)
        return Snapshot(SharedBytes(file, _ROOM * room, 2 * seconds), tuple(copies), note)


def _copy_here(names: list[str], namespace: Mapping[str, Any], file: IO[bytes]) -> list[Copy]:
    deadline = time.monotonic() + _SECONDS_IN_KERNEL
    output = Output(file, min(_MAX_BYTES_IN_KERNEL, _free_memory() // _SHARE), deadline)
    output.cut(0)  # a child that failed may have written
    return [*copy_names(names, namespace, output, exact=True)]


def _why_no_fork() -> str:
    """Return why no child may be forked now, as a clause; empty where one may."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return "this system has no safe way to fork a kernel"
    if os.environ.get("IPYREFINE_NO_FORK", "0") not in ("", "0"):
        return "IPYREFINE_NO_FORK is set"
    if _hold > _LONGEST_HOLD:
        return f"the last fork held the kernel for {_hold:.1f} seconds"
    if _runs_elsewhere():
        return "another thread runs code of the notebook"
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized():
        return "MPI is in use"
    with suppress(OSError):
        for one in os.scandir("/proc/self/fd"):
            with suppress(OSError):
                if os.readlink(one.path).startswith("/dev/nvidia"):
                    return "a GPU is in use"
    return ""


def _runs_elsewhere() -> bool:
    """Return True if another thread is in code of the notebook, and may change what it holds."""
    quiet = {threading.get_ident()}
    if CALLER_WAITS.get():
        quiet.add(threading.main_thread().ident or 0)
    space = vars(sys.modules["__main__"])
    # Our own frame would hold itself, and with it the copies, until garbage is collected.
    frames = [top for one, top in sys._current_frames().items() if one not in quiet]
    for frame in frames:
        if frame.f_globals is space:
            return True
        frames += filter(None, [frame.f_back])
    return False


# The child


async def _copy_in_child(
    names: list[str], namespace: Mapping[str, Any], file: IO[bytes]
) -> tuple[list[Copy], str]:
    from ipyrefine.kernel import mappings
    from ipyrefine.sandbox.programs import confine  # both are for Linux only

    global _hold
    limit, reads = min(_MAX_BYTES, _free_memory() // _SHARE), import_path()
    source, sink = os.pipe()
    child, signals = -1, signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        began = time.monotonic()
        ignored = warnings.catch_warnings(action="ignore", category=DeprecationWarning)
        with ignored, suppress(OSError):  # the system may allow no more of them
            child = os.fork()  # Python 3.12 warns where there are threads
        if child == 0:
            shut_in = partial(confine.shut_in, reads)
            _be_child(names, namespace, file, sink, limit, shut_in, mappings.make_private)
        _hold = time.monotonic() - began
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        os.close(sink)
    if child < 0:
        os.close(source)
        return [], "a child could not be forked"
    with os.fdopen(source, "rb", buffering=0) as reports, _Process(child) as process:
        # A thread reads, as the event loop may be one without descriptors.
        reading = asyncio.ensure_future(asyncio.to_thread(_read, reports))
        try:
            answer = await asyncio.shield(reading)
        except BaseException:
            process.kill()  # so that the pipe ends
            await asyncio.wait([reading])
            raise
        process.kill()
    return _read_answer(answer, [*names], namespace, os.fstat(file.fileno()).st_size)


def _read_answer(
    answer: bytes, names: list[str], namespace: Mapping[str, Any], size: int
) -> tuple[list[Copy], str]:
    """Return the copies of an answer that is whole but for its end, else why there are none."""
    copies = {}
    for line in answer.split(b"\n")[:-1]:  # the child may have been killed as it wrote another
        try:
            found = _LINE.validate_json(line, strict=True)
        except ValidationError:
            return [], _UNREADABLE
        if isinstance(found, str):
            return [], found
        is_one = found.module or found.reason or found.start < found.stop <= size
        if found.name not in names or found.name in copies or not is_one:
            return [], _UNREADABLE
        copies[found.name] = found
        names += [one for one in found.uses if one not in names]
    missing = [name for name in names if name in namespace and name not in copies]
    return [*copies.values(), *(Copy(name=one, reason=TOO_SLOW) for one in missing)], ""


class _Process:
    """A child that may end, and be reaped by others, at any time."""

    def __init__(self, child: int) -> None:
        self._child, self._descriptor = child, -1
        with suppress(OSError):
            self._descriptor = os.pidfd_open(child)

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        with suppress(ChildProcessError):  # the user may ignore SIGCHLD
            os.waitpid(self._child, 0)
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def kill(self) -> None:
        if self._descriptor >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)


def _read(reports: IO[bytes]) -> bytes:
    poll, content = select.poll(), bytearray()
    poll.register(reports, select.POLLIN)
    deadline = time.monotonic() + _SECONDS + _PATIENCE
    while (left := deadline - time.monotonic()) > 0 and len(content) < _MAX_ANSWER:
        if not poll.poll(1000 * left):
            break
        more = reports.read(2**16)
        if not more:
            break
        content += more
    return bytes(content)


def _be_child(
    names: list[str],
    namespace: Mapping[str, Any],
    file: IO[bytes],
    sink: int,
    limit: int,
    shut_in: Callable[[], bool],
    make_private: Callable[[int], None],
) -> NoReturn:
    """Copy, as a child that must never return into its parent's code."""
    try:
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        gc.disable()  # what it deletes may be the parent's: folders, shared memory
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with suppress(OSError, ValueError, RuntimeError):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, _SECONDS + _PATIENCE / 2)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in 0, 1, 2:
            os.dup2(nothing, stream)
        sys.stdout = sys.stderr = open(1, "w", closefd=False)  # noqa: SIM115
        make_private(limit)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) not in (sink, file.fileno()):
                with suppress(OSError):
                    os.close(int(name))
        space = _address_space() + 2 * limit
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
        if not shut_in():
            _write(sink, "this system cannot shut a forked child in")
            os._exit(1)
        output = Output(file, limit, time.monotonic() + _SECONDS, _memory_of_its_own)
        for copy in copy_names(names, namespace, output, exact=False):
            _write(sink, copy)
    except BaseException as error:
        _write(sink, f"the child that was to make them failed ({describe(error)})")
    finally:
        os._exit(0)


def _write(sink: int, answer: Copy | str) -> None:
    line = _LINE.dump_json(answer) + b"\n"
    while line:
        line = line[os.write(sink, line) :]


def _memory_of_its_own() -> int:
    """Return the bytes that this process no longer shares with its parent: each was a fault."""
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize())


def _free_memory() -> int:
    """Return the bytes of memory that this process may still take, by all known limits."""
    found = [2**60]
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(1024 * int(line.split()[1]))
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            found += () if kinds else _free_in_group(Path("/", path.lstrip("/")))
    with suppress(NameError, OSError, ValueError):
        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        if allowed != resource.RLIM_INFINITY:
            found.append(allowed - _address_space())
    return max(0, min(found))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _free_in_group(group: Path) -> Iterable[int]:
    """Yield what a control group (of version 2) and those above it have left."""
    for one in (group, *group.parents):
        folder = Path("/sys/fs/cgroup") / one.relative_to("/")
        with suppress(OSError, ValueError):  # it has no limit, or is not of this namespace
            limit = int((folder / "memory.max").read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            cache = int(stat.get("inactive_file", 0))
            yield limit - int((folder / "memory.current").read_text()) + cache
