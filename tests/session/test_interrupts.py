"""Stopping a run at any moment: the server is left within a second, and the best text is kept."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from faulty import GOOD, STAGES, Trial, stage_of
from openai_server import Answer, Behaviour, Failure, ScriptedServer

from ipyrefine.core.decisions import Continue
from ipyrefine.core.events import DraftReady, Event, RevisionReady
from ipyrefine.core.model import StopReason
from ipyrefine.providers import servers
from ipyrefine.session.session import Session

STOPS = int(os.environ.get("IPYREFINE_STOPS", "12"))  # at random moments
AT_ONCE = 20.0  # seconds: the claim is one; uninterrupted, each would wait for ever


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setattr(servers, "BY_SERVER", {})
    with ScriptedServer() as running:
        yield running


class Waiting(Trial):
    """A trial whose retries really wait."""

    async def _sleep(self, seconds):
        await asyncio.sleep(seconds)


def silences(stage: str) -> dict[str, Behaviour]:
    return {
        "before its status": Answer(hold=True),
        "before its first piece": Answer(GOOD[stage], stall_after=0),
        "in the middle": Answer(GOOD[stage], chunk=4, stall_after=3),
    }


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.005)


async def stop(session: Session) -> None:
    """Stop a run, which ends at once."""
    began = time.monotonic()
    session.stop()
    await session.settle()
    assert time.monotonic() - began < AT_ONCE


async def nothing_left() -> None:
    """Assert that no task but the test's own is there, once those that end have ended."""
    await asyncio.sleep(0)
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})


def kept(trial: Trial, session: Session) -> None:
    run = session.run
    assert run.stop_reason is StopReason.CANCELLED
    before = STAGES.index(trial.stage)
    assert run.text == ("Hello" if before else "")
    assert len(run.iterations) == (0 if before == 0 else 1 if before < 4 else 2)
    assert not run.converged


MIDDLE = "in the middle"


@pytest.mark.parametrize(("stage", "moment", "way"), [
    *((stage, MIDDLE, "stop") for stage in STAGES),
    ("draft", MIDDLE, "interrupt"),
    ("critique", "before its status", "interrupt"),
    ("revise", "before its first piece", "stop"),
])  # fmt: skip
async def test_a_run_can_be_stopped_at_every_stage_and_moment(server, stage, moment, way):
    trial = Trial(server, stage, silences(stage)[moment])
    session = Session(trial.refinement(), [])
    driving = asyncio.ensure_future(session.go())
    await until(lambda: trial.asked == 1)
    await asyncio.sleep(0.05)
    began = time.monotonic()
    if way == "stop":
        session.stop()
    else:
        driving.cancel()
    await driving
    assert time.monotonic() - began < AT_ONCE
    assert await asyncio.to_thread(server.left.wait, AT_ONCE)
    assert server.left_at - began < AT_ONCE
    assert session.interrupted == (way == "interrupt")
    kept(trial, session)
    await nothing_left()


def plays(server: ScriptedServer) -> Trial:
    return Trial(server, "", Answer())  # no stage of that name: nothing fails


@pytest.mark.parametrize("way", ["stop", "interrupt"])
async def test_stopped_at_a_random_event_a_run_keeps_what_was_shown_and_continues_from_it(
    server, way
):
    await (undisturbed := plays(server)).run()
    events, dice = len(undisturbed.events), random.Random(8)
    for _ in range(STOPS // 2):
        server.requests.clear()
        trial, at = plays(server), dice.randrange(events)
        shown: list[Event] = []
        session = Session(trial.refinement(), [lambda event, _, shown=shown: shown.append(event)])
        driving = asyncio.ensure_future(session.go())
        await until(lambda shown=shown, at=at: len(shown) > at)
        session.stop() if way == "stop" else driving.cancel()
        await driving
        texts = [
            getattr(one, "revision", one).text
            for one in shown
            if isinstance(one, DraftReady | RevisionReady)
        ]
        assert [one.text for one in session.run.iterations] == texts
        assert max(Counter(map(stage_of, server.bodies)).values(), default=0) <= 1
        if session.run.stop_reason is StopReason.CANCELLED:
            session.decide(Continue())
            await session.settle()
        assert session.run.stop_reason is StopReason.PASSED
        assert session.run.text == "Hello again"
        await nothing_left()


async def test_the_wait_before_another_try_can_be_stopped(server):
    trial = Waiting(server, "judge", Failure(503, {}, {"Retry-After": "30"}))
    session = Session(trial.refinement(), [])
    session.start()
    await until(lambda: any("trying again in 30 s" in w for w in session.run.warnings))
    await stop(session)
    kept(trial, session)
    await nothing_left()
