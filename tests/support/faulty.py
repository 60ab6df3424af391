"""A whole run against a server that fails at one stage of it."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

from kit import critique, finding, text
from openai_server import Answer, Behaviour, Body, ScriptedServer

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event
from ipyrefine.core.model import Limits, Outcome, Setup, Task
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.providers.openai import OpenAIModel

TASK = Task(text="Write a greeting.")
EVALUATE = Prompts(judge="How good is it, as JSON with a score of 0 to 10?\n{text}")
STAGES = ("draft", "judge", "critique", "revise", "rejudge")
MOST_SECONDS = 20.0  # a run that takes longer hangs

Fault = Behaviour | Callable[[Body], Behaviour]


def stage_of(body: Body) -> str:
    """Return the stage of a request; ``rejudge`` is the judgement of the revision.

    A server does not see what a request is for: the reply that is asked for tells, and our texts.
    """
    asked = "".join(message["content"] for message in body["messages"][:2])
    if "How good is it" in asked or "Score it strictly" in asked:
        return "rejudge" if "Hello again" in asked else "judge"
    if '"findings":' in asked:
        return "critique"
    return "revise" if "Hello" in asked else "draft"


GOOD = {
    "draft": text("Hello").strip(),
    "judge": '{"score": 5}',
    "critique": critique(*(finding(f"too {w}", criterion="correctness") for w in "abc")),
    "revise": text("Hello again", "f1: longer").strip(),
    "rejudge": '{"score": 9.5}',
}


class Trial:
    """One run with a fault at one stage: for the first `times` requests of it, or for ever."""

    def __init__(self, server: ScriptedServer, stage: str, fault: Fault, times: int = 10**6):
        self.server, self.stage, self.fault, self.times = server, stage, fault, times
        self.waits: list[float] = []
        self.events: list[Event] = []
        self.seconds = 0.0
        self.loop: Any = None
        server.default = self._answer

    def refinement(
        self,
        *,
        base_url: str = "",
        idle: float = 5.0,
        limits: Limits | None = None,
        model: OpenAIModel | None = None,
        **options: Any,
    ) -> Refinement:
        self.loop = Refinement(
            Setup(task=TASK, limits=limits or Limits(max_revisions=2), prompts=EVALUATE.own()),
            model=model
            or OpenAIModel(
                "m",
                base_url=base_url or self.server.base_url,
                api_key="sk-of-the-test",
                timeout=idle,
                sleep=self._sleep,
            ),
            clock=monotonic,
            **options,
        )
        return self.loop

    async def run(self, **options: Any) -> Run:
        """Run to the stop, within `MOST_SECONDS`."""
        loop = self.refinement(**options)
        began = monotonic()
        async with asyncio.timeout(MOST_SECONDS):
            self.events = []
            await loop.run(lambda event, run: self.events.append(event))
        self.seconds = monotonic() - began
        return loop.state

    @property
    def asked(self) -> int:
        """How many requests the faulty stage made."""
        return sum(stage_of(body) == self.stage for body in self.server.bodies)

    @property
    def passed(self) -> bool:
        """Whether any text got a PASS."""
        verdicts = [i.verdict for i in self.loop.state.iterations]
        return any(v is not None and v.outcome is Outcome.PASS for v in verdicts)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def _answer(self, body: Body) -> Behaviour:
        stage = stage_of(body)
        if stage == self.stage and self.times > 0:
            self.times -= 1
            return self.fault(body) if callable(self.fault) else self.fault
        return Answer(GOOD[stage], chunk=40)
