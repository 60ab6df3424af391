"""Run a script under limits and, on Linux, apart from the rest of the system.

This program (POSIX only) is the *supervisor*: a fresh interpreter, as a forked child of the kernel
could deadlock on the kernel's threads. It forks the script's process, counts what that and all its
descendants use, and ends them at a limit, on SIGTERM, and when the kernel dies.

Where Linux allows it, namespaces stand between them. The supervisor's child makes them and forks
*init*, the first process inside, which mounts a private ``/proc`` and the working folder, starts
the script and reaps orphans. Nothing inside outlives init, and init dies with its parent. Where
namespaces are forbidden, the supervisor adopts orphans and ends them itself.

The script's process gives up its rights last (Landlock, capabilities), then becomes Python. What is
in force, how the script ended, and its report go as Python literals, a line each, to an open file
that only these processes have.

Its argument is a literal of the kernel's, too: a dict, whose keys `main` names.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import select
import signal
import stat
import struct
import sys
import time
from contextlib import suppress

# Importing json, typing or socket would take as long as all the rest of the start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Request = dict[str, Any]

_BROKEN = 77  # exit status: namespaces were made, but cannot be used
_REPORT_BYTES = 4_000_000
_POLL_S = 0.05
_UNSTEADY_LOOKS = 20
_ORPHAN_S = 5  # init outlives the supervisor's own wall limit by this
_END_S, _KILL_S = 3.0, 5.0
_MAX_TASKS = 64
_MAX_FORKS = 256  # what the system itself refuses, between two looks at the tasks
_MAX_PID = 350  # the same for an administrator; the least that Linux takes is 301
_NICE, _URGENT = 5, -10  # a flood of processes must not keep anybody from stopping it
_MAX_INODES = 50_000
_MAX_SIBLINGS = 500  # a larger folder that holds a hidden one is hidden as a whole

# Linux: linux/sched.h, linux/mount.h, linux/prctl.h, linux/sockios.h, linux/if.h
_NEW_USER = 0x1000_0000
_NEW_NS, _NEW_IPC, _NEW_PID, _NEW_NET = 0x2_0000, 0x800_0000, 0x2000_0000, 0x4000_0000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE = 1, 2, 4, 8, 0x4000, 0x4_0000
_RECURSIVE, _MOUNT_SETATTR = 0x8000, 442
_DEATH_SIGNAL, _DUMPABLE, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _AMBIENT = 1, 4, 24, 36, 38, 47
_SET_FLAGS, _UP = 0x8914, 1
_INET, _DATAGRAM = 2, 0x8_0002  # closed by exec
# Linux: linux/landlock.h
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ = 0b1101  # execute, read a file, read a folder
_ON_FILES = 1 << 14 | 0b111  # the rights that a file has as well
_SCOPES = 0b11  # abstract sockets, signals

_DEVICES = ("null", "zero", "full", "random", "urandom")
_LIBRARIES = ("/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/proc", "/sbin", "/usr")
_PRIVATE_FOLDERS = ("/dev", "/home", "/root", "/run", "/tmp", "/var/tmp")

_LIBC = ctypes.CDLL(None)


def main() -> None:
    """Run the script as the argument says.

    Its keys: ``script``; ``report``, a file of its folder to pass on; ``results``, the number of
    the open file; ``seconds`` of processor time and ``wall`` seconds; bytes of ``memory``, of one
    ``file`` and of the ``disk``; ``kernel``, the id of the process to be protected; ``hidden``
    (the home first) and ``reads``, the folders that the script must not and must be able to read;
    and ``required``, whether it must not run where a protection is missing.
    """
    request = eval(sys.argv[1], {})
    os.set_inheritable(request["results"], False)
    linux = sys.platform == "linux"
    request["nice"] = os.nice(0)
    with suppress(PermissionError):  # an administrator's right
        os.setpriority(os.PRIO_PROCESS, 0, _URGENT)
    if linux:
        _prctl(_DEATH_SIGNAL, signal.SIGTERM)
        _prctl(_SUBREAPER, 1)
        if os.getppid() != request["kernel"]:
            return
    supervisor = _Supervisor(request)
    if supervisor.run(namespaces=linux) == _BROKEN:
        supervisor.run(namespaces=False)


class _Supervisor:
    """Starts the script's process, counts what it uses, and ends it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._deadline = time.monotonic() + request["wall"]
        self._told = False
        self._seconds = 0.0
        self._tasks = self._looks_over = 0
        self._wake, signalled = os.pipe()
        for end in (self._wake, signalled):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._tell)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _tell(self, *_: Any) -> None:
        self._told = True

    def run(self, *, namespaces: bool) -> int | None:
        """Run the script to its end or a limit; return its exit status, or `_BROKEN`."""
        child = os.fork()
        if child == 0:
            _guarded(_start if namespaces else _become_script, self._request)
        if sys.platform == "linux":
            _prctl(_DUMPABLE, 0)  # the script must not reach the open file by this process
        status, limit = None, None
        while status is None and limit is None and not self._told:
            select.select([self._wake], [], [], _POLL_S)
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)
            status = _reap(child)
            limit = None if status is not None else self._find_limit()
        if status == _BROKEN and namespaces:
            return status
        if status is None and namespaces:
            self._end_init(child)
        clean = _kill_descendants(child, namespaces=namespaces)
        if not namespaces:
            _finish(self._request, -signal.SIGKILL if status is None else status)
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = max(self._seconds, spent.ru_utime + spent.ru_stime)
        _write(self._request, limit=limit, seconds=seconds, clean=clean)
        return status

    def _end_init(self, child: int) -> None:
        """Let init end the script and pass on its report."""
        _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + _END_S
        while _reap(child) is None and time.monotonic() < deadline:
            select.select([self._wake], [], [], _POLL_S)
        _signal(child, signal.SIGKILL)

    def _find_limit(self) -> str | None:
        tasks, seconds, memory = _usage()
        self._seconds = max(self._seconds, seconds)
        if self._seconds >= self._request["seconds"]:
            return "time"
        if tasks > _MAX_TASKS:
            return "processes"
        if self._uses_too_much(memory, tasks):
            return "memory"
        return "wall" if time.monotonic() >= self._deadline else None

    def _uses_too_much(self, memory: int, tasks: int) -> bool:
        """Return whether there is too much memory in use, what processes share counted once."""
        limit = self._request["memory"]
        self._looks_over = self._looks_over + 1 if memory > limit else 0
        steady, self._tasks = tasks == self._tasks, tasks
        # Reading what is shared waits for processes that fork, which a flood of them never ends.
        ready = self._looks_over > (1 if steady else _UNSTEADY_LOOKS)
        return ready and _shared_memory() > limit


def _guarded(function: Any, *arguments: Any) -> None:
    """Call a function in a forked process, which must never return into its parent's code."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        status = function(*arguments)
    except BaseException as error:
        with suppress(BaseException):
            _write(arguments[0], error=f"{type(error).__name__}: {error}")
    finally:
        os._exit(status)


def _write(request: Request, **fields: Any) -> None:
    line = ascii(fields).encode() + b"\n"
    while line:
        line = line[os.write(request["results"], line) :]


def _reap(child: int) -> int | None:
    """Reap what has ended; return the exit status of one child, None while it runs."""
    found = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                found = os.waitstatus_to_exitcode(status)
    return found


def _finish(request: Request, status: int) -> None:
    """Pass on how the script ended, and its report."""
    _write(request, status=status, report=_read_report(request["report"]))


def _read_report(name: str | None) -> str:
    if not name:
        return ""
    # Anything but a plain file (a link, a pipe) was put there by the code, and may block.
    with suppress(OSError):
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(file, "rb") as opened:
            if stat.S_ISREG(os.fstat(file).st_mode):
                return opened.read(_REPORT_BYTES).decode(errors="replace")
    return ""


# What the script and its descendants use.


def _usage() -> tuple[int, float, int]:
    """Return the tasks of all descendants, their processor seconds, and bytes of memory.

    Where there are too many, not all are counted: that would take too long.
    """
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    tasks, seconds, pages = 0, spent.ru_utime + spent.ru_stime, 0
    for pid in _descendants(at_most=_MAX_TASKS + 2):
        with suppress(OSError, ValueError, IndexError):
            fields = _stat(pid)
            # With those of its own children that it has waited for.
            seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            tasks += int(fields[17])
            pages += int(fields[21])
        if tasks > _MAX_TASKS:
            break
    return tasks, seconds, pages * resource.getpagesize()


def _shared_memory() -> int:
    """Return the bytes of memory of all descendants, where what they share counts once."""
    kilobytes = 0
    for pid in _descendants():
        with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
            kilobytes += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return kilobytes * 1024


def _descendants(at_most: int | None = None) -> list[int]:
    """Return the ids of this process's descendants, parents first; none outside Linux.

    Args:
        at_most: how many are enough.
    """
    found = [os.getpid()]
    try:
        for pid in found:
            found += _children(pid)
            if at_most is not None and len(found) > at_most:
                break
    except FileNotFoundError:  # a kernel that does not list children
        found = _descendants_by_parent()
    return found[1:]


def _children(pid: int) -> list[int]:
    children = list[int]()
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended
        return []
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())
        except FileNotFoundError:
            if pid == os.getpid():
                raise
        except OSError:
            continue
    return children


def _descendants_by_parent() -> list[int]:
    children = dict[int, list[int]]()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
    waiting = [os.getpid()]
    for pid in waiting:
        waiting += children.get(pid, [])
    return waiting


def _stat(pid: int) -> list[str]:
    """Return the fields of a process's ``stat`` from its state on."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def _kill_descendants(child: int, *, namespaces: bool) -> bool:
    """Kill and reap all descendants; return whether none is left."""
    start = time.monotonic()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # at one stroke, however fast they fork
    while (elapsed := time.monotonic() - start) < _KILL_S:
        # The end of a namespace kills what is in it, faster than this could find it.
        for pid in _descendants() if not namespaces or elapsed > _KILL_S / 2 else []:
            _signal(pid, signal.SIGKILL)
        try:
            ended = os.waitpid(-1, os.WNOHANG)[0]
        except ChildProcessError:
            return True
        time.sleep(0 if ended else 0.001)
    return False


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


# The script's process and, with namespaces, init.


def _start(request: Request) -> int:
    """Make namespaces, start init in them, and wait for it; return `_BROKEN` where forbidden."""
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    own_user = _make_namespaces()
    if own_user is None:
        return _BROKEN
    init = os.fork()
    if init == 0:
        _guarded(_run_init, request, own_user)
    signal.signal(signal.SIGTERM, lambda *_: _signal(init, signal.SIGTERM))
    return _BROKEN if os.waitstatus_to_exitcode(os.waitpid(init, 0)[1]) == _BROKEN else 0


def _make_namespaces() -> bool | None:
    """Enter new namespaces; return whether the user's is new too, or None where forbidden."""
    apart = _NEW_NS | _NEW_IPC | _NEW_PID | _NEW_NET
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEW_USER | apart) != 0:
        # An administrator needs no user namespace.
        return False if user == 0 and _LIBC.unshare(apart) == 0 else None
    try:
        _write_file("/proc/self/setgroups", "deny")
        _write_file("/proc/self/uid_map", f"{user} {user} 1")
        _write_file("/proc/self/gid_map", f"{group} {group} 1")
    except OSError:  # Ubuntu allows the namespace, but gives no rights in it
        return None
    return True


def _write_file(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _run_init(request: Request, own_user: bool) -> int:
    """Set the namespaces up, start the script, reap, and pass on how it ended."""
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    # The first process of a namespace ignores signals that it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: _signal(-1, signal.SIGKILL))
    signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
    signal.alarm(int(request["wall"]) + _ORPHAN_S)
    with suppress(OSError):
        fcntl.ioctl(
            _LIBC.socket(_INET, _DATAGRAM, 0), _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP)
        )
    try:
        protection = {"network": True, "processes": True, **_mount(request, own_user=own_user)}
    except OSError:
        return _BROKEN
    _prctl(_DUMPABLE, 0)  # the script must not reach this process's open file
    script = os.fork()
    if script == 0:
        _guarded(_become_script, request, protection)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == script:
            _finish(request, os.waitstatus_to_exitcode(status))
            return 0


def _mount(request: Request, *, own_user: bool) -> dict[str, bool]:
    """Mount what is the script's own, the rest read-only; return the protections this gives.

    Raises:
        OSError: the mounts cannot be separated from the system's, or not used.
    """
    folder = os.path.dirname(request["script"])
    files = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    if not _mount_at("/", None, _REC | _PRIVATE):
        raise OSError("the mounts cannot be made private")
    private_proc = _mount_at("/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    if private_proc and own_user:
        # So that the script cannot get rights in a user namespace of its own.
        with suppress(OSError):
            _write_file("/proc/sys/user/max_user_namespaces", "0")
    if private_proc and _kernel_version() >= (6, 14):  # before, it is the whole system's
        with suppress(OSError):
            _write_file("/proc/sys/kernel/pid_max", str(_MAX_PID))
    read_only = _set_read_only("/", _RECURSIVE)
    covers = [
        path
        for path in ("/run", "/tmp")
        if read_only and not any(_is_inside(one, path) for one in _needed(request))
    ]
    for path in covers:  # they hold the sockets of other programs
        _mount_at(path, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    disk = f"size={request['disk']},nr_inodes={_MAX_INODES}"
    if covers:
        os.makedirs(folder, exist_ok=True)
    own_folder = _mount_at(folder, "tmpfs", _NOSUID | _NODEV, f"{disk},mode=700")
    if own_folder:
        os.chdir(folder)
        for name in os.listdir(files):
            with open(os.open(name, os.O_RDONLY, dir_fd=files), "rb") as file:
                content = file.read()
            with open(name, "wb") as file:
                file.write(content)
    elif read_only:
        raise OSError("the folder cannot be mounted")
    own_memory = not os.path.isdir("/dev/shm") or _mount_at(
        "/dev/shm", "tmpfs", _NOSUID | _NODEV, f"{disk},mode=1777"
    )
    for path in covers:
        _set_read_only(path, 0)
    os.close(files)
    return {"keys": private_proc, "disk": own_folder and own_memory and read_only}


def _mount_at(path: str, kind: str | None, flags: int, options: str | None = None) -> bool:
    """Mount a file system; return whether that worked."""
    name = kind.encode() if kind else None
    data = options.encode() if options else None
    mount = _LIBC.mount
    return int(mount(name, path.encode(), name, ctypes.c_ulong(flags), data)) == 0


def _set_read_only(path: str, flags: int) -> bool:
    attributes = struct.pack("4Q", _RDONLY | _NOSUID, 0, 0, 0)
    here = -100  # AT_FDCWD
    return _syscall(_MOUNT_SETATTR, here, path.encode(), flags, attributes, len(attributes)) == 0


def _become_script(request: Request, protection: Mapping[str, bool] = {}) -> int:
    """Give up all rights that the script does not need, then become Python running it."""
    os.setsid()
    in_force = dict.fromkeys(("network", "keys", "files", "processes", "memory", "disk"), False)
    in_force |= protection
    seconds = int(-(-request["seconds"] // 1))
    if sys.platform == "linux":
        seconds += 1  # the supervisor counts all processes; this is for the case that it cannot
        _prctl(_NO_NEW_PRIVS, 1)
        _limit_tasks(apart=in_force["processes"])
        in_force["memory"] = os.path.exists(f"/proc/{request['kernel']}/stat") or bool(protection)
        in_force["files"], holds_signals = _restrict_files(request)
        in_force["processes"] |= holds_signals
        _drop_capabilities()
        in_force["keys"] |= not _can_read_environment(request["kernel"])
    _limit(resource.RLIMIT_CPU, seconds, 1)
    _limit(resource.RLIMIT_AS, request["memory"])
    _limit(resource.RLIMIT_FSIZE, request["file"])
    _limit(resource.RLIMIT_CORE, 0)
    os.setpriority(os.PRIO_PROCESS, 0, min(19, request["nice"] + _NICE))
    refused = request["required"] and not all(in_force.values())
    _write(request, protection=in_force, refused=refused)
    if not refused:
        os.execv(sys.executable, [sys.executable, "-I", "-X", "utf8", request["script"]])
    return 1


def _limit(resource_id: int, value: int, margin: int = 0) -> None:
    hard = resource.getrlimit(resource_id)[1]
    if hard != resource.RLIM_INFINITY:
        value, margin = min(value, hard), min(margin, hard - min(value, hard))
    try:
        resource.setrlimit(resource_id, (value, value + margin))
    except (OSError, ValueError):
        # macOS names some limits that it does not have; the others still hold.
        return


def _limit_tasks(*, apart: bool) -> None:
    """Let the system refuse a flood of tasks; it exempts an administrator."""
    if apart and _kernel_version() < (5, 14):  # it counts beyond the namespace
        return
    _limit(resource.RLIMIT_NPROC, _MAX_FORKS + (0 if apart else _count_own_tasks()))


def _kernel_version() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())


def _count_own_tasks() -> int:
    count = 0
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError, IndexError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += int(_stat(int(name))[17])
    return count


def _drop_capabilities() -> None:
    for capability in range(64):
        _prctl(_CAPBSET_DROP, capability)
    _prctl(_AMBIENT, 4)  # clear all
    version_3 = struct.pack("Ii", 0x2008_0522, 0)
    if _LIBC.capset(version_3, bytes(24)) != 0:
        raise OSError("the capabilities cannot be dropped")


def _can_read_environment(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            file.read(1)
    except OSError:
        return False
    return True


# Landlock: which files the script may read and write.


def _restrict_files(request: Request) -> tuple[bool, bool]:
    """Return whether the home folder is hidden now, and whether signals are held back."""
    version = _syscall(_CREATE_RULESET, None, 0, 1)
    scopes = _SCOPES if version >= 6 else 0
    rights = (1 << (12 + min(version, 3))) - 1 if version >= 1 else 0
    attributes = struct.pack("3Q", rights, 0, scopes)
    rules = _syscall(_CREATE_RULESET, attributes, 24 if scopes else 8, 0)
    if rules < 0:
        return False, False
    hidden, needed = _hidden(request), _needed(request)
    for path in (*_readable("/", hidden), *needed):
        _allow(rules, path, _READ)
    for device in _DEVICES:
        _allow(rules, f"/dev/{device}", _READ | 0b10)
    for path in (os.path.dirname(request["script"]), "/dev/shm"):
        _allow(rules, path, rights)
    worked = _syscall(_RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    home = os.path.realpath(request["hidden"][0])
    closed = any(_is_inside(home, path) for path in hidden)
    opened = any(_is_inside(home, path) for path in needed)
    return worked and closed and not opened, worked and bool(scopes)


def _hidden(request: Request) -> list[str]:
    """Return the folders to hide: those without which Python would not run are left out."""
    paths = {os.path.realpath(path) for path in (*_PRIVATE_FOLDERS, *request["hidden"])}
    libraries = {*_LIBRARIES, *map(os.path.realpath, _LIBRARIES)}
    return [
        path
        for path in paths
        if not any(_is_inside(path, one) or _is_inside(one, path) for one in libraries)
    ]


def _needed(request: Request) -> list[str]:
    """Return the folders that Python's modules are in, and what the script needs besides."""
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, *request["reads"]]
    program = sys.executable
    while program:  # a link may lead to another link
        paths.append(os.path.dirname(program))
        link = os.readlink(program) if os.path.islink(program) else ""
        program = os.path.join(os.path.dirname(program), link) if link else ""
    for finder in sys.meta_path:  # of packages installed to be edited
        module = sys.modules.get(getattr(finder, "__module__", "") or "")
        mapping = getattr(module, "MAPPING", None)
        paths += mapping.values() if isinstance(mapping, dict) else []
    real = {os.path.realpath(path) for path in paths if path}
    return sorted(path for path in real if os.path.exists(path))


def _readable(path: str, hidden: list[str]) -> list[str]:
    """Return the folders and files to which a folder comes down without the hidden ones."""
    if any(_is_inside(path, one) for one in hidden):
        return []
    if not any(_is_inside(one, path) for one in hidden):
        return [path]
    found = list[str]()
    with suppress(OSError), os.scandir(path) as entries:
        listed = [entry.path for entry in entries if not entry.is_symlink()]
        for inner in listed if len(listed) <= _MAX_SIBLINGS else []:
            found += _readable(inner, hidden)
    return found


def _allow(rules: int, path: str, rights: int) -> None:
    with suppress(OSError):
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not stat.S_ISDIR(os.fstat(file).st_mode):
            rights &= _ON_FILES
        _syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", rights, file), 0)
        os.close(file)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero)


def _syscall(number: int, *arguments: Any) -> int:
    """Make a system call; return -1 where it fails."""
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result: int = _LIBC.syscall(ctypes.c_long(number), *passed)
    return result


if __name__ == "__main__":
    main()
