"""A table's column of tasks becomes a table of what came of them."""

import sys

import pandas
import pytest
from greetings import Greeter, options, tasks
from kit import judgement as judged
from openai_server import ScriptedServer

import ipyrefine
from ipyrefine import errors
from ipyrefine.providers.scripted import ScriptedModel


async def test_a_column_in_a_table_out_with_the_same_index() -> None:
    wanted = tasks(3)
    greeter = Greeter()
    greeter.broken = {wanted[2]}
    frame = pandas.DataFrame({"text": [*wanted, None]}, index=["a", "b", "c", "d"])
    with ScriptedServer(greeter) as server:
        args = {**options(server.base_url), "price": "1,2", "progress": False}
        out = await ipyrefine.refine_frame(frame, "text", **args)
    assert list(out.columns) == ["text", "verdict", "basis", "score", "cost", "error"]
    assert list(out.index) == ["a", "b", "c", "d"]
    assert list(out["text"][:2]) == ["Version 1", "Version 1"]
    assert list(out["verdict"][:2]) == ["PASS", "PASS"]
    assert list(out["basis"][:2]) == ["evaluator", "evaluator"]
    assert (out["score"][:2] >= 0.8).all()
    assert (out["cost"][:2] > 0).all()
    assert out["error"].isna().tolist() == [True, True, False, False]
    assert "nothing to refine" in out["error"]["d"]


async def test_a_column_of_drafts_is_improved() -> None:
    model = ScriptedModel([judged(10), judged(10)])
    frame = pandas.DataFrame({"task": ["Greet.", ""], "old": ["Hello there", "Dear all"]})
    limits = ipyrefine.Limits(critique="never")
    args = {"profile": "prose", "criteria": ["tone"], "limits": limits, "progress": False}
    out = await ipyrefine.refine_frame(frame, "task", drafts="old", model=model, **args)
    assert list(out["text"]) == ["Hello there", "Dear all"]


@pytest.mark.parametrize(
    ("column", "message"), [("tasks", "Did you mean task?"), ("prompt", "It has task.")]
)
async def test_a_column_that_is_not_there_is_named(column: str, message: str) -> None:
    frame = pandas.DataFrame({"task": ["Greet."]})
    with pytest.raises(errors.UsageError) as raised:
        await ipyrefine.refine_frame(frame, column, model=ScriptedModel([]))
    assert f"no column '{column}'. {message}" in str(raised.value)


async def test_a_missing_pandas_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pandas.DataFrame({"task": ["Greet."]})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(errors.UsageError, match="pip install pandas"):
        await ipyrefine.refine_frame(frame, "task", model=ScriptedModel([]))
