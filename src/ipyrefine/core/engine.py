"""The engine: draft → verify → critique → revise, from a task to a text that passes, or a reason.

`Refinement.run` reads from top to bottom. Each stage is a coroutine that awaits `emit` for
everything that happens. `emit` is the one place that applies an event to the run, has it
journalled, commits it and shows it, in that order, and waits until that is done.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from functools import partial
from inspect import isawaitable
from itertools import count
from typing import Any, TypeVar

from ipyrefine.core import events, policy, rank, readers
from ipyrefine.core.actions import require_iteration, require_possible
from ipyrefine.core.calls import ModelCall, OutOfBudget, warn
from ipyrefine.core.critiques import MAX_POINTS, read_tests_of, settle, together
from ipyrefine.core.decisions import Decision
from ipyrefine.core.edits import Selection
from ipyrefine.core.evaluations import as_feedback
from ipyrefine.core.events import Event
from ipyrefine.core.fences import read_answer
from ipyrefine.core.forms import FORMS, Asked, Splitter, parse_form
from ipyrefine.core.model import Fault, Form, Setup, Stage, StopReason, WrittenText
from ipyrefine.core.points import is_cosmetic, left_open, read_notes, up_for_review
from ipyrefine.core.policy import REPAIR_CHARACTERS
from ipyrefine.core.ports import (
    SECRETS,
    Check,
    Clock,
    Consumer,
    Journal,
    Model,
    Reply,
    Request,
    Suite,
    price_of,
)
from ipyrefine.core.prompts import Nonce, Prompts, Requests, cut_middle, make_nonce, mend
from ipyrefine.core.quotes import rests_on
from ipyrefine.core.reducer import apply
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Sharing, fault_sentence, is_computed
from ipyrefine.core.table import Critique, Point, Reading, Result
from ipyrefine.core.testing import is_critics, name_apart
from ipyrefine.errors import (
    CheckError,
    CheckNotRun,
    InternalError,
    JournalError,
    ModelError,
    RefineError,
    ReplyError,
    UsageError,
    describe,
)

T = TypeVar("T")


class _Answered(Exception):
    """In place of a critique or a revision, a model answered what the user asks of their text."""


class _Kept(Exception):
    """In place of a revision, a writer says why the text is to stay as it is."""


class Refinement:
    """A refinement of one task; ``await refinement.run()`` takes it to its next stop.

    The run is the fold of the events so far, and the next stage is a pure function of it. So
    running again after a `decide` goes on from where it stopped.

    Args:
        start: what a new run starts from, or an earlier run to go on with, whose setup stands. The
            names, checks and price in a new run's setup are filled in.
        model: writes drafts and revisions.
        judge: reads texts, as critic or as the user's evaluator; the writer's model by default.
        checks: deterministic tests, run on every text before it is read.
        clock: monotonic seconds.
        nonce: makes the nonce of the fence around untrusted text; by default from a fresh secret.
        warnings: what the user should know before the first call.
        suite: runs a critic's tests on a text; None where nothing can be run.
        selection: the part of the draft that may change; what the model writes elsewhere is put
            back.
        sharing: what the models' servers are sent of what code computed.
        named: variables that the user asked for, which own prompts are shown too.

    Raises:
        UsageError: the task has no criterion, or the draft is empty.

    Attributes:
        state: the run so far.
        error: the error that ended it with ``failed``, or None.
        inbox: decisions that came in and have still to take effect.
    """

    def __init__(
        self,
        start: Setup | Run,
        *,
        model: Model,
        judge: Model | None = None,
        checks: Sequence[Check] = (),
        clock: Clock,
        nonce: Nonce | None = None,
        warnings: Sequence[str] = (),
        suite: Suite | None = None,
        selection: Selection | None = None,
        sharing: Sharing | None = None,
        named: Collection[str] = (),
    ) -> None:
        self.model, self.judge, self.checks = model, judge or model, tuple(checks)
        self.clock, self.selection, self.suite = clock, selection, suite
        self.error: RefineError | None = None
        self.prompts_read: dict[str, list[str]] = {}
        if isinstance(start, Run):
            self.state = start
        else:
            limits, price = start.limits, policy.dearest(price_of(self.model), price_of(self.judge))
            at_once = start.draft and limits.max_revisions and limits.critique != "always"
            self.state = Run.begin(
                start.replace(
                    model=self.model.name,
                    judge=self.judge.name,
                    checks=tuple(check.name for check in self.checks),
                    price=price,
                    wish=start.wish if at_once else "",
                )
            )
        setup = self.state.setup
        names = [criterion.name for criterion in setup.task.criteria]
        if not names:
            raise UsageError("The task names no criterion to read it for.")
        if len(names) > len(set(names)):
            raise UsageError(f"Two criteria have the same name: {', '.join(sorted(names))}.")
        if setup.draft is not None and not setup.draft.strip():
            raise UsageError("The draft is empty; leave it out to have one written.")
        schemas = [s for one in self.checks if (s := getattr(one, "json_schema", None))]
        readers = {Stage.JUDGE: self.judge}
        self._requests = Requests(
            Prompts.build(setup.prompts),
            nonce or make_nonce(secrets.token_bytes(32)),
            next(iter(schemas), None),
            replayed=[s for s in Stage if getattr(readers.get(s, self.model), "replays", False)],
            named=named,
        )
        self.sharing = sharing or Sharing()
        self._begun, self._warnings = isinstance(start, Run), tuple(warnings)
        self._began = clock() - self.state.seconds
        self.inbox: deque[Decision] = deque()
        self._consumers: list[Consumer] = []
        self._journal: Journal | None = None
        self._lock: asyncio.Lock | None = None
        self._writing: asyncio.Future[None] | None = None
        self._stopping = self._hurrying = False

    async def run(self, *consumers: Consumer, journal: Journal | None = None) -> Run:
        """Run to the next stop and return the run.

        Every exception of a provider, a check, a consumer or the loop itself ends the run with
        `Stopped`, one sentence and the best text, and is left in `error`. A cancel does too, and is
        raised again. The journal stores every event before a consumer hears of it.

        Raises:
            UsageError: it is running already.
            asyncio.CancelledError: it was cancelled; the stop was stored and shown before.
        """
        await self._drive(self._run_to_stop, consumers, journal)
        return self.state

    async def end(self, *consumers: Consumer, journal: Journal | None = None) -> Run:
        """Take the decisions that came in and stop a run that waits, without asking a model.

        The best text is kept. A run whose decision asks for a revision stays paused. Arguments as
        for `run`.
        """
        await self._drive(self._stop_cancelled, consumers, journal)
        return self.state

    def decide(self, decision: Decision) -> None:
        """Take a user's decision; it takes effect before the next stage.

        Raises:
            UsageError: it cannot be carried out; nothing has changed.
        """
        state = self.state
        for earlier in self.inbox:  # they have still to take effect
            state = apply(state, events.Decided(decision=earlier))
        require_possible(state, decision)
        self.inbox.append(decision)

    async def explain(
        self, number: int, question: str, *consumers: Consumer, journal: Journal | None = None
    ) -> Run:
        """Ask the writer a question about a text of a run that has stopped, and stay stopped.

        Raises:
            UsageError: there is no such text, no question, or no budget for the call.
            ModelError: the model failed, or gave no answer.
        """
        require_iteration(self.state, number)
        if not question.strip():
            raise UsageError('Say what you want to know: %refine continue "Why a set?".')
        await self._drive(partial(self._explain, number, question), consumers, journal, stops=False)
        return self.state

    async def _explain(self, number: int, question: str) -> None:
        call = ModelCall(self.model, lambda reply: reply.text.strip(), Stage.EXPLAIN, number)
        try:
            answer = await call.make(self, self._requests.explain(self.state, number, question))
        except OutOfBudget as error:
            raise UsageError(error.stop.message) from None
        if not answer:
            raise ModelError(f"{self.model.name} gave no answer: {call.advice or 'it is empty'}.")
        await self.emit(events.ExplanationReady(iteration=number, question=question, answer=answer))

    async def add(self, event: Event, *consumers: Consumer, journal: Journal | None = None) -> Run:
        """Add what happened outside of the loop to a run that has stopped, and stay stopped."""
        with suppress(asyncio.CancelledError):  # it is stored and shown by then
            await self._drive(partial(self.emit, event), consumers, journal, stops=False)
        return self.state

    @property
    def sharing(self) -> Sharing:
        """What the models' servers are sent of what code computed."""
        return self._sharing

    @sharing.setter
    def sharing(self, sharing: Sharing) -> None:
        self._sharing, self._requests.level = sharing, sharing.level

    # Events

    def elapsed(self) -> float:
        """Return the seconds since the run started."""
        return self.clock() - self._began

    async def emit(self, event: Event) -> None:
        """Apply an event to the run, have it journalled, commit it, show it; wait for all of that.

        A cancel waits until the event is stored. A second one does not.

        Raises:
            JournalError: it could not be stored; the run holds it all the same.
        """
        if isinstance(event, events.TextDelta):  # it changes nothing of the run, and is not stored
            await self._show(event)
            return
        publishing = asyncio.ensure_future(self._publish(event))
        cancels = 0
        while not publishing.done():
            try:
                await asyncio.wait([publishing])
            except asyncio.CancelledError:
                cancels += 1
                if cancels + self._stopping > 1:
                    self._hurrying = True
                    if self._writing:
                        self._writing.cancel()
        publishing.result()
        if cancels and not self._stopping:
            raise asyncio.CancelledError

    async def _publish(self, event: Event) -> None:
        assert self._lock is not None, "events are emitted while the loop runs"
        async with self._lock:
            event = event.replace(at=self.elapsed())
            run = apply(self.state, event)
            try:
                await self._store(event, run)
            finally:
                self.state = run  # also when it could not be stored: no text is lost
            await self._show(event)

    async def _store(self, event: Event, run: Run) -> None:
        """Write an event to the journal; what cannot be written now is kept for the next write."""
        if self._journal is None:
            return
        if self._hurrying:
            self._journal.postpone(event)
            return
        self._writing = asyncio.ensure_future(self._journal(event, run))
        try:
            await self._writing
        except asyncio.CancelledError:
            self._journal.postpone(event)
        except RefineError:
            raise
        except Exception as error:
            raise JournalError(
                f"The journal broke: {describe(error)}. The best text so far is kept."
            ) from error
        finally:
            self._writing = None

    async def _show(self, event: Event) -> None:
        """Show an event to all consumers; one that breaks is dropped, and its error raised.

        Raises:
            RefineError: a consumer's own, or one that says how it broke. So no stage takes it for
                an error of its model.
        """
        broken = None
        for consumer in list(self._consumers):
            try:
                waiting = consumer(event, self.state)
                if isawaitable(waiting):
                    await waiting
            except Exception as error:
                self._consumers.remove(consumer)
                broken = broken or error
        if isinstance(broken, RefineError):
            raise broken
        if broken is not None:
            raise InternalError(
                f"A display of the run broke: {describe(broken)}. The best text so far is kept."
            ) from broken

    # The loop

    async def _drive(
        self,
        work: Callable[[], Awaitable[None]],
        consumers: Iterable[Consumer],
        journal: Journal | None,
        *,
        stops: bool = True,
    ) -> None:
        """Do the work and see it to a `Stopped`, come what may; only then raise a cancel again.

        With ``stops`` False the run has stopped before, and stays so.
        """
        if self._lock is not None:
            raise UsageError("This refinement is running already. Wait for its stop.")
        self.error, self._lock = None, asyncio.Lock()
        self._began = self.clock() - self.state.seconds  # the user's thinking time is not counted
        self._consumers, self._journal = list(consumers), journal
        self._stopping = self._hurrying = cancelled = False
        SECRETS.set(getattr(self.model, "secrets", None))
        try:
            try:
                await work()
            except asyncio.CancelledError:
                cancelled = self._stopping = True
                if stops and (self.state.stop_reason is None or self.inbox):
                    await self._stop_cancelled()
        except Exception as error:
            self._stopping = True
            if not stops:
                raise
            await self._stop_failed(error)
        finally:
            self._lock = None
            if journal:
                journal.close()
        if cancelled:
            raise asyncio.CancelledError

    async def _run_to_stop(self) -> None:
        if not self._begun:
            self._begun = True
            await self.emit(events.RunStarted(setup=self.state.setup))
            for warning in (*self._warnings, *self._requests.prompts.unfilled):
                if warning not in self.state.warnings:
                    await self.emit(events.Warned(message=warning))
        await self._reconsider()  # an earlier run may have been cut short before it
        stages = {
            Stage.CHOOSE: self._choose,
            Stage.DRAFT: self._draft,
            Stage.CHECK: self._check,
            Stage.JUDGE: self._judge,
            Stage.CRITIQUE: self._critique,
            Stage.REVISE: self._revise,
        }
        try:
            while True:
                await self._take_decisions()
                step = policy.next_step(self.state)
                if isinstance(step, events.Stopped):
                    break
                try:
                    await stages[step]()
                except _Answered as said:
                    asked = {"iteration": 0, "question": self.state.task.text}
                    await self.emit(events.ExplanationReady(**asked, answer=str(said), ends=True))
                    await self._reconsider()  # what was asked for blocks the text no more
                except _Kept as said:
                    step = events.Stopped(
                        reason=StopReason.UNJUDGED, message=f"The writer changes nothing: {said}"
                    )
                    break
        except OutOfBudget as error:
            step = error.stop
        await self.emit(step)

    async def _stop_cancelled(self) -> None:
        """Stop with the reason that a decision or a text that passed gives, else as cancelled."""
        decided = bool(self.inbox)
        await self._take_decisions()
        await self._update_best()
        step = policy.next_step(self.state)
        if decided and not self._stopping and not isinstance(step, events.Stopped):
            step = policy.WAITING
        # A text that passed at the last moment has passed.
        if not isinstance(step, events.Stopped) or not (
            decided or step.reason is StopReason.PASSED
        ):
            kept = "The best text so far is kept." if self.state.text else "There is no text yet."
            if self.state.unfinished:
                kept = "What was written so far is kept."
            step = events.Stopped(reason=StopReason.CANCELLED, message=f"You stopped it. {kept}")
        await self.emit(step)

    async def _stop_failed(self, error: Exception) -> None:
        if not isinstance(error, RefineError):
            ours = InternalError(
                f"ipyrefine broke: {describe(error)}. The best text so far is kept."
            )
            ours.__cause__ = error
            error = ours
        self.error = error
        self._hurrying |= isinstance(error, JournalError)
        stopped = events.Stopped(reason=StopReason.FAILED, message=str(error))
        try:
            try:
                await self.emit(stopped)
            except JournalError:
                await self._show(stopped)
        except Exception as again:  # a display broke once more; the first error is the one to tell
            error.add_note(f"A display broke at the stop: {describe(again)}")

    async def _take_decisions(self) -> None:
        while self.inbox:
            try:
                await self.emit(events.Decided(decision=self.inbox[0]))
            finally:
                self.inbox.popleft()  # not before it took effect, as others may rest on it
            await self._reconsider()

    async def _reconsider(self) -> None:
        """Compute again, without any call, the verdicts that the latest event may have changed."""
        for iteration in self.state.iterations:
            if iteration.verdict is None or iteration.number in self.state.stale:
                continue
            await self._rule(iteration.number)
        await self._update_best()

    async def _update_best(self) -> None:
        """Say which iteration is the best, once nothing is left that could decide otherwise."""
        run = self.state
        best = run.best if run.stale else rank.best_of(run)
        if best is not None and best != run.best:
            await self.emit(events.BestChanged(iteration=best))

    # The stages

    async def _choose(self) -> None:
        await self.emit(events.StageStarted(stage=Stage.CHOOSE, iteration=0))

        def parse(reply: Reply) -> Form:
            return parse_form(reply.text)

        call = ModelCall(self.model, parse, Stage.CHOOSE, 0, parse)
        form = await call.make(self, self._requests.choose(self.state))
        await self.emit(events.FormChosen(form=form or "code"))

    async def _draft(self) -> None:
        """Take the user's own draft, or have one written."""
        setup = self.state.setup
        if setup.draft is not None:
            await self.emit(events.DraftReady(text=setup.draft, author="user"))
            return
        await self.emit(events.StageStarted(stage=Stage.DRAFT, iteration=0))
        call = await self._write(self._requests.draft(self.state), 0)
        if call.value is None:
            raise ModelError(f"{setup.model} gave no draft: {call.advice}.")
        await self.emit(events.DraftReady(**dict(call.value)))

    async def _write(
        self,
        request: Request,
        number: int,
        *,
        base: str = "",
        wishes: str = "",
        findings: Collection[str] = (),
    ) -> ModelCall[WrittenText]:
        """Make the call for a text, and return it with what was read."""
        task, form, earlier = self.state.task, request.form, count()
        stage = Stage(request.purpose)
        chooses = stage is Stage.DRAFT and self.state.setup.words is not None
        # A model that is sent masks in place of secrets answers with them.
        secrets = getattr(self.model, "secrets", None)
        asked = Asked(task, secrets.hide(base) if base and secrets else base, wishes, chooses)

        def parse(reply: Reply, *, cut: bool = False) -> WrittenText:
            if stage is Stage.REVISE:  # of prose a revision stands between the same tags
                self._take_answer(reply, "answer" if task.form == "prose" else "")
            last = next(earlier) > 0
            whole = asked._replace(cut=cut, last=last)
            try:
                written: WrittenText = FORMS[form].read(reply.text, whole)
            except ReplyError:
                notes, kept = read_notes(reply.text, findings)
                if kept:  # there is no new text, and the writer says why
                    raise _Kept(notes[kept[0]]) from None
                raise
            restored = written.text
            if secrets:
                restored = secrets.restore(restored, written.form or task.form)
            restored = self.selection.restore(restored) if self.selection else restored
            # An own prompt may have asked for its thoughts in tags.
            thoughts = written.thoughts or (reply.thinking if form == "own" else "")
            return written.replace(text=restored, thoughts=thoughts)  # what may not change is back

        parse_cut = None if form == "edits" else partial(parse, cut=True)
        call = ModelCall(self.model, parse, stage, number, parse_cut)
        inside = request.json_schema is not None
        await call.make(self, request, splitter=partial(Splitter, task.form, inside=inside))
        return call

    async def _check(self) -> None:
        """Run the checks that have not run yet on the text that waits for them, all at once."""
        iteration = policy.to_check(self.state)
        assert iteration is not None, "checks run only on a text that waits for them"
        await self.emit(events.StageStarted(stage=Stage.CHECK, iteration=iteration.number))
        done = [evidence.name for evidence in iteration.evidence if not evidence.outdated]
        waiting = []
        for check in self.checks:
            if check.name not in self.state.setup.checks:
                continue  # the user dropped its demand
            if check.name in done:
                done.remove(check.name)
            else:
                waiting.append(self._run_check(check, iteration))
        if any(one.id not in iteration.results for one in self.state.tests):
            waiting.append(self._run_tests(iteration))
        async with _tasks(waiting) as tasks:
            for finished in asyncio.as_completed(tasks):
                await self.emit(await finished)
        if iteration.verdict:
            await self._reconsider()

    async def _run_tests(self, text: Iteration) -> Event:
        tests, found = self.state.tests, {}
        if self.suite is not None:
            found = await self.suite(tests, text.text, self.state.task)
        results = {one.id: found.get(one.words, Result()) for one in tests}
        return events.TestsRun(iteration=text.number, results=results)

    async def _run_check(self, check: Check, iteration: Iteration) -> Event:
        try:
            asked = up_for_review(self.state, iteration)
            said = tuple(one.words for one in asked if one.point.source == "you")
            evidence = await check(iteration.text, self.state.task.replace(feedback=said))
        except CheckNotRun as error:
            evidence = Result(name=check.name, not_run=True, shows=str(error))
        except RefineError:
            raise
        except Exception as error:
            raise CheckError(
                f"The check {check.name} broke: {describe(error)}. Mend it, or leave it out."
            ) from error
        return events.EvidenceReady(iteration=iteration.number, evidence=evidence)

    async def _judge(self) -> None:
        iteration = policy.unverified(self.state)
        assert iteration is not None, "only a text that waits for its verdict is verified"
        if readers.asks_evaluator(self.state, iteration):
            await self._evaluate(iteration.number)
        await self._rule(iteration.number)
        await self._update_best()

    async def _rule(self, number: int) -> None:
        """Say what a text's verdict is now, where that is not what was said last."""
        run, text = self.state, self.state.iterations[number]
        column = rank.settle(run, text)
        verdict, results = rank.verdict(run, text, column), column.results
        new = tuple(one for id_, one in column.points.items() if run.points.get(id_) is not one)
        if new or (results, verdict) != (text.results, text.verdict) or number in run.stale:
            said = {"verdict": verdict, "results": results, "points": new}
            await self.emit(events.VerdictReached(iteration=number, **said))

    async def _evaluate(self, number: int) -> None:
        await self.emit(events.StageStarted(stage=Stage.JUDGE, iteration=number))

        request, said = self._requests.judge(self.state, number), []
        shown = [one.id for one in up_for_review(self.state, self.state.iterations[number])]
        computed, form = self._sees_computed, FORMS[request.form]
        most, name = self.state.limits.max_eval_chars, self.state.mention(number)
        if len(self.state.iterations[number].text) > most:
            words = f"Only the first {most:,} characters of {name} were sent to the evaluator."
            await warn(self, words)

        def parse(reply: Reply) -> Critique:
            said.append(reply.text.strip())
            critique: Critique = form.read(reply.text, self.state.setup.prompts)
            return critique.replace(fixed=tuple(id_ for id_ in shown if id_ in critique.fixed))

        call = ModelCall(self.judge, parse, Stage.JUDGE, number)
        # After the checks, never at the same time: their evidence is what makes its word count.
        critique = await call.make(self, request)
        if critique is None and any(said):
            words = f"{call.failure}. Its words are taken as feedback."
            await warn(self, f"{name.capitalize()}: {words}")
            reading = Reading(failure=call.failure, said=said[-1])
            critique = Critique(reading=reading, remarks=as_feedback(said[-1]))
        if critique is None:
            await warn(self, f"{name.capitalize()} was not judged: {call.advice}.")
            critique = Critique(reading=Reading(failure=call.failure))
        remarks = tuple(one.replace(computed=computed) for one in critique.remarks)
        critique = critique.replace(remarks=remarks)
        await self.emit(events.CritiqueReady(iteration=number, by="evaluator", critique=critique))

    async def _critique(self) -> None:
        """Ask what is wrong with a text: one that waits for its verdict, or the one to revise."""
        base = policy.unverified(self.state) or self._base()
        await self.emit(events.StageStarted(stage=Stage.CRITIQUE, iteration=base.number))
        number, said = base.number, await self._read(base)
        critique, regressed = settle(self.state, self.state.iterations[number], said)
        await self.emit(
            events.CritiqueReady(iteration=number, critique=critique, regressed=regressed)
        )
        await self._reconsider()

    async def _read(self, base: Iteration) -> Critique:
        """Return a critique of a text, with those of its tests that the run takes."""
        # A revision may be ready, or lack one thing: nobody could find faults in it for ever.
        least = 0 if base.parent is not None else min(self.state.limits.min_findings, MAX_POINTS)
        in_words = base.parent is None and self._requests.adds_to(Stage.CRITIQUE)
        said, short = list[str](), list[Critique]()

        def parse(reply: Reply) -> Critique:
            said.append(reply.text)
            self._take_answer(reply)
            critique: Critique = FORMS[request.form].read(reply.text, base.text, in_words=in_words)
            if len(critique.weaknesses) < least and len(said) == 1:
                short.append(critique)
                raise ReplyError(f"it names {len(critique.weaknesses)} of {least} findings")
            return critique

        critic = self.judge if readers.reads(self.state) else self.model
        computed = self._sees_computed
        request = self._requests.critique(self.state, base.number)
        call = ModelCall(critic, parse, Stage.CRITIQUE, base.number)
        critique = await call.make(self, request)
        for first in short:
            critique = together(first, critique) if critique else first
        if critique is None:
            await warn(self, f"No critique of {self.state.mention(base.number)}: {call.advice}.")
            shown = cut_middle(said[-1], REPAIR_CHARACTERS) if said else ""
            critique = Critique(reading=Reading(failure=call.failure, said=shown))
        elif len(critique.weaknesses) < least:
            await warn(self, f"The critique names {len(critique.weaknesses)} of {least} findings.")
        if len(critique.remarks) > MAX_POINTS:
            await warn(
                self, f"The critique names over {MAX_POINTS} findings. The first of them are kept."
            )
            critique = critique.replace(remarks=critique.remarks[:MAX_POINTS])

        async def mended(tests: Sequence[Point]) -> list[Point]:
            again = ModelCall(critic, read, Stage.CRITIQUE, base.number, after=call.read)
            problems = [f"- {one.words}: {self._reason(one, base)}" for one in tests]
            with suppress(OutOfBudget, ModelError):  # what was said of the text stands
                return await again.make(self, mend(request, said[-1], problems)) or []
            return []

        def read(reply: Reply) -> list[Point]:
            return read_tests_of(reply.text, base.text)

        found = [one for reply in said for one in read_tests_of(reply, base.text)]
        tests = await self._new_tests(found, base, mended)
        return critique.replace(
            remarks=tuple(one.replace(computed=computed) for one in critique.remarks),
            tests=tuple(one.replace(computed=computed) for one in tests),
        )

    @property
    def _sees_computed(self) -> bool:
        """Whether the models are sent what code computed, so that their words may hold it."""
        return self.sharing.level == "all" and is_computed(self.state)

    def _reason(self, test: Point, base: Iteration) -> str:
        if test.fault is None or self.sharing.level == "all":
            return test.reason
        return f"It fails in its own lines: {fault_sentence(test.fault, base.text)}"

    async def _new_tests(
        self,
        tests: Sequence[Point],
        base: Iteration,
        mended: Callable[[Sequence[Point]], Awaitable[Sequence[Point]]],
    ) -> tuple[Point, ...]:
        """Return the tests of a critique by their names in the run, with what they are worth.

        Those that fail in their own lines are mended by their critic, once, or dropped.
        """
        known = [one for one in self.state.points.values() if is_critics(one)]
        fresh = name_apart(tests, known, base.number)
        if self.suite is None or not self.state.task.is_python:
            return tuple(one.replace(dropped=one.dropped or "no_suite") for one in fresh)
        fresh = await self._tried(self.suite, fresh, base)
        broken = [one for one in fresh if one.dropped == "broken"]
        if not broken:
            return fresh
        kept = [one for one in fresh if one not in broken]
        again = name_apart(await mended(broken), [*known, *kept], base.number)[: len(broken)]
        again = await self._tried(self.suite, again, base)
        names = {one.words for one in again}
        return (*kept, *again, *(one for one in broken if one.words not in names))

    async def _tried(
        self, suite: Suite, tests: Sequence[Point], base: Iteration
    ) -> tuple[Point, ...]:
        tried, words = [one for one in tests if not one.dropped], self._source()
        results = await suite(tried, base.text, self.state.task) if tried else {}

        def weighed(test: Point) -> Point:
            test = test.replace(blocking=bool(test.quote) and rests_on(words, test.quote))
            result = results.get(test.words)
            if result is None or not result.broken:
                return test
            fault = next(iter(result.faults), Fault()) if result.computed else test.fault
            return test.replace(dropped="broken", reason=result.shows, fault=fault)

        return tuple(map(weighed, tests))

    def _source(self) -> str:
        task, draft = self.state.task, self.state.setup.draft or ""
        asked = (one.words for one in self.state.points.values() if one.by_user)
        materials = (one.text for one in task.materials if one.kind != "rules")
        return "\n".join([task.request, *task.checklist, *materials, draft, *asked])

    async def _revise(self) -> None:
        """Ask for a better text, or for another draft where samples were measured to be better."""
        run, base = self.state, self._base()
        number = len(run.iterations)
        sampled = self._requests.samples(run, base)
        await self.emit(events.StageStarted(stage=Stage.REVISE, iteration=number))
        request, name = self._requests.revise(self.state, base.number), self.state.mention(number)
        acting_on = policy.to_act_on(self.state, base)
        said = (one for one in acting_on if not is_critics(one.point))
        wishes = " ".join(f"{one.words} {one.point.fix}" for one in said)
        part = self.selection is not None and request.form != "edits"
        text = "" if sampled or part else base.text  # of a part, nothing needs to be there
        ids = [one.id for one in acting_on]
        call = await self._write(request, number, base=text, wishes=wishes, findings=ids)
        if (revision := call.value) is None:
            await warn(self, f"{name.capitalize()} has no new text: {call.advice}.")
            revision = WrittenText(text=base.text)
        elif revision.missed:
            left_out = f"{revision.missed} of the {revision.edits} edits of {name}"
            await warn(self, f"{left_out} did not fit the text and were left out.")
        elif is_cosmetic(base.text, revision.text, run.task.form):
            await warn(self, f"{name.capitalize()} changes spacing and punctuation only.")
        asked = ids + [one.id for one in left_open(run, base)]
        changes, contested = read_notes(revision.thoughts, asked)
        silent = [one.id for one in acting_on if one.id not in changes]
        if silent and call.value and self._requests.adds_to(Stage.REVISE):
            await warn(self, f"{name.capitalize()} has no note on {', '.join(silent)}.")
        written = Iteration(
            number=number,
            parent=base.number,
            text=revision.text,
            thoughts=revision.thoughts,
            changes=changes,
            contested=contested,
            acted_on=tuple(ids) if call.value else (),
            sampled=sampled,
            failure="" if call.value else call.failure,
        )
        await self.emit(events.RevisionReady(revision=written))
        await self._reconsider()  # what it contests may have blocked the text before

    def _take_answer(self, reply: Reply, kind: str = "") -> None:
        if policy.may_answer(self.state) and (answer := read_answer(reply.text, kind)):
            raise _Answered(answer)

    def _base(self) -> Iteration:
        base = policy.base_of(self.state)
        assert base is not None, "only a verified text is criticised or revised"
        return base


@asynccontextmanager
async def _tasks(
    coroutines: Iterable[Coroutine[Any, Any, T]],
) -> AsyncIterator[list[asyncio.Task[T]]]:
    """Run coroutines as tasks, which are cancelled and awaited when the block is left.

    Unlike a `asyncio.TaskGroup`, one that fails leaves the others be, and its error is its own.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
