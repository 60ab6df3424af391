"""What checked code printed, returned and drew: read from the sandbox, bounded and harmless."""

import base64

import pytest

from ipyrefine.checks.outputs import imports_of, read_outputs
from ipyrefine.checks.python import RunsCleanly
from ipyrefine.core.model import (
    MAX_OUTPUT,
    MAX_ROWS,
    Figure,
    Output,
    Printed,
    Table,
    Task,
    Value,
)
from ipyrefine.kernel.redaction import HIDDEN
from ipyrefine.kernel.variables import Variables

TASK = Task(text="Show it.", form="code")
SECRET = "sk-abcdefghijkl"
DOT = """
import struct, zlib
def part(kind, data):
    end = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + end
class Dot:
    def _repr_png_(self):
        head = part(b"IHDR", struct.pack(">2I5B", 1, 1, 8, 0, 0, 0, 0))
        data = part(b"IDAT", zlib.compress(bytes(2)))
        return bytes.fromhex("89504e470d0a1a0a") + head + data + part(b"IEND", b"")
Dot()
"""


async def outputs(text: str) -> tuple[Output, ...]:
    evidence = await RunsCleanly(seconds=60)(text, TASK)
    assert evidence.passed, evidence.shows
    return evidence.outputs


async def test_what_code_printed_and_the_value_of_its_last_expression_are_kept_and_cut():
    printed, value = await outputs("print('x' * 20_000)\nlist(range(10**6))")
    assert isinstance(printed, Printed)
    assert isinstance(value, Value)
    assert (len(printed.text), printed.text[-2:]) == (MAX_OUTPUT, "x…")
    assert value.text.startswith("[0, 1, 2, 3, ")
    assert len(value.text) < MAX_OUTPUT


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'pear': 1, 'apple': {'b': 2, 'a': []}, 3: {}}", ""),
        ("collections.deque([1, 2], maxlen=2)", "deque([1, 2], maxlen=2)"),
        ("{'apple', 'pear'}", ""),
        ("class A: pass\nA()", "<__main__.A object>"),
        ("(n for n in [1])", "<generator object <genexpr>>"),
        ("print('a')\nprint('b')\n1 + 1", "2"),
        ("for n in range(40): print(n)\nprint('total', n)", "total 39"),
        ("print('a')\nfor n in range(4): print(n, end=' ')", "0 1 2 3"),
        ("print('a')\nprint('b\\nc\\n')\nprint()", "b\nc"),
        ("import pprint\nprint('a')\npprint.pprint([1, 2])", "[1, 2]"),
        ("import sys\nprint('a')\nprint('b', file=sys.stderr)", "a"),
        ("print('a')\ndisplay([1, 2])", "[1, 2]"),
        ("class figure:\n    __module__ = 'altair'\n    mark, data = 'bar', [1, 2]\nfigure()",
         "bar chart of 2 points"),
    ],
)  # fmt: skip
async def test_the_answer_is_what_a_notebook_shows_last_without_addresses(text, value):
    found = await outputs(f"import collections\n{text}")
    assert [one for one in found if not isinstance(one, Printed)] == [Value(text=value or text)]


async def test_an_object_that_is_a_picture_is_shown_as_that():
    (figure,) = await outputs(DOT)
    assert isinstance(figure, Figure)
    assert figure.size == (1, 1)


@pytest.mark.parametrize("body", ["raise SystemExit(3)", "while True: pass"])
async def test_a_value_that_cannot_be_shown_is_no_fault(body):
    await outputs(f"class A:\n    def __repr__(self):\n        {body}\nA()")


# Tables


async def test_a_frame_is_a_table_of_its_first_rows_with_its_whole_size():
    text = (
        "import pandas\n"
        "pandas.DataFrame({'city': list('abc') * 10, 'price': [0.1 + 0.2, 1234567.25, None] * 10})"
    )
    (table,) = await outputs(text)
    assert isinstance(table, Table)
    assert (table.height, table.width, len(table.rows)) == (30, 2, MAX_ROWS)
    assert table.columns == ("city", "price")
    assert table.rows[:3] == (("a", "0.3"), ("b", "1234567.25"), ("c", "nan"))
    assert table.labels[:3] == ("0", "1", "2")


async def test_a_polars_frame_is_a_table_too():
    pytest.importorskip("polars")
    (table,) = await outputs("import polars\npolars.DataFrame({'n': [1, 2], 's': ['a', None]})")
    assert table == Table(
        columns=("n", "s"), labels=("0", "1"), rows=(("1", "a"), ("2", "None")), height=2, width=2
    )


# Figures

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1])"


@pytest.mark.parametrize(
    "text",
    [
        f"import matplotlib\nmatplotlib.use('svg')\n{PLOT}",
        "from matplotlib.figure import Figure\nf = Figure()\nf.add_subplot().plot([1])\nf",
        f"import sys\n{PLOT}\nsys.exit(int())",
    ],
    ids=["another backend", "no pyplot", "before an exit"],
)
async def test_a_figure_is_a_picture_however_it_was_drawn_and_nothing_is_said_beside_it(
    text,
):
    (figure,) = await outputs(text)
    assert isinstance(figure, Figure)
    assert max(abs(a - b) for a, b in zip(figure.size, (640, 480), strict=True)) < 120
    assert figure.axes[0].startswith("1 of 1 points drawn; x ")


SPANS = """
import datetime, matplotlib.pyplot as plt
fig, (pie, *axes) = plt.subplots(1, 4)
pie.pie([1, 2])
axes[0].plot([0, 1, 2, 3], [5, float("nan"), 7, 60])
axes[0].set_ylim(0, 10)
axes[1].scatter([1, 2, 3], [1, 2, float("nan")])
axes[1].axhline(1)
axes[1].bar([1, 2], [3, 4])
axes[1].set(title="Heights", xlim=(0, 4), ylim=(0, 4))
axes[2].plot([datetime.date(2024, 5, 1), datetime.date(2024, 5, 9)], [1, 2])
axes[2].margins(0)
None
"""


async def test_of_a_figure_it_is_said_how_many_points_are_drawn_and_what_the_axes_span():
    figure, other = await outputs(f"{SPANS.rstrip()[:-4]}\nplt.figure()\nplt.bar([1], [2]);")
    assert isinstance(other, Figure)
    assert other.axes[0].startswith("1 bar; x ")
    assert isinstance(figure, Figure)
    assert [*figure.axes] == [
        "axes 2: 2 of 4 points drawn; x -0.15 to 3.15; y 0 to 10",
        "Heights: 2 of 3 points drawn; 2 bars; x 0 to 4; y 0 to 4",
        "axes 4: 2 of 2 points drawn; x 2024-05-01 to 2024-05-09; y 1 to 2",
    ]


async def test_a_huge_figure_is_drawn_smaller():
    text = (
        "import matplotlib.pyplot as plt, numpy\n"
        "fig, ax = plt.subplots(figsize=(60, 40), dpi=300)\n"
        "ax.imshow(numpy.random.default_rng(0).random((400, 600, 3)))"
    )
    (figure,) = await outputs(text)
    assert isinstance(figure, Figure)
    assert figure.size[0] * figure.size[1] <= 1_500_000


async def test_code_with_a_figure_that_cannot_be_drawn_passes_as_well():
    await outputs(f"{PLOT}\nplt.title('$\\\\frac{{$')")


# Time


async def test_what_code_imports_takes_none_of_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr("ipyrefine.sandbox.sandbox._WALL_FACTOR", 200)  # this machine may be busy
    slow = "import time\nwhile time.process_time() < 1: pass\nx = 1\n"
    tmp_path.joinpath("slow_package.py").write_text(slow)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "from slow_package import x\ny, x\nx"
    evidence = await RunsCleanly(seconds=0.5, copies=Variables({"y": 1}).copies)(text, TASK)
    assert (evidence.passed, evidence.outputs) == (True, (Value(text="1"),)), evidence.shows


def test_the_packages_that_code_imports_are_found_and_the_standard_library_is_not():
    code = (
        "import os, this\nimport a.b as c\nfrom d.e import f, g\n"
        "def h():\n    import i\nfrom . import j"
    )
    assert imports_of(code) == [("a.b", []), ("d.e", ["f", "g"]), ("i", [])]
    assert imports_of("import (") == []
    assert len(imports_of("\n".join(f"import m{n}" for n in range(999)))) == 50


# Hostile reports


ONE = {"columns": ["n"], "labels": ["0"], "rows": [["1"]], "height": 1, "width": 1}
TABLE = {"kind": "table", **ONE}


@pytest.mark.parametrize(
    "forged",
    [
        None,
        {"kind": "page", "text": "<b>"},
        {**TABLE, "rows": [None]},
        {**TABLE, "height": -1},
        {"kind": "figure", "png": base64.b64encode(b"<svg onload=alert(1)>").decode()},
    ],
    ids=repr,
)
def test_what_only_a_forged_report_can_hold_is_left_out(forged):
    value = {"kind": "value", "text": "1"}
    assert read_outputs([{"outputs": [forged, value]}], "") == (Value(text="1"),)
    assert read_outputs([{"outputs": forged}], "") == ()


def test_secrets_are_taken_out_of_every_text():
    columns, rows = [SECRET, "password", "max_tokens"], [[SECRET, "hunter", "12"]]  # values decide
    table = {**TABLE, "columns": columns, "labels": [SECRET], "index": SECRET, "rows": rows}
    table["width"] = 3
    found = read_outputs(
        [{"outputs": [{"kind": "value", "text": f"'{SECRET}'"}, table]}], f"token: {SECRET}"
    )
    text = str(found)
    assert SECRET not in text
    assert text.count(HIDDEN) == 6
    assert found[2].rows[0] == (HIDDEN, "hunter", "12")  # type: ignore[union-attr]
