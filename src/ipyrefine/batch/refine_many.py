"""`refine_many`: many tasks at once, each one's end kept, resumable by name."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from inspect import signature
from typing import Any

from ipyrefine.batch.items import Item, asked
from ipyrefine.batch.pools import each, place
from ipyrefine.compose import choose_models, compose, refine
from ipyrefine.errors import UsageError


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

    Each run is in the journal event by event. Called again with the same name, a run that ended
    is given as it is, and one that was cut short or failed goes on where it stopped: no reply is
    paid for twice. A pool's worker that dies is made up for in the same way; its machine has to
    share the journal's folder (``IPYREFINE_HOME``) with the one that takes over.

    Args:
        tasks: texts, or mappings with ``text`` and what `refine` takes for that one.
        at_once: how many run, or wait in the pool, at a time.
        executor: where they run: None for this process, which is enough when a server does the
            work; else a pool with ``submit`` (`concurrent.futures`), or a ``distributed.Client``
            (``ipyrefine[dask]``). What is given by `options` has to be picklable then, the
            model's name rather than the model; keys are best left to each worker's environment.
        name: of the runs together, to go on with them later; by default they get a new one.
        progress: whether a progress bar is shown.
        on_item: called with every item as it ends.
        **options: as for `refine`.

    Returns:
        An item a task, in the order of the tasks.

    Raises:
        UsageError: an option, the name, a task or the pool cannot be used, or `at_once` is 0.
        NoModel: no model is configured.
    """
    if at_once < 1:
        raise UsageError(f"at_once must be at least 1, not {at_once}.")
    _require_known(options)
    if executor is None:
        options = _with_models(options)
    waiting = asked(tasks, name, options)
    items: dict[int, Item] = {}
    with _Bar(len(waiting), shown=progress) as bar:
        async with aclosing(each(waiting, at_once, place(executor))) as ended:
            async for item in ended:
                items[item.number] = item
                bar.count(item)
                if on_item:
                    on_item(item)
    return [items[number] for number in range(len(waiting))]


def _require_known(options: Mapping[str, Any]) -> None:
    known = {*signature(refine).parameters, *signature(compose).parameters}
    if unknown := sorted(options.keys() - known):
        raise UsageError(f"refine_many knows no option {unknown[0]!r}; it takes those of refine.")


def _with_models(options: dict[str, Any]) -> dict[str, Any]:
    """Choose the models once: each has a client, whose making takes longer than a short call."""
    names = ("model", "judge", "base_url", "api_key", "price")
    given = {name: options.get(name) for name in names}
    return {**options, **choose_models(**given)._asdict()}


class _Bar:
    """A progress bar that also counts what passed, what failed and what it cost."""

    def __init__(self, total: int, *, shown: bool) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, unit="task", desc="Refining", disable=not shown)
        self._passed = self._errors = 0
        self._cost: float | None = 0.0

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def count(self, item: Item) -> None:
        """Move on by one item."""
        self._passed += item.passed
        self._errors += item.error is not None
        if item.run.cost is not None and self._cost is not None:
            self._cost += item.run.cost
        elif item.run.usage.calls:
            self._cost = None
        told = {"passed": self._passed, "errors": self._errors}
        cost = {} if self._cost is None else {"cost": f"${self._cost:.4f}"}
        self._bar.set_postfix(told | cost, refresh=False)
        self._bar.update()
