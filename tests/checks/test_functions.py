"""What a user's own function may take and say."""

import asyncio
import contextlib
import functools
import json
import sys
import threading
import time

import pytest

from ipyrefine import api
from ipyrefine.checks.functions import CallableCheck
from ipyrefine.core.model import StopReason, Task
from ipyrefine.errors import CheckError, UsageError
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.session import Session

TASK = Task(text="t")


RESULTS = [
    *((True, True, None), (False, False, None), ("PASS", True, None), ("FAIL", False, None)),
    *(("NEEDS_IMPROVEMENT", False, None), ([], True, None), (["a", "b"], False, None)),
    *((0.8, True, 0.8), (1, True, 1.0), (("FAIL", "too long"), False, None)),
    *(((False, ["a", "b"]), False, None), ((0.9, ""), True, 0.9), ("FAIL: too long", False, None)),
    *((1e-5, False, 1e-5), ({"speed": "PASS", "style": "PASS"}, True, None)),
    ('{"evaluation": "FAIL", "feedback": "a"}', False, None),
    ({"evaluation": "FAIL", "score": 0.9}, False, 0.9),
    ({"evaluation": "PASS", "score": 0.9, "thoughts": "…"}, True, 0.9),
]


@pytest.mark.parametrize(("result", "passed", "score"), RESULTS)
async def test_a_result_is_read(result, passed, score):
    evidence = await CallableCheck(lambda text: result)("x", TASK)
    assert (evidence.passed, evidence.score, evidence.decisive) == (passed, score, True)


@pytest.mark.parametrize(
    ("result", "detail", "blocking"),
    [
        ("too long", "too long", [True]),
        (("FAIL", None), "It returned FAIL.", []),
        ({"done": False}, "It returned NEEDS_IMPROVEMENT.", []),
        ({"done": False, "feedback": ["a", "", "b"]}, "a\nb", [True, True]),
        ({"score": 0.5, "feedback": "a"}, "a\nIt scored 0.50 of 0.80.", [True]),
        ({"done": False, "missing": ["a", "b"]}, "missing: a, b", [True]),
        ((False, [{"problem": "a", "severity": "minor"}, "b"]), "b\na", [True, False]),
    ],
)
async def test_feedback_becomes_findings(result, detail, blocking):
    evidence = await CallableCheck(lambda text: result)("x", TASK)
    assert (evidence.passed, evidence.shows) == (False, detail)
    assert [one.blocking for one in evidence.points] == blocking


@pytest.mark.parametrize(
    "result",
    [
        *(1.5, float("nan"), -1, {}, object(), [1], (0.5, 0.7), (True, 1), (True, "", "")),
        *("PASS, but slow", {"evaluation": "PASS: no"}),
        *({"score": True}, {"score": 7}, {"evaluation": "GOOD"}, {"done": 0.5}, {"problem": "a"}),
    ],
)
async def test_no_result_is_an_error_that_names_the_function(result):
    def tone(text):
        return result

    with pytest.raises(UsageError, match=r"tone returned .* Return a bool, a score"):
        await CallableCheck(tone)("x", TASK)


async def returns_later(text) -> float: ...


def returns_quoted(text) -> "tuple[str, str]": ...


def returns_perhaps(text) -> "float | None": ...


def returns_nothing(text) -> None: ...


def asserts(text):
    assert text


@pytest.mark.parametrize(
    ("function", "passes"),
    [
        *((returns_later, False), (returns_quoted, False), (returns_perhaps, False)),
        *((lambda text: None, False), (returns_nothing, True), (asserts, True)),
    ],
)
async def test_nothing_is_an_error_of_a_function_unless_it_says_so_or_objects_by_raising(
    function, passes
):
    if passes:
        assert (await CallableCheck(function)("x", TASK)).passed
    else:
        with pytest.raises(UsageError, match=r"returned None\. Return a bool"):
            await CallableCheck(function)("x", TASK)


async def test_minor_findings_alone_pass_and_the_longest_list_is_cut():
    result = [{"problem": f"{n}", "severity": "minor"} for n in range(99)]
    evidence = await CallableCheck(lambda text: result, target=0.95)("x", TASK)
    assert evidence.passed
    assert len(evidence.points) == 20
    assert evidence.shows.endswith("… and 79 more.")


@pytest.mark.parametrize("item", [{}, {"problem": "x", "severity": "bad"}, {"problem": 1}])
async def test_what_is_not_a_finding_is_an_error(item):
    def tone(text):
        return [item]

    with pytest.raises(UsageError, match="tone returned a finding that cannot be used"):
        await CallableCheck(tone)("x", TASK)


async def test_the_task_is_passed_to_a_function_that_wants_it_and_to_no_other():
    seen = []
    for function in (
        lambda text, task: not seen.append(task),
        lambda text, task=None: not seen.append(task),
        lambda text, context: not seen.append(context),
        lambda text, context=None: not seen.append(context),
        lambda text, strict=True: not seen.append(strict),
        lambda *texts: not seen.append(len(texts)),
        functools.partial(lambda x, text: not seen.append(x), 7),
    ):
        await CallableCheck(function)("x", TASK)
    assert seen == [TASK, TASK, TASK, TASK, True, 1, 7]
    said = TASK.replace(feedback=("It lacks warmth.",))
    await CallableCheck(lambda text, context: not seen.append(context.text))("x", said)
    assert seen[-1] == f"{TASK.text}\n\nIt lacks warmth."


@pytest.mark.parametrize(
    "function",
    [
        *(lambda task, text: (text, task), lambda question, answer: (answer, question)),
        *(lambda original_task, final_answer: (final_answer, original_task),),
        *(lambda task, x: (x, task), lambda a, b: (a, b)),
        *(lambda response, context=None: (response, context),),
        *(lambda question, answer, strict=True: (answer, question),),
    ],
)
async def test_text_and_task_are_told_apart_by_the_names_of_the_parameters(function):
    seen = []

    @functools.wraps(function)
    def evaluate(*args, **named):
        seen.append(function(*args, **named))
        return True

    await CallableCheck(evaluate)("x", TASK)
    assert seen == [("x", TASK)]


@pytest.mark.parametrize("function", [lambda task: task == "x", lambda prompt: prompt == "x"])
async def test_a_single_parameter_is_the_text_whatever_its_name(function):
    assert (await CallableCheck(function)("x", TASK)).passed


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

    assert (await CallableCheck(named)("x", TASK)).shows.startswith("too long")
    assert "raise AssertionError" in (await CallableCheck(silent)("x", TASK)).shows


def raises(error):
    def score(text):
        raise error

    return score


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (raises(ConnectionError("no route")), "score raised ConnectionError: no route"),
        (lambda text: nowhere, "raised NameError"),  # type: ignore[name-defined]  # noqa: F821
        (lambda text: sys.exit(2), "raised SystemExit"),
        (lambda text: pytest.skip("x"), "raised Skipped: x"),
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
    assert f"raised {message}" in evidence.shows


@pytest.mark.parametrize("wait", [0.0, 30.0], ids=["computes", "waits"])
async def test_a_sync_function_that_hangs_is_evidence(wait):
    released = threading.Event()

    def slow(text):
        while not released.wait(wait):
            with contextlib.suppress(Exception):
                sum(range(1000))

    evidence = await CallableCheck(slow, seconds=0.2)("x", TASK)
    released.set()
    assert evidence.shows == "check slow did not end within 0.2 s"


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
