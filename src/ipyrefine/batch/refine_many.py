"""`refine_many`: many tasks at once; each can be resumed by name."""

import asyncio
import hashlib
import json
import math
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ipyrefine import api
from ipyrefine.core.model import Outcome, StopReason, Verdict
from ipyrefine.core.run import Run
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import open_journal

_NAME = re.compile(r"(?!\d+$)\w[\w-]{0,31}")
_DIGEST_CHARACTERS = 16
_CUT_SHORT = (None, StopReason.FAILED, StopReason.CANCELLED)


class Item(NamedTuple):
    """The result of one of many tasks.

    Attributes:
        number: its place among the tasks, from 0.
        task: its text.
        run: the run as far as it got; None when it never began.
        error: what ended it early; None when the run came to its own stop.
        name: its run's name in the journal; empty where it is not kept there.
    """

    number: int
    task: str
    run: Run | None
    error: Exception | None = None
    name: str = ""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on its text; None where there is none."""
        return self.run.verdict if self.run else None

    @property
    def passed(self) -> bool:
        """Whether its text passed, or its question is answered."""
        passed = self.verdict is not None and self.verdict.outcome is Outcome.PASS
        return passed or (self.run is not None and self.run.answered)

    @property
    def not_judged(self) -> bool:
        """Whether nothing decides on its text."""
        return self.verdict is not None and self.verdict.outcome is Outcome.NOT_JUDGED


async def refine_many(
    tasks: Iterable[str | Mapping[str, Any]],
    *,
    at_once: int = 8,
    name: str = "",
    progress: bool = True,
    on_item: Callable[[Item], None] | None = None,
    **options: Any,
) -> list[Item]:
    """Refine many tasks, some at a time; an error ends its own task only.

    Each run is in the journal event by event. Called again with the same name, a run that ended is
    returned as it is, and one that was cut short or failed is resumed: no reply is paid for twice.

    Args:
        tasks: texts, such as a list or a pandas column, or mappings with ``text`` and what `refine`
            takes for that one.
        at_once: how many run at a time.
        name: of all the runs together, to resume them later; a new one by default.
        progress: whether to show a progress bar.
        on_item: called with every item as it ends.
        **options: as for `refine`; a budget is each run's own.

    Returns:
        One item for each task, in the order of the tasks.

    Raises:
        UsageError: an option, the name or a task cannot be used, or `at_once` is 0.
        NoModel: no model is configured.
    """
    from tqdm.auto import tqdm

    one_by_one = isinstance(tasks, Iterable) and getattr(tasks, "ndim", 1) == 1
    if isinstance(tasks, str | Mapping) or not one_by_one:  # a table's or a dict's are its names
        raise UsageError(f"The tasks are a list or a column, not {type(tasks).__name__}.")
    api.require_kinds(at_once=at_once, name=name, on_item=on_item)
    if at_once < 1:
        raise UsageError(f"at_once must be at least 1, not {at_once}.")
    read, missing = _read(options), None
    try:  # once: each model has a client, which takes longer to make than a short call
        options |= api.choose_models(read)._asdict()
    except NoModel as error:
        missing = error
    batch, free = _make_batch(tasks, name, options), asyncio.Semaphore(at_once)
    if missing and not all(_read(task.options).asks_nobody for task in batch):
        raise missing

    async def refine(task: _Task) -> Item:
        async with free:
            return await _refine(task)

    items, counts = dict[int, Item](), Counter[str]()
    running = [asyncio.ensure_future(refine(task)) for task in batch]
    try:
        with tqdm(total=len(batch), unit="task", desc="Refining", disable=not progress) as bar:
            for done in asyncio.as_completed(running):
                item = await done
                items[item.number] = item
                bar.set_postfix(_count(item, counts), refresh=False)
                bar.update()
                if on_item:
                    on_item(item)
    finally:
        for future in running:
            future.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return [items[number] for number in range(len(batch))]


def _count(item: Item, counts: dict[str, Any]) -> dict[str, Any]:
    counts["passed"] += item.passed
    counts["not judged"] += item.not_judged
    counts["errors"] += item.error is not None
    if item.run is not None and item.run.usage.calls:
        counts["cost"] += math.nan if item.run.cost is None else item.run.cost
    shown: dict[str, Any] = {"passed": counts["passed"]}
    if counts["not judged"]:
        shown["not judged"] = counts["not judged"]
    shown["errors"] = counts["errors"]
    if not math.isnan(counts["cost"]):
        shown["cost"] = f"${counts['cost']:.4f}"
    return shown


class _Task(NamedTuple):
    """One of many tasks, before it runs; its name is the same whenever the batch is run."""

    number: int
    name: str
    text: str
    options: dict[str, Any]

    def item(self, run: Run | None, error: Exception | None = None) -> Item:
        """Return the item of its result."""
        name = self.name if self.options.get("journal", True) else ""
        return Item(self.number, self.text, run, error, name)


async def _refine(task: _Task) -> Item:
    """Refine a task to its stop, or resume its run from the journal; errors are in the item."""
    journal = open_journal(task.options.get("journal", True), name=task.name)
    try:
        stored = Journal().find(task.name) if journal else None
        if stored and stored.run.stop_reason not in _CUT_SHORT:
            return task.item(stored.run)
        refinement = api.make(stored.run if stored else task.text, _read(task.options))
        recorder = stored.journal if stored else journal
        return task.item(await api.finish(refinement, recorder, task.options.get("on_event")))
    except Exception as error:  # the other tasks are not concerned, whatever it is
        return task.item(getattr(error, "run", None), error)


def _read(options: dict[str, Any]) -> api.Options:
    return api.read_options(options, ("journal", "on_event"))


def _make_batch(
    tasks: Iterable[str | Mapping[str, Any]], name: str, options: Mapping[str, Any]
) -> list[_Task]:
    """Return the tasks with their options, each with a name that outlives this process.

    The name follows from the task and how often it occurred before, not from its place in the list.
    So a longer or reordered list finds the runs that are done.
    """
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} cannot name many runs. Use up to 32 letters, digits, underscores and "
            "dashes, starting with a letter."
        )
    prefix, seen = name or f"many-{secrets.token_hex(4)}", Counter[str]()
    batch = []
    for number, task in enumerate(tasks):
        own = dict(task) if isinstance(task, Mapping) else {"text": task}
        text = own.pop("text", None)
        if not isinstance(text, str):
            raise UsageError(f"Task {number} has no text. Give a text, or a mapping with a `text`.")
        _read(own)
        content = json.dumps([text, own.get("draft")]).encode()
        digest = hashlib.sha256(content).hexdigest()[:_DIGEST_CHARACTERS]
        seen[digest] += 1
        suffix = f".{seen[digest]}" if seen[digest] > 1 else ""
        batch.append(_Task(number, f"{prefix}.{digest}{suffix}", text, {**options, **own}))
    return batch
