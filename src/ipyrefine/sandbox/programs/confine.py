"""Run a script under limits and, on Linux, apart from the rest of the system.

This program (POSIX only) is the *supervisor*: a fresh interpreter, as a forked child of the kernel
could deadlock on the kernel's threads. It forks the script's process, counts what that and all its
descendants use, and ends them at a limit, on SIGTERM, and when the kernel dies.

Where Linux allows it, a child makes namespaces, and its child is the supervisor and their init: it
mounts a private ``/proc`` and the working folder, and nothing inside outlives it. Elsewhere this
process supervises: it adopts orphans and ends them itself. The script's process gives up its rights
last (Landlock, capabilities, system calls but those listed here), then becomes Python.

What is in force, how the script ended, and its report go as Python literals, a line each, to an
open file that only these processes have. The argument is a literal, too: a dict, see `main`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import signal
import stat
import struct
import sys
import time
from contextlib import suppress

# Importing json, typing or socket would take as long as all the rest of the start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ipyrefine.sandbox.programs import overlay

    Request = dict[str, Any]

_REPORT_BYTES = 4_000_000
_POLL_S, _KILL_S = 0.05, 5.0
_MAX_TASKS = 64
_MAX_FORKS = 256  # what the system itself refuses, between two looks at the tasks
_MAX_INODES = 50_000
_NICE = 5
_NO_NAMESPACES = 3  # the exit status of a process that cannot make them

# Linux: linux/sched.h, mount.h, prctl.h, sockios.h, if.h, landlock.h
_NEW_USER = 0x1000_0000
_APART = 0x2_0000 | 0x800_0000 | 0x2000_0000 | 0x4000_0000  # mounts, IPC, processes, network
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE = 1, 2, 4, 8, 0x4000, 0x4_0000
_BOUND, _DETACH = (None, ctypes.c_ulong(0x1000), None), 2
_RECURSIVE, _MOUNT_SETATTR, _HERE = 0x8000, 442, -100
_NONBLOCK, _OPENED = 0x8_0800, 0x20  # of inotify; the first is closed by exec
_DEATH_SIGNAL, _DUMPABLE, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS = 1, 4, 24, 36, 38
_SET_SECCOMP, _FILTER = 22, 2
_SET_FLAGS, _UP = 0x8914, 1
_INET, _DATAGRAM = 2, 0x8_0002  # closed by exec
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ, _LIST = 0b1101, 0b1000  # execute, read a file, read a folder; the last alone
_EVERY = (1 << 15) - 1  # what is not known to the system does not count
_ON_FILES = 1 << 14 | 0b111  # the rights that a file has as well
_SCOPES = 0b11  # abstract sockets, signals

# The calls that a process may make: name, number on x86-64, on ARM. Another gets EPERM, a newer one
# ENOSYS. A call that is missing here fails in a library of tomorrow; one too
# many is a way out. What reads of others is free, as are memory, files that are open or can be
# opened (Landlock's business), time, and threads.
_CALLS = """
arch_prctl 158 -, brk 12 214, cachestat 451 451, get_mempolicy 239 236, madvise 28 233,
map_shadow_stack 453 453, mbind 237 235, membarrier 324 283, mincore 27 232, mlock 149 228,
mlock2 325 284, mmap 9 222, mprotect 10 226, mremap 25 216, mseal 462 462, msync 26 227,
munlock 150 229, munmap 11 215, pkey_alloc 330 289, pkey_free 331 290, pkey_mprotect 329 288,
set_mempolicy 238 237, set_mempolicy_home_node 450 450,
access 21 -, chdir 80 49, close 3 57, close_range 436 436, dup 32 23, dup2 33 -, dup3 292 24,
faccessat 269 48, faccessat2 439 439, fadvise64 221 223, fallocate 285 47, fchdir 81 50,
fcntl 72 25, fdatasync 75 83, fgetxattr 193 10, flistxattr 196 13, flock 73 32, fstat 5 80,
fstatfs 138 44, fsync 74 82, ftruncate 77 46, getcwd 79 17, getdents 78 -, getdents64 217 61,
getxattr 191 8, ioctl 16 29, lgetxattr 192 9, listxattr 194 11, llistxattr 195 12, lseek 8 62,
lstat 6 -, newfstatat 262 79, open 2 -, openat 257 56, openat2 437 437, pread64 17 67,
preadv 295 69, preadv2 327 286, pwrite64 18 68, pwritev 296 70, pwritev2 328 287, read 0 63,
readahead 187 213, readlink 89 -, readlinkat 267 78, readv 19 65, sendfile 40 71, stat 4 -,
statfs 137 43, statx 332 291, sync_file_range 277 84, umask 95 166, write 1 64, writev 20 66,
epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_pwait 281 22,
epoll_pwait2 441 441, epoll_wait 232 -, eventfd 284 -, eventfd2 290 19, pipe 22 -, pipe2 293 59,
poll 7 -, ppoll 271 73, pselect6 270 72, select 23 -,
alarm 37 -, clock_getres 229 114, clock_gettime 228 113, clock_nanosleep 230 115,
getitimer 36 102, gettimeofday 96 169, nanosleep 35 101, setitimer 38 103, time 201 -,
timer_create 222 107, timer_delete 226 111, timer_getoverrun 225 109, timer_gettime 224 108,
timer_settime 223 110, timerfd_create 283 85, timerfd_gettime 287 87, timerfd_settime 286 86,
times 100 153,
clone 56 220, exit 60 93, exit_group 231 94, futex 202 98, futex_requeue 456 456,
futex_wait 455 455, futex_waitv 449 449, futex_wake 454 454, pause 34 -, prctl 157 167,
restart_syscall 219 128, rseq 334 293, rt_sigaction 13 134, rt_sigpending 127 136,
rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigsuspend 130 133, rt_sigtimedwait 128 137,
sched_yield 24 124, set_robust_list 273 99, set_tid_address 218 96, sigaltstack 131 132,
wait4 61 260, waitid 247 95,
capget 125 90, getcpu 309 168, getegid 108 177, geteuid 107 175, getgid 104 176,
getgroups 115 158, getpgid 121 155, getpgrp 111 -, getpid 39 172, getppid 110 173,
getpriority 140 141, getrandom 318 278, getresgid 120 150, getresuid 118 148, getrlimit 97 163,
getrusage 98 165, getsid 124 156, gettid 186 178, getuid 102 174, ioprio_get 252 31,
prlimit64 302 261, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
sched_getaffinity 204 123, sched_getattr 315 275, sched_getparam 143 121,
sched_getscheduler 145 120, sched_rr_get_interval 148 127, sysinfo 99 179, uname 63 160,
"""
# What a process that only pickles has no use for: to change files by their names, to run programs,
# to set what the system gives itself, to talk.
_MORE_CALLS = """
chmod 90 -, chown 92 -, copy_file_range 326 285, creat 85 -, fchmod 91 52, fchmodat 268 53,
fchmodat2 452 452, fchown 93 55, fchownat 260 54, fremovexattr 199 16, fsetxattr 190 7,
futimesat 261 -, inotify_add_watch 254 27, inotify_init 253 -, inotify_init1 294 26,
inotify_rm_watch 255 28, lchown 94 -, link 86 -, linkat 265 37, lremovexattr 198 15,
lsetxattr 189 6, mkdir 83 -, mkdirat 258 34, mknod 133 -, mknodat 259 33, removexattr 197 14,
rename 82 -, renameat 264 38, renameat2 316 276, rmdir 84 -, setxattr 188 5, splice 275 76,
symlink 88 -, symlinkat 266 36, syncfs 306 267, tee 276 77, truncate 76 45, unlink 87 -,
unlinkat 263 35, utime 132 -, utimensat 280 88, utimes 235 -, vmsplice 278 75,
execve 59 221, execveat 322 281, fork 57 -, ioprio_set 251 30, pidfd_open 434 434,
sched_setaffinity 203 122, sched_setattr 314 274, sched_setparam 142 118,
sched_setscheduler 144 119, setpgid 109 154, setpriority 141 140, setrlimit 160 164,
setsid 112 157, signalfd 282 -, signalfd4 289 74, vfork 58 -,
accept 43 202, accept4 288 242, bind 49 200, connect 42 203, getpeername 52 205,
getsockname 51 204, getsockopt 55 209, listen 50 201, recvfrom 45 207, recvmmsg 299 243,
recvmsg 47 212, sendmmsg 307 269, sendmsg 46 211, sendto 44 206, setsockopt 54 208,
shutdown 48 210, socket 41 198, socketpair 53 199,
kill 62 129, pidfd_send_signal 424 424, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240,
tgkill 234 131, tkill 200 130,
"""
# Neither here nor there: memory that no limit counts (memfd_create, System V), keyrings, other
# processes (ptrace, process_vm_readv, kcmp, pidfd_getfd), namespaces and mounts, the kernel's own
# machines (bpf, io_uring_setup, perf_event_open, userfaultfd).
_CLONE3 = 435  # its flags cannot be seen; threads need ENOSYS to be made by `clone` instead
_NEWER = 463  # than the calls of Linux 6.10, which libraries do without if they get ENOSYS

# Call, place of an argument, the values that it may have; the kernel reads the low half of each.
# A process limits and schedules itself alone, as 0: its own number may be another's after a fork.
# setpriority and ioprio_set: a process, not a group or a user. fcntl and ioctl read what files,
# terminals and interfaces are like; they make no owner, who gets signals, take no lease, for which
# others wait, and type into no terminal. prctl: its own names, limits and state, but no filter.
# Sockets: UNIX, INET, INET6, NETLINK.
_ARGUMENTS = """\
prlimit64 0 0
sched_setaffinity 0 0
sched_setattr 0 0
sched_setparam 0 0
sched_setscheduler 0 0
setpriority 0 0
setpriority 1 0
ioprio_set 0 1
ioprio_set 1 0
fcntl 1 0 1 2 3 4 5 6 7 9 11 16 36 37 38 1027 1028 1030 1031 1032 1033 1034 1035 1036 1037 1038
ioctl 1 0x5401 0x540f 0x5411 0x5413 0x541b 0x5421 0x5450 0x5451 0x5460 0x8906 0x8910 0x8912 0x8913 \
 0x8915 0x8917 0x8919 0x891b 0x8921 0x8927 0x8933 0x40049409 0x4020940d 0x80086601 0x802c542a
prctl 0 1 2 3 4 15 16 21 23 27 29 30 36 37 38 39 40 41 42 51 56 64 0x53564d41 0x41555856
socket 0 1 2 10 16
socketpair 0 1 2 10 16
"""
_OFFLINE = "socket 0 1\n"  # where there is no network of its own: those of files
# Where nothing else holds signals back, a script reaches its group, and its first process itself;
# whose child a number is, no filter knows.
_TO_ITSELF = """\
kill 0 0 {0} -{0}
tgkill 0 {0}
pidfd_send_signal 0
rt_sigqueueinfo 0
rt_tgsigqueueinfo 0
tkill 0
"""
_MACHINES = {"x86_64": (0xC000_003E, 1), "aarch64": (0xC000_00B7, 2)}  # linux/audit.h; the column
_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
_ALLOW, _REFUSE = 0x7FFF_0000, 0x0005_0000  # linux/seccomp.h
# What is answered as done and does nothing, where links lead to files of the user: a folder that is
# written to gives no right to these, and Landlock has none.
_IDLE_CALLS = """
chmod chown fchmod fchmodat fchmodat2 fchown fchownat lchown fremovexattr fsetxattr lremovexattr
lsetxattr removexattr setxattr futimesat utime utimensat utimes
"""
# What `clone` may make: nothing with a namespace of its own; only threads.
_NO_NAMESPACE, _THREADS = (_HAS, 0, 1, 0x7E02_0000), (_HAS, 1, 0, 0x1_0000)

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_LIBRARIES = (
    "/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/proc", "/sbin", "/sys", "/usr",
    "/var/cache/fontconfig",
)  # fmt: skip
_PROTECTIONS = ("network", "keys", "files", "processes", "memory", "disk")

_LIBC = ctypes.CDLL(None)


def main() -> None:
    """Run the script as the argument says.

    Its keys: ``script``; ``report``, a file of its folder to pass on; ``results``, the number of
    the open file; ``seconds`` of processor time and ``wall`` seconds; bytes of ``output``,
    ``memory``, one ``file`` and the ``disk``; ``kernel``, the id of the process to be protected;
    ``home``; ``reads``, the folders that the script must be able to read; and ``required``, whether
    it must not run where a protection is missing.
    """
    request = eval(sys.argv[1], {})
    request["plan"] = overlay.read_plan(os.path.dirname(request["script"]))
    os.set_inheritable(request["results"], False)
    for number in (signal.SIGCHLD, signal.SIGXCPU):  # whoever ignores one hands that down
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    linux = sys.platform == "linux"
    if linux:
        _prctl(_SUBREAPER, 1)
        _prctl(_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() == request["kernel"] and not (linux and _run_in_namespaces(request)):
        _supervise(request, {})


def _in_child(function: Any, *arguments: Any) -> None:
    """Call a function in a forked process, which must never return into its parent's code."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        function(*arguments)
    except BaseException as error:
        with suppress(BaseException):
            _write(arguments[0], error=f"{type(error).__name__}: {error}")
    finally:
        os._exit(1)


def _write(request: Request, **fields: Any) -> None:
    line = ascii(fields).encode() + b"\n"
    while line:
        line = line[os.write(request["results"], line) :]


def _supervise(request: Request, protection: dict[str, bool]) -> None:
    """Run the script to its end or a limit, end all that it started, and pass on the results."""
    plan, status, limit = request["plan"], None, ""
    if plan:
        _show_folder(request)
    deadline, seconds = time.monotonic() + request["wall"], 0.0
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    script = os.fork()
    if script == 0:
        _in_child(_become_script, request, protection)
    try:
        if sys.platform == "linux":
            _prctl(_DUMPABLE, 0)  # the script must not reach the open file by this process
        while status is None and not limit:
            if sys.platform == "linux":
                signal.sigtimedwait([signal.SIGCHLD], _POLL_S)
            else:
                time.sleep(_POLL_S)
            if max(os.fstat(1).st_size, os.fstat(2).st_size) > request["output"]:
                limit = "output"
            if (status := _reap(script)) is not None or limit:
                break
            tasks, used, memory = _usage()
            seconds = max(seconds, used)
            if seconds >= request["seconds"]:
                limit = "time"
            elif tasks > _MAX_TASKS:
                limit = "processes"
            # Processes share memory after a fork; what they share is slow to tell.
            elif memory > request["memory"] and _shared_memory(protection) > request["memory"]:
                limit = "memory"
            elif time.monotonic() >= deadline:
                limit = "wall"
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_all(script, namespaces=bool(protection))
        status = -signal.SIGKILL if status is None else status
        limit = "time" if status == -signal.SIGXCPU else limit
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = max(seconds, spent.ru_utime + spent.ru_stime)
        report = _read_report(request["report"])
        found = {"status": status, "limit": limit, "seconds": seconds, "report": report}
        if plan:
            found["files"] = overlay.changes(plan)
            with suppress(OSError):  # nothing was opened, or nothing can tell
                found["opened"] = bool(os.read(plan["watch"], 4096))
        _write(request, **found)


def _reap(child: int) -> int | None:
    """Reap what has ended; return the exit status of one child, None while it runs."""
    found = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                found = os.waitstatus_to_exitcode(ended[1])
    return found


def _end_all(script: int, *, namespaces: bool) -> None:
    deadline = time.monotonic() + _KILL_S
    while time.monotonic() < deadline:
        # At one stroke, however fast they fork: the namespace, or else the script's group.
        _signal((-1,) if namespaces else (-script, *_descendants()), signal.SIGKILL)
        with suppress(InterruptedError):
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
        time.sleep(0.001)


def _read_report(name: str | None) -> str:
    # Anything but a plain file (a link, a pipe) was put there by the code, and may block.
    with suppress(OSError, TypeError):
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # type: ignore[arg-type]
        with open(file, "rb") as opened:
            if stat.S_ISREG(os.fstat(file).st_mode):
                return opened.read(_REPORT_BYTES).decode(errors="replace")
    return ""


# The notebook's folder


def _show_folder(request: Request) -> None:
    """Have the notebook's folder in place for the script."""
    plan = request["plan"]
    if there := overlay.show(plan, os.path.dirname(request["script"])):
        plan["watch"] = _watch(there)


def _watch(paths: list[str]) -> int:
    """Return what tells whether something was opened; it cannot be where there is no such thing."""
    watch = _LIBC.inotify_init1(_NONBLOCK) if sys.platform == "linux" else -1
    for path in paths:
        if watch < 0 or _LIBC.inotify_add_watch(watch, os.fsencode(path), _OPENED) < 0:
            os.chmod(path, 0)
    return int(watch)


def _mount_folder(request: Request, root: int, mode: int, folder: str, disk: str) -> None:
    """Lay an overlay over the notebook's folder; where that cannot be, the script gets copies.

    `root` is that folder, and nothing else is mounted in it; in `folder` mounts are made meanwhile.
    """
    plan, place = request["plan"], request["plan"]["root"]
    upper, work, tree = (os.path.join(folder, name) for name in ("upper", "work", "tree"))
    if not _mount_at(folder, "tmpfs", _NOSUID | _NODEV, f"{disk},mode=755"):
        return
    for path in (upper, work, tree):
        os.mkdir(path)
    os.chmod(upper, mode)
    layer = os.open(upper, os.O_RDONLY)
    os.makedirs(place, exist_ok=True)  # it may be covered
    os.fchdir(root)
    options = f"lowerdir=.,upperdir={upper},workdir={work},userxattr"
    if _mount_at(place, "overlay", _NOSUID | _NODEV, options):
        watch = _watch(overlay.stand_in(plan, tree))
        if all(
            _LIBC.mount(*(os.fsencode(os.path.join(one, path)) for one in (tree, place)), *_BOUND)
            == 0
            for path in overlay.closed_tops(plan)
        ):
            fds = {"old": f"/proc/self/fd/{root}", "layer": f"/proc/self/fd/{layer}"}
            plan |= {"place": place, "watch": watch, **fds}
        else:
            _LIBC.umount2(os.fsencode(place), _DETACH)
    os.chdir("/")
    _LIBC.umount2(os.fsencode(folder), _DETACH)  # what was mounted from it keeps it


def _holds_mounts(folder: str) -> bool:
    with open("/proc/self/mountinfo") as file:
        places = [line.split()[4].replace(r"\040", " ") for line in file]
    return any(_is_inside(one, folder) and one != folder for one in places)


# What the script and its descendants use.


def _usage() -> tuple[int, float, int]:
    """Return the tasks of all descendants, their processor seconds, and bytes of memory."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    tasks, seconds, pages = 0, spent.ru_utime + spent.ru_stime, 0
    for pid in _descendants():
        if tasks > _MAX_TASKS:  # enough, and counting all would take too long
            break
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()  # from its state on
            # With those of its own children that it has waited for.
            seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            tasks += int(fields[17])
            pages += int(fields[21])
    return tasks, seconds, pages * resource.getpagesize()


def _shared_memory(protection: dict[str, bool]) -> int:
    """Return the bytes of memory of all descendants, where what they share counts once.

    They wait meanwhile: there is no counting those that go on forking.
    """
    kilobytes, pids = 0, [pid for pid, _ in zip(_descendants(), range(_MAX_TASKS), strict=False)]
    everybody = [-1] if protection else pids
    _signal(everybody, signal.SIGSTOP)
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
            kilobytes += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    _signal(everybody, signal.SIGCONT)
    return kilobytes * 1024


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _descendants() -> Iterator[int]:
    """Yield the ids of this process's descendants, parents first; none outside Linux."""
    found = [os.getpid()]
    for pid in found:
        with suppress(OSError):  # it has ended
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    children = [*map(int, file.read().split())]
                found += children
                yield from children


# Namespaces and their init.


def _run_in_namespaces(request: Request) -> bool:
    """Run the script in namespaces; return False where there are none, and nothing was run."""
    child = os.fork()
    if child == 0:
        _in_child(_make_namespaces, request)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != _NO_NAMESPACES
    finally:
        _end_all(child, namespaces=False)


def _make_namespaces(request: Request) -> None:
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    user, group = os.getuid(), os.getgid()
    own_user = _LIBC.unshare(_NEW_USER | _APART) == 0
    # An administrator needs no user namespace.
    if not own_user and _LIBC.unshare(_APART) != 0:
        os._exit(_NO_NAMESPACES)
    if own_user:
        try:
            _write_file("/proc/self/setgroups", "deny")
            _write_file("/proc/self/uid_map", f"{user} {user} 1")
            _write_file("/proc/self/gid_map", f"{group} {group} 1")
        except OSError:  # Ubuntu allows the namespace, but gives no rights in it
            os._exit(_NO_NAMESPACES)
    init = os.fork()
    if init == 0:
        _in_child(_run_init, request, own_user)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(init, 0)[1]) & 0xFF)


def _run_init(request: Request, own_user: bool) -> None:
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    with suppress(OSError):
        loopback = struct.pack("16sH14x", b"lo", _UP)
        fcntl.ioctl(_LIBC.socket(_INET, _DATAGRAM, 0), _SET_FLAGS, loopback)
    try:
        protection = {"network": True, "processes": True, **_mount(request, own_user=own_user)}
    except OSError:
        os._exit(_NO_NAMESPACES)
    _supervise(request, protection)


def _mount(request: Request, *, own_user: bool) -> dict[str, bool]:
    """Mount what is the script's own, the rest read-only; return the protections this gives.

    Raises:
        OSError: the mounts cannot be separated from the system's, or not used.
    """
    folder, root = os.path.dirname(request["script"]), request["plan"].get("root")
    content = os.open(folder, os.O_RDONLY)  # which the mount covers
    shown = os.open(root, os.O_RDONLY) if root else -1
    mode = overlay.mode_of(root) if root else 0
    if not _mount_at("/", None, _REC | _PRIVATE):
        raise OSError("the mounts cannot be made private")
    with suppress(OSError):
        # The script gets no rights in a user namespace of its own.
        if _mount_at("/proc", "proc", _NOSUID | _NODEV | _NOEXEC) and own_user:
            _write_file("/proc/sys/user/max_user_namespaces", "0")
    if root and (_holds_mounts(root) or not os.path.exists("/proc/self/fd")):
        root = None
    read_only = _set_read_only("/", _RECURSIVE)
    needed = _needed(request)
    covers = [  # they hold the sockets of other programs
        path
        for path in ("/run", "/tmp")
        if read_only and not any(_is_inside(one, path) for one in needed)
    ]
    for path in covers:
        _mount_at(path, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    if covers:
        os.makedirs(folder, exist_ok=True)
    disk = f"size={request['disk']},nr_inodes={_MAX_INODES}"
    if root and read_only:
        _mount_folder(request, shown, mode, folder, disk)
    own_folder = _mount_at(folder, "tmpfs", _NOSUID | _NODEV, f"{disk},mode=700")
    if own_folder:
        os.chdir(folder)
        for path, below, names, there in os.fwalk(dir_fd=content):
            for name in below:
                os.mkdir(os.path.join(path, name))
            for name in names:
                with (
                    open(os.open(name, os.O_RDONLY, dir_fd=there), "rb") as file,
                    open(os.path.join(path, name), "wb") as copy,
                ):
                    copy.write(file.read())
    elif read_only:
        raise OSError("the folder cannot be mounted")
    if os.path.isdir("/dev/shm") and not _mount_at(
        "/dev/shm", "tmpfs", _NOSUID | _NODEV, f"{disk},mode=1777"
    ):
        raise OSError("the shared memory cannot be mounted")
    for path in covers:
        _set_read_only(path, 0)
    return {"disk": own_folder and read_only}


def _mount_at(path: str, kind: str | None, flags: int, options: str | None = None) -> bool:
    name, data = (text.encode() if text else None for text in (kind, options))
    return int(_LIBC.mount(name, path.encode(), name, ctypes.c_ulong(flags), data)) == 0


def _set_read_only(path: str, flags: int) -> bool:
    attributes = struct.pack("4Q", _RDONLY | _NOSUID, 0, 0, 0)
    return _syscall(_MOUNT_SETATTR, _HERE, path.encode(), flags, attributes, len(attributes)) == 0


def _write_file(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


# The script's process.


def _become_script(request: Request, protection: dict[str, bool]) -> None:
    """Give up all rights that the script does not need, then become Python running it."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    in_force = dict.fromkeys(_PROTECTIONS, False) | protection
    if sys.platform == "linux":
        counted = os.path.exists("/proc/thread-self/children")
        with open("/proc/loadavg") as file:  # it has the tasks of the whole system
            others = int(file.read().split()[3].partition("/")[2])
        _limit(resource.RLIMIT_NPROC, _MAX_FORKS + others)
        _prctl(_NO_NEW_PRIVS, 1)
        readable, home = _readable(request), os.path.realpath(request["home"])
        writable = [os.path.dirname(request["script"]), *["/dev/shm"] * bool(protection)]
        in_force["files"] = not any(_is_inside(home, path) for path in readable)
        if plan := request["plan"]:
            writable.append(plan["place"])
            if plan["place"] != plan["root"]:
                readable |= dict.fromkeys(overlay.readable(plan), _READ) | {plan["root"]: _LIST}
        held, holds_signals = _restrict_files(readable, writable)
        in_force["files"] &= held
        _drop_capabilities()
        arguments = _ARGUMENTS if protection else _ARGUMENTS + _OFFLINE
        if not protection and not holds_signals:
            arguments += _TO_ITSELF.format(os.getpid())
        idle = "" if protection else _IDLE_CALLS
        filtered = _allow_calls(_CALLS + _MORE_CALLS, arguments, _NO_NAMESPACE, idle)
        in_force["network"] |= filtered
        in_force["processes"] |= filtered
        in_force["memory"] = counted and filtered and (held or bool(protection))  # /dev/shm
        try:
            open(f"/proc/{request['kernel']}/environ").close()
            in_force["keys"] = False
        except OSError:
            in_force["keys"] = filtered
    # The supervisor counts all processes; this is for the case that it cannot.
    _limit(resource.RLIMIT_CPU, int(request["seconds"]) + 2)
    _limit(resource.RLIMIT_AS, request["memory"])
    _limit(resource.RLIMIT_FSIZE, request["file"])
    _limit(resource.RLIMIT_CORE, 0)
    os.nice(_NICE)
    refused = request["required"] and not all(in_force.values())
    _write(request, protection=in_force, refused=refused)
    if not refused:
        # As isolated as by -I, which would ignore the seed of hashes in the environment.
        command = [sys.executable, "-s", "-P", "-X", "utf8", request["script"]]
        os.execv(sys.executable, command)


def _limit(resource_id: int, value: int) -> None:
    hard = resource.getrlimit(resource_id)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with suppress(OSError, ValueError):  # macOS names some limits that it does not have
        resource.setrlimit(resource_id, (value, value))


def _drop_capabilities() -> None:
    for capability in range(64):
        _prctl(_CAPBSET_DROP, capability)
    version_3 = struct.pack("Ii", 0x2008_0522, 0)
    if _LIBC.capset(version_3, bytes(24)) != 0:
        raise OSError("the capabilities cannot be dropped")


def shut_in(reads: list[str]) -> bool:
    """Leave this process nothing but what it has open, memory, and files to read.

    It can write no file, open no socket, signal no process and start none, but threads. Return
    whether all of that is in force.

    Args:
        reads: the files and folders that it may read, besides Python's and the system's.
    """
    _prctl(_NO_NEW_PRIVS, 1)
    held, _ = _restrict_files(_readable({"reads": reads}), [])
    _drop_capabilities()
    return held and _allow_calls(_CALLS, _ARGUMENTS, _THREADS)


def _allow_calls(
    calls: str, arguments: str, clone: tuple[int, int, int, int], idle: str = ""
) -> bool:
    """Have the system refuse all calls but some, and of some all arguments but some.

    It answers an `idle` call as done, and does nothing.
    """

    def refuse(error: int) -> tuple[int, int, int, int]:
        return _RETURN, 0, 0, _REFUSE | error

    if os.uname().machine not in _MACHINES:
        return False
    audit, column = _MACHINES[os.uname().machine]
    rules = {"clone": [(_LOAD, 0, 0, 16), clone, refuse(errno.EPERM)]}
    rules |= {name: [refuse(0)] for name in idle.split()}
    for line in arguments.splitlines():
        name, place, *values = line.split()
        same = [(_EQUAL, len(values) - i, 0, int(one, 0) % 2**32) for i, one in enumerate(values)]
        error = errno.ENETUNREACH if name == "socket" else errno.EPERM
        load = (_LOAD, 0, 0, 16 + 8 * int(place))
        rules[name] = [*rules.get(name, ()), load, *same, refuse(error)]
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, audit), refuse(errno.EPERM), (_LOAD, 0, 0, 0)]
    code += [(_EQUAL, 0, 1, _CLONE3), refuse(errno.ENOSYS)]
    words = calls.replace(",", "").split()
    for name, number in zip(words[::3], words[column::3], strict=True):
        if number != "-":
            rule = [*rules.get(name, ()), (_RETURN, 0, 0, _ALLOW)]
            code += [(_EQUAL, 0, len(rule), int(number)), *rule]
    code += [(_AT_LEAST, 0, 1, _NEWER), refuse(errno.ENOSYS), refuse(errno.EPERM)]
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(packed))
    return _prctl(_SET_SECCOMP, _FILTER, program) == 0


def _readable(request: Request) -> dict[str, int]:
    return dict.fromkeys([*map(os.path.realpath, _LIBRARIES), *_needed(request)], _READ)


def _restrict_files(readable: dict[str, int], writable: list[str]) -> tuple[bool, bool]:
    """Restrict files by Landlock; return whether that holds, and whether signals are held back."""
    version = _syscall(_CREATE_RULESET, None, 0, 1)
    scopes = _SCOPES if version >= 6 else 0
    rights = (1 << (12 + min(version, 3))) - 1 if version >= 1 else 0
    rules = _syscall(_CREATE_RULESET, struct.pack("3Q", rights, 0, scopes), 24 if scopes else 8, 0)
    if rules < 0:
        return False, False
    allowed = readable | dict.fromkeys(_DEVICES, _READ | 0b10)
    for path, right in (allowed | dict.fromkeys(writable, _EVERY)).items():
        right &= rights
        with suppress(OSError):
            file = os.open(path, os.O_PATH)
            if not stat.S_ISDIR(os.fstat(file).st_mode):
                right &= _ON_FILES
            _syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", right, file), 0)
            os.close(file)
    worked = _syscall(_RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return worked, worked and bool(scopes)


def _needed(request: Request) -> list[str]:
    """Return the folders that Python's modules are in, and what the script needs besides."""
    program = os.path.realpath(sys.executable)
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(program), *sys.path]
    paths += [os.path.dirname(sys.executable), *request["reads"]]
    for finder in sys.meta_path:  # of packages installed to be edited
        module = sys.modules.get(getattr(finder, "__module__", "") or "")
        mapping = getattr(module, "MAPPING", None)
        paths += mapping.values() if isinstance(mapping, dict) else []
    real = {os.path.realpath(path) for path in paths if path}
    return sorted(path for path in real if os.path.exists(path))


def _is_inside(path: str, folder: str) -> bool:
    return f"{path}/".startswith(folder.rstrip("/") + "/")


def _prctl(option: int, value: int, more: bytes | None = None) -> int:
    zero = ctypes.c_ulong(0)
    return int(_LIBC.prctl(option, ctypes.c_ulong(value), more or zero, zero, zero))


def _syscall(number: int, *arguments: Any) -> int:
    """Make a system call; return -1 where it fails."""
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(_LIBC.syscall(ctypes.c_long(number), *passed))


if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    overlay = __import__("overlay")
    main()
