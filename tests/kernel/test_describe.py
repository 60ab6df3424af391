"""How a variable is described: by its structure, bounded, without its code and its secrets."""

import collections
import dataclasses
import datetime
import enum
import functools
import os
import re
import sqlite3
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy
import pandas
import pydantic
import pytest

from ipyrefine.kernel.describe import describe, label

COUNTED: list[str] = []


def count(*_: Any) -> Any:
    COUNTED.append("called")
    raise SystemExit


def hostile_values() -> dict[str, Any]:
    """Objects all of whose own code is out for harm; pytest must not meet them itself."""

    class Hostile:
        __repr__ = __str__ = __len__ = __iter__ = __bool__ = __eq__ = __hash__ = count
        __getattr__ = __format__ = __reduce__ = __dir__ = __sizeof__ = count
        __class__ = property(count)  # type: ignore[assignment]
        shape = dtype = dtypes = columns = property(count)

        def __init__(self) -> None:
            self.stored = 1

    class HostileDict(dict[str, int]):
        __repr__ = __len__ = __iter__ = items = keys = values = __contains__ = count

    class HostileList(list[int]):
        __repr__ = __len__ = __iter__ = __getitem__ = count

    class HostileStr(str):
        __repr__ = __str__ = __len__ = count

    class HostileMeta(type):
        __repr__ = __str__ = __instancecheck__ = __subclasscheck__ = count

        def __getattribute__(cls, name: str) -> Any:
            return count()

    class HostileClass(metaclass=HostileMeta):
        pass

    class HostileModule(ModuleType):
        __getattribute__ = count

    class HostileZone(datetime.tzinfo):
        __repr__ = __str__ = tzname = utcoffset = dst = count

    tagged, replaced = (pandas.DataFrame({"a": [1]}) for _ in range(2))
    tagged.attrs["x"] = Hostile()
    replaced.__dict__["head"] = count

    def with_hostile_default(x: Any = Hostile()) -> None:  # noqa: B008
        pass

    return {
        "object": Hostile(),
        "dict": HostileDict(a=1),
        "list": HostileList([1]),
        "str": HostileStr("a"),
        "class": HostileClass,
        "object of the class": object.__new__(HostileClass),
        "module": HostileModule("x"),
        "slice": slice(Hostile()),
        "zone of a time": [datetime.datetime(2026, 1, 1, tzinfo=HostileZone())],
        "attribute of a frame": tagged,
        "method of a frame": replaced,
        "in a list": [Hostile(), HostileStr("x")],
        "in a dict": {"a": Hostile()},
        "in a default": with_hostile_default,
        "in a default dict": collections.defaultdict(Hostile, {1: HostileList([1])}),
    }


def test_no_code_of_the_user_is_called(subtests):
    for name, value in hostile_values().items():
        with subtests.test(name):
            COUNTED.clear()
            for values in (False, True):
                assert describe("x", value, values=values).startswith("x (")
            assert label("x", value).startswith("x")
            assert COUNTED == []


def test_cells_of_a_frame_are_shown_without_their_code():
    class Mute:
        __repr__ = __str__ = __eq__ = __hash__ = __lt__ = count

    COUNTED.clear()
    text = describe("df", pandas.DataFrame({"a": [Mute()]}), values=True)
    assert text.endswith("first rows: a\nMute()")
    assert "distinct" not in describe("df", pandas.DataFrame({"a": [Mute()] * 9}), values=True)
    assert COUNTED == []


def test_a_frame_a_series_an_array_and_a_module_are_described():
    df = pandas.DataFrame({"n": [1, 2], "when": pandas.to_datetime(["2024-01-01"] * 2)})
    assert describe("df", df.set_index("when")).startswith(
        "df (pandas DataFrame, 2 rows × 1 columns):\nn int64 (2 distinct)\nindex: when Datetime"
    )
    long = pandas.DataFrame({f"c{n}": range(1_204) for n in range(8)})
    assert label("df", long) == "df (1,204 × 8)"
    dated = pandas.Series([1.5], index=pandas.to_datetime(["2024-01-01"]))
    assert "float64\nindex: DatetimeIndex datetime64" in describe("s", dated)
    named = pandas.Series([1.5], name="p")
    assert describe("s", named) == "s (pandas Series of length 1):\np float64"
    assert describe("a", numpy.zeros((3, 4))) == "a (ndarray of shape (3, 4)):\nfloat64"
    assert "first items: [0, 1, 2]" in describe("a", numpy.arange(3), values=True)
    assert describe("np", numpy) == "np (module numpy)"


LEVELS: dict[str, list[Any]] = {
    "city": ["Oslo", "oslo", "Bergen"],
    "paid": [True, False, True],
    "rate": [2.5, float("nan"), 1.0],
    "note": ["sk-proj-" + "a1B2" * 12] * 3,
    "password": ["hunter2"] * 3,
    "gone": [None, None, None],
}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_all_values_of_columns_with_few_are_shown_among_values_alone(library):
    frames = pytest.importorskip(library)
    data = {name: 4 * values for name, values in LEVELS.items()} | {"n": [*range(12)]}
    df = frames.DataFrame(data | {"many": [*range(11), -5]})
    text = describe("df", df, values=True).splitlines()[1]
    assert "(3 distinct: 'Bergen', 'Oslo', 'oslo')" in text
    assert "(1 distinct: [secret])" in text
    assert f"(12 distinct: {', '.join(map(str, range(12)))})" in text
    assert "Oslo" not in describe("df", df)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_is_described_by_what_is_missing_distinct_doubled_and_formed(library):
    frames = pytest.importorskip(library)
    rows = {
        "day": ["2024-01-01T00:00:00Z", "2024-02-11T08:00:00Z", None, "2024-02-11T08:00:00Z"],
        "eur": ["1.50", "12.00", "7.25", "12.00"],
        "town": ["Zwolle 1", "Zwolle 2", "Oss 3", "Zwolle 2"],
        "n": [1, 2, 3, 2],
    }
    _, columns, *more = describe("df", frames.DataFrame(rows)).splitlines()
    facts = re.findall(r"\w+ \w+ \((.*?)\)", columns)
    assert facts == [
        "1 missing, 2 distinct, like 0000-00-00T00:00:00Z",
        "3 distinct",
        "3 distinct",
        "3 distinct",
    ]
    assert more == ["1 row doubled word for word"]
    assert "Zwolle" not in columns


def test_a_connection_is_described_by_its_dialect_and_tables():
    con = sqlite3.connect(":memory:")
    con.row_factory = count
    con.execute("CREATE TABLE orders (id INTEGER, who TEXT)")
    COUNTED.clear()
    text = "con (Connection):\nSQLite\ntable orders: id INTEGER, who TEXT"
    assert describe("con", con) == text
    assert COUNTED == []
    con.close()


def test_a_polars_frame_is_described():
    polars = pytest.importorskip("polars")
    df = polars.DataFrame({"n": [1, 2], "password": ["a", "b"]})
    columns = "n Int64 (2 distinct), password String (2 distinct)"
    assert describe("df", df) == f"df (polars DataFrame, 2 rows × 2 columns):\n{columns}"
    assert describe("df", df, values=True).endswith("first rows: n | password\n1 | 'a'\n2 | 'b'")


@dataclasses.dataclass
class Point:
    """A point."""

    x: float
    tags: list[str] | None = None
    api_key: str = "abc"


class Person(pydantic.BaseModel):
    name: str
    age: int = 3
    password: str = "abc"


def clean(frame: pandas.DataFrame, *, strict: bool = True, mode: str = "fast") -> pandas.DataFrame:
    """Drop rows without a price.

    Not shown.
    """
    return frame


def test_fields_of_a_dataclass_and_a_model_are_described():
    fields = "Point (class):\nx: float, tags: list | None"
    assert describe("Point", Point) == fields
    assert describe("Point", Point, values=True) == f"{fields}\nA point."
    assert describe("p", Point(1.5)) == "p (Point):\nx: float\ntags: NoneType"
    assert describe("p", Point(1.5), values=True) == "p (Point):\nx: 1.5\ntags: None"
    assert describe("Person", Person) == "Person (class):\nname: str, age: int"
    assert describe("p", Person(name="Ann")) == "p (Person):\nname: str\nage: int"


def test_a_function_is_described_by_its_signature_and_among_values_by_its_first_line():
    head = "(frame: DataFrame, *, strict: bool = True, mode: str = …) -> DataFrame"
    assert describe("clean", clean) == f"clean (function):\n{head}"
    whole = f"clean (function):\n{head}\nDrop rows without a price."
    assert describe("clean", clean, values=True) == whole
    assert label("clean", clean) == "clean()"


def test_a_collection_is_described_by_its_length_and_element_types():
    for value, types in (
        ([{"a": 1}, {"a": "x"}], "list[dict[str, int] | dict[str, str]]"),
        ({"a": [1.5]}, "dict[str, list[float]]"),
        ((1, "a"), "tuple[int | str]"),
        ({1}, "set[int]"),
        (collections.OrderedDict(a=1), "OrderedDict[str, int]"),
    ):
        assert describe("x", value).endswith(f" of length {len(value)}):\n{types}")


def test_a_description_is_short_whatever_the_value():
    nested: list[Any] = []
    nested.append(nested)
    huge = {
        "many": list(range(10**6)),
        "n": 10**5000,
        "s": "é" * 9_999,
        "wide": pandas.DataFrame({f"column {n}": [n] for n in range(3_000)}),
        "long": pandas.DataFrame({"x" * 10_000: ["y" * 10_000]}),
        "nested": nested,
        "args": eval(f"lambda {', '.join(f'a{n}' for n in range(500))}: 0"),
    }
    for name, value in huge.items():
        most = {"s": 4_100, "wide": 1_520, "long": 1_520}.get(name, 820)
        assert all(len(describe(name, value, values=values)) < most for values in (False, True))


def connect() -> None:
    """Connect with sk-zzzzzzzzzzzz."""


SECRETS = {
    "environment": os.environ,
    "copied environment": {"PATH": "zzz", "HOME": "zzz", "USER": "zzz"},
    "deep": [{"a": {"token": "zzz"}}],
    "default": eval("lambda token='zzz', key='zzz', x='sk-zzzzzzzzzzzz': 0"),
    "column": pandas.DataFrame({"x": ["sk-zzzzzzzzzzzz"]}),
    "series": pandas.Series(["sk-zzzzzzzzzzzz"], name="x"),
    "field": Point(1.0, api_key="zzz"),
    "model": Person(name="Ann", password="zzz"),
    "secret string": pydantic.SecretStr("zzz"),
    "module": ModuleType("secrets"),
    "bytes": b"sk-zzzzzzzzzzzz",
    "docstring": connect,
}


def test_a_secret_inside_a_variable_is_not_shown():
    for name, value in SECRETS.items():
        for values in (False, True):
            assert "zzz" not in describe("x", value, values=values), name


HELD = {"first": ["second", 3_333], "more": datetime.date(2031, 1, 1)}


class Region(enum.Enum):
    FIRST = "second"


@dataclasses.dataclass
class Order:
    """Of the second."""

    region: Literal["second"] = "second"
    amount: "Literal[3333]" = 3333  # type: ignore[assignment]


def priced(
    region: Literal["first", "second"] = "second",
    tagged: Annotated[int, "second"] = 3_333,
    told: "second, 3333" = None,  # type: ignore  # noqa
    held: Any = HELD,
) -> None:
    """Return 3333 for the second."""


STRUCTURES = {
    **{"dict": HELD, "list": [HELD], "text": "second", "function": priced},
    **{"enum": Region, "member": Region.FIRST, "dataclass": Order, "object": Order()},
    "frame": pandas.DataFrame({"c": ["second", "3333"]}),
    "levels": pandas.Series(["second"], dtype="category"),
    "levels of an index": pandas.CategoricalIndex(["second"]),
    "fill value": pandas.DataFrame({"c": pandas.arrays.SparseArray([3333], fill_value=3333)}),
    "lambda": eval("lambda x='second', *, y=3333: x"),
    "partial": functools.partial(priced, "second"),
    "module": ModuleType("m", "Of the second."),
}


def test_structure_holds_no_value():
    for name, held in STRUCTURES.items():
        text = describe("x", held)
        assert not any(word in text for word in ("first", "second", "3333", "2031")), name


def test_levels_of_a_polars_column_are_values():
    polars = pytest.importorskip("polars")
    kind = polars.Enum(["second"])
    for dtype in (kind, polars.List(kind)):
        assert "second" not in describe("df", polars.DataFrame(schema={"c": dtype}))
