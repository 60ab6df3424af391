"""Replies that end early or go in circles up to the limit, and prompts that are read in part."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kit import (
    CODE,
    NO_FINDINGS,
    READY,
    TASK,
    built,
    code,
    ended,
    evaluated,
    finish,
    judgement,
    requests,
    text,
)

from ipyrefine.core.decisions import Continue
from ipyrefine.core.events import CallEnded, Event
from ipyrefine.core.model import Budget, Limits, Outcome, Stage, StopReason, Usage
from ipyrefine.core.ports import Delta, Reply, Request
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.reducer import replay
from ipyrefine.errors import ServerFailed
from ipyrefine.render.terminal import record_text
from ipyrefine.session.session import Session

DEFAULT = Limits(max_tokens=None, max_revisions=0, critique="never")
SPENT = Usage(calls=1, prompt_tokens=100, completion_tokens=16_384)
THOUGHT = Reply(text="", finish="length", usage=SPENT)
HALF = Reply(text="<text>\nHel", finish="length", usage=SPENT)


@pytest.mark.parametrize("cut", [THOUGHT, HALF], ids=["empty", "half"])
async def test_a_cut_reply_is_asked_for_once_more_with_four_times_the_limit(cut):
    loop = evaluated([cut, text("Hello"), judgement(9)], limits=DEFAULT)
    events = await finish(loop)
    assert loop.state.text == "Hello"
    assert loop.state.stop_reason is StopReason.PASSED
    asked = requests(loop, Stage.DRAFT)
    assert [one.max_tokens for one in asked] == [16_384, 65_536]
    assert asked[0].messages == asked[1].messages
    assert sum(event.usage.calls for event in events if isinstance(event, CallEnded)) == 3


@pytest.mark.parametrize(
    ("cut", "max_tokens", "words"),
    [
        (THOUGHT, 16_384, "Raise --set max_tokens."),
        (HALF.replace(capped=True), None, "the longest that the server allows"),
    ],
    ids=["the user's", "the server's"],
)
async def test_a_limit_that_would_only_be_met_again_is_named(cut, max_tokens, words):
    loop = evaluated([cut], limits=DEFAULT.model_copy(update={"max_tokens": max_tokens}))
    await finish(loop)
    assert words in loop.state.message


@pytest.mark.parametrize(
    "budget", [Budget(tokens=20_000), Budget(completion_tokens=9_000), Budget(calls=1)]
)
async def test_a_higher_limit_is_not_asked_for_where_the_budget_does_not_hold_it(budget):
    loop = evaluated([THOUGHT], limits=DEFAULT.model_copy(update={"budget": budget}))
    await finish(loop)
    assert loop.state.usage.calls == 1
    assert "--budget" in loop.state.message
    assert not loop.state.warnings


async def test_a_long_text_has_room_for_three_of_its_length():
    draft = "Hello, dear friend. " * 5_000
    loop = evaluated([judgement(9)], limits=DEFAULT, draft=draft)
    await finish(loop)
    assert requests(loop)[0].max_tokens >= 3 * len(draft) // 4


class Silent:
    """A model that takes the request and says nothing."""

    name = "silent"

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        await asyncio.Event().wait()
        yield Delta(text="never")


async def test_the_seconds_of_the_budget_end_the_wait_for_a_silent_server():
    limits = Limits(budget=Budget(seconds=0.2))
    loop = evaluated(Silent(), limits=limits)
    async with asyncio.timeout(10):
        await finish(loop)
    assert loop.state.stop_reason is StopReason.BUDGET


# Replies that repeat themselves
CIRCLES = Reply(text="1. A count, and a count of the count he was.\n" * 20, finish="length")


async def test_a_draft_that_repeats_itself_up_to_the_limit_is_sampled_once_instead():
    """A small model at temperature 0 goes round in circles, and would again."""
    loop = await ended([CIRCLES, text("Hi"), judgement(9), *NO_FINDINGS], weak_editor=True)
    assert loop.state.text == "Hi"
    first, second = requests(loop, Stage.DRAFT)
    assert first.messages == second.messages
    assert first.temperature == 0 < second.temperature
    assert "Asked scripted again: the reply repeats itself up to the token limit." in (
        loop.state.warnings
    )


async def test_a_draft_that_repeats_itself_twice_ends_the_run_with_what_to_do():
    loop = await ended([CIRCLES, CIRCLES])
    assert loop.state.stop_reason is StopReason.FAILED
    assert loop.state.message == (
        "scripted gave no draft: the reply repeats itself up to the token limit. "
        "Word the task differently, or use a larger model."
    )


# What there is of a text whose call ends early
BEGUN = "def last(xs):\n    return"


class Stuttering:
    """A model whose first reply stops in its middle: it fails, or waits for ever."""

    name = "m"

    def __init__(self, fails: bool) -> None:
        self.fails, self.asked, self.silent = fails, 0, asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if request.purpose == Stage.CRITIQUE:
            yield Reply(text=READY)
            return
        self.asked += 1
        if self.asked == 1:
            yield Delta(text=f"I think.\n```python\n{BEGUN}")
            if self.fails:
                raise ServerFailed("It broke.")
            self.silent.set()
            await asyncio.Event().wait()
        yield Reply(text=code(f"{BEGUN} xs[-1]"))


async def broken_off(*, fails: bool) -> tuple[Session, list[Event]]:
    model, seen = Stuttering(fails), list[Event]()
    loop = built(CODE, model=model, clock=asyncio.get_running_loop().time)
    session = Session(loop, [lambda event, run: seen.append(event)])
    session.start()
    if not fails:
        await model.silent.wait()
        session.stop()
    await session.settle()
    return session, seen


@pytest.mark.parametrize("fails", [True, False], ids=["failure", "stop"])
async def test_it_is_kept_told_and_gone_once_the_text_is_written_anew(fails):
    session, seen = await broken_off(fails=fails)
    run = session.run
    assert run.stop_reason is (StopReason.FAILED if fails else StopReason.CANCELLED)
    assert run.unfinished.strip() == BEGUN
    assert fails or run.message == "You stopped it. What was written so far is kept."
    assert not run.iterations
    assert BEGUN in record_text(run)
    assert replay(seen).unfinished == run.unfinished
    session.decide(Continue())
    await session.settle()
    assert session.run.text == f"{BEGUN} xs[-1]"
    assert not session.run.unfinished


# A server that reads only the start or the end of a prompt: what it then says settles nothing
ENGLISH = "The quick brown fox jumps over the lazy dog, and nobody minds that it does. "
GERMAN = "Die Geschwindigkeitsbegrenzung auf Autobahnen bleibt eine Angelegenheit der Länder. "
PYTHON = "        self.accumulated_results[identifier] = compute_value(identifier, default=None)\n"
CHINESE = "敏捷的棕色狐狸跳过了懒惰的狗,没有人在意。"
ONCE = Limits(max_revisions=0, critique="always")
NUMBERS = "its server read only 2,050 of about"


def counted(reply: Any, tokens: int, cached: int | None = None) -> Any:
    """A reply whose server says that it read so many tokens."""

    def answer(request: Request) -> Reply:
        words = reply(request) if callable(reply) else reply
        usage = Usage(calls=1, prompt_tokens=tokens, cached_tokens=cached, completion_tokens=9)
        return Reply(text=words, usage=usage)

    return answer


OWN = {"prompts": Prompts(judge="Score it from 0 to 1.")}


@pytest.mark.parametrize(
    ("words", "reply", "options"),
    [*((words, READY, {}) for words in (ENGLISH, GERMAN, PYTHON, CHINESE)), (ENGLISH, "1.0", OWN)],
    ids=["en", "de", "code", "zh", "an evaluator"],
)
async def test_a_reader_that_read_half_a_text_passes_nothing(words, reply, options):
    draft = words * (16_000 // len(words))
    loop = await ended([counted(reply, 2_050)], draft=draft, limits=ONCE, **options)
    assert loop.state.iterations[0].verdict.outcome is Outcome.NOT_JUDGED
    assert sum(NUMBERS in one for one in loop.state.warnings) == 1
    assert loop.state.usage.calls == 1


async def test_a_writer_that_read_half_its_prompt_is_warned_about():
    task = TASK.replace(text=ENGLISH * 210)
    loop = await ended([counted(text("Hello"), 2_050), READY], task, limits=ONCE)
    assert loop.state.text == "Hello"
    assert sum(NUMBERS in one for one in loop.state.warnings) == 1


@pytest.mark.parametrize(
    ("tokens", "cached"),
    [(0, None), (0, 0), (3_300, None), (2_900, 0), (300, 3_000), (4, None), (9_000, 0)],
)
@pytest.mark.parametrize("words", [ENGLISH, PYTHON], ids=["en", "code"])
async def test_a_prompt_that_was_read_gives_no_warning(words, tokens, cached):
    draft = words * (13_000 // len(words))
    loop = await ended([counted(READY, tokens, cached)], draft=draft, limits=ONCE)
    assert loop.state.warnings == ()
    assert loop.state.stop_reason == "passed"
