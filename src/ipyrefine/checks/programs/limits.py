"""The program that limits itself and then becomes Python running a script.

Limits set in a forked child of the kernel could deadlock on its threads, so a fresh interpreter
sets them and passes them on to the script by replacing itself.

It is run by path, without the rest of the package and on POSIX only. Its arguments are processor
seconds, wall seconds, bytes of memory, bytes of the largest file, and the script. It leaves a file
``.offline`` where it could cut off the network.
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
    # An alarm outlives the replacement: it ends the script even when the kernel is gone.
    signal.alarm(wall)
    os.nice(_NICE)
    os.execv(sys.executable, [sys.executable, "-I", "-X", "utf8", sys.argv[5]])


def _leave_network() -> bool:
    """Move this process into a network of its own, with nothing but a loopback."""
    unshare = ctypes.CDLL(None).unshare
    user, group = os.getuid(), os.getgid()
    # An administrator may just do it; others only as the owner of a user namespace of their own.
    if user != 0 or unshare(_NEW_NET) != 0:
        if unshare(_NEW_USER | _NEW_NET) != 0:
            return False
        with suppress(OSError):  # without it the process runs too, but does not know its name
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _limit(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(which, (most, most))
    except (OSError, ValueError):
        # macOS has the name of some limits but not the limit: the others still count.
        return


if __name__ == "__main__":
    main()
