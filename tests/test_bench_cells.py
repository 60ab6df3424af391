"""The benches of the next cell and of the broken one: their cases, how they run and compare."""

import builtins
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "bench"))

pytest.importorskip("pandas")

import fix
import frames
import measure
import numpy as np
import pandas as pd
from equality import same
from notebook_cells import run_cells

from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.commands import USAGE

TASKS = frames.load("own", Path())
BROKEN = fix.load()
CASE = frames.Case(
    name="own",
    text="The sum of `qty_oh` in `stock`, in `result`.",
    setup="import pandas as pd\nstock = pd.DataFrame({'qty_oh': [1, 2]})\n",
    solution="result = stock['qty_oh'].sum()\n",
    result="result",
    ordered=False,
)
CELL = fix.Case(
    name="own",
    kind="name error",
    error="NameError",
    setup=["values = [1, 2]\n"],
    cell="total = sum(value)\n",
    fix="total = sum(values)\n",
    check="assert total == 3\n",
)


def block(code):
    return f"```python\n{code}\n```"


def replies(path, *answers):
    return measure.Replies("m", path, ask=bool(answers), choose=lambda _: ScriptedModel(answers))


# The cases. Their code is run here, as it is the project's own.


@pytest.mark.parametrize("case", TASKS, ids=lambda case: case.name)
def test_a_task_names_its_variables_and_its_solution_leaves_the_result(case):
    if "polars" in case.setup:
        pytest.importorskip("polars")
    names = case.namespace
    before = dict(names)
    exec(case.solution, names)
    assert case.result in names
    assert case.result in before or f"`{case.result}`" in case.text
    assert frames.find_variables(case).found
    assert not frames.find_variables(case, ["all"]).found


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_cell_fails_as_it_says_and_only_its_fix_passes(case):
    setup = "\n".join(case.setup)
    with pytest.raises(getattr(builtins, case.error)) as failed:
        run(setup, case.cell)
    assert failed.typename == case.error
    run(setup, case.fix, case.check)
    with pytest.raises((AssertionError, NameError, KeyError)):
        run(setup, fix.swallow(case.cell), case.check)


def run(*cells):
    names = {"__name__": "__main__"}
    for cell in cells:
        exec(cell, names)


def test_there_are_enough_cases_of_every_kind():
    kinds = [case.kind for case in BROKEN]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "name error": 5,
        "wrong column": 11,
        "wrong dtype": 9,
        "shape mismatch": 5,
        "missing import": 5,
        "off by one": 5,
    }
    assert len({case.name for case in TASKS}) == len(TASKS) >= 20


def test_a_puzzle_brings_its_frame_and_the_first_of_its_solutions():
    question = "Next ones are harder.\n\n**22.** Drop repeats of `df`."
    solution = "df = pd.DataFrame({'A': [1, 1]})\n\ndf[df['A'] > 0]\n\n# or\ndf.drop_duplicates()"
    case = frames._puzzle_case({"question": question, "solution": solution})
    assert case.text == "Drop repeats of `df`.\n\nAssign the result to `result`."
    assert case.namespace["df"]["A"].tolist() == [1, 1]
    assert case.solution == "result = df[df['A'] > 0]\n"
    plot = {"question": "**56.** Plot it.", "solution": "%matplotlib inline"}
    assert frames._puzzle_case(plot) is None


# How results are compared.

FRAME = pd.DataFrame({"a": [1, 2], "b": [0.1 + 0.2, 5.0]})
SERIES = pd.Series([1.5, 2.5], index=["x", "y"])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (FRAME[["b", "a"]], FRAME),
        (FRAME.iloc[::-1], FRAME),
        (FRAME.astype({"a": "int8"}).round(9), FRAME),
        (SERIES[::-1].rename("mean").rename_axis("who"), SERIES),
        (SERIES.set_axis(pd.CategoricalIndex(["x", "y"], categories=["y", "x"])), SERIES),
        (pd.Series([1], index=[pd.Timestamp("2024-05-01").date()]),
         pd.Series([1.0], index=pd.to_datetime(["2024-05-01"]))),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (np.float64(3), 3),
        (float("nan"), np.nan),
        ({"a": 0.3}, {"a": 0.1 + 0.2}),
        ([(5, np.int64(7))], [(5, 7)]),
    ],
)  # fmt: skip
def test_what_a_person_takes_for_the_same_is_the_same(value, wanted):
    assert same(value, wanted)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (FRAME.assign(b=[0.3, 5.1]), FRAME),
        (FRAME.assign(c=1), FRAME),
        (FRAME["b"], FRAME),
        (SERIES.to_frame(), SERIES),
        (SERIES.rename({"x": "z"}), SERIES),
        (SERIES.iloc[:1], SERIES),
        (np.array([[1.0, 2.0]]), np.array([1.0, 2.0])),
        ([1.0, 2.0], np.array([1.0, 2.0])),
        ({"a": 1, "b": 2}, {"a": 1}),
        ("3", 3),
        (["b", "a"], ["a", "b"]),
        (None, 0),
    ],
)
def test_another_value_shape_or_kind_is_not_the_same(value, wanted):
    assert not same(value, wanted)


def test_the_order_of_rows_counts_where_the_task_asks_for_one():
    assert not same(SERIES[::-1], SERIES, ordered=True)
    assert not same(FRAME.iloc[::-1], FRAME, ordered=True)
    assert same(FRAME.iloc[::-1].iloc[::-1], FRAME, ordered=True)


def test_frames_of_polars_are_compared_with_each_other_alone():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    assert same(frame.reverse(), frame)
    assert not same(frame.reverse(), frame, ordered=True)
    assert not same(frame.with_columns(a=pl.col("a") + 1), frame)
    assert not same(pd.DataFrame(frame.to_dict(as_series=False)), frame)
    assert same(frame["b"], pl.Series([0.5, 1.5]))


# How cells are run.


async def test_cells_share_a_namespace_and_report_the_first_error():
    assert await run_cells(["x = 2", "%matplotlib inline\ny = x * 3", "assert y == 6"]) == (3, "")
    assert await run_cells(["x = 2", "y = z", "x = 3"]) == (1, "NameError: name 'z' is not defined")
    done, error = await run_cells(["x = 2", "raise SystemExit(0)", "x = 3"])
    assert (done, error) == (1, "SystemExit: 0")
    done, error = await run_cells(["x = 2", "import os; os._exit(0)", "x = 3"])
    assert done == 1
    assert error


async def test_the_arms_differ_by_what_the_prompt_says_of_the_variables(tmp_path):
    path = tmp_path / "kept.jsonl"
    model = replies(path, block("result = stock['qty'].sum()"), block("result = len(stock) + 1"))
    row = await frames.run_case(CASE, model)
    assert model.asked == 2
    assert row.without.result == (False, False, "KeyError: 'qty'")
    assert row.known.result == (True, True, "")
    tables = frames.report([row], "own")
    assert (
        "| runs | 0 of 1: 0.0 % (0.0 to 0.0) | 1 of 1: 100.0 % (100.0 to 100.0) | 100.0" in tables
    )
    assert "| own | KeyError: 'qty' | right |" in tables
    assert (await frames.run_case(CASE, replies(path)))[1:] == row[1:]


async def test_a_cell_without_the_result_runs_and_is_not_right():
    result = await CASE.run("total = 3")
    assert (result.runs, result.right, result.error) == (
        True,
        False,
        "NameError: name 'result' is not defined",
    )
    assert await CASE.run("") == (False, False, "NameError: name 'result' is not defined")


# The broken cell in a shell.


async def test_a_re_ask_shows_the_cell_and_its_traceback_without_this_machine():
    case = CELL._replace(setup=["import pandas as pd"], cell="pd.DataFrame({'a': [1]})['b']\n")
    async with fix.failed_cell(case, ScriptedModel([])) as (_, error):
        prompt = fix.reask_request(case, error).messages[0].content
    assert f"```python\n{case.cell}```" in prompt
    assert 'File "<ipython-input-2-' in prompt
    assert 'File "pandas/core/frame.py"' in prompt
    assert "KeyError: 'b'" in prompt
    assert "run_code" not in prompt
    assert str(Path(sys.prefix)) not in prompt


async def test_a_cell_that_fails_above_the_broken_one_is_a_fault_of_the_case():
    with pytest.raises(AssertionError, match="own: a cell above it fails"):
        async with fix.failed_cell(CELL._replace(setup=["1 / 0"]), ScriptedModel([])):
            pass


async def test_a_command_that_cannot_be_used_ends_the_bench():
    async with fix.failed_cell(CELL, ScriptedModel([])) as (shell, _):
        with pytest.raises(UsageError):
            await fix.fix(shell, "m --no-such-option")


@pytest.mark.skipif("fix" not in USAGE, reason="needs the command %refine fix")
async def test_a_repair_pays_for_its_own_calls_and_is_run_after_the_cells_above(tmp_path):
    path = tmp_path / "kept.jsonl"
    answers = [block("total = 4"), block("total = sum(valeus)"), block(CELL.fix)]
    row = await fix.run_case(CELL, replies(path, *answers))
    assert row.reask.result == (True, False, "AssertionError: ")
    assert row.fix.result == (True, True, "")
    assert row.fix.ran
    assert (row.reask.usage.calls, row.fix.usage.calls) == (1, 2)
    assert "| repaired | 0 of 1: 0.0 % (0.0 to 0.0) | 1 of 1" in fix.report([row], "m")
    again = await fix.run_case(CELL, replies(path))
    assert (again.reask.result, again.fix.result) == (row.reask.result, row.fix.result)
