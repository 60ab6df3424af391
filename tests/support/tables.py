"""Tables for benchmarks, printed row by row."""

from collections.abc import Sequence


class Table:
    """A Markdown table on standard output.

    Args:
        title: a line above it.
        columns: the headings; the first column is wide.
    """

    def __init__(self, title: str, *columns: str) -> None:
        print(f"\n{title}\n")
        self._widths = [max(46, len(columns[0])), *(max(12, len(one)) for one in columns[1:])]
        self._line(columns)
        self._line(["-" * width for width in self._widths])

    def row(self, name: str, *values: object) -> None:
        """Print a row; floats get three digits."""
        self._line([name, *(f"{v:.3g}" if isinstance(v, float) else str(v) for v in values)])

    def _line(self, cells: Sequence[str]) -> None:
        padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        print("| " + " | ".join(padded) + " |", flush=True)
