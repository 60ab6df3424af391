"""Runs by hand end as they did, and ask for no more than they did."""

import json

import pytest
from kept_runs import RUNS, replay

from ipyrefine.core.model import Outcome
from ipyrefine.core.testing import is_critics
from ipyrefine.providers.scripted import ScriptedModel


def stands_first_or_not_at_all(draft: str, model: ScriptedModel) -> None:
    """Its server reads a long text once, and a critic of a revision reads what was changed."""
    prompts = ["\n".join(m.content for m in request.messages) for request in model.requests]
    assert len({prompt.partition(draft)[0] for prompt in prompts if draft in prompt}) == 1
    without = [prompt for prompt in prompts if draft not in prompt]
    assert len(without) == 2
    assert all("What changed:" in prompt for prompt in without)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
async def test_a_run_by_hand_ends_as_it_did(path):
    kept = json.loads(path.read_text("utf-8"))
    run, model = await replay(kept)
    cells = run.cells(run.iterations[0])
    tests = (one for one in cells if is_critics(one.point) and not one.point.dropped)
    shown = [one.point.words for one in tests if one.result.passed is False]
    assert shown == kept["failing"], "the tests that the draft fails"
    ended = (kept.get("outcome", Outcome.PASS), kept.get("basis", "critique"))
    assert (run.verdict.outcome, run.verdict.basis) == ended
    assert run.usage.calls == len(model.requests) == kept["calls"]
    assert not any(e.failed for e in run.chosen.evidence)
    if path.stem == "stock":
        stands_first_or_not_at_all(kept["options"]["draft"], model)
