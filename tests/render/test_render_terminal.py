"""A run in a terminal: within its width, and in nobody's power."""

import re

import pytest
from hostile import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyrefine.core.events import (
    BestChanged,
    CallEnded,
    CritiqueReady,
    Decided,
    DraftReady,
    EvidenceReady,
    QuestionAsked,
    RevisionReady,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
    Warned,
)
from ipyrefine.core.model import Critique, Setup, StopReason, Task
from ipyrefine.core.run import Run
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import cells, event_text, record_text, wrap

BARE = Run.begin(Setup(task=Task(text="Write.")))
OUR_COLOURS = re.compile(r"\x1b\[(0|1|2|31|32|33|36|1;36)m")


def _events(run):
    """One event of each kind that a run is made of, saying what the run says."""
    draft, revised, flawed = run.iterations
    setup = run.setup.model_copy(update={"draft": draft.text})
    return [
        RunStarted(setup=setup),
        StageStarted(stage="draft", iteration=0),
        DraftReady(text=draft.text, author="user"),
        EvidenceReady(iteration=0, evidence=draft.evidence[0]),
        VerdictReached(iteration=0, verdict=draft.verdict, findings=draft.findings),
        VerdictReached(iteration=1, verdict=draft.verdict, findings=draft.findings),
        CritiqueReady(iteration=0, critique=Critique(findings=draft.findings)),
        RevisionReady(iteration=1, parent=0, text=revised.text, changes=revised.changes),
        RevisionReady(iteration=2, parent=1, text=flawed.text, failure=flawed.failure),
        QuestionAsked(question=run.question),
        BestChanged(iteration=1),
        CallEnded(stage="judge", iteration=1, usage=run.usage),
        Warned(message=run.warnings[0]),
        Decided(decision=run.decisions[0]),
        Stopped(reason=StopReason.PASSED, message=run.message),
    ]


@settings(max_examples=60, deadline=None)
@given(raw=texts, columns=st.integers(20, 100), form=st.sampled_from(["code", "prose"]))
def test_no_line_of_a_transcript_is_wider_than_the_terminal(raw, columns, form, make_run):
    run = make_run(lambda field: f"{field} {raw}", form)
    for event in _events(run):
        for line in event_text(event, run, columns=columns).split("\n"):
            assert cells(line) <= columns, event.type


@settings(max_examples=60, deadline=None)
@given(raw=texts, form=st.sampled_from(["code", "prose"]))
def test_no_text_reaches_the_terminal_as_a_control(raw, form, make_run):
    run = make_run(lambda field: f"{field} {raw}", form)
    for colour in (False, True):
        output = [event_text(event, run, colour=colour) for event in _events(run)]
        output.append(record_text(run, colour=colour))
        for text in output:
            rest = OUR_COLOURS.sub("", text) if colour else text
            assert plain(rest) == rest


def test_colour_adds_nothing_but_colour(make_run):
    run = make_run()
    coloured = [event_text(event, run, colour=True) for event in _events(run)]
    assert any("\x1b[" in text for text in coloured)
    assert [OUR_COLOURS.sub("", text) for text in coloured] == [
        event_text(event, run) for event in _events(run)
    ]


def test_streamed_text_is_left_to_the_caller():
    assert event_text(TextDelta(stage="draft", iteration=0, text="x"), BARE) is None


@pytest.mark.parametrize(
    ("stage", "iteration", "name"),
    [
        ("draft", 0, "Writing · draft"),
        ("check", 1, "Checking · iteration 1 of 4"),
        ("judge", 1, "Judging · iteration 1 of 4"),
        ("critique", 1, "Critiquing · iteration 1 of 4"),
        ("revise", 2, "Revising · iteration 2 of 4"),
        ("compare", 2, "Comparing · iteration 2 of 4"),
    ],
)
def test_a_stage_is_a_heading_across_the_terminal(stage, iteration, name, make_run):
    line = event_text(StageStarted(stage=stage, iteration=iteration), make_run(), columns=50)
    assert line.startswith(f"── {name} ──")
    assert cells(line) == 50


def test_a_verdict_shows_score_trend_and_why(make_run):
    run = make_run()
    verdict = run.iterations[0].verdict
    output = event_text(VerdictReached(iteration=0, verdict=verdict), run)
    assert output.startswith(
        "✗ FAIL · tests failed · score 0.42 ▄█ (target 0.80)\nthe why\n"
        "Criteria\n████░░░░░░ 0.42 the judged"
    )


def test_a_failed_check_shows_its_detail_and_a_passed_one_does_not(make_run):
    run = make_run()
    failed = run.iterations[0].evidence[0]
    passed = failed.model_copy(update={"passed": True})
    assert "│ the detail" in event_text(EvidenceReady(iteration=0, evidence=failed), run)
    assert "the detail" not in event_text(EvidenceReady(iteration=0, evidence=passed), run)


def test_a_revision_shows_its_claims_and_the_lines_that_changed(make_run):
    run = make_run()
    revised = run.iterations[1]
    output = event_text(
        RevisionReady(iteration=1, parent=0, text=revised.text, changes=revised.changes), run
    )
    title, claim, summary, *_ = output.split("\n")
    assert title == "Changes by finding"
    assert claim == "f2 · the problem"
    assert summary == "  → the summary"
    assert output.endswith("- the draft\n+ the revised")


def test_a_revision_that_changes_nothing_says_so(make_run):
    run = make_run()
    same = RevisionReady(iteration=1, parent=0, text=run.iterations[0].text)
    assert event_text(same, run) == "No change to the text."


def test_the_record_keeps_the_lines_of_the_chosen_text_whole(make_run):
    line = "x = " + "1 + " * 60 + "1"
    run = make_run(lambda field: line if field == "revised" else field)
    assert f"\n{line}\n" in record_text(run, columns=40)


def test_the_record_tells_scores_and_every_iteration(make_run):
    output = record_text(make_run())
    assert output.startswith("✓ PASS · tests · score 0.91 · best: iteration 1")
    assert "Scores ▄█· 0.42 → 0.91 → \N{EN DASH} (target 0.80)" in output
    assert [f"── Iteration {k}" in output for k in range(3)] == [True] * 3


def test_a_run_that_only_began_renders():
    assert record_text(BARE).splitlines()[0] == "? NOT VERIFIED"


def test_wrapping_keeps_words_and_breaks_only_what_cannot_fit():
    assert wrap("one two three four five six", 20) == ["one two three four", "five six"]
    assert wrap("x" * 45, 20, "- ", "  ") == ["- " + "x" * 18, "  " + "x" * 18, "  " + "x" * 9]


def test_wide_characters_count_twice_and_marks_not_at_all():
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert wrap("漢" * 15, 20) == ["漢" * 10, "漢" * 5]


def test_joined_characters_count_as_in_a_terminal_that_does_not_join_them():
    assert cells("a\u200db") == 2


def test_the_only_draft_is_the_best_without_saying(make_run):
    run = make_run()
    alone = run.model_copy(update={"iterations": run.iterations[:1]})
    assert event_text(BestChanged(iteration=0), alone) is None
    assert event_text(BestChanged(iteration=1), run) == "★ Best so far: iteration 1"


def test_the_chosen_draft_is_printed_once(make_run):
    run = make_run().model_copy(update={"best": 0})
    assert record_text(run).count("\nthe draft\n") == 1
