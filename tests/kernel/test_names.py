"""The names that a cell uses, and its lines that only IPython understands."""

import sys
from types import ModuleType

import pytest

from ipyrefine.core.model import Material, Task
from ipyrefine.kernel.magics import has_python_beside_magics, python_part
from ipyrefine.kernel.names import (
    names_defined,
    names_in_code,
    names_in_draft,
    names_in_prose,
    undefined_names,
)


def test_code_uses_the_names_it_reads_before_it_binds_them(subtests):
    for source, names in {
        "import numpy as np\nnp.mean(xs)": ["xs"],
        "def f(a):\n    return clean(a, df)": ["clean", "df"],
        "def f():\n    return later\nlater = 1": [],
        "[g(x) for x in rows if x > low]": ["g", "low", "rows"],
        "class A(Base):\n    z = q\n    w = z": ["Base", "q"],
        "for i in items:\n    total = total + i": ["items", "total"],
        "with a as b:\n    b": ["a"],
        "if (n := f(m)):\n    n": ["f", "m"],
        "print(len(xs), __name__)": ["xs"],
        "f'{x!r:>{w}}'": ["w", "x"],
        "this is no python": [],
        "(" * 5_000: [],
    }.items():
        with subtests.test(source):
            assert sorted(names_in_code(source)) == names


def test_a_request_uses_the_names_it_marks(subtests):
    for text, names in {
        "Group `df` by price and call helper(x).": ["df", "helper"],
        "Use `df.groupby(key)` here.": ["df", "key"],
        "Rename the file(s) of the class(es).": [],
        "Write total(xs) that uses `clean`.": ["clean"],
        "Implement a function called total(xs).": [],
        "Sum them.\n\n>>> total(prices)\n3": ["prices"],
        "```python\ndef stub(a):\n    ...\n```\nIt calls other(a).": ["other"],
        "A plain sentence about df and clean.": [],
    }.items():
        with subtests.test(text):
            assert names_in_prose(text) == names


def test_lines_for_ipython_are_told_from_the_python_around_them():
    cell = "import os\n%matplotlib inline\nif a:\n    !ls {a}\nfiles = !ls\nprint(files, b)\n"
    part = python_part(cell)
    assert part.code == "import os\n\nif a:\n    pass\n\nprint(files, b)\n"
    assert part.lines == ("%matplotlib inline", "!ls {a}", "files = !ls")
    assert names_in_code(cell) == ["a", "b"]


def test_a_cell_is_code_when_there_is_python_beside_its_magics():
    assert all(map(has_python_beside_magics, ("%time f()\nx = 1", "%%time\nf(x)")))
    assert not any(map(has_python_beside_magics, ("Is this it?\n! no", "!ls", "x = 1")))


def test_a_draft_is_about_its_names_also_where_it_is_no_python_yet():
    for draft, names in {
        "total(price)\nout = df.price": ["total", "price", "df"],
        "x = sum(df['price']\nf'{rate} of', y.z  # note": ["x", "sum", "df", "rate", "y", "note"],
        "files = !ls\nlen(files)": ["files"],
        "": [],
    }.items():
        assert names_in_draft(draft) == names, draft


def test_the_names_that_code_leaves_to_the_cells_below():
    for source, names in {
        "a, (b, *c) = d = 1, (2, 3)": ["a", "b", "c", "d"],
        "x: int = [y for y in z]\nx += 1": ["x"],
        "def f():\n    inner = 1\nclass A:\n    field = 2\nf.attr = d['k'] = 1": ["A", "f"],
        "import os\nfor i in xs:\n    last = i\n_tmp = 1": ["last"],
        "%time\nx = 1\n!ls": ["x"],
        "x = y = 1\ndel x": ["y"],
        "x: int\ny: int = 1": ["y"],
        "x = (1,": [],
    }.items():
        assert sorted(names_defined(source)) == names, source


# What nothing defines

TASK = Task(text="Do it.", form="code")
DEFINED = [
    "x = 1\nprint(x, len([]), __name__, __file__)",
    "def f():\n    return later()\ndef later(): return 1",
    "def f(a, *b, c=1, **d): return a, b, c, d",
    "[y for x in [[1]] for y in x if y]",
    "if (n := 3) > 2: print(n)",
    "class A:\n    size = 3\n    double = size * 2\n    def m(self): return A.size",
    "def outer():\n    n = 1\n    def inner():\n        nonlocal n\n        n += 1\n"
    "        return n\n    return inner",
    "n = 1\nclass A:\n    n = 3\n    xs = [n for _ in range(n)]\n    del n",
    "class A:\n    n = int\n    type X = list[n]\n    def f[T](self, x: n) -> T: ...",
    "def load():\n    global data\n    data = 1\nload()\nprint(data)\ndata = 2",
    "for n in range(3):\n    if n: print(before)\n    before = n",
    "try:\n    import ujson as js\nexcept ImportError:\n    import json as js\njs.dumps(1)",
    "match [1, {'a': 2}]:\n    case [one, {'a': two, **rest}]: print(one, two, rest)\n"
    "    case [*many]: print(many)",
    "from __future__ import annotations\ndef f(a: Frame) -> Frame: return a",
    "def f(a: 'Frame') -> 'Frame':\n    b: Frame = a\n    return b",
    "def f(xs):\n    '''>>> f(sales)\n    3\n    '''\n    return 3",
    "try:\n    unicode\nexcept NameError:\n    unicode = str",
    "try:\n    print(sales)\nexcept Exception:\n    pass",
    "from contextlib import suppress\nwith suppress(Exception):\n    print(sales)",
    "if 'sales' in globals(): print(sales)",
    "from sympy import *\nprint(x)",
    "print(_, __, _1, _i, _i3, In[1], Out[1])\ndisplay(get_ipython())",
    "files = !ls\nprint(files)",
    "%run other.py\nprint(sales)",
    "%%time\nx = 1\nprint(x)",
    "import functools\n@functools.cache\ndef f(n: int) -> int: return f(n - 1) if n else 0",
    "async def f():\n    async with a() as b: return [c async for c in b]\n"
    "async def a(): ...\nawait f()",
    "this is no Python, sales",
    "return sales",
    '{"done": true, "next": null}',
]
UNDEFINED = [
    ("df.head()", [("df", 1)]),
    ("import pandas as pd\n\ntotal = df.v.sum()", [("df", 3)]),
    ("def f(xs):\n    return np.mean(xs)", [("np", 2)]),
    ("from typing import Dict\ndef f(xs: List[int]) -> int: return 1", [("List", 2)]),
    ("class A(Base):\n    x = start", [("Base", 1), ("start", 2)]),
    ("class A:\n    n = 3\n    def m(self): return n", [("n", 3)]),
    ("class A:\n    n = 3\n    xs = [n for _ in range(2)]", [("n", 3)]),
    ("class A:\n    n = 3\n    class B:\n        m = n", [("n", 4)]),
    ("[i for i in range(3)]\nprint(i)", [("i", 2)]),
    ("def f():\n    inside = 1\nprint(inside)", [("inside", 3)]),
    ("print(f'{sales:.2f}')", [("sales", 1)]),
    ("try:\n    print(sales)\nexcept ValueError:\n    pass", [("sales", 2)]),
    ("if __name__ == '__main__':\n    main()", [("main", 2)]),
    ("match sales:\n    case Kind(): pass", [("sales", 1), ("Kind", 2)]),
    ("sales['a'] = 1", [("sales", 1)]),
    ("del sales", [("sales", 1)]),
    ("!pip install x\nsales.plot()", [("sales", 2)]),
]


@pytest.fixture
def empty_kernel(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The namespace of a kernel in which nothing is defined."""
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    return vars(main)


def undefined(text: str, task: Task = TASK, *known: str) -> list[tuple[str, int]]:
    return [(one.name, one.line) for one in undefined_names(text, task, known)]


@pytest.mark.usefixtures("empty_kernel")
def test_a_name_that_something_may_define_is_not_undefined(subtests):
    for text in DEFINED:
        with subtests.test(text):
            assert undefined(text) == []


@pytest.mark.usefixtures("empty_kernel")
def test_a_name_that_nothing_defines_is_told_with_its_first_line(
    subtests,
):
    for text, names in UNDEFINED:
        with subtests.test(text):
            assert undefined(text) == names


def test_names_of_the_kernel_the_task_and_cells_above_are_defined(
    empty_kernel,
):
    text = "df.head()"
    said = "[code cell]\ndf = load()\n[its output]\nsales\n\n[markdown cell]\n# Words"
    cells = Material(kind="cells", name="cell above", phrase="", text=said)
    raised = cells.replace(text="[what the code to fix raised]\nNameError: df", computed=True)
    star = cells.replace(text="[code cell]\nfrom fastai import *")
    fence = "Use this.\n```python\ndef df(): ...\n```"
    assert undefined(text, TASK.replace(text=fence)) == []
    assert undefined(text, TASK.replace(text="Show the head of `df`.")) == [("df", 1)]
    assert undefined(text, TASK, "df") == []
    for material, names in ((cells, []), (star, []), (raised, [("df", 1)])):
        assert undefined(text, TASK.replace(materials=(material,))) == names
    empty_kernel["df"] = 1
    assert undefined(text) == []
