"""Every hostile text, in every field of a run, on every surface that shows it."""

import re

import pytest
from hostile import SNIPPETS, texts
from hypothesis import HealthCheck, given, settings

from ipyrefine import errors
from ipyrefine.core.events import (
    CritiqueReady,
    Decided,
    DraftReady,
    EvidenceReady,
    RevisionReady,
    RunStarted,
    Stopped,
    VerdictReached,
    Warned,
)
from ipyrefine.core.fold import apply
from ipyrefine.core.records import Critique, Task
from ipyrefine.core.runs import Limits, Run, StopReason
from ipyrefine.notebook.panel import Panel
from ipyrefine.notebook.rewriting import HELP
from ipyrefine.providers import errors as faults
from ipyrefine.render.html import record_html
from ipyrefine.render.live import stage_html, tail_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.text import record_text
from ipyrefine.render.transcript import event_text

COLOURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33|1;36)m")  # those that `paint` writes
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
COLUMNS = 100


def events_of(case: str, run: Run) -> list:
    """A run's events with the case in every field, made of a finished run that has it there."""
    first, second = run.iterations[:2]
    task = Task(text=case, form="code", criteria=run.task.criteria, checklist=(case,))
    return [
        RunStarted(task=task, limits=Limits(), model=case, judge=f"{case}!", checks=(case,)),
        Warned(message=case),
        DraftReady(text=case, thoughts=case),
        *(EvidenceReady(iteration=0, evidence=one) for one in first.evidence),
        VerdictReached(iteration=0, verdict=first.verdict, findings=first.findings),
        CritiqueReady(iteration=0, critique=Critique(findings=first.findings)),
        RevisionReady(iteration=1, parent=0, text=f"{case}\n{case}", changes=second.changes),
        RevisionReady(iteration=2, parent=0, text=case, flaw=case),
        *(Decided(decision=one) for one in run.decisions),
        Stopped(reason=StopReason.FAILED, message=case),
    ]


def played(case: str, run: Run):
    state = Run()
    for event in events_of(case, run):
        state = apply(state, event)
        yield event, state


@pytest.fixture(scope="module")
def benign(make_run, read_html):
    """What the surfaces hold when every text is harmless."""
    tags, attributes = {"span", "br", "del", "ins", "mark"}, set()
    for form in ("code", "prose"):
        run = make_run(lambda field: f"the {field} of it\nand more", form)
        live = stage_html("revise", 1, 4) + tail_html("text", thinking=True)
        page = read_html(record_html(run) + live + HELP)
        tags |= page.tags
        attributes |= {name for name, _ in page.attributes}
    return tags, attributes


def assert_inert(page, benign) -> None:
    """Assert that a page holds nothing but what a harmless run's page holds."""
    tags, attributes = benign
    assert page.tags <= tags
    assert {name for name, _ in page.attributes} <= attributes
    assert page.balanced
    for name, value in page.attributes:
        assert "hostile" not in value
        assert "evil" not in value
        assert not name.startswith("on")


def assert_harmless(shown: str, columns: int | None = None) -> None:
    """Assert that a terminal finds no control in a text, and nothing wider than it."""
    rest = COLOURS.sub("", shown)
    assert not ACTING.search(rest)
    if columns:
        from ipyrefine.render.terminal import cells

        assert all(cells(line) <= columns for line in rest.split("\n"))


@pytest.mark.parametrize("form", ["code", "prose"])
@pytest.mark.parametrize("case", SNIPPETS)
def test_the_html_record_shows_it_and_does_nothing_else(case, form, make_run, read_html, benign):
    assert_inert(read_html(record_html(make_run(lambda _: case, form))), benign)


@pytest.mark.parametrize("case", SNIPPETS)
def test_the_markdown_record_holds_no_markup_of_it(case, make_run, read_html, benign):
    mistune = pytest.importorskip("mistune")
    text = record_markdown(make_run(lambda _: case, "prose"))
    render = mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "url"])
    page = read_html(render(text))
    ours = {"p", "h1", "h2", "h3", "h4", "hr", "details", "summary", "table", "thead", "tbody"}
    ours |= {"tr", "th", "td", "ul", "ol", "li", "strong", "em", "code", "pre", "span", "br", "del"}
    assert page.tags <= ours | {"blockquote"}
    assert not ACTING.search(text)


@pytest.mark.parametrize("case", SNIPPETS)
def test_a_terminal_gets_no_control_sequence(case, make_run):
    run = make_run(lambda _: case)
    assert_harmless(record_text(run, COLUMNS, colour=True))
    for event, state in played(case, run):
        shown = event_text(event, state, columns=COLUMNS, colour=True)
        assert_harmless(shown or "", COLUMNS)


@pytest.mark.parametrize("case", SNIPPETS)
def test_the_panel_shows_it_and_does_nothing_else(case, make_run, read_html, benign):
    panel = Panel(decide=print, stop=print, close=print)
    try:
        for event, state in played(case, make_run(lambda _: case)):
            panel.show(event, state)
        panel.note(case)
        shown = "".join(w.value for w in below(panel.widget) if type(w).__name__ == "HTML")
        assert_inert(read_html(shown), benign)
        live = stage_html(case, 1, 4) + tail_html(case, thinking=True)
        assert_inert(read_html(live), benign)
    finally:
        panel.close()


@pytest.mark.parametrize("case", SNIPPETS)
def test_an_error_that_quotes_it_is_one_harmless_line(case):
    refusal = faults.Refusal(500, "", "", case, {})
    error = faults.from_status(refusal, server="http://h/v1", model=case, secret="")
    for shown in (str(error), *error._render_traceback_()):
        assert not ACTING.search(shown)
        assert "\n" not in shown
        assert len(shown) < 500 + 2 * len(case)
    assert not ACTING.search(str(errors.ModelError(case)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, texts)
def test_mixtures_of_them_do_nothing_either(make_run, read_html, benign, one, other):
    run = make_run(lambda field: one if len(field) % 2 else other)
    assert_inert(read_html(record_html(run)), benign)
    assert_harmless(record_text(run, COLUMNS, colour=True))
    for event, state in played(one + other, run):
        assert_harmless(event_text(event, state, columns=COLUMNS, colour=True) or "", COLUMNS)


def test_the_corpus_is_large():
    assert len(set(SNIPPETS)) >= 200


def below(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from below(child)
