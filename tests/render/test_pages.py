"""The panel and the record: what a person sees at once, what is folded, what can be done."""

import re
from html import unescape

from kit import question
from png import PNG, picture
from states import make, ten_texts

from ipyrefine.core.events import StageStarted, Stopped
from ipyrefine.core.model import (
    Figure,
    Outcome,
    Printed,
    Setup,
    Table,
    Task,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Point, Result
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.progress import Progress
from ipyrefine.render.terminal import details_text, event_text, record_text
from ipyrefine.session.record import shorten

BARE = Setup(task=Task(text="Write."))


def after(seconds, stage, number):
    """Return the progress of a stage that has taken so long."""
    now = iter([0.0] * 2)
    progress = Progress(lambda: next(now, seconds))
    progress.take(StageStarted(stage=stage, iteration=number))
    return progress


def test_what_the_critic_asks_stands_once_in_words(make_run):
    run = make_run()
    asked = run.iterations[0].replace(results={"q1": Result(passed=False)})
    points = run.points | {"q1": question("What of an empty list?", "0", "an error")}
    run = run.replace(iterations=(asked, *run.iterations[1:]), points=points, best=0)
    parts = panel_parts(run, View(iteration=0))
    html = parts["evidence"]
    assert html.count("What of an empty list?") == 1
    # The header's is hidden while that line is in sight.
    hidden = re.search(r'<span class="rf-asked" [^>]* hidden>.*', parts["top"], re.DOTALL)
    assert hidden
    assert parts["top"].count("What of an empty list?") == 1
    assert hidden[0].count("What of an empty list?") == 1
    assert 'data-choice="2">an error<' in hidden[0]
    assert 'data-action="answer" data-row="q1" data-finding="q1" data-choice="2">an error<' in html


def test_the_header_of_a_running_run_names_its_stage_and_only_a_long_silence(make_run, read_words):
    run = make_run().model_copy(update={"stop_reason": None, "stage": "judge"})
    for seconds, said in ((3.0, False), (25.0, True)):
        html = panel_parts(run, View(progress=after(seconds, "judge", 2)))["top"]
        assert read_words(html).startswith("Evaluating Revision 2")
        assert ("No reply for 25 s" in read_words(html)) == said
        assert "data-clock" not in html.partition('role="status"')[2].partition("</div>")[0]


def test_a_text_that_ran_is_there_to_be_used_while_a_critic_reads_it():
    tallies = {"example": (1, 1)}
    ran = Result(name="examples", passed=True, basis="examples", tallies=tallies)
    text = Iteration(number=0, text="def twice(n):\n    return 2 * n", evidence=(ran,))
    setup = BARE.replace(model="gpt", judge="gpt")
    run = Run(setup=setup, iterations=(text,), stage="critique")
    parts = panel_parts(run, View(progress=after(18.0, "critique", 0)))
    said = ("RUNS", "not read yet", "1 of 1 example")
    assert [one for one in said if one not in parts["top"]] == []
    assert parts["top"].index("Accept") < parts["top"].index("Stop")
    assert "return" in parts["text"]


# What code printed, returned and drew

FIGURE = Figure(png=picture(640, 480))
TABLE = Table(
    columns=("price", "n"),
    index="city",
    labels=("Oslo", "Rome"),
    rows=(("1.5", "2"), ("0.25", "3")),
    height=1_204,
    width=2,
)


def run_of(*drafts):
    """A run of texts with these outputs, each the revision of the one before."""
    texts = (
        Iteration(
            number=number,
            parent=number - 1 if number else None,
            text=f"x = {number}",
            evidence=(Result(name="run", passed=True, shows="It ran.", outputs=outputs),),
            verdict=Verdict(outcome=Outcome.PASS, score=1.0, basis="tests"),
        )
        for number, outputs in enumerate(drafts)
    )
    return make(*texts)


def test_a_table_is_a_table_and_a_figure_a_picture_with_its_size_in_words(read_html):
    run = run_of((TABLE, FIGURE))
    for html in (record_html(run), panel_parts(run, View())["results"]):
        page = read_html(html)
        assert {"table", "img"} <= page.tags
        assert ("alt", "A figure of 640 × 480 pixels") in page.attributes
        assert ("src", f"data:image/png;base64,{FIGURE.png}") in page.attributes
        assert "The answer: a table of 1,204 rows × 2 columns, the first 2 rows" in page.text
        assert "A figure of 640 × 480 pixels" in page.text
        assert all(f">{cell}</t" in html for cell in ("city", "price", "Oslo", "0.25"))


def test_the_terminal_names_a_figure_shows_the_table_and_starts_a_long_output():
    run = run_of((Printed(text="3 rows\x1b[2J"), TABLE, FIGURE))
    for text in (record_text(run), details_text(run, "output")):
        assert "A figure of 640 × 480 pixels" in text
        assert "The answer: a table of 1,204 rows × 2 columns, the first 2 rows" in text
        assert "3 rows␛[2J" in unescape(text)
        assert PNG[:20] not in text
    assert "city  price  n\nOslo    1.5  2\nRome   0.25  3" in record_text(run)
    run = run_of((Printed(text="\n".join(f"line {n}" for n in range(99))), FIGURE))
    screen = event_text(Stopped(reason="passed", message=""), run, rows=40)
    assert "line 3" in screen
    assert "line 30" not in screen
    assert "show output" in screen
    assert "The answer: a figure of 640 × 480 pixels" in screen


def test_a_record_that_is_too_long_keeps_the_figure_of_the_chosen_text_only():
    figures = [Figure(png=picture(width, 900)) for width in range(900, 906)]
    run = run_of(*((one,) for one in figures))
    short, whole = shorten(run, len(run.model_dump_json()) - 1)
    kept = [one.number for one in short.iterations if one.evidence[0].outputs]
    assert (whole, kept) == (True, [run.chosen.number])
    assert "figures" in short.warnings[-1]


def test_a_critics_no_is_answered_that_it_is_ready_and_its_test_that_it_does_not_follow():
    no = Point(id="r1", kind="reading", words="Too formal.", blocking=False)
    test = Point(id="t1", kind="test", words="test_x", quote="the words", code="assert f() == 1")
    results = dict.fromkeys(("r1", "t1"), Result(passed=False, shows="it gave 2"))
    why = Verdict(outcome=Outcome.NOT_JUDGED, score=None, why="not_ready", line="Too formal.")
    text = Iteration(number=0, text="x", results=results, verdict=why)
    run = Run(setup=BARE, iterations=(text,), points={"r1": no, "t1": test}, best=0)
    html = panel_parts(run, View())["evidence"]
    for id_, word in (("r1", "It is ready"), ("t1", "Doesn&#39;t follow")):
        assert re.search(f'data-action="dismiss" data-finding="{id_}" title="[^"]*">{word}<', html)
    assert 'data-name="dismiss"' not in html


def test_a_panel_of_hundreds_of_texts_is_drawn_from_the_lines_that_it_shows():
    runs = {number: ten_texts(number) for number in (30, 300)}
    drawn = {number: panel_parts(run, View())["evidence"] for number, run in runs.items()}
    lines = {number: html.count('"rf-told') for number, html in drawn.items()}
    assert lines == {30: 4, 300: 4}
    assert "296 earlier texts" in drawn[300]
    whole = panel_parts(runs[300], View(folds=frozenset({"texts"})))
    assert whole["evidence"].count('"rf-told') == 300
    html = panel_parts(runs[300].replace(best=150), View(iteration=100))["evidence"]
    heads = {int(number) for number in re.findall(r'data-iteration="(\d+)"', html)}
    assert heads == {0, 100, 150, *range(296, 300)}
