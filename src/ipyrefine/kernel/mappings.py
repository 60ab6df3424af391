"""Give a forked child memory of its own in place of what it shares with its parent (Linux only).

A fork shares what was mapped to be shared: files, shared memory, the locks of `multiprocessing`.
"""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_LIBC = ctypes.CDLL(None)
_LIBC.mmap.restype = _LIBC.mremap.restype = ctypes.c_void_p
_FAILED = ctypes.c_void_p(-1).value
_OWN = mmap.MAP_PRIVATE | 0x4000  # MAP_NORESERVE: a file may be larger than the memory
_OVER = 3  # MREMAP_MAYMOVE | MREMAP_FIXED


def make_private(limit: int) -> None:
    """Replace each shared mapping by a private one of the same content, at the same address.

    A file is mapped once more, which copies nothing; memory without a file is copied.

    Args:
        limit: bytes that the copies may take.

    Raises:
        OSError: a mapping cannot be replaced.
    """
    for start, (length, rights, offset, *file) in _mappings().items():
        if not rights.endswith(b"s"):
            continue
        size = ctypes.c_size_t(length)
        protection = sum(1 << n for n, one in enumerate(b"rwx") if one in rights)
        for descriptor in _open_files(f"{start:x}-{start + length:x}", *file[2:]):
            new = _LIBC.mmap(None, size, protection, _OWN, descriptor, ctypes.c_long(offset))
            if _mappings().get(new, ())[3:] == (*file,):
                break
        else:
            limit -= length
            if limit < 0:
                raise OSError("too much memory is shared")
            new = _LIBC.mmap(None, size, 3, _OWN | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))
            if new == _FAILED:
                raise OSError("no memory is left")
            with open("/proc/self/mem", "rb", buffering=0) as memory:
                memory.seek(start)
                view = memoryview((ctypes.c_char * length).from_address(new)).cast("B")
                while view:
                    view = view[memory.readinto(view) :]
            _LIBC.mprotect(ctypes.c_void_p(new), size, protection)
        if _LIBC.mremap(ctypes.c_void_p(new), size, size, _OVER, ctypes.c_void_p(start)) != start:
            raise OSError("shared memory cannot be replaced")


def _mappings() -> dict[int, tuple[Any, ...]]:
    """Return length, rights, offset, device, inode and path of the mappings, by address."""
    found = {}
    for line in Path("/proc/self/maps").read_bytes().split(b"\n")[:-1]:
        place, rights, offset, *file = line.split(None, 5)
        start, stop = (int(one, 16) for one in place.split(b"-"))
        found[start] = (stop - start, rights, int(offset, 16), *file)
    return found


def _open_files(place: str, path: bytes = b"") -> Iterator[int]:
    """Open the regular files that may be mapped at a place: by path, or where they are deleted."""
    paths = [path, os.fsencode(f"/proc/self/map_files/{place}")]
    paths += [one.path for one in os.scandir(b"/proc/self/fd")]
    for one in paths:
        with suppress(OSError):
            if os.path.isfile(one) and os.path.realpath(one) == path:
                yield os.open(one, os.O_RDONLY | os.O_NONBLOCK)
