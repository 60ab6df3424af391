"""The answer first, then what running a text did to data, in words."""

import pytest
from png import picture

from ipyrefine.core.actions import decide, decision, decision_sentence
from ipyrefine.core.effects import sentence
from ipyrefine.core.events import Stopped
from ipyrefine.core.model import (
    Effect,
    Figure,
    FirstRows,
    Outcome,
    Printed,
    Setup,
    StopReason,
    TableValue,
    Task,
    Value,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Evidence, Point, Result, Row
from ipyrefine.render.formatting import sentence_html
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.labels import effect_buttons
from ipyrefine.render.terminal import details_text, event_text, record_text
from ipyrefine.session.record import shorten

HEAD = TableValue(
    columns=("amount", "town"), labels=("0",), rows=(("12.5", "Bonn"),), height=1_187, width=2
)
GONE = Effect(
    kind="gone", name="merged", of="orders", column="customer", count=17, total=1_204,
    values=("88", "91", "97"), cause="unmatched", other="customers",
)  # fmt: skip
NEW = Effect(kind="new", name="merged", after="1,187 rows × 2 columns", head=HEAD)
FILLED = Effect(kind="filled", name="orders", column="amount", count=12, after="0", line=3)
CHANGED = Effect(kind="changed", name="sales", before="3 rows", after="2 rows")
ORDER = Effect(kind="reordered", name="merged", of="orders")
WARNING = Effect(kind="warning", cause="FutureWarning", line=2)
ANSWER = Value(text="16")
ROWS = (Row(call="top", before="3", result="0", source="cell"),)
SURFACES = pytest.mark.parametrize("render", [record_text, record_html, lambda run: live(run)])


def run_of(*effects, outputs=(ANSWER,), asked=(), conditions=(), rows=()):
    """A run of one text with these effects; `asked` are those that no words ask for."""
    points = {f"f{n}": fact(f"f{n}", one) for n, one in enumerate(asked, start=1)}
    found = Evidence(
        name="run on copies", passed=True, basis="run", outputs=outputs, effects=effects,
        conditions=conditions, rows=rows,
    )  # fmt: skip
    text = Iteration(
        number=0,
        text="merged = orders.merge(customers)",
        evidence=(found,),
        results={id_: Result(passed=False) for id_ in points},
        verdict=Verdict(outcome=Outcome.NOT_JUDGED, score=None, basis="run", why="only_ran"),
    )
    setup = Setup(task=Task(text="Merge.", form="code"), model="m")
    reason = StopReason.UNJUDGED
    return Run(setup=setup, iterations=(text,), points=points, best=0, stop_reason=reason)


def fact(id_, effect):
    return Point(id=id_, kind="fact", words=sentence(effect), blocking=False, effect=effect)


def live(run):
    parts = panel_parts(run, View())
    return parts["text"] + parts["results"] + parts["evidence"]


def words(html, read_html):
    return " ".join(read_html(html.replace("`", "")).text.split())


@SURFACES
def test_the_answer_is_the_first_line_below_the_text_then_effects_then_the_rest(render, read_html):
    printed = Printed(text="one\ntwo")
    run = run_of(GONE, FILLED, outputs=(printed, ANSWER), rows=ROWS)
    flat = words(render(run), read_html)
    lines = (
        "merged = orders.merge(customers)",
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
    ("cause", "outputs", "line"),
    [
        ("nan", (Value(text="nan"),), "The answer is nan 12 missing"),
        ("nan", (Value(text="np.float64(nan)"),), "The answer is nan 12 missing"),
        ("nan", (Value(text="(1, nan)"),), "The answer is nan: (1, nan) 12 missing"),
        ("", (Value(text="answer"),), "The answer: answer 12 missing"),
        ("none", (), "The answer is None 12 missing"),
        ("none", (Printed(text="x"),), "The answer is None 12 missing"),
        ("empty", (Value(text="[]"),), "The answer is empty: [] 12 missing"),
        ("missing", (HEAD,), "All values of the answer are missing: a table of 1,187 rows"),
        ("nothing", (), "It gives nothing and changes nothing 12 missing"),
    ],
)
def test_what_is_odd_about_the_answer_stands_in_its_line(cause, outputs, line, read_html):
    odd = [Effect(kind="answer", cause=cause)] if cause else []
    run = run_of(*odd, FILLED, outputs=outputs)
    flat = words(panel_parts(run, View())["results"], read_html)
    assert flat.startswith(line)
    assert flat.count("The answer") == line.count("The answer")
    assert line.partition(" 12")[0] in words(record_text(run), read_html)


def test_what_is_odd_about_a_name_is_a_line_of_its_own_beside_an_answer(read_html):
    odd = Effect(kind="answer", name="top", cause="empty")
    for outputs, first in (((ANSWER,), "The answer: 16"), ((), sentence(odd).replace("`", ""))):
        flat = words(
            panel_parts(run_of(odd, FILLED, outputs=outputs), View())["results"], read_html
        )
        assert flat.startswith(first)
        assert flat.count(sentence(odd).replace("`", "")) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("np.int64(16)", "16"),
        (
            "{'a': np.float64(-1.5e-07), 3: [np.uint8(3), np.True_]}",
            "{'a': -1.5e-07, 3: [3, True]}",
        ),
        ("np.str_('a')", "np.str_('a')"),
        ("np.datetime64('2024-01-01')", "np.datetime64('2024-01-01')"),
        ("np.random.int64(3) + anp.int64(3)", "np.random.int64(3) + anp.int64(3)"),
    ],
)
def test_a_number_of_numpys_is_a_number(text, line, read_html):
    assert f"The answer: {line}" in words(live(run_of(outputs=(Value(text=text),))), read_html)


def test_a_figure_is_an_answer_and_a_value_beside_one_comes_first(read_html):
    figure = Figure(png=picture(640, 480))
    alone = words(live(run_of(outputs=(figure,))), read_html)
    assert "The answer: a figure of 640 × 480 pixels" in alone
    both = words(live(run_of(outputs=(figure, ANSWER))), read_html)
    assert both.index("The answer: 16") < both.index("A figure of 640 × 480 pixels")


def test_only_a_long_print_without_a_value_lets_effects_come_first(read_html):
    for text, first in (("16", "Printed: 16"), ("line\n" * 40, "17 of 1,204 rows")):
        run = run_of(GONE, outputs=(Printed(text=text),))
        assert words(panel_parts(run, View())["results"], read_html).startswith(first)


@SURFACES
def test_what_no_words_ask_for_stands_first_and_asks(render, read_html):
    flat = words(render(run_of(FILLED, GONE, asked=[GONE])), read_html)
    assert flat.index("17 of 1,204") < flat.index("The answer") < flat.index("12 missing values")
    assert flat.count("17 of 1,204") == 1
    assert "They should go" in flat
    assert "Keep all 1,204" in flat


def test_accept_is_amber_only_where_data_are_asked_about():
    assert (
        '"rf-b rf-check" data-action="accept"'
        in panel_parts(run_of(GONE, asked=[GONE]), View())["top"]
    )
    assert "rf-check" not in panel_parts(run_of(GONE), View())["top"]


def test_its_buttons_keep_it_or_have_the_text_revised():
    run = run_of(FILLED, GONE, asked=[GONE])
    html = panel_parts(run, View())["results"]
    for action, name in (("dismiss", "They should go"), ("act", "Keep all 1,204")):
        button = html.partition(f'data-action="{action}" data-finding="f1"')[2]
        assert button.partition("</button>")[0].endswith(name)
        taken = decision(run, action, {"finding": "f1", "iteration": 0})
        said = {"dismiss": "said that this is right", "act": "want this undone"}[action]
        assert decision_sentence(run, taken) == f"You {said}: {sentence(GONE)}."
    kept = decide(run, decision(run, "dismiss", {"finding": "f1"}))
    assert "rf-amber" not in panel_parts(kept, View())["results"]
    assert "17 of 1,204" in panel_parts(kept, View())["results"]


def test_nothing_is_coloured_or_asked_where_no_reader_said_so():
    run = run_of(GONE, NEW, FILLED, CHANGED, Effect(kind="answer", cause="nan"))
    html = panel_parts(run, View())["results"]
    assert "rf-amber" not in html
    assert "data-action" not in html
    assert "rf-amber" not in record_html(run).partition("</style>")[2]


def test_at_most_two_ask_and_the_others_wait_as_plain_lines(read_html):
    run = run_of(FILLED, GONE, CHANGED, asked=[GONE, CHANGED, FILLED])
    html = panel_parts(run, View())["results"]
    assert html.count("rf-amber") == 2
    asked, _, rest = html.partition("The answer")
    assert "12 missing" in rest
    assert "12 missing" not in asked
    answered = decide(run, decision(run, "dismiss", {"finding": "f1"}))
    asked = panel_parts(answered, View())["results"].partition("The answer")[0]
    assert "12 missing" in asked


def test_a_text_with_other_counts_is_asked_about_its_own():
    later = GONE.replace(count=3)
    html = panel_parts(run_of(later, asked=[GONE]), View())["results"]
    assert "3 of 1,204" in html
    assert "17 of" not in html


@pytest.mark.parametrize(("effect", "buttons"), [
    (GONE, ("They should go", "Keep all 1,204")),
    (GONE.replace(count=1), ("It should go", "Keep all 1,204")),
    (Effect(kind="ignored", total=9), ("Right", "Keep all 9")),
    (Effect(kind="repeated", count=2), ("Right", "Keep each once")),
    (FILLED, ("Right", "Leave them as they were")),
    (Effect(kind="overwritten", count=1), ("Right", "Leave it as it was")),
    (CHANGED, ("Right", "Leave `sales` as it is")),
    (ORDER, ("Right", "Keep the order")),
])  # fmt: skip
def test_buttons_say_what_they_do(effect, buttons):
    assert effect_buttons(effect) == buttons


def test_three_or_four_lines_are_told_the_rest_folds_and_so_does_the_head_of_a_table():
    effects = (GONE, NEW, FILLED, CHANGED, ORDER, WARNING)
    four = panel_parts(run_of(*effects[:4]), View())["results"]
    assert " more<" not in four
    html = panel_parts(run_of(*effects), View())["results"]
    told, _, folded = html.partition("<summary>3 more</summary>")
    assert "FutureWarning" in folded
    assert "are filled" in told
    head = told.partition("<details")[2].partition("</details>")[0]
    assert "is new" in head
    assert "Bonn" in head


def test_a_line_that_is_known_is_said_quietly_and_once(read_html):
    html = panel_parts(run_of(FILLED, WARNING), View())["results"]
    assert '<small dir="auto">line 3</small>' in html
    assert html.count("line 2") == 1


def test_a_condition_stands_in_the_line_of_the_answer_or_of_the_first_effect(read_html):
    on = (FirstRows(name="log", rows=12_000_000, of=410_000_000),)
    said = "on the first 12,000,000 of 410,000,000 rows of log"
    for outputs in ((ANSWER, Printed(text="x")), ()):
        run = run_of(GONE, FILLED, outputs=outputs, conditions=on)
        flat = words(panel_parts(run, View())["results"], read_html)
        assert flat.count(said) == 1
        first = "The answer: 16" if outputs else "is not in customers"
        assert f"{first} {said}" in flat


def test_names_and_values_do_nothing_and_turn_nothing_around():
    hostile = GONE.replace(
        name="<img src=x>", values=("</li><b>", "عمر"), other="نتيجة", column="$x$"
    )
    html = panel_parts(run_of(hostile, asked=[hostile]), View())["results"]
    assert "<img" not in html
    assert "</li><b>" not in html
    assert '<code dir="auto">&lt;img src=x&gt;</code>' in html
    assert '<code dir="auto">نتيجة</code>' in html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a` and `b c`", '<code dir="auto">a</code> and <code dir="auto">b c</code>'),
        ("one ` only", "one ` only"),
        ("`<i>`", '<code dir="auto">&lt;i&gt;</code>'),
        ("`` x", "`` x"),
        ("`$a", "`<span>$</span>a"),
    ],
)
def test_what_stands_in_backticks_is_code(text, html):
    assert str(sentence_html(text)) == html


def test_a_terminal_says_how_to_answer_and_leaves_heads_to_the_record():
    run = run_of(GONE, NEW, FILLED, asked=[GONE, FILLED])
    screen = event_text(Stopped(reason=run.stop_reason, message=""), run, rows=60)
    say = "%refine dismiss f1: “They should go”; continue f1: “Keep all 1,204”."
    assert say in screen
    assert "%refine dismiss f2: “Right”; continue f2: “Leave them as they were”." in screen
    assert "  f1  17 of 1,204 rows of `orders`" in screen
    assert screen.index("orders.merge") < screen.index("  f1  ") < screen.index("The answer: 16")
    assert "Bonn" not in screen + record_text(run)
    assert "Bonn" in details_text(run, "output")
    assert say in record_html(run)


def test_a_change_that_can_be_confirmed_is_said_once(read_html):
    change = Effect(kind="changed", name="top", before="3", after="0")
    other = change.replace(name="low")
    flat = words(live(run_of(change, other, rows=ROWS)), read_html)
    assert flat.count("3 → 0") == 2
    assert "low: 3 → 0" in flat
    asked = words(live(run_of(change, rows=ROWS, asked=[change])), read_html)
    assert "! top: 3 → 0" in asked


def test_a_terminal_tells_the_first_three_whole_and_how_many_more(read_html):
    long = [GONE.replace(column=f"customer_{n}", other=f"customers_{n}" * 9) for n in range(9)]
    run = run_of(*long)
    screen = event_text(Stopped(reason=run.stop_reason, message=""), run, rows=60)
    assert "`customers_2customers_2" in screen
    assert "`customers_3customers_3" not in screen
    assert "6 more: %refine show output" in screen
    assert "`customers_8customers_8" in details_text(run, "output")


def test_what_each_text_did_stands_with_what_it_gave():
    asked = run_of(GONE, asked=[GONE])
    revision = run_of(FILLED, outputs=(Value(text="17"),)).iterations[0]
    texts = (*asked.iterations, revision.replace(number=1, parent=0))
    run = asked.replace(iterations=texts, best=1)
    own, _, other = panel_parts(run, View())["results"].partition("<strong>Draft</strong>")
    assert "are filled" in own
    assert "are gone" in other
    assert "are filled" not in other
    assert "rf-amber" not in own + other
    assert "rf-amber" in panel_parts(run, View(iteration=0))["results"]
    assert "rf-amber" not in record_html(run).partition("</style>")[2]


def test_a_record_that_is_too_long_drops_the_heads_of_tables():
    texts = [run_of(NEW).iterations[0].replace(number=n) for n in range(5)]
    run = run_of().replace(iterations=tuple(texts))
    short, whole = shorten(run, len(run.model_dump_json()) - 1)
    heads = [one.evidence[0].effects[0].head for one in short.iterations]
    assert whole
    assert heads[0] == HEAD
    assert not any(heads[1:])
