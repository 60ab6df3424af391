"""What a cell did to data is told in words, the most telling first, and of lost stores it fails."""

import ast
import builtins
import io
import json
import re
import tomllib
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from ipyrefine.checks.python import RunOnCopies, RunsCleanly
from ipyrefine.checks.reported import read_effects
from ipyrefine.core.effects import has_to_be_wanted, sentence
from ipyrefine.core.model import Condition, Effect, FirstRows, Task, Value
from ipyrefine.core.table import Result
from ipyrefine.kernel.variables import Variables
from ipyrefine.sandbox.programs import account, capture

pandas = pytest.importorskip("pandas")
CELL = Task(text="Do it.", form="code")
TEXT = str(pandas.Series(["a"]).dtype)  # the type of texts: str, or object before pandas 3
LOST = "ChainedAssignmentError" if TEXT == "str" else "SettingWithCopyWarning"


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


async def ran(text: str, **variables: Any) -> Result:
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
        patches.setattr(warnings, "warn", warnings.warn)
        for reader in ("read_csv", "read_table", "read_json", "read_excel"):  # which are replaced
            patches.setattr(pandas, reader, getattr(pandas, reader))
        tree, value = ast.parse(text), None
        ours.watch(tree, "candidate.py")
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "candidate.py", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "candidate.py", "eval"), space)
        found = ours.report(space, value, odd=True)
    return read_effects([{"effects": json.loads(json.dumps(found))}])


def told(text: str, **variables: Any) -> list[str]:
    return [sentence(one) for one in effects(text, **variables)]


ROWS = tomllib.loads(Path(__file__).with_name("data_effects.toml").read_text("utf-8"))


@pytest.mark.parametrize(("text", "expected"), [*map(dict.values, ROWS["told"])])
def test_the_first_lines_tell_what_became_of_data(text, expected):
    variables = {"xs": [3, 1, 2, 3], "d": {"a": 1, "b": 2}, "a": numpy.array([1, 2, 3]), "n": 1}
    wanted = [re.sub(r"\bstr\b", TEXT, line) for line in expected]
    assert told(text, **variables)[: len(expected)] == wanted


@pytest.mark.parametrize(("text", "expected"), [*map(dict.values, ROWS["once"])])
def test_a_lost_row_is_told_once(text, expected):
    assert [one for one in told(text) if "gone" in one] == expected


NOTHING = [
    "total = float(orders['order'].sum())",
    "import statistics\nstatistics.mean([1, 2])",
    "orders.groupby('customer', dropna=False)['order'].count()",
    "[str(order) for order in orders.order]",
    "orders['customer'].astype('category').isna()",
    # Items that were computed, and equal those that there were.
    "[(x + y) // 2 for x, y in zip(xs, ys)]",
    "numpy.clip(xs, 2, 3)",
    "kept = [x for x in xs if x > 1]",
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
    "orders.groupby('size', observed=True)['order'].transform('sum')",
    "orders.groupby('price')['order'].cumsum()",
    "orders.set_index('order')['price'].str.len()",
    # What is missing, or none, before and afterwards.
    "ends['a'] = ends['a'] * 2\nlen(ends)",
]


@pytest.mark.parametrize("text", NOTHING)
def test_what_does_nothing_to_data_has_no_line(text):
    known = tables()["orders"].dropna(subset=["customer"])
    xs, ys, d = [3, 1, 2, 3], [1, 3, 2, 1], {"a": 1, "b": 2}
    ends = pandas.DataFrame({"a": [numpy.inf, -numpy.inf]})
    days = pandas.DataFrame({"n": [1, 2, 2, 4], "v": [0.5, 2.5, 7.5, 9.5]}, range(1, 5))
    days = days.rename_axis("day").convert_dtypes()
    of = {"xs": xs, "ys": ys, "d": d, "known": known, "ends": ends, "days": days}
    found = effects(text, numpy=numpy, **of)
    assert [one for one in found if one.kind not in ("input", "text")] == []


def test_a_table_that_is_called_as_a_column_is_not_the_column():
    towns = pandas.DataFrame({"town": ["Ulm", "Rom"]})
    assert told("customers.groupby('town').size()", town=towns) == []
    assert told("customers[customers.town.isin(town.town)]", town=towns) != []


def test_a_sorted_table_that_gets_new_labels_keeps_its_rows_where_they_are():
    t = pandas.DataFrame({"n": [3, 1, 2, 2], "of": list("abca"), "is": [True, True, False, True]})
    t = t.sort_values("n")
    assert told("t = t.reset_index()", t=t) == ["`t` has a new column `index`"]
    labels = "`t` is changed"
    assert told("t = t.reset_index(drop=True)", t=t) == [labels]
    assert told("t = t.reset_index(drop=True)\nt['n'] = t['n'] * 2", t=t)[0] == (
        "4 of 4 known values of `n` in `t` are overwritten (1 → 2)"
    )


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "float64", "object"])
def test_values_of_any_type_that_change_are_told(dtype):
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


def test_of_a_wide_frame_the_columns_that_a_text_names_are_looked_at():
    wide = pandas.DataFrame({f"c{n}": [n, n + 1] for n in range(90)})
    assert told("wide['c85'] = 0", wide=wide)[0] == (
        "2 of 2 known values of `c85` in `wide` are overwritten (85 → 0)"
    )
    assert told("wide.iloc[:, 86] = 0", wide=wide) == ["`wide` is changed"]
    assert told("wide = wide.drop(columns='c0')", wide=wide) == ["`wide` no longer has column `c0`"]


def test_a_table_that_is_too_long_to_follow_is_named(monkeypatch):
    monkeypatch.setattr(account, "_CELLS", 4)
    assert told("orders = orders.tail(5)") == ["Not followed here: `orders`, 5 rows × 6 columns"]


def test_a_column_that_gets_other_values_of_its_own_loses_no_rows():
    t = pandas.DataFrame({"name": ["a", "b", "c"], "n": [1, 1, 2]})
    assert told("t['name'] = t['name'].replace({'a': 'b', 'c': 'b'})", t=t) == [
        "2 of 3 known values of `name` in `t` are overwritten (a → b)"
    ]


def test_the_rows_that_a_list_in_a_column_makes_are_told():
    carts = pandas.DataFrame({"cart": [1, 2], "of": [7, 7], "items": [["a", "b"], ["c"]]})
    assert told("carts = carts.explode('items')", carts=carts)[0] == (
        "1 of 2 rows of `carts` is there more than once: `cart` (1)"
    )


OPEN = ["carts.loc[0, 'items'].append('d')\nNone", "words['a'] += 1", "box.n = 2", "rows.sort()"]


@pytest.mark.parametrize("text", OPEN)
async def test_of_what_no_copy_keeps_nobody_says_that_nothing_changes(text):
    carts = pandas.DataFrame({"cart": [1, 2], "items": [["a", "b"], ["c"]]})
    words, box, rows = Counter("ab"), SimpleNamespace(n=1), [Decimal(2), Decimal(1)]
    evidence = await ran(text, carts=carts, words=words, box=box, rows=rows)
    assert evidence.passed
    assert evidence.effects == ()


@pytest.mark.parametrize("text", ["print(len(orders))", "orders.to_csv('out.csv')"])
async def test_of_what_printed_or_wrote_nobody_says_that_it_gives_nothing(text):
    evidence = await ran(text)
    assert evidence.passed
    assert [one.kind for one in evidence.effects] == ["file"] * ("csv" in text)
    assert [type(one) for one in evidence.outputs] == [Value] * text.startswith("print")


async def test_of_rows_that_a_helper_of_the_notebook_loses_the_end_says_why():
    space = {"__name__": "__main__"}
    exec(
        "def known(t, c): return t[t.customer.isin(c.customer)]\n"
        "def whole(t): return t.dropna(subset=['amount'])",
        space,
    )
    text = "few = known(orders, customers)\nrest = whole(orders)"
    evidence = await ran(text, known=space["known"], whole=space["whole"])
    assert [one for one in map(sentence, evidence.effects) if "gone" in one] == [
        "2 of 6 rows of `orders` are gone in `few`: their `customer` (missing, x) is not in "
        "`customers`",
        "1 of 6 rows of `orders` is gone in `rest`: its `amount` is missing",
    ]


async def test_a_table_that_a_cell_replaces_unread_is_new_data():
    evidence = await ran("rates = pandas.DataFrame({'n': [1]})")
    assert sentence(evidence.effects[0]) == "`rates` is replaced: 1 row × 1 column"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("read = pandas.read_csv(io.StringIO('a,b\\n1,\\n2,3'))", False),
        ("read = pandas.DataFrame({'a': [1.0, None]})", False),
        ("late = pandas.DataFrame({'a': d}, index=['a', 'c'])", True),
    ],
)
def test_what_a_file_lacks_is_told_and_nobody_has_to_want_it(text, wanted):
    (found,) = (one for one in effects(text, io=io, d={"a": 1}) if one.kind == "missing")
    assert sentence(found).endswith((" is missing", " are missing"))
    assert has_to_be_wanted(found) is wanted


READS = {
    "nrows=2": "`t` has 2 of the 3 rows of the file `of.csv`: nrows=2",
    "skiprows=lambda n: n == 1": "`t` has 2 of the 3 rows of the file `of.csv`: skiprows=…",
    "na_values=[2]": "1 of 3 values of `a` of the file `of.csv` is read as missing: na_values=[2]",
}


@pytest.mark.parametrize("argument", READS)
def test_what_an_argument_leaves_out_of_a_file_is_told_first(argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("of.csv").write_text("a\n1\n2\n3\n")
    assert told(f"t = pandas.read_csv('of.csv', {argument})")[0] == READS[argument]


STORES = {
    "orders[orders.order > 2]['amount'] = 0": 1,
    "orders.loc[orders.order > 2]['amount'] = 0": 1,
    "orders.iloc[0]['amount'] = 9\norders": 1,
    "def clear(t):\n    t[t.order > 2]['amount'] = 0\nclear(orders)": 2,
    "orders['tax'] = 1\norders[orders.order > 2]['tax'] = 0": 2,
}
# What lands up to pandas 2, which warns that pandas 3 will let it fall.
LANDS = {
    "orders['amount'][0] = 0": "overwritten",
    "orders['amount'].replace(4.0, 0, inplace=True)": "overwritten",
    "orders['amount'].fillna(0, inplace=True)\nlen(orders)": "filled",
}
LOST_STORE = f"`orders` is unchanged: pandas warned, {LOST}"


@pytest.mark.parametrize("text", STORES)
def test_a_store_that_pandas_lets_fall_is_told_first(text):
    first = effects(text)[0]
    found = first.kind, first.name, first.cause, first.line
    assert found == ("unchanged", "orders", LOST, STORES[text])


@pytest.mark.parametrize("text", LANDS)
def test_a_store_into_a_column_is_told_as_the_pandas_at_hand_does_it(text):
    first, *others = effects(text)
    if TEXT == "str":
        assert (first.kind, first.cause) == ("unchanged", LOST)
    else:
        assert first.kind == LANDS[text]
        assert {one.cause for one in others if one.kind == "warning"} >= {"FutureWarning"}


async def test_a_store_that_pandas_lets_fall_is_missed():
    text = (
        "import warnings\nwarnings.simplefilter('ignore')\norders.query('order > 2')['amount'] = 0"
    )
    evidence = await ran(text)
    assert evidence.failed
    assert evidence.shows.startswith(f"{LOST_STORE} (line 3).")
    (point,) = evidence.points
    assert (point.words, point.blocking, point.effect) == (LOST_STORE, True, evidence.effects[0])
    assert evidence.faults[0].raised == LOST


def test_a_store_that_a_later_line_makes_good_is_a_remark():
    first = "orders[orders.order > 2]['amount'] = 0"
    found = told(f"{first}\norders.loc[orders.order > 2, 'amount'] = 0")
    assert not any("unchanged" in one for one in found)
    assert f"{LOST} in line 1" in found


async def test_warnings_are_told_with_their_line_and_those_of_libraries_are_not():
    text = "import warnings\nn = 1\nwarnings.warn('old', DeprecationWarning)\nn"
    evidence = await ran(text)
    assert [*map(sentence, evidence.effects)] == ["DeprecationWarning in line 3: old"]


def test_a_table_with_the_same_labels_is_not_taken_for_the_one_it_was_made_of():
    staff = pandas.DataFrame({"person": ["Kim", "Ada"], "salary": [41, 52]})
    reviews = pandas.DataFrame({"person": ["Ada", "Kim"], "score": [4.5, 3]})
    text = "staff['score'] = reviews['score']\nstaff.nlargest(2, 'salary')"
    lines = told(text, staff=staff, reviews=reviews)
    assert lines[0].startswith("2 of 2 values of `score` in `staff` are not those of their")
    assert not any("overwritten" in line for line in lines)


def test_a_number_that_became_text_is_no_other_value():
    stars = pandas.DataFrame({"order": [1, 2, 3], "stars": [5, 4, 5]})
    text = "known = orders.merge(stars)\nknown['stars'] = known['stars'].astype(str)\nknown"
    assert not any("not those of" in one for one in told(text, stars=stars))
    wrong = f"{text}\nknown['stars'] = ['4', '4', '4']\nknown"
    assert any("not those of" in one for one in told(wrong, stars=stars))


def test_a_day_that_became_text_or_was_is_no_other_value():
    t = pandas.DataFrame({"at": pandas.to_datetime(["2026-01-01", "2026-01-02"]), "n": [1, 1]})
    types = f"{t['at'].dtype} → {TEXT}"
    assert told("t['at'] = t['at'].astype(str)", t=t) == [f"`at` in `t`: {types}"]
    days = pandas.DataFrame({"at": ["13/02/2026", "01/02/2026"], "n": [1, 1]})
    (line,) = told("days['at'] = pandas.to_datetime(days['at'], dayfirst=True)", days=days)
    assert line.startswith(f"`at` in `days`: {TEXT} → datetime64")


def test_polars_frames_are_told_alike():
    polars = pytest.importorskip("polars")
    orders = polars.DataFrame(
        {"id": [1, 2, 3], "town": ["Ulm", None, "Rom"], "n": [1.0, None, 3.0]}
    )
    towns = polars.DataFrame({"town": ["Ulm", "Ulm"], "land": ["BW", "BY"]})
    of = {"o": orders, "towns": towns}
    assert told("kept = o.drop_nulls()", **of)[0] == (
        "1 of 3 rows of `o` is gone in `kept`: its `town` or `n` is missing"
    )
    assert told("o.join(towns, on='town', how='anti')", **of)[0].startswith("the answer keeps")
    assert not any("gone" in one for one in told("o.group_by('town').sum()", **of))
    joined = told("both = o.join(towns, on='town')", **of)
    lost = "their `town` (Rom, missing) is not in `towns`"
    assert joined[0] == f"2 of 3 rows of `o` are gone in `both`: {lost}"
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
def test_no_secret_is_told(secret):
    (effect,) = read_effects([{"effects": [secret]}])
    told = sentence(effect)
    assert "[secret]" in told
    assert not any(one in told for one in ("'y'", "abcdefgh", "abc123"))


async def test_of_first_rows_no_sum_is_told(monkeypatch):
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


async def test_a_forged_report_shows_nothing_but_effects_and_values():
    new = {"kind": "new", "name": "x"}
    odd = [7, None, {"kind": "nonsense"}, {**new, "name": 5}, {**new, "x": 1}, {**new, "head": new}]
    odd += [{"kind": "gone", "count": -3}, {"kind": "gone", "values": 7}]
    changes = [["x", "", "1"], [1, 2, 3], ["x", "", "not a value("], ["def", "", "1"]]
    evidence = await RunsCleanly()(FORGE.format([*odd, new], changes), CELL)
    # That a cell made those up, nobody can tell.
    assert [(one.kind, one.name) for one in evidence.effects] == [("new", "x")]
    assert [(row.call, row.gives) for row in evidence.rows] == [("x", "1")]
    evidence = await RunsCleanly()(FORGE.format(new, {}), CELL)
    assert (evidence.effects, evidence.rows) == ((), ())


@pytest.mark.parametrize("line", [0, 10**9])
async def test_a_lost_store_in_a_line_that_no_text_has_is_missed_without_a_place(line):
    forged = [{"kind": "unchanged", "name": "x", "cause": "Odd", "line": line}]
    evidence = await RunsCleanly()(FORGE.format(forged, []), CELL)
    assert (evidence.passed, evidence.points[0].place) == (False, "")


# The names that a cell defined or changed


async def test_a_cell_shows_names_that_are_new_or_changed_and_no_secret():
    text = "count += 2\ntop = {'a': 1}\nkept = kept\nimport math\ndef f(): ...\n_hidden = 1"
    secret = "password = 'hunter2secret'\nxs.append(4)\nmany = list(range(500))"
    evidence = await ran(f"{text}\n{secret}", count=3, kept=[1], xs=[3])
    assert {row.call: (row.before, row.gives) for row in evidence.rows} == {
        "count": ("3", "5"),
        "top": ("", "{'a': 1}"),
        "xs": ("[3]", "[3, 4]"),
    }
    assert (await ran("top = 1\n1 / 0", count=3)).rows == (), "of a cell that failed"


async def test_what_a_loop_leaves_in_its_variable_is_no_result_to_confirm():
    evidence = await ran(
        "for n, x in enumerate(xs):\n    last = x\nwith open('f', 'w') as f: pass", xs=[3]
    )
    assert [(row.call, row.gives) for row in evidence.rows] == [("last", "3")]


async def test_short_series_and_numbers_are_shown_whole_and_what_the_task_names_first():
    frame = pandas.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    text = (
        "step = df[df.v > 0]\nlong = pandas.Series(range(99))\nper_k = step.groupby('k').v.sum()\n"
        "on_days = per_k.set_axis(pandas.to_datetime(['2026-01-02', '2026-01-05']))\n"
        "total, counts, day = df.v.sum(), df.v.to_numpy(), on_days.index.to_numpy()[0]"
    )
    check = RunOnCopies(copies=Variables({"df": frame, "pandas": pandas}).copies)
    evidence = await check(text, Task(text="Sum `v` of `df` by `k`, as `per_k`.", form="code"))
    assert [(row.call, row.gives) for row in evidence.rows] == [
        ("per_k.to_dict()", "{'a': 4, 'b': 2}"),
        ("on_days.tolist()", "[4, 2]"),
        ("total.item()", "6"),
        ("counts.tolist()", "[1, 2, 3]"),
    ]


# The account is taken beside the text


async def test_the_account_of_data_takes_nothing_of_a_texts_time():
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
async def test_noting_steps_changes_nothing_of_a_run(text):
    df = pandas.DataFrame({"city": ["a", "b", "c"], "price": ["1", "2", "x"], "n": [1, 2, 3]})
    evidence = await RunsCleanly(copies=Variables({"df": df}).copies)(text, CELL)
    assert evidence.passed, evidence.shows


# What no task can want


async def test_an_answer_whose_values_are_all_missing_stops_a_text():
    text = "rates['rate'].reindex([7, 8])"
    evidence = await ran(text)
    assert evidence.failed
    assert evidence.points[0].words == "All values of the answer are missing"
    looked = RunOnCopies(copies=Variables(tables()).copies).looking()
    assert (await looked(text, CELL)).passed, "in a look it is told only"


async def test_of_a_new_column_whose_values_are_all_missing_it_is_told():
    evidence = await ran("rates.assign(share=float('nan'))")
    assert evidence.passed
    assert sentence(evidence.effects[0]) == "All values of `share` in the answer are missing"
    empty = pandas.DataFrame({"n": [1, 2], "note": [None, None]})
    assert not told("empty[empty.n > 1]", empty=empty)[0].startswith("All values")
