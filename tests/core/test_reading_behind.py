"""A text that is accepted while its critic reads stays accepted, and the reading goes on."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kit import CODE, READY, Suite, code

from ipyrefine.core.decisions import Accept, Continue
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, StageStarted
from ipyrefine.core.model import Outcome, Setup, Stage, StopReason
from ipyrefine.core.ports import Reply, Request
from ipyrefine.core.run import Run
from ipyrefine.errors import ServerFailed
from ipyrefine.session.session import Session

TEST = '''```python
def test_empty():
    """Return the last item"""
    assert last([]) is None
```
'''
FAILING = f'{TEST}{{"findings": [], "ready": false, "because": "It fails on nothing."}}'
ASKED = CODE.model_copy(update={"text": "Return the last item, None without any."})


class Critic:
    """A model whose critique waits until it is let go."""

    name = "critic"

    def __init__(self, reading: str | Exception = FAILING) -> None:
        self.reading, self.go = reading, asyncio.Event()
        self.begun, self.ended = asyncio.Event(), asyncio.Event()
        self.revisions = 0

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if request.purpose == Stage.CRITIQUE and not self.revisions:
            self.begun.set()
            try:
                await self.go.wait()
            finally:
                self.ended.set()
            if isinstance(self.reading, Exception):
                raise self.reading
            yield Reply(text=self.reading)
        elif request.purpose == Stage.CRITIQUE:
            yield Reply(text=READY)
        else:
            self.revisions += request.purpose == Stage.REVISE
            body = "    return xs[-1] if xs else None" if self.revisions else "    return xs[-1]"
            yield Reply(text=code(f"def last(xs):\n{body}"))


class Desk:
    """A session with a critic that reads a draft, and every event of it."""

    def __init__(self, reading: str | Exception = FAILING) -> None:
        self.critic = Critic(reading)
        self.events: list[Event] = []
        self.refinement = Refinement(
            Setup(task=ASKED),
            model=self.critic,
            clock=asyncio.get_running_loop().time,
            suite=Suite(lambda text: " if " in text),
        )
        self.session = Session(self.refinement, [self.take])

    def take(self, event: Event, run: Run) -> None:
        self.events.append(event)

    @property
    def run(self) -> Run:
        return self.session.run

    async def accept_meanwhile(self) -> None:
        going = asyncio.ensure_future(self.session.go())
        await self.critic.begun.wait()
        self.session.decide(Accept(iteration=0))
        await going

    async def read_to_the_end(self) -> None:
        """Accept the draft, and let its critic finish."""
        await self.accept_meanwhile()
        self.critic.go.set()
        await self.session.finish_reading()


async def test_the_run_stops_at_once_and_nothing_is_asked_again():
    desk = Desk()
    await desk.accept_meanwhile()
    assert desk.run.stop_reason is StopReason.ACCEPTED
    assert not desk.session.running
    assert desk.session.reads_behind
    assert desk.run.verdict is None
    desk.critic.go.set()
    await desk.session.finish_reading()
    started = [e.stage for e in desk.events if isinstance(e, StageStarted)]
    assert started == [Stage.DRAFT, Stage.CRITIQUE]


async def test_a_test_that_the_accepted_text_fails_is_told_and_one_more_revision_mends_it():
    desk = Desk()
    await desk.read_to_the_end()
    run = desk.run
    assert run.stop_reason is StopReason.ACCEPTED
    assert run.chosen.read_late
    assert run.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    assert [one.shows for one in run.chosen.results.values()] == ["It raises."]
    assert not desk.session.reads_behind
    desk.session.decide(Continue())
    await desk.session.settle()
    assert desk.run.stop_reason is StopReason.PASSED
    assert desk.run.text.endswith("if xs else None")


@pytest.mark.parametrize("reading", [READY, ServerFailed("It is down."), ValueError("odd")])
async def test_a_critic_that_finds_nothing_or_fails_takes_nothing_back(reading):
    desk = Desk(reading)
    await desk.read_to_the_end()
    assert desk.run.stop_reason is StopReason.ACCEPTED
    failed = reading != READY
    assert desk.run.verdict.outcome is (Outcome.NOT_JUDGED if failed else Outcome.PASS)
    assert bool(desk.run.chosen.unread) is failed


async def test_a_stop_ends_the_reading():
    desk = Desk()
    await desk.accept_meanwhile()
    desk.session.stop()
    await desk.session.finish_reading()
    assert desk.critic.ended.is_set()
    assert not desk.session.reads_behind
    assert desk.run.stop_reason is StopReason.ACCEPTED
    assert desk.run.verdict is None


async def test_another_decision_ends_the_reading_and_is_carried_out():
    desk = Desk()
    await desk.accept_meanwhile()
    desk.session.decide(Continue(guidance="Mind the empty list."))
    await desk.critic.ended.wait()
    desk.critic.go.set()
    await desk.session.settle()
    assert desk.run.text.endswith("if xs else None")
    assert desk.run.stop_reason is StopReason.PASSED
