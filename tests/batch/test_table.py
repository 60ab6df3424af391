"""Texts side by side: what they show, in groups, and a ruling that counts for all of a group."""

import asyncio
import re
from copy import deepcopy

import pandas
import pytest
from kit import told

import ipyrefine
from ipyrefine import errors
from ipyrefine.core.model import Outcome, StopReason
from ipyrefine.render.say import verdict

TASK = (
    "Write middle(xs): the middle, else IndexError.\n>>> middle([3, 1, 2])\n1\n>>> middle([5])\n5"
)
RIGHT = "def middle(xs):\n    return xs[len(xs) // 2]"
ALSO_RIGHT = "def middle(xs):\n    half = len(xs) // 2\n    return xs[half]"
SORTS = "def middle(xs):\n    return sorted(xs)[len(xs) // 2]"
BROKEN = "def middle(xs)\n    return 1"
ALL = [ALSO_RIGHT, SORTS, RIGHT, BROKEN, ""]


async def made(texts=ALL, task=TASK, checks=(), **options):
    return await ipyrefine.table(task, texts, checks, progress=False, **options)


@pytest.fixture(scope="module")
def made_once():
    return asyncio.run(made())


@pytest.fixture
def table(made_once):
    """The table of `ALL`, for this test alone."""
    return deepcopy(made_once)


def test_texts_come_in_groups_the_largest_first_and_no_model_is_asked(table):
    assert table.groups == [(0, 2), (1,), (3,), (4,)]
    assert table.points[:2] == ("middle([3, 1, 2])", "middle([5])")
    assert table.points[-1] == "examples"
    assert {n: run.verdict.passed for n, run in table.runs.items()} == {
        0: True, 1: False, 2: True, 3: False
    }  # fmt: skip
    assert all(run.usage.calls == 0 for run in table.runs.values())
    assert "NEEDS IMPROVEMENT" in str(verdict(table.runs[1], table.runs[1].chosen).label)


FIRST = "Write first(xs).\n>>> first([4, 5])\n4"
GUARDED = "def first(xs):\n    if not xs:\n        raise {}('empty')\n    return xs[0]"
GREET = "Write greet(name).\n>>> greet('Ann')\nHello, Ann"


ALIKE = {
    "1 is 1.0": (TASK, "def middle(xs): return 1", "def middle(xs): return 1.0"),
    "what an edge raises is open": (FIRST, *map(GUARDED.format, ("IndexError", "ValueError"))),
    "objects without an equal": (
        FIRST, "def first(xs): yield xs[0]", "def first(xs):\n    yield xs[0]"
    ),
    "a fence around the code": (
        FIRST, "def first(xs): return xs[0]", "```python\ndef first(a): return a[0]\n```"
    ),
    "by annotated types": (
        "```python\ndef area(a: float, b: float):\n    ...\n```",
        "def area(a, b): return a * b", "def area(a, b): return b * a",
    ),
}  # fmt: skip
APART = {
    "whether an edge raises": (
        FIRST, GUARDED.format("ValueError"), "def first(xs): return (xs or [0])[0]"
    ),
    "what is printed": (
        GREET, "def greet(n): print('Hello, ' + n)", "def greet(n): print('Hi')"
    ),
    "other errors": (TASK, BROKEN, "import no_such_module"),
    "other names that are missing": (TASK, "def midle(xs): ...", "def middle(xs): return np.x"),
}  # fmt: skip


@pytest.mark.parametrize("case", [*ALIKE, *APART])
async def test_texts_are_alike_if_they_do_the_same_on_every_input(case):
    task, *texts = (ALIKE | APART)[case]
    table = await made(texts, task)
    assert table.groups == ([(0, 1)] if case in ALIKE else [(0,), (1,)])


@pytest.mark.parametrize(("task", "texts", "checks", "groups"), [
    ("Add the x of df.",
     ["xs = df['x']\nxs.sum()", "n = df['x'].mean()\nn", "total = df['x'].sum()\nprint(total)",
      "n = df['x']\nn.sum()"],
     (), [(0, 3), (1,), (2,)]),
    ("Total of df.x",
     ["total = df.x.sum()", "total = df['x'].sum()", "total = df.x.max()", "totl = dfx"],
     (), [(0, 1), (2,), (3,)]),
    ("Greet. At most 3 words.", ["Hello there.", "Good morning, dear friends.", "Hi."],
     (), [(0, 2), (1,)]),
    ("Write a haiku.", ["Leaves fall.", "Rain.", "Leaves rest."],
     [lambda text: "Leaves" in text], [(0, 2), (1,)]),
    ("Rate.", ["a", "bb", "c"], [lambda text: len(text) / 4], [(0, 2), (1,)]),
], ids=["what it shows", "what it does", "a stated length", "a function", "a number"])  # fmt: skip
async def test_texts_that_are_no_functions_are_told_apart_by_what_came_out(
    task, texts, checks, groups
):
    df = pandas.DataFrame({"x": [1, 2, 3]})
    assert (await made(texts, task, checks, variables={"df": df})).groups == groups


async def test_a_check_that_breaks_is_told_of_its_text_and_the_others_are_checked():
    def broken(text):
        return 1 / ("half" not in text) > 0

    table = await made([RIGHT, ALSO_RIGHT], checks=[broken])
    assert table.groups == [(0,), (1,)]
    assert [row["broken"] for row in table.rows()] == ["✓ broken passed", ""]
    assert "ZeroDivisionError" in table.rows()[1]["error"]
    assert "ZeroDivisionError" in repr(table)


async def test_a_table_says_why_a_text_was_not_run_and_names_no_command_for_it():
    """No run of a table is the one that `%refine` shows."""
    shown = repr(await made([RIGHT, f"first = input()\n{RIGHT}"]))
    assert "it asks for input, which checked code cannot get." in shown
    assert "middle([3, 1, 2]): 1, as expected" in shown
    assert "show checks" not in shown


async def test_a_ruling_counts_for_its_group_and_says_so(table):
    assert await table.rule(1, "pass", "Clear.") == 2
    for run in (table.runs[0], table.runs[2]):
        words = run.chosen.override.reason
        assert words.startswith("Clear. (one ruling for 2 texts with the same ")
        assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "user")
        assert run.stop_reason is StopReason.OVERRIDDEN
        assert run.decisions[-1].kind == "override"
    assert table.runs[1].decisions == ()


async def test_a_ruling_of_fail_waits_for_the_user_and_can_be_taken_back(table):
    await table.rule(2, "fail", "It sorts.")
    run = table.runs[1]
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.NEEDS_IMPROVEMENT, "user")
    assert run.stop_reason is StopReason.PAUSED
    assert told(run)[-1].words == "It sorts."
    await table.rule(2, "pass")
    assert table.runs[1].verdict.passed
    await table.rule(3, "fail")
    assert table.runs[3].verdict.basis == "user"


@pytest.mark.parametrize(
    ("number", "ruling", "sentence"),
    [(9, "pass", "no group 9"), (0, "pass", "no group 0"), (1, "maybe", '"pass" or "fail"'),
     (4, "fail", "has no text")],
)  # fmt: skip
async def test_a_ruling_that_cannot_be_given_changes_nothing(table, number, ruling, sentence):
    with pytest.raises(errors.UsageError, match=sentence):
        await table.rule(number, ruling)
    assert not any(run.decisions for run in table.runs.values())


@pytest.mark.parametrize(("texts", "task", "checks", "sentence"), [
    ([RIGHT], "Write middle(xs).", (), "State an example"),
    (["Hi."], "Greet.", (), "give checks"),
    ([], TASK, (), "no text"),
    ([" ", None], TASK, (), "no text"),
    (RIGHT, TASK, (), "Give a list"),
    (pandas.Series([RIGHT, SORTS], index=["a", "a"]), TASK, (), "Two texts have the name 'a'"),
    ([RIGHT], TASK, ["exampels"], "exampels"),
])  # fmt: skip
async def test_what_cannot_be_put_into_a_table_is_said_in_a_sentence(texts, task, checks, sentence):
    with pytest.raises(errors.UsageError, match=sentence):
        await made(texts, task, checks)


async def test_it_shows_each_group_with_its_shortest_text_and_the_rows_that_tell_all_apart(table):
    await table.rule(1, "pass", "Clear.")
    text = repr(table)
    assert text.startswith("5 texts in 4 groups, by ")
    assert "0, 2; the shortest is 2\nMarked PASS by you: Clear." in text
    assert SORTS in text
    head, rows = text.split("\n── ")[0].splitlines()[1:], []
    assert head[0].split() == ["Group", *"1234"]
    rows = [re.split(r" {2,}", line) for line in head[1:] if line]
    columns = [*zip(*(row[1:4] for row in rows), strict=True)]
    assert len({*columns}) == len(columns)
    assert "does not load: SyntaxError" in text
    assert "4: empty" in text
    html = table._repr_html_()
    assert html.count("<summary><strong>Group") == 4
    assert len(re.findall("<details[^>]* open>", html)) == 3, "a group is folded once ruled"
    assert html.count("rf-table") - html.count(".rf-table") == 1


async def test_what_a_text_says_is_escaped():
    hostile = "def middle(xs):\n    '<script>alert(1)</script>'\n    return '<img src=x>'"
    html = (await made([RIGHT, hostile]))._repr_html_()
    assert "&lt;img src=x&gt;" in html
    assert "<script>alert" not in html
    assert "<img" not in html
