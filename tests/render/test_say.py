"""Labels say what a verdict rests on, and how far that can be trusted."""

import pytest

from ipyrefine.core.model import (
    Outcome,
    Setup,
    StopReason,
    Task,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Result
from ipyrefine.render import blocks, say
from ipyrefine.render.html import record_html
from ipyrefine.render.terminal import record_text

PASS, NEEDS, FAIL = Outcome.PASS, Outcome.NEEDS_IMPROVEMENT, Outcome.FAIL
HELD = Result(
    name="examples",
    passed=True,
    basis="examples",
    tallies={"example": (3, 3)},
    shows="f(1): 1\n3 of 3 stated examples hold.",
)
OPINION = Verdict(outcome=PASS, score=0.81, basis="evaluator", why="scored")
RAN = Verdict(outcome=Outcome.NOT_JUDGED, score=None, basis="run", why="only_ran")


def run_of(verdict, *, evidence=(), points=(), **fields):
    """A stopped run of one text that misses these points."""
    results = {one.id: Result(passed=False) for one in points}
    iteration = Iteration(
        number=0, text="the text", verdict=verdict, evidence=evidence, results=results
    )
    fields["points"] = {one.id: one for one in points}
    best = None if verdict is None else 0
    setup = Setup(task=Task(text="Write."))
    return Run(setup=setup, iterations=(iteration,), best=best, **fields)


def verdict(outcome, basis, score=None, **fields):
    return Verdict(outcome=outcome, basis=basis, score=score, **fields)


@pytest.mark.parametrize(("verdict", "label"), [
    (verdict(PASS, "examples", 1), "✓ PASS · 3 of 3 examples hold"),
    (OPINION, "○ PASS · Scored 0.81, target 0.80"),
    (verdict(NEEDS, "evaluator", 0.6, why="scored"),
     "✎ NEEDS IMPROVEMENT · Scored 0.60, target 0.80"),
    (verdict(NEEDS, "tests", why="failed", line="2 of 9 fail."),
     "✎ NEEDS IMPROVEMENT · 2 of 9 fail"),
    (verdict(PASS, "user", why="user"), "☑ PASS (yours) · Marked PASS by you"),
    (RAN, "? NOT JUDGED · Runs; nobody checked what it gives"),
    (Verdict(outcome=Outcome.NOT_JUDGED, score=None), "? NOT JUDGED"),
])  # fmt: skip
def test_a_verdict_names_its_basis_on_every_surface(verdict, label, read_html):
    run = run_of(verdict, evidence=(HELD,))
    assert str(say.verdict(run, run.chosen)) == label
    assert record_text(run, 100).startswith(label)
    assert f"{read_html(record_html(run)).text.strip()} ".startswith(label.replace(" · ", " "))


@pytest.mark.parametrize(("evidence", "said"), [
    (HELD, "3 of 3 examples hold"),
    (Result(name="lint", passed=False), "lint failed"),
    (Result(name="lint", passed=False, counts=False), "lint failed, which does not block"),
    (Result(name="near", passed=False, score=0.4), "near failed: 0.40"),
    (Result(name="schema", passed=None), "schema: no result"),
    (Result(name="length:<=120 words", passed=True, basis="constraints"), "at most 120 words"),
])  # fmt: skip
def test_a_check_is_a_few_words(evidence, said):
    assert say.check(evidence) == said


def test_a_line_says_what_a_check_counted_and_its_fold_does_not_say_it_again():
    detail = "f(1): expected 2, got 3\n1 of 2 stated examples hold."
    fails = HELD.replace(passed=False, tallies={"example": (1, 2)}, shows=detail)
    short = Result(
        name="length:<=9 words", passed=True, basis="constraints", shows="It has 4 words."
    )
    run = run_of(RAN, evidence=(fails, short))
    [table] = blocks.checks(run, run.iterations[0])
    assert [(one.text, *one.notes, one.detail) for one in table.lines] == [
        ("1 of 2 examples hold", "f(1): expected 2, got 3"),
        ("at most 9 words", "It has 4 words.", ""),
    ]


@pytest.mark.parametrize(("value", "text"), [
    (0.01, "< 0.1 s"), (12.4, "12 s"), (59.7, "1 min 00 s"), (3725, "1 h 02 min"),
])  # fmt: skip
def test_durations_read_naturally(value, text):
    assert say.seconds(value) == text


@pytest.mark.parametrize(("stop", "label"), [
    (StopReason.CANCELLED, "■ STOPPED"), (StopReason.FAILED, "✗ STOPPED"),
])  # fmt: skip
def test_a_stop_of_yours_does_not_look_like_an_error(stop, label):
    run = run_of(None, stop_reason=stop).replace(iterations=())
    assert str(say.verdict(run, None).label) == label
