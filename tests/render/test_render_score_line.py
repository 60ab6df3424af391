"""The score over iterations, for text and for HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.render.chart import sparkline, svg

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
    import xml.etree.ElementTree as tree

    root = tree.fromstring(svg(values, target, len(values) - 1))
    height = float(root.attrib["height"])
    assert all(0 <= float(node.attrib["y"]) <= height for node in root.iter("text"))


def test_more_scores_stand_closer_together_and_the_drawing_grows_no_wider():
    import xml.etree.ElementTree as tree

    widths = {
        count: int(tree.fromstring(svg([0.5] * count, 0.8, None)).attrib["width"])
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
