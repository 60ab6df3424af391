"""`refine_many`: many tasks at once; each can be resumed by name."""

import asyncio
import hashlib
import json
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
    run: Run | None = None
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
    if missing and not all(_read(own).asks_nobody for _, own in batch):
        raise missing

    async def refine(item: Item, own: dict[str, Any]) -> Item:
        async with free:
            return await _refine(item, own)

    items = {}
    running = [asyncio.ensure_future(refine(*one)) for one in batch]
    try:
        with tqdm(total=len(batch), unit="task", desc="Refining", disable=not progress) as bar:
            for done in asyncio.as_completed(running):
                item = await done
                items[item.number] = item
                bar.set_postfix(_count([*items.values()]), refresh=False)
                bar.update()
                if on_item:
                    on_item(item)
    finally:
        for future in running:
            future.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return [items[number] for number in range(len(batch))]


def _count(items: list[Item]) -> dict[str, Any]:
    costs = [one.run.cost for one in items if one.run and one.run.usage.calls]
    shown: dict[str, Any] = {"passed": sum(one.passed for one in items)}
    if not_judged := sum(one.not_judged for one in items):
        shown["not judged"] = not_judged
    shown["errors"] = sum(one.error is not None for one in items)
    if None not in costs:
        shown["cost"] = f"${sum(filter(None, costs)):.4f}"
    return shown


async def _refine(item: Item, options: dict[str, Any]) -> Item:
    """Refine a task to its stop, or resume its run from the journal; errors are in the item."""
    journal = open_journal(bool(item.name), name=item.name)
    try:
        stored = Journal().find(item.name) if journal else None
        if stored and stored.run.stop_reason not in _CUT_SHORT:
            return item._replace(run=stored.run)
        refinement = api.make(stored.run if stored else item.task, _read(options))
        recorder = stored.journal if stored else journal
        return item._replace(run=await api.finish(refinement, recorder, options.get("on_event")))
    except Exception as error:  # the other tasks are not concerned, whatever it is
        return item._replace(run=getattr(error, "run", None), error=error)


def _read(options: dict[str, Any]) -> api.Options:
    return api.read_options(options, ("journal", "on_event"))


def _make_batch(
    tasks: Iterable[str | Mapping[str, Any]], name: str, options: Mapping[str, Any]
) -> list[tuple[Item, dict[str, Any]]]:
    """Return each task's item, under a name that outlives this process, and its options.

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
        own = {**options, **own}
        run_name = f"{prefix}.{digest}{suffix}" if own.get("journal", True) else ""
        batch.append((Item(number, text, name=run_name), own))
    return batch
