"""Runs a refinement to its own stop, for every surface without buttons."""

from collections.abc import Callable
from contextlib import aclosing

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event
from ipyrefine.core.runs import Run
from ipyrefine.errors import JournalError
from ipyrefine.journal.recorder import Recorder


async def finish(
    refinement: Refinement,
    kept: Recorder | None = None,
    on_event: Callable[[Event, Run], None] | None = None,
) -> Run:
    """Run a refinement to its own stop, each event in the journal before anyone hears of it.

    Args:
        refinement: what runs.
        kept: writes its events into the journal; None for a run that leaves none.
        on_event: called with every event and the run after it.

    Raises:
        ModelError: the model failed; the error's ``run`` holds the best text so far.
        JournalError: the journal cannot be written; the error's ``run`` is as for `ModelError`.
    """
    try:
        async with aclosing(aiter(refinement)) as events:  # type: ignore[type-var]
            async for event in events:
                if kept:
                    await kept(event, refinement.run)
                if on_event:
                    on_event(event, refinement.run)
    except JournalError as error:
        stopped = refinement.fail(error)
        if on_event:
            on_event(stopped, refinement.run)
    finally:
        if kept:
            kept.close()
    raise_failure(refinement)
    return refinement.run


def raise_failure(refinement: Refinement) -> None:
    """Raise the error a refinement ended with, if any, its run attached."""
    error = refinement.error
    if error is not None:
        error.run = refinement.run
        raise error
