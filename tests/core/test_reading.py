"""Which texts a critic reads with `critique="auto"`, and how the others end."""

import json

import pytest
from kit import CODE, READY, code, finish, judgement, refinement, text
from png import PNG

from ipyrefine import refine
from ipyrefine.core.model import Evidence, Figure, Outcome, Stage, StopReason, Task, Undecided
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel

TEST = '''```python
def test_empty():
    """an empty list gives 0"""
    assert total([]) == 0
```
'''
ASK = "Write a function total(items) that adds up items; an empty list gives 0."
WRONG = "def total(items):\n    return sum(items) or None"
MENDED = WRONG.replace(" or None", "")
LONGER = """def total(items):
    result = 0
    for item in items:
        result += item
    if not items:
        return 0
    return result"""


def critic(*findings: dict[str, str]) -> str:
    return TEST + json.dumps({"findings": findings})


async def revised(
    revision: str, *more: str, reading: str = critic(), critique: str = "auto"
) -> Run:
    replies = [code(WRONG), reading, code(revision), *more]
    return await refine(ASK, model=ScriptedModel(replies), journal=False, critique=critique)


async def test_a_small_edit_that_passes_the_tests_of_its_critic_is_not_read_again() -> None:
    run = await revised(MENDED)
    assert run.usage.calls == 3
    assert run.verdict is not None
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "critique")


@pytest.mark.parametrize("critique", ["auto", "always"])
async def test_a_larger_edit_or_one_that_is_always_criticised_is_read(critique: str) -> None:
    revision = LONGER if critique == "auto" else MENDED
    run = await revised(revision, READY, critique=critique)
    assert run.usage.calls == 4
    assert run.iterations[1].critiqued


async def test_a_small_edit_is_read_where_a_finding_waits_for_its_critic() -> None:
    reading = critic({"criterion": "scope", "problem": "It has no docstring.", "place": ""})
    run = await revised(MENDED, READY, reading=reading)
    assert run.usage.calls == 4
    assert run.iterations[1].critiqued


async def test_microcopy_is_left_to_the_user_unread() -> None:
    model = ScriptedModel([text("Saves it.")])
    run = await refine("Write a tooltip for Save.", model=model, journal=False)
    assert run.task.profile == "microcopy"
    assert (run.usage.calls, run.stop_reason) == (1, StopReason.UNJUDGED)
    assert run.verdict is not None
    assert run.verdict.because == Undecided(why="plain")


async def test_microcopy_is_read_where_that_is_asked_for() -> None:
    model = ScriptedModel([text("Saves it."), READY])
    run = await refine("Write a tooltip for Save.", model=model, journal=False, critique="always")
    assert (run.usage.calls, run.stop_reason) == (2, StopReason.PASSED)


class Draws:
    """A check that ran a text, which drew a figure."""

    name = "run"

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=True, basis="run", outputs=(Figure(png=PNG),))


async def test_a_plot_is_left_to_the_user_unread() -> None:
    loop = refinement([code("axes = frame.plot()")], CODE, checks=[Draws()])
    await finish(loop)
    assert loop.state.stop_reason is StopReason.UNJUDGED
    assert loop.state.verdict is not None
    assert loop.state.verdict.only_ran


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        ("import pandas as pd\n\nframe.head()", True),
        ("frame.groupby('x').y.mean()\nframe.describe()", True),
        ("merged = frame.merge(other)\nmerged.head()", False),
        ("def f():\n    return 1", False),
        ("import math", False),
        ("frame.head(", False),
    ],
)
async def test_a_cell_that_only_displays_something_is_left_to_the_user(
    cell: str, plain: bool
) -> None:
    loop = refinement({Stage.DRAFT: [code(cell)], Stage.CRITIQUE: [judgement(9)]}, CODE)
    await finish(loop)
    assert loop.state.iterations[0].critiqued is not plain
