"""A run cut short after any of its events goes on to the same end, and pays for nothing twice."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from kit import (
    CODE,
    EVALUATED,
    READY,
    TASK,
    Finds,
    calls,
    clock,
    code,
    critique,
    finding,
    finish,
    judgement,
    refinement,
    replies_read,
    staged,
    text,
    without_deltas,
)

from ipyrefine.core.decisions import Continue, Criteria, Decision, Dismiss, Edit, Override
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, Stopped
from ipyrefine.core.model import Evidence, Limits, Outcome, Words
from ipyrefine.core.ports import Reply
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.errors import Unreachable
from ipyrefine.providers.scripted import Scripted

Replies = Mapping[str, Sequence[Scripted]]


class Script(NamedTuple):
    """A run: its replies by stage, its limits, and its texts in order."""

    replies: Replies
    texts: tuple[str, ...]
    limits: Limits = Limits(max_revisions=2, min_findings=1)
    options: Mapping[str, Any] = {}


WORDS = {"task": CODE, "words": Words(tasks=(TASK,))}
FLAT = finding("flat", "Hello")
SCRIPTS = {
    "a critique says what a score leaves open": Script(
        {
            "draft": [text("Hello")],
            "judge": [judgement(5), judgement(7), judgement(10)],
            "critique": [critique(finding("too short", "Hello"))],
            "revise": [text("Hello there"), text("Hello there, friend")],
        },
        ("Hello", "Hello there", "Hello there, friend"),
    ),
    "a judge who is asked again": Script(
        {
            "draft": [text("Hello")],
            "judge": ["no json", judgement(5), "none again", "nor now", judgement(9)],
            "critique": [critique(FLAT)],
            "revise": [text("Hello there"), text("Hi there")],
        },
        ("Hello", "Hello there", "Hi there"),
    ),
    "a revision that is cut off": Script(
        {
            "draft": [text("Hello")],
            "judge": [judgement(5), judgement(9)],
            "critique": [critique(FLAT)],
            "revise": [Reply(text="<text>Hel", finish="length"), text("Hi there")],
        },
        ("Hello", "Hello", "Hi there"),
    ),
    "a critique that cannot be read": Script(
        {
            "draft": [text("Hello")],
            "judge": [judgement(5), judgement(9)],
            "critique": ["{", "["],
            "revise": [text("Hi there")],
        },
        ("Hello", "Hi there"),
    ),
    "three drafts": Script(
        {
            "draft": [text("Hello"), text("Hi"), text("Hey")],
            "judge": [judgement(3), judgement(6), judgement(4), judgement(9)],
            "critique": [critique(finding("too short", "Hi"))],
            "revise": [text("Hi there")],
        },
        ("Hello", "Hi", "Hey", "Hi there"),
        Limits(max_revisions=2, min_findings=1, candidates=3),
    ),
    "words in place of code": Script(
        {
            "draft": [text("Hello")],
            "judge": [judgement(5), judgement(9)],
            "critique": [critique(finding("too short", "Hello"))],
            "revise": [text("Hello there")],
        },
        ("Hello", "Hello there"),
        options=WORDS,
    ),
    "words that nothing marks, after a reply that is neither": Script(
        {"draft": ["x = 1 +", "Hello, friend."], "judge": [judgement(9)]},
        ("Hello, friend.",),
        options=WORDS,
    ),
    "code where words were possible": Script(
        {"draft": [code("x = 1")], "judge": [judgement(9)]}, ("x = 1",), options=WORDS
    ),
    "a weak writer is asked for code or words": Script(
        {"choose": ["words"], "draft": ["Hello"], "judge": [judgement(9)]},
        ("Hello",),
        options={**WORDS, "weak_editor": True},
    ),
}


def begin(script: Script, stored: Sequence[Event] = ()) -> Refinement:
    """A refinement that continues from stored events, with the replies that are not paid for."""
    return refinement(
        staged(script.replies, replies_read(stored)),
        **{"task": TASK, **script.options},
        checks=[Finds(Evidence(name="polite", passed=None, detail="looked"))],
        limits=script.limits,
        prompts=EVALUATED,
        run=replay(stored) if stored else None,
        nonce=lambda _: "n",
        clock=clock(),
    )


def timeless(value: Any) -> Any:
    """A dumped run without seconds."""
    if isinstance(value, dict):
        return {key: timeless(part) for key, part in value.items() if key != "seconds"}
    return [timeless(part) for part in value] if isinstance(value, (tuple, list)) else value


def assert_same(resumed: Run, whole: Run, cut: int) -> None:
    assert timeless(resumed.model_dump()) == timeless(whole.model_dump()), cut


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_cut_anywhere_it_ends_the_same_and_pays_for_nothing_twice(script: Script) -> None:
    whole = begin(script)
    events = without_deltas(await finish(whole))
    paid = {stage: len(replies) for stage, replies in script.replies.items()}
    assert tuple(i.text for i in whole.state.iterations) == script.texts
    assert calls(events) == paid
    for cut in range(len(events) + 1):
        stored = events[:cut]
        resumed = begin(script, stored)
        rest = without_deltas(await finish(resumed))
        assert resumed.error is None, cut
        assert_same(resumed.state, whole.state, cut)
        assert calls([*stored, *rest]) == paid, cut
        assert resumed.state == replay([*stored, *rest])


STILL_FLAT: Replies = {
    "draft": [text("Hello")],
    "judge": [judgement(5), judgement(4), judgement(3)],
    "critique": [critique(FLAT)],
    "revise": [text("Hi"), text("Ho")],
}
DECISIONS: dict[str, tuple[Decision, Replies]] = {
    "continue": (
        Continue(guidance="Warmer."),
        {"revise": [text("Dear friend")], "judge": [judgement(10)]},
    ),
    "edit": (Edit(text="Hey you"), {"judge": [judgement(10)]}),
    "override": (
        Override(outcome=Outcome.NEEDS_IMPROVEMENT, reason="Too stiff."),
        {"revise": [text("Hey")], "judge": [judgement(10)]},
    ),
    "target": (Criteria(target=0.3), {}),
    "dismiss": (Dismiss(findings=("f2",), reason="It is meant so."), {}),
}


async def decide_once(loop: Refinement, decision: Decision) -> list[Event]:
    """Run to the stop, and on from there once the user has decided."""
    events = await finish(loop)
    if not loop.state.decisions:
        loop.decide(decision)
        events += await finish(loop)
    return without_deltas(events)


@pytest.mark.parametrize("kind", DECISIONS)
async def test_cut_around_a_decision_it_ends_the_same_too(kind: str) -> None:
    decision, then = DECISIONS[kind]
    replies = {stage: [*STILL_FLAT[stage], *then.get(stage, ())] for stage in STILL_FLAT}
    script = Script(replies, ())
    whole = begin(script)
    events = await decide_once(whole, decision)
    assert whole.state.decisions
    assert calls(events) == {stage: len(items) for stage, items in replies.items()}
    for cut in range(len(events) + 1):
        resumed = begin(script, events[:cut])
        await decide_once(resumed, decision)
        assert_same(resumed.state, whole.state, cut)


async def test_a_draft_that_could_not_be_read_is_asked_for_anew() -> None:
    failed = refinement([text(""), text("")])
    events = await finish(failed)
    assert isinstance(events[-1], Stopped)
    again = refinement([text("Hello"), READY], run=replay(events))
    await finish(again)
    assert again.state.text == "Hello"


async def test_a_repair_that_could_not_be_sent_is_all_that_is_asked_again() -> None:
    broken = refinement([text("Hello"), "no json", Unreachable("gone")])
    await finish(broken)
    again = refinement([READY], run=broken.state)
    await finish(again)
    assert again.state.usage.calls == 2 + 1 + 1, "what was paid, what failed, what is asked now"


async def test_a_run_that_continues_is_not_called_stopped() -> None:
    broken = refinement([Unreachable("gone")])
    await finish(broken)
    again = refinement([text("Hello"), READY], run=broken.state)
    reasons = []
    await finish(again, lambda event, run: reasons.append((event.type, run.stop_reason)))
    assert {reason for kind, reason in reasons if kind != "stopped"} == {None}
