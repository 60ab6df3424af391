"""The engine: one async generator of events, from a task to a text that passes, or a reason."""

import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence

from ipyrefine.core.calls import OutOfBudget
from ipyrefine.core.deciding import require_valid
from ipyrefine.core.events import Decided, Event, RunStarted, Stopped, TextDelta
from ipyrefine.core.fold import apply
from ipyrefine.core.material import Mark, marks
from ipyrefine.core.ports import Check, Clock, ComparingCheck, Model, price_of
from ipyrefine.core.preflight import dearest
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.records import Task
from ipyrefine.core.requests import Requests
from ipyrefine.core.runs import Decision, Limits, Run, StopReason
from ipyrefine.core.stages import Crew, Stages
from ipyrefine.core.stopping import Stop, next_step
from ipyrefine.errors import RefineError, UsageError


class Refinement:
    """A refinement of one task; `async for event in refinement` runs it to its next stop.

    The run is the fold of the events given so far, and each next stage is a pure function of
    it. So iterating again after a `decide` goes on from where it stopped.

    Args:
        task: what is asked.
        model: writes drafts, critiques and revisions.
        judge: scores texts; the writer's model by default.
        checks: deterministic tests, run on every text before any judge.
        limits: when to stop.
        draft: the user's own text to start from, instead of asking for one.
        run: an earlier run to go on with.
        clock: monotonic seconds.
        prompts: own prompts for its stages.
        mark: gives the mark that an untrusted text stands between in prompts; made of a fresh
            secret by default.

    Raises:
        UsageError: the task has nothing to judge by, the draft is empty, or a prompt lacks what
            its stage is about.

    Attributes:
        run: the run as far as it got.
        error: the error that ended it with ``failed``, or None.
    """

    def __init__(
        self,
        task: Task,
        *,
        model: Model,
        judge: Model | None = None,
        checks: Sequence[Check] = (),
        limits: Limits | None = None,
        draft: str | None = None,
        run: Run | None = None,
        clock: Clock,
        prompts: Prompts | None = None,
        mark: Mark | None = None,
    ) -> None:
        _require_usable(task, draft)
        prompts = prompts or Prompts()
        prompts.require_places()
        self.run = run or Run()
        self.error: RefineError | None = None
        self._task, self._draft, self._limits = task, draft, limits or Limits()
        self._prompts = prompts.model_dump(exclude_defaults=True)
        requests = Requests(prompts, mark or marks(secrets.token_bytes(32)))
        self._crew = Crew(model, judge or model, tuple(checks), requests, clock)
        self._stages = Stages(self._crew, self._state)
        self._began = clock() - self.run.seconds
        self._inbox: deque[Decision] = deque()

    def decide(self, decision: Decision) -> None:
        """Hand in a user's decision; it takes effect before the next stage.

        Raises:
            UsageError: it cannot be carried out; nothing has changed.
        """
        require_valid(self.run, decision)
        self._inbox.append(decision)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Run to the next stop, yielding each event after it took effect on `run`."""
        self.error = None
        try:
            async for event in self._events():
                yield self._record(event)
        except OutOfBudget as over:
            yield self._record(Stopped(reason=over.stop.reason, message=over.stop.message))
        except RefineError as error:
            yield self.fail(error)

    def close(self) -> list[Event]:
        """Give the events that end a run whose iteration was cancelled, decisions first."""
        events: list[Event] = [self._record(event) for event in self._decisions()]
        step = next_step(self.run) if self.run.decisions else None
        if not (isinstance(step, Stop) and events):
            kept = "the best text so far is kept" if self.run.text else "there is no text yet"
            step = Stop(StopReason.CANCELLED, f"You stopped it; {kept}.")
        return [*events, self._record(Stopped(reason=step.reason, message=step.message))]

    def fail(self, error: RefineError) -> Event:
        """Give the event that ends a run whose iteration had to be given up for an error."""
        self.error = error
        return self._record(Stopped(reason=StopReason.FAILED, message=str(error)))

    async def _events(self) -> AsyncIterator[Event]:
        if self.run.task is None:
            yield self._started()
        for event in self._stages.reconsider():  # an earlier run may have been cut short before it
            yield event
        stages = {
            "draft": self._stages.draft,
            "check": self._stages.check,
            "judge": self._stages.judge,
            "critique": self._stages.critique,
            "revise": self._stages.revise,
            "gate": self._stages.gate,
        }
        while True:
            for event in self._decisions():
                yield event
            step = next_step(self.run)
            if isinstance(step, Stop):
                yield Stopped(reason=step.reason, message=step.message)
                return
            async for event in stages[step]():
                yield event

    def _started(self) -> RunStarted:
        return RunStarted(
            task=self._task,
            limits=self._limits,
            model=self._crew.model.name,
            judge=self._crew.judge.name,
            checks=tuple(check.name for check in self._crew.checks),
            compares=any(isinstance(check, ComparingCheck) for check in self._crew.checks),
            draft=self._draft,
            prompts=self._prompts,
            price=dearest(price_of(self._crew.model), price_of(self._crew.judge)),
        )

    def _decisions(self) -> Iterator[Event]:
        """The decisions handed in, each with what it means for the verdicts there are."""
        while self._inbox:
            yield Decided(decision=self._inbox.popleft())
            yield from self._stages.reconsider()

    def _state(self) -> tuple[Run, float]:
        return self.run, self._crew.clock() - self._began

    def _record(self, event: Event) -> Event:
        if isinstance(event, TextDelta):
            return event  # it changes nothing of the run
        event = event.model_copy(update={"at": self._crew.clock() - self._began})
        self.run = apply(self.run, event)
        return event


def _require_usable(task: Task, draft: str | None) -> None:
    names = [criterion.name for criterion in task.criteria]
    if not names:
        raise UsageError("The task names no criterion to judge by.")
    if len(names) > len(set(names)):
        raise UsageError(f"Two criteria have the same name: {', '.join(sorted(names))}.")
    if draft is not None and not draft.strip():
        raise UsageError("The draft is empty; leave it out to have one written.")
