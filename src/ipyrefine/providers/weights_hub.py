"""Fetches a model file from the Hugging Face hub, and gives up quickly where there is none."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ipyrefine.errors import WeightsError
from ipyrefine.providers.weights_catalog import Weights

PROBE_SECONDS = 5.0


def workspace(weights: Weights, directory: Path) -> Path:
    """The folder a download from the hub is kept in until it is verified; it may be resumed."""
    return directory / f"{weights.file}.hub"


def fetch(weights: Weights, directory: Path, progress: bool) -> Path:
    """Download one file with ``huggingface_hub``, which resumes what it had.

    Honours ``HF_ENDPOINT`` and ``HF_HUB_OFFLINE``.

    Args:
        weights: what to fetch.
        directory: the model directory.
        progress: whether to show the hub client's progress bar on stderr.

    Returns:
        The downloaded file, not verified yet.

    Raises:
        WeightsError: a short reason why the hub gave no file.
    """
    try:
        import huggingface_hub
        from huggingface_hub import constants
    except ImportError as error:
        raise WeightsError("huggingface_hub is not installed") from error
    if constants.HF_HUB_OFFLINE:
        raise WeightsError("HF_HUB_OFFLINE is set")
    endpoint = (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    _require_answer(huggingface_hub, f"{endpoint}/{weights.repo}/resolve/main/{weights.file}")
    try:
        with _bars(huggingface_hub.utils, progress):
            path = huggingface_hub.hf_hub_download(
                weights.repo,
                weights.file,
                local_dir=workspace(weights, directory),
                endpoint=endpoint,
                etag_timeout=PROBE_SECONDS,
            )
    except Exception as error:  # it lets its HTTP client's errors through, of many classes
        raise WeightsError(_reason(error)) from error
    return Path(path)


def _require_answer(hub: Any, url: str) -> None:
    """Ask once whether the hub answers: its own client would retry for half a minute.

    Raises:
        WeightsError: no answer in time, or the server is broken.
    """
    try:
        status = _within(
            PROBE_SECONDS,
            lambda: hub.get_session().head(url, timeout=PROBE_SECONDS).status_code,
        )
    except TimeoutError as error:
        raise WeightsError(f"no answer within {PROBE_SECONDS:.0f} s") from error
    except Exception as error:  # whatever the hub's HTTP client raises
        raise WeightsError(f"not reachable, {_reason(error)}") from error
    if status >= 500:
        raise WeightsError(f"it answered HTTP {status}")


def _within(seconds: float, call: Callable[[], int]) -> int:
    """The call's result, if it comes within so many seconds.

    A client's own time-out counts per address and not at all for name resolution, so a
    firewalled machine could wait for a minute; a thread that is still stuck is left behind.

    Raises:
        TimeoutError: it did not.
    """
    results: list[int] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(call())
        except Exception as error:  # handed to the caller below
            errors.append(error)

    thread = threading.Thread(target=work, name="ipyrefine-hub-probe", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


@contextlib.contextmanager
def _bars(utils: Any, progress: bool) -> Iterator[None]:
    """Keep the hub client quiet for a while, unless progress is wanted."""
    if progress or utils.are_progress_bars_disabled():
        yield
        return
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.enable_progress_bars()


def _reason(error: Exception) -> str:
    """An error's class and first line, cut to a length people read."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:200].rstrip(": ")
