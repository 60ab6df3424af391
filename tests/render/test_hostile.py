"""Hostile texts in every field of a record, one by one and all at once, on every surface."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import full_record
import pytest
from hostile import SNIPPETS

from ipyrefine.core.events import Stopped
from ipyrefine.core.model import StopReason
from ipyrefine.core.run import Run
from ipyrefine.notebook.panel import Panel
from ipyrefine.render.html import record_html
from ipyrefine.render.terminal import cells, event_text, record_text
from ipyrefine.session.record import bundle, load

ATTACK = (
    "\"'><img src=x onerror=window.hostile=1></script><script>window.hostile=1</script>"
    "</style></pre></details>[x](javascript:window.hostile=1) ![x](https://evil.test/x.png) "
    "<https://evil.test> $\\href{javascript:1}{x}$ `x` | \x1b]8;;https://evil.test\x07\x1b[2J\x9b1A"
    "\u202e\u2066 &lt;script&gt;\n\n# x\n```\n<!--"
)
COLOURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36|1;36)m")  # those that our terminal writes
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
COLUMNS = 100
HOLD_WORDS = {
    "title",
    "value",
    "data-finding",
    "data-key",
    "data-title",
}  # nothing acts on what is in these
# Of a long snippet the start is enough: what a terminal shows is never wider than it.
STORABLE = [ATTACK, *(one[:600] for one in SNIPPETS[::40] if "\ud800" not in one)]
RECORD = full_record.full_record()
PROSE = full_record.full_record("prose")
STUDENT = full_record.full_record(coach=True)
ALLOWED = {"p", "h1", "h2", "h3", "h4", "hr", "details", "summary", "table", "thead", "tbody", "tr"}
ALLOWED |= {"th", "td", "ul", "ol", "li", "strong", "em", "code", "pre", "span", "br", "del"}
ALLOWED |= {"blockquote"}


def assert_inert(page: Any, benign: tuple[set[str], set[str]]) -> None:
    """Assert that a page holds nothing but what a harmless run's page holds."""
    tags, attributes = benign
    assert page.tags <= tags
    assert {name for name, _ in page.attributes} <= attributes
    sources = {value for name, value in page.attributes if name == "src"}
    assert all(re.fullmatch(r"data:image/png;base64,[\w+/=]+", source) for source in sources)
    assert page.balanced
    for name, value in page.attributes:
        assert name in HOLD_WORDS or not re.search("hostile|evil", value)


def assert_harmless(run: Run) -> None:
    """Assert that a terminal finds no control in a run, and nothing wider than it."""
    stopped = Stopped(reason=StopReason.REVISIONS, message=run.message)
    screen = event_text(stopped, run, columns=COLUMNS, colour=True) or ""
    assert all(cells(line) <= COLUMNS for line in COLOURS.sub("", screen).split("\n"))
    assert not ACTING.search(COLOURS.sub("", record_text(run, COLUMNS) + screen))


def run_of(record: dict[str, Any], path: Path) -> Run:
    path.write_text(json.dumps(record), "utf-8")
    [run] = load(path)
    return run


def html_of(run: Run) -> str:
    """The record and a panel, which has shown the run with all its folds and forms open."""
    sent: list[dict[str, Any]] = []
    panel = Panel(Mock(**{"offers.side_effect": lambda form: {}}))
    panel.widget.send = sent.append
    try:
        panel.show(Stopped(reason=run.stop_reason, message=run.message), run)
        messages = [{"action": "hello"}, {"action": "show", "fields": {"iteration": 1}}]
        folds = [{"name": name, "open": True} for name in ("details", "texts")]
        messages += [{"action": "fold", "fields": one} for one in folds]
        forms = ("edit", "finding", "criteria", "select")
        messages += [{"action": "open", "fields": {"name": name}} for name in forms]
        for message in messages:
            panel.widget._handle_custom_msg(message, [])
    finally:
        panel.close()
    parts = [html for message in sent for html in message.get("parts", {}).values()]
    parts += [message["page"] for message in sent if "page" in message]
    return "".join([record_html(run, note=run.message), *parts])


@pytest.fixture(scope="module")
def benign(read_html: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tags and attributes where every text is harmless."""
    path = tmp_path_factory.mktemp("benign") / "x.json"
    asked = full_record.replaced(RECORD, [("iterations", 1, "evidence", 0, "rows", 0, "call")], "g")
    pages = [read_html(html_of(run_of(one, path))) for one in (RECORD, PROSE, STUDENT, asked)]
    tags = set.union({"span", "br", "del", "ins", "mark", "small"}, *(page.tags for page in pages))
    return tags, {name for page in pages for name, _ in page.attributes}


@pytest.fixture(scope="module")
def free() -> list[full_record.Path]:
    """The places of a record that take any text."""
    return full_record.free_texts(RECORD)


def test_every_part_of_a_record_is_filled(free):
    run = Run.model_validate({k: v for k, v in RECORD.items() if k != "version"})
    assert len({type(decision) for decision in run.decisions}) == 12
    assert run.spent
    assert run.setup.prompts
    assert len(free) > 100


def test_a_hostile_text_in_one_field_does_nothing(free, tmp_path, read_html, benign):
    for place in free[::36]:
        run = run_of(full_record.replaced(RECORD, [place], ATTACK), tmp_path / "x.json")
        assert_inert(read_html(html_of(run)), benign)
        assert_harmless(run)


@pytest.mark.parametrize(
    ("record", "snippet"),
    [
        *((RECORD, one) for one in STORABLE),
        *((record, one) for record in (PROSE, STUDENT) for one in STORABLE[::5]),
    ],
)
def test_hostile_texts_in_all_fields_do_nothing(
    record,
    snippet,
    free,
    tmp_path,
    read_html,
    benign,
):
    places = [path for path in free if path[-1] not in ("language", "text")]
    every = full_record.replaced(record, places, snippet)
    run = run_of(every, tmp_path / "x.json")
    assert_inert(read_html(html_of(run)), benign)
    assert_harmless(run)
    assert len(bundle(run)) == 3
