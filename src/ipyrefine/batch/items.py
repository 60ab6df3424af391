"""One task of many: what it is called in the journal, and what came of it."""

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Run
from ipyrefine.errors import UsageError

_NAME = re.compile(r"(?!\d+$)\w[\w-]{0,31}")
_DIGEST_CHARACTERS = 16


class Item(NamedTuple):
    """What came of one of many tasks.

    Attributes:
        number: its place among the tasks, from 0.
        task: its text.
        run: the run as far as it got; an empty one when it never began.
        error: what ended it early; None when the run came to its own stop.
    """

    number: int
    task: str
    run: Run
    error: Exception | None = None

    @property
    def passed(self) -> bool:
        """Whether its text passed."""
        return self.run.verdict is not None and self.run.verdict.outcome is Outcome.PASS


class Asked(NamedTuple):
    """One of many tasks, before it runs.

    Attributes:
        number: its place among the tasks, from 0.
        name: its run's name in the journal, the same whenever the task is asked for again.
        text: the task.
        options: what `refine` takes beside it.
    """

    number: int
    name: str
    text: str
    options: dict[str, Any]

    def ended(self, run: Run | None, error: Exception | None = None) -> Item:
        """Make the item of what came of it."""
        return Item(self.number, self.text, run or Run(), error)


def asked(
    tasks: Iterable[str | Mapping[str, Any]], name: str, options: Mapping[str, Any]
) -> list[Asked]:
    """Give every task its options and a name that outlives this process.

    The name follows from the task and its place among its likes, not from its place in the list,
    so that a longer or reordered list finds again what was done.

    Args:
        tasks: texts, or mappings with ``text`` and what `refine` takes beside it.
        name: of them together; a new one by default.
        options: what `refine` takes, for all of them.

    Raises:
        UsageError: the name, or a task, cannot be used.
    """
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} cannot name many runs: use up to 32 letters, digits, underscores and "
            "dashes, starting with a letter."
        )
    batch, seen = name or f"many-{secrets.token_hex(4)}", Counter[str]()
    made = []
    for number, task in enumerate(tasks):
        own = {"text": task} if isinstance(task, str) else dict(task)
        text = own.pop("text", None)
        if not isinstance(text, str):
            raise UsageError(f"Task {number} has no text: give a text, or a mapping with `text`.")
        digest = _digest(text, own.get("draft"))
        seen[digest] += 1
        again = f".{seen[digest]}" if seen[digest] > 1 else ""
        made.append(Asked(number, f"{batch}.{digest}{again}", text, {**options, **own}))
    return made


def _digest(text: str, draft: str | None) -> str:
    given = json.dumps([text, draft]).encode()
    return hashlib.sha256(given).hexdigest()[:_DIGEST_CHARACTERS]
