"""`refine_many` and `refine_frame`: many tasks at once; each result can be resumed by name."""

import hashlib
import json
import math
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from ipyrefine import api, checks
from ipyrefine.batch.pools import in_pool, run_all
from ipyrefine.core.model import Outcome, StopReason, Verdict
from ipyrefine.core.run import Run
from ipyrefine.errors import PoolError, UsageError, did_you_mean
from ipyrefine.journal.store import Journal, Stored
from ipyrefine.journal.writer import open_journal
from ipyrefine.kernel.variables import Variables

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("text", "verdict", "basis", "score", "cost", "error")

_NAME = re.compile(r"(?!\d+$)\w[\w-]{0,31}")
_DIGEST_CHARACTERS = 16
_CUT_SHORT = (None, StopReason.FAILED, StopReason.CANCELLED)
_SERVER = ("model", "judge", "base_url", "api_key", "timeout", "effort", "extra")


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
        """Whether its text passed."""
        return self.verdict is not None and self.verdict.outcome is Outcome.PASS

    @property
    def not_judged(self) -> bool:
        """Whether nothing decides on its text."""
        return self.verdict is not None and self.verdict.outcome is Outcome.NOT_JUDGED


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
    from tqdm.auto import tqdm

    if at_once < 1:
        raise UsageError(f"at_once must be at least 1, not {at_once}.")
    api.check_options(options)
    if executor is None:  # each model has a client, which takes longer to make than a short call
        args = {one: options.get(one) for one in (*_SERVER, "price")}
        options = {**options, **api.choose_models(**args)._asdict()}
    batch = _make_batch(tasks, name, options)
    work = in_pool(executor, refine_task)

    async def refine(task: BatchTask) -> Item:
        try:
            return await work(task)
        except PoolError as error:
            return task.item(None, error)

    items, counts = dict[int, Item](), Counter[str]()
    with tqdm(total=len(batch), unit="task", desc="Refining", disable=not progress) as bar:
        async with aclosing(run_all(batch, at_once, refine)) as results:
            async for item in results:
                items[item.number] = item
                bar.set_postfix(_count(item, counts), refresh=False)
                bar.update()
                if on_item:
                    on_item(item)
    return [items[number] for number in range(len(batch))]


def _count(item: Item, counts: dict[str, Any]) -> dict[str, Any]:
    """Count one more item, and return the counts that the progress bar shows."""
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
    run, variables = stored.run, Variables.of(options.get("variables"))
    own = checks.resolve(
        options.get("checks", ()), {}, target=run.limits.target, variables=variables
    )
    again = checks.from_record(run.setup.checks, own, variables=variables)
    server = {name: options[name] for name in _SERVER if name in options}
    refinement = api.resume(run, checks=again, variables=variables, **server)
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
        content = json.dumps([text, own.get("draft")]).encode()
        digest = hashlib.sha256(content).hexdigest()[:_DIGEST_CHARACTERS]
        seen[digest] += 1
        suffix = f".{seen[digest]}" if seen[digest] > 1 else ""
        batch.append(BatchTask(number, f"{prefix}.{digest}{suffix}", text, {**options, **own}))
    return batch


# Tables


async def refine_frame(
    frame: "DataFrame", column: str, *, drafts: str | None = None, **options: Any
) -> "DataFrame":
    """Refine the tasks in a table's column, as `refine_many` does.

    Args:
        frame: the table.
        column: the column that holds the tasks; an empty cell is an error of its row.
        drafts: the column that holds texts to start from, if any.
        **options: as for `refine_many`.

    Returns:
        A table with the same index: ``text``; ``verdict`` (an outcome such as ``PASS`` or
        ``NOT_JUDGED``, or None); ``basis``, what that rests on, or None; ``score`` 0..1;
        ``cost`` in US dollars, NaN when the price is not known; ``error``, a sentence, or None.

    Raises:
        UsageError: pandas is missing, there is no such column, or as for `refine_many`.
        NoModel: no model is configured.
    """
    _require_pandas()
    for wanted in (column, drafts):
        if wanted is not None and wanted not in frame.columns:
            columns = [str(name) for name in frame.columns]
            hint = did_you_mean(wanted, columns) or f" It has {', '.join(columns)}."
            raise UsageError(f"The table has no column {wanted!r}.{hint}")
    tasks = [{"text": text} for text in column_texts(frame[column])]
    if drafts is not None:
        for task, draft in zip(tasks, column_texts(frame[drafts]), strict=True):
            task |= {"draft": draft} if draft else {}
    return items_frame(await refine_many(tasks, **options), frame.index)


def items_frame(items: Sequence[Item], index: Any) -> "DataFrame":
    """Return items as a table.

    Args:
        items: the results of many tasks.
        index: the table's index.

    Raises:
        UsageError: pandas is missing.
    """
    rows = [
        {
            "text": run.text if run else "",
            "verdict": verdict and verdict.outcome.value,
            "basis": verdict and verdict.basis,
            "score": run and run.score,
            "cost": run and run.cost,
            "error": error and str(error),
        }
        for run, verdict, error in ((one.run, one.verdict, one.error) for one in items)
    ]
    return _require_pandas().DataFrame(rows, index=index, columns=[*COLUMNS])


def _require_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError("Tables need pandas: `pip install pandas`.") from None
    return pandas


def column_texts(column: Any) -> list[str]:
    """Return the texts of a pandas column; a missing one is empty."""
    return [
        "" if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)
    ]
