"""The stages of a run: each makes its model call or runs its checks, and gives events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import NamedTuple

from ipyrefine.core import critics, drafting, ledger, replies, verdicts
from ipyrefine.core.additions import additions, outgrown
from ipyrefine.core.calls import Ask, T, warn
from ipyrefine.core.changes import changes, cosmetic
from ipyrefine.core.events import (
    BestChanged,
    Compared,
    DraftReady,
    Event,
    EvidenceReady,
    RevisionReady,
    Stage,
    StageStarted,
    Warned,
)
from ipyrefine.core.fold import apply
from ipyrefine.core.pending import unchecked, unverified
from ipyrefine.core.ports import Check, Clock, ComparingCheck, Model
from ipyrefine.core.records import Evidence, Task
from ipyrefine.core.requests import Requests
from ipyrefine.core.runs import Iteration, Run
from ipyrefine.core.stopping import best_of, contender, to_act_on


class Crew(NamedTuple):
    """Who does the work: the writer, the judge, the checks; with what; timed by what."""

    model: Model
    judge: Model
    checks: tuple[Check, ...]
    requests: Requests
    clock: Clock


class Stages:
    """One method a stage; each reads the run as it stands and gives the events that follow.

    Args:
        crew: who does the work.
        state: gives the run as it stands and the seconds since it started.
    """

    def __init__(self, crew: Crew, state: Callable[[], tuple[Run, float]]) -> None:
        self._crew, self._state = crew, state

    @property
    def _run(self) -> Run:
        return self._state()[0]

    @property
    def _task(self) -> Task:
        assert self._run.task is not None, "a stage needs a run that has started"
        return self._run.task

    async def draft(self) -> AsyncIterator[Event]:
        """Take the user's own first text, or ask for those that are still to be written."""
        if self._run.draft is not None:
            yield DraftReady(text=self._run.draft, author="user")
            return
        yield StageStarted(stage="draft", iteration=0)
        crew = self._crew
        async for event in drafting.draft(crew.model, crew.requests, self._state, crew.clock):
            yield event

    async def check(self) -> AsyncIterator[Event]:
        """Run the checks that have not run yet on the text that waits for them, all at once."""
        iteration = unchecked(self._run)
        assert iteration is not None, "checks run only on a text that waits for them"
        yield StageStarted(stage="check", iteration=iteration.number)
        done = [evidence.name for evidence in iteration.evidence]
        waiting = set[asyncio.Future[Evidence]]()
        for check in self._crew.checks:
            if check.name in done:
                done.remove(check.name)
            else:
                waiting.add(asyncio.ensure_future(self._evidence(check, iteration)))
        try:
            for finished in asyncio.as_completed(waiting):
                yield EvidenceReady(iteration=iteration.number, evidence=await finished)
        finally:
            for future in waiting:
                future.cancel()

    async def _evidence(self, check: Check, iteration: Iteration) -> Evidence:
        """What a check finds; one that compares is given the other first texts."""
        if not isinstance(check, ComparingCheck):
            return await check(iteration.text, self._task)
        others = [i.text for i in self._run.drafts if i.number != iteration.number]
        evidence = await check.beside(others)(iteration.text, self._task)
        return evidence.model_copy(update={"comparing": True})

    async def judge(self) -> AsyncIterator[Event]:
        """Reach a verdict on the text that waits for one; ask the judge if the checks leave it."""
        iteration = self._waiting()
        settled = verdicts.settle(self._run, iteration)
        if settled is None:
            yield StageStarted(stage="judge", iteration=iteration.number)
            for warning in self._cut(iteration, "judge"):
                yield warning
            ask = self._ask(
                self._crew.judge,
                lambda text: replies.judgement(text, self._task),
                "judge",
                iteration.number,
            )
            # After the checks, never beside them: their evidence is what makes its word count.
            request = self._crew.requests.judge(self._run, iteration)
            # To the end, even if it begins with what blocks: texts that do not pass are ranked too.
            async for event in ask.events(request, self._state, None):
                yield event
            if ask.value is None:
                said = f"Iteration {iteration.number} was not verified: {ask.flaw}."
                for event in warn(self._run, said):
                    yield event
                settled = verdicts.unreadable(self._run, iteration, ask.flaw)
            else:
                for warning in self._own_judge():
                    yield warning
                settled = verdicts.judge(self._run, iteration, ask.value)
        for event in self._reach(iteration.number, settled):
            yield event

    async def critique(self) -> AsyncIterator[Event]:
        """Ask for the weaknesses of the text the next revision starts from."""
        base = self._base()
        yield StageStarted(stage="critique", iteration=base.number)
        for warning in self._cut(base, "critique"):
            yield warning
        crew = self._crew
        async for event in critics.critique(crew.model, crew.requests, self._state, crew.clock):
            yield event
        for event in self.reconsider():
            yield event

    async def revise(self) -> AsyncIterator[Event]:
        """Ask for a better text."""
        base, number = self._base(), len(self._run.iterations)
        yield StageStarted(stage="revise", iteration=number)
        ask = self._ask(self._crew.model, self._read_text, "revise", number, whole=self._read_whole)
        request = self._crew.requests.revise(self._run, base)
        async for event in ask.events(request, self._state, replies.Splitter(self._task.form)):
            yield event
        if ask.value is None:
            for event in warn(self._run, f"Iteration {number} brought no text: {ask.flaw}."):
                yield event
            yield RevisionReady(iteration=number, parent=base.number, text=base.text, flaw=ask.flaw)
            return
        text, thoughts = ask.value.text, ask.value.thoughts
        for event in self._remarks(base, text, number):
            yield event
        findings, form = to_act_on(self._run, base), self._task.form
        added = additions(self._task.text, findings, base.text, text, form)
        yield RevisionReady(
            iteration=number,
            parent=base.number,
            text=text,
            thoughts=thoughts,
            changes=changes(thoughts, findings, base.text, text, form),
            findings=ledger.number(self._run, ledger.unlisted(self._run, added, base.findings)),
        )

    async def gate(self) -> AsyncIterator[Event]:
        """Compare a better-scored text with the best: second in order, and if it wins, first."""
        candidate, best = contender(self._run), self._run.best
        assert candidate is not None, "the gate is for a text that would replace the best"
        assert best is not None, "the first best text is not compared with anything"
        yield StageStarted(stage="gate", iteration=candidate.number)
        order = [self._run.iterations[best], candidate]
        if candidate.compared:
            order.reverse()
        ask = self._ask(self._crew.judge, replies.preference, "gate", candidate.number)
        request = self._crew.requests.gate(self._run, *order)
        async for event in ask.events(request, self._state, None):
            yield event
        won, why = True, ""  # the scores decide where a comparison cannot
        if ask.value is None:
            for event in warn(self._run, f"The comparison could not be read: {ask.flaw}."):
                yield event
        else:
            better = {"first": order[0], "second": order[1]}.get(ask.value.better)
            won, why = better is candidate, ask.value.reason
        yield Compared(iteration=candidate.number, against=best, won=won, why=why)
        for event in _best(self._run):
            yield event

    def reconsider(self) -> list[Event]:
        """Derive anew, without any call, the verdicts that what happened last may have changed."""
        run, events = self._run, list[Event]()
        for iteration in run.iterations:
            if iteration.verdict is None or iteration.number in run.stale:
                continue
            settled = verdicts.rederive(run, iteration)
            if settled.verdict != iteration.verdict:
                reached = settled.reached(iteration.number)
                events.append(reached)
                run = apply(run, reached)
        return [*events, *_best(run)]

    def _cut(self, iteration: Iteration, stage: Stage) -> list[Event]:
        """Say it aloud when a reader is shown a part of a text only."""
        length, most = len(iteration.text), self._run.limits.max_eval_chars
        if length <= most:
            return []
        return self._once(
            f"The {stage} of iteration {iteration.number} saw the first {most:,} "
            f"of its {length:,} characters."
        )

    def _remarks(self, base: Iteration, text: str, number: int) -> Iterator[Event]:
        """Say it aloud when a revision only seems to be one, or is far more than one."""
        if text != base.text and cosmetic(base.text, text, self._task.form):
            yield from warn(self._run, f"Iteration {number} changes spacing and punctuation only.")
        findings = to_act_on(self._run, base)
        times = outgrown(self._task.text, findings, base.text, text)
        if times and self._task.form == "prose":
            yield from warn(
                self._run,
                f"Iteration {number} is {times:.1f} times as long as iteration {base.number}, "
                "though no finding asks for more.",
            )

    def _own_judge(self) -> list[Event]:
        """Say how far a verdict can be trusted that rests on the writer's own word."""
        if self._run.judge != self._run.model or self._run.checks:
            return []
        return self._once(
            f"{self._run.model} judges its own writing, and such judges pass too much: "
            "name another with --judge, or add a check."
        )

    def _once(self, message: str) -> list[Event]:
        return [] if message in self._run.warnings else [Warned(message=message)]

    def _reach(self, number: int, settled: verdicts.Settled) -> list[Event]:
        reached = settled.reached(number)
        return [reached, *_best(apply(self._run, reached))]

    def _waiting(self) -> Iteration:
        iteration = unverified(self._run)
        assert iteration is not None, "only a text that waits for its verdict is verified"
        return iteration

    def _base(self) -> Iteration:
        assert self._run.base is not None, "only a verified text is criticised or revised"
        return self._run.base

    def _read_text(self, reply: str) -> replies.Written:
        return replies.written(reply, self._task.form)

    def _read_whole(self, reply: str) -> replies.Written:
        return replies.written(reply, self._task.form, cut=True)

    def _ask(
        self,
        model: Model,
        parse: Callable[[str], T],
        stage: Stage,
        iteration: int,
        whole: Callable[[str], T] | None = None,
    ) -> Ask[T]:
        return Ask(model, parse, stage, iteration, self._crew.clock, whole)


def _best(run: Run) -> Sequence[Event]:
    """Say which iteration is the best, if another one is and nothing stands in its way."""
    best = run.best if run.stale or contender(run) else best_of(run)
    return [] if best in (None, run.best) else [BestChanged(iteration=best)]
