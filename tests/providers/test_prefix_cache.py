"""What the embedded server need not read again, in a run of the whole loop."""

import pytest

from ipyrefine.compose import compose
from ipyrefine.loop.events import BudgetUsed
from ipyrefine.loop.records import Usage
from ipyrefine.loop.runs import Limits
from ipyrefine.providers import local, weights
from ipyrefine.providers.local import LocalModel

TASK = "Write a friendly message of about 40 words: the lift is out of order on Monday, 9 to 12."


@pytest.mark.model
async def test_most_of_what_iterations_from_the_second_on_read_comes_from_the_cache() -> None:
    path = weights.find(weights.LIGHT)
    if path is None:
        pytest.skip(f"fetch the weights first: ipyrefine pull {weights.LIGHT}")
    # Never passing, so that it goes on; the draft is given to spare a call.
    limits = Limits(
        max_iterations=3, patience=9, target=1.0, min_findings=1, max_tokens=500, seed=1
    )
    loop = compose(
        TASK,
        model=LocalModel(path, name=weights.LIGHT),
        limits=limits,
        draft="The lift is broken. It is out of order on Monday. Use the stairs.",
        criteria=["tone"],
        checklist=["Does it say from when to when?"],
    )
    used, calls = Usage(), []
    try:
        async for event in loop:
            if isinstance(event, BudgetUsed) and event.iteration >= 2:
                used += event.usage
                calls.append((event.stage, event.usage.prompt_tokens, event.usage.cached_tokens))
    finally:
        local._stop_all()
    assert len(loop.run.iterations) == 4
    assert used.cached_tokens is not None
    assert used.cached_tokens >= 0.6 * used.prompt_tokens, calls
