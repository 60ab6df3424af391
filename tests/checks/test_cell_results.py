"""A cell of the notebook is shown by what it defined and changed, before and after."""

from typing import Any

import pytest

from ipyrefine.checks.python import RunOnCopies, RunsCleanly
from ipyrefine.core.model import Task
from ipyrefine.core.table import Evidence
from ipyrefine.kernel.variables import Variables

CELL = Task(text="Do it.", form="code")


async def shown(text: str, **variables: Any) -> dict[str, tuple[str, str]]:
    return {row.call: (row.before, row.result) for row in (await ran(text, **variables)).rows}


async def ran(text: str, **variables: Any) -> Evidence:
    return await RunOnCopies(copies=Variables(variables).copies)(text, CELL)


async def test_a_cell_shows_names_that_are_new_or_changed_and_no_secret() -> None:
    text = "count += 2\ntop = {'a': 1}\nkept = kept\nimport math\ndef f(): ...\n_hidden = 1"
    secret = "password = 'hunter2secret'\nxs.append(4)\nmany = list(range(500))"
    assert await shown(f"{text}\n{secret}", count=3, kept=[1], xs=[3]) == {
        "count": ("3", "5"),
        "top": ("", "{'a': 1}"),
        "xs": ("[3]", "[3, 4]"),
    }


async def test_short_series_and_numbers_are_shown_whole_and_what_the_task_names_first() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    text = (
        "step = df[df.v > 0]\nlong = pandas.Series(range(99))\nper_k = step.groupby('k').v.sum()\n"
        "on_days = per_k.set_axis(pandas.to_datetime(['2026-01-02', '2026-01-05']))\n"
        "total, counts, day = df.v.sum(), df.v.to_numpy(), on_days.index.to_numpy()[0]"
    )
    check = RunOnCopies(copies=Variables({"df": frame, "pandas": pandas}).copies)
    evidence = await check(text, Task(text="Sum `v` of `df` by `k`, as `per_k`.", form="code"))
    assert [(row.call, row.result) for row in evidence.rows] == [
        ("per_k.to_dict()", "{'a': 4, 'b': 2}"),
        ("on_days.tolist()", "[4, 2]"),
        ("total.item()", "6"),
        ("counts.tolist()", "[1, 2, 3]"),
    ]


async def test_a_cell_that_fails_shows_nothing() -> None:
    assert (await ran("top = 1\n1 / 0", x=1)).rows == ()


@pytest.mark.parametrize(
    ("forged", "count"),
    [
        ("[['x', '', '1']]", 1),  # that a cell made it up, nobody can tell
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
