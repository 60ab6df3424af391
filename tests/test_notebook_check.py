"""`ipyrefine check`: a notebook is run for real, and compared with what is saved in it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from ipyrefine import cli
from ipyrefine.core.model import Setup, Task
from ipyrefine.core.points import with_ids
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stored import OLDEST, VERSION
from ipyrefine.core.testing import read_tests
from ipyrefine.notebook_check import check, check_records
from ipyrefine.session.record import MIME, bundle

v4: Any = nbformat.v4
JOIN = "m = orders.merge(shops)\nlen(m)"
SETUP = """import datetime, random, time
import pandas as pd
import matplotlib.pyplot as plt
orders = pd.DataFrame({"id": range(6), "shop": list("ABACBD")})
shops = pd.DataFrame({"shop": ["A", "B"]})
class Thing: pass"""


def printed(text: str) -> Any:
    return v4.new_output("stream", name="stdout", text=text)


def value(text: str, **more: str) -> Any:
    kinds = {name.replace("_", "/"): one for name, one in more.items()}
    return v4.new_output("execute_result", data={"text/plain": text, **kinds}, execution_count=1)


def raised(name: str, words: str) -> Any:
    return v4.new_output("error", ename=name, evalue=words, traceback=[])


# Each cell with what is saved, its tags, and what has to come of it.
CELLS = [
    (SETUP, [], (), "as saved"),
    ("1 + 1", [value("2")], (), "as saved"),
    ("1 / 3", [value("0.33333333333333337")], (), "as saved"),
    ("Thing()", [value("<__main__.Thing at 0x7f00deadbeef>")], (), "as saved"),
    ("print('a'); print('b')", [printed("a\n"), printed("b\n")], (), "as saved"),
    ("shops", [value("  shop\n0    A\n1    B", text_html="<table>old</table>")], (), "as saved"),
    ("2 + 2", [value("5")], (), "differs"),
    ("'one'", [printed("one\n")], (), "differs"),
    ("10 ** 3", [value("1001")], (), "differs"),
    ("[2, 1]", [value("[1, 2]")], (), "differs"),
    ("print('took 12 s')", [printed("took 13 s\n")], (), "differs"),
    ("random.random()", [value("0.5")], (), "chance"),
    ("print(*{'p', 'q', 'r', 's', 't'})", [printed("p q r s t\n")], (), "chance"),
    ("start = time.time()\ndatetime.date.today().year", [value("1999")], (), "chance"),
    ("print(int(start / 1e7))", [printed("99\n")], (), "chance"),
    ("undefined", [], (), "failed"),
    ("undefined", [raised("NameError", "name 'undefined' is not defined")], (), "as saved"),
    ("1 / 0", [], ("raises-exception",), "nothing saved"),
    ("3", [value("4")], ("nbval-ignore-output",), "as saved"),
    ("3", [value("4")], ("skip-execution",), "not run"),
    ("%pip install nothing", [], (), "not run"),
    ("%%refine\nWrite it.", [], (), "not run"),
    ("input()", [value("'x'")], (), "not run"),
    (JOIN, [value("4")], (), "as saved"),
]


def write(path: Path, cells: list[tuple[str, list[Any], tuple[str, ...], str]]) -> Path:
    made = v4.new_notebook()
    for source, outputs, tags, _ in cells:
        cell = v4.new_code_cell(source, outputs=outputs, execution_count=1)
        cell.metadata["tags"] = list(tags)
        made.cells.append(cell)
    made.cells.append(v4.new_code_cell("'never'"))
    nbformat.write(made, path)
    return path


async def test_each_cell_is_told_by_how_what_it_gives_stands_to_what_is_saved(
    tmp_path, warm_kernels
):
    found = await check(write(tmp_path / "x.ipynb", CELLS))
    told = [(cell[0], one.state, one.why) for cell, one in zip(CELLS, found.cells, strict=False)]
    wanted = [(source, state) for source, *_, state in CELLS]
    assert [(source, state) for source, state, _ in told] == wanted, told
    assert found.cells[-1].state == "never run"
    assert not found.holds
    assert "    2 of 6 rows of `orders` are gone in `m`" in str(found)
    assert "cell 7: differs (saved “5”, now “4”)" in str(found)
    assert "cell 16: failed (NameError: name 'undefined' is not defined)" in str(found)


def test_the_command_prints_what_differs_and_ends_with_the_status(tmp_path, capsys, warm_kernels):
    path = write(tmp_path / "x.ipynb", [("2 + 2", [value("4")], (), "")])
    assert cli.main(["check", str(path)]) == 0
    assert "1 as saved, 1 never run" in capsys.readouterr().out
    write(path, [("2 + 2", [value("5")], (), "")])
    assert cli.main(["check", str(path), "--json"]) == 1
    [one] = json.loads(capsys.readouterr().out).values()
    assert one["cells"][0]["state"] == "differs"
    assert cli.main(["check", str(tmp_path / "none.ipynb")]) == 2


# The record of a run


HALF = "def half(x):\n    return (x or 0) / 2"
TEST = 'def test_nothing():\n    """Of nothing it is 0."""\n    assert half(0) == 0\n'
BOOM = "open('owned', 'w').write('x')\n"


def record(text: str = HALF, task: str = "Write half. half(4) == 2", test: str = "") -> Any:
    setup = Setup(task=Task(text=task, form="code"), model="m", judge="critic")
    points = {one.id: one for one in with_ids((), read_tests(test))}
    texts = (Iteration(number=0, text=text),)
    return bundle(Run(setup=setup, iterations=texts, points=points), cell="held")


@pytest.mark.parametrize(("shown", "below", "state", "why"), [
    (record(test=TEST), HALF, "holds", ""),
    (record(), f"%%time\n{HALF}", "holds", ""),
    (record(), HALF.replace("/ 2", "/ 3"), "failed", "half(4): expected 2"),
    (record("def half(x): return x / 2 or 1", test=TEST), None, "failed", "assert"),
    (record("def half(x): return rate * x"), None, "not run", "rate"),
    (record(task="Write half."), None, "not run", "no examples"),
    ({MIME: {"version": VERSION, "iterations": 1}}, None, "failed", "damaged"),
    ({MIME: {"version": OLDEST - 1}}, None, "not run", "another version"),
    (record(BOOM + HALF, test=TEST.replace("    assert", f"    {BOOM}    assert")),
     None, "holds", ""),
])  # fmt: skip
def test_the_examples_and_tests_of_a_record_are_tried_again_on_what_its_cell_holds(
    tmp_path, shown, below, state, why
):
    made = v4.new_notebook()
    outputs = [v4.new_output("display_data", data=shown)]
    made.cells.append(v4.new_code_cell("%%refine\nWrite half.", outputs=outputs))
    made.cells += [v4.new_code_cell(below, id="held")] if below else []
    nbformat.write(made, tmp_path / "x.ipynb")
    [one] = asyncio.run(check_records(tmp_path / "x.ipynb"))
    assert (one.cell, one.state) == (1, state), one.why
    assert why in one.why
    assert not (tmp_path / "owned").exists()
