"""Replies and refinements for tests of the loop: what a scripted model says, in one line each."""

import json
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, StageStarted
from ipyrefine.core.records import Criterion, Evidence, Task
from ipyrefine.core.runs import Limits
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel

TASK = Task(text="Write a greeting.", criteria=(Criterion(name="tone", definition="Friendly."),))


def text(words: str, notes: str = "") -> str:
    return f"{notes}\n<text>\n{words}\n</text>\n"


def code(body: str) -> str:
    return f"```python\n{body}\n```"


def judged(
    score: float,
    *findings: dict[str, str],
    fixed: tuple[str, ...] = (),
    names: tuple[str, ...] = ("tone",),
) -> str:
    earlier = [{"id": id_, "fixed": True} for id_ in fixed]
    criteria = [{"name": name, "reason": "so it reads", "score": score} for name in names]
    return json.dumps({"findings": findings, "earlier": earlier, "criteria": criteria})


def found(problem: str, quote: str = "", severity: str = "blocking") -> dict[str, str]:
    return {
        "criterion": "tone", "quote": quote, "problem": problem, "fix": "mend it",
        "severity": severity,
    }  # fmt: skip


def criticised(*findings: dict[str, str]) -> str:
    return json.dumps({"findings": findings})


# A critic who names nothing is asked once more before it is believed.
NO_MORE = (criticised(), criticised())


class Scores:
    """A check that gives the scores it was told, and settles the verdict with them."""

    name = "scores"

    def __init__(self, *scores: float, target: float) -> None:
        self._scores, self._target = iter(scores), target

    async def __call__(self, text: str, task: Task) -> Evidence:
        score = next(self._scores)
        return Evidence(
            name=self.name, passed=score >= self._target, score=score, detail="scored",
            decisive=True,
        )  # fmt: skip


def ticking() -> Callable[[], float]:
    """A clock that moves on by a millisecond each time it is read."""
    ticks = count()
    return lambda: next(ticks) / 1000


def refinement(replies: Iterable[Any], task: Task = TASK, **options: Any) -> Refinement:
    model = ScriptedModel(replies, chunk=200)
    return Refinement(task, model=model, clock=ticking(), **options)


def scored(*scores: float, target: float, **limits: Any) -> Refinement:
    """A refinement whose texts get these scores from a check."""
    texts = [text(f"version {n}") for n in range(len(scores))]
    return refinement(
        texts,
        checks=[Scores(*scores, target=target)],
        limits=Limits(target=target, **limits),
    )


async def finish(loop: Refinement) -> list[Event]:
    """Run to the next stop; a script that is too short for the loop is the test's own fault."""
    events = [event async for event in loop]
    if isinstance(loop.error, UsageError):
        raise loop.error
    return events


def stages(events: list[Event]) -> list[str]:
    return [event.stage for event in events if isinstance(event, StageStarted)]


def requests(loop: Refinement) -> list[Any]:
    """What the writer was asked so far."""
    model: Any = loop._crew.model
    return list(model.requests)
