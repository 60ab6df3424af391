"""What older versions stored is read as it was meant; anything else is a ValueError."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import finish, greeting, without_deltas
from loop_strategies import runs

from ipyrefine.core.events import EVENT
from ipyrefine.core.run import Run
from ipyrefine.core.upcasters import VERSION, read_event, read_record, upcast_recording

# Stored by version 1, which left defaults out.
FINDING_1 = {"id": "f1", "criterion": "tone", "severity": "blocking", "problem": "stiff"}
VERDICT_1 = {"outcome": "NEEDS_IMPROVEMENT", "score": 0.5, "why": "tone 0.50"}
DECISIONS_1: list[dict[str, Any]] = [
    {"kind": "accept", "iteration": 0},
    {"kind": "override", "outcome": "PASS", "text": "fine"},
    {"kind": "continue", "rounds": 2, "text": "shorter"},
    {"kind": "continue", "iteration": 0},
    {"kind": "branch", "iteration": 0},
    {"kind": "select", "findings": ["f1"]},
    {"kind": "guide", "text": "warmer"},
    {"kind": "edit", "text": "Hi"},
    {"kind": "dismiss", "findings": ["f1"], "text": "so be it"},
    {"kind": "add", "finding": {**FINDING_1, "id": "f0"}},
    {"kind": "rubric", "criteria": [{"name": "tone", "definition": "Kind."}]},
]
RECORD_1 = {
    "task": {"text": "Write a greeting."},
    "limits": {"max_iterations": 1, "gate": True, "critics": 3},
    "prompts": {"gate": "Which of {first} and {second}?"},
    "iterations": [
        {"number": 0, "text": "Dear Sir", "findings": [FINDING_1], "verdict": VERDICT_1}
    ],
    "best": 0,
    "stage": "gate",
    "decisions": DECISIONS_1,
    "heard": [{"stage": "judge", "iteration": 0, "text": "{", "finish": "stop", "warnings": 0}],
    "unassigned": {"1": {"calls": 1}},
    "stop_reason": "rounds",
}
EVENTS_1 = [
    {"type": "run_started", "task": {"text": "Write a greeting."}, "model": "m", "at": 0.1},
    {"type": "stage_started", "stage": "gate", "iteration": 0},
    {"type": "draft_lost", "candidate": 1, "why": "cut off"},
    {"type": "critique_ready", "iteration": 0, "critique": {"findings": [FINDING_1]}},
    {"type": "revision_ready", "iteration": 1, "parent": 0, "text": "Hi", "flaw": "cut off",
     "changes": [{"finding": "f1", "summary": "x", "confirmed": False}], "findings": [FINDING_1]},
    {"type": "evidence_ready", "iteration": 0, "evidence": {"name": "run", "passed": True}},
    {"type": "verdict_reached", "iteration": 0, "verdict": VERDICT_1, "findings": [FINDING_1]},
    {"type": "compared", "iteration": 1, "against": 0, "won": True, "why": "warmer"},
    {"type": "budget_used", "stage": "draft", "iteration": 0, "usage": {"calls": 1}},
    *({"type": "decided", "decision": decision} for decision in DECISIONS_1),
    {"type": "stopped", "reason": "rounds", "message": "Over."},
]  # fmt: skip
RECORDING_1 = {
    "models": [{"name": "m"}],
    "calls": [{"purpose": "gate", "pieces": [{"text": "Hi"}], "usage": {"calls": 1}}],
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3)
    ),
    max_leaves=5,
)
versions = st.sampled_from([1, 2]) | anything


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside a JSON value, itself included."""
    yield path
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for key, part in inside:
        yield from places(part, (*path, key))


def with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    """A copy of a JSON value with one part of it replaced, or left out if that is ``...``."""
    if not path:
        return None if part is ... else part
    copy = value.copy()
    if part is ... and len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = with_part(copy[path[0]], path[1:], part)
    return copy


@st.composite
def damaged(draw: Any, wholes: st.SearchStrategy[Any]) -> Any:
    """Stored JSON with one part of it replaced by something else, or left out."""
    whole = json.loads(json.dumps(draw(wholes)))
    path = draw(st.sampled_from(list(places(whole))))
    return with_part(whole, path, draw(anything | st.just(...)))


def dump(run: Run) -> dict[str, Any]:
    return {"version": VERSION, **run.model_dump(mode="json")}


@given(data=anything | damaged(st.just(RECORD_1)) | damaged(runs().map(dump)), version=versions)
def test_a_record_is_read_or_a_value_error(data: Any, version: Any) -> None:
    versioned = {**data, "version": version} if isinstance(data, dict) else data
    for one in (data, versioned):
        with suppress(ValueError):
            assert isinstance(read_record(one), Run)


@given(data=anything | damaged(st.sampled_from(EVENTS_1)), version=versions)
def test_an_event_is_read_or_a_value_error(data: Any, version: Any) -> None:
    for number in (1, VERSION, version):
        with suppress(ValueError):
            assert EVENT.validate_python(read_event(data, number))


@given(data=anything | damaged(st.just(RECORDING_1)), version=versions)
def test_a_recording_is_read_or_a_value_error(data: Any, version: Any) -> None:
    versioned = {**data, "format": version} if isinstance(data, dict) else data
    for one in (data, versioned):
        with suppress(ValueError):
            assert upcast_recording(one)["format"] == VERSION


@pytest.mark.parametrize("version", [0, VERSION + 1, 99, -1, "2", None, True, 1.0, [1], {}])
def test_an_unknown_version_is_refused_by_its_name(version: Any) -> None:
    for read in (
        lambda: read_record({**RECORD_1, "version": version}),
        lambda: read_event(EVENTS_1[0], version),
        lambda: upcast_recording({**RECORDING_1, "format": version}),
    ):
        with pytest.raises(ValueError, match="version"):
            read()


def test_a_record_of_version_1_is_read_with_its_defaults_and_todays_names() -> None:
    run = read_record(RECORD_1)
    assert (run.limits.max_revisions, run.limits.pairwise, run.limits.target) == (1, True, 0.8)
    assert run.setup.prompts == {"compare": "Which of {first} and {second}?"}
    assert (run.stage, run.stop_reason) == ("compare", "revisions")
    assert [d.kind for d in run.decisions] == [
        "accept", "override", "continue", "branch", "branch", "select", "guide", "edit",
        "dismiss", "add", "rubric",
    ]  # fmt: skip
    assert run.iterations[0].verdict is not None
    assert run.iterations[0].verdict.reason == "tone 0.50"
    assert run.unconsumed_replies[0].text == "{"


@pytest.mark.parametrize(
    ("stored", "author", "check"),
    [
        ({"author": "check", "criterion": "style"}, "check", "style"),
        ({"author": "check", "criterion": "x", "check": "style"}, "check", "style"),
        ({"author": "check", "criterion": "scope", "check": "scope"}, "model", ""),
    ],
    ids=["before checks told faults apart", "since then", "of a heuristic that is gone"],
)
def test_a_finding_of_version_1_belongs_to_who_found_it(
    stored: dict[str, str], author: str, check: str
) -> None:
    event: Any = read_event({**EVENTS_1[6], "findings": [{**FINDING_1, **stored}]}, 1)
    assert (event.findings[0].author, event.findings[0].check) == (author, check)


@pytest.mark.parametrize("event", EVENTS_1, ids=lambda event: event["type"])
def test_every_event_of_version_1_is_read(event: dict[str, Any]) -> None:
    names = {"draft_lost": "draft_failed", "budget_used": "call_ended"}
    assert read_event(event, 1).type == names.get(event["type"], event["type"])


async def test_what_is_stored_today_is_read_back_as_it_was() -> None:
    loop = greeting()
    events = without_deltas(await finish(loop))
    assert read_record(json.loads(json.dumps(dump(loop.state)))) == loop.state
    assert [read_event(e.model_dump(mode="json"), VERSION) for e in events] == events


def test_reading_changes_nothing_of_what_was_stored() -> None:
    for data, read in (
        (RECORD_1, read_record),
        (EVENTS_1[3], lambda event: read_event(event, 1)),
        (RECORDING_1, upcast_recording),
    ):
        before = json.dumps(data)
        read(data)  # type: ignore[operator]
        assert json.dumps(data) == before
