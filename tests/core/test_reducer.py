"""Whatever models, checks and users do, a run is the fold of its events and holds its promises."""

from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import TASK, refinement, without_deltas
from loop_strategies import checks, decisions, limits, rates, scripts

from ipyrefine.core.events import EVENT, Event, StageStarted, Stopped
from ipyrefine.core.model import Limits, Outcome, Setup, Stage, StopReason, Verdict
from ipyrefine.core.policy import MAX_REPAIRS, unverified
from ipyrefine.core.rank import best_of, standing, verdict
from ipyrefine.core.readers import find_duplicate
from ipyrefine.core.reducer import apply, replay
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError


class Played(NamedTuple):
    """A run's events, and the run after each."""

    events: list[Event]
    states: list[Run]

    @property
    def first_stop(self) -> Run:
        """The run when it stopped for the first time, before anything was decided."""
        ends = (n for n, event in enumerate(self.events) if isinstance(event, Stopped))
        return self.states[next(ends)]


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


@settings(max_examples=50)
@given(replies=scripts, checks=checks, limits=limits, decided=st.lists(decisions, max_size=3))
async def test_a_run_is_the_fold_of_its_events_whatever_is_said_found_and_decided(
    replies, checks, limits, decided
):
    played = await play(replies, checks, limits, decided)
    assert_folds(played)
    assert_nothing_written_changes(played.states)
    assert_stops_with_its_best_text(played.states[-1])
    assert_verdicts_are_what_the_run_holds(played.states[-1])
    assert_undecided_run_keeps_the_rules(played.first_stop, limits)


def assert_folds(played: Played) -> None:
    """From any point, and from JSON; pieces of replies change nothing but the time."""
    events, states = played
    run = Run.begin(states[0].setup)
    for event, state in zip(events, states, strict=True):
        run = apply(run, event)
        assert run == state
    cut = len(events) // 2
    assert replay(events[cut:], states[cut - 1]) == replay(without_deltas(events)) == states[-1]
    assert [EVENT.validate_json(EVENT.dump_json(event)) for event in events] == events
    assert Run.model_validate_json(states[-1].model_dump_json()) == states[-1]


def assert_nothing_written_changes(states: list[Run]) -> None:
    """Neither texts, nor the ids of points and what they say."""
    for earlier, later in pairwise(states):
        kept = later.iterations[: len(earlier.iterations)]
        assert [(i.number, i.text, i.parent) for i in kept] == [
            (i.number, i.text, i.parent) for i in earlier.iterations
        ]
        assert [i.number for i in later.iterations] == list(range(len(later.iterations)))
    found = [*states[-1].points.values()]
    for iteration in states[-1].iterations:
        ids = [*iteration.results]
        assert len(ids) == len(set(ids))
        assert "" not in ids
    # A check's own finding says what it found last; all others keep their words.
    pairs = {(one.id, one.words) for one in found if one.said}
    assert len(pairs) == len(dict(pairs))


def assert_stops_with_its_best_text(run: Run) -> None:
    assert run.stop_reason is not None
    assert run.message
    assert run.stale or unverified(run) or run.best == best_of(run)
    assert run.text or not run.iterations


def assert_verdicts_are_what_the_run_holds(run: Run) -> None:
    """Whoever reads a stored run comes to the verdicts that were shown."""
    stored = Run.model_validate_json(run.model_dump_json())
    for iteration in stored.iterations:
        if iteration.verdict and iteration.number not in stored.stale:
            assert verdict(stored, iteration) == iteration.verdict


def assert_undecided_run_keeps_the_rules(run: Run, limits: Limits) -> None:
    """It ends with the text that stands highest, passed by evidence or a reader, within bounds.

    A text that repeats an earlier one does not stand above it.
    """
    texts = [iteration.text for iteration in run.iterations]
    assert all(text.strip() for text in texts)
    assert texts or run.stop_reason in (StopReason.FAILED, StopReason.BUDGET)
    latest = -1 if run.revisions else 0  # where no text has a verdict
    assert run.text == (texts[latest if run.best is None else run.best] if texts else "")
    new = [i for i in run.iterations if not find_duplicate(run, i)]
    places = {i.number: place for i in new if (place := standing(run, i))}
    assert (run.best is None) is not bool(places)
    assert run.best is None or places[run.best] == max(places.values())
    for iteration in run.iterations:
        if iteration.verdict and iteration.verdict.passed:
            assert iteration.verdict.basis not in ("user", "none", "run")
            assert not any(one.failed for one in run.evidence(iteration))
            assert not [one for one in run.cells(iteration) if one.blocks]
    most = limits.max_revisions + 1
    assert len(texts) <= most
    assert run.usage.calls <= 2 * most + MAX_REPAIRS


@given(scores=st.tuples(rates, rates))
def test_a_failed_required_check_is_never_outranked_by_a_score(scores):
    run = Run.begin(Setup(task=TASK))
    kept, failed = (
        Iteration(
            number=number,
            text="Hi",
            verdict=Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=score),
            evidence=(Result(name="it", passed=passed),),
        )
        for number, (passed, score) in enumerate(zip((True, False), scores, strict=True))
    )
    assert standing(run, kept) > standing(run, failed)


@pytest.mark.parametrize("events", [[], [StageStarted(stage=Stage.DRAFT, iteration=0)]])
def test_a_fold_begins_with_the_start_of_a_run(events):
    with pytest.raises(ValueError, match="begins with run_started"):
        replay(events)
