"""Submissions in groups: what they show, and a ruling that counts for all of a group."""

import json
import sys

import pandas
import pytest

import ipyrefine
from ipyrefine import errors
from ipyrefine.core.model import Outcome, StopReason
from ipyrefine.journal.store import Journal
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session import export
from ipyrefine.session.record import bundle

TASK = "Write middle(xs): the middle item of a list.\n>>> middle([3, 1, 2])\n1\n>>> middle([5])\n5"
RIGHT = "def middle(xs):\n    return xs[len(xs) // 2]"
ALSO_RIGHT = "def middle(xs):\n    half = len(xs) // 2\n    return xs[half]"
SORTS = "def middle(xs):\n    return sorted(xs)[len(xs) // 2]"
LOUD = "def middle(xs):\n    print('in')\n    return xs[len(xs) // 2]"
BROKEN = "def middle(xs)\n    return 1"
ALL = [ALSO_RIGHT, SORTS, RIGHT, BROKEN, ""]


async def grouped(submissions=ALL, task=TASK, **options):
    return await ipyrefine.group(submissions, task, progress=False, **options)


async def test_submissions_come_in_groups_the_largest_first_and_no_model_is_asked():
    groups = await grouped()
    assert [group.members for group in groups] == [(0, 2), (1,), (3,), (4,)]
    assert [group.number for group in groups] == [1, 2, 3, 4]
    first = next(iter(groups))
    assert (first.representative, first.text) == (2, RIGHT)
    assert first.results[groups.inputs.index("middle([3, 1, 2])")] == "gives 1"
    assert [item.passed for item in groups.items] == [True, False, True, False, False]
    assert all(item.run.usage.calls == 0 for item in groups.items if item.run)


async def test_the_inputs_that_tell_a_group_from_the_largest_other_come_stated_first():
    groups = await grouped()
    assert groups.differences(2)[0] == "middle([3, 1, 2])"
    assert groups.differences(1) == groups.differences(2)
    assert groups.differences(3) == ()
    with pytest.raises(errors.UsageError, match="There are 1 to 4"):
        groups.differences(5)


async def test_a_text_that_fails_a_check_is_no_member_of_a_group_that_passes_it():
    groups = await grouped([RIGHT, ALSO_RIGHT, LOUD])
    assert [group.members for group in groups] == [(0, 1), (2,)]
    assert "Same results as group 1, but the checks differ." in repr(groups)


async def test_a_ruling_is_spread_over_its_group_and_says_so():
    groups = await grouped()
    assert await groups.rule(1, "pass", "Clear.") == 2
    shown, other = groups.items[2].run, groups.items[0].run
    assert shown.verdict.reason == "Clear."
    assert other.verdict.reason.startswith("Clear. (spread from submission 2: same results on")
    for run in (shown, other):
        assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "user")
        assert run.stop_reason is StopReason.OVERRIDDEN
        assert run.decisions[-1].kind == "override"
    assert groups.items[1].run.decisions == ()


async def test_a_ruling_of_fail_waits_for_the_user_and_can_be_taken_back():
    groups = await grouped()
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
async def test_a_ruling_that_cannot_be_given_changes_nothing(number, ruling, sentence):
    groups = await grouped()
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
    export.export(groups.items[2].run, path)
    (back,) = ipyrefine.load(path)
    assert back == groups.items[2].run
    assert json.loads(path.read_text("utf-8"))["decisions"][0]["reason"].startswith("Clear. (")


async def test_the_same_name_again_brings_the_rulings_back():
    await (await grouped(name="homework")).rule(1, "pass", "Clear.")
    again = await grouped([*ALL, RIGHT], name="homework")
    assert [item.passed for item in again.items] == [True, False, True, False, False, True]
    assert again.items[0].run.verdict.basis == "user"
    assert again.items[5].run.verdict.basis == "examples"
    assert "You ruled on" not in repr(again), "one of the group is new"
    await again.rule(1, "pass", "Clear.")
    assert "You ruled on 1 of the groups, 3 submissions." in repr(again)


async def test_without_a_journal_the_items_alone_are_ruled_on():
    groups = await grouped(journal=False, name="unkept")
    await groups.rule(1, "pass")
    assert groups.items[0].passed
    assert Journal().runs() == []


async def test_items_of_refine_many_are_grouped_by_their_chosen_texts():
    model = ScriptedModel([f"```python\n{text}\n```" for text in (RIGHT, SORTS, ALSO_RIGHT)])
    args = {"profile": "code", "max_revisions": 0, "opinion": "never", "critique": "never"}
    items = await ipyrefine.refine_many([TASK] * 3, model=model, at_once=1, progress=False, **args)
    groups = await ipyrefine.group(items, progress=False)
    assert [group.members for group in groups] == [(0, 2), (1,)]
    await groups.rule(1, "pass")
    assert Journal().find(items[0].name).run.verdict.basis == "user"


async def test_items_of_different_tasks_are_not_one_class():
    args = {"model": ScriptedModel([]), "profile": "code", "max_revisions": 0, "opinion": "never"}
    tasks = [{"text": text, "draft": RIGHT} for text in (TASK, "Write f.\n>>> f(1)\n1")]
    items = await ipyrefine.refine_many(tasks, critique="never", progress=False, **args)
    with pytest.raises(errors.UsageError, match="different tasks"):
        await ipyrefine.group(items, progress=False)


@pytest.mark.parametrize(
    ("submissions", "task", "sentence"),
    [([RIGHT], "Write middle(xs).", "State an example"), ([], TASK, "no submission"),
     ([" "], TASK, "no submission")],
)  # fmt: skip
async def test_what_cannot_be_grouped_is_said_in_a_sentence(submissions, task, sentence):
    with pytest.raises(errors.UsageError, match=sentence):
        await grouped(submissions, task)


async def test_lines_for_ipython_and_missing_cells_are_no_obstacle():
    column = pandas.Series(["%matplotlib inline\n" + RIGHT, None, ALSO_RIGHT], index=[7, 8, 9])
    groups = await grouped(column)
    assert [group.members for group in groups] == [(0, 2), (1,)]
    assert "Submissions 7, 9; the shortest is 9" in repr(groups)


async def test_it_shows_each_group_with_a_representative_and_what_tells_it_apart():
    groups = await grouped()
    await groups.rule(1, "pass", "Clear.")
    text = repr(groups)
    assert text.startswith("5 submissions in 4 groups, by 2 stated examples and ")
    assert "You ruled on 1 of the groups, 2 submissions." in text
    assert "Marked PASS by you: Clear." in text
    assert SORTS in text
    assert "middle([3, 1, 2]) · gives 2; group 1 gives 1" in text
    assert "does not load: SyntaxError" in text
    assert "The submission is empty." in text
    html = groups._repr_html_()
    assert html.count("<details") == 4
    assert html.count('<details class="rf-iteration" open>') == 3, "a group is folded once ruled"


async def test_what_a_submission_says_is_escaped():
    hostile = "def middle(xs):\n    '<script>alert(1)</script>'\n    return '<img src=x>'"
    html = (await grouped([RIGHT, hostile]))._repr_html_()
    assert "&lt;img src=x&gt;" in html
    assert "<script>alert" not in html
    assert "<img" not in html


async def test_a_class_compared_on_examples_alone_says_so():
    groups = await grouped([RIGHT], "Write middle.\n>>> len([middle([1])])\n1")
    assert "No further inputs could be made" in repr(groups)


async def test_without_pandas_a_table_says_what_is_missing(monkeypatch):
    groups = await grouped([RIGHT])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(errors.UsageError, match="pip install pandas"):
        groups.frame()
