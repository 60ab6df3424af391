"""Short scripted refinements, for tests of what happens to their events and runs."""

import json
from itertools import count
from typing import Any

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, TextDelta
from ipyrefine.core.records import Criterion, Task
from ipyrefine.core.runs import Limits, Run
from ipyrefine.providers.scripted import ScriptedModel

TONE = Criterion(name="tone", definition="Friendly.")


def text(words: str) -> str:
    return f"<text>\n{words}\n</text>\n"


def judged(score: int) -> str:
    finding = {
        "criterion": "tone", "quote": "", "problem": f"flat at {score}", "fix": "mend it",
        "severity": "blocking",
    }  # fmt: skip
    criteria = [{"name": "tone", "reason": "so it reads", "score": score}]
    found = [] if score == 10 else [finding]
    fixed = [{"id": f"f{number}", "fixed": True} for number in range(1, 9) if score == 10]
    answers = [{"item": number, "yes": True} for number in range(1, 9)]
    return json.dumps(
        {"findings": found, "earlier": fixed, "checklist": answers, "criteria": criteria}
    )


def refinement(
    task: str = "Write a greeting.", scores: tuple[int, ...] = (4, 10), **options: Any
) -> Refinement:
    """One text a score, the last score passing when it is 10; or the given ``replies``."""
    scripted = [
        part
        for number, score in enumerate(scores)
        for part in (text(f"Version {number}"), judged(score))
    ]
    replies = options.pop("replies", scripted)
    ticks = count().__next__
    wanted = {"limits": Limits(max_iterations=len(scores) - 1, min_findings=0, patience=99)}
    return Refinement(
        Task(text=task, criteria=(TONE,)),
        model=ScriptedModel(replies, name=options.pop("model", "scripted")),
        clock=lambda: ticks() / 1000,
        **(wanted | options),
    )


async def events_of(loop: Refinement) -> list[Event]:
    return [event async for event in loop if not isinstance(event, TextDelta)]


async def finished(task: str = "Write a greeting.", **options: Any) -> Run:
    loop = refinement(task, **options)
    await events_of(loop)
    return loop.run
