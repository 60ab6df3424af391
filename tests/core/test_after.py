"""What is said of an accepted text once its cell ran: the same, what differs, what it did."""

import math
from typing import Any

import pytest

from ipyrefine.core.after import words
from ipyrefine.core.model import Difference, Held, Ran
from ipyrefine.core.same import changes, differ


def table(rows: int = 3, name: str = "df", text: str = "", **columns: Any) -> Held:
    """A table of columns, each by its sum, or by all that is read of it."""
    held = [
        Held(name=column, **(one if isinstance(one, dict) else {"type": "f", "total": one}))
        for column, one in columns.items()
    ]
    shape = (rows, len(held))
    return Held(name=name, type="pandas.DataFrame", shape=shape, columns=tuple(held), text=text)


def value(text: str, name: str = "x", type_: str = "int") -> Held:
    return Held(name=name, type=type_, text=text)


def items(text: str, name: str = "xs") -> Held:
    return Held(name=name, type="list", shape=(text.count(",") + 1,), text=text)


def said(shown: Held, now: Held) -> str:
    found = differ([shown], [now])
    return words(Ran(iteration=0, how="differs", differences=found)) if found else ""


@pytest.mark.parametrize(
    ("shown", "now", "sentence"),
    [
        (table(a="46655.1"), table(a="48210.4"),
         "sum of `a` in `df`: shown 46,655.10, now 48,210.40"),
        (table(a="7", name=""), table(a="1204", name=""), "sum of `a`: shown 7, now 1,204"),
        (table(a="1.0001"), table(a="1.0002"), "sum of `a` in `df`: shown 1.0001, now 1.0002"),
        (table(1187, a="1.0"), table(1204, a="2.0"), "`df`: shown 1,187 × 1, now 1,204 × 1"),
        (table(a="1.0"), table(b="1.0"), "columns of `df` differ"),
        (table(a={"type": "int64"}), table(a={"type": "object"}),
         "type of `a` in `df`: shown int64, now object"),
        (table(a={"type": "f", "missing": 3}), table(a={"type": "f", "missing": 1204}),
         "missing values of `a` in `df`: shown 3, now 1,204"),
        (table(9, a={"type": "s", "text": "1, 2"}), table(9, a={"type": "s", "text": "2, 1"}),
         "the start of `a` in `df` differs"),
        (value("16"), value("16.0", type_="float"), "`x`: shown 16, now 16.00"),
        (value("(1, 2)", type_="tuple"), value("(2, 1)", type_="tuple"),
         "`x`: shown (1, 2), now (2, 1)"),
        (table(a="1.0", text="x, y"), table(a="1.0", text="y, x"), "the start of `df` differs"),
        (value("'a'", type_="str"), Held(name="x", type="Odd"), "`x`: shown str, now Odd"),
        (items("[1, 2]"), items("[1, 2, 3]"), "`xs`: shown 2 items, now 3 items"),
        (value(repr("a" * 99), type_="str"), value(repr("b" * 99), type_="str"), "`x` differs"),
    ],
)  # fmt: skip
def test_what_differs_is_said_with_both_values(shown, now, sentence):
    assert said(shown, now) == sentence
    assert said(shown, shown) == said(now, now) == ""


@pytest.mark.parametrize("scale", [1e-3, 1.0, 46_655.1, 1e12, 1.2345e17])
def test_the_last_digits_of_floats_do_not_count(scale):
    near, far = repr(scale * (1 + 1e-12)), repr(scale * (1 + 1e-6))
    own = repr(scale)
    assert said(table(a=own), table(a=near)) == said(value(own), value(near)) == ""
    assert said(items(f"[{own}, 1]"), items(f"[{near}, 1]")) == ""
    assert said(value(own), value(far))
    assert said(table(a="0.0"), table(a="1e-14")) == ""
    assert said(value(repr(math.inf)), value(repr(-math.inf)))


@pytest.mark.parametrize(
    ("shown", "now"),
    [
        (items("['b', 'a']"), items("['a', 'b']")),
        (items("{'b': 1, 'a': 2}"), items("{'a': 2, 'b': 1}")),
        (table(2, "xs", a={"type": "s", "text": "'x', 'y'"}, b={"type": "f", "text": "1, 2"}),
         table(2, "xs", a={"type": "s", "text": "'y', 'x'"}, b={"type": "f", "text": "2, 1"})),
    ],
)  # fmt: skip
def test_items_in_another_order_are_as_shown(shown, now):
    found = differ([shown], [now])
    assert [one.kind for one in found] == ["order"]
    ran = Ran(iteration=0, how="same", results=2, differences=found)
    assert words(ran) == "ran: both results as shown, `xs` in another order"


@pytest.mark.parametrize(
    ("ran", "sentence"),
    [
        ({"how": "same", "results": 4}, "ran: all 4 results as shown"),
        ({"how": "same", "results": 1}, "ran: the result is as shown"),
        ({"how": "same"}, ""),
        ({"how": "same", "raised": "KeyError: 'a'"}, "ran: it raised KeyError: 'a', as shown"),
        ({"how": "moved"}, "ran: the notebook has moved on since it was checked"),
        ({"how": "moved", "files": ["a.csv"]}, "`a.csv` has changed since it was checked"),
        ({"how": "moved", "files": ["a", "b", "c"]},
         "`a`, `b`, 1 more have changed since it was checked"),
        ({"how": "varies", "differences": [Difference(kind="value")]},
         "ran: the answer changes from run to run"),
        ({"how": "varies", "differences": [Difference(kind="total", column="a", name="df")] * 2},
         "ran: 2 results change from run to run"),
        ({"how": "differs", "differences": [Difference(kind="raised", now="KeyError: 'a'")]},
         "it raised KeyError: 'a'; shown: it ran"),
        ({"how": "differs", "differences": [Difference(kind="head", name="df")] * 4},
         "the start of `df` differs; the start of `df` differs; 2 more"),
        ({"how": "first"}, ""),
        ({"how": "first", "raised": "KeyError: 'a'", "differences": [Difference(kind="new",
          name="x", now="1")]}, "ran: it raised KeyError: 'a'; `x` is new: 1"),
        ({"how": "first", "raised": "KeyError", "restored": ["x"]},
         "ran: it raised KeyError; `x` put back"),
    ],
)  # fmt: skip
def test_each_outcome_has_its_sentence(ran, sentence):
    assert words(Ran.model_validate({"iteration": 0, **ran})) == sentence


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (value("1"), value("2"), "`x`: 1 → 2"),
        (items("[1, 2]"), items("[1, 2, 3]"), "`xs`: 2 items → 3 items"),
        (table(a="1.0"), table(b="1.0"), "`df` is changed"),
        (table(a={"type": "int64"}), table(a={"type": "object"}),
         "type of `a` in `df`: int64 → object"),
        (table(a={"type": "f", "missing": 0}), table(a={"type": "f", "missing": 2}),
         "missing values of `a` in `df`: 0 → 2"),
        (table(a="1.0"), table(a="2.0"), "sum of `a` in `df`: 1.00 → 2.00"),
        (table(a={"type": "f", "text": "1, 2"}), table(a={"type": "f", "text": "2, 1"}),
         "`df` is changed"),
    ],
)  # fmt: skip
def test_what_a_first_run_changed_is_told_as_from_and_to(before, after, sentence):
    found = changes([before], [after])
    assert words(Ran(iteration=0, how="first", differences=found)) == f"ran: {sentence}"
    [new] = changes([], [after])
    assert words(Ran(iteration=0, how="first", differences=[new])).startswith(
        f"ran: `{after.name}` is new: "
    )
