"""The answer first, then what running a text did to data, in words."""

import pytest
from states import FILLED, FIRST, GONE, WARNING, data_run

from ipyrefine.core.actions import decide, decision, decision_sentence
from ipyrefine.core.effects import sentence
from ipyrefine.core.events import Stopped
from ipyrefine.core.model import Effect, Printed, Table, Value
from ipyrefine.core.table import Result
from ipyrefine.render.formatting import sentence_html
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.say import effect_buttons
from ipyrefine.render.terminal import details_text, event_text, record_text

HEAD = Table(
    columns=("amount", "town"), labels=("0",), rows=(("12.5", "Bonn"),), height=1_187, width=2
)
NEW = Effect(kind="new", name="merged", after="1,187 rows × 2 columns", head=HEAD)
CHANGED = Effect(kind="changed", name="sales", before="3 rows", after="2 rows")
ORDER = Effect(kind="reordered", name="merged", of="orders")
ANSWER = Value(text="16")
ROWS = (Result(call="top", before="3", gives="0", source="cell"),)
SURFACES = pytest.mark.parametrize("render", [record_text, record_html, lambda run: live(run)])


def run_of(*effects, outputs=(ANSWER,), **fields):
    return data_run(*effects, outputs=outputs, **fields)


def screen(run):
    return event_text(Stopped(reason=run.stop_reason, message=""), run, rows=60)


def results(run, **view):
    return panel_parts(run, View(**view))["results"]


def live(run):
    parts = panel_parts(run, View())
    return parts["text"] + parts["results"] + parts["evidence"]


@SURFACES
def test_an_answer_of_one_line_stands_first_then_effects_then_the_rest(render, read_words):
    printed = Printed(text="one\ntwo")
    run = run_of(GONE, FILLED, outputs=(printed, ANSWER), rows=ROWS)
    flat = read_words(render(run))
    lines = (
        "The answer: 16",
        sentence(GONE).replace("`", ""),
        sentence(FILLED).replace("`", ""),
        "Printed",
        "3 → 0",
    )
    places = [flat.index(one) for one in lines]
    assert places == sorted(places)
    assert flat.count("The answer") == 1


@pytest.mark.parametrize(
    ("name", "cause", "outputs", "line"),
    [
        ("", "nan", (Value(text="nan"),), "The answer is nan 12 missing"),
        ("", "nan", (Value(text="(1, nan)"),), "The answer is nan: (1, nan) 12 missing"),
        ("", "", (Value(text="answer"),), "The answer: answer 12 missing"),
        ("", "none", (), "The answer is None 12 missing"),
        ("", "empty", (Value(text="[]"),), "The answer is empty: [] 12 missing"),
        ("", "nothing", (), "It gives nothing and changes nothing 12 missing"),
        ("top", "empty", (ANSWER,), "The answer: 16"),
        ("top", "empty", (), "top is empty"),
    ],
)
def test_what_is_odd_about_the_answer_or_a_name_stands_in_its_line(
    name, cause, outputs, line, read_words
):
    odd = [Effect(kind="answer", name=name, cause=cause)] if cause else []
    run = run_of(*odd, FILLED, outputs=outputs)
    flat = read_words(results(run))
    assert flat.startswith(line)
    assert flat.count("The answer") == line.count("The answer")
    assert flat.count("top is empty") == (name == "top")
    assert line.partition(" 12")[0] in read_words(record_text(run))


@SURFACES
def test_what_no_words_ask_for_stands_first_and_asks(render, read_words):
    flat = read_words(render(run_of(FILLED, GONE, asked=[GONE])))
    assert flat.index("17 of 1,204") < flat.index("The answer") < flat.index("12 missing values")
    assert flat.count("17 of 1,204") == 1
    assert "They should go" in flat
    assert "Keep all 1,204" in flat


def test_its_buttons_keep_it_or_have_the_text_revised_and_accept_is_amber_till_then():
    run = run_of(FILLED, GONE, asked=[GONE])
    for action, name, said in (
        ("dismiss", "They should go", "said that this is right"),
        ("act", "Keep all 1,204", "want this undone"),
    ):
        button = results(run).partition(f'data-action="{action}" data-finding="f1"')[2]
        assert button.partition("</button>")[0].endswith(name)
        taken = decision(run, action, {"finding": "f1", "iteration": 0})
        assert decision_sentence(run, taken) == f"You {said}: {sentence(GONE)}."
    assert '"rf-b rf-check" data-action="accept"' in panel_parts(run, View())["top"]
    kept = decide(run, decision(run, "dismiss", {"finding": "f1"}))
    assert "rf-amber" not in results(kept)
    assert "17 of 1,204" in results(kept)


def test_nothing_is_coloured_or_asked_where_no_reader_said_so():
    run = run_of(GONE, NEW, FILLED, CHANGED, Effect(kind="answer", cause="nan"))
    assert "rf-amber" not in results(run) + record_html(run).partition("</style>")[2]
    assert "data-action" not in results(run)
    assert "rf-check" not in panel_parts(run, View())["top"]


def test_at_most_two_ask_and_the_others_wait_as_plain_lines():
    run = run_of(FILLED, GONE, CHANGED, asked=[GONE, CHANGED, FILLED])
    html = results(run)
    assert html.count("rf-amber") == 2
    asked, _, rest = html.partition("The answer")
    assert "12 missing" in rest
    assert "12 missing" not in asked
    answered = decide(run, decision(run, "dismiss", {"finding": "f1"}))
    asked = results(answered).partition("The answer")[0]
    assert "12 missing" in asked


@pytest.mark.parametrize(("effect", "buttons"), [
    (GONE, ("They should go", "Keep all 1,204")),
    (Effect(kind="read", count=5, total=9), ("Right", "Read the whole file")),
    (Effect(kind="repeated", count=2), ("Right", "Keep each once")),
    (FILLED, ("Right", "Leave them as they were")),
    (CHANGED, ("Right", "Leave `sales` as it is")),
])  # fmt: skip
def test_buttons_say_what_they_do(effect, buttons):
    assert effect_buttons(effect) == buttons


def test_three_or_four_lines_are_told_the_rest_folds_and_so_does_the_head_of_a_table():
    effects = (GONE, NEW, FILLED, CHANGED, ORDER, WARNING)
    assert " more<" not in results(run_of(*effects[:4]))
    told, _, folded = results(run_of(*effects)).partition("<summary>2 more</summary>")
    assert "FutureWarning" in folded
    assert "are filled" in told
    assert "is new" not in told + folded
    guide = panel_parts(run_of(*effects), View(folds=frozenset({"details"})))["guide"]
    head = guide.partition("is new")[2].partition("</details>")[0]
    assert "Bonn" in head


def test_a_condition_stands_in_the_line_of_the_answer_or_of_the_first_effect(read_words):
    said = "on the first 12,000,000 of 410,000,000 rows of log"
    for outputs in ((ANSWER, Printed(text="x")), ()):
        run = run_of(GONE, FILLED, outputs=outputs, conditions=(FIRST,))
        flat = read_words(results(run))
        assert flat.count(said) == 1
        first = "The answer: 16" if outputs else "is not in customers"
        assert f"{first} {said}" in flat


def test_names_and_values_do_nothing_and_turn_nothing_around():
    hostile = GONE.replace(
        name="<img src=x>", values=("</li><b>", "عمر"), other="نتيجة", column="$x$"
    )
    html = results(run_of(hostile, asked=[hostile]))
    assert "<img" not in html
    assert "</li><b>" not in html
    assert '<code dir="auto">&lt;img src=x&gt;</code>' in html
    assert '<code dir="auto">نتيجة</code>' in html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a` and `b c`", '<code dir="auto">a</code> and <code dir="auto">b c</code>'),
        ("one ` only", "one ` only"),
        ("“عاجل” stands alone", "<bdi>“عاجل”</bdi> stands alone"),
        ("`<i>`", '<code dir="auto">&lt;i&gt;</code>'),
        ("`$a", "`<span>$</span>a"),
    ],
)
def test_what_stands_in_backticks_is_code(text, html):
    assert str(sentence_html(text)) == html


def test_a_terminal_says_how_to_answer_and_leaves_heads_to_the_record(read_words):
    run = run_of(GONE, NEW, FILLED, asked=[GONE, FILLED])
    seen = screen(run)
    say = "%refine dismiss f1: “They should go”; continue f1: “Keep all 1,204”."
    assert say in seen
    assert "%refine dismiss f2: “Right”; continue f2: “Leave them as they were”." in seen
    assert "  f1? 17 of 1,204 rows of `orders`" in seen
    assert seen.index("orders.merge") < seen.index("  f1? ") < seen.index("The answer: 16")
    assert "Bonn" not in seen + record_text(run)
    assert "Bonn" in details_text(run, "output")
    assert say in read_words(record_html(run))


def test_a_change_that_can_be_confirmed_is_said_once(read_words):
    change = Effect(kind="changed", name="top", before="3", after="0")
    other = change.replace(name="low")
    flat = read_words(live(run_of(change, other, rows=ROWS)))
    assert flat.count("3 → 0") == 2
    assert "low: 3 → 0" in flat
    asked = read_words(live(run_of(change, rows=ROWS, asked=[change])))
    assert "!top: 3 → 0" in asked
