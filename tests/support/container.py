"""Run a program as another user, or as in a container whose seccomp profile forbids namespaces.

``python container.py [--user NUMBER] [--namespaces] PROGRAM ARGUMENT…``. A container's default
profile answers `unshare` with EPERM, and so does this one, except with ``--namespaces``.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

UNSHARE = {"x86_64": 272, "aarch64": 97}
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2  # linux/prctl.h, linux/seccomp.h
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
_ALLOW, _ERROR = 0x7FFF_0000, 0x0005_0000


def forbid_namespaces() -> None:
    """Make `unshare` fail with EPERM in this process and all that it starts."""
    instructions = [
        (_LOAD, 0, 0, 0),  # the number of the system call
        (_EQUAL, 0, 1, UNSHARE[platform.machine()]),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    zero = ctypes.c_ulong(0)
    prctl(_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero)
    if prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), program, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp filter can be installed")


def become(user: int) -> None:
    """Become an ordinary user."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "--user":
        become(int(arguments[1]))
        del arguments[:2]
    if arguments[0] == "--namespaces":
        del arguments[0]
    else:
        forbid_namespaces()
    os.execvp(arguments[0], arguments)
