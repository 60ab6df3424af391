"""What drafts printed, returned and drew, as panel, record, Markdown and terminal show it."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from png import PNG, picture

from ipyrefine.core.events import Stopped
from ipyrefine.core.model import (
    Evidence,
    Figure,
    Outcome,
    Output,
    Printed,
    Setup,
    StopReason,
    TableValue,
    Task,
    Value,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render.html import panel_parts, record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.terminal import details_text, event_text, record_text
from ipyrefine.render.view import View
from ipyrefine.session.export import export
from ipyrefine.session.record import shorten

FIGURE = Figure(png=picture(640, 480))
TABLE = TableValue(
    columns=("price", "n"),
    index="city",
    labels=("Oslo", "Rome"),
    rows=(("1.5", "2"), ("0.25", "3")),
    height=1_204,
    width=2,
)
ATTACK = "<script>alert(1)</script>"


def run_of(*drafts: tuple[Output, ...], revised: bool = True) -> Run:
    """A run of texts with these outputs, each the revision of the one before or a draft."""
    texts = tuple(
        Iteration(
            number=number,
            parent=number - 1 if revised and number else None,
            text=f"x = {number}",
            evidence=(Evidence(name="run", passed=True, detail="It ran.", outputs=outputs),),
            verdict=Verdict(outcome=Outcome.PASS, score=1.0, basis="tests"),
        )
        for number, outputs in enumerate(drafts)
    )
    setup = Setup(task=Task(text="Do it.", form="code"), checks=("run",))
    return Run(setup=setup, iterations=texts, best=len(texts) - 1, stop_reason=StopReason.PASSED)


def shown_outputs(html: str) -> str:
    """The part of a page that stands below the checks, unfolded."""
    found = re.search(r'<div class="rf-outputs">(.*?)<(?:div class="rf-whole"|footer)', html, re.S)
    return found[1] if found else ""


def panel_outputs(run: Run, **view: Any) -> str:
    html = panel_parts(run, View(**view))["evidence"]
    return html.partition('<div class="rf-outputs">')[2]


def test_a_table_is_a_table_and_a_figure_a_picture_with_its_size_in_words(
    read_html: Callable[..., Any],
) -> None:
    for html in (record_html(run_of((TABLE, FIGURE))), panel_outputs(run_of((TABLE, FIGURE)))):
        page = read_html(html)
        assert {"table", "img"} <= page.tags
        assert ("alt", "A figure of 640 × 480 pixels") in page.attributes
        assert ("src", f"data:image/png;base64,{FIGURE.png}") in page.attributes
        assert ("width", "640") in page.attributes
        assert "Table: 1,204 rows × 2 columns, the first 2 rows" in page.text
        for cell in ("city", "price", "Oslo", "0.25"):
            assert f">{cell}</t" in html


def test_a_text_without_outputs_shows_nothing_of_the_kind() -> None:
    assert shown_outputs(record_html(run_of(()))) == panel_outputs(run_of(())) == ""


def test_outputs_that_differ_stand_side_by_side_the_older_one_first() -> None:
    run = run_of((Printed(text="old"),), (Printed(text="new"), FIGURE))
    for html in (shown_outputs(record_html(run)), panel_outputs(run)):
        assert re.findall(r'class="rf-side"><strong>(.*?)<', html) == ["Draft", "Revision 1"]
        assert html.index(">old<") < html.index(">new<") < html.index("<img")


def test_outputs_that_do_not_differ_are_shown_once() -> None:
    run = run_of((Printed(text="same"),), (Printed(text="same"),))
    html = panel_outputs(run)
    assert html.count(">same<") == 1
    assert "rf-side" not in html
    assert "Same output as the draft." in html


def test_outputs_are_compared_with_what_the_text_is_compared_with() -> None:
    run = run_of((Printed(text="0"),), (Printed(text="1"),), (Printed(text="2"),))
    named = r'class="rf-side"><strong>(.*?)<'
    assert re.findall(named, panel_outputs(run, shown=1)) == ["Draft", "Revision 1"]
    assert re.findall(named, panel_outputs(run, shown=1, best=True)) == ["Revision 2", "Revision 1"]
    assert re.findall(named, panel_outputs(run, shown=0)) == []


def test_several_drafts_that_differ_stand_side_by_side() -> None:
    texts = [(Printed(text=word),) for word in ("a", "b", "b", "c", "d")]
    html = panel_outputs(run_of(*texts, revised=False), shown=1)
    names = re.findall(r'class="rf-side"><strong>(.*?)<', html)
    assert names == ["Draft 1", "Draft", "Draft 3"]


def test_a_record_holds_each_picture_once_and_every_draft_has_its_own_in_the_history() -> None:
    others = [Figure(png=picture(width, 1)) for width in (2, 3, 4)]
    html = record_html(run_of(*((one,) for one in others)))
    assert [html.count(one.png) for one in others] == [1, 1, 1]
    history = html.partition("<summary>History</summary>")[2]
    assert others[0].png in history
    assert others[2].png not in history


@pytest.mark.parametrize("place", ["columns", "index", "labels", "rows", "printed", "value"])
def test_what_code_made_is_escaped_like_what_models_write(place: str) -> None:
    hostile = {
        "columns": TABLE.model_copy(update={"columns": (ATTACK, "n")}),
        "index": TABLE.model_copy(update={"index": ATTACK}),
        "labels": TABLE.model_copy(update={"labels": (ATTACK, "y")}),
        "rows": TABLE.model_copy(update={"rows": ((ATTACK, "1"), ("2", "\x1b[2J"))}),
        "printed": Printed(text=f"{ATTACK}\x1b[2J"),
        "value": Value(text=ATTACK),
    }
    run = run_of((hostile[place],))
    for shown in (record_html(run), panel_outputs(run), record_markdown(run)):
        outside = re.sub(r"```.*?```", "", shown, flags=re.S)
        assert "<script" not in outside
        assert "alert(1)" in shown
    assert "\x1b[2J" not in record_text(run)


def test_markdown_and_terminal_name_a_figure_and_show_the_table() -> None:
    run = run_of((Printed(text="3 rows"), TABLE, FIGURE))
    for text in (record_markdown(run), record_text(run), details_text(run, "output")):
        assert "A figure of 640 × 480 pixels" in text
        assert "Table: 1,204 rows × 2 columns, the first 2 rows" in text
        assert "3 rows" in text
        assert PNG[:20] not in text
    assert "city  price  n\nOslo    1.5  2\nRome   0.25  3" in record_text(run)


def test_the_last_screen_of_a_terminal_shows_the_start_of_the_outputs() -> None:
    run = run_of((Printed(text="\n".join(f"line {n}" for n in range(99))), FIGURE))
    screen = event_text(Stopped(reason="passed", message=""), run, rows=40) or ""  # type: ignore[arg-type]
    assert "line 3" in screen
    assert "line 30" not in screen
    assert "show output" in screen
    assert "A figure of 640 × 480 pixels." in screen


def test_an_exported_notebook_holds_the_figure_as_a_picture(tmp_path: Path) -> None:
    path = export(run_of((FIGURE,)), tmp_path / "x.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    (cell,) = [one for one in cells if one.get("attachments")]
    ((name, data),) = cell["attachments"].items()
    assert f"![A figure of 640 × 480 pixels](attachment:{name})" in "".join(cell["source"])
    assert base64.b64decode(data["image/png"]) == base64.b64decode(FIGURE.png)


def test_a_record_that_is_too_long_leaves_out_the_figures_of_texts_in_between_first() -> None:
    figures = [Figure(png=picture(width, 900)) for width in range(900, 906)]
    run = run_of(*((one,) for one in figures))
    size = len(run.model_dump_json())
    short, whole = shorten(run, size - 1)
    kept = [any(one.evidence[0].outputs) for one in short.iterations]
    assert (whole, kept) == (True, [True, False, False, False, True, True])
    assert "figures of texts in between are left out" in short.warnings[-1]
    shorter, whole = shorten(run, size - 5 * len(figures[0].png))
    assert whole
    assert not any(one.evidence[0].outputs for one in shorter.iterations)
