"""Data by a schema: each field's value rests on words of the source, which code looks up."""

import json
from typing import Any

import pytest
from kit import ended, prompts, status, text, told

from ipyrefine.checks.schema import Schema
from ipyrefine.core.critiques import read_critique
from ipyrefine.core.model import Limits, Stage, Task

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "total": {"type": "number"}},
    "required": ["name", "total"],
}
TASK = Task(text="Extract name and total: “Anna Weber paid 12.50 EUR in cash on Monday.”")
RIGHT = '{"name": "Anna Weber", "total": 12.5}'
WRONG = '{"name": "Anna Weber", "total": 99}'


def read(sources: dict[str, str] | None, **fields: Any) -> str:
    return json.dumps({"findings": [], "ready": True, "sources": sources, **fields})


async def extracted(*readings: str, texts: tuple[str, ...] = (WRONG, RIGHT)) -> Any:
    written = [text(one) for one in texts]
    replies = {"draft": written[:1], "critique": readings, "revise": written[1:]}
    limits = Limits(max_revisions=len(texts) - 1)
    loop = await ended(replies, TASK, checks=[Schema(SCHEMA)], limits=limits)
    return loop


GOOD = {"name": "Anna Weber", "total": "paid 12.50 EUR"}


@pytest.mark.parametrize(
    ("draft", "sources", "problems"),
    [
        (RIGHT, GOOD, []),
        (RIGHT, {}, []),  # made up on request
        (WRONG, {**GOOD, "total": "a total of 99 EUR"},
         ["total: “a total of 99 EUR” is not in the source."]),
        (WRONG, {"name": "", "total": ""}, ["name has no source.", "total has no source."]),
    ],
)  # fmt: skip
async def test_each_value_whose_words_are_not_in_the_source_is_an_open_finding(
    draft, sources, problems
):
    loop = await extracted(read(sources), texts=(draft,))
    found = told(loop.state, 0)
    assert [one.words for one in found] == problems
    assert all(one.blocks for one in found)
    assert loop.state.verdict.passed is not bool(problems)
    if problems:
        assert (found[-1].point.criterion, found[-1].point.place) == ("$.total", '"total"')
    assert '"sources"' in prompts(loop, Stage.CRITIQUE)[0]


@pytest.mark.parametrize(
    ("path", "empty"),
    [("total", True), ("$.items[0].name", True), ("items[1].name", False), ("other", False)],
)
async def test_a_field_that_holds_nothing_needs_no_source(path, empty):
    told = '{"total": null, "items": [{"name": ""}, {"name": "A"}]}'
    critique = read_critique(read({path: ""}), told, "It names nothing.")
    assert bool(critique.remarks) is not empty


@pytest.mark.parametrize(
    ("again", "revision", "closed"),
    [(GOOD, RIGHT, True), ({"total": ""}, '{"name": "A. Weber", "total": 99}', False)],
    ids=["mended", "still without words"],
)
async def test_a_mended_value_closes_its_finding(again, revision, closed):
    said = read({"total": ""}), read(again, fixed=["f1"])
    loop = await extracted(*said, texts=(WRONG, revision))
    assert loop.state.verdict.passed is closed
    assert (status(told(loop.state, 1)[0]) == "resolved") is closed


async def test_without_a_schema_no_sources_are_asked_for():
    loop = await ended([text("Hi"), read(None)])
    assert '"sources"' not in prompts(loop, Stage.CRITIQUE)[0]
