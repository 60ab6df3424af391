"""What there is of a text stays where its call ends early, until the next one begins."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kit import CODE, READY, code

from ipyrefine.core.decisions import Continue
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event
from ipyrefine.core.model import Setup, Stage, StopReason
from ipyrefine.core.ports import Delta, Reply, Request
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.errors import ServerFailed
from ipyrefine.render.markdown import record_markdown
from ipyrefine.session.session import Session

HALF = "def last(xs):\n    return"


class Stuttering:
    """A model whose first reply stops in its middle: it fails, or waits for ever."""

    name = "m"

    def __init__(self, fails: bool) -> None:
        self.fails, self.asked, self.silent = fails, 0, asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if request.purpose == Stage.CRITIQUE:
            yield Reply(text=READY)
            return
        self.asked += 1
        if self.asked == 1:
            yield Delta(text=f"I think.\n```python\n{HALF}")
            if self.fails:
                raise ServerFailed("It broke.")
            self.silent.set()
            await asyncio.Event().wait()
        yield Reply(text=code(f"{HALF} xs[-1]"))


async def broken_off(*, fails: bool) -> tuple[Session, list[Event]]:
    model, seen = Stuttering(fails), list[Event]()

    def take(event: Event, run: Run) -> None:
        seen.append(event)

    refinement = Refinement(Setup(task=CODE), model=model, clock=asyncio.get_running_loop().time)
    session = Session(refinement, [take])
    session.start()
    if not fails:
        await model.silent.wait()
        session.stop()
    await session.settle()
    return session, seen


@pytest.mark.parametrize("fails", [True, False], ids=["failure", "stop"])
async def test_it_is_kept_told_and_gone_once_the_text_is_written_anew(fails: bool) -> None:
    session, seen = await broken_off(fails=fails)
    run = session.run
    assert run.stop_reason is (StopReason.FAILED if fails else StopReason.CANCELLED)
    assert run.unfinished.strip() == HALF
    assert not run.iterations
    assert HALF in record_markdown(run)
    assert replay(seen).unfinished == run.unfinished
    session.decide(Continue())
    await session.settle()
    assert session.run.text == f"{HALF} xs[-1]"
    assert not session.run.unfinished


async def test_a_stop_says_that_it_is_kept() -> None:
    session, _ = await broken_off(fails=False)
    assert session.run.message == "You stopped it. What was written so far is kept."
