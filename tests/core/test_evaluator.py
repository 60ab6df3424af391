"""The user's own evaluator has the word; what it is shown is fenced."""

import asyncio

from kit import EVALUATED, finish, judgement, prompts, refinement, text

from ipyrefine.core.model import Evidence, Limits, Task
from ipyrefine.providers.scripted import ScriptedModel

ONCE = Limits(max_revisions=0, critique="never")


class Slow:
    """A check that takes a while and leaves the verdict open; it notes who was asked before it."""

    name = "slow"

    def __init__(self, model: ScriptedModel) -> None:
        self.asked_before: list[str] = []
        self._model = model

    async def __call__(self, text: str, task: Task) -> Evidence:
        for _ in range(50):
            await asyncio.sleep(0)
        self.asked_before = [request.purpose for request in self._model.requests]
        return Evidence(name=self.name, passed=True, detail="all 17 links work")


async def test_the_evaluator_is_asked_after_the_slowest_check_and_told_what_it_found() -> None:
    model = ScriptedModel([text("Hi there"), judgement(9)])
    check = Slow(model)
    loop = refinement(model, checks=[check], limits=ONCE, prompts=EVALUATED)
    await finish(loop)
    assert check.asked_before == ["draft"]
    assert "slow: passed. all 17 links work" in prompts(loop)[-1]
