"""Checks that are the user's own functions."""

import inspect
import math
from collections.abc import Callable
from time import monotonic
from typing import Any

from ipyrefine.errors import UsageError
from ipyrefine.loop.records import Evidence, Task


class CallableCheck:
    """A function of the text (and, if it takes two arguments, the task), sync or async.

    It may return a bool, a score 0..1, a message (empty when all is well), a list of messages,
    or None; or raise AssertionError. Its word settles the verdict.

    Args:
        function: the user's function.
        target: the score that passes.
    """

    def __init__(self, function: Callable[..., Any], *, target: float = 0.8) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function, self._target = function, target

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Call the function.

        Raises:
            UsageError: it returned something that is no result.
        """
        began = monotonic()
        arguments = (text, task)[: _arity(self._function)]
        try:
            result = self._function(*arguments)
            if inspect.isawaitable(result):
                result = await result
            passed, score, detail = self._read(result)
        except AssertionError as error:
            passed, score, detail = False, 0.0, str(error) or "An assertion failed."
        except UsageError:
            raise
        except Exception as error:
            kind = type(error).__name__
            passed, score = False, 0.0
            detail = f"check {self.name} raised {kind}: {error}"
        return Evidence(
            name=self.name,
            passed=passed,
            score=score,
            detail=detail,
            seconds=monotonic() - began,
            decisive=True,
        )

    def _read(self, result: Any) -> tuple[bool, float, str]:
        if result is None or isinstance(result, bool):
            passed = result is not False
            return passed, float(passed), "It passed." if passed else "It returned False."
        if isinstance(result, str):
            return not result, float(not result), result or "It passed."
        if isinstance(result, list | tuple) and all(isinstance(r, str) for r in result):
            return not result, float(not result), "\n".join(result) or "It passed."
        try:
            score = float(result)
        except (TypeError, ValueError):
            score = math.nan
        if not 0 <= score <= 1:
            raise UsageError(
                f"The check {self.name} returned {result!r:.80}; return a bool, a score from 0 "
                "to 1, a message, a list of messages, or raise AssertionError."
            )
        return score >= self._target, score, f"It scored {score:.2f} of {self._target:.2f}."


def _arity(function: Callable[..., Any]) -> int:
    try:
        inspect.signature(function).bind("", None)
    except TypeError:
        return 1
    except ValueError:  # some builtins have no signature
        return 1
    return 2
