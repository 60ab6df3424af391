"""`refine_many`: many tasks at once; each result is kept and can be resumed by name."""

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple

from ipyrefine import api, checks
from ipyrefine.batch.pools import in_pool, run_all
from ipyrefine.core.model import Outcome, StopReason
from ipyrefine.core.run import Run
from ipyrefine.errors import PoolError, UsageError
from ipyrefine.journal.store import Journal, Stored
from ipyrefine.journal.writer import open_journal

_NAME = re.compile(r"(?!\d+$)\w[\w-]{0,31}")
_DIGEST_CHARACTERS = 16
_CUT_SHORT = (None, StopReason.FAILED, StopReason.CANCELLED)
_RESUME_OPTIONS = ("model", "judge", "base_url", "api_key", "timeout", "effort", "extra")


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
    def passed(self) -> bool:
        """Whether its text passed."""
        return self._outcome is Outcome.PASS

    @property
    def not_judged(self) -> bool:
        """Whether nothing decides on its text."""
        return self._outcome is Outcome.NOT_JUDGED

    @property
    def _outcome(self) -> Outcome | None:
        verdict = self.run.verdict if self.run else None
        return verdict.outcome if verdict else None


class BatchTask(NamedTuple):
    """One of many tasks, before it runs.

    Attributes:
        number: its place among the tasks, from 0.
        name: its run's name in the journal, the same whenever the batch is run.
        text: the task.
        options: what else `refine` takes.
    """

    number: int
    name: str
    text: str
    options: dict[str, Any]

    def item(self, run: Run | None, error: Exception | None = None) -> Item:
        """Return the item of its result."""
        name = self.name if self.options.get("journal", True) else ""
        return Item(self.number, self.text, run, error, name)


async def refine_many(
    tasks: Iterable[str | Mapping[str, Any]],
    *,
    at_once: int = 8,
    executor: Any = None,
    name: str = "",
    progress: bool = True,
    on_item: Callable[[Item], None] | None = None,
    **options: Any,
) -> list[Item]:
    """Refine many tasks, some at a time; an error ends its own task only.

    Each run is in the journal event by event. Called again with the same name, a run that ended is
    returned as it is, and one that was cut short or failed is resumed: no reply is paid for twice.
    The same holds when a pool's worker dies; all its machines must share the journal's folder
    (``IPYREFINE_HOME``).

    Args:
        tasks: texts, or mappings with ``text`` and what `refine` takes for that one.
        at_once: how many run, or wait in the pool, at a time.
        executor: where they run: None for this process, which is enough when a server does the
            work; else a pool with ``submit`` (`concurrent.futures`), or a ``distributed.Client``
            (``ipyrefine[dask]``). The options must be picklable then: give the model's name
            rather than the model, and leave keys to each worker's environment.
        name: of all the runs together, to resume them later; a new one by default.
        progress: whether to show a progress bar.
        on_item: called with every item as it ends.
        **options: as for `refine`.

    Returns:
        One item for each task, in the order of the tasks.

    Raises:
        UsageError: an option, the name, a task or the pool cannot be used, or `at_once` is 0.
        NoModel: no model is configured.
    """
    if at_once < 1:
        raise UsageError(f"at_once must be at least 1, not {at_once}.")
    api.check_options(options)
    if executor is None:
        options = _choose_models(options)
    batch = _make_batch(tasks, name, options)
    work = in_pool(executor, refine_task)

    async def refine(task: BatchTask) -> Item:
        try:
            return await work(task)
        except PoolError as error:
            return task.item(None, error)

    items: dict[int, Item] = {}
    with _Bar(len(batch), enabled=progress) as bar:
        async with aclosing(run_all(batch, at_once, refine)) as results:
            async for item in results:
                items[item.number] = item
                bar.count(item)
                if on_item:
                    on_item(item)
    return [items[number] for number in range(len(batch))]


async def refine_task(task: BatchTask) -> Item:
    """Refine a task to its stop, or resume its run from the journal; errors are in the item."""
    options = dict(task.options)
    journal = options.get("journal", True) and open_journal(name=task.name) is not None
    try:
        stored = Journal().find(task.name) if journal else None
        if stored is None:
            return task.item(await api.refine(task.text, name=task.name, **options))
        if stored.run.stop_reason not in _CUT_SHORT:
            return task.item(stored.run)
        return task.item(await _resume(stored, options))
    except Exception as error:  # the other tasks are not concerned, whatever it is
        return task.item(getattr(error, "run", None), error)


async def _resume(stored: Stored, options: dict[str, Any]) -> Run:
    resolved = checks.resolve(
        options.get("checks", ()),
        {},
        target=stored.run.limits.target,
        variables=options.get("variables") or {},
    )
    variables = options.get("variables") or {}
    again = checks.from_record(stored.run.setup.checks, resolved, variables=variables)
    server = {name: options[name] for name in _RESUME_OPTIONS if name in options}
    refinement = api.resume(stored.run, checks=again, **server)
    return await api.finish(refinement, Journal().recorder(stored), options.get("on_event"))


def _make_batch(
    tasks: Iterable[str | Mapping[str, Any]], name: str, options: Mapping[str, Any]
) -> list[BatchTask]:
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
        own = {"text": task} if isinstance(task, str) else dict(task)
        text = own.pop("text", None)
        if not isinstance(text, str):
            raise UsageError(f"Task {number} has no text. Give a text, or a mapping with a `text`.")
        api.check_options(own)
        digest = _digest(text, own.get("draft"))
        seen[digest] += 1
        suffix = f".{seen[digest]}" if seen[digest] > 1 else ""
        batch.append(BatchTask(number, f"{prefix}.{digest}{suffix}", text, {**options, **own}))
    return batch


def _digest(text: str, draft: str | None) -> str:
    content = json.dumps([text, draft]).encode()
    return hashlib.sha256(content).hexdigest()[:_DIGEST_CHARACTERS]


def _choose_models(options: dict[str, Any]) -> dict[str, Any]:
    """Choose the models once: each has a client, which takes longer to make than a short call."""
    names = ("model", "judge", "base_url", "api_key", "price", "timeout", "effort", "extra")
    args = {name: options.get(name) for name in names}
    return {**options, **api.choose_models(**args)._asdict()}


class _Bar:
    """A progress bar that also counts what passed, what was not judged, errors, and the cost."""

    def __init__(self, total: int, *, enabled: bool) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, unit="task", desc="Refining", disable=not enabled)
        self._passed = self._not_judged = self._errors = 0
        self._cost: float | None = 0.0

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def count(self, item: Item) -> None:
        """Move on by one item."""
        self._passed += item.passed
        self._not_judged += item.not_judged
        self._errors += item.error is not None
        if item.run is not None and item.run.usage.calls:
            known = item.run.cost is not None and self._cost is not None
            self._cost = (self._cost or 0.0) + (item.run.cost or 0.0) if known else None
        cost = {} if self._cost is None else {"cost": f"${self._cost:.4f}"}
        not_judged = {"not judged": self._not_judged} if self._not_judged else {}
        self._bar.set_postfix(
            {"passed": self._passed} | not_judged | {"errors": self._errors} | cost, refresh=False
        )
        self._bar.update()
