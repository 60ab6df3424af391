"""`--coach`: a student predicts what their own code gives where it fails; nothing is written."""

import json
import re
from typing import Any

import pytest
from kit import CODE, decide, finish, refinement, stages
from shells import error_of, run_cell, scripted_shell
from surfaces import SURFACES, panel_html

from ipyrefine.checks.evaluation import Examples
from ipyrefine.checks.suite import Suite
from ipyrefine.core.coach import open_puzzle
from ipyrefine.core.decisions import Continue, Edit, Expect, Predict
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Stage
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.render.terminal import DETAILS, details_text, record_text
from ipyrefine.session.export import suite_source

TASK = """Write median(xs): the middle of the sorted list, the mean of the two middle values for an
even number; raises ValueError for an empty list.

>>> median([4, 9, 5])
5
"""
OWN = "def median(xs):\n    return sorted(xs)[len(xs) // 2]"
TESTS = '''```python
def test_empty():
    """raises ValueError for an empty list"""
    with pytest.raises(ValueError):
        median([])

def test_even():
    """the mean of the two middle values for an even number"""
    assert median([16, 17]) == 16.5

def test_twice():
    """the middle of the sorted list"""
    for xs in ([2, 1], [4, 3]):
        assert median(xs) == sum(xs) / 2
```
'''
CRITIQUE = TESTS + json.dumps({"findings": [], "ready": True, "because": "No more."})
RIGHT = """def median(xs):
    if not xs:
        raise ValueError("empty")
    xs, n = sorted(xs), len(xs)
    return (xs[(n - 1) // 2] + xs[n // 2]) / 2"""


RUNS: dict[str, Run] = {}  # by code, at the stop


async def coached(code: str = OWN) -> Refinement:
    loop = refinement(
        [CRITIQUE],
        CODE.replace(text=TASK),
        draft=code,
        checks=[Examples()],
        suite=Suite(),
        attempts=(),
        limits=Limits(max_revisions=0),
        run=RUNS.get(code),
    )
    if code not in RUNS:
        await finish(loop)
        RUNS[code] = loop.state
    return loop


def asked(loop: Refinement) -> str:
    puzzle = open_puzzle(loop.state)
    return puzzle.call if puzzle else ""


async def test_each_failing_input_is_asked_about_and_kept_with_the_prediction():
    loop = await coached()
    for call, answer in (
        ("median([])", Predict(gives="raises IndexError")),
        ("median([16, 17])", Predict(gives="1")),
    ):
        assert asked(loop) == call
        await decide(loop, answer)
    assert asked(loop) == ""
    first, second = loop.state.attempts
    assert (first.gives, first.expected) == ("raises IndexError", "raises ValueError")
    assert first.quote == "raises ValueError for an empty list"
    assert (second.predicted, second.gives) == ("1", "17")


@pytest.mark.parametrize(("decision", "sentence"), [
    (Continue(), "Nothing is written for you here"),
    (Continue(guidance="fix it"), "Nothing is written for you here"),
    (Expect(call="median([1])", gives="1"), "Nothing is written for you here"),
    (Predict(gives="two words"), "neither a value"),
])  # fmt: skip
async def test_nothing_is_written_for_a_student_and_only_a_value_is_a_prediction(
    decision, sentence
):
    loop = await coached()
    with pytest.raises(UsageError, match=sentence):
        loop.decide(decision)
    assert Stage.REVISE not in loop.state.spent


async def test_a_student_may_put_in_better_code_that_leaves_nothing_to_predict():
    loop = await coached()
    events = await decide(loop, Edit(text=RIGHT))
    assert Stage.REVISE not in stages(events)
    assert asked(loop) == ""
    with pytest.raises(UsageError, match="no result to predict"):
        loop.decide(Predict(gives="1"))


@pytest.mark.parametrize(
    "render", [*SURFACES, lambda run: panel_html(run, folds=frozenset({"details"}))]
)
async def test_no_surface_gives_a_result_away_before_it_is_predicted(render):
    loop = await coached()
    assert "IndexError" not in render(loop.state)
    assert "16.5" not in render(loop.state)
    await decide(loop, Predict(gives="0"))
    assert "it gives IndexError" in render(loop.state)
    assert "16.5" not in render(loop.state)
    await decide(loop, Predict(gives="17"))
    page = render(loop.state)
    assert "and so it is" in page
    assert "the middle of the sorted list" in page  # what no single call shows
    assert "Change your code, and run the cell again." in page


@pytest.mark.parametrize("part", DETAILS)
async def test_no_part_of_a_run_gives_a_result_away_before_it_is_predicted(part):
    loop = await coached()
    for answer in ("0", "17"):
        shown = details_text(loop.state, part)
        assert not re.search(r"\b(IndexError|16\.5|17)\b", shown.replace("[16, 17]", ""))
        with pytest.raises(UsageError, match="Predict it first"):
            suite_source(loop.state)
        await decide(loop, Predict(gives=answer))
    assert "16.5" in details_text(loop.state, "checks")
    assert "16.5" in suite_source(loop.state)


SLOW = {"problem": "Sorting is slow.", "place": "sorted(xs)", "severity": "blocking"}


KEEPS = f'''```python
def test_kept():
    """the middle of the sorted list"""
    xs = [3, 1, 2]
    median(xs)
    assert xs == [3, 1, 2]
```
{json.dumps({"findings": [SLOW], "ready": False, "because": "Not yet."})}'''


async def read_by(critique: str, code: str) -> Refinement:
    loop = refinement(
        [critique], CODE.replace(text=TASK), draft=code, checks=[Examples()], suite=Suite(),
        attempts=(), limits=Limits(max_revisions=0),
    )  # fmt: skip
    await finish(loop)
    return loop


async def test_a_prediction_is_shown_with_what_comes_before_its_call():
    loop = await read_by(
        KEEPS, RIGHT.replace("xs, n = sorted(xs), len(xs)", "xs.sort(); n = len(xs)")
    )
    await decide(loop, Predict(gives="3"))
    assert "xs = [3, 1, 2]; median(xs); xs" in record_text(loop.state)


# In a cell


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    return scripted_shell(monkeypatch, [CRITIQUE, CRITIQUE])


CELL = f"%%refine --coach --plain\n{TASK}\n{OWN}\n"


def test_what_was_predicted_before_stays_when_the_cell_is_run_again(shell, capsys):
    run_cell(shell, CELL)
    run_cell(shell, "%refine should IndexError")
    assert "Your predictions" in capsys.readouterr().out
    run_cell(shell, CELL.replace("// 2]", "// 2 ]"))
    out = capsys.readouterr().out
    assert "You predicted IndexError, and so it is." in out
    assert out.count("Predict it") == 1
    run = shell.user_ns["refined_run"]
    assert [one.call for one in run.attempts] == ["median([])"]


@pytest.mark.parametrize(("code", "said"), [
    ("def median(xs)\n\n    return xs", "SyntaxError: expected ':' (line 1)"),
    ("import math\nhalf = [\n\ndef median(xs): ...", "SyntaxError: '[' was never closed (line 2)"),
    ("# Mine\ndef median(xs):\n\treturn xs\n        x", "TabError"),
])  # fmt: skip
def test_code_that_does_not_parse_is_a_students_too(shell, capsys, code, said):
    run_cell(shell, f"%%refine --coach --plain --critique never\n{TASK}\n{code}\n")
    out = " ".join(capsys.readouterr().out.split())
    assert f"The code does not load: {said}" in out
    assert "Interpreted as: your own code, 1 example" in out
    assert "as prose" not in out


@pytest.mark.parametrize(("cell", "sentence"), [
    ("%%refine --coach\nWrite median.", "--coach found no Python below the task"),
    ("%%refine --coach\nWrite median.\n\n# sorry", "--coach found no Python below the task"),
    (f"%%refine --coach --set as=task\n{OWN}", "it is about code of yours"),
    (f"%%refine --coach -n 2\n{TASK}\n{OWN}", "nothing is written for you"),
    ("%refine should 1", "no run yet"),
])  # fmt: skip
def test_what_makes_no_sense_of_it_is_refused_in_a_sentence(shell, cell, sentence):
    assert sentence in str(error_of(shell, cell))


def test_a_student_confirms_no_result(shell):
    run_cell(shell, CELL)
    assert "you predict a result" in str(error_of(shell, "%refine right 1"))
