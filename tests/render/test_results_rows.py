"""The rows `call → result`, on every surface the same."""

import pytest

from ipyrefine.core.model import (
    ChecksPassed,
    Choice,
    Clarification,
    Evidence,
    Outcome,
    Setup,
    TableValue,
    Tally,
    Task,
    Undecided,
    Verdict,
)
from ipyrefine.core.results import Row
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.terminal import record_text

EXAMPLES = Evidence(name="examples", passed=True, tallies=(Tally(held=3, of=3, noun="example"),))
RIVAL = Row(call="f([])", result="0", source="drafts", rivals=(Choice(result="None"),))
RAISES = Row(call="f(-1)", result="ValueError", raises=True, message="too small", source="edge")
PLAIN = Row(call="f([1])", result="1", setup="import math")
TABLE = TableValue(
    columns=("a", "b"), labels=tuple("012345"), rows=(("1", "2"),) * 6, height=900, width=2
)
CELL = (
    Row(call="top", before="3", result="0", source="cell"),
    Row(call="merged", result="900 rows × 2 columns", source="cell", output=TABLE),
)
ANSWER = Clarification(call="f([1])", result="1", setup="import math")
EVERY = pytest.mark.parametrize("render", [record_text, record_html, record_markdown])


def run_of(*rows: Row, said: tuple[Clarification, ...] = ()) -> Run:
    results = Evidence(name="results", passed=None, required=False, rows=rows)
    text = Iteration(number=0, text="def f(xs): ...", evidence=(EXAMPLES, results))
    task = Task(text="Write f.", form="code", clarifications=said)
    return Run(setup=Setup(task=task), iterations=(text,), best=None)


def live(run: Run, **view) -> str:
    return panel_parts(run, View(**view))["results"]


def words(output: str, read_html) -> str:
    """What a person reads of it, without Markdown's escapes."""
    return " ".join(read_html(output.replace("\\", "")).text.split())


@EVERY
def test_a_scenario_shows_what_each_of_its_lines_gives(render, read_html):
    setup = "s = Pile()\ns.put(1)\ns.take()"
    row = Row(call="s.take()", result="IndexError", raises=True, setup=setup, steps=("", "", "1"))
    flat = words(render(run_of(row)), read_html)
    assert "s = Pile() s.put(1) s.take() → 1 s.take() → IndexError" in flat.replace(";", "")


@EVERY
def test_rows_say_what_a_text_gives(render, read_html):
    flat = words(render(run_of(RIVAL, RAISES, PLAIN)), read_html)
    assert "What it gives" in flat
    assert "f(-1) → ValueError: too small" in flat
    assert "f([1]) → 1" in flat
    assert "0 or None" in flat
    assert "import math" in flat


@EVERY
def test_a_call_of_several_lines_is_one_that_means_the_same(render, read_html):
    text = Row(call='f("""a\nb""")', result="2", source="edge")
    call = Row(call="f(\n    [5, 7,\n     9]\n)", result="3", source="edge")
    flat = words(render(run_of(call, text)), read_html)
    assert "f([5, 7, 9]) → 3" in flat
    assert "b') → 2" in flat


@EVERY
def test_a_cell_is_shown_by_what_it_changed_with_the_head_of_a_table(render, read_html):
    flat = words(render(run_of(*CELL)), read_html)
    assert "What it did" in flat
    assert "3 → 0" in flat
    assert "merged = 900 rows × 2 columns" in flat
    assert flat.index("top") < flat.index("merged")


@EVERY
def test_the_users_word_stands_on_its_row(render, read_html):
    said = (
        Clarification(call="f(-1)", result="0"),
        ANSWER,
    )
    flat = words(render(run_of(RAISES, PLAIN, said=said)), read_html)
    assert "✗ should be 0" in flat
    assert "✓ confirmed" in flat


def test_rival_results_are_buttons_that_do_not_say_which_is_the_texts():
    other = Row(call="f([])", result="None", source="drafts", rivals=(Choice(result="0"),))
    assert live(run_of(RIVAL)) == live(run_of(other))


def test_a_record_has_no_controls_and_a_row_that_is_settled_has_one(read_html):
    assert "data-action" not in record_html(run_of(RIVAL, RAISES))
    said = (Clarification(call="f(-1)", result="0"),)
    assert live(run_of(RAISES, said=said)).count("data-action") == 1


def test_where_only_the_user_can_say_whether_it_is_right_the_rows_say_what_that_takes():
    undecided = Verdict(
        outcome=Outcome.NOT_JUDGED, score=None, basis="none", because=Undecided(why="only_ran")
    )
    run = run_of(PLAIN)
    for critique, sentence in (
        ("never", "Confirm the first, or any two, and the text passes."),
        ("auto", "Confirm the first, or any two; a critic must read the text too."),
    ):
        limits = run.limits.model_copy(update={"critique": critique})
        text = run.iterations[0].replace(verdict=undecided)
        setup = run.setup.model_copy(update={"limits": limits})
        assert sentence in live(run.replace(iterations=(text,), setup=setup))


def test_where_a_critic_read_another_draft_a_confirmed_result_is_enough():
    run, because = run_of(PLAIN), Undecided(why="not_read")
    verdict = Verdict(outcome=Outcome.NOT_JUDGED, score=None, basis="none", because=because)
    other = Iteration(number=1, text="def f(xs): return 1", critiqued=True)
    run = run.replace(iterations=(run.iterations[0].replace(verdict=verdict), other), best=0)
    assert "Confirm the first, or any two, and the text passes." in live(run)


def test_a_pass_on_one_example_asks_about_the_first_result_where_no_critic_reads():
    verdict = Verdict(
        outcome=Outcome.PASS, score=1.0, basis="examples", because=ChecksPassed(names=("examples",))
    )
    for said, weak, asks in (((), True, True), ((ANSWER,), True, False), ((), False, False)):
        run = run_of(PLAIN, said=said)
        run = run.replace(
            iterations=(run.iterations[0].replace(verdict=verdict),),
            setup=run.setup.replace(weak_critic=weak),
        )
        assert ("Is the first result right?" in live(run)) is asks
