"""One model call: its share of the budget, its stream, its cost, and its reply once it is read."""

import asyncio
import re
from bisect import bisect
from collections import deque
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Generic, Protocol, TypeVar

from pydantic import ValidationError

from ipyrefine.core.events import CallEnded, Event, Stopped, TextDelta, Warned
from ipyrefine.core.forms import FORMS, Splitter, repeats_itself
from ipyrefine.core.model import Record, Stage, Usage, refused
from ipyrefine.core.policy import (
    LIMIT_FACTOR,
    MAX_REPAIRS,
    completion_allowance,
    estimate_tokens,
    over_budget,
    over_time,
)
from ipyrefine.core.ports import Clock, Delta, Model, Notice, Reply, Request, estimate_usage
from ipyrefine.core.prompts import cut_middle, repair, resampled
from ipyrefine.core.run import Run
from ipyrefine.errors import ModelError, RefineError, ReplyError, ServerFailed, describe

T = TypeVar("T")

_SMALLEST_WINDOW = 1_024  # tokens of a prompt; a smaller count is of something else
_REMEMBERED = 8  # prompts of a model
FAILURES = {
    "length": "the reply was cut off at the token limit",
    "refused": "the model refused to answer",
    "filtered": "the provider's content filter withheld the reply",
    "incomplete": "the reply broke off before its end",
}
_CIRCLES = "the reply repeats itself up to the token limit"
_THOUGHT = "the model reached the token limit before its first word"
_NO_ANSWER = "the model thought, but gave no answer"
_CAPPED = "the reply was cut off at the longest that the server allows"
_SHORTENED = "its server read only"
_SHOWN = 2_000  # characters of a reply that missed its form
_READ = 100_000  # characters of a reply about a text that are read: the last, where it ends
_REMEDIES = {
    _CIRCLES: "Word the task differently, or use a larger model",
    _CAPPED: "Ask for a shorter text, or use another model",
    _NO_ANSWER: "Run it again, or use another model",
    FAILURES["incomplete"]: "Run it again, or use another model",
}


class OutOfBudget(Exception):
    """A call was not made, or was given up, because the budget does not allow it."""

    def __init__(self, stop: Stopped) -> None:
        super().__init__(stop.message)
        self.stop = stop


class Loop(Protocol):
    """What a call needs of the loop that makes it."""

    clock: Clock
    prompts_read: dict[str, list[str]]  # by the models' names, which their servers may have cached

    @property
    def state(self) -> Run:
        """The run so far."""

    def elapsed(self) -> float:
        """Return the seconds since the run started."""

    async def emit(self, event: Event) -> None:
        """Apply an event, store it and show it."""


class ModelCall(Generic[T]):
    """Asks a model until its reply can be read, at most twice; in a run, at most 2 are asked again.

    A reply that was paid for already is used, not asked for again. One that was refused or filtered
    is never asked for again; one that broke off is. One that was cut off at the token limit is
    asked for with a higher limit where the user set none; a draft that repeats itself up to the
    limit is sampled instead.

    Args:
        model: who is asked.
        parse: reads the reply, or raises `ReplyError`.
        stage: the stage that asks.
        iteration: the iteration it is about.
        parse_cut: reads a reply that was cut off, if what was asked for is whole in it.
        after: how many replies of the stage were read before; with any, it counts as asking again.

    Attributes:
        read: how many replies of the stage were read by now.
        value: what was read, or None.
        failure: why there is no value; it may reach a prompt.
        advice: the failure, and what the user can do about it.
    """

    def __init__(
        self,
        model: Model,
        parse: Callable[[Reply], T],
        stage: Stage,
        iteration: int,
        parse_cut: Callable[[Reply], T] | None = None,
        after: int = 0,
    ) -> None:
        self._model, self._parse, self._parse_cut = model, parse, parse_cut
        self._again, self.read = after > 0, after
        self._stage, self._iteration = stage, iteration
        self.value: T | None = None
        self.failure = ""
        self._unread = ""  # the reply that missed its form, where it failed for that
        self._bounded_by_budget = False

    @property
    def advice(self) -> str:
        """Return the failure with its remedy or the reply: two clauses, without a full stop."""
        remedy = _REMEDIES.get(self.failure, "")
        if self.failure.startswith(_SHORTENED):
            remedy = "Raise its context length, or shorten the text"
        if self.failure in (FAILURES["length"], _THOUGHT):
            remedy = f"Raise {'--budget' if self._bounded_by_budget else '--set max_tokens'}"
        if self._unread:
            remedy = f"It was: “{self._unread}”"
        return f"{self.failure}. {remedy}" if remedy else self.failure

    async def make(
        self,
        loop: Loop,
        request: Request,
        *,
        splitter: Callable[[], Splitter] | None = None,
    ) -> T | None:
        """Make the call, and once more if the reply cannot be read; return the value that was read.

        `splitter` makes what tells text from thoughts while a reply streams, a new one for each.

        Raises:
            OutOfBudget: before a call that the budget does not allow, or during one that takes
                more seconds than it holds.
            ModelError: the model failed.
        """
        about = (self._stage, self._iteration)
        left = [one for one in loop.state.replies if (one.stage, one.iteration) == about]
        replies = deque(
            Reply(text=one.text, finish=one.finish or "stop", usage=one.usage)
            for one in left[self.read :]
        )
        cut_at = 0  # a higher limit that the budget doesn't allow is not worth a call
        for attempt in range(2):
            if replies:
                reply = replies.popleft()
            else:
                estimate = estimate_usage(request, 0).prompt_tokens
                if stop := over_budget(loop.state, loop.elapsed(), estimate):
                    raise OutOfBudget(stop)
                allowed = completion_allowance(loop.state, estimate, request.max_tokens)
                bounded = request.replace(max_tokens=allowed)
                self._bounded_by_budget = bounded.max_tokens < request.max_tokens
                spent = (attempt or self._again) and loop.state.repairs >= MAX_REPAIRS
                if spent or bounded.max_tokens <= cut_at:
                    return None
                if attempt:
                    await warn(loop, f"Asked {self._model.name} again: {self.failure}.")
                try:
                    reply = await self._ask(loop, bounded, splitter() if splitter else None)
                except ModelError as error:
                    if attempt or not error.broke_off:
                        raise
                    self.failure = FAILURES["incomplete"]
                    continue
            self.read += 1
            # A recording's count is that of the prompt it was made with, which may have changed.
            live = not getattr(self._model, "replays", False)
            if live and (shortened := _shortened(loop, self._model.name, request, reply.usage)):
                if self._stage in (Stage.JUDGE, Stage.CRITIQUE):
                    self.failure = shortened  # what was read of half a text settles nothing
                    return None
                await warn(loop, f"{self._model.name}: {shortened}. Raise its context length.")
            if self._stage in (Stage.CRITIQUE, Stage.JUDGE) and len(reply.text) > _READ:
                await warn(
                    loop,
                    f"{self._model.name} wrote {len(reply.text):,} characters about "
                    f"{loop.state.mention(self._iteration)}. Only the last {_READ:,} were read.",
                )
                reply = reply.model_copy(update={"text": reply.text[-_READ:]})
            if reply.finish != "stop":
                again = await self._rescue(loop, reply, request)
                if again is None:
                    return self.value
                cut_at = request.max_tokens if again.max_tokens > request.max_tokens else 0
                request = again
            else:
                try:
                    self.value = self._parse(reply)
                    return self.value
                except ReplyError as error:
                    silent = reply.thinking.strip() and not reply.text.strip()
                    self.failure = _NO_ANSWER if silent else f"{FORMS[request.form].told} ({error})"
                    self._unread = cut_middle(reply.text.strip().rstrip("."), _SHOWN)
                    request = repair(loop.state, request, reply.text, str(error))
        return None

    async def _rescue(self, loop: Loop, reply: Reply, request: Request) -> Request | None:
        """Use what is whole in a reply that was cut off; else return what to ask for instead."""
        self.failure, self._unread = FAILURES[reply.finish], ""
        if reply.finish != "length":
            return request if reply.finish == "incomplete" else None
        with suppress(ReplyError):
            self.value = self._parse_cut(reply) if self._parse_cut else None
        if self.value is not None:
            name = loop.state.mention(self._iteration).capitalize()
            await warn(loop, f"{name}: {self.failure}, after the text had ended.")
            return None
        if repeats_itself(reply.text):
            self.failure = _CIRCLES
            return resampled(loop.state, request) if self._stage is Stage.DRAFT else None
        if reply.capped:
            self.failure = _CAPPED
        elif not reply.text.strip():
            self.failure = _THOUGHT
        fixed = loop.state.limits.max_tokens is not None or self._bounded_by_budget or reply.capped
        return None if fixed else request.replace(max_tokens=LIMIT_FACTOR * request.max_tokens)

    async def _ask(self, loop: Loop, request: Request, splitter: Splitter | None) -> Reply:
        reply = None
        began, written = loop.clock(), 0
        kept = []  # the text so far, which outlives a call that ends early
        most = loop.state.limits.budget.seconds

        async def show(event: Event) -> None:
            if isinstance(event, TextDelta) and event.kind == "text":
                kept.append(event.text)
            await loop.emit(event)

        async def end(usage: Usage) -> None:
            await loop.emit(
                CallEnded(
                    stage=self._stage,
                    iteration=self._iteration,
                    usage=usage.replace(seconds=loop.clock() - began),
                    text=reply.text if reply else "".join(kept),
                    finish=reply.finish if reply else None,
                )
            )

        try:
            # A silent server brings nothing by which to notice that the time is over.
            async with asyncio.timeout(None if most is None else most - loop.elapsed()) as timer:
                async with aclosing(self._model.stream(request)) as stream:  # type: ignore[type-var]
                    async for part in stream:
                        events = []
                        if isinstance(part, Record):  # its maker may have left its checks out
                            part = type(part).model_validate(part.model_dump(warnings=False))
                        if isinstance(part, Delta):  # nearly all parts are
                            written += len(part.text)
                            events += self._shown(part, splitter)
                        elif isinstance(part, Notice):
                            again = not part.wait and part.text in loop.state.warnings
                            events += [Warned(message=part.text)] if part.text and not again else []
                        elif isinstance(part, Reply):  # its lines end as a cell's do
                            reply = part.replace(text=part.text.replace("\r\n", "\n"))
                            continue
                        else:
                            kind = type(part).__name__
                            raise TypeError(f"it streams {kind}, not Delta, Notice or Reply")
                        if events or isinstance(part, Notice):
                            wait = part.wait if isinstance(part, Notice) else 0.0
                            if stop := over_time(loop.state, loop.elapsed(), wait):
                                raise OutOfBudget(stop)
                        for event in events:
                            await show(event)
        except BaseException as error:
            task, interrupt = asyncio.current_task(), type(error) is KeyboardInterrupt
            if isinstance(error, asyncio.CancelledError):
                interrupt = task is None or task.cancelling() > 0
            if kept or not interrupt:
                await end(_estimate_usage(request, written, loop.state))
            if interrupt or isinstance(error, RefineError | OutOfBudget):
                raise
            if isinstance(error, ValidationError):
                bad = refused(error, "The reply")
                raise ModelError(f"{self._model.name} sent a bad reply. {bad}") from None
            if timer.expired() and most and (stop := over_time(loop.state, most)):
                raise OutOfBudget(stop) from None
            raise ModelError(f"{self._model.name} failed: {describe(error)}.") from error
        await end(reply.usage if reply else _estimate_usage(request, written, loop.state))
        if reply is None:
            raise ServerFailed(f"{self._model.name} ended its stream without a reply.")
        return reply

    def _shown(self, piece: Delta, splitter: Splitter | None) -> list[Event]:
        splits = splitter if piece.kind == "text" else None
        pieces = splits.feed(piece.text) if splits else [(piece.kind, piece.text)]
        return [
            TextDelta(stage=self._stage, iteration=self._iteration, kind=kind, text=text)
            for kind, text in pieces
        ]


async def warn(loop: Loop, message: str) -> None:
    """Warn about a reply, each thing once."""
    if message not in loop.state.warnings:
        await loop.emit(Warned(message=message))


def _estimate_usage(request: Request, written: int, run: Run) -> Usage:
    """Estimate what a call consumed that ended without saying so: nothing, if it wrote nothing."""
    if not written:
        return Usage(calls=1, cached_tokens=0, cost=0.0)
    usage, price = estimate_usage(request, written), run.setup.price
    read, wrote = usage.prompt_tokens, usage.completion_tokens
    return usage.replace(cost=price.cost(read, wrote) if price else None)


def _shortened(loop: Loop, name: str, request: Request, usage: Usage) -> str:
    """Return how much of a prompt a server read if that is far from all of it; else nothing.

    Some servers count only what they have not cached. Where one doesn't say how much that is, the
    start that a prompt shares with an earlier one is not expected of it.
    """
    prompt = "\n".join(message.content for message in request.guarded or request.messages)
    earlier = loop.prompts_read.setdefault(name, [])
    start = 0
    if usage.cached_tokens is None:
        start = max((_shared(prompt, one) for one in earlier), default=0)
    read = usage.prompt_tokens + (usage.cached_tokens or 0)
    if usage.prompt_tokens and _SMALLEST_WINDOW <= read < _least_tokens(prompt[start:]):
        sent = max(estimate_tokens(len(prompt)), _least_tokens(prompt))
        return f"{_SHORTENED} {read:,} of about {sent:,} tokens"
    earlier[:] = [*earlier[1 - _REMEMBERED :], prompt]
    return ""


def _shared(text: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    length = min(len(text), len(other))
    return bisect(range(length), False, key=lambda n: text[: n + 1] != other[: n + 1])


def _least_tokens(text: str) -> int:
    """Return fewer tokens than any tokenizer makes of a text, be it prose, code or Chinese.

    Each word takes one at least, 20 characters take three, and three of a dense script take one.
    """
    text = re.sub(r"(\W)\1{2,}", r"\1", text)
    dense = len(re.findall("[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]", text))
    return max(len(text.split()), 3 * (len(text) - dense) // 20 + dense // 3)
