"""No name that a user may choose decides anything: the golden scenarios give the same."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import golden
import pytest

from ipyrefine.core import rank

# Words that the loop, its critics' replies or its tables use themselves.
OURS = (
    "critic's tests", "feedback", "verdict", "guidance", "yours", "results", "run", "no source",
    "left open", "evaluator's score", "critic's word", "none", "critique", "f1", "t1", "examples",
    "user", "you", "blocking", "passed",
)  # fmt: skip


def named(scenario: dict[str, Any]) -> list[str]:
    """The names of a scenario's checks and criteria."""
    checks = [one["name"] for one in scenario.get("checks", ())]
    tasks = [scenario["task"], *_criteria(scenario.get("rounds", []))]
    criteria = [one["name"] for task in tasks for one in task.get("criteria", ())]
    return [*dict.fromkeys([*checks, *criteria])]


def _criteria(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "criteria" in value:
            yield value
        value = [*value.values()]
    for one in value if isinstance(value, list) else ():
        yield from _criteria(one)


_KINDS = ("basis", "kind", "source", "profile", "form")  # what the engine itself names


def renamed(value: Any, names: dict[str, str]) -> Any:
    """A scenario, or what came of it, with other names wherever they stand."""
    pattern = re.compile("|".join(rf"(?<![\w'])({re.escape(one)})(?![\w'])" for one in names))

    def other(text: str) -> str:
        return pattern.sub(lambda match: names[match[0]], text)

    def walk(one: Any) -> Any:
        if isinstance(one, dict):
            return {key: part if key in _KINDS else walk(part) for key, part in one.items()}
        if isinstance(one, list):
            return [*map(walk, one)]
        return other(one) if isinstance(one, str) else one

    return walk(value)


@pytest.mark.parametrize("path", golden.SCENARIOS, ids=lambda path: path.stem)
async def test_other_names_of_checks_and_criteria_give_the_same_table(path):
    scenario = golden.read(path)
    old = named(scenario)
    new = random.Random(path.stem).sample(OURS, len(old))
    # Over names that occur nowhere, so that what is told back is told apart from our own words.
    marks = {name: f"Xx{number}xX" for number, name in enumerate(old)}
    marked = renamed({key: scenario[key] for key in golden.INPUTS if key in scenario}, marks)
    first = await golden.play(marked)
    chosen = dict(zip(marks.values(), new, strict=True))
    again = await golden.play(_as_names(marked, chosen))
    assert standings(again.run) == standings(first.run)
    assert [one["purpose"] for one in again.requests] == [one["purpose"] for one in first.requests]
    assert [one["type"] for one in again.events] == [one["type"] for one in first.events]


def _as_names(scenario: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """A scenario with marks replaced, in replies that are JSON as in its other parts."""
    text = json.dumps(scenario)
    for mark, name in names.items():
        text = text.replace(mark, json.dumps(name)[1:-1])
    found: dict[str, Any] = json.loads(text)
    return found


def standings(run: Any) -> list[Any]:
    """What a run's table says, without names and sentences."""
    points = [
        (one.id, one.source, one.kind, one.blocking, one.dropped) for one in run.points.values()
    ]
    return [
        points,
        run.stop_reason,
        run.best,
        [
            (
                rank.verdict(run, text).outcome,
                rank.verdict(run, text).basis,
                rank.verdict(run, text).score,
                [(id_, one.passed, one.again) for id_, one in text.results.items()],
            )
            for text in run.iterations
        ],
    ]
