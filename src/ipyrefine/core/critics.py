"""The critique of a text: a critic's, or several critics' who read it at once."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing

from ipyrefine.core import ledger, replies, verdicts
from ipyrefine.core.calls import Ask, Asked, OutOfBudget, Share, State, affordable_calls, warn
from ipyrefine.core.events import CritiqueReady, Event
from ipyrefine.core.pending import unproven
from ipyrefine.core.ports import Clock, Model
from ipyrefine.core.records import Critique, Finding
from ipyrefine.core.requests import Requests
from ipyrefine.core.runs import Iteration, Limits, Run
from ipyrefine.core.together import in_turn
from ipyrefine.errors import ModelError

Critic = Asked[Critique]


async def critique(
    model: Model, requests: Requests, state: State, clock: Clock
) -> AsyncIterator[Event]:
    """Ask for the weaknesses of the text the next revision starts from, of all critics at once.

    Only one of them streams at a time. One that could not be heard is told, and ends the run only
    if there is no other.

    Raises:
        OutOfBudget: the budget allows not even one call.
        ModelError: no critic could be heard.
    """
    run = state()[0]
    base = run.base
    assert base is not None, "only a verified text is criticised"
    numbers, share = _asked(run, base, requests, state)

    def critic(number: int) -> Critic:
        read = _reader(base.text, run.limits.min_findings)
        return Critic(Ask(model, read, "critique", base.number, clock, critic=number), number)

    critics = [critic(number) for number in numbers]
    streams = [
        c.ask.events(requests.critique(run, base, c.number), state, None, share) for c in critics
    ]
    async with aclosing(in_turn(streams)) as items:
        async for item in items:
            if item.event is not None:
                yield item.event
            elif item.error and not isinstance(item.error, ModelError | OutOfBudget):
                raise item.error
            else:
                critics[item.stream].error = item.error
    for event in _made(critics, base, state):
        yield event


def _asked(run: Run, base: Iteration, requests: Requests, state: State) -> tuple[list[int], Share]:
    """The critics to ask by number, and what each may take of the budget.

    Those whom the run has heard already need no call, unless they could not be understood.
    """
    heard = {h.critic for h in run.heard if (h.stage, h.iteration) == ("critique", base.number)}
    fresh = [number for number in range(run.limits.critics) if number not in heard]
    calls = affordable_calls(requests.critique(run, base), *state(), len(fresh))
    numbers = sorted([*heard, *fresh[:calls]])
    return numbers, Share(run, len(numbers))


def _reader(text: str, least: int) -> Callable[[str], Critique]:
    """Reads a critique; too few findings are asked for once more, then taken for what they are."""
    wanted = [least]

    def read(reply: str) -> Critique:
        return replies.critique(reply, text, wanted.pop() if wanted else 0)

    return read


def _made(critics: Sequence[Critic], base: Iteration, state: State) -> Iterator[Event]:
    """What the critics came to: their findings as one critique, and what it means."""
    heard = [critic.ask.value for critic in critics if critic.ask.value is not None]
    faults = [critic.error for critic in critics if critic.error]
    if faults and not heard:
        raise faults[0]
    run = state()[0]
    named = ledger.unlisted(run, _merged(heard), base.findings)
    for message in _lacking(critics, base, run.limits, len(named)):
        yield from warn(run, message)
    numbered = ledger.number(run, named)
    ready = CritiqueReady(iteration=base.number, critique=Critique(findings=numbered))
    reached = None
    if not heard and unproven(run, base):
        why = f"it has no critique: {critics[0].ask.flaw}"
        reached = verdicts.unreadable(run, base, why).reached(base.number)
    yield ready.model_copy(update={"reached": reached})
    if reached:
        yield reached


def _lacking(
    critics: Sequence[Critic], base: Iteration, limits: Limits, named: int
) -> Iterator[str]:
    """What there is to say about a critique that is not all that was asked for."""
    lost = [critic for critic in critics if critic.ask.value is None]
    if len(lost) == len(critics):
        yield f"No critique of iteration {base.number}: {critics[0].ask.flaw}."
        return
    if len(critics) < limits.critics:
        yield f"The budget allows {len(critics)} of {limits.critics} critics."
    for critic in lost:
        why = critic.why.rstrip(".")
        yield f"Critic {critic.number + 1} of iteration {base.number} is missing: {why}."
    if named < limits.min_findings:
        yield f"The critique names {named} of {limits.min_findings} findings."


def _merged(heard: Sequence[Critique]) -> list[Finding]:
    """The findings of all critics, each once, in the words of the first who named it."""
    findings: list[Finding] = []
    for one in heard:
        named = list(findings)
        findings += [f for f in one.findings if not any(_alike(f, other) for other in named)]
    return findings


def _alike(one: Finding, other: Finding) -> bool:
    """Whether two critics' findings are one: about the same words, or mended by the same fix."""
    if one.quote and (one.criterion, _flat(one.quote)) == (other.criterion, _flat(other.quote)):
        return True
    return bool(one.fix.strip()) and _flat(one.fix) == _flat(other.fix)


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()
