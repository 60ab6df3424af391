"""The scripted-model kit: replies, a model that answers by stage, checks, a clock, refinements.

A stage is told by a request's ``purpose``, never by the words of its prompt.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import Any

from ipyrefine.core.decisions import Decision
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import CallEnded, Event, StageStarted, TextDelta
from ipyrefine.core.model import Basis, Criterion, Limits, Setup, Stage, Task
from ipyrefine.core.ports import Clock, Consumer, Journal, Reply, Request
from ipyrefine.core.prompts import SCORE, Prompts
from ipyrefine.core.run import Run
from ipyrefine.core.table import Cell, Point, Result
from ipyrefine.core.testing import is_critics
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import Scripted, ScriptedModel

TONE = Criterion(name="tone", definition="Friendly.")
TASK = Task(text="Write a greeting.", criteria=(TONE,))
CODE = TASK.model_copy(update={"form": "code"})


# Replies


def text(words: str, notes: str = "") -> str:
    """A writer's reply in prose, with notes before the text."""
    return f"{notes}\n<text>\n{words}\n</text>\n"


def code(body: str, notes: str = "") -> str:
    """A writer's reply in code, with notes before the block."""
    return f"{notes}\n```python\n{body}\n```\n"


def finding(
    problem: str, quote: str = "", severity: str = "blocking", criterion: str = "tone"
) -> dict[str, Any]:
    """One weakness in a judge's or a critic's reply."""
    return {
        "criterion": criterion,
        "place": quote,
        "problem": problem,
        "fix": "mend it",
        "blocks": severity == "blocking",
    }


def question(problem: str, *options: str, call: str = "") -> Point:
    """A question of a critic's about the task, in a run."""
    fields = {"kind": "question", "criterion": "left open", "blocking": False}
    return Point(id="q1", words=problem, options=options, call=call, **fields)


# What a run says of a text


def told(run: Run, number: int | None = None) -> list[Cell]:
    """What is said of a text, by default the chosen one; of a critic's tests, what is missed."""
    text = run.chosen if number is None else run.iterations[number]
    cells = run.cells(text) if text else []
    return [one for one in cells if not is_critics(one.point) or one.is_open]


def actionable(run: Run, number: int | None = None) -> list[Cell]:
    """What a revision of a text should act on."""
    return [one for one in told(run, number) if one.actionable]


def written(run: Run) -> list[Point]:
    """The tests that critics wrote."""
    return [one for one in run.points.values() if is_critics(one)]


def status(cell: Cell) -> str:
    """Where a point stands on a text."""
    if cell.point.dropped:
        return "dismissed"
    if cell.result.passed:
        return "resolved"
    return "regressed" if cell.result.again else "open"


def judgement(
    score: float = 9, *findings: dict[str, Any], fixed: Iterable[str] = ()
) -> Callable[[Request], str]:
    """A reading of a text: a critic's reply, or an evaluator's where that is asked.

    Args:
        score: 0..10; a critic takes a text for ready from 8 on.
        *findings: what it names.
        fixed: ids of earlier findings that no longer stand.
    """
    ready = score >= 8 and not findings
    because = "It is good." if ready else "It is not there yet."
    said = {"findings": findings, "fixed": tuple(fixed), "ready": ready, "because": because}
    rated = {"score": score, "feedback": [one["problem"] for one in findings]}
    rated |= {"fixed": tuple(fixed)} if fixed else {}
    return lambda request: json.dumps(rated if request.purpose == Stage.JUDGE else said)


EVALUATED = Prompts(judge=SCORE)  # by the evaluator that ships


EVERY = [*(f"f{n}" for n in range(1, 30)), "q1", "q2"]  # what a critic may find, of any of them
READY = json.dumps(
    {"findings": [], "fixed": EVERY, "ready": True, "because": "It does what is asked."}
)


def critique(*findings: dict[str, Any]) -> str:
    """A critic's reply, who takes a text for ready that nothing blocks."""
    ready = not any(one["blocks"] for one in findings)
    return json.dumps({"findings": findings, "ready": ready})


NO_FINDINGS = (critique(),)


# Models, checks and a clock


def staged(
    replies: Mapping[str, Sequence[Scripted]], used: Mapping[str, int] | None = None
) -> ScriptedModel:
    """A model that gives each stage its own replies in order, whatever the stages' order.

    Args:
        replies: by stage.
        used: how many replies of each stage an earlier run has had already.
    """
    used = used or {}
    left = {stage: iter(items[used.get(stage, 0) :]) for stage, items in replies.items()}
    return _answering(lambda request: left.get(request.purpose, iter(())))


def in_order(replies: Iterable[Scripted]) -> ScriptedModel:
    """A model that gives replies in order."""
    left = iter(replies)
    return _answering(lambda _: left)


def _answering(left: Callable[[Request], Iterator[Scripted]]) -> ScriptedModel:
    def answer(request: Request) -> str | Reply:
        item = next(left(request), None)
        if item is None:
            raise UsageError(f"The script lacks a reply for the stage {request.purpose}.")
        if isinstance(item, Exception):
            raise item
        return item(request) if callable(item) else item

    return ScriptedModel(repeat(answer), chunk=200)


class Finds:
    """A check that gives evidence, one after another; the last again and again."""

    def __init__(self, *evidence: Result) -> None:
        self.name, self._left = evidence[0].name, list(evidence)

    async def __call__(self, text: str, task: Task) -> Result:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


def scoring(*scores: float, target: float, basis: Basis = "tests") -> Finds:
    """A check that gives these scores, and settles the verdict with them."""
    settled = Result(name="scores", passed=None, shows="scored", decisive=True, basis=basis)
    each = ({"passed": score >= target, "score": score} for score in scores)
    return Finds(*(settled.model_copy(update=one) for one in each))


class Suite:
    """Runs a critic's tests in words: a text passes all of them, or fails with a line.

    Args:
        passes: whether a text does.
    """

    def __init__(self, passes: Callable[[str], bool] = bool) -> None:
        self._passes = passes

    async def __call__(self, tests: Sequence[Point], text: str, task: Task) -> dict[str, Result]:
        return {one.words: Result(passed=self._passes(text), shows="It raises.") for one in tests}


def clock() -> Clock:
    """A clock that moves on by a millisecond each time it is read."""
    ticks = count()
    return lambda: next(ticks) / 1000


# Refinements


def refinement(
    replies: Iterable[Scripted] | Mapping[str, Sequence[Scripted]] | Any,
    task: Task = TASK,
    **options: Any,
) -> Refinement:
    """A refinement on scripted replies.

    Args:
        replies: in the order of the calls, or by stage, or a whole model.
        task: what is asked.
        **options: as for `Refinement` and `Setup`; ``run`` for one to go on with.
    """
    if isinstance(replies, Mapping):
        model = staged(replies)
    elif hasattr(replies, "stream"):
        model = replies
    else:
        model = in_order(replies)
    return built(task, model=model, **options)


def built(task: Task = TASK, **options: Any) -> Refinement:
    """A refinement of a task; options as for `refinement`."""
    run, prompts = options.pop("run", None), options.pop("prompts", None)
    given = {name: options.pop(name) for name in Setup.model_fields if name in options}
    options["checks"] = given.pop("checks", ())
    options["judge"] = given.pop("judge", None)
    options["model"] = given.pop("model")
    setup = Setup(task=task, prompts=prompts.own() if prompts else {}, **given)
    return Refinement(run or setup, **{"clock": clock(), **options})


def evaluated(replies: Any, task: Task = TASK, **options: Any) -> Refinement:
    """The same by the evaluator that ships."""
    return refinement(replies, task, **{"prompts": EVALUATED, **options})


def scored(*scores: float, target: float, **limits: Any) -> Refinement:
    """A refinement whose texts get these scores from a check."""
    return refinement(
        [text(f"version {number}") for number in range(len(scores))],
        checks=[scoring(*scores, target=target)],
        limits=Limits(target=target, **limits),
    )


def greeting(
    task: str = "Write a greeting.", scores: tuple[int, ...] = (4, 10), **options: Any
) -> Refinement:
    """A refinement of one text a score, or on the given ``replies``, by an evaluator."""
    script = [
        reply
        for number, score in enumerate(scores)
        for reply in (text(f"Version {number}"), judgement(score))
    ]
    model = ScriptedModel(options.pop("replies", script), name=options.pop("model", "scripted"))
    limits = Limits(max_revisions=len(scores) - 1, critique="never", patience=99)
    options = {"limits": limits, "prompts": EVALUATED, **options}
    return refinement(model, Task(text=task, criteria=(TONE,)), **options)


async def finish(
    refinement: Refinement, *consumers: Consumer, journal: Journal | None = None
) -> list[Event]:
    """Run to the next stop and return its events.

    A script that is too short for the loop is the test's own fault, and raised.
    """
    events: list[Event] = []
    await refinement.run(lambda event, run: events.append(event), *consumers, journal=journal)
    if isinstance(refinement.error, UsageError):
        raise refinement.error
    return events


async def ended(replies: Any, task: Task = TASK, **options: Any) -> Refinement:
    """A `refinement` that has run to its stop."""
    loop = refinement(replies, task, **options)
    await finish(loop)
    return loop


async def decide(refinement: Refinement, decision: Decision) -> list[Event]:
    """Decide, run to the next stop and return its events."""
    refinement.decide(decision)
    return await finish(refinement)


async def finished(task: str = "Write a greeting.", **options: Any) -> Run:
    """The run of a `greeting` at its stop."""
    loop = greeting(task, **options)
    await finish(loop)
    return loop.state


async def stored_events(refinement: Refinement) -> list[Event]:
    """Run to the next stop and return the events that a journal keeps."""
    return without_deltas(await finish(refinement))


async def turns() -> None:
    """Let everything else that waits go on."""
    for _ in range(50):
        await asyncio.sleep(0)


def at(kind: str, act: Callable[[], object], **fields: object) -> Consumer:
    """A consumer that acts once, at the first event of a kind with these fields."""
    waiting = [act]

    def consume(event: Event, run: Run) -> None:
        matches = event.type == kind and all(getattr(event, n) == v for n, v in fields.items())
        if matches and waiting:
            waiting.pop()()

    return consume


# What came of one


def without_deltas(events: Iterable[Event]) -> list[Event]:
    """The events that a journal keeps."""
    return [event for event in events if not isinstance(event, TextDelta)]


def stages(events: Iterable[Event]) -> list[Stage]:
    """The stages that began, in order."""
    return [event.stage for event in events if isinstance(event, StageStarted)]


def calls(events: Iterable[Event]) -> Counter[str]:
    """How many model calls of each stage ended."""
    return Counter(event.stage for event in events if isinstance(event, CallEnded))


def replies_read(events: Iterable[Event]) -> Counter[str]:
    """How many replies of each stage came to their end, and are never asked for again."""
    return Counter(e.stage for e in events if isinstance(e, CallEnded) and e.finish is not None)


def requests(refinement: Refinement, stage: Stage | None = None) -> list[Request]:
    """What the writer was asked so far, at one stage or at all of them."""
    model: Any = refinement.model
    return [one for one in model.requests if stage in (None, one.purpose)]


def prompts(refinement: Refinement, stage: Stage | None = None) -> list[str]:
    """The last message of each request to the writer, at one stage or at all of them."""
    return [request.messages[-1].content for request in requests(refinement, stage)]
