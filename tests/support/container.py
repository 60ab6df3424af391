"""Run a program as another user, or as in a container whose seccomp profile forbids namespaces.

``python container.py [--nobody | --bare] [--namespaces | --no-landlock] PROGRAM ARGUMENT…``. With
``--bare`` the user stays, without any right over others. A container's default profile refuses to
make and to enter namespaces, and so does this one, except with ``--namespaces``; with
``--no-landlock`` the system does not know that either.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

# unshare, setns, clone, clone3, landlock_create_ruleset
CALLS = {"x86_64": (272, 308, 56, 435, 444), "aarch64": (97, 268, 220, 435, 444)}
_NAMESPACES = 0x7E02_0000  # the flags of `clone` that make one
_CAPBSET_DROP, _NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = (
    24,
    38,
    22,
    2,
)  # linux/prctl.h, linux/seccomp.h
_LOAD, _EQUAL, _HAS, _RETURN = 0x20, 0x15, 0x45, 0x06  # linux/bpf_common.h
_ALLOW, _ERROR = 0x7FFF_0000, 0x0005_0000


def forbid_namespaces(*, landlock: bool) -> None:
    """Refuse to make or enter namespaces in this process and all that it starts."""
    unshare, setns, clone, clone3, create_ruleset = CALLS[platform.machine()]
    refuse, unknown = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
    rules = {unshare: refuse, setns: refuse, clone3: unknown}
    rules |= {} if landlock else {create_ruleset: unknown}
    instructions = [(_LOAD, 0, 0, 0)]  # the number of the system call
    for number, answer in rules.items():
        instructions += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    instructions += [(_EQUAL, 0, 3, clone), (_LOAD, 0, 0, 16), (_HAS, 0, 1, _NAMESPACES)]
    instructions += [(_RETURN, 0, 0, refuse), (_RETURN, 0, 0, _ALLOW)]
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


def drop_capabilities() -> None:
    system = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        system.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    if system.capset(struct.pack("Ii", 0x2008_0522, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities cannot be dropped")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    options = {one for one in arguments[:2] if one.startswith("--")}
    if "--nobody" in options:
        become(65534)
    if "--bare" in options:
        drop_capabilities()
    if "--namespaces" not in options:
        forbid_namespaces(landlock="--no-landlock" not in options)
    command = arguments[len(options) :]
    os.execvp(command[0], command)
