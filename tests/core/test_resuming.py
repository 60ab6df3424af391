"""A run cut short after any of its events goes on to the same end, asking nothing twice."""

import json
from itertools import count
from typing import Any

import pytest

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import BudgetUsed, Event, Stopped, TextDelta
from ipyrefine.core.fold import apply, fold
from ipyrefine.core.ports import Reply
from ipyrefine.core.records import Criterion, Evidence, Outcome, Task
from ipyrefine.core.runs import Decision, Limits, Run
from ipyrefine.errors import Unreachable
from ipyrefine.providers.scripted import ScriptedModel

TASK = Task(text="Write a greeting.", criteria=(Criterion(name="tone", definition="Friendly."),))


def text(words: str, notes: str = "") -> str:
    return f"{notes}\n<text>\n{words}\n</text>\n"


def finding(problem: str, quote: str = "") -> dict[str, str]:
    return {
        "criterion": "tone", "quote": quote, "problem": problem, "fix": "mend it",
        "severity": "blocking",
    }  # fmt: skip


def judged(score: int, *findings: dict[str, str]) -> str:
    criteria = [{"name": "tone", "reason": "so it reads", "score": score}]
    return json.dumps({"findings": findings, "earlier": [], "criteria": criteria})


def criticised(*findings: dict[str, str]) -> str:
    return json.dumps({"findings": findings})


def preferred(which: str) -> str:
    return json.dumps({"reason": f"the {which} is warmer", "better": which})


class Polite:
    """A check that looks at the text alone and leaves the verdict to the judge."""

    name = "polite"

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=None, detail="looked")


SCRIPTS: dict[str, list[Any]] = {
    "a critique overturns a PASS": [
        text("Hello"), judged(9), criticised(finding("too short", "Hello")),
        text("Hello there"), judged(7), text("Hello there, friend"), judged(10),
    ],
    "a judge who is asked again": [
        text("Hello"), "no json", judged(5, finding("flat", "Hello")),
        text("Hello there"), "none again", "nor now", text("Hi there"), judged(9),
    ],
    "a revision that is cut off": [
        text("Hello"), judged(5), criticised(finding("flat", "Hello")),
        Reply(text="<text>Hel", finish="length"), text("Hi there"), judged(9),
    ],
    "a critique that cannot be read": [
        text("Hello"), judged(5), "{", "[", text("Hi there"), judged(9),
    ],
    "a PASS whose critique cannot be read": [
        text("Hello"), judged(9), "{", "[", text("Hi there"), judged(9),
    ],
    "a critique without a finding": [text("Hello"), judged(9), criticised(), criticised()],
    "a gate": [
        text("Hello"), judged(5, finding("flat", "Hello")), text("Hi there"), judged(7),
        preferred("second"), "no json", preferred("first"), text("Hi you"), judged(8),
        preferred("second"), preferred("second"),
    ],
}  # fmt: skip


def refinement(replies: list[Any], run: Run | None = None, gate: bool = False) -> Refinement:
    ticks = count().__next__
    return Refinement(
        TASK,
        model=ScriptedModel(replies),
        checks=[Polite()],
        limits=Limits(max_iterations=2, min_findings=1, gate=gate),
        run=run,
        clock=lambda: ticks() / 1000,
        mark=lambda _: "n",
    )


async def journalled(loop: Refinement) -> list[Event]:
    return [event async for event in loop if not isinstance(event, TextDelta)]


def timeless(run: Run) -> dict[str, Any]:
    return untimed(run.model_dump())


def untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: untimed(part) for key, part in value.items() if key != "seconds"}
    return [untimed(part) for part in value] if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("name", SCRIPTS)
async def test_cut_anywhere_it_ends_the_same_and_asks_nothing_twice(name: str) -> None:
    replies, gate = SCRIPTS[name], name == "a gate"
    whole = refinement(replies, gate=gate)
    events = await journalled(whole)
    assert len([e for e in events if isinstance(e, BudgetUsed)]) == len(replies)
    for cut in range(len(events) + 1):
        stored = events[:cut]
        paid = sum(isinstance(event, BudgetUsed) for event in stored)
        resumed = refinement(replies[paid:], run=fold(stored), gate=gate)
        rest = await journalled(resumed)
        assert resumed.error is None
        assert timeless(resumed.run) == timeless(whole.run), cut
        assert sum(isinstance(event, BudgetUsed) for event in rest) == len(replies) - paid
        assert resumed.run == fold([*stored, *rest])


DECISIONS: dict[str, tuple[Decision, list[Any]]] = {
    "continue": (
        Decision(kind="continue", rounds=1, text="Warmer."), [text("Dear friend"), judged(10)]
    ),
    "edit": (Decision(kind="edit", text="Hey you"), [judged(10)]),
    "override": (
        Decision(kind="override", outcome=Outcome.NEEDS_IMPROVEMENT, text="Too stiff."),
        [text("Hey"), judged(10)],
    ),
    "target": (Decision(kind="rubric", target=0.3), []),
    "dismiss": (Decision(kind="dismiss", findings=("f1",), text="It is meant so."), []),
}  # fmt: skip


async def decided(loop: Refinement, decision: Decision) -> list[Event]:
    """Run to the stop, and on once the user has decided."""
    events = await journalled(loop)
    if not loop.run.decisions:
        loop.decide(decision)
        events += await journalled(loop)
    return events


@pytest.mark.parametrize("kind", DECISIONS)
async def test_cut_around_a_decision_it_ends_the_same_too(kind: str) -> None:
    decision, then = DECISIONS[kind]
    replies = [
        text("Hello"), judged(5, finding("flat", "Hello")), text("Hi"), judged(4), text("Ho"),
        judged(3), *then,
    ]  # fmt: skip
    whole = refinement(replies)
    events = await decided(whole, decision)
    assert whole.run.decisions
    assert len([e for e in events if isinstance(e, BudgetUsed)]) == len(replies)
    for cut in range(len(events) + 1):
        stored = events[:cut]
        paid = sum(isinstance(event, BudgetUsed) for event in stored)
        resumed = refinement(replies[paid:], run=fold(stored))
        await decided(resumed, decision)
        assert timeless(resumed.run) == timeless(whole.run), cut


async def test_a_first_text_that_could_not_be_read_is_asked_for_anew() -> None:
    failed = refinement([text(""), text("")])
    events = await journalled(failed)
    assert isinstance(events[-1], Stopped)
    again = refinement([text("Hello"), judged(9), criticised(), criticised()], run=fold(events))
    await journalled(again)
    assert again.run.text == "Hello"


async def test_a_repair_that_could_not_be_sent_is_all_that_is_asked_again() -> None:
    broken = refinement([text("Hello"), "no json", Unreachable("gone")])
    await journalled(broken)
    again = refinement([judged(9), criticised(), criticised()], run=broken.run)
    await journalled(again)
    assert again.run.usage.calls == 2 + 1 + 3, "what was heard, what failed, what is asked now"


async def test_a_run_that_goes_on_is_not_called_stopped() -> None:
    broken = refinement([Unreachable("gone")])
    await journalled(broken)
    again = refinement([text("Hello"), judged(9), criticised(), criticised()], run=broken.run)
    states = [again.run.stop_reason async for event in again if not isinstance(event, Stopped)]
    assert set(states) == {None}


def test_an_event_without_a_reply_leaves_nothing_to_go_on_with() -> None:
    run = apply(Run(), BudgetUsed(stage="draft", iteration=0, usage=Run().usage))
    assert run.heard == ()
