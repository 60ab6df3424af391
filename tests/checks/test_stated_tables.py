"""Tables that a task states are examples: how they are read, tried and compared."""

import sys

import pytest

from ipyrefine.checks.evaluation import Examples
from ipyrefine.core.model import Task
from ipyrefine.core.stated import read_examples

pytest.importorskip("pandas")

LEFT_JOIN = """\
Table: `Person`
+-------------+---------+
| Column Name | Type    |
+-------------+---------+
| personId    | int     |
| born        | varchar |
+-------------+---------+

Report the city of each person, null without an address. Return the result in **any order**.

**Example 1:**
```
**Input:**
Person table:
+----------+------------+
| personId | born       |
+----------+------------+
| 1        | 2019-01-02 |
| 2        | 2020-12-31 |
+----------+------------+
Address table:
+----------+------+
| personId | city |
+----------+------+
| 2        | Oslo |
+----------+------+
**Output:**
+----------+------+
| personId | city |
+----------+------+
| 2        | Oslo |
| 1        | Null |
+----------+------+
**Explanation:** The result has both.
```
"""
SUMS = """\
Sum the amounts per city. I have a table `sales`:

| city | amount |
|------|-------:|
| Rome | 10     |
| Oslo | 2.5    |
| Rome | 5      |

The result should look like:

| city | amount |
|------|--------|
| Rome | 15     |
| Oslo | 2.5    |
"""
DATES = """\
Eingabe:

Tabelle `umsatz`:

| datum | betrag |
|---|---|
| 2024-01-05 | 1.5 |
| 2024-02-01 | 3 |

Ausgabe:

| monat | betrag |
|---|---|
| 2024-01 | 1.5 |
| 2024-02 | 3.0 |
"""
IN_PLACE = """\
Modify Person in place: delete duplicate mails.
Input:
Person table:
┌────┬──────┐
│ id │ mail │
├────┼──────┤
│ 1  │ a@b  │
│ 2  │ a@b  │
└────┴──────┘
Output:
┌────┬──────┐
│ id │ mail │
├────┼──────┤
│ 1  │ a@b  │
└────┴──────┘
"""
INDEXED = """\
Example input:
|    | name | age |
|---:|:-----|----:|
|  0 | Bob  |  10 |
|  1 | Ann  |  20 |

Example output:
|    | name | age |
|---:|:-----|----:|
|  1 | Ann  |  20 |
"""
THIRDS = "Input\n\n| a |\n|---|\n| 1 |\n| 2 |\n\nOutput\n\n| a |\n|---|\n| 0.33 |\n| 0.67 |\n"
JOIN = """\
import pandas as pd

def city_of(address: pd.DataFrame, person: pd.DataFrame) -> pd.DataFrame:
    return person.merge(address, on="personId", how="left")[["personId", "city"]]
"""
BY_CITY = 'def f(df):\n    return df.groupby("city", as_index=False, sort=False)["amount"].sum()'


async def check(text, task):
    return await Examples()(text, Task(text=task, form="code"))


@pytest.mark.parametrize(
    ("task", "sources"),
    [
        (LEFT_JOIN, ["Person, Address"]),
        (SUMS, ["sales"]),
        (IN_PLACE * 2, ["Person"] * 2),
        (DATES, ["umsatz"]),
        (IN_PLACE, ["Person"]),
        ("输入:\n\n| a |\n|---|\n| 1 |\n\n期望输出:\n\n| b |\n|---|\n| 2 |\n", ["df"]),
        (" a | b\n---+---\n 1 | 2\n\nExpected output\n a | c\n---+---\n 1 | 3\n", ["df"]),
        (SUMS.partition("The result")[0], []),  # nothing comes out
        (SUMS.replace("| Rome | 5 ", "| … | … "), []),  # not all rows
        (SUMS.replace("a table", "the first rows of a table"), []),
        ("| Option | Text |\n|---|---|\n| a | b |\n\nOutput:\n\n| x |\n|---|\n| 1 |\n", []),
    ],
)
def test_tables_that_go_in_and_one_that_comes_out_are_an_example(task, sources):
    assert [one.call for one in read_examples(task)] == sources


@pytest.mark.parametrize(
    ("task", "text", "passed"),
    [
        (LEFT_JOIN, JOIN, True),
        (LEFT_JOIN, JOIN.replace(', how="left"', ""), False),
        (LEFT_JOIN, JOIN.replace('["personId", "city"]', '["city", "personId"]'), False),
        (LEFT_JOIN, 'person.merge(address, how="left")[["personId", "city"]]', True),
        (SUMS, BY_CITY, True),
        (SUMS, BY_CITY.replace("sort=False", "sort=True"), False),  # nothing says any order
        (SUMS, 'sales.groupby("city", sort=False)["amount"].sum()', True),
        (SUMS, 'r = sales.groupby("city", sort=False)["amount"].sum()\nprint(r)', True),
        (SUMS, 'df.groupby("city", sort=False)["amount"].sum()', True),
        (SUMS, f'{BY_CITY}\n\nsales = []\nprint("demo", sales)', True),
        (INDEXED, "def f(df):\n    return df[df.age >= 18]", True),
        (DATES, "umsatz['monat'] = umsatz['datum'].dt.strftime('%Y-%m')\n"
                "umsatz[['monat', 'betrag']]", True),
        (IN_PLACE, "def f(df) -> None:\n    df.drop_duplicates('mail', inplace=True)", True),
        (IN_PLACE, "def f(df) -> None:\n    df.drop_duplicates('mail')", False),
        (THIRDS, "def f(df):\n    return df.assign(a=df['a'] / 3)", True),
        (THIRDS, "def f(df):\n    return df.assign(a=df['a'] / 4)", False),
    ],
)  # fmt: skip
async def test_a_text_is_tried_on_the_tables_however_it_takes_them(task, text, passed):
    evidence = await check(text, task)
    assert evidence.passed is passed, evidence.shows
    assert not evidence.not_run


@pytest.mark.parametrize(
    "text",
    [
        "def f(rows: list[dict]) -> list[dict]:\n    return [r for r in rows if r['amount'] > 2]",
        "import polars as pl\ndef f(df: pl.DataFrame) -> pl.DataFrame:\n    return df",
        "def f(df, other):\n    return df",
        "sales = 1\nsales",
        "for one in range(3):\n    pass",
        "def f(:",
    ],
)
async def test_a_text_that_takes_no_tables_is_not_tried_and_misses_nothing(text):
    evidence = await check(text, SUMS)
    assert (evidence.passed, evidence.not_run) == (None, True)
    assert evidence.shows.startswith("Not tried: the code doesn't")


async def test_without_pandas_tables_are_not_tried(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert (await check(BY_CITY, SUMS)).not_run


async def test_the_first_row_that_differs_is_named():
    evidence = await check("def f(df):\n    return df.drop_duplicates('city')", SUMS)
    assert evidence.shows == (
        "sales: expected the row Rome | 15, got Rome | 10.0\n0 of 1 stated examples hold."
    )


async def test_a_function_may_have_a_variable_of_its_own_name():
    text = "def sums(df):\n    sums = df.groupby('city', sort=False).sum()\n    return sums"
    assert (await check(text, SUMS)).passed


async def test_an_error_on_the_tables_names_the_line_of_the_text():
    evidence = await check("import pandas as pd\n\nsales.groupby('town').sum()", SUMS)
    assert "expected the table, raised KeyError: 'town' (line 3)" in evidence.shows


async def test_tables_and_calls_of_one_task_are_all_tried():
    task = f"{SUMS}\nf(None) is None\n"
    text = BY_CITY.replace("return ", "return df if df is None else ")
    assert (await check(text, task)).tallies[0].held == 2
