"""The names that a cell uses, and its lines that only IPython understands."""

import pytest

from ipyrefine.kernel.magics import has_python_beside_magics, python_part
from ipyrefine.kernel.names import names_defined, names_in_code, names_in_draft, names_in_prose


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import numpy as np\nnp.mean(xs)", ["xs"]),
        ("def f(a):\n    return clean(a, df)", ["clean", "df"]),
        ("def f():\n    return later\nlater = 1", []),
        ("[g(x) for x in rows if x > low]", ["rows", "low", "g"]),
        ("class A(Base):\n    z = q\n    w = z", ["Base", "q"]),
        ("for i in items:\n    total = total + i", ["items", "total"]),
        ("with a as b:\n    b", ["a"]),
        ("if (n := f(m)):\n    n", ["f", "m"]),
        ("print(len(xs), __name__)", ["xs"]),
        ("f'{x!r:>{w}}'", ["x", "w"]),
        ("this is no python", []),
        ("(" * 5_000, []),
    ],
)
def test_code_uses_the_names_it_reads_before_it_binds_them(source: str, names: list[str]) -> None:
    assert sorted(names_in_code(source)) == sorted(names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Group `df` by price and call helper(x).", ["df", "helper"]),
        ("Use `df.groupby(key)` here.", ["df", "key"]),
        ("Rename the file(s) of the class(es).", []),
        ("Write total(xs) that uses `clean`.", ["clean"]),
        ("Implement a function called total(xs).", []),
        ("Sum them.\n\n>>> total(prices)\n3", ["prices"]),
        ("```python\ndef stub(a):\n    ...\n```\nIt calls other(a).", ["other"]),
        ("A plain sentence about df and clean.", []),
    ],
)
def test_a_request_uses_the_names_it_marks(text: str, names: list[str]) -> None:
    assert names_in_prose(text) == names


def test_lines_for_ipython_are_told_from_the_python_around_them() -> None:
    cell = "import os\n%matplotlib inline\nif a:\n    !ls {a}\nfiles = !ls\nprint(files, b)\n"
    part = python_part(cell)
    assert part.code == "import os\n\nif a:\n    pass\n\nprint(files, b)\n"
    assert part.lines == ("%matplotlib inline", "!ls {a}", "files = !ls")
    assert names_in_code(cell) == ["a", "b"]


def test_a_cell_is_code_when_there_is_python_beside_its_magics() -> None:
    assert has_python_beside_magics("%time f()\nx = 1")
    assert has_python_beside_magics("%%time\nf(x)")
    assert not any(map(has_python_beside_magics, ("Is this it?\n! no", "!ls", "x = 1")))


@pytest.mark.parametrize(
    ("draft", "names"),
    [
        ("total(price)\nout = df.price", ["total", "price", "df"]),
        ("x = sum(df['price']\nprint(f'{rate} of', y.z  # note", ["x", "sum", "df", "rate", "y"]),
        ("files = !ls\nlen(files)", ["files"]),
        ("", []),
    ],
)
def test_a_draft_is_about_its_names_also_where_it_is_no_python_yet(
    draft: str, names: list[str]
) -> None:
    assert [name for name in names_in_draft(draft) if name != "print"] == names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a, (b, *c) = d = 1, (2, 3)", ["a", "b", "c", "d"]),
        ("x: int = [y for y in z]\nx += 1", ["x"]),
        ("def f():\n    inner = 1\nclass A:\n    field = 2\nf.attr = d['k'] = 1", ["f", "A"]),
        ("import os\nfor i in xs:\n    last = i\n_tmp = 1", []),
        ("%time\nx = 1\n!ls", ["x"]),
        ("x = y = 1\ndel x", ["y"]),
        ("x: int\ny: int = 1", ["y"]),
        ("x = (1,", []),
    ],
)
def test_the_names_that_code_leaves_to_the_cells_below(source: str, names: list[str]) -> None:
    assert sorted(names_defined(source)) == sorted(names)
