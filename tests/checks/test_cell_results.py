"""A cell of the notebook is shown by what it defined and changed, before and after."""

from typing import Any

import pytest

from ipyrefine.checks.python import RunOnCopies, RunsCleanly
from ipyrefine.core.model import Evidence, Task
from ipyrefine.kernel.variables import Variables

CELL = Task(text="Do it.", form="code")


async def shown(text: str, **variables: Any) -> dict[str, tuple[str, str]]:
    evidence = await ran(text, **variables)
    assert {row.source for row in evidence.rows} <= {"cell"}
    return {row.call: (row.before, row.result) for row in evidence.rows}


async def ran(text: str, **variables: Any) -> Evidence:
    return await RunOnCopies(files=Variables(variables).files)(text, CELL)


async def test_a_cell_shows_names_that_are_new_and_names_that_changed() -> None:
    text = "count += 2\ntop = {'a': 1}\nkept = kept\nimport math\ndef f(): ...\n_hidden = 1"
    assert await shown(text, count=3, kept=[1]) == {"count": ("3", "5"), "top": ("", "{'a': 1}")}


async def test_a_value_changed_in_place_and_a_long_one_are_shown() -> None:
    assert await shown("xs.append(4); many = list(range(500))", xs=[3]) == {
        "xs": ("[3]", "[3, 4]"),
        "len(many)": ("", "500"),
    }


async def test_a_frame_is_shown_by_its_shape_and_the_values_it_lacks() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k": [1, 2, 3], "v": [1.0, 2.0, 3.0]})
    other = pandas.DataFrame({"k": [1, 2], "w": [5.0, 6.0]})
    text = "inner = df.merge(other)\nleft = df.merge(other, how='left')\ndf = df[df.v > 1]"
    assert await shown(text, df=frame, other=other) == {
        "df.shape": ("(3, 2)", "(2, 2)"),
        "inner.shape": ("", "(2, 3)"),
        "left.shape": ("", "(3, 3)"),
        "int(left.isna().sum().sum())": ("", "1"),
    }


async def test_a_secret_is_not_shown() -> None:
    assert await shown("password = 'hunter2secret'; n = 1", x=1) == {"n": ("", "1")}


async def test_a_cell_that_fails_shows_nothing() -> None:
    assert (await ran("top = 1\n1 / 0", x=1)).rows == ()


@pytest.mark.parametrize(
    ("forged", "count"),
    [
        ("[['x', '', '1']]", 1),  # that a cell made it up, nobody can tell
        ("1", 0),
        ("[[1, 2, 3]]", 0),
        ("[['x', '', 'not a value(']]", 0),
        ("[['def', '', '1']]", 0),
        ("{}", 0),
    ],
)
async def test_a_forged_report_shows_nothing_but_values(forged: str, count: int) -> None:
    text = (
        "import sys\nframe = sys._getframe(1)\n"
        "while frame and 'write_event' not in frame.f_locals: frame = frame.f_back\n"
        f"frame.f_locals['write_event'](changes={forged})"
    )
    assert len((await RunsCleanly()(text, CELL)).rows) == count
