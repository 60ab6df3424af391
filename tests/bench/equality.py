"""Compare what a cell made with what the reference solution makes, as a person would.

Widths of dtypes, names of Series and of indexes, the order of columns, and an index that only
counts the rows make no difference; neither does the order of rows unless the task asks for one.
"""

import datetime
import math
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

_RTOL = 1e-6
_LOOSE = {
    "check_dtype": False,
    "check_index_type": False,
    "check_column_type": False,
    "check_freq": False,
    "check_categorical": False,
    "rtol": _RTOL,
}


def require_result(value: Any, setup: str, solution: str, name: str, *, ordered: bool) -> None:
    """Fail unless a value is what the solution leaves in a name.

    Args:
        value: what the cell left in it.
        setup: the code of the cells above.
        solution: the reference solution.
        name: the name that holds the result.
        ordered: whether the order of rows counts.

    Raises:
        AssertionError: it is something else.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(setup, names)
    exec(solution, names)
    wanted = names[name]
    assert same(value, wanted, ordered=ordered), f"{value!r:.300} is not {wanted!r:.300}"


def same(value: Any, wanted: Any, *, ordered: bool = False) -> bool:
    """Return whether a value is the wanted one; see the head of this module for what counts."""
    if isinstance(wanted, pd.Series):
        if not isinstance(value, pd.Series):
            return False
        return same(value.to_frame("values"), wanted.to_frame("values"), ordered=ordered)
    if isinstance(wanted, pd.DataFrame):
        return isinstance(value, pd.DataFrame) and _same_frames(value, wanted, ordered)
    if isinstance(wanted, pd.Index):
        return isinstance(value, pd.Index) and same(value.tolist(), wanted.tolist())
    if isinstance(wanted, np.ndarray):
        return isinstance(value, np.ndarray) and _same_arrays(value, wanted)
    if type(wanted).__module__.startswith("polars"):
        if type(value) is not type(wanted):
            return False
        return same(_to_pandas(value), _to_pandas(wanted), ordered=ordered)
    if isinstance(wanted, dict):
        return (
            isinstance(value, dict)
            and value.keys() == wanted.keys()
            and all(same(value[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list | tuple):
        return (
            type(value) is type(wanted)
            and len(value) == len(wanted)
            and all(map(same, value, wanted))
        )
    if isinstance(wanted, Number):
        if not isinstance(value, Number):
            return False
        return math.isclose(value, wanted, rel_tol=_RTOL) or (value != value and wanted != wanted)
    return bool(type(value) is type(wanted) and value == wanted)


def _same_frames(value: pd.DataFrame, wanted: pd.DataFrame, ordered: bool) -> bool:
    columns, index = _labels(wanted.columns), wanted.index
    if sorted(map(str, columns)) != sorted(map(str, _labels(value.columns))):
        return False
    try:
        value = value.set_axis(_labels(value.columns), axis="columns")[columns]
        wanted = wanted.set_axis(columns, axis="columns")
        if _counts_rows(index):
            value, wanted = value.reset_index(drop=True), wanted.reset_index(drop=True)
        else:
            value, wanted = (one.set_axis(_labels(one.index)) for one in (value, wanted))
        if not ordered:
            value, wanted = _sort(value, index), _sort(wanted, index)
        pd.testing.assert_frame_equal(value, wanted, **_LOOSE)
    except (AssertionError, KeyError, TypeError, ValueError):
        return False
    return True


def _labels(index: pd.Index) -> pd.Index:
    """Return an index without its names and its categories; a day is the time of its start."""
    return pd.Index([_start(label) for label in index.tolist()])


def _start(label: Any) -> Any:
    if isinstance(label, pd.Period):
        return label.to_timestamp()
    return pd.Timestamp(label) if type(label) is datetime.date else label


def _counts_rows(index: pd.Index) -> bool:
    """Return whether an index says nothing but where a row stood."""
    return index.name is None and index.nlevels == 1 and pd.api.types.is_integer_dtype(index.dtype)


def _sort(frame: pd.DataFrame, index: pd.Index) -> pd.DataFrame:
    if not _counts_rows(index):
        return frame.sort_index()
    floats = frame.dtypes.map(pd.api.types.is_float_dtype)
    columns = [*frame.columns[~floats], *frame.columns[floats]]  # floats differ by rounding
    return frame.sort_values(columns).reset_index(drop=True)


def _same_arrays(value: np.ndarray, wanted: np.ndarray) -> bool:
    if value.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "fc":
        return value.dtype.kind in "iufc" and np.allclose(value, wanted, _RTOL, equal_nan=True)
    return bool((value == wanted).all())


def _to_pandas(value: Any) -> Any:
    """Return a frame or series of polars as one of pandas, without pyarrow."""
    columns = getattr(value, "to_dict", None)
    return pd.DataFrame(columns(as_series=False)) if columns else pd.Series(value.to_list())
