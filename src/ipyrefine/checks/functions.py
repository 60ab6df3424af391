"""Checks that are the user's own functions."""

import asyncio
import inspect
import math
import traceback
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from pydantic import ValidationError

from ipyrefine.checks.faults import MOST
from ipyrefine.checks.stoppable import TimeUp, stoppable
from ipyrefine.core.records import Evidence, Finding, Severity, Task
from ipyrefine.errors import UsageError

_PARTS = ("problem", "quote", "fix", "severity", "criterion")


class _Reading(NamedTuple):
    """What a function's result says."""

    passed: bool
    score: float
    detail: str
    findings: tuple[Finding, ...] = ()


class CallableCheck:
    """A function of the text (and, if it wants it, the task), sync or async.

    It may return a bool, a score 0..1, a message (empty when all is well), a list of findings,
    or None; or raise AssertionError. A finding is a message, a `Finding`, or a dict with its
    ``problem`` and, if it likes, ``quote``, ``fix``, ``severity`` and ``criterion``; each is
    followed from text to text by itself, and a text with ``minor`` ones only passes. Its word
    settles the verdict. It runs where it is called, so that it may use the notebook's variables.

    Args:
        function: the user's function.
        target: the score that passes.
        seconds: wall time it may take; None for any. A sync one is stopped by it on POSIX and
            in the main thread only (see `ipyrefine.checks.stoppable`).

    Raises:
        UsageError: it takes no text, or needs more than the text and the task.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        target: float = 0.8,
        seconds: float | None = 60.0,
    ) -> None:
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self._function, self._target, self._seconds = function, target, seconds
        self._wants_task = _wants_task(function, self.name)

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Call the function.

        Raises:
            UsageError: it returned something that is no result.
        """
        began = monotonic()
        result, fault = await self._call((text, task) if self._wants_task else (text,))
        reading = _Reading(False, 0.0, fault) if fault else self._read(result)
        return Evidence(
            name=self.name,
            seconds=monotonic() - began,
            decisive=True,
            **reading._asdict(),
        )

    async def _call(self, arguments: tuple[Any, ...]) -> tuple[Any, str]:
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                with stoppable(self._seconds):
                    result = self._function(*arguments)
                return (await result if inspect.isawaitable(result) else result), ""
        except KeyboardInterrupt:
            # Out of a task it would tear down the event loop; this ends the run and keeps it.
            raise asyncio.CancelledError from None
        except TimeUp:
            return None, self._too_long()
        except AssertionError as error:
            return None, str(error) or f"An assertion failed: {_statement(error)}"
        except (Exception, SystemExit) as error:  # an exit would end the notebook's kernel
            if limit.expired():
                return None, self._too_long()
            return None, f"check {self.name} raised {type(error).__name__}: {error}"

    def _too_long(self) -> str:
        return f"check {self.name} did not end within {self._seconds:.3g} s"

    def _read(self, result: Any) -> _Reading:
        if getattr(result, "shape", None) == () and hasattr(result, "tolist"):
            result = result.tolist()  # a number or truth value of an array library
        if result is None or isinstance(result, bool):
            passed = result is not False
            said = "It passed." if passed else "It returned False."
            return _Reading(passed, float(passed), said)
        if isinstance(result, str):
            return _Reading(not result, float(not result), result or "It passed.")
        if isinstance(result, list | tuple) and all(map(_is_finding, result)):
            return self._listed([self._finding(item) for item in result])
        score = float(result) if isinstance(result, int | float) else math.nan
        if not 0 <= score <= 1:
            raise UsageError(
                f"The check {self.name} returned {result!r:.80}; return a bool, a score from 0 "
                "to 1, a message, a list of findings, or raise AssertionError."
            )
        said = f"It scored {score:.2f} of {self._target:.2f}."
        return _Reading(score >= self._target, score, said)

    def _finding(self, item: "str | dict[str, Any] | Finding") -> Finding:
        if isinstance(item, Finding):
            return item.model_copy(update={"id": "f0", "author": "check"})
        said = {"problem": item} if isinstance(item, str) else item
        default = {"id": "f0", "criterion": self.name, "severity": Severity.BLOCKING}
        try:
            return Finding.model_validate({**default, **said, "author": "check"})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"The check {self.name} returned a finding whose {where} cannot be used: "
                f"{first['msg'].lower()}; it may have {', '.join(_PARTS)}."
            ) from None

    def _listed(self, findings: list[Finding]) -> _Reading:
        blocking = any(finding.severity is Severity.BLOCKING for finding in findings)
        # The worst first, as the first line stands for all of them in a sentence.
        findings = sorted(findings, key=lambda f: f.severity is not Severity.BLOCKING)
        share = 1 / (1 + len(findings))
        # Minor ones alone pass, so they must not pull the score below what passes.
        score = share if blocking else self._target + (1 - self._target) * share
        lines = list(map(_told, findings[:MOST]))
        if len(findings) > MOST:
            lines.append(f"… and {len(findings) - MOST} more.")
        detail = "\n".join(lines) or "It passed."
        return _Reading(not blocking, score, detail, tuple(findings[:MOST]))


def _is_finding(item: object) -> bool:
    return isinstance(item, str | dict | Finding)


def _told(finding: Finding) -> str:
    place = f' (at "{finding.quote}")' if finding.quote else ""
    fix = f" Fix: {finding.fix}" if finding.fix else ""
    return f"{finding.problem}{place}{fix}"


def _statement(error: AssertionError) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line or "") if frames else ""


def _wants_task(function: Callable[..., Any], name: str) -> bool:
    """Whether its second argument is the task, and not an option with a default of its own."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    second = [p for p in signature.parameters.values() if p.kind in kinds][1:2]
    wanted = bool(second) and (second[0].default is second[0].empty or second[0].name == "task")
    try:
        signature.bind(*(("", None) if wanted else ("",)))
    except TypeError:
        raise UsageError(
            f"The check {name} cannot be called with the text, or with the text and the task."
        ) from None
    return wanted
