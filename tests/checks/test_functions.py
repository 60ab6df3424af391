"""What a user's own function may take and say."""

import asyncio
import contextlib
import contextvars
import functools
import json
import sys
import threading
import time
from collections.abc import Awaitable
from typing import Any

import pytest
from pydantic import BaseModel

import ipyrefine
from ipyrefine import api
from ipyrefine.checks.functions import CallableCheck
from ipyrefine.core.model import Finding, Limits, Outcome, StopReason, Task
from ipyrefine.errors import CheckError, UsageError
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.session import Session

TASK = Task(text="t")


class Feedback(BaseModel):
    feedback: list[str]
    done: bool


@pytest.mark.parametrize(
    ("result", "passed", "score"),
    [
        (True, True, None),
        (False, False, None),
        (None, True, None),
        ("", True, None),
        (" \n", True, None),
        ("too long", False, None),
        ("PASS", True, None),
        ("\nPASS\n", True, None),
        (Outcome.PASS, True, None),
        ("FAIL", False, None),
        ("NEEDS_IMPROVEMENT", False, None),
        ("Needs improvement", False, None),
        ([], True, None),
        (["a", "b"], False, None),
        (0.8, True, 0.8),
        (0.79, False, 0.79),
        (1, True, 1.0),
        (("PASS", ""), True, None),
        (("FAIL", "too long"), False, None),
        ((True, "nice"), True, None),
        ((False, ["a", "b"]), False, None),
        ((0.9, ""), True, 0.9),
        ((0.5, ["a"]), False, 0.5),
        ({"evaluation": "PASS", "feedback": ""}, True, None),
        ({"evaluation": "NEEDS_IMPROVEMENT", "feedback": "a"}, False, None),
        ('{"evaluation": "FAIL", "feedback": "a"}', False, None),
        ({"done": True, "feedback": []}, True, None),
        ({"done": False, "feedback": ["a", "b"]}, False, None),
        (Feedback(done=True, feedback=["a"]), True, None),
        ({"score": 0.5, "feedback": "a"}, False, 0.5),
        ({"score": 0.9, "feedback": "a"}, True, 0.9),
        ({"score": 1}, True, 1.0),
        ({"evaluation": "FAIL", "score": 0.9}, False, 0.9),
        ({"evaluation": "PASS", "score": 0.1}, True, None),
        ({"evaluation": "PASS", "score": 0.9, "thoughts": "…"}, True, 0.9),
    ],
)
async def test_a_result_is_read(result, passed, score):
    evidence = await CallableCheck(lambda text: result)("x", TASK)
    assert (evidence.passed, evidence.score, evidence.decisive) == (passed, score, True)


@pytest.mark.parametrize(
    ("result", "detail", "severities"),
    [
        ("too long", "too long", ["blocking"]),
        ((False, ""), "It returned False.", []),
        (("FAIL", None), "It returned FAIL.", []),
        (("FAIL", ["a", "b"]), "a\nb", ["blocking", "blocking"]),
        ({"done": False}, "It is not done.", []),
        ({"done": False, "feedback": ["a", "", "b"]}, "a\nb", ["blocking", "blocking"]),
        ({"done": True, "feedback": ["a"]}, "a", ["minor"]),
        ({"score": 0.5, "feedback": "a"}, "a\nIt scored 0.50 of 0.80.", ["blocking"]),
        ({"score": 0.9, "feedback": "a"}, "a\nIt scored 0.90 of 0.80.", ["minor"]),
        ({"score": 0.5}, "It scored 0.50 of 0.80.", []),
        ((False, [{"problem": "a", "severity": "minor"}, "b"]), "b\na", ["blocking", "minor"]),
    ],
)
async def test_feedback_becomes_findings(result, detail, severities):
    evidence = await CallableCheck(lambda text: result)("x", TASK)
    assert evidence.detail == detail
    assert [finding.severity for finding in evidence.findings] == severities


async def test_feedback_is_followed_from_text_to_text():
    replies = iter(
        [
            {"done": False, "feedback": ["Add a title.", "Name the author."]},
            {"done": False, "feedback": ["Name the author.", "Cut the second paragraph."]},
            {"done": False, "feedback": ["Add a title."]},
            {"done": True, "feedback": []},
        ]
    )
    texts = ["one", "two", "three", "four"]
    run = await ipyrefine.refine(
        "Write.",
        profile="prose",
        model=ScriptedModel([f"<text>\n{text}\n</text>" for text in texts]),
        checks=[lambda text: next(replies)],
        journal=False,
    )
    assert [one.parent for one in run.iterations] == [None, 0, 1, 2]
    assert [{f.id: str(f.status) for f in one.findings} for one in run.iterations] == [
        {"f1": "open", "f2": "open"},
        {"f1": "resolved", "f2": "open", "f3": "open"},
        {"f1": "regressed", "f2": "resolved", "f3": "resolved"},
        {"f1": "resolved", "f2": "resolved", "f3": "resolved"},
    ]
    assert (run.text, run.usage.calls, run.score_history) == ("four", 4, (0.0, 0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    "result",
    [
        *(1.5, float("nan"), -1, {}, object(), [1], b"x", (0.5, 0.7), (True, 1), (True, "", "")),
        *({"score": 7}, {"score": True}, {"score": "high"}, {"score": float("nan")}, (1.5, "a")),
        *({"evaluation": "GOOD"}, {"done": 0.5}, {"done": False, "feedback": 3}, {"feedback": "a"}),
        {"problem": "a"},
    ],
)
async def test_no_result_is_an_error_that_names_the_function(result):
    def tone(text):
        return result

    with pytest.raises(UsageError, match=r"tone returned .* Return a bool, a score"):
        await CallableCheck(tone)("x", TASK)


async def returns_later(text) -> float:
    return None


def returns_in_time(text) -> Awaitable[bool]:
    return returns_later(text)


def returns_quoted(text) -> "tuple[str, str]":
    return None


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (returns_later, "return float,"),
        (returns_in_time, "return bool,"),
        (returns_quoted, "return tuple"),
        (functools.partial(returns_quoted), "return tuple"),
    ],
)
async def test_nothing_from_a_function_that_promises_a_value_is_an_error(function, words):
    with pytest.raises(UsageError, match=f"{words}.* returned None"):
        await CallableCheck(function)("x", TASK)


def returns_nothing(text) -> None:
    return None


def returns_perhaps(text) -> "float | None":
    return None


def returns_anything(text) -> Any:
    return None


@pytest.mark.parametrize("function", [returns_nothing, returns_perhaps, returns_anything])
async def test_nothing_is_a_pass_where_the_annotation_allows_it(function):
    assert (await CallableCheck(function)("x", TASK)).passed


def test_a_function_is_an_evaluator():
    assert CallableCheck(returns_nothing).is_evaluator


def finding(problem, **parts):
    return Finding(id="f1", criterion="x", severity="blocking", problem=problem, **parts)


@pytest.mark.parametrize(
    ("result", "passed", "detail"),
    [
        ([{"problem": "dull"}], False, "dull"),
        ([finding("dull", quote="the"), "long"], False, 'dull (at "the")\nlong'),
        ([{"problem": "a", "severity": "minor"}, "b"], False, "b\na"),
        ([{"problem": "dull", "fix": "Cut.", "severity": "minor"}], True, "dull Fix: Cut."),
    ],
)
async def test_findings_are_told_the_worst_first(result, passed, detail):
    evidence = await CallableCheck(lambda text: result)("the text", TASK)
    assert (evidence.passed, evidence.detail) == (passed, detail)
    lines = detail.splitlines()
    assert all(line.startswith(f.problem) for line, f in zip(lines, evidence.findings, strict=True))


async def test_minor_findings_alone_pass_and_the_longest_list_is_cut():
    result = [{"problem": f"{n}", "severity": "minor"} for n in range(99)]
    evidence = await CallableCheck(lambda text: result, target=0.95)("x", TASK)
    assert evidence.passed
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
        lambda text, context: seen.append(context),
        lambda text, context=None: seen.append(context),
        lambda text, strict=True: seen.append(strict),
        lambda *texts: seen.append(len(texts)),
        functools.partial(lambda x, text: seen.append(x), 7),
    ):
        await CallableCheck(function)("x", TASK)
    assert seen == [TASK, TASK, TASK, TASK, True, 1, 7]


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


class NoException(BaseException):
    """What neither a check nor the code it calls usually raises."""


def raises(error):
    def score(text):
        raise error

    return score


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (raises(ConnectionError("no route")), "score raised ConnectionError: no route"),
        (raises(TimeoutError("too slow")), "score raised TimeoutError: too slow"),
        (raises(StopIteration()), "score raised StopIteration"),
        (lambda text: nowhere, "raised NameError"),  # type: ignore[name-defined]  # noqa: F821
        (lambda text: text + 1, "raised TypeError"),
        (lambda text: json.loads("{no text}"), "raised JSONDecodeError"),
        (lambda text: sys.exit(2), "raised SystemExit"),
        (raises(NoException("x")), "raised NoException: x"),
        (lambda text: pytest.skip("x"), "raised Skipped: x"),
        (lambda text: pytest.exit("x", returncode=0), "raised Exit: x"),
    ],
)
async def test_a_function_that_breaks_stops_the_run_with_the_best_text(broken, message):
    model = ScriptedModel(["<text>\nHello\n</text>"])
    refinement = api.build("Greet.", model=model, checks=[CallableCheck(broken)])
    run = await refinement.run()
    assert (run.stop_reason, run.text) == (StopReason.FAILED, "Hello")
    assert message in run.message
    assert isinstance(refinement.error, CheckError)
    assert len(model.requests) == 1


async def test_an_evaluator_that_breaks_on_a_revision_leaves_the_text_before_it():
    scores = iter([0.5])

    async def score(text):
        return next(scores, None) or raises(ConnectionError("no route"))(text)

    model = ScriptedModel([f"<text>\n{text}\n</text>" for text in ("one", "two", "three")])
    run = await api.build("Greet.", model=model, checks=[CallableCheck(score)]).run()
    assert (run.stop_reason, run.text, run.score) == (StopReason.FAILED, "one", 0.5)
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("function", "text", "message"),
    [
        (lambda text: exec(text, {}), "1 / 0", "ZeroDivisionError: division by zero"),
        (lambda text: exec(text, {}), "raise SystemExit(2)", "SystemExit: 2"),
        (lambda text: exec(text, {}), "def f(:", "SyntaxError"),
        (lambda text: json.loads(text)["n"] > 1, "{n: 3}", "JSONDecodeError"),
    ],
)
async def test_an_exception_that_the_text_is_to_blame_for_fails_it(function, text, message):
    evidence = await CallableCheck(function)(text, TASK)
    assert evidence.passed is False
    assert f"raised {message}" in evidence.detail


async def test_an_async_function_is_awaited_and_limited():
    async def good(text):
        return True

    async def slow(text):
        await asyncio.sleep(30)

    assert (await CallableCheck(good)("x", TASK)).passed
    evidence = await CallableCheck(slow, seconds=0.1)("x", TASK)
    assert evidence.detail == "check slow did not end within 0.1 s"


@pytest.mark.parametrize("wait", [0.0, 30.0], ids=["computes", "waits"])
async def test_a_sync_function_that_hangs_is_evidence(wait):
    released = threading.Event()

    def slow(text):
        while not released.wait(wait):
            with contextlib.suppress(Exception):
                sum(range(1000))

    evidence = await CallableCheck(slow, seconds=0.2)("x", TASK)
    released.set()
    assert evidence.detail == "check slow did not end within 0.2 s"
    assert evidence.seconds < 5


async def test_the_event_loop_goes_on_beside_a_sync_function():
    released = threading.Event()
    checking = asyncio.create_task(CallableCheck(lambda text: released.wait(5))("x", TASK))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.01, released.set)
    assert (await checking).passed


async def test_evidence_stands_in_the_order_of_the_checks_whichever_ends_first():
    released = threading.Event()

    def slow(text):
        return released.wait(5) and "Too curt."

    async def fast(text):
        asyncio.get_running_loop().call_later(0.05, released.set)
        return "Too dull."

    model = ScriptedModel(["<text>\nHello\n</text>"])
    checks, limits = [CallableCheck(slow), CallableCheck(fast)], Limits(max_revisions=0)
    run = await api.build("Greet.", model=model, checks=checks, limits=limits).run()
    assert [one.name for one in run.iterations[0].evidence] == ["slow", "fast"]
    assert run.verdict.because.line == "Too curt."


async def test_a_run_can_be_stopped_during_a_sync_function():
    started, released = threading.Event(), threading.Event()

    def slow(text):
        started.set()
        return released.wait(30)

    model = ScriptedModel(["<text>\nHello\n</text>"])
    session = Session(api.build("Greet.", model=model, checks=[CallableCheck(slow)]), [])
    session.start()
    assert await asyncio.to_thread(started.wait, 5)
    session.stop()
    await session.settle()
    assert (session.run.stop_reason, session.run.text) == (StopReason.CANCELLED, "Hello")
    released.set()


async def test_one_function_runs_at_a_time_and_one_left_behind_holds_up_no_other():
    running, most = 0, 0
    hanging = threading.Event()

    def count(text):
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.01)
        running -= 1
        return True

    evidence = await CallableCheck(lambda text: hanging.wait(30), seconds=0.01)("x", TASK)
    assert evidence.passed is False
    await asyncio.gather(*(CallableCheck(count)("x", TASK) for _ in range(5)))
    assert most == 1
    hanging.set()


async def test_a_sync_function_sees_its_context_and_may_run_a_loop_of_its_own():
    place = contextvars.ContextVar("place", default="")
    place.set("here")

    async def later():
        return place.get() == "here"

    assert (await CallableCheck(lambda text: asyncio.run(later()))("x", TASK)).passed


async def test_a_sync_function_may_give_what_is_awaited():
    async def later():
        return True

    assert (await CallableCheck(lambda text: later())("x", TASK)).passed


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
