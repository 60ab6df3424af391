"""A look at code from Python: on copies, as data and as text."""

import asyncio
import re

import numpy as np
import pandas as pd
import pytest

import ipyrefine
from ipyrefine.core.model import Table
from ipyrefine.errors import UsageError

ORDERS = pd.DataFrame({"id": range(6), "shop": list("ABACBD")})
SHOPS = pd.DataFrame({"shop": ["A", "B"], "town": ["Ulm", "Jena"]})
DATA = {"orders": ORDERS, "shops": SHOPS}
LOST = "2 of 6 rows of `orders` are gone in `m`: their `shop` (C, D) is not in `shops`."


def test_it_tells_the_rows_that_are_gone_and_the_answer_and_binds_nothing():
    found = ipyrefine.look("m = orders.merge(shops)\nm.head(1)", DATA)
    assert str(found).startswith(LOST)
    assert isinstance(found.answer, Table)
    assert found.answer.rows == (("0", "A", "Ulm"),)
    assert not found.error
    assert DATA.keys() == {"orders", "shops"}


def test_cells_run_one_after_the_other_on_one_snapshot():
    found = ipyrefine.look(["m = orders.merge(shops)", "len(m)"], DATA)
    assert found.answer.text == "4"
    assert LOST in str(found)


def test_what_was_done_before_an_error_is_told_after_it():
    found = ipyrefine.look("m = orders.merge(shops)\n1 / 0", DATA)
    assert str(found).splitlines()[:2] == ["ZeroDivisionError: division by zero (line 2)", LOST]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = (", "SyntaxError: '(' was never closed (line 1)"),
        ("!ls", "Not run, as only IPython can: !ls"),
        ("%pip install tabulate\n2 + 2", "Not run, as only IPython can: %pip install tabulate"),
        ("input()", "Not run: it asks for input, which checked code cannot get."),
        ("while True: pass", "Stopped: it did not end in 1 seconds."),
        ("", "It gives nothing."),
        ("total = 3", "total = 3"),
        ("total = 3\ntotal", "The answer: 3"),
    ],
)
def test_what_did_not_run_or_gives_nothing_ends_in_a_sentence(code, said):
    assert str(ipyrefine.look(code, {}, seconds=1)).splitlines()[0] == said


def test_values_of_an_array_that_are_missing_are_told_by_its_name():
    gaps = {"np": np, "prices": np.array([1.0, np.nan, 3.0])}
    assert "Not looked after here: 1 of 3 `prices` missing." in str(
        ipyrefine.look("prices.mean()", gaps)
    )


@pytest.mark.parametrize(
    ("code", "differs"),
    [
        ("import random\nx = random.random()", ["`x`"]),
        ("from random import Random\nRandom().random()", ["The answer"]),
        ("import numpy as np\nnp.random.default_rng().random(3)", ["The answer"]),
        ("import random\nrandom.seed(3)\nx = random.random()", []),
        ("picked = orders.sample(3, random_state=1)", []),
    ],
)
def test_what_is_drawn_without_a_seed_differs_from_run_to_run(code, differs):
    told = str(ipyrefine.look(code, DATA))
    assert re.findall("(.*) differs from run to run: no seed is set", told) == differs


def test_the_names_where_it_is_called_are_there_by_default():
    values = [1, 2, 3]  # noqa: F841 - the code names it
    assert ipyrefine.look("sum(values)").answer.text == "6"


async def test_it_can_be_called_while_an_event_loop_runs():
    assert ipyrefine.look("1 + 1", {}).answer.text == "2"
    assert await asyncio.sleep(0, "still running") == "still running"


def test_its_text_is_short_and_begins_with_what_has_to_be_known():
    text = str(ipyrefine.look("for n in range(900): print(n)\n1 / 0", {}))
    assert len(text) <= 2_000
    assert text.startswith("ZeroDivisionError")


@pytest.mark.parametrize("code", [[3], 3, None])
def test_code_that_is_no_text_is_refused(code):
    with pytest.raises(UsageError, match="look takes the code of a cell"):
        ipyrefine.look(code)
