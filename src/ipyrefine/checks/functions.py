"""Checks that are the user's own functions, and the findings of checks."""

import asyncio
import contextvars
import inspect
import json
import re
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from ipyrefine.core.model import Evidence, Finding, Outcome, Severity, Task
from ipyrefine.errors import CheckError, UsageError, describe

MAX_FINDINGS = 20  # of one check; a text with more of them needs another text, not a longer list
_FIELDS = ("problem", "quote", "fix", "severity", "criterion")
_VERDICTS = ("evaluation", "verdict", "done", "score")  # fields that say how a text did
_OPEN = re.compile(r"\b(?:None|Optional|Any|Awaitable|Coroutine)\b")  # in an annotation
_SHAPES = (
    "Return a bool, a score from 0 to 1, feedback (a string, empty for none), a list of findings, "
    "PASS, NEEDS_IMPROVEMENT or FAIL, a pair such as (False, feedback), or a dict with feedback "
    "and evaluation, done or score."
)


def blocking_finding(criterion: str, problem: str, quote: str = "") -> Finding:
    """Return a finding that keeps a text from passing.

    Args:
        criterion: what it falls under: a test, a rule, a place.
        problem: what is wrong.
        quote: the words of the text it is about, verbatim.
    """
    return remark(criterion, problem).model_copy(
        update={"severity": Severity.BLOCKING, "quote": quote}
    )


def remark(criterion: str, problem: str) -> Finding:
    """Return a finding that is shown, and keeps no text from passing.

    Args:
        criterion: what it falls under.
        problem: what the user should know.
    """
    return Finding(criterion=criterion, severity=Severity.MINOR, problem=problem, author="check")


def not_python(name: str, task: Task) -> Evidence:
    """Return what a check that runs Python shows of code in another language: nothing."""
    detail = f"This check runs Python, and the text is {task.language_name}."
    return Evidence(name=name, passed=None, detail=detail)


class _Result(NamedTuple):
    """A function's result in one shape.

    Attributes:
        passed: what it says itself; None where the score or the findings decide.
        score: the number in it, or None.
        feedback: what it wants changed: strings, dicts and findings.
        sentence: the detail where there is no feedback.
    """

    passed: bool | None = None
    score: float | None = None
    feedback: tuple[Any, ...] = ()
    sentence: str = "It passed."


class CallableCheck:
    """A function of the text (and of the task, if it takes one), sync or async.

    It may return:

    - a bool, or None for a pass (None is an error if the function is annotated to return more);
    - a score from 0 to 1, which passes from the target on;
    - a string of feedback, empty for none;
    - a list of findings: strings, `Finding` objects, or dicts with a ``problem`` and optionally
      ``quote``, ``fix``, ``severity`` and ``criterion``. With ``minor`` ones only it passes;
    - ``"PASS"``, ``"NEEDS_IMPROVEMENT"`` or ``"FAIL"``;
    - a pair of one of these words, a bool or a score, with feedback: ``("FAIL", "Too long.")``;
    - a dict, its JSON, or a pydantic object with ``evaluation`` (one of these words), ``done`` (a
      bool) or ``score``, and ``feedback``: a string or a list of findings.

    It may also fail the text by an AssertionError, or by an exception that comes of parsing the
    text or of running code in it; any other one stops the run. A verdict next to a score or
    feedback decides. It runs in this process, so that it may use the notebook's variables; one that
    is not async runs in a thread, one at a time.

    Args:
        function: the user's function, of the text, or of the text and the task.
        target: the score that passes.
        seconds: wall time it may take; None for no limit. A function that is not async goes on in
            its thread after that.
        decisive: whether a pass settles the verdict.

    Attributes:
        is_evaluator: says that it is a loop's evaluator, so that no model criticises as well.

    Raises:
        UsageError: it takes no text, or needs more than the text and the task.
    """

    is_evaluator = True

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        target: float = 0.8,
        seconds: float | None = 60.0,
        decisive: bool = True,
    ) -> None:
        self._label = str(getattr(function, "__name__", type(function).__name__))
        self.name = self._label
        self._function, self._target = function, target
        self._seconds, self._decisive = seconds, decisive
        self._takes_task = _takes_task(function, self._label)
        self._promise = _promised_value(function)

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Call the function and assess its result.

        Raises:
            UsageError: its result is of an unknown kind, or None against its annotation.
            CheckError: it broke.
        """
        start = monotonic()
        arguments = (text, task) if self._takes_task else (text,)
        result, failure = await self._call(text, arguments)
        evidence = self._evidence(False, failure) if failure else self._assess(result)
        return evidence.model_copy(update={"seconds": monotonic() - start})

    def _evidence(self, passed: bool, detail: str, **fields: Any) -> Evidence:
        decisive = self._decisive
        return Evidence(name=self.name, passed=passed, detail=detail, decisive=decisive, **fields)

    async def _call(self, text: str, arguments: tuple[Any, ...]) -> tuple[Any, str]:
        """Return the function's result, or what it says is wrong with the text.

        Raises:
            CheckError: it raised anything but what the text is to blame for.
        """
        timeout = asyncio.timeout(self._seconds)
        try:
            if inspect.iscoroutinefunction(self._function):
                async with timeout:
                    return await self._function(*arguments), ""
            async with _turn(), timeout:
                result, error = await _call_in_thread(self._function, arguments)
            if error is not None:
                raise error
            async with asyncio.timeout(self._seconds) as timeout:
                return (await result if inspect.isawaitable(result) else result), ""
        except KeyboardInterrupt:
            # Out of a task it would tear down the event loop; this ends the run and keeps it.
            raise asyncio.CancelledError from None
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # also an exit, which would end the kernel, and a skip
            if timeout.expired():
                return None, f"check {self._label} did not end within {self._seconds:.3g} s"
            if isinstance(error, AssertionError):
                return None, str(error) or f"An assertion failed: {_failing_line(error)}"
            if _blames_text(error, text):
                return None, f"check {self._label} raised {describe(error)}"
            raise CheckError(
                f"The check {self._label} raised {describe(error)}. Continue with the best text so "
                "far, or fix the check and run it again."
            ) from error

    def _assess(self, result: Any) -> Evidence:
        if result is None and self._promise:
            raise UsageError(
                f"The check {self._label} is annotated to return {self._promise}, but it returned "
                "None."
            )
        read = _Result(passed=True) if result is None else _read(result)
        if read is None or (read.score is not None and not 0 <= read.score <= 1):
            raise UsageError(f"The check {self._label} returned {result!r:.80}. {_SHAPES}")
        findings = [self._finding(item) for item in read.feedback]
        passed, score, sentence = read.passed, read.score, read.sentence
        if score is not None:
            sentence = f"It scored {score:.2f} of {self._target:.2f}."
            if passed is None:
                passed = score >= self._target
            elif passed and score < self._target:
                score = None  # its word decides, and a pass never scores below the target
        if passed is None:
            passed = not any(finding.severity is Severity.BLOCKING for finding in findings)
        elif passed:  # what comes with a pass does not take it back
            findings = [f.model_copy(update={"severity": Severity.MINOR}) for f in findings]
        # The worst first, as the first line stands for all of them in a sentence.
        findings.sort(key=lambda finding: finding.severity is not Severity.BLOCKING)
        lines = list(map(_format_finding, findings[:MAX_FINDINGS]))
        if len(findings) > MAX_FINDINGS:
            lines.append(f"… and {len(findings) - MAX_FINDINGS} more.")
        if not lines or read.score is not None:
            lines.append(sentence)
        findings = findings[:MAX_FINDINGS]
        return self._evidence(passed, "\n".join(lines), score=score, findings=tuple(findings))

    def _finding(self, item: "str | dict[str, Any] | Finding") -> Finding:
        if isinstance(item, Finding):
            return item.model_copy(update={"id": "", "author": "check"})
        fields = {"problem": item} if isinstance(item, str) else item
        defaults = {"criterion": self.name, "severity": Severity.BLOCKING}
        try:
            return Finding.model_validate({**defaults, **fields, "author": "check"})
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"The check {self._label} returned a finding whose {field} cannot be used: "
                f"{first['msg'].lower()}. A finding may have {', '.join(_FIELDS)}."
            ) from None


def _read(result: Any) -> _Result | None:
    """Return what a result says, or None if it has no known shape."""
    result = _plain(result)
    if isinstance(result, dict):
        return _read_fields(result)
    if (verdict := _read_verdict(result)) is not None:
        return verdict
    if isinstance(result, list | tuple) and len(result) == 2:
        verdict, feedback = _read_verdict(_plain(result[0])), _read_feedback(result[1])
        if verdict is not None and feedback is not None:
            return verdict._replace(feedback=feedback)
    feedback = None if isinstance(result, Finding) else _read_feedback(result)
    return None if feedback is None else _Result(feedback=feedback)


def _plain(result: Any) -> Any:
    """Return a number or bool of an array library, an object's fields or JSON as plain data."""
    if getattr(result, "shape", None) == () and hasattr(result, "tolist"):
        return result.tolist()
    if hasattr(result, "model_dump") and not isinstance(result, Finding):
        return result.model_dump()
    if isinstance(result, str) and result.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            fields = json.loads(result)
            return fields if any(name in fields for name in _VERDICTS) else result
    return result


def _read_fields(fields: dict[str, Any]) -> _Result | None:
    """Return what a dict says: its word, or ``done``, before its score."""
    named = {name: _plain(fields[name]) for name in _VERDICTS if fields.get(name) is not None}
    feedback, score = _read_feedback(fields.get("feedback")), named.pop("score", None)
    words = [_read_verdict(value) for value in named.values()]
    if any(word is None or word.passed is None for word in words) or feedback is None:
        return None
    if (not words and score is None) or not (score is None or _is_number(score)):
        return None
    first = words[0] if words and words[0] else _Result()
    if first.passed is False and list(named) == ["done"]:
        first = first._replace(sentence="It is not done.")
    return first._replace(score=None if score is None else float(score), feedback=feedback)


def _read_verdict(value: Any) -> _Result | None:
    """Return what a bool, a number or one of the words for an outcome says."""
    if _is_number(value):
        return _Result(score=float(value))
    word = Outcome.read(getattr(value, "value", value)) if isinstance(value, str) else None
    if not (word or isinstance(value, bool)):
        return None
    passed = word is Outcome.PASS if word else bool(value)
    return _Result(
        passed=passed, sentence="It passed." if passed else f"It returned {word or value}."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_feedback(feedback: Any) -> tuple[Any, ...] | None:
    """Return the items of feedback without empty ones, or None if it is not feedback."""
    if feedback is None:
        return ()
    items = feedback if isinstance(feedback, list | tuple) else [feedback]
    if not all(isinstance(item, str | dict | Finding) for item in items):
        return None
    return tuple(item for item in items if not isinstance(item, str) or item.strip())


def _format_finding(finding: Finding) -> str:
    place = f' (at "{finding.quote}")' if finding.quote else ""
    fix = f" Fix: {finding.fix}" if finding.fix else ""
    return f"{finding.problem}{place}{fix}"


def _failing_line(error: AssertionError) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line or "") if frames else ""


def _blames_text(error: BaseException, text: str) -> bool:
    """Return whether an exception comes of the text: of parsing it, or of code in it that ran."""
    if isinstance(error, json.JSONDecodeError):
        return bool(error.doc.strip()) and error.doc.strip() in text
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, SyntaxError) or any(f.filename == "<string>" for f in frames)


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def _turn() -> asyncio.Lock:
    """Return the lock that lets one function run at a time, as they may share state.

    A function that is left behind by a stop or a time limit has no turn any more.
    """
    return _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Lock())


async def _call_in_thread(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Any, BaseException | None]:
    """Return a function's result, or what it raised, while the event loop goes on.

    Nothing can end a thread. One that nobody waits for any more keeps no process from its end.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def end(outcome: tuple[Any, BaseException | None]) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def call() -> None:
        try:
            outcome: tuple[Any, BaseException | None] = function(*arguments), None
        except BaseException as error:
            outcome = None, error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(end, outcome)

    context = contextvars.copy_context()
    if sys.platform == "emscripten":  # a browser's Python has no threads
        context.run(call)
    else:
        threading.Thread(target=context.run, args=(call,), daemon=True).start()
    return await ended


_TASKS = ("task", "context")  # names of an optional second argument that is the task


def _takes_task(function: Callable[..., Any], name: str) -> bool:
    """Return whether the second argument is the task, not an option with its own default."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    second = [p for p in signature.parameters.values() if p.kind in kinds][1:2]
    takes = bool(second) and (second[0].default is second[0].empty or second[0].name in _TASKS)
    try:
        signature.bind(*(("", None) if takes else ("",)))
    except TypeError:
        raise UsageError(
            f"The check {name} cannot be called with the text, or with the text and the task."
        ) from None
    return takes


def _promised_value(function: Callable[..., Any]) -> str:
    """Return what a function is annotated to return; empty if that may be None or is unknown."""
    try:
        annotation = inspect.signature(function, eval_str=True).return_annotation
    except Exception:  # no signature, or an annotation with names that do not exist at run time
        return ""
    words = inspect.formatannotation(annotation)
    open_ended = annotation in (inspect.Signature.empty, object) or _OPEN.search(words)
    return "" if open_ended else words
