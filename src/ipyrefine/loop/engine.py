"""The engine: one async generator of events, from a task to a text that passes, or a reason."""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from ipyrefine.errors import ModelError
from ipyrefine.loop import prompts, replies, verdicts
from ipyrefine.loop.calls import Ask, OutOfBudget, T
from ipyrefine.loop.events import (
    BestChanged,
    CritiqueReady,
    Decided,
    DraftReady,
    Event,
    EvidenceReady,
    RevisionReady,
    RunStarted,
    Stage,
    StageStarted,
    Stopped,
    VerdictReached,
    Warned,
)
from ipyrefine.loop.fold import apply
from ipyrefine.loop.ports import Check, Clock, Model
from ipyrefine.loop.records import Critique, Evidence, Task
from ipyrefine.loop.runs import Decision, Limits, Run, StopReason
from ipyrefine.loop.stopping import Stop, next_step


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
        nonce: gives a fresh mark for untrusted text in prompts.

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
        nonce: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        self.run = run or Run()
        self.error: ModelError | None = None
        self._task, self._draft, self._limits = task, draft, limits or Limits()
        self._model, self._judge, self._checks = model, judge or model, tuple(checks)
        self._clock, self._nonce = clock, nonce
        self._began = clock() - self.run.seconds
        self._inbox: deque[Decision] = deque()

    def decide(self, decision: Decision) -> None:
        """Hand in a user's decision; it takes effect before the next stage."""
        self._inbox.append(decision)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Run to the next stop, yielding each event after it took effect on `run`."""
        self.error = None
        try:
            async for event in self._stages():
                yield self._record(event)
        except OutOfBudget as over:
            yield self._record(Stopped(reason=over.stop.reason, message=over.stop.message))
        except ModelError as error:
            self.error = error
            yield self._record(Stopped(reason=StopReason.FAILED, message=str(error)))

    def close(self) -> list[Event]:
        """Give the events that end a run whose iteration was cancelled, decisions first."""
        events: list[Event] = [self._record(event) for event in self._decisions()]
        step = next_step(self.run) if self.run.decisions else None
        if not (isinstance(step, Stop) and events):
            kept = "the best text so far is kept" if self.run.text else "there is no text yet"
            step = Stop(StopReason.CANCELLED, f"You stopped it; {kept}.")
        return [*events, self._record(Stopped(reason=step.reason, message=step.message))]

    async def _stages(self) -> AsyncIterator[Event]:
        if self.run.task is None:
            yield RunStarted(
                task=self._task,
                limits=self._limits,
                model=self._model.name,
                judge=self._judge.name,
                checks=tuple(check.name for check in self._checks),
                draft=self._draft,
            )
        stages = {
            "draft": self._write_draft,
            "check": self._check,
            "judge": self._verify,
            "critique": self._criticise,
            "revise": self._revise,
        }
        while True:
            for decision in self._decisions():
                yield decision
            step = next_step(self.run)
            if isinstance(step, Stop):
                yield Stopped(reason=step.reason, message=step.message)
                return
            async for event in stages[step]():
                yield event

    async def _write_draft(self) -> AsyncIterator[Event]:
        if self._draft is not None:
            yield DraftReady(text=self._draft, author="user")
            return
        yield StageStarted(stage="draft", iteration=0)
        ask = self._ask(self._model, self._read_text, "draft", 0)
        request = prompts.draft(self._task, self._limits)
        async for event in ask.events(request, self._state, replies.Splitter(self._task.form)):
            yield event
        if ask.value is None:
            raise ModelError(f"{self._model.name} gave no first text: {ask.flaw}.")
        yield DraftReady(text=ask.value.text, thoughts=ask.value.thoughts)

    async def _check(self) -> AsyncIterator[Event]:
        latest = self.run.iterations[-1]
        yield StageStarted(stage="check", iteration=latest.number)
        done = {evidence.name for evidence in latest.evidence}
        waiting = {
            asyncio.ensure_future(check(latest.text, self._task))
            for check in self._checks
            if check.name not in done
        }
        try:
            for finished in asyncio.as_completed(waiting):
                evidence: Evidence = await finished
                yield EvidenceReady(iteration=latest.number, evidence=evidence)
        finally:
            for future in waiting:
                future.cancel()

    async def _verify(self) -> AsyncIterator[Event]:
        latest = self.run.iterations[-1]
        settled = verdicts.settle(self.run, latest)
        if settled is None:
            yield StageStarted(stage="judge", iteration=latest.number)
            ask = self._ask(
                self._judge,
                lambda text: replies.judgement(text, self._task),
                "judge",
                latest.number,
            )
            request = prompts.judge(self.run, latest, self._nonce)
            async for event in ask.events(request, self._state, None):
                yield event
            if ask.value is None:
                settled = verdicts.unreadable(self.run, latest, ask.flaw)
            else:
                settled = verdicts.judge(self.run, latest, ask.value)
        for event in self._reach(latest.number, settled):
            yield event

    async def _criticise(self) -> AsyncIterator[Event]:
        base = self.run.base
        assert base is not None, "only a verified text is criticised"
        yield StageStarted(stage="critique", iteration=base.number)
        text = base.text
        ask = self._ask(
            self._model, lambda reply: replies.critique(reply, text), "critique", base.number
        )
        request = prompts.critique(self.run, base, self._nonce)
        async for event in ask.events(request, self._state, None):
            yield event
        critique = ask.value or Critique()
        named = verdicts.unlisted(critique.findings, base.findings)
        if ask.value is None:
            yield Warned(message=f"No critique of iteration {base.number}: {ask.flaw}.")
        elif len(named) < self.run.limits.min_findings:
            asked = self.run.limits.min_findings
            yield Warned(message=f"The critique names {len(named)} of {asked} findings.")
        numbered = verdicts.number(self.run, named)
        yield CritiqueReady(iteration=base.number, critique=Critique(findings=numbered))
        base = self.run.iterations[base.number]
        if ask.value and base.verdict and base.verdict.author == "model":
            for event in self._reach(base.number, verdicts.rejudge(self.run, base)):
                yield event

    async def _revise(self) -> AsyncIterator[Event]:
        base = self.run.base
        assert base is not None, "only a verified text is revised"
        number = len(self.run.iterations)
        yield StageStarted(stage="revise", iteration=number)
        ask = self._ask(self._model, self._read_text, "revise", number)
        request = prompts.revise(self.run, base, self._nonce)
        async for event in ask.events(request, self._state, replies.Splitter(self._task.form)):
            yield event
        if ask.value is None:
            yield Warned(message=f"Iteration {number} brought no text: {ask.flaw}.")
            yield RevisionReady(iteration=number, parent=base.number, text=base.text, flaw=ask.flaw)
            return
        text, thoughts = ask.value.text, ask.value.thoughts
        claims = replies.changes(thoughts, base.actionable, base.text, text)
        yield RevisionReady(
            iteration=number, parent=base.number, text=text, thoughts=thoughts, changes=claims
        )

    def _reach(self, number: int, settled: verdicts.Settled) -> list[Event]:
        """A verdict, and whether it makes its iteration the best; a tie keeps the earlier."""
        reached = VerdictReached(
            iteration=number, verdict=settled.verdict, findings=settled.findings
        )
        best = None if self.run.best is None else self.run.iterations[self.run.best].verdict
        if best is None or (number != self.run.best and settled.verdict.rank > best.rank):
            return [reached, BestChanged(iteration=number)]
        return [reached]

    def _read_text(self, reply: str) -> replies.Written:
        return replies.written(reply, self._task.form)

    def _ask(self, model: Model, parse: Callable[[str], T], stage: Stage, iteration: int) -> Ask[T]:
        return Ask(model, parse, stage, iteration, self._clock)

    def _state(self) -> tuple[Run, float]:
        return self.run, self._clock() - self._began

    def _decisions(self) -> list[Event]:
        taken: list[Event] = [Decided(decision=decision) for decision in self._inbox]
        self._inbox.clear()
        return taken

    def _record(self, event: Event) -> Event:
        event = event.model_copy(update={"at": self._clock() - self._began})
        self.run = apply(self.run, event)
        return event
