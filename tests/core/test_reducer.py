"""A run is the fold of its events, whatever models, checks and users do."""

from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import refinement, without_deltas
from loop_strategies import checks, decisions, limits, scripts

from ipyrefine.core.events import EVENT, Event, StageStarted
from ipyrefine.core.model import Stage
from ipyrefine.core.policy import best_of, unverified
from ipyrefine.core.reducer import apply, replay
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError

SCRIPT: dict[str, Any] = {
    "replies": scripts,
    "checks": checks,
    "limits": limits,
    "decided": st.lists(decisions, max_size=3),
}


class Played(NamedTuple):
    """A run's events, and the run after each."""

    events: list[Event]
    states: list[Run]


async def play(replies: Any, checks: Any, limits: Any, decided: Any) -> Played:
    """Run to the first stop, and to the next after each decision."""
    loop = refinement(replies, checks=checks, limits=limits)
    played = Played([], [])

    def note(event: Event, run: Run) -> None:
        played.events.append(event)
        played.states.append(run)

    for decision in [None, *decided]:
        if decision is not None:
            with suppress(UsageError):
                loop.decide(decision)
        await loop.run(note)
    return played


@given(**SCRIPT)
async def test_a_run_is_the_fold_of_its_events_from_any_point_and_from_json(**script: Any) -> None:
    """Pieces of replies change nothing but the time, so a journal may leave them out."""
    events, states = await play(**script)
    run = Run.begin(states[0].setup)
    for event, state in zip(events, states, strict=True):
        run = apply(run, event)
        assert run == state
    cut = len(events) // 2
    assert replay(events[cut:], states[cut - 1]) == replay(without_deltas(events)) == states[-1]
    assert [EVENT.validate_json(EVENT.dump_json(event)) for event in events] == events
    assert Run.model_validate_json(states[-1].model_dump_json()) == states[-1]


@given(**SCRIPT)
async def test_what_a_run_consumed_is_the_sum_of_its_parts(**script: Any) -> None:
    _, states = await play(**script)
    run = states[-1]
    parts = [iteration.usage for iteration in run.iterations] + [*run.pending_usage.values()]
    assert run.usage.calls == sum(part.calls for part in parts)
    assert run.usage.tokens == sum(part.tokens for part in parts)
    assert run.usage.calls == sum(part.calls for part in run.spent.values())


@given(**SCRIPT)
async def test_texts_and_the_names_of_findings_never_change_once_written(**script: Any) -> None:
    _, states = await play(**script)
    for earlier, later in pairwise(states):
        kept = later.iterations[: len(earlier.iterations)]
        assert [(i.number, i.text, i.parent) for i in kept] == [
            (i.number, i.text, i.parent) for i in earlier.iterations
        ]
        assert [i.number for i in later.iterations] == list(range(len(later.iterations)))
    found = [finding for iteration in states[-1].iterations for finding in iteration.findings]
    for iteration in states[-1].iterations:
        ids = [finding.id for finding in iteration.findings]
        assert len(ids) == len(set(ids))
        assert "" not in ids
    # A check's own finding says what it found last; all others keep their words.
    pairs = {(finding.id, finding.problem) for finding in found if finding.author != "check"}
    assert len(pairs) == len(dict(pairs))


@given(**SCRIPT)
async def test_whatever_the_user_decides_the_run_stops_with_its_best_text(**script: Any) -> None:
    _, states = await play(**script)
    run = states[-1]
    assert run.stop_reason is not None
    assert run.message
    assert run.stale or unverified(run) or run.best == best_of(run)
    assert run.text or not run.iterations


def test_a_fold_begins_with_the_start_of_a_run() -> None:
    with pytest.raises(ValueError, match="begins with run_started"):
        replay([StageStarted(stage=Stage.DRAFT, iteration=0)])
    with pytest.raises(ValueError, match="begins with run_started"):
        replay([])
