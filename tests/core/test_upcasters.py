"""What older versions stored is read as it was meant; anything else is a ValueError."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import finish, greeting, without_deltas
from loop_strategies import runs

from ipyrefine.core.events import EVENT, CallEnded
from ipyrefine.core.model import Evidence
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

# Stored by version 2, which wrote every field.
V2 = Path(__file__).parents[1] / "fixtures" / "v2"
RECORD_2 = json.loads((V2 / "records" / "needs-work.json").read_text("utf-8"))
RECORDING_2 = json.loads((V2 / "recordings" / "doubtful.json").read_text("utf-8"))
FINDING_2 = {**RECORD_2["iterations"][0]["findings"][0], "grounded": False}
VERDICT_2 = RECORD_2["iterations"][1]["verdict"]
EVIDENCE_2 = {
    "name": "tests", "passed": True, "score": 1.0, "detail": "", "seconds": 0.0, "required": True,
    "decisive": True, "findings": [FINDING_2], "comparing": False,
}  # fmt: skip
EVENTS_2: list[dict[str, Any]] = [
    {"type": "run_started", "at": 0.1, "setup": RECORD_2["setup"]},
    {"type": "critique_ready", "at": 0.2, "iteration": 0, "critique": {"findings": [FINDING_2]},
     "regressed": [], "verdict": None},
    {"type": "evidence_ready", "at": 0.2, "iteration": 0, "evidence": EVIDENCE_2},
    {"type": "revision_ready", "at": 0.2, "iteration": 1, "parent": 0, "text": "Hi", "thoughts": "",
     "changes": [], "failure": ""},
    {"type": "verdict_reached", "at": 0.3, "iteration": 0, "verdict": VERDICT_2,
     "findings": [FINDING_2]},
    {"type": "call_ended", "at": 0.4, "stage": "judge", "iteration": 0, "usage": {"calls": 1},
     "text": "{}", "finish": "stop"},
    {"type": "call_ended", "at": 0.4, "stage": "draft", "iteration": 0, "usage": {"calls": 1},
     "text": "Hi", "finish": "stop"},
    {"type": "decided", "at": 0.5, "decision": {"kind": "add", "finding": FINDING_2,
     "iteration": 0}},
    {"type": "stopped", "at": 0.6, "reason": "passed", "message": "Over."},
]  # fmt: skip

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3)
    ),
    max_leaves=5,
)
versions = st.sampled_from([1, 2, 3, 4]) | anything


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


def test_version_3_had_nothing_beside_the_words_of_a_task() -> None:
    run = read_record(RECORD_2)
    whole = run.model_dump(mode="json")
    del whole["setup"]["task"]["materials"]
    assert read_record({**whole, "version": 3}) == run
    started = {"type": "run_started", "at": 1.0, "setup": whole["setup"]}
    assert read_event(started, 3).setup == run.setup  # type: ignore[union-attr]


def test_version_4_kept_nothing_of_what_checked_code_printed_or_drew() -> None:
    run = read_record(RECORD_2)
    evidence = Evidence(name="run", passed=True)
    checked = run.iterations[0].model_copy(update={"evidence": (evidence,)})
    run = run.model_copy(update={"iterations": (checked, *run.iterations[1:])})
    whole = run.model_dump(mode="json")
    for iteration in whole["iterations"]:
        for one in iteration["evidence"]:
            del one["outputs"]
    assert read_record({**whole, "version": 4}) == run
    stored = whole["iterations"][0]["evidence"][0]
    ready = {"type": "evidence_ready", "at": 1.0, "iteration": 0, "evidence": stored}
    assert read_event(ready, 4).evidence == evidence  # type: ignore[union-attr]


@st.composite
def damaged(draw: Any, wholes: st.SearchStrategy[Any]) -> Any:
    """Stored JSON with one part of it replaced by something else, or left out."""
    whole = json.loads(json.dumps(draw(wholes)))
    path = draw(st.sampled_from(list(places(whole))))
    return with_part(whole, path, draw(anything | st.just(...)))


def dump(run: Run) -> dict[str, Any]:
    return {"version": VERSION, **run.model_dump(mode="json")}


@given(
    data=anything | damaged(st.sampled_from([RECORD_1, RECORD_2])) | damaged(runs().map(dump)),
    version=versions,
)
def test_a_record_is_read_or_a_value_error(data: Any, version: Any) -> None:
    versioned = {**data, "version": version} if isinstance(data, dict) else data
    for one in (data, versioned):
        with suppress(ValueError):
            assert isinstance(read_record(one), Run)


@given(data=anything | damaged(st.sampled_from(EVENTS_1 + EVENTS_2)), version=versions)
def test_an_event_is_read_or_a_value_error(data: Any, version: Any) -> None:
    for number in (1, 2, VERSION, version):
        with suppress(ValueError):
            assert EVENT.validate_python(read_event(data, number))


@given(data=anything | damaged(st.sampled_from([RECORDING_1, RECORDING_2])), version=versions)
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
    assert run.unconsumed_replies == ()  # judges answer in another shape now


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


@pytest.mark.parametrize("event", EVENTS_2, ids=lambda event: event["type"])
def test_every_event_of_version_2_is_read(event: dict[str, Any]) -> None:
    assert read_event(event, 2).type == event["type"]


def test_a_reply_of_a_judge_of_version_2_is_not_used_again() -> None:
    """It answered in another shape; what it cost still counts."""
    judged, drafted = (read_event(event, 2) for event in EVENTS_2[5:7])
    assert isinstance(judged, CallEnded)
    assert isinstance(drafted, CallEnded)
    assert (judged.finish, judged.usage.calls) == (None, 1)
    assert (drafted.finish, drafted.text) == ("stop", "Hi")


@pytest.mark.parametrize("grounded", [True, False])
def test_a_finding_of_version_2_that_was_not_grounded_is_doubtful(grounded: bool) -> None:
    named = {"findings": [{**FINDING_2, "grounded": grounded}]}
    event: Any = read_event({**EVENTS_2[1], "critique": named}, 2)
    assert event.critique.findings[0].doubtful is not grounded


@pytest.mark.parametrize(
    ("name", "basis"),
    [
        ("tests", "tests"),
        ("run", "tests"),
        ("lint", "tests"),
        ("schema", "schema"),
        ("examples", "examples"),
        ("agreement", "agreement"),
        ("length: at most 50 words", "constraints"),
        ("contains: hello", "constraints"),
        ("matches: \\d+", "constraints"),
        ("is_polite", "function"),
        ("lengthy", "function"),
    ],
)
@pytest.mark.parametrize("reason", ["{} passed.", "{} failed: 1 of 2", "{}, other passed."])
def test_a_check_s_verdict_of_version_2_rests_on_that_check(
    name: str, basis: str, reason: str
) -> None:
    evidence: Any = read_event({**EVENTS_2[2], "evidence": {**EVIDENCE_2, "name": name}}, 2)
    assert evidence.evidence.basis == basis
    verdict = {**VERDICT_2, "author": "check", "reason": reason.format(name)}
    event: Any = read_event({**EVENTS_2[4], "verdict": verdict}, 2)
    assert event.verdict.basis == basis


@pytest.mark.parametrize(
    ("fields", "outcome", "basis"),
    [
        ({}, "PASS", "judge"),
        ({"author": "user"}, "PASS", "user"),
        ({"verified": False, "outcome": "NEEDS_IMPROVEMENT", "score": None}, "NOT_JUDGED", "none"),
    ],
    ids=["a judge's", "a user's", "not verified"],
)
def test_a_verdict_of_version_2_says_what_it_rests_on(
    fields: dict[str, Any], outcome: str, basis: str
) -> None:
    event: Any = read_event({**EVENTS_2[4], "verdict": {**VERDICT_2, **fields}}, 2)
    assert (event.verdict.outcome, event.verdict.basis) == (outcome, basis)


def test_what_overruled_a_judge_of_version_2_is_the_reason() -> None:
    verdict = {**VERDICT_2, "overruled": "Judge unreliable here."}
    event: Any = read_event({**EVENTS_2[4], "verdict": verdict}, 2)
    assert event.verdict.reason == "Judge unreliable here."


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
        (RECORD_2, read_record),
        *((event, lambda event: read_event(event, 2)) for event in EVENTS_2),
        (RECORDING_2, upcast_recording),
    ):
        before = json.dumps(data)
        read(data)  # type: ignore[operator]
        assert json.dumps(data) == before
