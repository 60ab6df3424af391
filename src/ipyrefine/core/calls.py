"""One model call as events: its stream, its cost, and its reply once it has ended."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from ipyrefine.core.events import BudgetUsed, Event, Stage, Warned
from ipyrefine.core.pieces import Pieces
from ipyrefine.core.ports import Clock, Delta, Model, Notice, Reply, Request
from ipyrefine.core.replies import Splitter
from ipyrefine.core.requests import repair
from ipyrefine.core.runs import Run
from ipyrefine.core.stopping import (
    Stop,
    completion_allowance,
    estimate_tokens,
    over_budget,
    over_time,
)
from ipyrefine.core.usage import Usage
from ipyrefine.errors import ModelError, ReplyError, ServerFailed

T = TypeVar("T")
State = Callable[[], tuple[Run, float]]

FLAWS = {
    "length": "the reply was cut off at the token limit",
    "refused": "the model refused to answer",
    "filtered": "the provider's content filter withheld the reply",
    "incomplete": "the reply broke off before its end",
}


class OutOfBudget(Exception):
    """A call was not made because the budget does not allow it."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.message)
        self.stop = stop


class Share:
    """The part that each of several calls made at once has in the budget.

    Args:
        run: the run before them.
        calls: how many.
    """

    def __init__(self, run: Run, calls: int = 1) -> None:
        self._calls, self._begun = calls, run.usage.calls

    def bounded(self, request: Request, run: Run, seconds: float) -> Request:
        """Bound a request by its share of what the budget still holds, and count it as begun.

        Raises:
            OutOfBudget: the budget does not allow it beside those under way.
        """
        estimate, at_once = _read(request), 1 + self._begun - run.usage.calls
        if stop := over_budget(run, seconds, at_once * estimate, at_once):
            raise OutOfBudget(stop)
        self._begun += 1
        allowed = completion_allowance(run, self._calls * estimate, self._calls)
        return request.model_copy(update={"max_tokens": allowed})


class Ask(Generic[T]):
    """Asks a model until its reply can be read, at most twice.

    A reply that the run has heard already is used, not asked for again. One that was cut off,
    refused or filtered is never asked for again blindly.

    Args:
        model: who is asked.
        parse: reads the reply's text, or raises `ReplyError`.
        stage: the stage the call belongs to.
        iteration: the iteration it is about.
        clock: times the call.
        whole: reads a reply that was cut off, if what was asked for is whole in it.
        critic: which of several critics is asked.

    Attributes:
        value: what was read, or None.
        flaw: why there is no value.
    """

    def __init__(
        self,
        model: Model,
        parse: Callable[[str], T],
        stage: Stage,
        iteration: int,
        clock: Clock,
        whole: Callable[[str], T] | None = None,
        critic: int = 0,
    ) -> None:
        self._model, self._parse, self._clock, self._whole = model, parse, clock, whole
        self._stage, self._iteration, self._critic = stage, iteration, critic
        self._reply: Reply | None = None
        self.value: T | None = None
        self.flaw = ""

    async def events(
        self,
        request: Request,
        state: State,
        splitter: Splitter | None,
        share: Share | None = None,
    ) -> AsyncGenerator[Event]:
        """Make the call, and once more if the reply cannot be read.

        Args:
            request: what is asked.
            state: gives the run as it stands and the seconds since it started.
            splitter: tells text from thoughts while it streams; None hides JSON as thinking.
            share: what it may take of the budget beside other calls; all of it by default.

        Raises:
            OutOfBudget: before a call that the budget does not allow, or during one that takes
                more seconds than it holds.
            ModelError: the model failed.
        """
        heard = deque(self._heard(state()[0]))
        share = share or Share(state()[0])
        for attempt in range(2):
            if heard:
                self._reply = heard.popleft()
            else:
                asked = share.bounded(request, *state())
                async with aclosing(self._call(asked, state, splitter)) as parts:  # type: ignore[type-var]
                    async for event in parts:
                        yield event
            reply = self._reply
            if reply is None:
                raise ServerFailed(f"{self._model.name} ended its stream without a reply.")
            if reply.finish != "stop":
                for event in self._rescued(reply, state()[0]):
                    yield event
                return
            try:
                self.value = self._parse(reply.text)
                return
            except ReplyError as error:
                self.flaw = f"the reply could not be read: {error}"
                request = repair(state()[0], request, reply.text, str(error))
            if attempt == 0:
                for event in warn(state()[0], f"Asked {self._model.name} again: {self.flaw}."):
                    yield event

    def _rescued(self, reply: Reply, run: Run) -> list[Event]:
        """Take from a reply cut off at the token limit what was whole before it, saying so."""
        self.flaw = FLAWS[reply.finish]
        if self._whole is None or reply.finish != "length":
            return []
        try:
            self.value = self._whole(reply.text)
        except ReplyError:
            return []
        return warn(run, f"Iteration {self._iteration}: {self.flaw}, after the text had ended.")

    def _heard(self, run: Run) -> list[Reply]:
        """The replies that the stage got before it was cut short."""
        return [
            Reply(text=heard.text, finish=heard.finish)
            for heard in run.heard
            if (heard.stage, heard.iteration, heard.critic)
            == (self._stage, self._iteration, self._critic)
        ]

    async def _call(
        self, request: Request, state: State, splitter: Splitter | None
    ) -> AsyncIterator[Event]:
        self._reply = None
        started, written = self._clock(), 0
        events: Sequence[Event]
        pieces = Pieces(self._stage, self._iteration, splitter, self._clock)
        try:
            async with aclosing(self._model.stream(request)) as stream:  # type: ignore[type-var]
                async for part in stream:
                    if isinstance(part, Delta):  # nearly all are; asking in vain costs most
                        written += len(part.text)
                        events = pieces.add(part)
                    elif isinstance(part, Notice):
                        events = [*pieces.rest(), Warned(message=part.text)]
                    else:
                        self._reply = part
                        continue
                    if events:
                        _in_time(part, *state())
                    for event in events:
                        yield event
        except (ModelError, OutOfBudget):
            for event in pieces.rest():
                yield event
            yield self._used(_estimated(request, written, state()[0]), started)
            raise
        for event in pieces.rest():
            yield event
        used = self._reply.usage if self._reply else _estimated(request, written, state()[0])
        yield self._used(used, started)

    def _used(self, usage: Usage, started: float) -> BudgetUsed:
        usage = usage.model_copy(update={"seconds": self._clock() - started})
        return BudgetUsed(
            stage=self._stage,
            iteration=self._iteration,
            usage=usage,
            text=self._reply.text if self._reply else "",
            finish=self._reply.finish if self._reply else None,
            critic=self._critic,
        )


class Asked(Generic[T]):
    """One of several calls that are made at once.

    Args:
        ask: the call.
        number: which of them it is.

    Attributes:
        error: what ended it early, or None.
    """

    def __init__(self, ask: Ask[T], number: int) -> None:
        self.ask, self.number = ask, number
        self.error: Exception | None = None

    @property
    def why(self) -> str:
        """Why it gave nothing; empty when it did."""
        return str(self.error) if self.error else self.ask.flaw


def warn(run: Run, message: str) -> list[Event]:
    """A warning about the replies a stage got, unless it was given before a cut."""
    since = run.heard[0].warnings if run.heard else len(run.warnings)
    return [] if message in run.warnings[since:] else [Warned(message=message)]


def _in_time(part: Delta | Notice, run: Run, seconds: float) -> None:
    """Refuse to go on with a call, or to wait for one, beyond the seconds of the budget."""
    wait = part.wait if isinstance(part, Notice) else 0.0
    if stop := over_time(run, seconds, wait):
        raise OutOfBudget(stop)


def _estimated(request: Request, written: int, run: Run) -> Usage:
    """What a call consumed that ended without saying so: nothing, if it wrote nothing."""
    if not written:
        return Usage(calls=1, cached_tokens=0, cost=0.0)
    read, wrote = _read(request), max(1, estimate_tokens(written))
    cost = run.price.cost(read, wrote) if run.price else None
    return Usage(calls=1, prompt_tokens=read, completion_tokens=wrote, cost=cost)


def _read(request: Request) -> int:
    return estimate_tokens(sum(len(message.content) for message in request.messages))


def affordable_calls(request: Request, run: Run, seconds: float, wanted: int) -> int:
    """How many calls like one the budget allows at once, at least one and at most ``wanted``."""
    estimate = _read(request)
    for calls in range(wanted, 1, -1):
        if not over_budget(run, seconds, calls * estimate, calls):
            return calls
    return 1
