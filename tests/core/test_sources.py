"""Data by a schema: each field's value rests on words of the source, which code looks up."""

import json
from typing import Any

import pytest
from kit import finish, prompts, refinement, status, text, told

from ipyrefine.checks.schema import Schema
from ipyrefine.core.critiques import parse_critique
from ipyrefine.core.model import Limits, Outcome, Stage, Task

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
    loop = refinement(
        {
            Stage.DRAFT: [text(texts[0])],
            Stage.CRITIQUE: list(readings),
            Stage.REVISE: [text(one) for one in texts[1:]],
        },
        TASK,
        checks=[Schema(SCHEMA)],
        limits=Limits(max_revisions=len(texts) - 1),
    )
    await finish(loop)
    return loop


GOOD = {"name": "Anna Weber", "total": "paid 12.50 EUR"}


@pytest.mark.parametrize("sources", [GOOD, {}], ids=["found", "made up on request"])
async def test_data_whose_values_stand_in_the_source_or_need_none_passes(
    sources: dict[str, str],
) -> None:
    loop = await extracted(read(sources), texts=(RIGHT,))
    assert loop.state.verdict.outcome is Outcome.PASS
    assert '"sources"' in prompts(loop, Stage.CRITIQUE)[0]


async def test_a_value_whose_words_are_not_in_the_source_is_an_open_finding() -> None:
    bad = {"name": "Anna Weber", "total": "a total of 99 EUR"}
    loop = await extracted(read(bad), texts=(WRONG,))
    (finding,) = told(loop.state, 0)
    assert (finding.point.criterion, finding.point.place) == ("$.total", '"total"')
    assert finding.words == "total: “a total of 99 EUR” is not in the source."
    assert finding.blocks
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT


async def test_each_field_without_a_source_is_a_finding_of_its_own() -> None:
    loop = await extracted(read({"name": "", "total": ""}), texts=(WRONG,))
    problems = [one.words for one in told(loop.state, 0)]
    assert problems == ["name has no source.", "total has no source."]


@pytest.mark.parametrize(
    ("path", "empty"),
    [("total", True), ("$.items[0].name", True), ("items[1].name", False), ("other", False)],
)
async def test_a_field_that_holds_nothing_needs_no_source(path: str, empty: bool) -> None:
    told = '{"total": null, "items": [{"name": ""}, {"name": "A"}]}'
    critique = parse_critique(read({path: ""}), told, "It names nothing.")
    assert bool(critique.remarks) is not empty


async def test_a_mended_value_closes_its_finding() -> None:
    loop = await extracted(read({"total": ""}), read(GOOD))
    assert loop.state.verdict.outcome is Outcome.PASS
    assert status(told(loop.state, 1)[0]) == "resolved"


async def test_a_finding_is_not_closed_by_a_critic_that_still_has_no_words_for_the_value() -> None:
    again = '{"name": "A. Weber", "total": 99}'
    loop = await extracted(read({"total": ""}), read({"total": ""}), texts=(WRONG, again))
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT


async def test_without_a_schema_no_sources_are_asked_for() -> None:
    loop = refinement([text("Hi"), read(None)])
    await finish(loop)
    assert '"sources"' not in prompts(loop, Stage.CRITIQUE)[0]
