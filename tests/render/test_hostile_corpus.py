"""Every hostile text, in every field of a run, on every surface that shows it."""

import math
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
from ipyrefine.core.model import Critique, Setup, StopReason, Task
from ipyrefine.core.reducer import apply
from ipyrefine.core.run import Run
from ipyrefine.notebook.panel import Panel
from ipyrefine.providers import errors as faults
from ipyrefine.render.html import FOLDS, record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.terminal import cells, event_text, record_text

COLOURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33|1;36)m")  # those that `paint` writes
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
COLUMNS = 100
HOLD_WORDS = {"title", "value", "data-finding", "data-key"}  # nothing acts on what is in these


def events_of(case: str, run: Run) -> list:
    """A run's events with the case in every field, made of a finished run that has it there."""
    first, second = run.iterations[:2]
    task = Task(text=case, form="code", criteria=run.task.criteria, checklist=(case,))
    setup = Setup(task=task, model=case, judge=f"{case}!", checks=(case,))
    return [
        RunStarted(setup=setup),
        Warned(message=case),
        DraftReady(text=case, thoughts=case),
        *(EvidenceReady(iteration=0, evidence=one) for one in first.evidence),
        VerdictReached(iteration=0, verdict=first.verdict, findings=first.findings),
        CritiqueReady(iteration=0, critique=Critique(findings=first.findings)),
        RevisionReady(iteration=1, parent=0, text=f"{case}\n{case}", changes=second.changes),
        RevisionReady(iteration=2, parent=0, text=case, failure=case),
        *(Decided(decision=one) for one in run.decisions),
        Stopped(reason=StopReason.FAILED, message=case),
    ]


def replay(case: str, run: Run):
    started, *events = events_of(case, run)
    state = Run.begin(started.setup)
    yield started, state
    for event in events:
        state = apply(state, event)
        yield event, state


def panel_html(case: str, run: Run) -> str:
    """Return all the HTML of a panel that has shown a whole run, a note, its folds and forms."""
    sent: list[dict] = []
    panel = Panel(decide=print, stop=print, close=print, prompts=lambda: [(case, case)])
    panel.widget.send = sent.append
    take = panel.widget._handle_custom_msg
    try:
        for event, state in replay(case, run):
            panel.show(event, state)
        take({"action": "hello"}, [])
        for name in FOLDS:
            take({"action": "fold", "name": name, "open": True}, [])
        for number in range(3):
            take({"action": "show", "iteration": number}, [])
        forms = ("edit", "rubric", "select", "finding", "answer", "sent", "model", "keys")
        for name in forms:
            take({"action": "open", "name": name, "finding": case}, [])
        panel.note(case)
        parts = [html for message in sent for html in message.get("parts", {}).values()]
        return "".join([*parts, *(message["page"] for message in sent if "page" in message)])
    finally:
        panel.close()


@pytest.fixture(scope="module")
def benign(make_run, read_html):
    """Return the tags and attributes of the record when every text is harmless."""
    tags, attributes = {"span", "br", "del", "ins", "mark"}, set()
    for form in ("code", "prose"):
        run = make_run(lambda field: f"the {field} of it\nand more", form)
        page = read_html(record_html(run))
        tags |= page.tags
        attributes |= {name for name, _ in page.attributes}
    return tags, attributes


@pytest.fixture(scope="module")
def benign_panel(make_run, read_html, benign):
    """Return the tags and attributes of a panel when every text is harmless."""
    tags, attributes = benign
    page = read_html(panel_html("harmless\nand more", make_run()))
    return tags | page.tags, attributes | {name for name, _ in page.attributes}


def assert_inert(page, benign) -> None:
    """Assert that a page holds nothing but what a harmless run's page holds."""
    tags, attributes = benign
    assert page.tags <= tags
    assert {name for name, _ in page.attributes} <= attributes
    sources = {value for name, value in page.attributes if name == "src"}
    assert all(re.fullmatch(r"data:image/png;base64,[\w+/=]+", source) for source in sources)
    assert page.balanced
    for name, value in page.attributes:
        if name in HOLD_WORDS:
            continue
        assert "hostile" not in value
        assert "evil" not in value
        assert not name.startswith("on")


def assert_harmless(output: str, columns: float = math.inf) -> None:
    """Assert that a terminal finds no control in a text, and nothing wider than it."""
    rest = COLOURS.sub("", output)
    assert not ACTING.search(rest)
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
    for event, state in replay(case, run):
        lines = event_text(event, state, columns=COLUMNS, colour=True) or ""
        assert_harmless(lines, COLUMNS)


@pytest.mark.parametrize("case", SNIPPETS)
def test_the_panel_shows_it_and_does_nothing_else(case, make_run, read_html, benign_panel):
    assert_inert(read_html(panel_html(case, make_run(lambda _: case))), benign_panel)


@pytest.mark.parametrize("case", SNIPPETS)
def test_an_error_that_quotes_it_is_one_harmless_line(case):
    refusal = faults.Refusal(500, "", "", case, {})
    error = faults.refusal_error(refusal, server="http://h/v1", model=case, secret="")
    for message in (str(error), *error._render_traceback_()):
        assert not ACTING.search(message)
        assert "\n" not in message
        assert len(message) < 500 + 2 * len(case)
    assert not ACTING.search(str(errors.ModelError(case)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, texts)
def test_mixtures_of_them_do_nothing_either(make_run, read_html, benign, one, other):
    run = make_run(lambda field: one if len(field) % 2 else other)
    assert_inert(read_html(record_html(run)), benign)
    assert_harmless(record_text(run, COLUMNS, colour=True))
    for event, state in replay(one + other, run):
        assert_harmless(event_text(event, state, columns=COLUMNS, colour=True) or "", COLUMNS)


def test_the_corpus_is_large():
    assert len(set(SNIPPETS)) >= 200
