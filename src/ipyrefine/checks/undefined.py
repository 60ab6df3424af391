"""Names that a text reads and nothing defines, which code that runs would fail on."""

import asyncio
import copy
import re
import sys
from collections.abc import Iterable
from typing import Any, Self

from ipyrefine.checks import Context
from ipyrefine.core.model import Task
from ipyrefine.core.scopes import Read
from ipyrefine.core.table import Result
from ipyrefine.kernel.names import undefined_names
from ipyrefine.kernel.variables import Copies


class OnCopies:
    """A built-in check that runs texts on copies of the notebook's variables."""

    def __init__(self, copies: Copies | None = None) -> None:
        self._copies = Copies() if copies is None else copies

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check, which takes no argument."""
        return cls(copies=context.copies, **settings)


class NameReader(OnCopies):
    """A check that looks for undefined names, in functions that nobody calls too."""

    # Words that may be names which other checks give to the text; None has it look for none.
    _given: frozenset[str] | None = frozenset()

    def knowing(self, checks: Iterable[Any]) -> Self:
        """Return this check for texts that other checks are run on, too."""
        other = copy.copy(self)
        sources = [
            getattr(one, "source", "" if type(one).__module__.startswith("ipyrefine.") else None)
            for one in checks
        ]
        words = re.findall(r"\w+", " ".join(filter(None, sources)))
        other._given = None if None in sources else frozenset(words)
        return other

    async def undefined(self, text: str, task: Task) -> list[Read]:
        """Return where a text reads names that nothing defines."""
        if not task.is_python or self._given is None:
            return []
        known = self._given | self._copies.names
        if sys.platform == "emscripten":  # it has no threads
            return undefined_names(text, task, known)
        return await asyncio.to_thread(undefined_names, text, task, known)

    async def or_undefined(self, evidence: Result, text: str, task: Task) -> Result:
        """Return evidence; if the text does not fail, with the undefined names that it reads."""
        if evidence.passed is False or not (undefined := await self.undefined(text, task)):
            return evidence
        return Result(
            name=evidence.name,
            passed=False,
            shows=await self._copies.explain(name_errors(undefined), text),
            basis="run",
        )


def name_errors(undefined: Iterable[Read]) -> str:
    """Return the error of each undefined name that code reads, a line for each."""
    return "\n".join(
        f"NameError: name {one.name!r} is not defined (line {one.line})" for one in undefined
    )
