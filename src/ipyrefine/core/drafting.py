"""The first texts: one, or several candidates that are written at once from the task alone."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial

from ipyrefine.core import replies
from ipyrefine.core.calls import Ask, Asked, OutOfBudget, Share, State, affordable_calls
from ipyrefine.core.events import DraftLost, DraftReady, Event, Warned
from ipyrefine.core.pending import undrafted
from ipyrefine.core.ports import Clock, Model
from ipyrefine.core.requests import Requests
from ipyrefine.core.together import in_turn
from ipyrefine.errors import ModelError


class Candidate(Asked[replies.Written]):
    """One first text as it is written."""

    def result(self) -> Event:
        """The text, or the loss of it."""
        if self.ask.value is None:
            return DraftLost(candidate=self.number, why=self.why)
        written = self.ask.value
        return DraftReady(text=written.text, thoughts=written.thoughts, candidate=self.number)


async def draft(
    model: Model, requests: Requests, state: State, clock: Clock
) -> AsyncIterator[Event]:
    """Ask for the first texts that are to be written next, all at once.

    Only one of them streams at a time, and they are given in their order; what was lost is
    told, and ends the run only if nothing else is there.

    Raises:
        OutOfBudget: the budget allows not even one call.
        ModelError: no text could be had.
    """
    run = state()[0]
    form = run.task.form if run.task else "prose"

    def ask(number: int) -> Ask[replies.Written]:
        read = partial(replies.written, form=form)
        return Ask(model, read, "draft", number, clock, partial(read, cut=True))

    candidates = [Candidate(ask(number), number) for number in undrafted(run)]
    first = requests.draft(run, candidates[0].number)
    calls = affordable_calls(first, *state(), len(candidates))
    while len(candidates) > calls:
        yield DraftLost(candidate=candidates.pop().number, why="the budget does not allow it")

    share = Share(run, calls)

    def stream(candidate: Candidate) -> AsyncGenerator[Event]:
        request = requests.draft(run, candidate.number)
        return candidate.ask.events(request, state, replies.Splitter(form), share)

    async with aclosing(in_turn([stream(candidate) for candidate in candidates])) as items:
        async for item in items:
            if item.event is not None:
                yield item.event
                continue
            candidate = candidates[item.stream]
            candidate.error = item.error
            for event in _resolved(candidate, state, last=candidate is candidates[-1]):
                yield event


def _resolved(candidate: Candidate, state: State, *, last: bool) -> list[Event]:
    """What became of a candidate whose call is over."""
    if candidate.error and not isinstance(candidate.error, ModelError | OutOfBudget):
        raise candidate.error
    event = candidate.result()
    if isinstance(event, DraftReady):
        return [event]
    run = state()[0]
    # Those that the budget left out are lost already: none may be left to ask for.
    final = candidate.error is not None or run.lost + 1 >= run.limits.candidates
    if last and final and not run.iterations:
        raise candidate.error or ModelError(f"{run.model} gave no first text: {candidate.why}.")
    return [Warned(message=f"One of the first texts is missing: {candidate.why}"), event]
