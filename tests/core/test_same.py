"""The comparer: how two results stand to each other, and what has a revision read again."""

from typing import Any

import pytest

from ipyrefine.core.model import Effect, Fault, FirstRows, Held, Printed
from ipyrefine.core.run import Iteration
from ipyrefine.core.same import is_new, same
from ipyrefine.core.table import Result

MORE = "x = x * 2 - 3\n" * 5
CODE = "def f(x, y=1):\n    return x + y\n\nf(2)"
COLUMN = Held(name="n", type="int64")
HELD = Held(type="DataFrame", shape=(1, 1), columns=(COLUMN,), text="1")
GONE = Effect(kind="gone", name="b", of="a", count=1)
READ: dict[str, Any] = {"held": (HELD,), "effects": (GONE,)}


def shown(text: str = CODE, **found: Any) -> Iteration:
    evidence = Result(name="run", passed=True, basis="run", **{**READ, **found})
    return Iteration(number=0, text=text, evidence=(evidence,))


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (shown(CODE.replace("+", "-")), False),
        (shown(held=(HELD.replace(text="2"),), effects=()), False),
        (shown(CODE.replace("y=1", "y=2")), True),
        (shown(f"{CODE}\n{MORE}"), False),
        (shown(f"{CODE}\n{MORE}", held=(HELD.replace(text="2"),)), True),
        (shown(effects=(GONE, GONE.replace(column="n"))), True),
        (shown(conditions=(FirstRows(name="a", rows=5, of=9),)), True),
        (shown(held=(HELD.replace(type="Series"),)), True),
        (shown(held=(HELD.replace(columns=(COLUMN, COLUMN.replace(name="m"))),)), True),
        (shown(held=(HELD.replace(columns=(COLUMN.replace(type="float64"),)),)), True),
    ],
    ids=[
        "an edit",
        "less",
        "signature",
        "text, same result",
        "text",
        "effect",
        "condition",
        "type",
        "column",
        "dtype",
    ],
)
def test_a_revision_is_new_where_it_shows_what_the_text_before_did_not(text, is_it):
    assert is_new(text, shown()) is is_it


SORTED = HELD.replace(text="{'a', 'b'}", type="list", columns=())


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("same", {}, {}),
        ("same", {"held": (HELD.replace(text="0.3"),)},
         {"held": (HELD.replace(text="0.30000000000000004"),)}),
        ("other names", {}, {"held": (HELD.replace(columns=(COLUMN.replace(name="m"),)),)}),
        ("other names", {}, {"held": (HELD.replace(name="total"),)}),
        ("other order", {"held": (SORTED,)}, {"held": (SORTED.replace(text="{'b', 'a'}"),)}),
        ("other effect", {}, {"effects": ()}),
        ("differs", {}, {"held": (HELD.replace(text="2"),)}),
        ("differs", {}, {"held": ()}),
        ("differs", {}, {"outputs": (Printed(text="2"),)}),
        ("one fails", {}, {"faults": (Fault(raised="KeyError"),)}),
    ],
)  # fmt: skip
def test_two_results_are_the_same_or_differ_in_a_way_that_is_named(kind, one, other):
    assert same(*(shown(**found).evidence[0] for found in (one, other))) == kind
