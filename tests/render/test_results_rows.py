"""The rows `call → result`, on every surface the same."""

import pytest
from png import picture
from states import FOUND_NOTHING, judged

from ipyrefine.core.model import (
    Clarification,
    Figure,
    FirstRows,
    Outcome,
    Printed,
    Setup,
    Table,
    Task,
    Value,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Result
from ipyrefine.render.blocks import checks
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.terminal import details_text, record_text

EXAMPLES = Result(name="examples", passed=True, tallies={"example": (3, 3)})
RIVAL = Result(call="f([])", gives="0", source="critic", rivals=("None",))
RAISES = Result(call="f(-1)", gives="raises ValueError", shows="too small", source="input")
PLAIN = Result(call="f([1])", gives="1", setup="import math")
TABLE = Table(
    columns=("a", "b"), labels=tuple("012345"), rows=(("1", "2"),) * 6, height=900, width=2
)
SCENARIO = Result(
    call="s.take()", gives="raises IndexError",
    setup="s = Pile()\ns.put(1)\ns.take()", steps=("", "", "1"),
)  # fmt: skip
LONG = Result(call="f(\n    [5, 7,\n     9]\n)", gives="3", source="input")
TEXT = Result(call='f("""a\nb""")', gives="2", source="input")
CORRECTED = Clarification(call="f(-1)", gives="0")
ANSWER = Clarification(call="f([1])", gives="1", setup="import math")
EVERY = pytest.mark.parametrize("render", [record_text, record_html])


def run_of(*rows: Result, said: tuple[Clarification, ...] = ()) -> Run:
    results = Result(name="results", passed=None, counts=False, rows=rows)
    text = Iteration(number=0, text="def f(xs): ...", evidence=(EXAMPLES, results))
    task = Task(text="Write f.", form="code", clarifications=said)
    return Run(setup=Setup(task=task), iterations=(text,), best=None)


def live(run: Run, **view) -> str:
    return panel_parts(run, View(**view))["evidence"]


@EVERY
@pytest.mark.parametrize(
    ("rows", "said", "shown"),
    [
        ((RIVAL, RAISES), (), ("f(-1) → ValueError: too small",
                               "0 or None", "this text: 0")),
        ((PLAIN,), (), ("f([1]) → 1", "import math")),
        ((SCENARIO,), (), ("s = Pile() s.put(1) s.take() → 1 s.take() → IndexError",)),
        ((LONG, TEXT), (), ("f([5, 7, 9]) → 3", "b') → 2")),
        ((RAISES, PLAIN), (CORRECTED, ANSWER), ("✗ should be 0", "✓ confirmed")),
    ],
    ids=["results", "what runs before", "a scenario", "several lines as one", "the user's word"],
)  # fmt: skip
def test_rows_say_what_a_text_gives(render, rows, said, shown, read_words):
    flat = read_words(render(run_of(*rows, said=said))).replace(";", "")
    assert [one for one in shown if one not in flat] == []


def two_of(first: Result, second: Result) -> Run:
    """A run of a draft and its revision, each with what it gives on one input."""
    run = run_of(first)
    other = run_of(second).iterations[0].replace(number=1, parent=0)
    return run.replace(iterations=(*run.iterations, other))


@pytest.mark.parametrize(
    ("right", "marks"), [("0", "✓✗"), ("None", "✗✓"), ("7", "✗✗"), ("0.0", "✓✗")]
)
def test_of_each_text_a_mark_says_whether_it_gives_what_the_user_expects(right, marks):
    said = (Clarification(call="f([])", gives=right),)
    found = two_of(RIVAL.replace(rivals=()), Result(call="f([])", gives="None"))
    found = found.replace(setup=run_of(said=said).setup)
    for text in found.iterations:
        [table] = checks(found, text)
        assert "".join(one.symbol for one in table.lines[0].marks) == marks


MANY = tuple(Result(call=f"f({n})", gives=str(n)) for n in range(5))


def unfolded(*rows: Result, said: tuple[Clarification, ...] = ()) -> tuple[str, str]:
    """What stands above the fold, and below it."""
    above, _, below = live(run_of(*rows, said=said)).partition('<details class="rf-more">')
    return above, below


def test_two_results_ask_and_the_others_are_folded(read_words):
    above, below = unfolded(*MANY)
    assert above.count('title="Right') == 2
    assert below.count('title="Right') == 3
    assert "3 more" in below
    assert "3 more" in read_words(record_html(run_of(*MANY)))
    printed = record_text(run_of(*MANY))
    assert "2  f(1) → 1" in printed
    assert "3 more: %refine show checks" in printed
    assert "f(2)" not in printed
    assert "5  f(4) → 4" in details_text(run_of(*MANY).replace(best=0), "checks")


LACKING = tuple(one.replace(conditions=(FirstRows(name="df", rows=5, of=9),)) for one in MANY)


@pytest.mark.parametrize(
    ("rows", "said", "shown"),
    [
        (MANY, (Clarification(call="f(3)", gives="9"),), [0, 1, 3]),
        ((LACKING[0], *MANY[1:]), (), [1, 2]),
        (LACKING, (), [0, 1]),
    ],
    ids=["an answered one is not folded", "one without buttons takes no place", "none has any"],
)
def test_which_results_stand_above_the_fold(rows, said, shown, read_words):
    above, below = unfolded(*rows, said=said)
    seen = read_words(above)
    assert [n for n in range(5) if f"f({n}) →" in seen] == shown
    assert f"{5 - len(shown)} more" in below


def test_a_record_has_no_controls_and_a_row_that_is_settled_has_one():
    assert "data-action" not in record_html(run_of(RIVAL, RAISES))
    assert live(run_of(RAISES, said=(CORRECTED,))).count("data-action") == 1


OWN = Result(call="mean([3, 1], 2)", gives="[2.0]", source="own")


def blank(*rows: Result, why: str = "only_ran", said: tuple[Clarification, ...] = ()) -> Run:
    """A run whose text runs, and nothing says what it should give."""
    run, basis = run_of(*rows, said=said), "run" if why == "only_ran" else "none"
    verdict = judged(Outcome.NOT_JUDGED, basis, why)
    text = run.iterations[0].replace(verdict=verdict, evidence=run.iterations[0].evidence[1:])
    return run.replace(iterations=(text,), best=0)


def test_a_function_of_which_nothing_is_known_asks_for_the_result_of_a_call(read_words):
    page = live(blank(OWN))
    assert 'name="result"' in page
    assert 'data-action="expect"' in page
    assert "For example mean([3, 1], 2) == Check" in read_words(page)
    assert "2.0" not in page
    record = record_html(blank(OWN))
    assert "nobody has said what mean([3, 1], 2) should give" in read_words(record)
    assert "data-action" not in record
    printed = record_text(blank(OWN))
    assert "  1? mean([3, 1], 2) == ?" in printed
    assert '%refine should 1 "VALUE" says what it should give.' in printed


PARTIAL = (FirstRows(name="df", rows=202_206, of=2_000_000),)
SAID = "on the first 202,206 of 2,000,000 rows of df"


def on_first_rows(*outputs) -> Run:
    """A run whose cell gives `total` and these outputs on first rows, and `n` on nothing cut."""
    run = run_of()
    total = Result(call="total", gives="526541.0", source="cell", conditions=PARTIAL)
    found = Result(
        name="run on copies", passed=True, basis="run", outputs=outputs, conditions=PARTIAL,
        rows=(total, Result(call="n", gives="3", source="cell")),
    )  # fmt: skip
    text = run.iterations[0].replace(evidence=(found,), verdict=FOUND_NOTHING)
    return run.replace(iterations=(text,), best=0)


@EVERY
@pytest.mark.parametrize(
    ("output", "title"),
    [
        (Value(text="526541.0"), "The answer: 526541.0"),
        (Printed(text="526541.0"), "Printed: 526541.0"),
        (TABLE, "The answer: a table of 900 rows × 2 columns, the first 6 rows"),
        (TABLE.replace(columns=("n",), rows=(("1",),) * 6, width=1, is_series=True),
         "The answer: a column of 900 values, the first 6"),
        (Figure(png=picture(640, 480)), "The answer: a figure of 640 × 480 pixels"),
    ],
    ids=["value", "printed", "table", "series", "figure"],
)  # fmt: skip
def test_the_verdict_a_row_and_an_output_say_that_they_are_of_first_rows(
    render, output, title, read_words
):
    flat = read_words(render(on_first_rows(output)))
    label, *_ = flat.partition("The answer")
    assert SAID in label
    assert any(f"total = 526541.0{apart}{SAID}" in flat for apart in (" ", " · "))
    assert any(f"{title}{apart}{SAID}" in flat for apart in (" ", ", "))
    assert f"n = 3 {SAID}" not in flat.replace(" · ", " ")
