"""Set limits on this process, then replace it by Python running a script.

Setting limits in a forked child of the kernel could deadlock on the kernel's threads, so a fresh
interpreter sets them, and they survive its replacement.

This program runs on POSIX only. Its arguments are processor seconds, wall seconds, bytes of memory,
bytes of the largest file, and the script. Where it cut off the network it writes a file
``.offline``.
"""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import suppress

_NEW_USER, _NEW_NET = 0x1000_0000, 0x4000_0000  # Linux: linux/sched.h
_SET_FLAGS, _UP = 0x8914, 1  # Linux: linux/sockios.h, linux/if.h
_NICE = 5  # a flood of processes must not keep the user's kernel from stopping it


def main() -> None:
    """Set the limits, then run the script in this process."""
    processor, wall, memory, file = (int(argument) for argument in sys.argv[1:5])
    if sys.platform == "linux" and _leave_network():
        with open(".offline", "w"):
            pass
    _limit(resource.RLIMIT_CPU, processor)
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_FSIZE, file)
    _limit(resource.RLIMIT_CORE, 0)
    # An alarm survives the replacement, so it ends the script even when the kernel is gone.
    signal.alarm(wall)
    os.nice(_NICE)
    os.execv(sys.executable, [sys.executable, "-I", "-X", "utf8", sys.argv[5]])


def _leave_network() -> bool:
    """Move this process into a network with a loopback only; return whether that worked."""
    unshare = ctypes.CDLL(None).unshare
    user, group = os.getuid(), os.getgid()
    # An administrator may do this directly, others only in a user namespace of their own.
    if user != 0 or unshare(_NEW_NET) != 0:
        if unshare(_NEW_USER | _NEW_NET) != 0:
            return False
        with suppress(OSError):  # without it the process runs as well, but has no user name
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _limit(resource_id: int, value: int) -> None:
    hard = resource.getrlimit(resource_id)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(resource_id, (value, value))
    except (OSError, ValueError):
        # macOS names some limits that it does not have; the others still hold.
        return


if __name__ == "__main__":
    main()
