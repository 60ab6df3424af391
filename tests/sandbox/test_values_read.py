"""What is read of a value without calling code of its own, in the sandbox and in the kernel."""

import collections
import datetime
import json
import time
from typing import Any

import numpy
import pandas
import pytest

from ipyrefine.checks.python import RunsCleanly
from ipyrefine.core.model import Held, Task
from ipyrefine.kernel.held import hold, raised_words, read_held
from ipyrefine.kernel.variables import Variables
from ipyrefine.sandbox.programs.reading import read

FRAME = {"id": [1, 2, 3], "price": [1.5, None, 4.0], "city": ["a", None, "b"]}


def column(value: Any, name: str = "") -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in read(value)["columns"] if one["name"] == name)
    return found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"), (1.5, "1.5"), (None, "None"), ("ab", "'ab'"), ({"b", "a"}, "{'a', 'b'}"),
        ([1, object(), [2.0]], "[1, object, [2.0]]"), ({"a": (1, None)}, "{'a': (1, None)}"),
        (numpy.float64(2), "2.0"), (datetime.date(2024, 1, 2), "datetime.date(2024, 1, 2)"),
        (pandas.Timestamp("2024-01-02"), "2024-01-02 00:00:00"), (range(3), "range(0, 3)"),
        (collections.Counter("aab"), "{'a': 2, 'b': 1}"), (list(range(300)), None),
    ],
)  # fmt: skip
def test_a_plain_value_is_read_as_python(value, text):
    found = read(value)["text"]
    assert found == text or (text is None and found.startswith("[0, 1") and len(found) <= 1_000)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_of_a_frame_its_size_types_sums_gaps_and_first_rows_are_read(library):
    frame = pytest.importorskip(library).DataFrame(FRAME)
    assert read(frame)["shape"] == [3, 3]
    assert [one["name"] for one in read(frame)["columns"]] == ["id", "price", "city"]
    price = column(frame, "price")
    assert (price["total"], price["missing"]) == ("5.5", 1)
    assert price["text"].startswith("1.5, ")
    assert "total" not in column(frame, "city")
    assert column(frame, "city")["missing"] == 1
    assert column(frame["price"], "price") == price


@pytest.mark.parametrize(
    ("values", "total", "missing"),
    [
        (pandas.Series([1, None], dtype="Int64"), "1", 1),
        (pandas.Series(["a", None], dtype="category"), None, 1),
        (pandas.Series([None, pandas.NaT, 1.0, float("nan")], dtype=object), None, 3),
        (pandas.Series(pandas.to_datetime(["2024-01-01", None], utc=True)), None, 1),
        (numpy.array([[1.0, numpy.nan], [2.0, 3.0]]), "6.0", 1),
        (numpy.array([True, True]), "2", 0),
        (pandas.Series(["a", None]).unique(), None, 1),
        (numpy.zeros((0, 3)), "0.0", 0),
        ([1, 2, 3], "6", None),
    ],
)
def test_sums_and_gaps_are_those_of_the_type(values, total, missing):
    [found] = read(values)["columns"]
    assert (found.get("total"), found.get("missing")) == (total, missing)


class Model:
    """As an estimator of a library is, with what it has learnt."""

    def __init__(self, depth: int) -> None:
        self.depth, self.coef_, self._cache = depth, numpy.array([1.5, 2]), object()
        self.api_key = "hunter-2-hunter-2"


def test_of_a_model_its_parameters_and_what_it_learnt_are_read_without_secrets():
    [found] = hold({"model": Model(3)})
    told = [(one.name, one.text, one.total) for one in found.columns]
    assert told == [("depth", "3", ""), ("coef_", "1.5, 2.0", "3.5")]
    assert found.tells


def test_of_a_figure_it_is_read_where_its_lines_points_and_bars_are():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    axes.plot([1, 2, 4])
    axes.scatter([1], [5])
    axes.bar([1], [7])
    for drawn in (figure, axes):
        heads = {one["name"]: one["text"] for one in read(drawn)["columns"]}
        assert (heads["yorig 0"], heads["offsets 1"], heads["height 2"]) == (
            "1, 2, 4",
            "1.0, 5.0",
            "7",
        )


def test_three_million_rows_take_a_tenth_of_a_second_at_most():
    rows = 3_000_000
    frame = pandas.DataFrame({name: numpy.arange(rows) * 0.5 for name in "abcd"})
    took = []
    for _ in range(3):
        start = time.thread_time()
        [found] = hold({"frame": frame})
        took.append(time.thread_time() - start)
    assert found.shape == (rows, 4)
    assert min(took) < 0.1


def test_what_is_nested_without_end_is_read_in_a_moment():
    nested: Any = list(range(300))
    for _ in range(5):
        nested = [nested] * 300
    start = time.thread_time()
    assert read(nested)["text"].startswith("[[[[list, list")
    assert read([[1] * 150, [2] * 150])["text"].endswith("2, …]]")
    itself: list[Any] = []
    itself.append(itself)
    assert read(itself)["text"] == "[[[[list]]]]"
    assert time.thread_time() - start < 0.1


def test_of_a_large_set_only_the_size_is_read():
    assert read(set(range(5_000)))["shape"] == [5_000]
    assert read(set(range(5_000)))["text"] == "set"


def test_replaced_methods_are_not_called(monkeypatch):
    frame, expected = pandas.DataFrame(FRAME), read(pandas.DataFrame(FRAME))

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was called")

    names = ("sum", "isna", "head", "__len__", "__getitem__", "items", "to_numpy", "__getattr__")
    for kind in (pandas.DataFrame, pandas.Series):
        for name in names:
            if hasattr(kind, name):
                monkeypatch.setattr(kind, name, refuse)
    for name in ("shape", "dtypes", "columns", "values"):
        monkeypatch.setattr(pandas.DataFrame, name, property(refuse))
    assert read(frame) == expected


class Loud(type):
    """A type that reports whatever is asked of it or of its values."""

    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(name)


def _loud(*_: Any) -> Any:
    raise AssertionError("it was called")


HOSTILE = ("__eq__", "__ne__", "__len__", "__repr__", "__str__", "__iter__", "__getattribute__")


@pytest.mark.parametrize(
    "base", [object, list, dict, str, int, float, pandas.DataFrame, numpy.ndarray]
)
def test_of_any_other_type_only_its_name_is_read(base):
    kind = type("Odd", (base,), dict.fromkeys(HOSTILE, _loud))
    value = kind.__new__(kind, (1,)) if base is numpy.ndarray else kind.__new__(kind)
    assert [*read(value)] == ["type"]
    assert read(value)["type"].endswith("Odd")
    assert "Odd" in read([value, {1: value}])["text"]
    assert [one.tells for one in hold({"x": value})] == [False]
    assert [*read(Loud("Quiet", (), {})())] == ["type"]


def test_values_of_the_users_inside_of_a_frame_stay_untouched():
    number = type("Number", (float,), dict.fromkeys(HOSTILE[:-1], _loud))
    frame = pandas.DataFrame({"x": pandas.Series([number(1), object()], dtype=object)})
    assert column(frame, "x")["text"].endswith("Number, object")
    assert column(frame, "x")["missing"] == 0


def test_iterators_plans_and_files_are_left_as_they_are(tmp_path):
    (tmp_path / "x").write_text("ab")
    numbers = (n for n in range(3))
    with (tmp_path / "x").open() as file:
        for value in (numbers, iter([1]), map(str, [1]), file):
            assert [*read(value)] == ["type"]
        assert file.read() == "ab"
    assert list(numbers) == [0, 1, 2]
    assert [*read(pytest.importorskip("polars").LazyFrame({"a": [1]}))] == ["type"]


def test_what_looks_like_a_secret_is_not_kept():
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    frame = pandas.DataFrame({"notes": [token], "n": [1]})
    found = hold({"frame": frame, "password": "hunter-2-hunter-2", "line": f"x {token}"})
    kept = json.dumps([one.model_dump() for one in found])
    assert "hunter" not in kept
    assert token not in kept
    assert [one.name for one in found] == ["frame", "line"]


@pytest.mark.parametrize(
    "reported", [None, 1, [], {"x": None}, {"x": {"type": 1}}, {"x": {"type": "int", "shape": "a"}}]
)
def test_what_a_text_made_up_is_left_out(reported):
    assert read_held([{"held": reported}]) == ()


def test_an_exception_is_worded_without_its_own_code():
    odd = type("OddError", (Exception,), {"__str__": _loud, "__repr__": _loud, "args": 1})
    assert raised_words(KeyError("x")) == "KeyError: 'x'"
    assert raised_words(odd("a\nb")) == "OddError: a"
    assert raised_words(odd(object())) == "OddError"
    assert raised_words(None) == ""


async def test_the_sandbox_reads_what_the_kernel_reads():
    space: dict[str, Any] = {"orders": pandas.DataFrame(FRAME), "xs": [1, 2], "n": 1}
    code = "big = orders[orders['price'] > 1]\nxs.append(n)\nbig['price'].sum()"
    evidence = await RunsCleanly(copies=Variables(space).copies)(code, Task(text="x", form="code"))
    assert evidence.passed, evidence.shows
    exec(code, space)
    answer = space["big"]["price"].sum()
    own = hold({"": answer, "big": space["big"], "xs": space["xs"]})
    assert evidence.held == own
    assert all(isinstance(one, Held) and one.tells for one in own)
