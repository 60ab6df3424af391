"""What a user's own function may take and say."""

import asyncio
import contextlib
import functools
import os
import re
import signal
import sys
import time

import pytest

from ipyrefine.checks.functions import CallableCheck
from ipyrefine.core.model import Finding, Task
from ipyrefine.errors import UsageError

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
        (["a", "b"], False, 1 / 3),
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


def finding(problem, **parts):
    return Finding(id="f1", criterion="x", severity="blocking", problem=problem, **parts)


@pytest.mark.parametrize(
    ("result", "passed", "score", "detail"),
    [
        ([{"problem": "dull"}], False, 1 / 2, "dull"),
        ([finding("dull", quote="the"), "long"], False, 1 / 3, 'dull (at "the")\nlong'),
        ([{"problem": "a", "severity": "minor"}, "b"], False, 1 / 3, "b\na"),
        ([{"problem": "dull", "fix": "Cut.", "severity": "minor"}], True, 0.9, "dull Fix: Cut."),
    ],
)
async def test_findings_are_told_the_worst_first(result, passed, score, detail):
    evidence = await CallableCheck(lambda text: result)("the text", TASK)
    assert (evidence.passed, evidence.detail) == (passed, detail)
    assert evidence.score == pytest.approx(score)
    lines = detail.splitlines()
    assert all(line.startswith(f.problem) for line, f in zip(lines, evidence.findings, strict=True))


async def test_minor_findings_alone_never_pull_the_score_below_the_target():
    result = [{"problem": f"{n}", "severity": "minor"} for n in range(99)]
    evidence = await CallableCheck(lambda text: result, target=0.95)("x", TASK)
    assert evidence.passed
    assert evidence.score >= 0.95
    assert len(evidence.findings) == 20
    assert evidence.detail.endswith("… and 79 more.")


@pytest.mark.parametrize(
    ("item", "message"),
    [({}, "problem cannot be used"), ({"problem": "x", "severity": "bad"}, "severity cannot")],
)
async def test_a_finding_that_is_none_is_an_error_that_names_its_part(item, message):
    def tone(text):
        return [item]

    with pytest.raises(UsageError, match=f"tone returned a finding whose {message}"):
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
    ("broken", "message"),
    [(lambda text: text + 1, "raised TypeError"), (lambda text: sys.exit(2), "raised SystemExit")],
)
async def test_a_function_that_breaks_is_evidence(broken, message):
    evidence = await CallableCheck(broken)("x", TASK)
    assert evidence.passed is False
    assert message in evidence.detail


async def test_an_async_function_is_awaited_and_limited():
    async def good(text):
        return True

    async def slow(text):
        await asyncio.sleep(30)

    assert (await CallableCheck(good)("x", TASK)).passed
    evidence = await CallableCheck(slow, seconds=0.1)("x", TASK)
    assert evidence.detail == "check slow did not end within 0.1 s"


posix = pytest.mark.skipif(sys.platform == "win32", reason="there is no alarm")


def busy():
    while True:
        with contextlib.suppress(Exception):
            sum(range(1000))


@posix
@pytest.mark.parametrize(
    "hang", [busy, lambda: time.sleep(30), lambda: re.search("^(a+)+$", "a" * 60 + "!")]
)
async def test_a_sync_function_that_hangs_is_evidence(hang):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)

    def slow(text):
        hang()

    evidence = await CallableCheck(slow, seconds=0.2)("x", TASK)
    assert evidence.detail == "check slow did not end within 0.2 s"
    assert evidence.seconds < 5
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == before


@posix
async def test_an_interrupt_ends_a_sync_function_and_cancels_the_run():
    noted = []
    before = signal.signal(signal.SIGINT, lambda *_: noted.append(True))  # as a kernel's

    def slow(text):
        os.kill(os.getpid(), signal.SIGINT)
        busy()

    try:
        with pytest.raises(asyncio.CancelledError):
            await CallableCheck(slow)("x", TASK)
        os.kill(os.getpid(), signal.SIGINT)
        assert noted == [True]
    finally:
        signal.signal(signal.SIGINT, before)


async def test_a_function_runs_outside_of_the_main_thread_too():
    run = asyncio.to_thread(lambda: asyncio.run(CallableCheck(lambda text: True)("x", TASK)))
    assert (await run).passed


async def test_cancelling_is_not_swallowed():
    async def slow(text):
        await asyncio.sleep(30)

    task = asyncio.create_task(CallableCheck(slow)("x", TASK))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
