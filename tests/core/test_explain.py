"""A question about a text is answered by one call, and the run is as it was."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kit import CODE, READY, TASK, built, code, ended, refinement

from ipyrefine.core.decisions import Continue
from ipyrefine.core.events import Event
from ipyrefine.core.model import IMPROVE, Budget, Limits, Stage, StopReason
from ipyrefine.core.ports import Reply, Request
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.errors import ModelError, ServerFailed, UsageError
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.terminal import record_text
from ipyrefine.session.session import Session

DRAFT = [code("x = {1}")]
WHY = "Why a set?"


async def test_the_answer_is_kept_with_its_cost_and_nothing_else_changes():
    seen: list[Event] = []

    def take(event: Event, run: Run) -> None:
        seen.append(event)

    loop = refinement(
        {"draft": DRAFT, "critique": [READY], "explain": ["Because of <b>time</b>."]}, CODE
    )
    before = await loop.run(take)
    run = await loop.explain(0, WHY, take)
    assert [(e.iteration, e.question, e.answer) for e in run.explanations] == [
        (0, WHY, "Because of <b>time</b>.")
    ]
    assert (run.stop_reason, run.iterations[0].verdict) == (
        StopReason.PASSED, before.iterations[0].verdict
    )  # fmt: skip
    assert run.usage.calls == before.usage.calls + 1
    assert replay(seen).model_dump() == run.model_dump()
    asked = loop.model.requests[-1]
    assert WHY in asked.messages[-1].content
    assert "x = {1}" in asked.messages[-1].content
    for shown in (record_html(run), panel_parts(run, View())["guide"]):
        assert "Because of &lt;b&gt;time" in shown
    assert WHY in record_text(run)


@pytest.mark.parametrize(
    ("number", "question", "limits", "error", "words"),
    [
        (0, "  ", Limits(), UsageError, "want to know"),
        (4, WHY, Limits(), UsageError, "no text 4"),
        (0, WHY, Limits(budget=Budget(calls=2)), UsageError, "budget"),
        (0, WHY, Limits(), ModelError, r"Down\."),
    ],
    ids=["no words", "no such text", "no budget", "a failure"],
)
async def test_a_question_that_is_refused_or_fails_leaves_the_run_as_it_was(
    number, question, limits, error, words
):
    replies = {"draft": DRAFT, "critique": [READY], "explain": [ServerFailed("Down.")]}
    loop = refinement(replies, CODE, limits=limits)
    await loop.run()
    with pytest.raises(error, match=words):
        await loop.explain(number, question)
    assert loop.state.stop_reason is StopReason.PASSED
    assert not loop.state.explanations


TOLD = "It drops the rows that lack <b>values</b>."
ANSWERS = [f'<text kind="answer">\n{TOLD}\n</text>', f"\n<text>{TOLD}</text>\n"]
OWN = "x = df.dropna()"
QUESTION = CODE.replace(text="why dropna?")


async def test_prose_is_answered_only_by_what_says_so():
    question = TASK.replace(text="Why so short?")
    for reply, answered in zip(ANSWERS, (True, False), strict=True):
        loop = await ended(
            {"revise": [reply], "critique": [READY]}, question, draft="Hi.", wish="?"
        )
        assert (loop.state.stop_reason == StopReason.ANSWERED) is answered


@pytest.mark.parametrize(
    "options",
    [
        {"task": QUESTION.replace(text=IMPROVE["code"])},
        {"prompts": Prompts(critique="Find faults.")},
        {"attempts": ()},
        {"weak_editor": True},
        {"draft": None},
    ],
    ids=["no request", "an own prompt", "a student", "a weak writer", "no text"],
)
async def test_nobody_is_offered_to_answer_where_a_text_has_to_be_read_or_written(options):
    loop = refinement(
        {"draft": [code(OWN)], "critique": [READY]}, **{"task": QUESTION, "draft": OWN, **options}
    )
    await loop.run()
    assert loop.state.stop_reason is not StopReason.ANSWERED
    assert not any('kind="answer"' in m.content for r in loop.model.requests for m in r.messages)


class Slow:
    """A model that answers no question."""

    name = "m"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if request.purpose == Stage.EXPLAIN:
            self.asked.set()
            await asyncio.Event().wait()
        yield Reply(text=READY if request.purpose == Stage.CRITIQUE else code("x = {2}"))


async def test_a_decision_ends_the_wait_for_an_answer_and_is_carried_out():
    model = Slow()
    session = Session(built(CODE, model=model, clock=asyncio.get_running_loop().time), [])
    await session.go()
    asking = asyncio.ensure_future(session.explain(0, WHY))
    await model.asked.wait()
    session.decide(Continue(guidance="Use a list."))
    await session.settle()
    assert asking.cancelled()
    assert session.run.revisions == 1
    assert not session.run.explanations
