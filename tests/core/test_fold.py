"""A run is the fold of its events, whatever models, checks and users do."""

from contextlib import suppress
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from loop_scripts import refinement
from loop_strategies import checks, decisions, limits, scripts
from pydantic import TypeAdapter

from ipyrefine.core.events import Event
from ipyrefine.core.fold import apply, fold
from ipyrefine.core.runs import Run
from ipyrefine.core.stopping import best_of
from ipyrefine.errors import UsageError

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
SCRIPT: dict[str, Any] = {
    "replies": scripts,
    "tests": checks,
    "limits": limits,
    "decided": st.lists(decisions(), max_size=3),
}


async def played(
    replies: Any, tests: Any, limits: Any, decided: Any
) -> tuple[list[Event], list[Run]]:
    """Run to the first stop and on after each decision; the events, and the run after each."""
    loop = refinement(replies, checks=tests, limits=limits)
    events, states = [], []
    for decision in [None, *decided]:
        if decision is not None:
            with suppress(UsageError):
                loop.decide(decision)
        async for event in loop:
            events.append(event)
            states.append(loop.run)
    return events, states


@given(**SCRIPT)
async def test_folding_any_prefix_gives_the_run_as_it_was_then(**script: Any) -> None:
    events, states = await played(**script)
    run = Run()
    for event, state in zip(events, states, strict=True):
        run = apply(run, event)
        assert run == state
    cut = len(events) // 2
    assert fold(events[cut:], fold(events[:cut])) == fold(events) == states[-1]


@given(**SCRIPT)
async def test_events_and_runs_come_back_the_same_from_json(**script: Any) -> None:
    events, states = await played(**script)
    read = [EVENT.validate_json(EVENT.dump_json(event)) for event in events]
    assert read == events
    assert fold(read) == states[-1]
    assert Run.model_validate_json(states[-1].model_dump_json()) == states[-1]


@given(**SCRIPT)
async def test_what_a_run_consumed_is_the_sum_of_its_parts(**script: Any) -> None:
    _, states = await played(**script)
    run = states[-1]
    parts = [iteration.usage for iteration in run.iterations] + [*run.unassigned.values()]
    assert run.usage.calls == sum(part.calls for part in parts)
    assert run.usage.tokens == sum(part.tokens for part in parts)


@given(**SCRIPT)
async def test_texts_and_numbers_never_change_once_written(**script: Any) -> None:
    _, states = await played(**script)
    for earlier, later in pairwise(states):
        kept = later.iterations[: len(earlier.iterations)]
        assert [(i.number, i.text, i.parent) for i in kept] == [
            (i.number, i.text, i.parent) for i in earlier.iterations
        ]
        assert [i.number for i in later.iterations] == list(range(len(later.iterations)))


@given(**SCRIPT)
async def test_a_finding_has_one_name_in_the_whole_run(**script: Any) -> None:
    _, states = await played(**script)
    named: dict[str, str] = {}
    for iteration in states[-1].iterations:
        ids = [finding.id for finding in iteration.findings]
        assert len(ids) == len(set(ids))
        for finding in iteration.findings:
            if finding.author != "check":  # a check's own finding says what it found last
                assert named.setdefault(finding.id, finding.problem) == finding.problem


@given(**SCRIPT)
async def test_whatever_the_user_decides_the_run_stops_with_its_best_text(**script: Any) -> None:
    _, states = await played(**script)
    run = states[-1]
    assert run.stop_reason is not None
    assert run.message
    if not run.stale:
        assert run.best == best_of(run)
    if run.iterations:
        assert run.text
