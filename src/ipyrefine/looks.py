"""Look at code before it runs: what it gives and does to data, on copies and without a model."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from ipyrefine.checks.python import RunOnCopies
from ipyrefine.core.effects import told
from ipyrefine.core.model import Effect, Output, Printed, Record, Task, cut
from ipyrefine.core.table import Result
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.snapshot import CALLER_WAITS
from ipyrefine.kernel.variables import Copies
from ipyrefine.render.blocks import outputs
from ipyrefine.render.terminal import blocks_text

SECONDS = 10.0  # after which a look ends
MOST = 2_000  # characters that `str` gives


class Look(Record):
    """What code gives and does to data: it ran on copies, and nothing else has changed.

    ``str(look)`` says it in at most 2,000 characters, what has to be known first.

    Attributes:
        code: what was looked at.
        outputs: the answer as text or a table, what was drawn, what was printed before it.
        error: the exception that ended it with its line, or why it did not run; else empty.
        effects: what it did to data and files, before an error, too; the most telling first.
        bound: what the names that it binds or changes hold then, as Python, if that can be written.
        conditions: what this rests on, such as the first rows of a frame.
        not_followed: what was not looked at, in sentences.
    """

    code: str
    outputs: tuple[Output, ...] = ()
    error: str = ""
    effects: tuple[Effect, ...] = ()
    bound: Mapping[str, str] = {}
    conditions: tuple[str, ...] = ()
    not_followed: tuple[str, ...] = ()

    @property
    def answer(self) -> Output | None:
        """The value of the last line, what was drawn, or what the last print printed; or None."""
        return next((one for one in self.outputs if not isinstance(one, Printed)), None)

    @property
    def printed(self) -> str:
        """What was printed, unless that is the answer; the start of it."""
        return "".join(one.text for one in self.outputs if isinstance(one, Printed))

    def __str__(self) -> str:
        shown = blocks_text(outputs([Result(outputs=self.outputs)]))
        rests = (f"It ran on {one}." for one in self.conditions)
        last = self.code.strip().rpartition("\n")[2]  # a name whose value is the answer
        held = [
            f"{name} = {value}"
            for name, value in self.bound.items()
            if name.partition(".")[0] != last
        ]
        lines = [self.error, *map(told, self.effects), *rests]
        text = (
            "\n".join(filter(None, [*lines, *self.not_followed, *held, shown]))
            or "It gives nothing."
        )
        return cut(text, MOST, " …")

    __repr__ = __str__


def look(
    code: str | Sequence[str],
    namespace: Mapping[str, Any] | None = None,
    *,
    seconds: float = SECONDS,
) -> Look:
    """Run code on copies of variables and return what it gives and does to them.

    No model is asked, no name is bound, nothing is kept. The sandbox keeps it from the network and
    from files; where that is not to be had, it is not run, and the look says so.

    Args:
        code: a cell, or several that run one after the other as one.
        namespace: the variables by name; by default those where it is called.
        seconds: of processor time, and of waiting, after which it is stopped.

    Raises:
        UsageError: the code is neither a string nor a list of strings.
    """
    cells: list[Any] = [*code] if isinstance(code, (list, tuple)) else [code]
    if not all(isinstance(one, str) for one in cells):
        raise UsageError("look takes the code of a cell as a text, or a list of texts.")
    if namespace is None:
        caller = sys._getframe(1)
        namespace = {**caller.f_globals, **caller.f_locals}
    space, text = dict(namespace), "\n\n".join(cells)
    check = RunOnCopies(seconds=seconds, copies=Copies(lambda: space)).looking()
    context = copy_context()
    context.run(CALLER_WAITS.set, True)
    pool = ThreadPoolExecutor(1)
    try:
        result = pool.submit(context.run, asyncio.run, check(text, Task(text="", form="code")))
        return _read(text, result.result())
    except CheckNotRun as error:
        return Look(code=text, error=f"Not run: {error}")
    finally:
        pool.shutdown(wait=False)


def _read(text: str, result: Result) -> Look:
    unrun = [f"Not run, as only IPython can: {one}" for one in python_part(text).lines]
    return Look(
        code=text,
        outputs=result.outputs,
        error="" if result.passed else result.shows,
        effects=result.effects,
        bound={one.call: one.gives for one in result.rows},
        conditions=tuple(map(str, result.conditions)),
        not_followed=tuple(unrun),
    )
