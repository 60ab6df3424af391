"""Checks that are the user's own functions, and the findings of checks."""

import asyncio
import inspect
import math
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError

from ipyrefine.core.model import Evidence, Finding, Severity, Task
from ipyrefine.errors import UsageError

MAX_FINDINGS = 20  # of one check; a text with more of them needs another text, not a longer list
_FIELDS = ("problem", "quote", "fix", "severity", "criterion")


def blocking_finding(criterion: str, problem: str, quote: str = "") -> Finding:
    """Return a finding of a check that keeps a text from passing.

    Args:
        criterion: what it falls under: a test, a rule, a place.
        problem: what is wrong.
        quote: the words of the text it is about, verbatim.
    """
    return Finding(
        criterion=criterion,
        severity=Severity.BLOCKING,
        quote=quote,
        problem=problem,
        author="check",
    )


class _Assessment(NamedTuple):
    """What a function's result means; its fields are those of `Evidence`."""

    passed: bool
    score: float
    detail: str
    findings: tuple[Finding, ...] = ()


class CallableCheck:
    """A function of the text (and of the task, if it takes one), sync or async.

    It may return a bool, a score 0..1, a message (empty for a pass), a list of findings, or None;
    or raise AssertionError. A finding is a message, a `Finding`, or a dict with its ``problem`` and
    optionally ``quote``, ``fix``, ``severity`` and ``criterion``. Each finding is tracked from
    draft to revision, and a text with ``minor`` ones only passes. The function runs in this
    process, so that it may use the notebook's variables.

    Args:
        function: the user's function.
        target: the score that passes.
        seconds: wall time it may take; None for no limit. For a sync function the limit holds on
            POSIX and in the main thread only (see `time_limit`).
        decisive: whether a pass settles the verdict without a judge.

    Raises:
        UsageError: it takes no text, or needs more than the text and the task.
    """

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

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Call the function and assess its result.

        Raises:
            UsageError: its result is of an unknown kind.
        """
        start = monotonic()
        result, failure = await self._call((text, task) if self._takes_task else (text,))
        assessment = _Assessment(False, 0.0, failure) if failure else self._assess(result)
        return Evidence(
            name=self.name,
            seconds=monotonic() - start,
            decisive=self._decisive,
            **assessment._asdict(),
        )

    async def _call(self, arguments: tuple[Any, ...]) -> tuple[Any, str]:
        """Return the function's result, or what went wrong."""
        timeout = asyncio.timeout(self._seconds)
        try:
            async with timeout:
                with time_limit(self._seconds):
                    result = self._function(*arguments)
                return (await result if inspect.isawaitable(result) else result), ""
        except KeyboardInterrupt:
            # Out of a task it would tear down the event loop; this ends the run and keeps it.
            raise asyncio.CancelledError from None
        except TimeLimitExceeded:
            return None, self._timeout_message()
        except AssertionError as error:
            return None, str(error) or f"An assertion failed: {_failing_line(error)}"
        except (Exception, SystemExit) as error:  # an exit would end the notebook's kernel
            if timeout.expired():
                return None, self._timeout_message()
            return None, f"check {self._label} raised {type(error).__name__}: {error}"

    def _timeout_message(self) -> str:
        return f"check {self._label} did not end within {self._seconds:.3g} s"

    def _assess(self, result: Any) -> _Assessment:
        if getattr(result, "shape", None) == () and hasattr(result, "tolist"):
            result = result.tolist()  # a number or bool of an array library
        if result is None or isinstance(result, bool):
            passed = result is not False
            detail = "It passed." if passed else "It returned False."
            return _Assessment(passed, float(passed), detail)
        if isinstance(result, str):
            return _Assessment(not result, float(not result), result or "It passed.")
        if isinstance(result, list | tuple) and all(
            isinstance(item, str | dict | Finding) for item in result
        ):
            return self._assess_findings([self._finding(item) for item in result])
        score = float(result) if isinstance(result, int | float) else math.nan
        if not 0 <= score <= 1:
            raise UsageError(
                f"The check {self._label} returned {result!r:.80}. Return a bool, a score from 0 "
                "to 1, a message, a list of findings, or raise AssertionError."
            )
        detail = f"It scored {score:.2f} of {self._target:.2f}."
        return _Assessment(score >= self._target, score, detail)

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

    def _assess_findings(self, findings: list[Finding]) -> _Assessment:
        blocked = any(finding.severity is Severity.BLOCKING for finding in findings)
        # The worst first, as the first line stands for all of them in a sentence.
        findings = sorted(findings, key=lambda f: f.severity is not Severity.BLOCKING)
        share = 1 / (1 + len(findings))
        # Minor ones alone pass, so they must not pull the score below the target.
        score = share if blocked else self._target + (1 - self._target) * share
        lines = list(map(_format_finding, findings[:MAX_FINDINGS]))
        if len(findings) > MAX_FINDINGS:
            lines.append(f"… and {len(findings) - MAX_FINDINGS} more.")
        detail = "\n".join(lines) or "It passed."
        return _Assessment(not blocked, score, detail, tuple(findings[:MAX_FINDINGS]))


def _format_finding(finding: Finding) -> str:
    place = f' (at "{finding.quote}")' if finding.quote else ""
    fix = f" Fix: {finding.fix}" if finding.fix else ""
    return f"{finding.problem}{place}{fix}"


def _failing_line(error: AssertionError) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line or "") if frames else ""


def _takes_task(function: Callable[..., Any], name: str) -> bool:
    """Return whether the second argument is the task, not an option with its own default."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    second = [p for p in signature.parameters.values() if p.kind in kinds][1:2]
    takes = bool(second) and (second[0].default is second[0].empty or second[0].name == "task")
    try:
        signature.bind(*(("", None) if takes else ("",)))
    except TypeError:
        raise UsageError(
            f"The check {name} cannot be called with the text, or with the text and the task."
        ) from None
    return takes


class TimeLimitExceeded(BaseException):
    """A call took too long; not an `Exception`, so that the call cannot swallow it."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let a time limit or an interrupt end the body, although it blocks the event loop.

    The handlers of a kernel or an event loop only note an interrupt and wait for their turn, which
    never comes while the body hangs. This works in the main thread, and the time limit on POSIX;
    elsewhere the body runs unlimited. Code that runs outside of Python cannot be ended before it
    returns.

    Args:
        seconds: wall time the body may take; None for no limit.

    Raises:
        TimeLimitExceeded: it took longer.
        KeyboardInterrupt: the user interrupted it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with _alarm(seconds):
            yield
    finally:
        if interrupt_handler is not None:  # one not installed from Python cannot be put back
            signal.signal(signal.SIGINT, interrupt_handler)


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    handler = signal.signal(signal.SIGALRM, _raise_time_limit)
    delay, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, delay, interval)
        if handler is not None:
            signal.signal(signal.SIGALRM, handler)


def _raise_time_limit(*_: Any) -> NoReturn:
    raise TimeLimitExceeded
