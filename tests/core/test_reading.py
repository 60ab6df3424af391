"""Which texts a critic reads with `critique="auto"`, and how the others end."""

import json
from typing import Any

import pytest
from kit import CODE, READY, Suite, code, finish, judgement, refinement, text

from ipyrefine import refine
from ipyrefine.core.model import Limits, Outcome, Stage, StopReason, Undecided
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
    return TEST + json.dumps({"findings": findings, "ready": not findings})


async def revised(
    revision: str, *more: str, reading: str = critic(), critique: Any = "auto"
) -> Run:
    loop = refinement(
        [code(WRONG), reading, code(revision), *more],
        CODE.replace(text=ASK),
        suite=Suite(lambda text: "None" not in text),
        limits=Limits(critique=critique),
    )
    await finish(loop)
    return loop.state


DOCSTRING = {"criterion": "scope", "problem": "It has no docstring.", "place": ""}


async def test_a_small_edit_that_passes_the_tests_of_its_critic_is_not_read_again() -> None:
    run = await revised(MENDED)
    assert run.usage.calls == 3
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "critique")


@pytest.mark.parametrize(
    ("revision", "options"),
    [(LONGER, {}), (MENDED, {"critique": "always"}), (MENDED, {"reading": critic(DOCSTRING)})],
    ids=["a larger edit", "where it is always read", "where a finding waits for its critic"],
)
async def test_any_other_revision_is_read(revision: str, options: dict[str, str]) -> None:
    run = await revised(revision, READY, **options)
    assert run.usage.calls == 4
    assert run.iterations[1].critiqued


@pytest.mark.parametrize("critique", ["auto", "always"])
async def test_microcopy_is_left_to_the_user_unless_it_is_always_to_be_read(critique: str) -> None:
    model, task = ScriptedModel([text("Saves it."), READY]), "Write a tooltip for Save."
    run = await refine(task, model=model, journal=False, critique=critique, profile="microcopy")
    assert run.verdict is not None
    if critique == "always":
        assert (run.usage.calls, run.stop_reason) == (2, StopReason.PASSED)
    else:
        assert (run.usage.calls, run.stop_reason) == (1, StopReason.UNJUDGED)
        assert run.verdict.because == Undecided(why="plain")


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        ("import pandas as pd\n\nframe.head()", True),
        ("frame", True),
        ("frame['a']\nframe.shape[1]\nframe.iloc[:, :-7]", True),
        ("frame[['a', 'b']].describe().T", True),
        ("frame['a'].sample(n=5, random_state=1)", True),
        ("print('All of it:', frame.tail(3))\ndisplay(frame)", True),
        ("axes = frame.plot()\naxes.set_title('All')", True),
        ("frame.plot.bar(x='a', figsize=(8, 4)).set_ylabel('b')", True),
        ("fig, ax = plt.subplots()\nax.hist(frame['a'], bins=20)\nplt.show()", True),
        ("fig = px.bar(frame, x='a')\nfig.show()", True),
        ("%matplotlib inline\nsns.boxplot(data=frame, x='a', ax=plt.gca())", True),
        ("len(frame)", False),
        ("a[1:] - b", False),
        ("model.score(X, y)", False),
        ("print(model.score(X, y))", False),
        ("frame[frame.a > 1]", False),
        ("frame['a'].value_counts()", False),
        ("frame.groupby('x').y.mean()\nframe.describe()", False),
        ("frame.groupby('x').y.mean().plot()", False),
        ("frame[frame.a > 1].plot()", False),
        ("totals = frame.sum()\ntotals.plot()", False),
        ("sns.heatmap(frame.corr())", False),
        ("frame.dropna().head()", False),
        ("frame.head(n=len(other))", False),
        ("42", False),
        ("print('The mean is 42')", False),
        ("print(f'{a / b}')", False),
        ("xs.append(1)", False),
        ("frame.dropna(inplace=True)", False),
        ("random.shuffle(xs)", False),
        ("[seen.add(x) for x in xs]", False),
        ("(y := frame)", False),
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
