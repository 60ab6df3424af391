"""The one line that a decided run comes to."""

from collections.abc import Callable

import pytest
from kit import question

from ipyrefine.core.decisions import Accept
from ipyrefine.core.model import Choice, Outcome, Setup, StopReason, Task, Verdict
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Evidence, Point, Reading, Result, Tally
from ipyrefine.render import words
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.terminal import record_text

EXAMPLES = Evidence(
    name="examples", passed=True, basis="examples", tallies=(Tally(held=3, of=3, noun="example"),)
)
PASS = Verdict(outcome=Outcome.PASS, score=1.0, basis="examples")
FAILED = Verdict(
    outcome=Outcome.NEEDS_IMPROVEMENT, score=None, basis="critique",
    why="test_failed", point="test_empty", line="x", required_passed=False,
)  # fmt: skip
UNREADABLE = Verdict(outcome=Outcome.NOT_JUDGED, score=None, why="unreadable")
RAISES = Choice(result="IndexError", raises=True)
CODE = "def test_empty():\n    assert last([]) is None"
TEST = Point(id="t1", kind="test", words="test_empty", code=CODE)
ASKED = question("Which?")
MISSED = Result(passed=False)


def run_of(verdict: Verdict | None, **text: object) -> Run:
    iteration = Iteration(number=0, text="x = 1", verdict=verdict, **text)  # type: ignore[arg-type]
    return Run(
        setup=Setup(task=Task(text="Write it.", form="code"), model="m", judge="gpt"),
        iterations=(iteration,),
        best=None if verdict is None else 0,
        decisions=(Accept(iteration=0),),
        stop_reason=StopReason.ACCEPTED,
        message="You accepted the draft.",
        seconds=8,
        points={"t1": TEST, "q1": ASKED},
    )


def line(run: Run, *, reading: bool = False) -> str:
    said = words.receipt(run, reading=reading)
    return " · ".join([str(said.title), *(f"{b} {w}".strip() for b, w in said.phrases)])


def suite(said: str, gives: Choice | None = None) -> dict[str, Result]:
    return {"t1": Result(passed=False, shows=said, gives=gives)}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_of(PASS, evidence=(EXAMPLES,)), "✓ PASS · 3 of 3 examples hold · accepted · 8 s"),
        (run_of(None, evidence=(EXAMPLES,)),
         "… RUNS · 3 of 3 examples hold · accepted · not read · 8 s"),
        (run_of(PASS, evidence=(EXAMPLES,), read_late=True),
         "✓ PASS · 3 of 3 examples hold · accepted · read afterwards: nothing found · 8 s"),
        (run_of(PASS, evidence=(EXAMPLES,), read_late=True, results={"q1": MISSED}),
         "✓ PASS · 3 of 3 examples hold · accepted · "
         "read afterwards: nothing that blocks it · 8 s"),
        (run_of(FAILED, results=suite("IndexError: out of range", RAISES), read_late=True),
         "⚠ FAILS A TEST · last([]) → IndexError, expected None · accepted · 8 s"),
        (run_of(FAILED, results=suite("assert 3 is None", Choice(result="3")), read_late=True),
         "⚠ FAILS A TEST · last([]) → 3, expected None · accepted · 8 s"),
        (run_of(FAILED, results=suite("It did not end."), read_late=True),
         "⚠ FAILS A TEST · test_empty: It did not end · accepted · 8 s"),
        (run_of(UNREADABLE, read_late=True, reading=Reading(failure="It is down")),
         "? NOT JUDGED · accepted · could not be read afterwards: It is down · 8 s"),
        (run_of(FAILED, results=suite("IndexError")),
         "✎ NEEDS IMPROVEMENT · x · accepted · 8 s"),
    ],
)  # fmt: skip
def test_it_says_what_the_text_rests_on_and_what_was_found_afterwards(
    run: Run, expected: str
) -> None:
    assert line(run) == expected


def test_while_the_critic_reads_it_says_who() -> None:
    run = run_of(None, evidence=(EXAMPLES,))
    assert "accepted · gpt is reading it" in line(run, reading=True)


def test_panel_and_record_are_one_line_that_offers_the_fix_of_what_was_found_later() -> None:
    amber = run_of(FAILED, results=suite("IndexError", RAISES), read_late=True)
    for run, offered in ((amber, True), (run_of(FAILED), False), (run_of(PASS), False)):
        parts = panel_parts(run, View())
        assert ("Show fix" in parts["top"]) is offered
        assert not parts["text"]
        assert "x" in panel_parts(run, View(folds=frozenset({"receipt"})))["text"]
    assert "last([]) → IndexError, expected None" in record_html(amber)


@pytest.mark.parametrize("render", [record_html, record_text])
def test_why_a_text_is_not_judged_stands_once(render: Callable[[Run], str]) -> None:
    why = "the reply could not be read"
    verdict = UNREADABLE.replace(line=why)
    run = run_of(verdict, reading=Reading(failure=why)).replace(
        decisions=(),
        stop_reason=StopReason.UNJUDGED,
        message="Accept the text, or say what you need and continue.",
        warnings=(f"Asked gpt again: {why}.", f"No critique of the draft: {why}.", "Another."),
    )
    shown = " ".join(render(run).split())
    head = shown.partition("<footer")[0]
    assert head.count(why) == 1
    assert "Another." in head
    if render is record_html:
        top = panel_parts(run, View())
        assert (top["top"] + top["notices"]).count(why) == 1
        assert "No critique of the draft" in shown
