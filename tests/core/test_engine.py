"""The engine: order of emits, faults of every port at every stage, cancels, and async for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any, NamedTuple

import pytest
from kit import (
    EVALUATED,
    calls,
    critique,
    finding,
    finish,
    greeting,
    judgement,
    refinement,
    replies_read,
    staged,
    stages,
    text,
    turns,
    without_deltas,
)

from ipyrefine.core.decisions import Accept, Continue, Decision, Override
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.model import Limits, Outcome, Stage, StopReason, Task, Usage
from ipyrefine.core.ports import Consumer, Delta, Model, Notice, Reply, Request
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.core.table import Result
from ipyrefine.errors import (
    CheckError,
    InternalError,
    JournalError,
    ModelError,
    RefineError,
    ServerFailed,
    Unreachable,
    UsageError,
)

# A run through every stage: the evaluator gives a bare score, the critique says why, the
# revision wins.
REPLIES = {
    "draft": [text("Hello")],
    "judge": [judgement(5), judgement(10)],
    "critique": [critique(finding("too short", "Hello"))],
    "revise": [text("Hello there", "f1: longer")],
}
LIMITS = Limits(max_revisions=2, min_findings=1)
ENDED_AS = {"draft": ""} | dict.fromkeys(("judge", "critique", "revise"), "Hello")


def passed(loop: Refinement) -> bool:
    return (loop.state.text, loop.state.stop_reason) == ("Hello there", StopReason.PASSED)


class Looks:
    """A check that leaves the verdict to the judge, and raises an error at one of its calls."""

    name = "looks"

    def __init__(self, error: Exception | None = None, call: int = 1) -> None:
        self._error, self._left = error, call

    async def __call__(self, text: str, task: Task) -> Result:
        self._left -= 1
        await asyncio.sleep(0)
        if self._error and self._left == 0:
            raise self._error
        return Result(name=self.name, passed=None)


class Faulty:
    """A model that once, at a stage, streams these parts instead; an error is raised."""

    name = "faulty"

    def __init__(self, stage: str, *parts: Any) -> None:
        self._model, self._stage = staged(REPLIES), stage
        self._parts: tuple[Any, ...] | None = parts

    async def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
        if request.purpose != self._stage or self._parts is None:
            async for part in self._model.stream(request):
                yield part
            return
        parts, self._parts = self._parts, None
        for part in parts:
            if isinstance(part, BaseException):
                raise part
            yield part


class MemoryJournal:
    """A journal in memory.

    Args:
        fails_at: the number of the write, from 0, that raises ``error``, as do all after it.
        stuck_at: the number of the write, from 0, that never ends, as do all after it.
        error: what a failing write raises.
    """

    def __init__(
        self, fails_at: int = 10**6, stuck_at: int = 10**6, error: Exception | None = None
    ) -> None:
        self.stored: list[Event] = []
        self.waiting: list[Event] = []
        self.closed = 0
        self.stuck = asyncio.Event()
        self._fails_at, self._stuck_at, self._writes = fails_at, stuck_at, 0
        self._error = error or JournalError("The disk is full.")

    async def __call__(self, event: Event, run: Run) -> None:
        self.postpone(event)
        write, self._writes = self._writes, self._writes + 1
        await asyncio.sleep(0)
        if write >= self._fails_at:
            raise self._error
        if write >= self._stuck_at:
            self.stuck.set()
            await asyncio.Event().wait()
        self.stored += self.waiting
        self.waiting.clear()

    def postpone(self, event: Event) -> None:
        if not any(event is kept for kept in (*self.waiting, *self.stored)):
            self.waiting.append(event)

    def close(self) -> None:
        self.closed += 1

    def mend(self) -> None:
        self._fails_at = self._stuck_at = 10**6


class Ended(NamedTuple):
    """A run that has come to its stop: what consumers heard, and what the journal holds."""

    loop: Refinement
    shown: list[Event]
    journal: MemoryJournal


def begin(model: Model | None = None, **options: Any) -> Refinement:
    settings = {"checks": [Looks()], "limits": LIMITS, "prompts": EVALUATED, **options}
    return refinement(model or staged(REPLIES), **settings)


def into(events: list[Any]) -> Consumer:
    """A consumer that notes each event."""
    return lambda event, run: events.append(event)


def stops(events: list[Event]) -> list[StopReason]:
    return [event.reason for event in events if isinstance(event, Stopped)]


async def end(loop: Refinement, journal: MemoryJournal, *consumers: Any) -> Ended:
    shown: list[Event] = []
    await loop.run(into(shown), *consumers, journal=journal)
    return Ended(loop, shown, journal)


def assert_failed(ended: Ended, kind: type[RefineError], sentence: str) -> None:
    """It ended with one `Stopped`, one sentence and its error, and what was stored is the run."""
    loop, shown, journal = ended
    assert stops(shown) == [StopReason.FAILED]
    assert isinstance(shown[-1], Stopped)
    assert type(loop.error) is kind
    assert sentence in str(loop.error)
    assert shown[-1].message == loop.state.message == str(loop.error)
    assert loop.state.stop_reason is StopReason.FAILED
    assert loop.state.stage is None
    assert replay([*journal.stored, *journal.waiting]) == loop.state
    assert journal.closed == 1


def assert_no_task_is_left() -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def whole() -> list[Event]:
    """The events of the run when nothing happens to it."""
    return await finish(begin())


# The order of emits


async def test_an_event_is_stored_then_committed_then_shown_to_one_consumer_after_another():
    """A piece of a reply is only shown."""
    loop = begin()
    log: list[tuple[str, Event]] = []

    class Watching(MemoryJournal):
        async def __call__(self, event: Event, run: Run) -> None:
            assert loop.state != run, "committed only once it is stored"
            await super().__call__(event, run)
            assert loop.state != run
            log.append(("stored", event))

    async def show_late(event: Event, run: Run) -> None:
        await asyncio.sleep(0)
        assert loop.state is run
        log.append(("first", event))

    await finish(
        loop, show_late, lambda event, _: log.append(("second", event)), journal=Watching()
    )
    assert any(isinstance(event, TextDelta) for _, event in log)
    kept = [(kind, event) for kind, event in log if not isinstance(event, TextDelta)]
    assert [kind for kind, _ in kept] == ["stored", "first", "second"] * (len(kept) // 3)
    stored = [event for kind, event in log if kind == "stored"]
    assert [event for kind, event in kept if kind == "first"] == stored
    first, second = ([e for kind, e in log if kind == who] for who in ("first", "second"))
    assert first == second
    assert replay(stored) == loop.state
    times = [event.at for event in stored]
    assert times == sorted(times)
    assert times[0] > 0


# Faults of the ports


class Unprintable(Exception):
    """An error that fails even at saying what it is."""

    def __str__(self) -> str:
        return str(10**5_000)  # more digits than Python writes


def reply(**usage: Any) -> Reply:
    """A reply with numbers that nobody validated."""
    return Reply(text="Hello", usage=Usage().replace(**usage))


BAD = "faulty sent a bad reply. usage"
HEL = Delta(text="Hel")
# Of each: what comes instead of a reply, and how the run ends.
FAULTS: dict[str, tuple[list[Any], type[RefineError], str]] = {
    "ValueError": ([ValueError("odd")], ModelError, "faulty failed: ValueError: odd."),
    "Unprintable": ([HEL, Unprintable()], ModelError, "faulty failed: Unprintable."),
    "ModelError": ([HEL, Unreachable("No server.")], Unreachable, "No server."),
    "something else": (
        [HEL, "Hello"],
        ModelError, "faulty failed: TypeError: it streams str, not Delta, Notice or Reply.",
    ),
    "SystemExit": ([HEL, SystemExit("bye")], ModelError, "faulty failed: SystemExit: bye."),
    "CancelledError": (
        [HEL, asyncio.CancelledError()], ModelError, "faulty failed: CancelledError."
    ),
    "a huge number": ([reply(completion_tokens=10**30)], ModelError, f"{BAD}.completion_tokens: "),
    "not a number": ([reply(cost=float("nan"))], ModelError, f"{BAD}.cost: "),
    "no reply": ([HEL], ServerFailed, "faulty ended its stream without a reply."),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_model_that_fails_at_any_stage_ends_the_run_and_running_again_goes_on(fault):
    parts, kind, sentence = FAULTS[fault]
    for stage, kept in ENDED_AS.items():
        loop = begin(Faulty(stage, *parts))
        ended = await end(loop, MemoryJournal())
        assert_failed(ended, kind, sentence)
        assert loop.state.text == kept, stage
        again = await end(loop, ended.journal)
        assert loop.error is None
        assert passed(loop)
        every = ended.shown + again.shown
        assert sum(calls(every).values()) == sum(map(len, REPLIES.values())) + 1, stage


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (ValueError("odd"), CheckError, "The check looks broke: ValueError: odd."),
        (UsageError("No such file."), UsageError, "No such file."),
    ],
    ids=["ValueError", "UsageError"],
)
@pytest.mark.parametrize(("call", "texts"), [(1, 1), (2, 2)], ids=["draft", "revision"])
async def test_a_check_that_breaks_ends_the_run_and_running_again_goes_on(
    call, texts, error, kind, sentence
):
    loop = begin(checks=[Looks(error, call)])
    ended = await end(loop, MemoryJournal())
    assert_failed(ended, kind, sentence)
    assert (len(loop.state.iterations), loop.state.text) == (texts, "Hello")
    await end(loop, ended.journal)
    assert passed(loop)


async def test_a_check_that_breaks_takes_the_others_with_it():
    class Endless(Looks):
        name = "endless"

        async def __call__(self, text: str, task: Task) -> Result:
            await asyncio.Event().wait()
            raise AssertionError

    loop = begin(checks=[Endless(), Looks(ValueError("odd"))])
    assert_failed(await end(loop, MemoryJournal()), CheckError, "The check looks broke")
    assert_no_task_is_left()


def breaking(number: int, error: Exception, *, waits: bool) -> Callable[[Event, Run], Any]:
    """A consumer that raises at the event of this number."""
    heard = iter(range(1_000))

    def consume(event: Event, run: Run) -> None:
        if next(heard) == number:
            raise error

    async def consume_later(event: Event, run: Run) -> None:
        await asyncio.sleep(0)
        consume(event, run)

    return consume_later if waits else consume


async def test_a_consumer_that_breaks_at_any_event_ends_the_run_for_the_others():
    """As a coroutine or as a function."""
    events = await whole()
    for number in range(len(events) - 1):
        loop = begin()
        consumer = breaking(number, ValueError("odd"), waits=number % 2 == 0)
        ended = await end(loop, MemoryJournal(), consumer)
        assert_failed(ended, InternalError, "A display of the run broke: ValueError: odd.")
        assert isinstance(loop.error, InternalError)
        assert isinstance(loop.error.__cause__, ValueError)
        await assert_continues(ended.journal.stored)


@pytest.mark.parametrize(
    "error", [JournalError("The disk is full."), RuntimeError("odd")], ids=["ours", "another"]
)
async def test_a_journal_that_fails_at_any_event_ends_the_run_and_loses_nothing(error):
    events = without_deltas(await whole())
    for number in range(len(events)):
        loop, journal = begin(), MemoryJournal(fails_at=number, error=error)
        ended = await end(loop, journal)
        assert stops(ended.shown) == [StopReason.FAILED], number
        assert isinstance(loop.error, JournalError)
        assert loop.state.message == str(loop.error)
        assert len(without_deltas(ended.shown)) == number + 1, "what is not stored is not shown"
        assert journal.stored == without_deltas(ended.shown)[:-1]
        assert replay([*journal.stored, *journal.waiting]) == loop.state
        journal.mend()
        await end(loop, journal)
        assert journal.waiting == []
        assert replay(journal.stored) == loop.state
        assert passed(loop)
        assert calls(journal.stored) == {stage: len(items) for stage, items in REPLIES.items()}


async def test_journal_and_consumer_may_both_fail_at_the_stop_and_nothing_is_raised():
    loop = begin(Faulty("draft", Unreachable("No server.")))
    shown: list[Event] = []

    def break_at_the_stop(event: Event, run: Run) -> None:
        if isinstance(event, Stopped):
            raise ValueError("odd")

    journal = MemoryJournal(fails_at=3)  # RunStarted, StageStarted and CallEnded come before it
    await loop.run(break_at_the_stop, into(shown), journal=journal)
    assert isinstance(loop.error, Unreachable)
    assert stops(shown) == stops(journal.waiting) == [StopReason.FAILED]


# Cancels


def begin_again(stored: list[Event]) -> Refinement:
    """A refinement that continues from stored events, with the replies that are not paid for."""
    return begin(staged(REPLIES, replies_read(stored)), run=replay(stored))


async def assert_continues(stored: list[Event]) -> None:
    """A run continued from stored events ends as the whole one, with no reply paid for twice."""
    loop = begin_again(stored)
    rest = await finish(loop)
    assert [i.text for i in loop.state.iterations] == ["Hello", "Hello there"]
    assert loop.state.stop_reason is StopReason.PASSED
    assert replies_read([*stored, *rest]) == {stage: len(items) for stage, items in REPLIES.items()}


async def cut_at(loop: Refinement, number: int, *decided: Decision, **options: Any) -> list[Event]:
    """Decide and cancel a run at its event of this number; return what was shown."""
    shown: list[Event] = []

    def note(event: Event, run: Run) -> None:
        shown.append(event)
        if len(shown) == number + 1:
            for decision in decided:
                loop.decide(decision)
            task.cancel()

    task = asyncio.create_task(loop.run(note, **options))
    with pytest.raises(asyncio.CancelledError):
        await task
    return shown


async def cancel_after(task: "asyncio.Task[Any]", turns: int, again: int = 0) -> bool:
    """Cancel a task after so many turns of the event loop; return whether it was still running."""
    for _ in range(turns):
        await asyncio.sleep(0)
    if task.done():
        return False
    task.cancel()
    if again:
        for _ in range(again):
            await asyncio.sleep(0)
        task.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait([task])
    return True


async def test_cancels_at_any_turn_of_the_event_loop_leave_one_stop_and_no_task():
    """Once, or twice within one or two turns; what is stored is shown, and goes on from there."""
    for number in count(1):
        loop, journal, shown = begin(), MemoryJournal(), list[Event]()
        task = asyncio.create_task(loop.run(into(shown), journal=journal))
        if not await cancel_after(task, number, again=number % 3):
            break
        assert task.cancelled(), number
        assert len(stops(shown)) == 1, number
        assert without_deltas(shown) == [*journal.stored, *journal.waiting], number
        assert replay(without_deltas(shown)) == loop.state
        assert loop.state.stop_reason in (StopReason.CANCELLED, StopReason.PASSED)
        assert loop.error is None
        assert journal.closed == 1
        assert_no_task_is_left()
        if number % 3 == 0:
            assert isinstance(journal.stored[-1], Stopped)
            await assert_continues(journal.stored)
    assert number > 50


async def test_a_second_cancel_does_not_wait_for_a_stuck_journal_and_loses_no_event():
    events = without_deltas(await whole())
    for number in range(len(events)):
        loop, journal = begin(), MemoryJournal(stuck_at=number)
        shown: list[Event] = []
        task = asyncio.create_task(loop.run(into(shown), journal=journal))
        await journal.stuck.wait()
        task.cancel()
        await turns()
        assert not task.done(), "a first cancel waits until the event is stored"
        task.cancel()
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(journal.stored) == number
        assert without_deltas(shown) == [*journal.stored, *journal.waiting]
        assert len(stops(shown)) == 1
        assert_no_task_is_left()
        journal.mend()
        resumed = begin_again([*journal.stored, *journal.waiting])
        more = await finish(resumed, journal=journal)
        assert journal.waiting == []
        assert journal.stored == [*without_deltas(shown), *without_deltas(more)]


async def test_a_cancel_closes_the_stream_it_cuts():
    closed = asyncio.Event()

    class Endless:
        name = "endless"

        async def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
            try:
                while True:
                    await asyncio.sleep(0)
                    yield Delta(text="on and ")
            finally:
                closed.set()

    loop = begin(Endless())
    task = asyncio.create_task(loop.run())
    assert await cancel_after(task, 30)
    assert closed.is_set()
    assert (loop.state.text, loop.state.stop_reason) == ("", StopReason.CANCELLED)
    assert "There is no text yet." in loop.state.message


# Decisions, the end of a pause, and two runs at once


async def test_accepting_while_it_runs_stops_at_once_as_accepted():
    """As a user does who accepts: the decision is handed in, and the run is cancelled."""
    events = await whole()
    first = next(n for n, event in enumerate(events) if event.type == "draft_ready")
    for number in range(first, len(events) - 1):
        loop = begin()
        heard = await cut_at(loop, number, Accept(iteration=0))
        assert stops(heard) == [StopReason.ACCEPTED], number
        assert (loop.state.text, loop.state.stop_reason) == ("Hello", StopReason.ACCEPTED)
        assert stages(heard[:-1]) == stages(events[: number + 1]), "no stage begins after it"


async def paused() -> Refinement:
    """A run that waits for the user at its first text."""
    loop = begin(limits=LIMITS.model_copy(update={"step": True}))
    await finish(loop)
    assert loop.state.stop_reason is StopReason.PAUSED
    return loop


@pytest.mark.parametrize("turns", [None, 1], ids=["alone", "cancelled meanwhile"])
async def test_ending_a_pause_keeps_the_best_text(turns):
    loop, journal, shown = await paused(), MemoryJournal(), list[Event]()
    ending = loop.end(into(shown), journal=journal)
    task = asyncio.create_task(ending)
    if turns:
        assert await cancel_after(task, turns)
        assert task.cancelled(), "a cancel comes out too"
    else:
        await task
    assert stops(shown) == stops(journal.stored) == [StopReason.CANCELLED]
    assert (loop.state.text, loop.state.stop_reason) == ("Hello", StopReason.CANCELLED)
    assert loop.state.message == "You stopped it. The best text so far is kept."
    decided = await paused()
    decided.decide(Accept())
    await decided.end()
    assert decided.state.stop_reason is StopReason.ACCEPTED, "a decision says why it ends"


async def test_ending_with_a_decision_that_asks_for_a_revision_waits_and_asks_nobody():
    loop = await paused()
    asked = len(loop.model.requests)
    loop.decide(Override(outcome=Outcome.NEEDS_IMPROVEMENT, reason="Too short."))
    await loop.end()
    assert loop.state.stop_reason is StopReason.PAUSED
    assert loop.state.verdict.basis == "user"
    assert len(loop.model.requests) == asked
    await finish(loop)
    assert len(loop.state.iterations) == 2, "it is revised once the run is continued"


async def test_a_refinement_that_is_running_cannot_be_run_a_second_time():
    loop, refused = begin(), list[Stage | None]()

    async def run_again(event: Event, run: Run) -> None:
        with pytest.raises(UsageError, match="running already"):
            await loop.run()
        with pytest.raises(UsageError, match="running already"):
            await loop.end()
        refused.append(run.stage)

    await finish(loop, run_again)
    assert refused
    assert loop.state.stop_reason is StopReason.PASSED
    loop.decide(Continue())
    assert loop.state.stop_reason is StopReason.PASSED, "it waits for the next run"


async def test_the_time_a_person_thinks_between_two_stops_is_not_counted():
    now = [0.0]
    loop = greeting(scores=(4, 4, 4), limits=Limits(max_revisions=0), clock=lambda: now[0])
    await finish(loop)
    now[0] += 600
    loop.decide(Continue())
    await finish(loop)
    assert loop.state.seconds < 600
