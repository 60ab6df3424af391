"""One task's refinement, begun or gone on with: what a worker does, wherever it is."""

import asyncio
from typing import Any

import cloudpickle

from ipyrefine import checks
from ipyrefine.batch.items import Asked, Item
from ipyrefine.compose import refine
from ipyrefine.core.runs import Run, StopReason
from ipyrefine.journal.recorder import recorder
from ipyrefine.journal.store import Journal, Stored
from ipyrefine.resuming import go_on
from ipyrefine.running import finish

_CUT_SHORT = (None, StopReason.FAILED, StopReason.CANCELLED)
_GONE_ON_WITH = ("model", "judge", "base_url", "api_key")


async def work(asked: Asked) -> Item:
    """Refine a task to its stop; where its run is in the journal, go on with that one.

    A run that has come to its stop is given as it is: nothing is paid for twice.
    """
    options = dict(asked.options)
    journal = options.get("journal", True) and recorder(name=asked.name) is not None
    try:
        stored = Journal().find(asked.name) if journal else None
        if stored is None:
            return asked.ended(await refine(asked.text, name=asked.name, **options))
        if stored.run.stop_reason not in _CUT_SHORT:
            return asked.ended(stored.run)
        return asked.ended(await _go_on(stored, options))
    except Exception as error:  # whatever it is, the other tasks are not concerned
        return asked.ended(getattr(error, "run", None), error)


async def _go_on(stored: Stored, options: dict[str, Any]) -> Run:
    resolved = checks.resolve(
        options.get("checks", ()),
        {},
        target=stored.run.limits.target,
        variables=options.get("variables") or {},
    )
    given = {name: options[name] for name in _GONE_ON_WITH if name in options}
    refinement = go_on(stored.run, checks=resolved, **given)
    return await finish(refinement, Journal().recorder(stored), options.get("on_event"))


class Job:
    """A task to be called in a pool's worker; it travels with functions of the notebook in it.

    Args:
        asked: the task.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __call__(self) -> Item:
        """Do it, in an event loop of its own."""
        return asyncio.run(work(self.asked))

    def __reduce__(self) -> tuple[Any, ...]:
        # A pool's own pickler knows a notebook's functions by name only.
        return _unpacked, (cloudpickle.dumps(self.asked),)


def _unpacked(data: bytes) -> Job:
    return Job(cloudpickle.loads(data))
