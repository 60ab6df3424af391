"""The scripted-model kit: replies, a model that answers by stage, checks, a clock, refinements.

A stage is told by a request's ``purpose``, never by the words of its prompt.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, repeat
from typing import Any

from ipyrefine.core.decisions import Decision
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import CallEnded, Event, StageStarted, TextDelta
from ipyrefine.core.model import Basis, Criterion, Evidence, Limits, Stage, Task, Usage
from ipyrefine.core.ports import Clock, Consumer, Journal, Reply, Request
from ipyrefine.core.run import Run
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
) -> dict[str, str]:
    """One weakness in a judge's or a critic's reply."""
    return {
        "criterion": criterion,
        "quote": quote,
        "problem": problem,
        "fix": "mend it",
        "severity": severity,
    }


class Judgement:
    """A judge's reply to any request: a probability for each of its questions.

    Args:
        scores: 0..10 for every criterion, or for each by name.
        *findings: what a critic names next, where the loop asks for a critique of the text.
        fixed: ids of earlier findings that no longer stand; the first ones that are asked about.
        answers: to the checklist, in order.
    """

    def __init__(
        self,
        scores: float | Mapping[str, Any] = 9,
        *findings: dict[str, str],
        fixed: Iterable[str] = (),
        answers: Iterable[bool] = (),
    ) -> None:
        self.scores, self.findings = scores, findings
        self.fixed, self.answers = tuple(fixed), tuple(answers)

    def __call__(self, request: Request) -> Reply:
        """Answer a request's questions, which are the last of its inputs."""
        questions = request.inputs[-request.answers :] if request.answers else ()
        checklist, fixed = iter(self.answers), len(self.fixed)
        probabilities = []
        for question in questions:
            name, defined, _ = question.partition(": ")
            if question.startswith("Is this m"):
                probabilities.append(float(fixed > 0))
                fixed -= 1
            elif defined and name in request.inputs:
                by_name = isinstance(self.scores, Mapping)
                score = self.scores[name] if by_name else self.scores
                probabilities.append(score / 10)
            else:
                probabilities.append(float(next(checklist, True)))
        words = " ".join("yes" if p >= 0.5 else "no" for p in probabilities)
        usage = Usage(calls=1, prompt_tokens=100, completion_tokens=len(probabilities))
        return Reply(text=words, probabilities=tuple(probabilities), usage=usage)


judgement = Judgement


def opinion(score: int) -> Judgement:
    """A judgement for any run: this score throughout, and at 10 all earlier findings fixed."""
    return judgement(score, fixed=[f"f{number}" for number in range(9)] if score == 10 else ())


READY = '{"findings": [], "ready": true, "because": "It does what is asked."}'


def critique(*findings: dict[str, str]) -> str:
    """A critic's reply."""
    return json.dumps({"findings": findings})


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
    left = {stage: deque(items[used.get(stage, 0) :]) for stage, items in replies.items()}

    named = _Named()

    def answer(request: Request) -> str | Reply:
        queue = left.get(request.purpose)
        if not queue and (named_findings := named.critique(request)):
            return named_findings
        if not queue:
            raise UsageError(f"There is no further reply for the stage {request.purpose}.")
        item = queue.popleft()
        named.take(item)
        if isinstance(item, Exception):
            raise item
        return item(request) if callable(item) else item

    return ScriptedModel(repeat(answer), chunk=200)


class _Named:
    """The findings of the latest judgement, which a critic names where one is asked next."""

    def __init__(self) -> None:
        self._findings: Sequence[dict[str, str]] = ()

    def take(self, item: object) -> None:
        """Keep what a judgement names."""
        if isinstance(item, Judgement):
            self._findings = item.findings

    def critique(self, request: Request) -> str:
        """A critic's reply with them, once; empty when the request is for something else."""
        findings = self._findings if request.purpose == Stage.CRITIQUE else ()
        if findings:
            self._findings = ()
        return critique(*findings) if findings else ""


def in_order(replies: Iterable[Scripted]) -> ScriptedModel:
    """A model that gives replies in order; what a judgement names, a critic names for free."""
    left, named = iter(replies), _Named()

    def answer(request: Request) -> str | Reply:
        if reply := named.critique(request):
            return reply
        item = next(left, None)
        if item is None:
            raise UsageError("The script is too short: add another reply.")
        named.take(item)
        if isinstance(item, Exception):
            raise item
        return item(request) if callable(item) else item

    return ScriptedModel(repeat(answer), chunk=200)


class Scores:
    """A check that gives the scores it was told, and settles the verdict with them."""

    name = "scores"

    def __init__(self, *scores: float, target: float, basis: Basis = "tests") -> None:
        self._scores, self._target, self._basis = iter(scores), target, basis

    async def __call__(self, text: str, task: Task) -> Evidence:
        score = next(self._scores)
        passed = score >= self._target
        return Evidence(
            name=self.name,
            passed=passed,
            score=score,
            detail="scored",
            decisive=True,
            basis=self._basis,
        )


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
        **options: as for `Refinement`.
    """
    if isinstance(replies, Mapping):
        model = staged(replies)
    elif hasattr(replies, "stream"):
        model = replies
    else:
        model = in_order(replies)
    limits = judged(options.pop("limits", Limits()))
    return Refinement(task, model=model, **{"clock": clock(), "limits": limits, **options})


def judged(limits: Limits) -> Limits:
    """Limits by which a judge scores the texts, unless they say otherwise."""
    if "opinion" in limits.model_fields_set:
        return limits
    return limits.model_copy(update={"opinion": "auto"})


def scored(*scores: float, target: float, **limits: Any) -> Refinement:
    """A refinement whose texts get these scores from a check."""
    return refinement(
        [text(f"version {number}") for number in range(len(scores))],
        checks=[Scores(*scores, target=target)],
        limits=Limits(target=target, **limits),
    )


def greeting(
    task: str = "Write a greeting.", scores: tuple[int, ...] = (4, 10), **options: Any
) -> Refinement:
    """A refinement of one text a score, or on the given ``replies``, without a critique."""
    script = [
        reply
        for number, score in enumerate(scores)
        for reply in (text(f"Version {number}"), opinion(score))
    ]
    model = ScriptedModel(options.pop("replies", script), name=options.pop("model", "scripted"))
    limits = Limits(max_revisions=len(scores) - 1, critique="never", patience=99)
    return refinement(model, Task(text=task, criteria=(TONE,)), **{"limits": limits, **options})


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
