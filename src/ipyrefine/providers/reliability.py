"""What was measured of the verdicts of models: `tests/bench/` makes the table that ships here."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ipyrefine.core.model import Accepted, Calibration, Reliability, Task


def measured(writer: str, judge: str, task: Task, *, own_judge: bool = False) -> Reliability:
    """Return what was measured of a writer's and a judge's verdicts on such a task.

    Args:
        writer: name of the model that writes.
        judge: name of the model that judges.
        task: the task; its form counts, and code in another language was not measured.
        own_judge: whether the judge has a prompt of the user's, whose answers were not measured.
    """
    if task.is_foreign:
        return Reliability()
    calibration = None if own_judge else _table()["judges"].get(judge, {}).get(task.form)
    accepted = _table()["accepted"].get(writer, {}).get(task.form, {})
    return Reliability(
        calibration=Calibration.model_validate(calibration) if calibration else None,
        accepted={basis: Accepted.model_validate(one) for basis, one in accepted.items()},
        revise=_table()["revise"].get(writer, {}).get(task.form, "edit"),
    )


@cache
def _table() -> dict[str, Any]:
    """Return the table: ``judges``, ``accepted`` and ``revise``, each by model and form."""
    text = files("ipyrefine.providers").joinpath("reliability.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
