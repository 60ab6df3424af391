"""Remember the cells that failed lately, with what each raised."""

import os
import re
import traceback
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import IPython

from ipyrefine.errors import RefineError

_MOST = 20  # cells
_MESSAGE = 1_000  # characters of an exception's message
_LINE = 200  # characters of a line of the cell
_FRAMES = 6  # of a traceback, from either end
# A cell that does nothing but start or steer a run, perhaps below comments.
_OURS = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*(?:%%(?:refine|look)\b|%refine\b[^\n]*\s*\Z)")
_IPYTHON = os.path.dirname(IPython.__file__)


def is_ours(source: str) -> bool:
    """Return True if a cell does nothing but start or steer a run."""
    return _OURS.match(source) is not None


class Failure(NamedTuple):
    """A cell that failed, and how.

    Attributes:
        source: the cell's text.
        cell_id: its id; None where the front-end does not say.
        kind: the exception's name.
        message: the exception's message.
        line: the line of the cell that failed, from 1; None where that is not known.
        frames: the lines of the cell that the exception went through, in words.
    """

    source: str
    cell_id: str | None
    kind: str
    message: str = ""
    line: int | None = None
    frames: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """How it failed, as a check says it: ``KeyError: 'price' (line 3)``."""
        place = f" (line {self.line})" if self.line else ""
        message = " ".join(self.message.split())[: 2 * _LINE]
        return (f"{self.kind}: {message}" if message else self.kind) + place


class Failures:
    """The cells that failed lately and have not run without an error since."""

    def __init__(self) -> None:
        self._by_cell: dict[str, Failure] = {}

    def note(self, result: Any) -> None:
        """Take note of how a cell ended: IPython's `ExecutionResult`, or None.

        Neither a cell of ours, nor an interrupt or an exit counts as a failure.
        """
        info = getattr(result, "info", None)
        source = (getattr(info, "raw_cell", None) or "").replace("\r\n", "\n")
        cell_id = getattr(info, "cell_id", None)
        if not source or is_ours(source):
            return
        early, error = result.error_before_exec, result.error_before_exec or result.error_in_exec
        if isinstance(error, RefineError) or not isinstance(error, Exception | None):
            return
        key = cell_id or source
        self._by_cell.pop(key, None)
        if error is not None:
            frames = [] if early else [*_own_frames(error)]
            self._by_cell[key] = _describe(source, cell_id, error, frames)
            while len(self._by_cell) > _MOST:
                del self._by_cell[next(iter(self._by_cell))]

    def find(self, cell_id: str | None = None) -> Failure | None:
        """Return the failure of a cell, else the last one; None where there is none."""
        found = [f for f in self._by_cell.values() if cell_id in (None, f.cell_id)]
        return found[-1] if found else None


def _describe(
    source: str, cell_id: str | None, error: Exception, frames: list[traceback.FrameSummary]
) -> Failure:
    kind = type(error).__name__
    kind = kind[:_LINE] if kind.isidentifier() else "an error"
    if isinstance(error, SyntaxError) and not frames:
        line = f"line {error.lineno}: {(error.text or '').strip()[:_LINE]}"
        return Failure(source, cell_id, kind, error.msg, error.lineno, (line,))
    lines = []
    for n, frame in enumerate(frames):
        place = f"line {frame.lineno}" + (f", in {frame.name[:_LINE]}" if n else "")
        lines.append(f"{place}: {(frame.line or '').strip()[:_LINE]}".rstrip(": "))
    lines = [line for line, _ in groupby(lines)]  # a recursion's
    if len(lines) > 2 * _FRAMES:
        lines[_FRAMES:-_FRAMES] = ["…"]
    try:
        message = str(error)[:_MESSAGE]
    except Exception:  # a stranger's, which may fail at that too
        message = ""
    return Failure(
        source, cell_id, kind, message, frames[-1].lineno if frames else None, tuple(lines)
    )


def _own_frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    """Yield the frames of a cell's own code, without those of IPython and of other cells."""
    summary = traceback.StackSummary.extract(
        traceback.walk_tb(error.__traceback__), lookup_lines=False
    )
    outer = next((f.filename for f in summary if not f.filename.startswith(_IPYTHON)), None)
    timed = [frame for frame in summary if frame.filename.startswith("<timed ")]
    yield from timed or [frame for frame in summary if frame.filename == outer]
