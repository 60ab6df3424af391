"""What a cell did to data is told in words, the most telling first, and of lost stores it fails."""

import io
from typing import Any

import pytest

from ipyrefine.checks.python import RunOnCopies, RunsCleanly
from ipyrefine.checks.reported import read_effects
from ipyrefine.core.effects import has_to_be_wanted, sentence
from ipyrefine.core.model import Condition, FirstRows, Printed, Task
from ipyrefine.core.table import Evidence
from ipyrefine.kernel.variables import Variables

pandas = pytest.importorskip("pandas")
CELL = Task(text="Do it.", form="code")


def tables() -> dict[str, Any]:
    orders = pandas.DataFrame(
        {
            "order": [1, 2, 3, 4, 5, 6],
            "customer": ["a", "a", "b", "x", None, "c"],
            "amount": [1.5, 2.5, None, 4.0, 5.0, 6.0],
            "price": ["9", "10", "n/a", "7", "8", "30"],
            "size": pandas.Categorical(list("SSMMSM"), categories=["S", "M", "XL"]),
            "at": pandas.to_datetime(["2026-01-01 23:30"] * 6, utc=True),
        }
    )
    customers = pandas.DataFrame({"customer": list("abcd"), "town": ["Ulm", "Bonn", "Kiel", "Ulm"]})
    rates = pandas.DataFrame({"customer": ["a", "a", "b"], "rate": [1, 2, 3]})
    return {"orders": orders, "customers": customers, "rates": rates, "pandas": pandas}


async def ran(text: str, **variables: Any) -> Evidence:
    copies = Variables({**tables(), **variables}).copies
    return await RunOnCopies(copies=copies)(text, CELL)


async def told(text: str, **variables: Any) -> list[str]:
    evidence = await ran(text, **variables)
    assert evidence.passed, evidence.detail
    return [sentence(one) for one in evidence.effects]


# A text, and the first sentences on it.
LOST = [
    (
        "merged = orders.merge(customers, on='customer')\nmerged.groupby('town')['amount'].sum()",
        [
            "1 of 6 rows of `orders` is gone in `merged`: its `customer` (x) is not in `customers`",
            "1 of 6 rows of `orders` is gone in `merged`: its `customer` is missing",
            "sum of `amount`: 19.00 in `orders`, 10.00 in `merged`",
        ],
    ),
    (
        "orders.merge(customers).groupby('town')['amount'].sum()",
        [
            "1 of 6 rows of `orders` is gone: its `customer` (x) is not in `customers`",
            "1 of 6 rows of `orders` is gone: its `customer` is missing",
        ],
    ),
    (
        "pandas.merge(orders, rates, how='left')['amount'].sum()",
        [
            "2 of 6 rows of `orders` are there more than once: `customer` (a) is in `rates` more "
            "than once",
            "3 of 8 values of `rate` are missing: they have no row in `rates` (x, c)",
        ],
    ),
    (
        "orders.groupby('customer')['order'].count()",
        ["1 of 6 rows of `orders` has no `customer` and is left out"],
    ),
    (
        "orders['customer'].value_counts()",
        ["1 of 6 rows of `orders` has no `customer` and is left out"],
    ),
    (
        "orders.groupby('size')['order'].count()",
        ["1 of 3 categories of `size` is left out: no row has it (XL)"],
    ),
    (
        "clean = orders.dropna()\nlen(clean)",
        ["2 of 6 rows of `orders` are gone in `clean`: their `customer` or `amount` is missing"],
    ),
    (
        "len(orders.drop_duplicates('customer'))",
        ["1 of 6 rows of `orders` is gone: it repeats another by `customer`"],
    ),
    (
        "few = orders[orders.order > 2]",
        ["4 of 6 rows of `orders` are kept in `few`", "`few` is new: 4 rows × 6 columns"],
    ),
]
CHANGED = [
    (
        "orders['price'] = pandas.to_numeric(orders['price'], errors='coerce')",
        [
            "1 of 6 values of `price` in `orders` becomes missing (n/a)",
            "`price` in `orders`: str → float64",
        ],
    ),
    (
        "orders['amount'] = orders['amount'].fillna(0)",
        ["1 missing value of `amount` in `orders` is filled with 0"],
    ),
    (
        "orders.loc[orders.order > 4, 'amount'] = 1",
        [
            "2 of 5 known values of `amount` in `orders` are overwritten (5 → 1)",
            "sum of `amount`: 19.00 in `orders`, 10.00 afterwards",
        ],
    ),
    ("orders['price'].max()", ["the numbers of `price` in `orders` are text"]),
    ("orders['at'].dt.date.nunique()", ["the times of `at` in `orders` are in UTC"]),
    (
        "rates = rates.sort_values('rate', ascending=False)",
        ["`rates` has its rows in another order"],
    ),
    (
        "rates = rates.set_index('customer').reset_index()\nrates['new'] = 1",
        ["`rates` has a new column `new`"],
    ),
    (
        "def fix(t):\n    t['rate'] = 0\nfix(rates)",
        [
            "3 of 3 known values of `rate` in `rates` are overwritten (1 → 0)",
        ],
    ),
    ("kept = rates\nkept['rate'] = kept['rate'] * 1.0", ["`rate` in `rates`: int64 → float64"]),
    ("rates.index.name = 'row'", ["`rates`: index name none → row"]),
    ("rates.index += 5", ["`rates`: row labels 0, 1, 2 → 5, 6, 7"]),
    ("rates.attrs['of'] = 2026", ["`rates`: attrs {} → {'of': 2026}"]),
    ("rates = rates[['rate', 'customer']]", ["`rates` has its columns in another order"]),
    (
        "rates.columns = ['who', 'share']",
        ["2 columns of `rates` are renamed (customer → who, rate → share)"],
    ),
    ("rates = rates.set_index('customer')", ["`rates` has as its index column `customer`"]),
    (
        "orders = orders.T",
        [
            "`orders` no longer has columns `order`, `customer`, `amount`, `price`, `size` and 1 "
            "more",
        ],
    ),
    (
        "orders['size'] = orders['size'].cat.reorder_categories(['XL', 'M', 'S'])",
        ["`size` in `orders`: categories S, M, XL → categories XL, M, S"],
    ),
    (
        "orders['size'] = orders['size'].cat.rename_categories({'S': 'small'})",
        ["3 of 6 known values of `size` in `orders` are overwritten (S → small)"],
    ),
    ("rates.loc[3] = ['d', 4]", ["`rates`: 3 rows × 2 columns → 4 rows × 2 columns"]),
    (
        "rates = rates.groupby('customer', as_index=False).sum()",
        ["`rates`: 3 rows × 2 columns → 2 rows × 2 columns"],
    ),
    ("rates = rates['rate']", ["`rates`: 3 rows × 2 columns → 3 values (int64)"]),
    (
        "customers['customer'] = customers['customer'].replace('d', 'a')",
        ["1 of 4 known values of `customer` in `customers` is overwritten (d → a)"],
    ),
    (
        "orders['amount'] = orders['amount'].sort_values().values",
        ["the values of `amount` in `orders` are in another order"],
    ),
    (
        "rates = rates.set_index('customer').drop('b')",
        ["`rates` has as its index column `customer`", "1 of 3 rows of `rates` is gone (b, 3)"],
    ),
    ("rates = pandas.DataFrame({'n': [1]})", ["`rates` is replaced: 1 row × 1 column"]),
]
# What is missing after one step, and none of it at the end.
FILLED = [
    (
        "merged = orders.merge(customers, how='left')\nmerged['town'] = " + fill,
        [
            f"2 missing values of `town` in `merged` are filled{of}: they have no row in "
            "`customers` (x)"
        ],
    )
    for fill, of in (
        ("merged['town'].fillna('?')", " with ?"),
        ("merged['town'].where(merged['town'].notna(), '?')", ""),
        ("merged.assign(town=merged['town'].fillna('?'))['town']", " with ?"),
    )
]
FILLED += [
    (
        "orders.merge(customers, how='left').fillna({'town': '?'}).groupby('town').size()",
        [
            "2 missing values of `town` in `orders` are filled with ?: they have no row in "
            "`customers` (x)"
        ],
    ),
    (
        "pandas.to_numeric(orders['price'], errors='coerce').fillna(0).sum()",
        ["1 of 6 values of `price` in `orders` becomes missing (n/a) and is filled with 0"],
    ),
    (
        "orders['n'] = orders['customer'].map({'a': 1, 'b': 2, 'c': 3}).fillna(0)",
        ["1 of 6 values of `customer` in `orders` maps to nothing (x) and is filled with 0"],
    ),
    (
        "orders['amount'].ffill().sum()",
        ["1 missing value of `amount` in `orders` is filled with 2.5"],
    ),
]
# A row that one of two steps loses is told of once, and nothing of tables that are only looked up.
ONCE = [
    (
        "orders.merge(customers).merge(rates)",
        [
            "1 of 6 rows of `orders` is gone: its `customer` (x) is not in `customers`",
            "1 of 4 rows is gone: its `customer` (c) is not in `rates`",
            "1 of 6 rows of `orders` is gone: its `customer` is missing",
            "1 of 4 rows of `customers` is gone: its `customer` (d) is not in `orders`",
            "2 of 4 rows of `customers` are gone: their `customer` (c, d) is not in `rates`",
        ],
    ),
    (
        "now = rates.sort_values('rate').drop_duplicates('customer', keep='last')\n"
        "both = now.merge(customers, on='customer')",
        [
            "1 of 3 rows of `rates` is gone in `now`: it repeats another by `customer`",
            "2 of 4 rows of `customers` are gone in `both`: their `customer` (c, d) is not in "
            "`now`",
        ],
    ),
    (
        "def clean(t):\n    t = t.dropna(subset=['amount'])\n    return t.merge(customers)\n"
        "few = clean(orders)",
        [
            "1 of 5 rows of `t` is gone in `few`: its `customer` (x) is not in `customers`",
            "1 of 6 rows of `orders` is gone: its `amount` is missing",
            "1 of 5 rows of `t` is gone in `few`: its `customer` is missing",
            "2 of 4 rows of `customers` are gone in `few`: their `customer` (b, d) is not in `t`",
        ],
    ),
]
MIXED = [
    (
        "orders['town'] = customers['town']",
        [
            "2 of 3 values of `town` in `orders` are not those of their `customer` in `customers` "
            "(Bonn, not Ulm)"
        ],
    ),
    (
        "orders['town'] = orders['customer'].map(customers.set_index('customer')['town'])",
        ["1 of 6 values of `customer` in `orders` maps to nothing (x)"],
    ),
    (
        "rates['customer'] = sorted(rates['customer'], reverse=True)",
        ["the values of `customer` in `rates` are in another order"],
    ),
    (
        "for _, row in orders.iterrows():\n    row['amount'] = 0\norders",
        ["`orders` is unchanged, though line 2 stores into it"],
    ),
    (
        "orders.groupby('price')['order'].sum().cumsum()",
        ["the groups of `price` are sorted, not as they come (10, 30, 7 …)"],
    ),
    (
        "orders['amount'] - orders['amount'].iloc[1:]",
        ["1 of 6 values of `amount` is missing: the labels of the two differ"],
    ),
]
PLAIN = [
    ("xs = sorted(set(xs))", ["1 of 4 items of `xs` is gone: it repeats another"]),
    ("xs.sort()", ["`xs` has its items in another order"]),
    ("xs[0] = 9", ["1 of 4 items in `xs` is overwritten (3 → 9)"]),
    ("d['a'] = 5", ["1 of 2 items in `d` is overwritten (a: 1 → 5)"]),
    ("a = a.astype('float32')", ["`a`: int64 → float32"]),
    ("a = a.reshape(3, 1)", ["`a`: 3 values (int64) → 3 × 1 values (int64)"]),
    ("d = dict(reversed(d.items()))", ["`d` has its items in another order"]),
    ("d['c'] = 3", ["`d`: 2 items → 3 items, new: c"]),
    ("xs = tuple(xs)", ["`xs`: list → tuple"]),
    ("xs = [str(x) for x in xs]", ["4 of 4 items in `xs` are overwritten (3 → '3')"]),
    ("n += 1", ["`n`: 1 → 2"]),
    ("ys = [x for x in xs if x > 1]", ["1 of 4 items of `xs` is gone in `ys` (1)"]),
    ("dict(zip(xs, 'ab'))", []),
    ("dict(zip(xs, a))", ["1 of 4 items of `xs` is gone: another has the same key (3)"]),
    (
        "max([{'n': '9'}, {'n': '10'}], key=lambda one: one['n'])",
        ["the numbers of `n` are text"],
    ),
]
ODD = [
    ("float('nan')", ["The answer is nan"]),
    ("orders.head(0)", ["The answer is empty"]),
    ("rates['rate'].reindex([7, 8])", ["All values of the answer are missing"]),
    ("top = rates.pop('rate') if n > 1 else None", ["`top` is None"]),
    ("share = n / pandas.Series([0.0]).sum()", ["`share` is inf"]),
    ("rates.copy().sort_values('rate')\nNone", ["It gives nothing and changes nothing"]),
    ("def f(t): return len(t)\nm = None\ndel m", ["`f` is defined, and nothing calls it"]),
]
QUIET = [
    "print(len(orders))",
    "orders.to_csv('out.csv')",
    "total = float(orders['order'].sum())",
    "import statistics\nstatistics.mean([1, 2])",
    "orders.groupby('customer', dropna=False)['order'].count()",
    "[str(order) for order in orders.order]",
]


@pytest.mark.parametrize(("text", "expected"), [*LOST, *CHANGED, *FILLED, *MIXED, *PLAIN, *ODD])
async def test_the_first_lines_tell_what_became_of_data(text: str, expected: list[str]) -> None:
    numpy = pytest.importorskip("numpy")
    found = await told(text, xs=[3, 1, 2, 3], d={"a": 1, "b": 2}, a=numpy.array([1, 2, 3]), n=1)
    assert found[: len(expected)] == expected


async def test_of_rows_that_a_helper_of_the_notebook_loses_the_end_says_why() -> None:
    space = {"__name__": "__main__"}
    exec(
        "def known(t, c): return t[t.customer.isin(c.customer)]\n"
        "def whole(t): return t.dropna(subset=['amount'])",
        space,
    )
    text = "few = known(orders, customers)\nrest = whole(orders)"
    found = await told(text, known=space["known"], whole=space["whole"])
    assert [one for one in found if "gone" in one] == [
        "2 of 6 rows of `orders` are gone in `few`: their `customer` (x) is not in `customers`",
        "1 of 6 rows of `orders` is gone in `rest`: its `amount` is missing",
    ]


@pytest.mark.parametrize(("text", "expected"), ONCE)
async def test_a_lost_row_is_told_once(text: str, expected: list[str]) -> None:
    found = await told(text)
    assert [one for one in found if "gone" in one] == expected


async def test_pandas_sees_a_store_into_a_copy_also_where_values_are_filled() -> None:
    evidence = await ran("orders['amount'].fillna(0, inplace=True)\nlen(orders)")
    assert evidence.passed is False
    assert "`orders` is unchanged" in evidence.detail


@pytest.mark.parametrize("text", QUIET)
async def test_what_does_nothing_to_data_has_no_line(text: str) -> None:
    assert await told(text) == []


COMPUTED = [
    "[(x + y) // 2 for x, y in zip(xs, ys)]",  # [2, 2, 2, 2]
    "numpy.mean([xs, ys], axis=0)",
    "numpy.clip(xs, 2, 3)",
    "[abs(x) for x in [-3, 1, 2, 3]]\n[max(x, 2) for x in xs]",
    "[x % 3 + 1 for x in xs]",
]


@pytest.mark.parametrize("text", COMPUTED)
async def test_computed_items_are_not_taken_for_those_that_they_equal(text: str) -> None:
    variables = {"numpy": pytest.importorskip("numpy"), "xs": [3, 1, 2, 3], "ys": [1, 3, 2, 1]}
    assert await told(text, **variables) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("read = pandas.read_csv(io.StringIO('a,b\\n1,\\n2,3'))", False),
        ("read = pandas.DataFrame({'a': [1.0, None]})", False),
        ("late = orders.groupby('price')[['order']].std()", True),
        ("late = pandas.DataFrame({'a': d}, index=['a', 'c'])", True),
    ],
)
async def test_what_a_file_lacks_is_told_and_nobody_has_to_want_it(text: str, wanted: bool) -> None:
    evidence = await ran(text, io=io, d={"a": 1})
    (found,) = (one for one in evidence.effects if one.kind == "missing")
    assert sentence(found).endswith((" is missing", " are missing"))
    assert has_to_be_wanted(found) is wanted


STORES = [
    "orders[orders.order > 2]['amount'] = 0",
    "orders['amount'][0] = 0",
    "orders.loc[orders.order > 2]['amount'] = 0",
    "orders.iloc[0]['amount'] = 9\norders",
    "orders['amount'].replace(4.0, 0, inplace=True)",
    "import warnings\nwarnings.simplefilter('ignore')\norders.query('order > 2')['amount'] = 0",
    "def clear(t):\n    t[t.order > 2]['amount'] = 0\nclear(orders)",
    "orders['tax'] = 1\norders[orders.order > 2]['tax'] = 0",
]


@pytest.mark.parametrize("text", STORES)
async def test_a_store_that_pandas_lets_fall_is_missed(text: str) -> None:
    evidence = await ran(text)
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "[" in one or "(4" in one)
    line = len(text.splitlines()) if text.startswith(("import", "orders['tax'] = 1")) else line
    assert evidence.failed
    why = "`orders` is unchanged: pandas warned, ChainedAssignmentError"
    assert evidence.detail.startswith(f"{why} (line {line}).")
    (point,) = evidence.points
    assert (point.words, point.blocking, point.effect) == (why, True, evidence.effects[0])
    assert evidence.faults[0].raised == "ChainedAssignmentError"


async def test_a_store_that_a_later_line_makes_good_is_a_remark() -> None:
    first = "orders[orders.order > 2]['amount'] = 0"
    found = await told(f"{first}\norders.loc[orders.order > 2, 'amount'] = 0")
    assert "ChainedAssignmentError in line 1" in found


async def test_warnings_are_told_with_their_line_and_those_of_libraries_are_not() -> None:
    text = "import warnings\nn = 1\nwarnings.warn('old', DeprecationWarning)\nn"
    assert await told(text) == ["DeprecationWarning in line 3: old"]


async def test_a_table_with_the_same_labels_is_not_taken_for_the_one_it_was_made_of() -> None:
    staff = pandas.DataFrame({"person": ["Kim", "Ada", "Raj", "Lou"], "salary": [41, 52, 49, 30]})
    reviews = pandas.DataFrame({"person": ["Ada", "Kim", "Lou", "Raj"], "score": [4.5, 3, 3.5, 2]})
    text = "staff['score'] = reviews['score']\nstaff.nlargest(2, 'salary')"
    lines = await told(text, staff=staff, reviews=reviews)
    assert lines[0].startswith("4 of 4 values of `score` in `staff` are not those of their")
    assert not any("overwritten" in line for line in lines)


async def test_a_number_that_became_text_is_no_other_value() -> None:
    stars = pandas.DataFrame({"order": [1, 2, 3], "stars": [5, 4, 5]})
    text = (
        "known = orders.merge(stars, on='order')\nknown['stars'] = known['stars'].astype({})\nknown"
    )
    assert not any("not those of" in one for one in await told(text.format("str"), stars=stars))
    wrong = text.format("str") + "\nknown['stars'] = ['4', '4', '4']\nknown"
    assert any("not those of" in one for one in await told(wrong, stars=stars))


@pytest.mark.fresh  # its threads take much of the memory that there is
async def test_polars_frames_are_told_alike() -> None:
    polars = pytest.importorskip("polars")
    orders = polars.DataFrame(
        {"id": [1, 2, 3], "town": ["Ulm", None, "Rom"], "n": [1.0, None, 3.0]}
    )
    towns = polars.DataFrame({"town": ["Ulm", "Ulm"], "land": ["BW", "BY"]})
    of = {"o": orders, "towns": towns}
    assert (await told("kept = o.drop_nulls()", **of))[0] == (
        "1 of 3 rows of `o` is gone in `kept`: its `town` or `n` is missing"
    )
    joined = await told("both = o.join(towns, on='town')", **of)
    assert joined[0] == "1 of 3 rows of `o` is gone in `both`: its `town` (Rom) is not in `towns`"
    assert await told("o = o.with_columns(n=o['n'].fill_null(0))", **of) == [
        "1 missing value of `n` in `o` is filled with 0"
    ]


SECRETS = [
    {"kind": "overwritten", "column": "password", "before": "hunter2", "after": "swordfish"},
    {"kind": "overwritten", "name": "d", "values": ["api_key"], "before": "'x'", "after": "'y'"},
    {"kind": "gone", "column": "password", "values": ["hunter2", "swordfish"]},
    {"kind": "gone", "column": "note", "values": ["sk-abcdefgh12345678"]},
    {"kind": "changed", "name": "token", "before": "'abc123def'", "after": "'abc123xyz'"},
    {"kind": "columns", "name": "t", "values": ["sk-abcdefgh12345678"]},
    {"kind": "warning", "cause": "UserWarning", "after": "no sk-abcdefgh12345678"},
]


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_told(secret: dict[str, Any]) -> None:
    (effect,) = read_effects([{"effects": [secret]}], CELL)
    told = sentence(effect)
    assert "[secret]" in told
    assert not any(one in told for one in ("hunter2", "swordfish", "'y'", "abcdefgh", "abc123"))


async def test_of_first_rows_no_sum_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    few: tuple[Condition, ...] = (FirstRows(name="orders", rows=6, of=900),)
    copies = Variables(tables()).copies
    monkeypatch.setattr(type(copies), "conditions", lambda *_: few)
    evidence = await RunOnCopies(copies=copies)("orders.merge(customers)", CELL)
    assert evidence.effects
    assert "total" not in {one.kind for one in evidence.effects}


FORGE = """
import sys
frame = sys._getframe(1)
while frame and 'write_event' not in frame.f_locals: frame = frame.f_back
frame.f_locals['write_event'](effects={})
"""


@pytest.mark.parametrize(
    ("forged", "count"),
    [
        ("[{'kind': 'new', 'name': 'x', 'after': '1 row × 1 column'}]", 1),
        ("[{'kind': 'nonsense'}, 7, None, {'kind': 'new', 'name': 5}, {'kind': 'new', 'x': 1}]", 0),
        ("[{'kind': 'gone', 'count': -3}, {'kind': 'gone', 'values': 7}]", 0),
        ("[{'kind': 'new', 'head': {'kind': 'table'}}]", 0),
        ("{'kind': 'new'}", 0),
    ],
)
async def test_a_forged_report_shows_nothing_but_effects(forged: str, count: int) -> None:
    evidence = await RunsCleanly()(FORGE.format(forged), CELL)
    assert len(evidence.effects) == count


@pytest.mark.parametrize("line", [0, 999, 10**9])
async def test_a_lost_store_in_a_line_that_no_text_has_is_missed_without_a_place(line: int) -> None:
    forged = f"[{{'kind': 'unchanged', 'name': 'x', 'cause': 'Odd', 'line': {line}}}]"
    evidence = await RunsCleanly()(FORGE.format(forged), CELL)
    assert (evidence.passed, evidence.points[0].place) == (False, "")


async def test_what_printed_does_not_give_nothing() -> None:
    evidence = await ran("print(len(orders))")
    assert isinstance(evidence.outputs[0], Printed)
    assert evidence.effects == ()
