"""The panel, driven by events and by the messages of a page, without a browser."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

import pytest
from hostile import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyrefine.core import reducer
from ipyrefine.core.decisions import (
    Accept,
    Continue,
    Criteria,
    Decision,
    Expect,
    Override,
    Retract,
)
from ipyrefine.core.events import (
    BestChanged,
    CallEnded,
    Decided,
    DraftReady,
    Event,
    EvidenceReady,
    RevisionReady,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
    Warned,
)
from ipyrefine.core.model import (
    Outcome,
    Price,
    Setup,
    StopReason,
    Task,
    Usage,
    Verdict,
    named_criteria,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Sharing
from ipyrefine.core.table import Point, Result
from ipyrefine.notebook.cell_target import CellTarget, Origin
from ipyrefine.notebook.panel import Panel, Stream
from ipyrefine.render.escape import plain

SETUP = Setup(task=Task(text="Say hello."), model="m", judge="m")
OPENING = RunStarted(setup=SETUP)
NEEDS = Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=0.5)
PASS = Verdict(outcome=Outcome.PASS, score=0.9)
DRAFTING = StageStarted(stage="draft", iteration=0)
FIRST: list[Event] = [
    OPENING,
    DRAFTING,
    DraftReady(text="Hello."),
    VerdictReached(iteration=0, verdict=NEEDS),
    BestChanged(iteration=0),
]
SECOND: list[Event] = [
    StageStarted(stage="revise", iteration=1),
    RevisionReady(revision=Iteration(number=1, parent=0, text="Hello, you.")),
]
PASSED: list[Event] = [
    *SECOND,
    VerdictReached(iteration=1, verdict=PASS),
    BestChanged(iteration=1),
    Stopped(reason=StopReason.PASSED, message=""),
]
END = Stopped(reason=StopReason.REVISIONS, message="All revisions are used.")


NUMBERS = {"iteration", "number", "choice", "revisions", "sure", "target"}


class Controls(HTMLParser):
    """The controls in some HTML: the `data-` attributes of each, without the prefix."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        data = {name[5:]: value or "" for name, value in attrs if name.startswith("data-")}
        if "action" in data:
            self.found.append(data)


class Page:
    """A page with a panel: joins what it is sent as panel.js does, and clicks what it shows."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.messages: list[dict[str, Any]] = []
        self.parts: dict[str, str] = {}
        self.text = self.clipboard = ""
        panel.widget.send = self._receive

    def say(self, action: str = "", **fields: Any) -> None:
        message = {"action": action, "fields": fields} if action else fields
        self.panel.widget._handle_custom_msg(message, [])

    def _receive(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if "page" in message:
            self.parts = {"page": message["page"]}
        self.parts |= message.get("parts", {})
        if "text" in message:
            assert message["at"] <= len(self.text.encode("utf-16-le")) // 2, "a piece is missing"
            kept = self.text.encode("utf-16-le")[: 2 * message["at"]].decode("utf-16-le")
            self.text = kept + message["text"]
        self.clipboard = message.get("copy", self.clipboard)

    @property
    def html(self) -> str:
        self.say(action="hello")
        return self.parts["page"]

    @property
    def words_field(self) -> str:
        """The name of the field for guidance; what is typed stays while the name does."""
        [name] = re.findall('data-key="(words-[0-9]+)"', self.html)
        return str(name)

    @property
    def controls(self) -> list[dict[str, str]]:
        return Controls(self.html).found

    def has(self, action: str, **data: str) -> bool:
        return any(one.items() >= {"action": action, **data}.items() for one in self.controls)

    def click(self, action: str, *, fields: dict[str, Any] | None = None, **data: str) -> None:
        """Press the first control with this action; the page adds the fields of its form."""
        wanted = {"action": action, **data}
        control = next(one for one in self.controls if one.items() >= wanted.items())
        left_out = ("action", "hotkey", "submit", "fields")
        kept = {k: int(v) if k in NUMBERS else v for k, v in control.items() if k not in left_out}
        self.say(action, **(fields or {}), **kept)


class Cell:
    """What stands behind a panel: it does with a click what a test says, and offers that."""

    def __init__(self, calls: list[str], **does: Any) -> None:
        self.calls, self.does = calls, does

    def decide(self, decision: Decision) -> None:
        self.does["decide"](decision)

    def act(self, action: str, fields: dict[str, Any]) -> str:
        if action == "model":
            self.does["change_model"](fields["model"].strip(), fields.get("words", ""))
        elif action == "ask":
            self.does["explain"](fields["words"], fields["iteration"])
        elif action == "share":
            return str(self.does["share"](fields["name"]))
        else:
            self.does.get(action, lambda: self.calls.append(action))()
        return "Stopping…" if action == "stop" else ""

    def offers(self, form: str) -> dict[str, Any]:
        return {
            "can_change_model": "change_model" in self.does,
            "models": self.does["models"]() if form == "model" else {},
            "can_restart": "switch" in self.does,
            "sharing": self.does.get("sharing", Sharing)(),
            **self.does.get("places", {}),
        }

    def origin(self, number: int | None) -> dict[str, Any] | None:
        return self.does["origin"](number) if "origin" in self.does else None


class Desk:
    """A panel with the run it shows and a page, and what the page's clicks led to."""

    def __init__(self, *, listening: bool = True, **options: Any) -> None:
        self.run, self.now = Run.begin(SETUP), 100.0
        self.decisions: list[Decision] = []
        self.calls: list[str] = []
        interval = {"interval": options.pop("interval")} if "interval" in options else {}
        cell = Cell(self.calls, **{"decide": self.decisions.append, **options})
        self.panel = Panel(cell, clock=lambda: self.now, **interval)
        self.page = Page(self.panel)
        if listening:
            self.page.say(action="hello")

    def show(self, *events: Event) -> None:
        for event in events:
            self.run = reducer.apply(self.run, event)
            self.now += 1  # so that each is drawn by itself
            self.panel.show(event, self.run)

    def write(self, *pieces: str, kind: Any = "text", after: float = 0.0) -> None:
        for piece in pieces:
            self.now += after
            event = TextDelta(stage="draft", iteration=0, text=piece, kind=kind)
            self.panel.show(event, self.run)


Make = Callable[..., Desk]


@pytest.fixture
def desk() -> Iterator[Make]:
    """Makes panels that show some events."""
    desks: list[Desk] = []

    def make(*events: Event, **options: Any) -> Desk:
        desks.append(Desk(**options))
        desks[-1].show(*events)
        return desks[-1]

    yield make
    for one in desks:
        one.panel.close()


# What is offered


def offered(d: Desk) -> set[str]:
    main = {"accept", "continue", "stop", "needs-work", "pass", "guide", "close"}
    return {one["action"] for one in d.page.controls} & main


def test_only_what_can_be_done_now_is_shown(desk):
    d = desk(*FIRST[:2])
    assert offered(d) == {"stop", "close"}
    d.show(FIRST[2])
    assert offered(d) == {"stop", "accept", "guide", "close"}
    d.show(*FIRST[3:])
    assert offered(d) == {"stop", "accept", "pass", "needs-work", "guide", "close"}
    assert "Stop and close" in d.page.html
    d.show(END)
    assert offered(d) == {"accept", "continue", "pass", "needs-work", "close"}
    assert "Stop and close" not in d.page.html
    d.show(Stopped(reason=StopReason.PAUSED, message="Waiting for you."))
    assert {"stop", "continue", "accept"} <= offered(d)
    d.show(*PASSED)
    assert offered(d) == {"accept", "continue", "pass", "needs-work", "close"}
    failed = desk(OPENING, Stopped(reason=StopReason.FAILED, message="No server."))
    assert offered(failed) == {"continue", "close"}
    assert failed.page.html.count("No server") == 1


def test_another_model_is_typed_or_chosen_by_what_it_costs(desk):
    assert not desk(*FIRST, END).page.has("open", name="model")
    changed: list[tuple[str, ...]] = []
    prices = {"big": Price(prompt=0.25, completion=2), "small": Price(prompt=0, completion=0)}
    failed = Stopped(reason=StopReason.FAILED, message="No server.")
    options: dict[str, Any] = {"models": lambda: prices}
    d = desk(OPENING, failed, change_model=lambda *words: changed.append(words), **options)
    assert "$0.25 and $2" not in d.page.html
    d.page.click("open", name="model")
    assert "$0.25 and $2 per million tokens" in d.page.html
    d.page.click("model", model="small")
    d.page.click("open", name="model")
    d.page.click("model", submit="", fields={"model": " other ", "words": "shorter"})
    assert changed == [("small", ""), ("other", "shorter")]


# Decisions


WEAK = Point(id="f1", criterion="clarity", blocking=False, words="Flat.", place="Hello")
ROUGH = Point(id="f2", criterion="clarity", words="Too short.")


def found(*points: Point) -> VerdictReached:
    """A verdict on the first text, which misses these points."""
    missed = {one.id: Result(passed=False) for one in points}
    return VerdictReached(iteration=0, verdict=NEEDS, points=points, results=missed)


FOUND = found(WEAK, ROUGH)
LISTED = [*FIRST[:3], FOUND, BestChanged(iteration=0), END]
NEEDS_WORK = Outcome.NEEDS_IMPROVEMENT
DECISIONS: list[tuple[str, Sequence[Event], str, dict[str, str], dict[str, Any], Decision]] = [
    ("pass", LISTED, "", {}, {"words": "why"},
     Override(iteration=0, outcome=Outcome.PASS, reason="why")),
    ("needs-work", [*FIRST, *PASSED], "", {}, {"words": ""},
     Override(iteration=1, outcome=NEEDS_WORK)),
    ("continue", LISTED, "", {}, {"words": "why", "revisions": 3},
     Continue(revisions=3, guidance="why")),
    ("act", LISTED, "", {"finding": "f2"}, {"words": "briefly"},
     Continue(iteration=0, points=("f2",), guidance="briefly")),
    ("select", LISTED, "select", {}, {"points": ["f1"]},
     Continue(iteration=0, points=("f1",))),
    ("criteria", LISTED, "criteria", {}, {"criteria": "warmth", "target": 0.6},
     Criteria(criteria=named_criteria(["warmth"], ()), target=0.6)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("action", "events", "opened", "pressed", "fields", "decision"),
    DECISIONS,
    ids=[one[0] for one in DECISIONS],
)
def test_what_is_typed_and_pressed_is_one_decision_about_the_shown_text(
    desk, action, events, opened, pressed, fields, decision
):
    d = desk(*events)
    if opened:
        d.page.click("open", name=opened)
    d.page.click(action, fields=fields, **pressed)
    assert d.decisions == [decision]


def test_the_field_for_words_is_emptied_by_a_decision_and_kept_by_a_failed_one(desk):
    def refuse(_: Decision) -> None:
        raise ValueError("The cell is <b>gone</b>.")

    taken, refused = desk(*FIRST, END), desk(*FIRST, END, decide=refuse)
    before = taken.page.words_field, refused.page.words_field
    for d in (taken, refused):
        d.page.click("continue", fields={"words": "shorter"})
    assert taken.page.words_field != before[0]
    assert refused.page.words_field == before[1]
    assert "The cell is &lt;b&gt;gone&lt;/b&gt;." in refused.page.html


def places_of(target: CellTarget) -> dict[str, str]:
    return {"place": target.place, "place_to_run": target.place_to_run}


def test_where_the_text_goes_is_part_of_the_decision(desk):
    d = desk(*FIRST, END, places=places_of(CellTarget(object(), "refined", "replace")))
    places = ("none", "run", "insert")
    for place in places:
        d.page.click("accept", place=place)
    assert d.decisions == [Accept(iteration=0, destination=place) for place in places]
    target = CellTarget(object(), "refined", origin=Origin("home", "x = 1"))
    d = desk(*FIRST, END, places=places_of(target))
    assert "Put the text in place of the cell, and run that cell." in d.page.html


def test_a_message_that_is_none_of_ours_becomes_a_note(desk):
    d = desk(*FIRST, END)
    for message in ({"action": "accept", "iteration": "x"}, {"action": "nonsense"}, {}, {"a": 1}):
        d.page.say(**message)
        assert "Reload it." in d.page.html
    for number in (-5, "x", [], 5):
        d.page.say(action="show", iteration=number)
        assert d.page.has("accept", iteration="0"), "the panel goes on"
    d.page.say(action="expect", row="0", choice=0)
    assert "This result is not shown any more." in d.page.html
    assert d.decisions == []


# Results


RESULTS = Result(
    name="results",
    passed=None,
    counts=False,
    rows=(
        Result(call="f([])", gives="0", source="critic", rivals=("None",)),
        Result(call="f([1])", gives="1", setup="import math"),
    ),
)
SHOWN = (*FIRST[:3], EvidenceReady(iteration=0, evidence=RESULTS), *FIRST[3:])


def the_row(d: Desk, call: str) -> str:
    """The name of a row with this call."""
    names = re.findall('<tr [^>]*data-row="([0-9a-f]+)"[^>]*>(.*?)</tr>', d.page.html, re.S)
    return next(name for name, body in names if call in body)


def test_a_result_is_confirmed_and_taken_back_with_a_click_each(desk):
    d = desk(*SHOWN, *PASSED)
    d.page.click("show", iteration="0")
    row, field = the_row(d, "f([1])"), d.page.words_field
    d.page.click("expect", row=row, choice="0")
    right = Expect(call="f([1])", gives="1", setup="import math")
    assert d.decisions == [right]
    assert d.page.words_field == field, "typed guidance stays, and so does the shown text"
    assert d.page.has("retract", row=row), "before the run has taken it up"
    d.show(Decided(decision=right))
    d.page.click("retract", row=row)
    assert d.decisions[1:] == [Retract(call="f([1])", setup="import math")]
    assert d.page.has("expect", row=row, choice="0")


# Messages to the page


def test_only_the_parts_that_changed_are_sent_again_and_every_click_is_answered(desk):
    d = desk(*FIRST, END)
    d.page.click("open", name="keys")
    assert set(d.page.messages[-1]["parts"]) == {"form"}
    for _ in range(2):
        del d.page.messages[:]
        d.page.say(action="show")
        assert len(d.page.messages) == 1


async def test_events_on_each_others_heels_are_drawn_together_and_none_is_lost(desk):
    d = desk(*FIRST[:3], StageStarted(stage="check", iteration=0), interval=0.05)
    before = len(d.page.messages)
    for number in range(20):
        event = EvidenceReady(iteration=0, evidence=Result(name=f"check-{number}", passed=True))
        d.run = reducer.apply(d.run, event)
        d.panel.show(event, d.run)
    assert len(d.page.messages) == before
    while len(d.page.messages) == before:
        d.now += 0.1
        await asyncio.sleep(0.01)
    assert len(d.page.messages) == before + 1
    shown = d.page.messages[-1]["parts"]["evidence"]
    assert all(f"check-{number}" in shown for number in range(20))


async def test_a_click_on_another_thread_is_handled_on_the_loops(desk):
    threads: list[int] = []
    d = desk(*FIRST, stop=lambda: threads.append(threading.get_ident()))
    await asyncio.to_thread(d.page.say, action="stop")
    await asyncio.sleep(0)
    assert threads == [threading.get_ident()]


# The text while it is written


async def test_a_fast_stream_is_sent_once_in_ten_messages_a_second(desk):
    d = desk(OPENING, DRAFTING)
    before = len(d.page.messages)
    written = [f"word {number:03} " * 8 for number in range(500)]
    d.write(*written, after=0.02)  # ten seconds
    assert 50 <= len(d.page.messages) - before <= 101
    d.show(Warned(message="slow"))
    assert d.page.text == "".join(written)
    pieces = [message["text"] for message in d.page.messages if "text" in message]
    assert sum(map(len, pieces)) == len(d.page.text)
    assert not any("word 007" in part for part in d.page.parts.values())


def test_a_long_silence_is_shown_beside_a_button_that_ends_it(desk):
    d = desk(OPENING, DRAFTING)
    d.now += 19
    assert "No reply for" not in d.page.html
    d.now += 1
    assert "No reply for" in d.page.html
    assert sum(one["action"] == "stop" for one in d.page.controls) == 1
    d.now += 1
    d.write("Hello")
    assert "No reply for" not in d.page.parts["top"]
    d.now += 60
    d.show(CallEnded(stage="draft", iteration=0, usage=Usage()), DraftReady(text="Hello."))
    d.show(StageStarted(stage="check", iteration=0))
    d.now += 60
    assert "No reply for" not in d.page.html  # no model is asked
    d.show(StageStarted(stage="judge", iteration=0))
    d.now += 60
    assert "No reply for" in d.page.html
    d.show(END)
    d.now += 60
    assert "No reply for" not in d.page.html


async def test_thoughts_give_way_to_the_text_and_do_not_come_back(desk):
    d = desk(OPENING, DRAFTING)
    d.write("hm", kind="thinking", after=1)
    assert (d.page.text, "Thinking…" in d.page.html) == ("hm", True)
    d.write("Hello", after=1)
    d.write("hm again", kind="thinking", after=1)
    assert (d.page.text, "Thinking…" in d.page.html) == ("Hello", False)


async def test_a_critics_words_are_not_shown(desk):
    d = desk(*FIRST[:3], StageStarted(stage="critique", iteration=0))
    for _ in range(4):
        d.now += 1
        d.panel.show(TextDelta(stage="critique", iteration=0, text='{"findings": []}'), d.run)
    assert d.page.text == ""


async def test_a_page_that_opens_midway_is_sent_everything_so_far_and_then_pieces(desk):
    d = desk(OPENING, DRAFTING, listening=False)
    d.write("Hello, ", after=1)
    assert d.page.messages == []
    d.page.say(action="hello")
    assert "data-stream=" in d.page.parts["page"]
    assert d.page.text == "Hello, "
    d.write("you.", after=1)
    assert d.page.text == "Hello, you."


@settings(max_examples=40)
@given(pieces=st.lists(texts | st.sampled_from(["\r", "\n", "\r\n", "😀"]), max_size=12))
def test_a_page_shows_what_the_pieces_say_wherever_they_were_cut(pieces):
    stream, shown = Stream(), ""
    for piece in pieces:
        stream.add(piece)
        message = stream.take()
        assert message["at"] == len(shown.encode("utf-16-le")) // 2
        shown += message["text"]
    assert shown == plain("".join(pieces).removesuffix("\r"))
    assert stream.take(whole=True) == {"at": 0, "text": shown}
