"""What a user's own function may take and say."""

import asyncio
import functools
import sys

import pytest

from ipyrefine.checks.functions import CallableCheck
from ipyrefine.errors import UsageError
from ipyrefine.loop.records import Task

TASK = Task(text="t")


@pytest.mark.parametrize(
    ("result", "passed", "score"),
    [
        (True, True, 1.0),
        (False, False, 0.0),
        (None, True, 1.0),
        ("", True, 1.0),
        ("too long", False, 0.0),
        ([], True, 1.0),
        (["a", "b"], False, 0.0),
        (0.8, True, 0.8),
        (0.79, False, 0.79),
        (1, True, 1.0),
    ],
)
async def test_a_result_is_read(result, passed, score):
    evidence = await CallableCheck(lambda text: result)("x", TASK)
    assert (evidence.passed, evidence.score, evidence.decisive) == (passed, score, True)


@pytest.mark.parametrize("result", [1.5, float("nan"), -1, {}, object(), [1], b"x"])
async def test_no_result_is_an_error_that_names_the_function(result):
    def tone(text):
        return result

    with pytest.raises(UsageError, match="tone returned"):
        await CallableCheck(tone)("x", TASK)


async def test_the_task_is_given_to_a_function_that_wants_it_and_to_no_other():
    seen = []
    for function in (
        lambda text, task: seen.append(task),
        lambda text, task=None: seen.append(task),
        lambda text, strict=True: seen.append(strict),
        lambda *texts: seen.append(len(texts)),
        functools.partial(lambda x, text: seen.append(x), 7),
    ):
        await CallableCheck(function)("x", TASK)
    assert seen == [TASK, TASK, True, 1, 7]


@pytest.mark.parametrize("function", [lambda: True, lambda a, b, c: True])
def test_a_function_that_cannot_take_the_text_is_refused_at_once(function):
    with pytest.raises(UsageError, match="cannot be called with the text"):
        CallableCheck(function)


async def test_an_assertion_fails_with_its_message_or_its_words():
    def named(text):
        assert len(text) < 1, "too long"

    def silent(text):
        if len(text) > 0:
            raise AssertionError

    assert (await CallableCheck(named)("x", TASK)).detail.startswith("too long")
    assert "raise AssertionError" in (await CallableCheck(silent)("x", TASK)).detail


@pytest.mark.parametrize(
    ("broken", "said"),
    [(lambda text: text + 1, "raised TypeError"), (lambda text: sys.exit(2), "raised SystemExit")],
)
async def test_a_function_that_breaks_is_evidence(broken, said):
    evidence = await CallableCheck(broken)("x", TASK)
    assert evidence.passed is False
    assert said in evidence.detail


async def test_an_async_function_is_awaited_and_limited():
    async def good(text):
        return True

    async def slow(text):
        await asyncio.sleep(30)

    assert (await CallableCheck(good)("x", TASK)).passed
    evidence = await CallableCheck(slow, seconds=0.1)("x", TASK)
    assert evidence.detail == "check slow did not end within 0.1 s"


async def test_cancelling_is_not_swallowed():
    async def slow(text):
        await asyncio.sleep(30)

    task = asyncio.create_task(CallableCheck(slow)("x", TASK))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
