"""What keeps a model file trustworthy on disk: its digest, a stamp, and a lock."""

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from ipyrefine.core.records import Record
from ipyrefine.providers.weights_catalog import Weights

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: IO[bytes]) -> bool:
        handle.seek(0)
        try:
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(handle: IO[bytes]) -> None:
        handle.seek(0)
        msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(handle: IO[bytes]) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


class _Stamp(Record):
    """Says that a file of this size and modification time once had this digest."""

    size: int
    mtime_ns: int
    sha256: str


@contextlib.contextmanager
def locked(path: Path, on_wait: Callable[[], None], poll: float = 0.2) -> Iterator[None]:
    """Hold the lock file `path` against other threads and processes.

    The operating system frees the lock when its holder dies, so it never goes stale; the file
    itself stays, because deleting it would let two holders lock two different files.

    Args:
        path: the lock file; made if missing.
        on_wait: called once if another holder has it.
        poll: seconds between tries.

    Raises:
        OSError: the file cannot be made or locked.
    """
    with path.open("ab") as handle:
        if not _try_lock(handle):
            on_wait()
            while not _try_lock(handle):
                time.sleep(poll)
        try:
            yield
        finally:
            _unlock(handle)


def matches(path: Path, weights: Weights) -> bool:
    """Whether the file has the pinned size and sha256; reads all of it if the size is right."""
    if path.stat().st_size != weights.size:
        return False
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() == weights.sha256


def stamped(path: Path, weights: Weights) -> bool:
    """Whether the file was verified before and has not been touched since; reads no content."""
    try:
        noted = _Stamp.model_validate_json(_stamp_of(path).read_bytes())
    except (OSError, ValueError):
        return False
    return noted == _stamp(path, weights)


def stamp(path: Path, weights: Weights) -> None:
    """Note that the file was verified; in a directory that cannot be written to, do nothing."""
    with contextlib.suppress(OSError):
        write_whole(_stamp_of(path), _stamp(path, weights).model_dump_json())


def write_whole(path: Path, text: str) -> None:
    """Write a small file so that a reader sees the old text or the new one, never a piece.

    Raises:
        OSError: it cannot be written.
    """
    # The process id keeps two writers of the same file out of each other's way.
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _stamp(path: Path, weights: Weights) -> _Stamp:
    stat = path.stat()
    return _Stamp(size=stat.st_size, mtime_ns=stat.st_mtime_ns, sha256=weights.sha256)


def _stamp_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified.json")
