"""Several critics of one text: asked at once, their findings one critique, none paid for twice."""

import json
from typing import Any

import pytest
from all_at_once import AllAtOnce, cancelled
from loop_scripts import (
    TASK,
    criticised,
    finish,
    found,
    judged,
    refinement,
    requests,
    stages,
    text,
    ticking,
)

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import BudgetUsed, CritiqueReady, Event, TextDelta
from ipyrefine.core.fold import fold
from ipyrefine.core.ports import Reply
from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Budget, Limits, Run
from ipyrefine.errors import ModelError, Unreachable

THREE = Limits(critics=3, min_findings=1, max_iterations=1)
WEAK = ["It is stiff.", "No name is given.", "Far too short."]
GLAD = text("Hello dear reader")


def weakness(problem: str, quote: str = "") -> dict[str, str]:
    return {**found(problem, quote), "fix": f"Not so: {problem}"}


def opened(*criticisms: Any, limits: Limits = THREE, **options: Any) -> Refinement:
    """A first text that its judge passes, then what its critics say, and a better text."""
    return refinement(
        [GLAD, judged(9), *criticisms, text("Hi there"), judged(10)], limits=limits, **options
    )


def critiques(events: list[Event]) -> list[CritiqueReady]:
    return [event for event in events if isinstance(event, CritiqueReady)]


def problems(events: list[Event]) -> list[str]:
    (ready,) = critiques(events)
    return [finding.problem for finding in ready.critique.findings]


async def test_all_critics_are_asked_at_once_and_only_one_streams_at_a_time() -> None:
    model = AllAtOnce(3, lambda number: criticised(weakness(WEAK[number])))
    judge = refinement([judged(9), judged(9)])._crew.judge
    loop = Refinement(TASK, model=model, judge=judge, draft="Hello", limits=THREE, clock=ticking())
    events: list[Event] = []
    async for event in loop:
        events.append(event)
        if isinstance(event, CritiqueReady):
            break
    assert len(model.requests) == 3
    assert stages(events) == ["judge", "critique"]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    said = [n for piece in pieces for n in range(3) if WEAK[n] in piece]
    assert said == [0, 1, 2], "the last to ask was the first to answer"
    assert problems(events) == WEAK


async def test_the_first_critic_is_asked_as_if_alone_and_the_others_are_sampled() -> None:
    said = [criticised(weakness(WEAK[n])) for n in range(3)]
    limits = THREE.model_copy(update={"seed": 7})
    several = opened(*said, limits=limits, mark=lambda _: "n")
    alone = opened(said[0], limits=limits.model_copy(update={"critics": 1}), mark=lambda _: "n")
    await finish(several)
    await finish(alone)
    first, *others = requests(several)[2:5]
    assert first == requests(alone)[2]
    assert (first.temperature, first.seed) == (0.0, 7)
    assert all(request.temperature > 0.5 for request in others)
    assert [request.seed for request in others] == [8, 9]
    assert {request.messages for request in others} == {first.messages}
    assert len({request.given for request in (first, *others)}) == 3, "recordings tell them apart"


async def test_what_several_critics_name_is_one_finding_in_the_first_ones_words() -> None:
    place = weakness("It is cold.", "Hello dear")
    place_again = weakness("Nobody talks like that nowadays.", "hello  dear")
    fix = {**weakness("No name is given."), "fix": "Say who writes."}
    fix_again = {
        **weakness("The writer stays unknown.", "reader"),
        "fix": "say who writes.",
    }
    other = {**weakness("Far too short for a letter."), "fix": "Add a line."}
    events = await finish(
        opened(criticised(place, fix), criticised(place_again, other), criticised(fix_again))
    )
    assert problems(events) == [
        "It is cold.",
        "No name is given.",
        "Far too short for a letter.",
    ]
    (ready,) = critiques(events)
    assert [finding.id for finding in ready.critique.findings] == ["f1", "f2", "f3"]


async def test_what_one_critic_tells_apart_stays_apart() -> None:
    two = [weakness("It is cold.", "dear"), weakness("Nobody talks like that nowadays.", "dear")]
    events = await finish(opened(criticised(*two), criticised(two[1]), criticised(two[0])))
    assert len(problems(events)) == 2


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        ([Unreachable("No server.")], "No server."),
        ([Reply(text='{"findings": [', finish="length")], "cut off at the token limit"),
        ([Reply(text="", finish="refused")], "refused"),
    ],
)
async def test_a_critic_who_is_lost_is_told_and_the_others_are_heard(
    lost: list[Any], why: str
) -> None:
    heard = [criticised(weakness(problem)) for problem in (WEAK[0], WEAK[1])]
    loop = opened(heard[0], *lost, heard[1])
    events = await finish(loop)
    assert problems(events) == [WEAK[0], WEAK[1]]
    (told,) = [warning for warning in loop.run.warnings if "Critic 2" in warning]
    assert why in told
    assert loop.error is None
    assert loop.run.text == "Hi there"


async def test_when_no_critic_can_be_heard_the_run_fails_and_going_on_asks_anew() -> None:
    down = [Unreachable("No server.")] * 3
    loop = opened(*down, *[criticised(weakness(WEAK[n])) for n in range(3)])
    await finish(loop)
    assert isinstance(loop.error, ModelError)
    assert loop.run.text == "Hello dear reader"
    events = await finish(loop)
    assert len(problems(events)) == 3


async def test_when_no_critic_can_be_read_a_pass_that_rests_on_them_does_not_stand() -> None:
    unread = [Reply(text="{", finish="incomplete")] * 3
    loop = refinement(
        [GLAD, judged(9), *unread], limits=THREE.model_copy(update={"max_iterations": 0})
    )
    await finish(loop)
    assert loop.run.verdict
    assert loop.run.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    assert not loop.run.verdict.verified


async def test_critics_share_the_tokens_of_the_budget() -> None:
    model = AllAtOnce(3, lambda number: criticised(weakness(WEAK[number])))
    judge = refinement([judged(9), judged(9)])._crew.judge
    limits = THREE.model_copy(update={"budget": Budget(completion_tokens=900)})
    loop = Refinement(TASK, model=model, judge=judge, draft="Hello", limits=limits, clock=ticking())
    async for event in loop:
        if isinstance(event, CritiqueReady):
            break
    left = 900 - loop.run.spent["judge"].completion_tokens
    assert [request.max_tokens for request in model.requests] == [left // 3] * 3


@pytest.mark.parametrize(("calls", "asked"), [(3, 1), (4, 2), (9, 3)])
async def test_no_more_critics_are_asked_than_the_budget_allows(calls: int, asked: int) -> None:
    limits = THREE.model_copy(update={"budget": Budget(calls=calls)})
    loop = opened(*[criticised(weakness(WEAK[n])) for n in range(asked)], limits=limits)
    events = await finish(loop)
    assert len(problems(events)) == asked
    assert loop.run.usage.calls <= calls
    told = f"The budget allows {asked} of 3 critics." in loop.run.warnings
    assert told == (asked < 3)


async def test_a_run_cut_anywhere_asks_only_the_critics_it_has_not_heard() -> None:
    """The second says too little and is asked once more; each reply is told by its critic."""
    said: dict[int, list[str]] = {}
    replies = [criticised(weakness(WEAK[0])), criticised(), criticised(weakness(WEAK[1])),
                criticised(weakness(WEAK[2]))]  # fmt: skip

    first = opened(*replies)
    events = [event for event in await finish(first) if not isinstance(event, TextDelta)]
    for used in events:
        if isinstance(used, BudgetUsed) and used.stage == "critique":
            said.setdefault(used.critic, []).append(used.text)
    assert len(said) == 3
    assert sum(map(len, said.values())) == 4
    for cut in range(len(events) + 1):
        paid = [event for event in events[:cut] if isinstance(event, BudgetUsed)]
        rest = [event.text for event in events[cut:] if isinstance(event, BudgetUsed)]
        loop = refinement(rest, limits=THREE, run=fold(events[:cut], Run()))
        again = await finish(loop)
        calls = sum(isinstance(event, BudgetUsed) for event in again)
        assert calls + len(paid) == first.run.usage.calls, cut
        assert loop.run.text == "Hi there", cut
        heard = {f.problem for iteration in loop.run.iterations for f in iteration.findings}
        assert heard == {f.problem for i in first.run.iterations for f in i.findings}, cut


async def test_stopping_in_the_middle_closes_every_critics_stream() -> None:
    model = AllAtOnce(4, lambda _: "")  # it waits for a fourth request that never comes
    judge = refinement([judged(9)])._crew.judge
    loop = Refinement(TASK, model=model, judge=judge, draft="Hello", limits=THREE, clock=ticking())
    await cancelled(loop, model, 3)
    assert loop.run.text == "Hello"


def test_a_reply_from_before_there_were_several_critics_is_the_firsts() -> None:
    used = BudgetUsed(stage="critique", iteration=0, usage=Run().usage, text="{}", finish="stop")
    stored = json.loads(used.model_dump_json())
    del stored["critic"]
    (heard,) = fold([BudgetUsed.model_validate(stored)]).heard
    assert heard.critic == 0
