"""Accept ends the reading of a text, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from kit import CODE, READY, code

from ipyrefine.core.decisions import Accept, Continue
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import CallEnded, Event
from ipyrefine.core.model import Outcome, Setup, Stage, StopReason
from ipyrefine.core.ports import Delta, Reply, Request
from ipyrefine.core.run import Run
from ipyrefine.session.session import Session

TEXT = "def last(xs):\n    return xs[-1]"
BEGUN = '{"findings": ['


class Critic:
    """A model whose first critique never comes to its end."""

    name = "critic"

    def __init__(self) -> None:
        self.reads = 0
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if request.purpose != Stage.CRITIQUE:
            yield Reply(text=code(TEXT))
            return
        self.reads += 1
        if self.reads > 1:
            yield Reply(text=READY)
            return
        try:
            yield Delta(text=BEGUN)
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def test_accept_ends_the_reading_keeps_its_cost_and_what_goes_on_later_reads_the_text():
    model, seen = Critic(), list[Event]()

    def take(event: Event, run: Run) -> None:
        seen.append(event)

    setup, clock = Setup(task=CODE), asyncio.get_running_loop().time
    session = Session(Refinement(setup, model=model, clock=clock), [take])
    going = asyncio.ensure_future(session.go())
    await model.begun.wait()
    session.decide(Accept(iteration=0))
    await going
    assert model.ended.is_set()
    run = session.run
    assert (run.stop_reason, run.text, run.verdict) == (StopReason.ACCEPTED, TEXT, None)
    last = [one for one in seen if isinstance(one, CallEnded)][-1]
    assert (last.stage, last.text, last.finish) == (Stage.CRITIQUE, BEGUN, None)
    assert 0 < last.usage.completion_tokens == run.spent[Stage.CRITIQUE].completion_tokens

    session.decide(Continue())
    await session.settle()
    assert model.reads == 2
    assert session.run.stop_reason is StopReason.PASSED
    assert session.run.verdict.outcome is Outcome.PASS
