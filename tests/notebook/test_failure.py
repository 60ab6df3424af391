"""What a text no longer does of the statement that failed."""

import pytest

from ipyrefine.notebook.failure import lost_effects

LOOP = "total = 0\nfor row in rows:\n    total += row['price']\nprint(total)"
CONSTANT = "`{}` is no longer computed, but set to a constant."
IGNORED = "It catches an error and ignores it."


@pytest.mark.parametrize(
    ("cell", "line", "text", "sentences"),
    [
        ("df.plot()", 1, "pass", ["Nothing of the cell's code is left."]),
        ("total = sum(", 1, "# later", ["Nothing of the cell's code is left."]),
        ("df.plot()", 1, "print(df)", ["The call of `df.plot` that failed is gone."]),
        ("\ndf.plot()\nx = 1", 1, "x = 1", ["The call of `df.plot` that failed is gone."]),
        ("assert rows\nx = 1", 1, "x = 1", ["The `assert` that failed is gone."]),
        ("a = f(x)\nshow(a)", 1, "a = 3\nshow(a)", [CONSTANT.format("a")]),
        (LOOP, 3, "total = 0\nprint(total)", [CONSTANT.format("total")]),
        ("f(x)", 1, "try:\n    f(x)\nexcept Exception:\n    pass", [IGNORED]),
        ("a = f(x)", 1, "try:\n    a = f(x)\nexcept ValueError:\n    a = 0", [IGNORED]),
        ("f(x)", 1, "with suppress(ValueError):\n    f(x)", [IGNORED]),
    ],
)
def test_what_is_lost_is_said(cell, line, text, sentences):
    assert lost_effects(cell, line, text) == sentences


@pytest.mark.parametrize(
    ("cell", "line", "text"),
    [
        ("df.plt(x='a')", 1, "df.plot(x='a')"),
        ("prnt(a)", 1, "print(a)"),
        ("a = f(pricse)", 1, "a = f(prices)"),
        (LOOP, 3, LOOP.replace("['price']", ".get('price', 0)")),
        ("a = f(x)", 1, "a = 0\nfor a in x:\n    f(a)"),
        ("try:\n    f(x)\nexcept A:\n    pass", 2, "try:\n    f(y)\nexcept A:\n    pass"),
        ("f(x)", 1, "try:\n    f(x)\nexcept ValueError as error:\n    print(error)"),
        ("df['reveneu']", 1, "df['revenue']"),
        ("f(x)\ng(x)", None, "g(x)"),
        ("f(x", 1, "g(x)"),
    ],
)
def test_nothing_is_said_of_a_text_that_still_does_it(cell, line, text):
    assert lost_effects(cell, line, text) == []
