"""The tree of texts is drawn once a run has branches."""

from ipyrefine.core.records import Outcome, Task, Verdict
from ipyrefine.core.runs import Iteration, Run
from ipyrefine.render.html import record_html, score_html
from ipyrefine.render.text import record_text
from ipyrefine.render.tree import tree_html, tree_lines


def run_of(*parents: int | None) -> Run:
    verdict = Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=0.5)
    iterations = tuple(
        Iteration(number=number, parent=parent, text=f"Text {number}", verdict=verdict)
        for number, parent in enumerate(parents)
    )
    return Run(task=Task(text="Write."), iterations=iterations, best=0)


def test_each_text_stands_below_the_one_it_was_written_from():
    lines = tree_lines(run_of(None, 0, 1, 0, 3, 3))
    assert [line.partition(" ·")[0] for line in lines] == [
        "Iteration 0 (draft)",
        "├─ Iteration 1",
        "│  Iteration 2",
        "└─ Iteration 3",
        "   ├─ Iteration 4",
        "   └─ Iteration 5",
    ]
    assert lines[0].endswith("★ best")


def test_texts_in_one_line_of_descent_need_no_tree():
    assert tree_lines(run_of(None, 0, 1)) == []
    assert tree_html(run_of(None, 0, 1)) == ""


def test_a_thousand_texts_in_a_row_are_drawn_in_one_column():
    lines = tree_lines(run_of(None, *range(1_000), 0))
    assert len(lines) == 1_002
    assert max(line.index("Iteration") for line in lines) == 3


def test_the_panel_and_the_plain_record_show_it():
    run = run_of(None, 0, 0)
    assert "└─ Iteration 2" in record_html(run)
    assert "└─ Iteration 2" in record_text(run)


def test_a_text_whose_parent_is_left_out_begins_a_line_of_its_own():
    lines = tree_lines(run_of(None, 0, 0, 1, 3, 3), since=2)
    assert [line.partition(" ·")[0] for line in lines] == [
        "Iteration 2",
        "Iteration 3",
        "├─ Iteration 4",
        "└─ Iteration 5",
    ]


def test_a_long_run_draws_its_latest_texts_and_says_so(read_html):
    run = run_of(None, *range(198), 197, 0)
    page = read_html(score_html(run))
    assert "The latest 50 of 201 texts." in page.text
    assert "Score per iteration from 151 on:" in page.text
    assert "Iteration 200" in page.text
    assert "Iteration 150 " not in page.text


def test_the_drawing_of_a_run_stops_growing():
    short, long = (len(score_html(run_of(None, *range(n), n - 1))) for n in (99, 998))
    assert long < 1.1 * short


def test_the_best_of_the_latest_texts_has_its_ring_wherever_the_drawing_starts():
    run = run_of(None, *range(199)).model_copy(update={"best": 180})
    assert score_html(run).count("rf-best") == 1
    assert "★ 0.50" in score_html(run)
