"""Checks that are the user's own functions, and the findings of checks."""

import asyncio
import contextvars
import dis
import inspect
import json
import re
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

from ipyrefine.core.evaluations import Answers, Said
from ipyrefine.core.model import Outcome, Task
from ipyrefine.core.table import Point, Result
from ipyrefine.errors import CheckError, ReplyError, UsageError, describe

MAX_FINDINGS = 20  # of one check; a text with more of them needs another text, not a longer list
_SILENT = re.compile(r"None|Any|object|.*\b(?:Awaitable|Coroutine)\b.*")  # annotations
_SHAPES = (
    "Return a bool, a score from 0 to 1, feedback (a string, empty for none), a list of findings, "
    "PASS, NEEDS_IMPROVEMENT or FAIL, a pair such as (False, feedback), or a dict with feedback "
    "and evaluation, done or score."
)
_ANSWERS = Answers()
_FINDING = {"problem", "quote", "fix", "severity", "criterion"}


def flaw(criterion: str, words: str) -> Point:
    """Return a fault that keeps a text from passing."""
    return Point(source="run", kind="result", criterion=criterion, words=words)


def not_python(name: str, task: Task) -> Result:
    """Return the evidence of a check that runs Python on code in another language: none."""
    return Result(name=name, shows=f"This check runs Python, and the text is {task.language_name}.")


def _source_of(function: Any, seen: tuple[Any, ...] = ()) -> str | None:
    whole = function if inspect.isroutine(function) else type(function)
    try:
        parts: list[str | None] = [inspect.getsource(whole)]
    except (OSError, TypeError):
        return None
    used = getattr(function, "__globals__", {}), getattr(function, "__code__", None)
    for name in used[1].co_names if used[1] else ():
        other = used[0].get(name)
        if inspect.isfunction(other) and other.__globals__ is used[0] and other not in seen:
            parts.append(_source_of(other, seen=(*seen, function)))
    return None if None in parts else "\n".join(filter(None, parts))


class CallableCheck:
    """A function of the text (and of the task, if it takes one), in either order, sync or async.

    It may return:

    - a bool, or None for a pass if it says what is wrong by raising or asserting;
    - a score from 0 to 1, which passes from the target on;
    - a string of feedback, empty for none;
    - a list of findings: strings, or dicts with a ``problem`` and optionally
      ``quote``, ``fix``, ``severity`` and ``criterion``. With ``minor`` ones only it passes;
    - ``"PASS"``, ``"NEEDS_IMPROVEMENT"`` or ``"FAIL"``; after the last two perhaps feedback;
    - a pair of one of these words, a bool or a score, with feedback: ``("FAIL", "Too long.")``;
    - a dict, its JSON, a dataclass or a pydantic object with ``evaluation`` (one of these words, or
      an enum of them), ``done`` (a bool) or ``score``, and ``feedback``: a string or a list of
      findings.

    It may also fail the text by an AssertionError, or by an exception that comes of parsing the
    text or of running code in it; any other one stops the run. So does any exception of a function
    that gives a score or a verdict, by its annotation or its earlier results. A verdict next to a
    score or feedback decides. It runs in this process, so that it may use the notebook's variables;
    one that is not async runs in a thread, one at a time.

    Args:
        function: the user's function, of the text, or of the text and the task; their names, such
            as ``answer`` and ``question``, say which is which.
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
        self._takes = _takes(function, self._label)
        # Where a score is promised, an exception is none: the evaluator broke.
        returns = getattr(function, "__annotations__", {}).get("return", "")
        self._scores = "float" in getattr(returns, "__name__", str(returns))

    @property
    def source(self) -> str | None:
        """The source of the function, with that of others it reads from its module; or None."""
        return _source_of(self._function)

    async def __call__(self, text: str, task: Task) -> Result:
        """Call the function and assess its result.

        Raises:
            UsageError: its result is of an unknown kind.
            CheckError: it broke.
        """
        given = {"text": text, "task": task.replace(text="\n\n".join([task.text, *task.feedback]))}
        result, failure = await self._call(text, tuple(given[role] for role in self._takes))
        return self._evidence(False, failure) if failure else self._assess(result)

    def _evidence(self, passed: bool, detail: str, **fields: Any) -> Result:
        decisive = self._decisive
        return Result(name=self.name, passed=passed, shows=detail, decisive=decisive, **fields)

    async def _call(self, text: str, arguments: tuple[Any, ...]) -> tuple[Any, str]:
        """Return the function's result, or what it says is wrong with the text.

        Raises:
            CheckError: it raised anything but what the text is to blame for.
        """
        function, timeout = self._function, asyncio.timeout(self._seconds)
        try:
            if inspect.iscoroutinefunction(function):
                async with timeout:
                    return await function(*arguments), ""
            # One at a time, as they may share state; one that a stop left behind has lost its turn.
            async with _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Lock()), timeout:
                result, error = await _call_in_thread(function, arguments)
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
            if self._scores:
                pass
            elif isinstance(error, AssertionError):
                *_, last = traceback.extract_tb(error.__traceback__)
                return None, str(error) or f"An assertion failed: {last.line or ''}"
            elif _blames_text(error, text):
                return None, f"check {self._label} raised {describe(error)}"
            raise CheckError(
                f"The check {self._label} raised {describe(error)}. Continue with the best text so "
                "far, or fix the check and run it again."
            ) from error

    def _assess(self, result: Any) -> Result:
        said = None
        if result is not None or _may_be_silent(self._function):
            with suppress(ReplyError, RecursionError):
                plain = _plain(result)
                alone = plain is None or isinstance(plain, bool)
                said = Said() if alone else _read(plain)
        if said is None:
            raise UsageError(f"The check {self._label} returned {result!r:.80}. {_SHAPES}")
        stated, score, feedback = said
        points = [self._point(item) for item in feedback]
        if stated or alone:
            passed = stated is Outcome.PASS if stated else plain is not False
        elif score is not None:
            passed = score >= self._target
        else:
            passed = not any(one.blocking for one in points)
        sentence = "It passed." if passed else f"It returned {stated or result}."
        if score is not None:
            sentence = f"It scored {score:.2f} of {self._target:.2f}."
            if passed and score < self._target:
                score = None  # its word decides, and a pass never scores below the target
        if passed:  # what comes with a pass does not take it back
            points = [one.replace(blocking=False) for one in points]
        # The worst first, as the first line stands for all of them in a sentence.
        points.sort(key=lambda one: not one.blocking)
        lines = [
            one.words
            + (f' (at "{one.place}")' if one.place else "")
            + (f" Fix: {one.fix}" if one.fix else "")
            for one in points[:MAX_FINDINGS]
        ]
        if len(points) > MAX_FINDINGS:
            lines.append(f"… and {len(points) - MAX_FINDINGS} more.")
        if not lines or said.score is not None:
            lines.append(sentence)
        fields = {"score": score, "says": stated, "points": tuple(points[:MAX_FINDINGS])}
        return self._evidence(passed, "\n".join(lines), **fields)

    def _point(self, item: str | dict[str, Any]) -> Point:
        given = {"problem": item} if isinstance(item, str) else item
        words, severity = given.get("problem"), given.get("severity", "blocking")
        plain = all(isinstance(one, str) for one in given.values())
        if not (words and plain and {*given} <= _FINDING and severity in ("blocking", "minor")):
            raise UsageError(
                f"The check {self._label} returned a finding that cannot be used: {item!r:.80}. "
                "It has a problem, and may have quote, fix, criterion, severity (blocking, minor)."
            )
        found = flaw(given.get("criterion") or self.name, words)
        place, fix = given.get("quote", ""), given.get("fix", "")
        return found.replace(place=place, fix=fix, blocking=severity == "blocking")


def _read(result: Any) -> Said | None:
    if isinstance(result, dict):
        said = _ANSWERS.fields(result)
        return said and _with_feedback(said, said.feedback)
    listed = isinstance(result, list)
    said = _ANSWERS.items(result) if listed else _read_verdict(result)
    if said is None and listed and len(result) == 2:
        first, feedback = result
        said = _ANSWERS.items([first]) if isinstance(first, bool) else _read_verdict(first)
        word = said and _ANSWERS.items([feedback])
        said = said and (said._replace(outcome=word.outcome) if word else said)
        said = said and (said if word else said._replace(feedback=feedback))
    if said is None and isinstance(result, str) and re.match(r"\W*PASS\b", result):
        return None  # what follows may take it back
    return _with_feedback(*((said, said.feedback) if said else (Said(), result)))


def _with_feedback(said: Said, feedback: Any) -> Said | None:
    items = feedback if isinstance(feedback, list | tuple) else [feedback]
    items = [one for one in items if one is not None and str(one).strip()]
    usable = all(isinstance(one, str | dict) for one in items)
    return said._replace(feedback=tuple(items)) if usable else None


def _plain(value: Any) -> Any:
    """Return as plain data what an array library, pydantic, a dataclass, an enum or JSON holds."""
    if getattr(value, "shape", None) == () and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Enum):
        return value.value if _ANSWERS.word(str(value.value)) else value.name
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            data = json.loads(value)
            read = _ANSWERS.fields(data) if isinstance(data, dict) else _ANSWERS.items(data)
            return data if read else value
    return value


def _read_verdict(value: Any) -> Said | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Said(score=_ANSWERS.score(value))
    return _ANSWERS.word(value) if isinstance(value, str) else None


def _blames_text(error: BaseException, text: str) -> bool:
    """Return True if an exception comes from parsing the text, or from code in it that ran."""
    if isinstance(error, json.JSONDecodeError):
        return bool(error.doc.strip()) and error.doc.strip() in text
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, SyntaxError) or any(f.filename == "<string>" for f in frames)


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


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


# What users call a task; what else their functions take is the text.
_TASK = {
    "task", "prompt", "question", "request", "requirement", "requirements", "context", "criteria",
    "criterion", "instruction", "instructions", "query", "goal", "problem", "spec", "input",
    "specification", "assignment", "rubric",
}  # fmt: skip


def _takes(function: Callable[..., Any], name: str) -> tuple[str, ...]:
    """Return whether each argument of a function is the text or the task, where it takes one.

    Its parameters say by their names which is which; if they don't, the text comes first.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return ("text",)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [one for one in signature.parameters.values() if one.kind in kinds][:2]
    tasks = [bool({*re.findall("[a-z]+", one.name.lower())} & _TASK) for one in parameters]
    order: tuple[str, ...] = ("text",)
    # A second one with a default is an option, if it is not the task.
    if len(tasks) == 2 and (tasks[1] or parameters[1].default is inspect.Parameter.empty):
        order = ("task", "text") if tasks == [True, False] else ("text", "task")
    try:
        signature.bind(*order)
    except TypeError:
        raise UsageError(
            f"The check {name} cannot be called with the text, or with the text and the task."
        ) from None
    return order


def _may_be_silent(function: Callable[..., Any]) -> bool:
    """Return True if None means that all is well: if the function raises or asserts otherwise."""
    with suppress(Exception):  # no signature, or an annotation with names that do not exist
        promise = inspect.signature(function, eval_str=True).return_annotation
        if promise is not inspect.Signature.empty:
            return _SILENT.fullmatch(inspect.formatannotation(promise)) is not None
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code is None or (
        any(one.opname == "RAISE_VARARGS" for one in dis.get_instructions(code))
        or any("assert" in name.lower() for name in code.co_names)
    )
