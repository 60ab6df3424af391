"""Submissions in groups: what they show, and a ruling that counts for all of a group."""

import asyncio
import json
import re
from copy import deepcopy

import pandas
import pytest

import ipyrefine
from ipyrefine import errors
from ipyrefine.core.model import Outcome, StopReason
from ipyrefine.journal.store import Journal
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.export import export
from ipyrefine.session.record import bundle

TASK = "Write middle(xs): the middle item of a list.\n>>> middle([3, 1, 2])\n1\n>>> middle([5])\n5"
RIGHT = "def middle(xs):\n    return xs[len(xs) // 2]"
ALSO_RIGHT = "def middle(xs):\n    half = len(xs) // 2\n    return xs[half]"
SORTS = "def middle(xs):\n    return sorted(xs)[len(xs) // 2]"
BROKEN = "def middle(xs)\n    return 1"
ALL = [ALSO_RIGHT, SORTS, RIGHT, BROKEN, ""]


@pytest.fixture(scope="module")
def grouped_once():
    return asyncio.run(grouped(journal=False))


@pytest.fixture
def groups(grouped_once):
    """The groups of `ALL`, for this test alone."""
    return deepcopy(grouped_once)


async def grouped(submissions=ALL, task=TASK, **options):
    return await ipyrefine.group(submissions, task, progress=False, **options)


def test_submissions_come_in_groups_the_largest_first_and_no_model_is_asked(groups):
    assert [group.members for group in groups] == [(0, 2), (1,), (3,), (4,)]
    assert [group.number for group in groups] == [1, 2, 3, 4]
    first = next(iter(groups))
    assert (first.representative, first.text) == (2, RIGHT)
    assert first.results[groups.inputs.index("middle([3, 1, 2])")] == "gives 1"
    assert [item.passed for item in groups.items] == [True, False, True, False, False]
    assert all(item.run.usage.calls == 0 for item in groups.items if item.run)


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
    "constants of the code": (
        "Write square(n).\n>>> square(3)\n9",
        "def square(n): return n * n", "def square(n): return n * n if n != 64 else 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [*ALIKE, *APART])
async def test_submissions_are_alike_if_they_do_the_same_on_every_input(case):
    task, *texts = (ALIKE | APART)[case]
    groups = await grouped(texts, task, seconds=2.0)
    assert [group.members for group in groups] == ([(0, 1)] if case in ALIKE else [(0,), (1,)])


async def test_a_ruling_is_spread_over_its_group_and_says_so(groups):
    assert await groups.rule(1, "pass", "Clear.") == 2
    shown, other = groups.items[2].run, groups.items[0].run
    assert shown.verdict.because.words == "Clear."
    assert other.verdict.because.words.startswith(
        "Clear. (spread from submission 2: same results on"
    )
    for run in (shown, other):
        assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "user")
        assert run.stop_reason is StopReason.OVERRIDDEN
        assert run.decisions[-1].kind == "override"
    assert groups.items[1].run.decisions == ()


async def test_a_ruling_of_fail_waits_for_the_user_and_can_be_taken_back(groups):
    await groups.rule(2, "fail", "It sorts.")
    run = groups.items[1].run
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.NEEDS_IMPROVEMENT, "user")
    assert run.stop_reason is StopReason.PAUSED
    assert run.findings[-1].problem == "It sorts."
    await groups.rule(2, "pass")
    assert groups.items[1].run.verdict.passed
    await groups.rule(3, "fail")
    assert groups.items[3].run.verdict.basis == "user"


@pytest.mark.parametrize(
    ("number", "ruling", "sentence"),
    [(9, "pass", "no group 9"), (1, "maybe", '"pass" or "fail"'), (4, "fail", "has no code")],
)
async def test_a_ruling_that_cannot_be_given_changes_nothing(groups, number, ruling, sentence):
    with pytest.raises(errors.UsageError, match=sentence):
        await groups.rule(number, ruling)
    assert not any(item.run.decisions for item in groups.items if item.run)


async def test_journal_record_export_and_table_agree_on_a_ruling(tmp_path):
    frame = pandas.DataFrame({"task": TASK, "code": [RIGHT, SORTS, ALSO_RIGHT]}, index=list("abc"))
    groups = await grouped(frame["code"], name="homework")
    await groups.rule(1, "pass", "Clear.")
    await groups.rule(2, "fail", "It sorts.")
    table = groups.frame()
    assert list(table.index) == ["a", "b", "c"]
    assert list(table["group"]) == [1, 2, 1]
    assert list(table["verdict"]) == ["PASS", "NEEDS_IMPROVEMENT", "PASS"]
    assert list(table["basis"]) == ["user"] * 3
    model = ScriptedModel([])  # the runs are in the journal: nobody is asked
    args = {"drafts": "code", "name": "homework", "model": model, "progress": False}
    later = await ipyrefine.refine_frame(frame, "task", **args)
    assert later.drop(columns="cost").equals(table.drop(columns=["group", "cost"]))
    for item in groups.items:
        assert Journal().find(item.name).run == item.run
    assert "PASS (yours)" in bundle(groups.items[2].run)["text/html"]
    path = tmp_path / "ruled.json"
    export(groups.items[2].run, path)
    (back,) = ipyrefine.load(path)
    assert back == groups.items[2].run
    assert json.loads(path.read_text("utf-8"))["decisions"][0]["reason"].startswith("Clear. (")


async def test_the_same_name_again_brings_the_rulings_back():
    await (await grouped(name="homework")).rule(1, "pass", "Clear.")
    again = await grouped([*ALL, RIGHT], name="homework")
    assert [item.passed for item in again.items] == [True, False, True, False, False, True]
    assert again.items[0].run.verdict.basis == "user"
    assert again.items[5].run.verdict.basis == "examples"


@pytest.mark.parametrize(
    ("submissions", "task", "sentence"),
    [([RIGHT], "Write middle(xs).", "State an example"), ([], TASK, "no submission"),
     ([" "], TASK, "no submission")],
)  # fmt: skip
async def test_what_cannot_be_grouped_is_said_in_a_sentence(submissions, task, sentence):
    with pytest.raises(errors.UsageError, match=sentence):
        await grouped(submissions, task)


async def test_it_shows_each_group_with_a_representative_and_what_tells_it_apart(groups):
    await groups.rule(1, "pass", "Clear.")
    text = repr(groups)
    assert text.startswith("5 submissions in 4 groups")
    assert "Marked PASS by you: Clear." in text
    assert SORTS in text
    assert "middle([3, 1, 2]) · gives 2; group 1 gives 1" in text
    assert "does not load: SyntaxError" in text
    assert "The submission is empty." in text
    html = groups._repr_html_()
    assert html.count("<details") == 4
    assert len(re.findall("<details[^>]* open>", html)) == 3, "a group is folded once ruled"


async def test_what_a_submission_says_is_escaped():
    hostile = "def middle(xs):\n    '<script>alert(1)</script>'\n    return '<img src=x>'"
    html = (await grouped([RIGHT, hostile]))._repr_html_()
    assert "&lt;img src=x&gt;" in html
    assert "<script>alert" not in html
    assert "<img" not in html
