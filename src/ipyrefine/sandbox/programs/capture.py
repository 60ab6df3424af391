"""Collect what a text returned and drew, inside the sandbox; it is read outside."""

import ast
import base64
import contextlib
import io
import itertools
import math
import re
import reprlib
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any

Limit = Callable[[float], float]

_DRAW_SECONDS, _SHOW_SECONDS = 5.0, 1.0  # of processor time
_MAX_TEXT, _MAX_CELL = 8_000, 400  # characters, before secrets are taken out
_MAX_ROWS, _MAX_COLUMNS = 10, 20
_MAX_SIDE, _MAX_PIXELS, _MAX_BYTES = 1_999, 1_500_000, 200_000  # of a picture
_MAX_FIGURES, _MAX_AXES = 4, 4  # pictures; axes of one
_TRIES = 4  # to make a picture small enough
_WIDTH = 60  # characters of a name
_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, type(None))
_MAX_SHOWN, _MAX_ITEMS = 80, 20  # characters, and items of a Series, that are shown whole
_DIGITS = 10  # characters of a number that is shown as it is
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class _TooLong(BaseException):
    """It takes too long to collect the outputs."""


def collect(value: Any, printed: str, limit: Limit) -> list[dict[str, Any]]:
    """Return a text's answer and its figures as plain data.

    The answer is its last value; without one, or a figure, what its last print printed.

    What cannot be shown is left out: no output is a fault of the text.

    `limit` sends SIGPROF after some seconds of processor time, and returns what was left.
    """
    found: list[dict[str, Any]] = []

    def draw() -> None:
        for figure in _figures(value):
            if picture := _draw(figure):
                found.append({"kind": "figure", "png": picture})
                found[-1]["axes"] = _read_axes(figure)  # where time is left
        if (content := getattr(value, "_repr_png_", bytes)()) and len(content) <= _MAX_BYTES:
            found.append({"kind": "figure", "png": base64.b64encode(content).decode()})

    def show() -> None:
        # What draws returns an artist, which says nothing more than its figure.
        drawn = found and (_is_artist(value) or hasattr(value, "_repr_png_"))
        if value is not None and not drawn:
            frame = value.collect() if type(value).__name__ == "LazyFrame" else value
            text = _chart(value) or _ADDRESS.sub("", _text(value))
            found.insert(0, _table(frame) or {"kind": "value", "text": text})
        elif printed.strip() and not found:
            found.append({"kind": "value", "text": printed.strip("\n").rstrip()})

    _within(_DRAW_SECONDS, limit, draw)
    _within(_SHOW_SECONDS, limit, show)
    return found


def _within(seconds: float, limit: Limit, action: Callable[[], None]) -> None:
    """Call code that may run the text's own, for that long at most and whatever it raises."""
    if not hasattr(signal, "SIGPROF"):
        with contextlib.suppress(BaseException):
            action()
        return
    left = limit(0)  # threads of the text have this time still
    handler = signal.signal(signal.SIGPROF, _stop)
    with contextlib.suppress(BaseException):
        try:
            limit(seconds)
            action()
        finally:
            limit(0)
            signal.signal(signal.SIGPROF, _stop)  # a signal that still waits is raised in here
    signal.signal(signal.SIGPROF, handler)
    limit(left)


def _stop(*_: Any) -> None:
    raise _TooLong


def _figures(value: Any) -> list[Any]:
    """Return the figures that pyplot holds, else the one that a value is or belongs to."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if numbers := pyplot.get_fignums() if pyplot else ():
        return [*map(pyplot.figure, numbers[:_MAX_FIGURES])]
    owners = (value, getattr(value, "figure", None)) if _is_artist(value) else ()
    return [one for one in owners if hasattr(one, "savefig")][:1]


def _is_artist(value: Any, depth: int = 2) -> bool:
    """Return True for a value of matplotlib, or a list or an array that holds one."""
    if type(value).__module__.startswith("matplotlib."):
        return True
    some = type(value).__name__ in ("list", "tuple", "ndarray") and depth > 0 and len(value)
    return bool(some) and any(_is_artist(one, depth - 1) for one in value[:_MAX_ROWS])


def _draw(figure: Any) -> str:
    """Return a figure as base64 of a PNG, as sharp as the bounds allow; empty if they do not.

    As in a notebook its edges are moved to what is drawn, unless that lies far outside.
    """
    width, height = map(float, figure.get_size_inches())
    dpi = min(
        float(figure.dpi),
        _MAX_SIDE / max(width, height),
        math.sqrt(_MAX_PIXELS / (width * height)),
    )
    edges: str | None = "tight"
    for _ in range(_TRIES):
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=dpi, bbox_inches=edges, metadata={"Software": None})
        picture = file.getvalue()
        if max(struct.unpack(">2I", picture[16:24])) > _MAX_SIDE:
            edges = None
        elif len(picture) <= _MAX_BYTES:
            return base64.b64encode(picture).decode()
        else:
            dpi *= min(0.7, 0.9 * math.sqrt(_MAX_BYTES / len(picture)))
    return ""


def _read_axes(figure: Any) -> list[str]:
    """Return a line for each of a figure's axes: its points, and what its scales span.

    Points are those of lines and scatters. One is not drawn that has no number or lies outside.
    """
    lines = []
    for number, axes in enumerate(figure.axes[:_MAX_AXES], start=1):
        with contextlib.suppress(Exception):  # of the text's own making
            given = drawn = 0
            for columns in _points(axes):
                inside: Any = True
                for values, ends in zip(columns, (axes.get_xlim(), axes.get_ylim()), strict=True):
                    inside = inside & (values >= min(ends)) & (values <= max(ends))
                given, drawn = given + len(columns[0]), drawn + int(inside.sum())
            said = [f"{drawn:,} of {given:,} points drawn"] if given else []
            bars = [one for one in axes.containers if type(one).__name__ == "BarContainer"]
            said += [f"{count:,} bar{'s' * (count > 1)}"] if (count := sum(map(len, bars))) else []
            scales = (("x", axes.xaxis), ("y", axes.yaxis)) if axes.axison else ()
            said += [_span(axis, name) for name, axis in scales if len(axis.get_ticklocs())]
            name = axes.get_title() or (f"axes {number}" if len(figure.axes) > 1 else "")
            line = ": ".join(filter(None, [name[:_WIDTH], "; ".join(said)]))
            lines += [line] if said else []
    return lines


def _points(axes: Any) -> Iterator[list[Any]]:
    """Yield the x and the y of the points of each line and scatter, NaN for those that lack one."""
    array = sys.modules["numpy"].ma
    for line in axes.lines:
        if line.get_transform() == axes.transData:  # not one across the whole axes
            columns = (line.get_xdata(orig=False), line.get_ydata(orig=False))
            yield [array.filled(array.asarray(one, dtype=float), math.nan) for one in columns]
    for group in axes.collections:
        if type(group).__name__ == "PathCollection":
            yield [*array.filled(group.get_offsets().astype(float), math.nan).T]


def _span(axis: Any, name: str) -> str:
    low, high = axis.get_view_interval()
    if axis.have_units():
        write = axis.get_major_formatter().format_data_short
        return f"{name} {str(write(low)).strip()} to {str(write(high)).strip()}"
    return f"{name} {low:.4g} to {high:.4g}"


def _chart(value: Any) -> str:
    """Return a chart of plotly or altair by its kinds and points; empty for anything else."""
    parts = []
    match type(value).__module__.partition(".")[0]:
        case "plotly":
            parts = [(one.type, one["values" if "values" in one else "x"]) for one in value.data]
        case "altair":
            parts = [(getattr(value.mark, "type", value.mark), value.data)]
    return ", ".join(f"{kind} chart of {len(data):,} points" for kind, data in parts)


def _library(value: Any) -> str:
    """Return the library of a DataFrame or a Series, pandas or polars; empty for anything else."""
    for name in ("pandas", "polars"):
        module = sys.modules.get(name)
        if module and isinstance(value, (module.DataFrame, module.Series)):
            return name
    return ""


def _table(value: Any) -> dict[str, Any] | None:
    """Return the first rows of a DataFrame or a Series; None for anything else."""
    library = _library(value)
    if not library:
        return None
    frame = value.to_frame() if len(value.shape) == 1 else value
    if library == "pandas":
        head = frame.iloc[:_MAX_ROWS, :_MAX_COLUMNS]
        labels, rows = list(head.index), [*head.itertuples(index=False, name=None)]
        index = [name for name in head.index.names if name is not None]
    else:
        head = frame.head(_MAX_ROWS).select(frame.columns[:_MAX_COLUMNS])
        labels, rows, index = list(range(len(head))), head.rows(), []
    unnamed = len(value.shape) == 1 and value.name is None
    return {
        "kind": "table",
        "columns": ["" if unnamed else _label(name) for name in head.columns],
        "index": ", ".join(map(_label, index)),
        "labels": [*map(_label, labels)],
        "rows": [[*map(_cell, row)] for row in rows],
        "height": int(frame.shape[0]),
        "width": int(frame.shape[1]),
        "is_series": len(value.shape) == 1,
    }


def _label(name: Any) -> str:
    parts = name if isinstance(name, tuple) else (name,)
    return ", ".join(map(_cell, parts))[:_MAX_CELL]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        text = str(float(value))
        return text if len(text) <= _DIGITS else f"{value:.6g}"
    nested = isinstance(value, (list, tuple, dict, set, frozenset))
    text = _text(value) if nested else str(value)
    if type(value).__name__ == "Timestamp":
        text = text.removesuffix(" 00:00:00")  # a day
    return text[:_MAX_CELL]


class _Writer(reprlib.Repr):
    """Writes a dict in its own order, and a deque whole."""

    def repr_dict(self, value: dict[Any, Any], level: int) -> str:
        if value and level <= 0:
            return "{...}"
        pairs = [
            f"{self.repr1(key, level - 1)}: {self.repr1(one, level - 1)}"
            for key, one in itertools.islice(value.items(), self.maxdict)
        ]
        return f"{{{', '.join([*pairs, *['...'] * (len(value) > self.maxdict)])}}}"

    def repr_deque(self, value: Any, level: int) -> str:
        return self.repr_instance(value, level)


def _text(value: Any) -> str:
    """Return a value as Python, its start where it is long."""
    writer = _Writer()
    writer.maxlist = writer.maxtuple = writer.maxset = writer.maxfrozenset = 200
    writer.maxdict = writer.maxdeque = writer.maxarray = 200
    writer.maxstring = writer.maxother = writer.maxlong = _MAX_TEXT
    return writer.repr(value)[:_MAX_TEXT]


# Plain values


def _fits(text: str) -> bool:
    if len(text) > _MAX_SHOWN:
        return False
    with contextlib.suppress(ValueError, SyntaxError):
        ast.literal_eval(text)
        return True
    return False


def show(values: dict[str, Any]) -> dict[str, str]:
    """Return what some names hold, each as an expression and its value as Python.

    These are short plain values, short series and short arrays. What else there is, is in words.
    """
    found = dict[str, str]()
    for name, value in values.items():
        with contextlib.suppress(Exception):  # of the text's own making
            found |= _results(name, value) if name[:1] != "_" else {}
    return found


def _results(name: str, value: Any) -> dict[str, str]:
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if library in ("pandas", "polars", "numpy") and hasattr(kind, "shape"):
        pandas = sys.modules.get("pandas")
        is_series = kind is getattr(pandas, "Series", None)
        whole = ["to_dict"] * is_series
        whole += ["tolist"] * (is_series or kind.__name__ == "ndarray")
        whole += ["item"] * (value.shape == () and value.dtype.kind not in "mM")
        for method in whole if math.prod(value.shape) <= _MAX_ITEMS else ():
            text = repr(getattr(value, method)())
            if _fits(text):
                return {f"{name}.{method}()": text}
    text = _text(value) if kind in _PLAIN else ""
    return {name: text} if text and _fits(text) else {}
