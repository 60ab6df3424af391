"""Which texts a critic reads with `critique="auto"`, and how the others end."""

import pytest
from kit import CODE, READY, code, ended, judgement, text

from ipyrefine import refine
from ipyrefine.core.model import Stage, StopReason
from ipyrefine.providers.scripted import ScriptedModel


@pytest.mark.parametrize("critique", ["auto", "always"])
async def test_microcopy_is_left_to_the_user_unless_it_is_always_to_be_read(critique):
    model, task = ScriptedModel([text("Saves it."), READY]), "Write a tooltip for Save."
    run = await refine(task, model=model, journal=False, critique=critique, profile="microcopy")
    if critique == "always":
        assert (run.usage.calls, run.stop_reason) == (2, StopReason.PASSED)
    else:
        assert (run.usage.calls, run.stop_reason) == (1, StopReason.UNJUDGED)
        assert run.verdict.why == "plain"


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        ("import pandas as pd\n\nframe.head()", True), ("frame", True),
        ("frame['a']\nframe.shape[1]\nframe.iloc[:, :-7]", True),
        ("frame[['a', 'b']].describe().T", True), ("frame['a'].sample(n=5, random_state=1)", True),
        ("print('All of it:', frame.tail(3))\ndisplay(frame)", True),
        ("axes = frame.plot()\naxes.set_title('All')", True),
        ("frame.plot.bar(x='a', figsize=(8, 4)).set_ylabel('b')", True),
        ("fig, ax = plt.subplots()\nax.hist(frame['a'], bins=20)\nplt.show()", True),
        ("fig = px.bar(frame, x='a')\nfig.show()", True),
        ("%matplotlib inline\nsns.boxplot(data=frame, x='a', ax=plt.gca())", True),
        ("len(frame)", False), ("a[1:] - b", False), ("model.score(X, y)", False),
        ("print(model.score(X, y))", False), ("frame[frame.a > 1]", False),
        ("frame['a'].value_counts()", False),
        ("frame.groupby('x').y.mean()\nframe.describe()", False),
        ("frame.groupby('x').y.mean().plot()", False), ("frame[frame.a > 1].plot()", False),
        ("totals = frame.sum()\ntotals.plot()", False), ("sns.heatmap(frame.corr())", False),
        ("frame.dropna().head()", False), ("frame.head(n=len(other))", False), ("42", False),
        ("print('The mean is 42')", False), ("print(f'{a / b}')", False), ("xs.append(1)", False),
        ("frame.dropna(inplace=True)", False), ("random.shuffle(xs)", False),
        ("[seen.add(x) for x in xs]", False), ("(y := frame)", False),
        ("merged = frame.merge(other)\nmerged.head()", False), ("def f():\n    return 1", False),
        ("import math", False), ("frame.head(", False),
    ],
)  # fmt: skip
async def test_a_cell_that_only_displays_something_is_left_to_the_user(cell, plain):
    loop = await ended({Stage.DRAFT: [code(cell)], Stage.CRITIQUE: [judgement(9)]}, CODE)
    assert (loop.state.iterations[0].reading is None) is plain
