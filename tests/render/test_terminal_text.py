"""A run in a terminal: within its width, and in nobody's power."""

import time

import pytest
from kit import question

from ipyrefine.core.events import RunStarted, StageStarted, Stopped, TextDelta
from ipyrefine.core.model import Setup, StopReason, Task
from ipyrefine.core.run import Run
from ipyrefine.core.table import Result
from ipyrefine.render import say
from ipyrefine.render.terminal import cells, event_text, wrap

BARE = Run.begin(Setup(task=Task(text="Write.")))


def test_a_run_begins_with_how_its_cell_was_read():
    setup = Setup(task=Task(text="Write f.\n\n>>> f()\n1"), demands=("1 example",), model="m")
    run = Run.begin(setup)
    assert event_text(RunStarted(setup=setup), run).split("\n") == [
        "Interpreted as: task (prose), 1 example",
        "│ Write f. ⋯",
        f"model m · {say.bounds(run)}",
    ]


def test_a_text_that_was_left_behind_is_a_line(make_run):
    run = make_run()
    for stage in ("draft", "revise"):
        assert event_text(StageStarted(stage=stage, iteration=1), run).split("\n") == [
            "Draft: ✗ FAIL · the why",
        ]
    assert event_text(StageStarted(stage="draft", iteration=0), BARE) is None
    for stage in ("check", "judge", "critique"):
        assert event_text(StageStarted(stage=stage, iteration=1), run) is None
    assert event_text(TextDelta(stage="draft", iteration=0, text="x"), BARE) is None


def closing(run, reason=StopReason.REVISIONS, rows=24):
    state = run.model_copy(update={"stop_reason": reason})
    return event_text(Stopped(reason=reason, message=run.message), state, rows=rows)


def test_a_stopped_run_is_one_screen_verdict_first(make_run):
    assert closing(make_run()).split("\n") == [
        "── Revision 1: ✓ PASS · examples passed ────────────────────────────────────────",
        "Changes from the draft:",
        "- the draft",
        "+ the revised",
        f"{'':67}Draft  1 ★  2",
        "  1? the setup; the call → E or the result? ·                      ·      ·    ·",
        "     revision 1: the result",
        f"  {'✓  examples passed':53}your check  ·      ✓    ·",
        "  Draft       the why",
        "  Revision 1  examples passed",
        "  Revision 2  no new text",
        "3,456 tokens · 12 s · $0.0012",
        "the message",
    ]


def test_a_long_text_is_cut_to_the_screen_and_says_how_to_see_all(make_run):
    lines = "\n".join(f"line_{n} = {n}" for n in range(99))
    run = make_run(draft=lines)
    run = run.model_copy(update={"best": 0, "iterations": run.iterations[:1]})
    for rows in (24, 40):
        output = closing(run, rows=rows).split("\n")
        assert len(output) == rows
        assert [line for line in output if "more lines: show text" in line]
    assert len(closing(run, rows=5).split("\n")) <= 20


def test_what_the_critic_asks_about_the_task_stands_below_a_passing_text(make_run):
    open_ = question("Are equal names merged?", "yes", "no")
    asked = make_run().iterations[0].replace(results={"q1": Result(passed=False)})
    output = closing(make_run().replace(iterations=(asked,), points={"q1": open_}, best=0))
    assert "  q1? Are equal names merged? (yes / no)" in output
    assert "%refine should q1 ANSWER answers it" in output


@pytest.mark.parametrize("reason", [StopReason.ACCEPTED, StopReason.OVERRIDDEN])
def test_a_decision_is_answered_with_the_verdict_alone(make_run, reason):
    assert closing(make_run(), reason).startswith("── Revision 1: ✓ PASS · examples passed ──")
    assert "\n" not in closing(make_run(), reason)


def test_wrapping_keeps_words_and_breaks_only_what_cannot_fit():
    assert wrap("one two three four five six", 20) == ["one two three four", "five six"]
    assert wrap("x" * 45, 20, "- ", "  ") == ["- " + "x" * 18, "  " + "x" * 18, "  " + "x" * 9]
    assert wrap("漢" * 15, 20) == ["漢" * 10, "漢" * 5], "wide characters count twice"


@pytest.mark.parametrize("line", [
    "x" * 300_000,
    "שלום " * 60_000,
    " " * 300_000,
    "\u0301" * 30_000,
], ids=["one word", "words", "spaces", "accents alone"])  # fmt: skip
def test_a_very_long_line_is_broken_at_once_and_whole(line):
    began = time.process_time()
    lines = wrap(line, 80, "- ", "  ")
    assert time.process_time() - began < 10
    assert max(map(cells, lines)) <= 80
    assert "".join("".join(lines).split()).removeprefix("-") == "".join(line.split())
