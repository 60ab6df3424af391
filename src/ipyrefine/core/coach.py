"""A student's own code: nothing is written for them, and they predict what it gives where it fails.

`ipyrefine.render.blocks` has the words.
"""

from collections.abc import Iterator
from typing import Any

from ipyrefine.core.decisions import Expect, Predict
from ipyrefine.core.model import Attempt
from ipyrefine.core.results import key_of
from ipyrefine.core.run import Run
from ipyrefine.core.table import Cell
from ipyrefine.core.testing import is_critics

_CLOSED = "Nothing is written for you here. Change your cell, and run it again."


def predictions(run: Run) -> tuple[Attempt, ...]:
    """Return the student's predictions in this run."""
    return run.attempts[len(run.setup.attempts or ()) :]


def open_puzzle(run: Run) -> Attempt | None:
    """Return the input that a student is asked about now; None where all are answered.

    The examples of the task come first, then a critic's tests.
    """
    if not run.setup.coach:
        return None
    answered = {key_of(one) for one in predictions(run)}
    return next((one for one in _puzzles(run) if key_of(one) not in answered), None)


def refuse(run: Run, decision: Any, *, revises: bool) -> str:
    """Return why a student can't decide something; empty where they can."""
    if isinstance(decision, Predict) and open_puzzle(run) is None:
        return "There is no result to predict."
    closed = run.setup.coach and (revises or isinstance(decision, Expect))
    return _CLOSED if closed else ""


def predict(run: Run, decision: Predict, _: int) -> Run:
    """Keep what a student says that their code gives."""
    puzzle = open_puzzle(run)
    assert puzzle is not None, "it was looked for before the decision was taken"
    return run.replace(attempts=(*run.attempts, puzzle.replace(predicted=decision.gives)))


def unmet(run: Run) -> tuple[str, ...]:
    """Return the task's words behind failing tests that do more than compare results."""
    left = (cell.point for cell in _failing(run) if not cell.result.gives)
    return tuple(dict.fromkeys(test.quote for test in left))


def _puzzles(run: Run) -> Iterator[Attempt]:
    """Yield where the code gives something else than the task's examples and a critic's tests."""
    checks = run.chosen.evidence if run.chosen else ()
    stated = (row for one in checks if one.passed is False for row in one.rows)
    missed = [("", row) for row in stated if row.source == "example" and row.rivals]
    missed += [(point.quote, one) for point, one in _failing(run) if one.gives]
    for quote, one in missed:
        called = {"call": one.call, "setup": one.setup, "gives": one.gives}
        yield Attempt(**called, expected=one.expected, quote=quote)


def _failing(run: Run) -> list[Cell]:
    cells = run.cells(run.chosen) if run.chosen else []
    return [one for one in cells if is_critics(one.point) and one.blocks]
