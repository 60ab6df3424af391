"""Charts: sparkline, score line and version history."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.core.model import Outcome, Setup, Task, Verdict
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import document
from ipyrefine.render.blocks import blocks_html
from ipyrefine.render.chart import sparkline, svg, version_history
from ipyrefine.render.html import record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.terminal import record_text

scores = st.lists(st.none() | st.floats(0, 1), max_size=20)


def test_blocks_grow_with_the_score_and_a_missing_one_is_a_dot():
    assert sparkline([0.0, None, 0.5, 1.0]) == "▁·▅█"


@given(scores)
def test_one_sign_per_iteration(values):
    assert len(sparkline(values)) == len(values)


def test_nothing_to_draw_is_nothing():
    assert svg([], 0.8, None) == ""


def test_the_drawing_says_in_words_what_it_shows(read_html):
    page = read_html(svg([0.4, None, 0.91], 0.8, 2))
    assert ("role", "img") in page.attributes
    assert "Score per iteration: 0.40, none, 0.91; target 0.80; best: iteration 2." in page.text
    assert "★ 0.91" in page.text


def test_a_missing_score_breaks_the_line_and_is_a_hollow_dot():
    whole, broken = svg([0.4, 0.5, 0.6], 0.8, None), svg([0.4, None, 0.6], 0.8, None)
    target_line = 1
    assert whole.count("<line") - target_line == 2
    assert broken.count("<line") - target_line == 0
    assert broken.count('fill="none"') == 1


@pytest.mark.parametrize(("best", "rings"), [(1, 1), (None, 0)])
def test_only_the_best_has_a_ring(best, rings):
    assert svg([0.4, 0.9], 0.8, best).count("rf-best") == rings


@given(scores.filter(bool), st.floats(0, 1))
def test_every_drawing_is_well_formed(values, target):
    root = ElementTree.fromstring(svg(values, target, len(values) - 1))
    height = float(root.attrib["height"])
    assert all(0 <= float(node.attrib["y"]) <= height for node in root.iter("text"))


def test_more_scores_stand_closer_together_and_the_drawing_grows_no_wider():
    widths = {
        count: int(ElementTree.fromstring(svg([0.5] * count, 0.8, None)).attrib["width"])
        for count in (6, 12, 13, 50)
    }
    assert widths[6] < widths[12] == widths[13] == widths[50]


@pytest.mark.parametrize(
    ("best", "labels"), [(0, ["★ 0.50", "0.50"]), (25, ["0.50", "★ 0.50", "0.50"])]
)
def test_of_many_scores_those_with_room_for_it_have_a_label(best, labels, read_html):
    page = read_html(svg([0.5] * 50, 0.8, best))
    assert page.text.split("iteration")[-1].count("0.50") == len(labels)
    assert page.text.count("★") == 1


def score_html(run: Run) -> str:
    return blocks_html(document.scores(run))


def run_of(*parents: int | None) -> Run:
    verdict = Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=0.5)
    iterations = tuple(
        Iteration(number=number, parent=parent, text=f"Text {number}", verdict=verdict)
        for number, parent in enumerate(parents)
    )
    return Run(setup=Setup(task=Task(text="Write.")), iterations=iterations, best=0)


def test_each_text_stands_below_the_one_it_was_written_from():
    lines = version_history(run_of(None, 0, 1, 0, 3, 3))
    assert [line.partition(" ·")[0] for line in lines] == [
        "Draft",
        "├─ Revision 1",
        "│  Revision 2",
        "└─ Revision 3",
        "   ├─ Revision 4",
        "   └─ Revision 5",
    ]
    assert lines[0].endswith("★ best")


def test_texts_in_one_line_of_descent_need_no_tree():
    run = run_of(None, 0, 1)
    assert version_history(run) == []
    assert "Version history" not in score_html(run)


def test_a_thousand_texts_in_a_row_are_drawn_in_one_column():
    lines = version_history(run_of(None, *range(1_000), 0))
    assert len(lines) == 1_002
    assert max(line.index("Revision") for line in lines[1:]) == 3


@pytest.mark.parametrize("render", [record_html, record_markdown, record_text, score_html])
def test_every_surface_shows_the_version_history(render):
    page = render(run_of(None, 0, 0))
    assert "Version history" in page
    assert "└─ Revision 2" in page


def test_a_text_whose_parent_is_left_out_begins_a_line_of_its_own():
    lines = version_history(run_of(None, 0, 0, 1, 3, 3), since=2)
    assert [line.partition(" ·")[0] for line in lines] == [
        "Revision 2",
        "Revision 3",
        "├─ Revision 4",
        "└─ Revision 5",
    ]


def test_a_long_run_draws_its_latest_texts_and_says_so(read_html):
    run = run_of(None, *range(198), 197, 0)
    page = read_html(score_html(run))
    assert "Latest 50 of 201 iterations." in page.text
    assert "Score per iteration from 151 on:" in page.text
    assert "Revision 200" in page.text
    assert "Revision 150 " not in page.text


def test_the_drawing_of_a_run_stops_growing():
    short, long = (len(score_html(run_of(None, *range(n), n - 1))) for n in (99, 998))
    assert long < 1.1 * short


def test_the_best_of_the_latest_texts_has_its_ring_wherever_the_drawing_starts():
    run = run_of(None, *range(199)).model_copy(update={"best": 180})
    assert score_html(run).count("rf-best") == 1
    assert "★ 0.50" in score_html(run)
