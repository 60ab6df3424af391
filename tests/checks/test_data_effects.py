"""What a cell did to data is told in words, the most telling first, and of lost stores it fails."""

import ast
import builtins
import io
import json
import re
import warnings
from collections import Counter
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from ipyrefine.checks.python import RunOnCopies, RunsCleanly
from ipyrefine.checks.reported import read_effects
from ipyrefine.core.effects import has_to_be_wanted, sentence
from ipyrefine.core.model import Condition, Effect, FirstRows, Printed, Task
from ipyrefine.core.table import Evidence
from ipyrefine.kernel.variables import Variables
from ipyrefine.sandbox.programs import account, capture

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
    """What a run in the sandbox shows."""
    copies = Variables({**tables(), **variables}).copies
    return await RunOnCopies(copies=copies)(text, CELL)


def effects(text: str, **variables: Any) -> tuple[Effect, ...]:
    """What the sandbox's account says of a text, which is run in this process."""
    given = {n: v for n, v in {**tables(), **variables}.items() if re.search(rf"\b{n}\b", text)}
    ours = account.Account(given, vars(capture), lambda _: 0.0)
    names = dict(vars(builtins))
    space = {"__name__": "__main__", "__builtins__": names, **given}
    with pytest.MonkeyPatch.context() as patches, warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        for module in ("frame", "series", "generic", "indexing"):  # the account changes them
            patches.setattr(f"pandas.core.{module}.warnings", warnings)
        tree, value = ours.watch(ast.parse(text), "candidate.py", names), None
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "candidate.py", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "candidate.py", "eval"), space)
        found = ours.report(space, value, odd=True)
    return read_effects([{"effects": json.loads(json.dumps(found))}], CELL)


def told(text: str, **variables: Any) -> list[str]:
    return [sentence(one) for one in effects(text, **variables)]


def read(table: str) -> list[tuple[str, list[str]]]:
    """The texts of a table, and the sentences below each."""
    rows: list[tuple[list[str], list[str]]] = []
    for line in table.strip().splitlines():
        if line.startswith(">>> "):
            if not rows or rows[-1][1]:
                rows.append(([], []))
            rows[-1][0].append(line[4:])
        elif line.startswith("  "):
            rows[-1][1][-1] += line[1:]
        else:
            rows[-1][1].append(line)
    return [("\n".join(text), sentences) for text, sentences in rows]


# Texts, and the first sentences on each.
TOLD = """
>>> merged = orders.merge(customers, on='customer')
>>> merged.groupby('town')['amount'].sum()
1 of 6 rows of `orders` is gone in `merged`: its `customer` (x) is not in `customers`
1 of 6 rows of `orders` is gone in `merged`: its `customer` is missing
sum of `amount`: 19.00 in `orders`, 10.00 in the answer
>>> orders.merge(customers).groupby('town')['amount'].sum()
1 of 6 rows of `orders` is gone: its `customer` (x) is not in `customers`
1 of 6 rows of `orders` is gone: its `customer` is missing
>>> pandas.merge(orders, rates, how='left')['amount'].sum()
2 of 6 rows of `orders` are there more than once: `customer` (a) is in `rates` more than once
3 of 8 values of `rate` are missing: they have no row in `rates` (x, c)
>>> orders.groupby('customer')['order'].count()
1 of 6 rows of `orders` has no `customer` and is left out
>>> orders['customer'].value_counts()
1 of 6 rows of `orders` has no `customer` and is left out
>>> orders.groupby('size')['order'].count()
1 of 3 categories of `size` is left out: no row has it (XL)
>>> clean = orders.dropna()
>>> len(clean)
2 of 6 rows of `orders` are gone in `clean`: their `customer` or `amount` is missing
>>> len(orders.drop_duplicates('customer'))
1 of 6 rows of `orders` is gone: it repeats another by `customer`
>>> few = orders[orders.order > 2]
4 of 6 rows of `orders` are kept in `few`
`few` is new: 4 rows × 6 columns
>>> orders['price'] = pandas.to_numeric(orders['price'], errors='coerce')
1 of 6 values of `price` in `orders` becomes missing (n/a)
`price` in `orders`: str → float64
>>> orders['amount'] = orders['amount'].fillna(0)
1 missing value of `amount` in `orders` is filled with 0
>>> orders.loc[orders.order > 4, 'amount'] = 1
2 of 5 known values of `amount` in `orders` are overwritten (5 → 1)
sum of `amount`: 19.00 in `orders`, 10.00 afterwards
>>> orders['price'].max()
the numbers of `price` in `orders` are text
>>> orders['at'].dt.date.nunique()
the times of `at` in `orders` are in UTC
>>> rates = rates.sort_values('rate', ascending=False)
`rates` has its rows in another order
>>> rates = rates.set_index('customer').reset_index()
>>> rates['new'] = 1
`rates` has a new column `new`
>>> def fix(t):
>>>     t['rate'] = 0
>>> fix(rates)
3 of 3 known values of `rate` in `rates` are overwritten (1 → 0)
>>> kept = rates
>>> kept['rate'] = kept['rate'] * 1.0
`rate` in `rates`: int64 → float64
>>> rates.index.name = 'row'
`rates`: index name none → row
>>> rates.index += 5
`rates`: row labels 0, 1, 2 → 5, 6, 7
>>> rates.attrs['of'] = 2026
`rates`: attrs {} → {'of': 2026}
>>> rates = rates[['rate', 'customer']]
`rates` has its columns in another order
>>> rates.columns = ['who', 'share']
2 columns of `rates` are renamed (customer → who, rate → share)
>>> rates = rates.set_index('customer')
`rates` has column `customer` as its index
>>> orders = orders.T
`orders` no longer has columns `order`, `customer`, `amount`, `price`, `size` and 1 more
>>> orders['size'] = orders['size'].cat.reorder_categories(['XL', 'M', 'S'])
`size` in `orders`: categories S, M, XL → categories XL, M, S
>>> orders['size'] = orders['size'].cat.rename_categories({'S': 'small'})
3 of 6 known values of `size` in `orders` are overwritten (S → small)
>>> rates.loc[3] = ['d', 4]
`rates`: 3 rows × 2 columns → 4 rows × 2 columns
>>> rates = rates.groupby('customer', as_index=False).sum()
`rates`: 3 rows × 2 columns → 2 rows × 2 columns
>>> rates = rates['rate']
`rates`: 3 rows × 2 columns → 3 values (int64)
>>> customers['customer'] = customers['customer'].replace('d', 'a')
1 of 4 known values of `customer` in `customers` is overwritten (d → a)
>>> orders['amount'] = orders['amount'].sort_values().values
the values of `amount` in `orders` are in another order
>>> rates = rates.set_index('customer').drop('b')
`rates` has column `customer` as its index
1 of 3 rows of `rates` is gone (b, 3)
>>> merged = orders.merge(customers, how='left')
>>> merged['town'] = merged['town'].fillna('?')
2 missing values of `town` in `merged` are filled with ?: they have no row in `customers` (x)
>>> merged = orders.merge(customers, how='left')
>>> merged['town'] = merged['town'].where(merged['town'].notna(), '?')
2 missing values of `town` in `merged` are filled: they have no row in `customers` (x)
>>> merged = orders.merge(customers, how='left')
>>> merged['town'] = merged.assign(town=merged['town'].fillna('?'))['town']
2 missing values of `town` in `merged` are filled with ?: they have no row in `customers` (x)
>>> orders.merge(customers, how='left').fillna({'town': '?'}).groupby('town').size()
2 missing values of `town` in `orders` are filled with ?: they have no row in `customers` (x)
>>> pandas.to_numeric(orders['price'], errors='coerce').fillna(0).sum()
1 of 6 values of `price` in `orders` becomes missing (n/a) and is filled with 0
>>> orders['n'] = orders['customer'].map({'a': 1, 'b': 2, 'c': 3}).fillna(0)
1 of 6 values of `customer` in `orders` maps to nothing (x) and is filled with 0
>>> orders['amount'].ffill().sum()
1 missing value of `amount` in `orders` is filled with 2.5
>>> orders['town'] = customers['town']
2 of 3 values of `town` in `orders` are not those of their `customer` in `customers` (Bonn, not
  Ulm)
>>> orders['town'] = orders['customer'].map(customers.set_index('customer')['town'])
1 of 6 values of `customer` in `orders` maps to nothing (x)
>>> rates['customer'] = sorted(rates['customer'], reverse=True)
the values of `customer` in `rates` are in another order
>>> for _, row in orders.iterrows():
>>>     row['amount'] = 0
>>> orders
`orders` is unchanged, though line 2 stores into it
>>> orders.groupby('price')['order'].sum().cumsum()
the groups of `price` are sorted, not as they come (10, 30, 7 …)
>>> orders['amount'] - orders['amount'].iloc[1:]
1 of 6 values of `amount` is missing: the labels of the two differ
>>> pandas.concat([orders, rates], axis=1)
3 of 6 values of `rate` are missing: the labels of the two differ
>>> orders['amount'].add(orders['amount'].iloc[1:])
1 of 6 values of `amount` is missing: the labels of the two differ
>>> orders.resample('D', on='at')['amount'].sum()
the times of `at` in `orders` are in UTC
>>> rates.set_index('customer')['rate'].to_dict()
1 of 3 rows of `rates` is gone: another has the same `customer` (a)
>>> pandas.crosstab(orders['customer'], orders['size'])
1 of 6 rows of `orders` has no `customer` and is left out
>>> orders['amount'].div(2).mean()
1 of 6 rows of `orders` has no `amount` and is left out
>>> for x, y in zip(xs, [1, 2]): pass
2 of 4 items of `xs` are gone: `[1, 2]` has fewer
>>> {x: 1 for x in xs}
1 of 4 items of `xs` is gone: another has the same key
>>> {x: 1 for x in xs if x > 1}
2 of 4 items of `xs` are kept
>>> xs = sorted(set(xs))
1 of 4 items of `xs` is gone: it repeats another
>>> xs.sort()
`xs` has its items in another order
>>> xs[0] = 9
1 of 4 items in `xs` is overwritten (3 → 9)
>>> d['a'] = 5
1 of 2 items in `d` is overwritten (a: 1 → 5)
>>> a = a.astype('float32')
`a`: int64 → float32
>>> a = a.reshape(3, 1)
`a`: 3 values (int64) → 3 × 1 values (int64)
>>> d = dict(reversed(d.items()))
`d` has its items in another order
>>> d['c'] = 3
`d`: 2 items → 3 items, new: c
>>> xs = tuple(xs)
`xs`: list → tuple
>>> xs = [str(x) for x in xs]
4 of 4 items in `xs` are overwritten (3 → '3')
>>> n += 1
`n`: 1 → 2
>>> ys = [x for x in xs if x > 1]
1 of 4 items of `xs` is gone in `ys` (1)
>>> dict(zip(xs, a))
1 of 4 items of `xs` is gone: another has the same key (3)
>>> max([{'n': '9'}, {'n': '10'}], key=lambda one: one['n'])
the numbers of `n` are text
>>> float('nan')
The answer is nan
>>> orders.head(0)
The answer is empty
>>> rates['rate'].reindex([7, 8])
All values of the answer are missing
>>> top = rates.pop('rate') if n > 1 else None
`top` is None
>>> share = n / pandas.Series([0.0]).sum()
`share` is inf
>>> rates.copy().sort_values('rate')
>>> None
It gives nothing and changes nothing
>>> orders.dropna(inplace=True)
2 of 6 rows of `orders` are gone: they have a missing value
>>> len(orders.assign(a=None, b=None).dropna(subset=['a', 'b', 'customer']))
6 of 6 rows of `orders` are gone: their `a`, `b` or `customer` is missing
>>> orders[['order', 'amount']].round()
2 of 5 known values of `amount` in the answer are overwritten (1.5 → 2)
>>> orders['amount'].max(), orders['amount'].min()
1 of 6 rows of `orders` has no `amount` and is left out
>>> paid = orders[orders.order > 2].copy()
4 of 6 rows of `orders` are kept in `paid`
`paid` is new: 4 rows × 6 columns
>>> orders = orders.drop(orders[orders.order > 2].index)
4 of 6 rows of `orders` are gone: `order` (3, 4, 5 …)
>>> old = orders
>>> orders = orders[orders.order > 2]
4 of 6 rows of `orders` are kept
`old` is new: 6 rows × 6 columns
>>> backup = rates.copy()
>>> rates['rate'] = rates['rate'].sum()
3 of 3 known values of `rate` in `rates` are overwritten (1 → 6)
`backup` is new: 3 rows × 2 columns
>>> known = orders.merge(customers, how='left')
>>> known.head(2)
2 of 6 values of `town` in `known` are missing: they have no row in `customers` (x)
1 of 4 rows of `customers` is gone in `known`: its `customer` (d) is not in `orders`
`known` is new: 6 rows × 7 columns
>>> big = orders.amount > 2
1 of 6 values of `amount` in `orders` is missing: comparing it gives False
>>> (orders.apply(lambda row: row['amount'], axis=1)).sum()
1 of 6 values is missing and left out
>>> orders['amount'].sum(skipna=False)
The answer is nan
>>> pandas.concat([rates, rates.iloc[::-1].reset_index(drop=True)], axis=1)['customer'].shape
>>> ids = customers.customer
>>> orders.query('customer in @ids')['order'].sum()
`ids` is new: 4 values (str)
>>> del rates
`rates`: 3 rows × 2 columns → deleted
>>> rates.index = [pandas.Timestamp(2026, 1, 2, n) for n in (0, 3, 0)]
`rates`: row labels 0, 1, 2 → 2026-01-02, 2026-01-02 03:00:00, 2026-01-02
>>> orders['amount'] = orders['amount'] / 10_000
5 of 5 known values of `amount` in `orders` are overwritten (1.5 → 0.00015)
sum of `amount`: 19.00 in `orders`, 0.0019 afterwards
>>> orders['amount'] = orders['amount'] - 3.8
5 of 5 known values of `amount` in `orders` are overwritten (1.5 → -2.3)
sum of `amount`: 19.00 in `orders`, 0.00 afterwards
>>> rates.columns = pandas.MultiIndex.from_tuples([('who', 'id'), ('is', 'n')])
2 columns of `rates` are renamed (customer → who, id; rate → is, n)
>>> def f(t): return len(t)
>>> m = None
>>> del m
`f` is defined, and nothing calls it
"""


@pytest.mark.parametrize(("text", "expected"), read(TOLD))
def test_the_first_lines_tell_what_became_of_data(text: str, expected: list[str]) -> None:
    variables = {"xs": [3, 1, 2, 3], "d": {"a": 1, "b": 2}, "a": numpy.array([1, 2, 3]), "n": 1}
    assert told(text, **variables)[: len(expected)] == expected


# Texts, and all that is said of rows that are gone, though several steps lose them.
ONCE = """
>>> orders.merge(customers).merge(rates)
1 of 6 rows of `orders` is gone: its `customer` (x) is not in `customers`
1 of 4 rows is gone: its `customer` (c) is not in `rates`
1 of 6 rows of `orders` is gone: its `customer` is missing
1 of 4 rows of `customers` is gone: its `customer` (d) is not in `orders`
2 of 4 rows of `customers` are gone: their `customer` (c, d) is not in `rates`
>>> now = rates.sort_values('rate').drop_duplicates('customer', keep='last')
>>> both = now.merge(customers, on='customer')
1 of 3 rows of `rates` is gone in `now`: it repeats another by `customer`
2 of 4 rows of `customers` are gone in `both`: their `customer` (c, d) is not in `now`
>>> def clean(t):
>>>     t = t.dropna(subset=['amount'])
>>>     return t.merge(customers)
>>> few = clean(orders)
1 of 5 rows of `t` is gone in `few`: its `customer` (x) is not in `customers`
1 of 6 rows of `orders` is gone: its `amount` is missing
1 of 5 rows of `t` is gone in `few`: its `customer` is missing
2 of 4 rows of `customers` are gone in `few`: their `customer` (b, d) is not in `t`
"""


@pytest.mark.parametrize(("text", "expected"), read(ONCE))
def test_a_lost_row_is_told_once(text: str, expected: list[str]) -> None:
    assert [one for one in told(text) if "gone" in one] == expected


NOTHING = [
    "total = float(orders['order'].sum())",
    "import statistics\nstatistics.mean([1, 2])",
    "orders.groupby('customer', dropna=False)['order'].count()",
    "[str(order) for order in orders.order]",
    "orders['customer'].astype('category').isna()",
    # Items that were computed, and equal those that there were.
    "[(x + y) // 2 for x, y in zip(xs, ys)]",
    "numpy.mean([xs, ys], axis=0)",
    "numpy.clip(xs, 2, 3)",
    "[abs(x) for x in [-3, 1, 2, 3]]\n[max(x, 2) for x in xs]",
    "[x % 3 + 1 for x in xs]",
    "{n: 2 * value for n, value in d.items()}",
    # Sums of groups, of which some equal a row.
    "orders[['order', 'amount']].describe()",
    "rates.groupby('customer').sum()",
    "known.groupby('customer', as_index=False)[['amount', 'order']].sum()",
    "known.groupby('size', observed=False)[['order', 'amount']].sum()",
    "days.groupby('n', as_index=False).count()",
    # What is computed of each value, or for each row.
    "days.isna()",
    "days[['n', 'v']].rank()",
    "days.shift()",
    "orders.groupby('size')['order'].transform('sum')",
    "orders.groupby('price')['order'].cumsum()",
    # What is asked for.
    "orders['customer'].unique()",
    "customers.merge(orders, how='left_anti')",
    "orders.set_index('order')['price'].str.len()",
    # What is missing, or none, before and afterwards.
    "ends['a'] = ends['a'] * 2\nlen(ends)",
]


@pytest.mark.parametrize("text", NOTHING)
def test_what_does_nothing_to_data_has_no_line(text: str) -> None:
    known = tables()["orders"].dropna(subset=["customer"])
    xs, ys, d = [3, 1, 2, 3], [1, 3, 2, 1], {"a": 1, "b": 2}
    ends = pandas.DataFrame({"a": [numpy.inf, -numpy.inf]})
    days = pandas.DataFrame({"n": [1, 2, 2, 4], "v": [0.5, 2.5, 7.5, 9.5]}, range(1, 5))
    days = days.rename_axis("day").convert_dtypes()
    of = {"xs": xs, "ys": ys, "d": d, "known": known, "ends": ends, "days": days}
    assert told(text, numpy=numpy, **of) == []


def test_a_sorted_table_that_gets_new_labels_keeps_its_rows_where_they_are() -> None:
    t = pandas.DataFrame({"n": [3, 1, 2, 2], "of": list("abca"), "is": [True, True, False, True]})
    t = t.sort_values("n")
    assert told("t = t.reset_index()", t=t) == ["`t` has a new column `index`"]
    labels = "`t`: row labels 1, 2, 3, 0 → 0, 1, 2, 3"
    assert told("t = t.reset_index(drop=True)", t=t) == [labels]
    assert told("t = t.reset_index(drop=True)\nt['n'] = t['n'] * 2", t=t)[0] == (
        "4 of 4 known values of `n` in `t` are overwritten (1 → 2)"
    )


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "float64", "object"])
def test_values_of_any_type_that_change_are_told(dtype: str) -> None:
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    t = pandas.DataFrame({"n": pandas.array([1, 2, None, 4]).astype(dtype), "k": list("abcd")})
    assert told("t['n'] = t['n'] * 2", t=t.copy())[0] == (
        "3 of 3 known values of `n` in `t` are overwritten (1 → 2)"
    )
    assert (
        told("t.loc[2, 'n'] = 0", t=t.copy())[0] == "1 missing value of `n` in `t` is filled with 0"
    )
    keys = pandas.DataFrame({"n": t["n"].head(3), "of": [1, 2, 3]})
    lines = told("both = t.merge(keys, on='n')", t=t, keys=keys)
    assert lines[0] == "1 of 4 rows of `t` is gone in `both`: its `n` (4) is not in `keys`"


def test_of_a_wide_frame_the_columns_that_a_text_names_are_looked_at() -> None:
    wide = pandas.DataFrame({f"c{n}": [n, n + 1] for n in range(90)})
    assert told("wide['c85'] = 0", wide=wide)[0] == (
        "2 of 2 known values of `c85` in `wide` are overwritten (85 → 0)"
    )
    assert told("wide.iloc[:, 86] = 0", wide=wide) == ["`wide` is changed"]
    assert told("wide = wide.drop(columns='c0')", wide=wide) == ["`wide` no longer has column `c0`"]
    assert told("wide.columns = [one.upper() for one in wide]", wide=wide) == [
        "90 columns of `wide` are renamed (c0 → C0, c1 → C1, c2 → C2 …)"
    ]


def test_of_columns_that_are_too_long_to_look_at_the_others_are_told() -> None:
    at = pandas.date_range("2026-01-01", periods=200_001, freq="min")
    t = pandas.DataFrame({"at": at, "n": 1, "of": "x"})
    later = "t['at'] = t['at'] + pandas.Timedelta('1h')"
    assert told(later, t=t.copy()) == ["`t` is changed"]
    lines = told(f"{later}\nt['n'] = 2\nt['new'] = 1", t=t)
    assert lines[0] == "200,001 of 200,001 known values of `n` in `t` are overwritten (1 → 2)"
    assert lines[-1] == "`t` has a new column `new`"


def test_a_column_that_gets_other_values_of_its_own_loses_no_rows() -> None:
    t = pandas.DataFrame({"name": ["a", "b", "c"], "n": [1, 1, 2]})
    assert told("t['name'] = t['name'].replace({'a': 'b', 'c': 'b'})", t=t) == [
        "2 of 3 known values of `name` in `t` are overwritten (a → b)"
    ]


def test_the_rows_that_a_list_in_a_column_makes_are_told() -> None:
    carts = pandas.DataFrame({"cart": [1, 2], "of": [7, 7], "items": [["a", "b"], ["c"]]})
    assert told("carts = carts.explode('items')", carts=carts)[0] == (
        "1 of 2 rows of `carts` is there more than once: `cart` (1)"
    )


OPEN = ["carts.loc[0, 'items'].append('d')\nNone", "words['a'] += 1", "box.n = 2", "rows.sort()"]


@pytest.mark.parametrize("text", OPEN)
async def test_of_what_no_copy_keeps_nobody_says_that_nothing_changes(text: str) -> None:
    carts = pandas.DataFrame({"cart": [1, 2], "items": [["a", "b"], ["c"]]})
    words, box, rows = Counter("ab"), SimpleNamespace(n=1), [Decimal(2), Decimal(1)]
    evidence = await ran(text, carts=carts, words=words, box=box, rows=rows)
    assert evidence.passed
    assert evidence.effects == ()


@pytest.mark.parametrize("text", ["print(len(orders))", "orders.to_csv('out.csv')"])
async def test_of_what_printed_or_wrote_nobody_says_that_it_gives_nothing(text: str) -> None:
    evidence = await ran(text)
    assert evidence.passed
    assert evidence.effects == ()
    assert [type(one) for one in evidence.outputs] == [Printed] * text.startswith("print")


async def test_of_rows_that_a_helper_of_the_notebook_loses_the_end_says_why() -> None:
    space = {"__name__": "__main__"}
    exec(
        "def known(t, c): return t[t.customer.isin(c.customer)]\n"
        "def whole(t): return t.dropna(subset=['amount'])",
        space,
    )
    text = "few = known(orders, customers)\nrest = whole(orders)"
    evidence = await ran(text, known=space["known"], whole=space["whole"])
    assert [one for one in map(sentence, evidence.effects) if "gone" in one] == [
        "2 of 6 rows of `orders` are gone in `few`: their `customer` (x) is not in `customers`",
        "1 of 6 rows of `orders` is gone in `rest`: its `amount` is missing",
    ]


async def test_a_table_that_a_cell_replaces_unread_is_new_data() -> None:
    evidence = await ran("rates = pandas.DataFrame({'n': [1]})")
    assert sentence(evidence.effects[0]) == "`rates` is replaced: 1 row × 1 column"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("read = pandas.read_csv(io.StringIO('a,b\\n1,\\n2,3'))", False),
        ("read = pandas.DataFrame({'a': [1.0, None]})", False),
        ("late = orders.groupby('price')[['order']].std()", True),
        ("late = pandas.DataFrame({'a': d}, index=['a', 'c'])", True),
    ],
)
def test_what_a_file_lacks_is_told_and_nobody_has_to_want_it(text: str, wanted: bool) -> None:
    (found,) = (one for one in effects(text, io=io, d={"a": 1}) if one.kind == "missing")
    assert sentence(found).endswith((" is missing", " are missing"))
    assert has_to_be_wanted(found) is wanted


STORES = {
    "orders[orders.order > 2]['amount'] = 0": 1,
    "orders['amount'][0] = 0": 1,
    "orders.loc[orders.order > 2]['amount'] = 0": 1,
    "orders.iloc[0]['amount'] = 9\norders": 1,
    "orders['amount'].replace(4.0, 0, inplace=True)": 1,
    "orders['amount'].fillna(0, inplace=True)\nlen(orders)": 1,
    "def clear(t):\n    t[t.order > 2]['amount'] = 0\nclear(orders)": 2,
    "orders['tax'] = 1\norders[orders.order > 2]['tax'] = 0": 2,
}
LOST_STORE = "`orders` is unchanged: pandas warned, ChainedAssignmentError"


@pytest.mark.parametrize("text", STORES)
def test_a_store_that_pandas_lets_fall_is_told_first(text: str) -> None:
    first = effects(text)[0]
    found = first.kind, first.name, first.cause, first.line
    assert found == ("unchanged", "orders", "ChainedAssignmentError", STORES[text])


async def test_a_store_that_pandas_lets_fall_is_missed() -> None:
    text = (
        "import warnings\nwarnings.simplefilter('ignore')\norders.query('order > 2')['amount'] = 0"
    )
    evidence = await ran(text)
    assert evidence.failed
    assert evidence.shows.startswith(f"{LOST_STORE} (line 3).")
    (point,) = evidence.points
    assert (point.words, point.blocking, point.effect) == (LOST_STORE, True, evidence.effects[0])
    assert evidence.faults[0].raised == "ChainedAssignmentError"


def test_a_store_that_a_later_line_makes_good_is_a_remark() -> None:
    first = "orders[orders.order > 2]['amount'] = 0"
    found = told(f"{first}\norders.loc[orders.order > 2, 'amount'] = 0")
    assert not any("unchanged" in one for one in found)
    assert "ChainedAssignmentError in line 1" in found


async def test_warnings_are_told_with_their_line_and_those_of_libraries_are_not() -> None:
    text = "import warnings\nn = 1\nwarnings.warn('old', DeprecationWarning)\nn"
    evidence = await ran(text)
    assert [*map(sentence, evidence.effects)] == ["DeprecationWarning in line 3: old"]


def test_what_a_later_version_changes_is_told_after_what_happened_to_data() -> None:
    warn = "import warnings\nwarnings.warn({}, {})\n"
    old, odd = warn.format("'old'", "FutureWarning"), warn.format("'odd'", "UserWarning")
    found = told(f"{old}{odd}orders['price'] = orders.pop('amount')")
    assert found[-1] == "FutureWarning in line 2: old"
    assert found.index("UserWarning in line 4: odd") < len(found) - 1 > 1


def test_a_table_with_the_same_labels_is_not_taken_for_the_one_it_was_made_of() -> None:
    staff = pandas.DataFrame({"person": ["Kim", "Ada", "Raj", "Lou"], "salary": [41, 52, 49, 30]})
    reviews = pandas.DataFrame({"person": ["Ada", "Kim", "Lou", "Raj"], "score": [4.5, 3, 3.5, 2]})
    text = "staff['score'] = reviews['score']\nstaff.nlargest(2, 'salary')"
    lines = told(text, staff=staff, reviews=reviews)
    assert lines[0].startswith("4 of 4 values of `score` in `staff` are not those of their")
    assert not any("overwritten" in line for line in lines)


def test_a_number_that_became_text_is_no_other_value() -> None:
    stars = pandas.DataFrame({"order": [1, 2, 3], "stars": [5, 4, 5]})
    text = "known = orders.merge(stars)\nknown['stars'] = known['stars'].astype(str)\nknown"
    assert not any("not those of" in one for one in told(text, stars=stars))
    wrong = f"{text}\nknown['stars'] = ['4', '4', '4']\nknown"
    assert any("not those of" in one for one in told(wrong, stars=stars))


def test_a_day_that_became_text_is_no_other_value() -> None:
    t = pandas.DataFrame({"at": pandas.to_datetime(["2026-01-01", "2026-01-02"]), "n": [1, 1]})
    assert told("t['at'] = t['at'].astype(str)", t=t) == ["`at` in `t`: datetime64[us] → str"]


def test_polars_frames_are_told_alike() -> None:
    polars = pytest.importorskip("polars")
    orders = polars.DataFrame(
        {"id": [1, 2, 3], "town": ["Ulm", None, "Rom"], "n": [1.0, None, 3.0]}
    )
    towns = polars.DataFrame({"town": ["Ulm", "Ulm"], "land": ["BW", "BY"]})
    of = {"o": orders, "towns": towns}
    assert told("kept = o.drop_nulls()", **of)[0] == (
        "1 of 3 rows of `o` is gone in `kept`: its `town` or `n` is missing"
    )
    assert told("o.join(towns, on='town', how='anti')", **of) == []
    assert not any("gone" in one for one in told("o.group_by('town').sum()", **of))
    joined = told("both = o.join(towns, on='town')", **of)
    assert joined[0] == "1 of 3 rows of `o` is gone in `both`: its `town` (Rom) is not in `towns`"
    assert told("o = o.with_columns(n=o['n'].fill_null(0))", **of) == [
        "1 missing value of `n` in `o` is filled with 0"
    ]


SECRETS = [
    {"kind": "overwritten", "name": "d", "values": ["api_key"], "before": "'x'", "after": "'y'"},
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
    assert not any(one in told for one in ("'y'", "abcdefgh", "abc123"))


async def test_of_first_rows_no_sum_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    few: tuple[Condition, ...] = (FirstRows(name="orders", rows=6, of=900),)
    copies = Variables(tables()).copies
    monkeypatch.setattr(type(copies), "conditions", lambda *_: few)
    evidence = await RunOnCopies(copies=copies)("orders.merge(customers)", CELL)
    assert evidence.effects
    assert "total" not in {one.kind for one in evidence.effects}


# A cell that writes a report of its own, which is read first.
FORGE = """
import sys
frame = sys._getframe(1)
while frame and 'write_event' not in frame.f_locals: frame = frame.f_back
frame.f_locals['write_event'](effects={}, changes={})
"""


async def test_a_forged_report_shows_nothing_but_effects_and_values() -> None:
    new = {"kind": "new", "name": "x"}
    odd = [7, None, {"kind": "nonsense"}, {**new, "name": 5}, {**new, "x": 1}, {**new, "head": new}]
    odd += [{"kind": "gone", "count": -3}, {"kind": "gone", "values": 7}]
    changes = [["x", "", "1"], [1, 2, 3], ["x", "", "not a value("], ["def", "", "1"]]
    evidence = await RunsCleanly()(FORGE.format([*odd, new], changes), CELL)
    # That a cell made those up, nobody can tell.
    assert [(one.kind, one.name) for one in evidence.effects] == [("new", "x")]
    assert [(row.call, row.result) for row in evidence.rows] == [("x", "1")]
    evidence = await RunsCleanly()(FORGE.format(new, {}), CELL)
    assert (evidence.effects, evidence.rows) == ((), ())


@pytest.mark.parametrize("line", [0, 10**9])
async def test_a_lost_store_in_a_line_that_no_text_has_is_missed_without_a_place(line: int) -> None:
    forged = [{"kind": "unchanged", "name": "x", "cause": "Odd", "line": line}]
    evidence = await RunsCleanly()(FORGE.format(forged, []), CELL)
    assert (evidence.passed, evidence.points[0].place) == (False, "")


# The names that a cell defined or changed


async def test_a_cell_shows_names_that_are_new_or_changed_and_no_secret() -> None:
    text = "count += 2\ntop = {'a': 1}\nkept = kept\nimport math\ndef f(): ...\n_hidden = 1"
    secret = "password = 'hunter2secret'\nxs.append(4)\nmany = list(range(500))"
    evidence = await ran(f"{text}\n{secret}", count=3, kept=[1], xs=[3])
    assert {row.call: (row.before, row.result) for row in evidence.rows} == {
        "count": ("3", "5"),
        "top": ("", "{'a': 1}"),
        "xs": ("[3]", "[3, 4]"),
    }
    assert (await ran("top = 1\n1 / 0", count=3)).rows == (), "of a cell that failed"


async def test_what_a_loop_leaves_in_its_variable_is_no_result_to_confirm() -> None:
    evidence = await ran(
        "for n, x in enumerate(xs):\n    last = x\nwith open('f', 'w') as f: pass", xs=[3]
    )
    assert [(row.call, row.result) for row in evidence.rows] == [("last", "3")]


async def test_short_series_and_numbers_are_shown_whole_and_what_the_task_names_first() -> None:
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


# The account is taken beside the text


async def test_the_account_of_data_takes_nothing_of_a_texts_time() -> None:
    text = (
        "n = len(orders)\na = pandas.DataFrame({'x': range(300_000)})\n"
        "globals().update({f'a{n}': a for n in range(40)})"  # two seconds to look at
    )
    check = RunOnCopies(seconds=1, copies=Variables(tables()).copies)
    evidence = await check(text, CELL)
    assert evidence.passed, evidence.shows


# What has to run as it does elsewhere, though its steps are noted.
SAME = """
assert df.iloc[:, 0].size == len(df.loc[0:2, 'n']) == 3
class C:
    class dt:
        hour = 3
match 3:
    case C.dt.hour: ok = 1
assert ok
C.dt.hour = 4
del C.dt.hour
class Odd:
    def merge(self, *a): return 5
    def __getattr__(self, n): raise KeyError
    def __len__(self): raise KeyError
    def __eq__(self, o): raise KeyError
odd = Odd()
assert odd.merge(odd) == 5
def f(n): return n * max([f(n - 1), 1]) if n else 1
assert f(4) == 24
import inspect, pandas
assert 'on' in inspect.signature(pandas.DataFrame.join).parameters
"""
ALIKE = [
    SAME,
    "from __future__ import annotations\nimport typing\ndef f(x: list[max]) -> list[min]: ...\n"
    "assert f.__annotations__ == {'x': 'list[max]', 'return': 'list[min]'}",
    "import warnings\nimport pandas as pd\nwith warnings.catch_warnings(record=True) as got:\n"
    "    warnings.simplefilter('always')\n    pd.to_datetime(df.price, errors='coerce')\n"
    "assert [(one.filename, one.lineno) for one in got] == [(__file__, 5)]",
    "import pandas as pd, traceback\ntry:\n    df.merge(df, on='none')\nexcept KeyError as error:\n"
    "    frames = traceback.extract_tb(error.__traceback__)\n"
    "    assert frames[0].lineno == 3 and 'pandas' in frames[1].filename",
    f"x = [{' + '.join(['1'] * 600)}, len(df)]\nassert x[0] == 600",
]


@pytest.mark.parametrize("text", ALIKE)
async def test_noting_steps_changes_nothing_of_a_run(text: str) -> None:
    df = pandas.DataFrame({"city": ["a", "b", "c"], "price": ["1", "2", "x"], "n": [1, 2, 3]})
    evidence = await RunsCleanly(copies=Variables({"df": df}).copies)(text, CELL)
    assert evidence.passed, evidence.shows
