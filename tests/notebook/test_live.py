"""The live pane: what it sends while a text is written, with a page that is played and without."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pages import Page

from ipyrefine.core import reducer
from ipyrefine.core.events import CallEnded, Event, RunStarted, StageStarted, Stopped, TextDelta
from ipyrefine.core.model import Setup, StopReason, Task, Usage
from ipyrefine.core.run import Run
from ipyrefine.notebook.controls import dispose
from ipyrefine.notebook.streaming import Live, Loop
from ipyrefine.render.html import TAIL_CHARACTERS

SETUP = Setup(task=Task(text="Say hello."), model="m", judge="m")
OPENING = RunStarted(setup=SETUP)
DRAFT = StageStarted(stage="draft", iteration=0)
Kind = Any


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Pane:
    """A live pane, fed as the panel feeds it, that notes what each of its widgets sends."""

    def __init__(self, page: Page | None = None, **options: Any) -> None:
        self.page, self.watch, self.run = page or Page(), Watch(), Run.begin(SETUP)
        options = {"interval": 0.1, "tick": 1.0, "clock": self.watch, **options}
        self.live = Live(Loop(), comm_factory=self.page, **options)
        self.stage, self.time, self.text = self.live.widget.children
        self.texts: list[str] = []
        self.stages: list[str] = []
        self.text.observe(lambda change: self.texts.append(change["new"]), "value")
        self.stage.observe(lambda change: self.stages.append(change["new"]), "value")

    def show(self, *events: Event) -> None:
        for event in events:
            self.run = reducer.apply(self.run, event)
            if isinstance(event, StageStarted):
                self.live.begin(event)
            self.live.update(self.run)

    def write(self, *pieces: str, kind: Kind = "text", after: float = 0.0) -> None:
        for piece in pieces:
            self.watch.now += after
            self.live.add(TextDelta(stage="draft", iteration=0, text=piece, kind=kind))

    def close(self) -> None:
        self.live.close()
        dispose(self.live.widget)


@pytest.fixture
def pane() -> Iterator[Callable[..., Pane]]:
    panes: list[Pane] = []

    def make(**options: Any) -> Pane:
        panes.append(Pane(**options))
        return panes[-1]

    yield make
    for one in panes:
        one.close()


async def test_a_listening_page_is_sent_every_character_once(pane: Callable[..., Pane]) -> None:
    p = pane()
    p.page.ask()
    p.show(OPENING, DRAFT)
    written = [f"word {number} " for number in range(500)]
    p.write(*written, after=0.02)
    p.show()  # nothing new: as each second does
    p.live.update(p.run)
    assert p.page.text == "".join(written)
    assert sum(len(piece["text"]) for piece in p.page.pieces) == len(p.page.text)
    assert len(p.texts) == 1  # the place of the text; the text itself is never a widget's value
    assert "word" not in p.texts[0]
    assert f'data-stream="{p.page.comm_id}"' in p.texts[0]


async def test_a_fast_stream_makes_ten_messages_a_second_at_most(
    pane: Callable[..., Pane],
) -> None:
    p = pane()
    p.page.ask()
    p.show(OPENING, DRAFT)
    before = len(p.page.pieces)
    p.write(*["x" * 64] * 300, after=1 / 30)  # ten seconds
    assert 50 <= len(p.page.pieces) - before <= 101


async def test_a_slow_stream_waits_for_enough_to_say_but_not_for_long(
    pane: Callable[..., Pane],
) -> None:
    p = pane()
    p.page.ask()
    p.show(OPENING, DRAFT)
    p.write("first ")
    assert p.page.text == "first "
    p.write("then ", after=0.15)
    assert p.page.text == "first "
    p.write("last", after=0.15)
    assert p.page.text == "first then last"


async def test_what_waits_is_shown_when_nothing_follows(pane: Callable[..., Pane]) -> None:
    p = pane()
    p.page.ask()
    p.show(OPENING, DRAFT)
    p.write("a", "b")
    assert p.page.text == "a"
    await asyncio.sleep(0.4)
    assert p.page.text == "ab"


async def test_the_time_goes_on_by_itself_and_sends_neither_stage_nor_text_again(
    pane: Callable[..., Pane],
) -> None:
    p = pane(tick=0.01)
    p.page.ask()
    p.show(OPENING, StageStarted(stage="draft", iteration=0, at=5.0))
    p.write("Hello")
    assert "5 s" in p.time.value
    sent = (list(p.texts), list(p.stages), list(p.page.pieces))
    p.watch.now += 7
    await asyncio.sleep(0.05)
    assert "12 s" in p.time.value
    assert (p.texts, p.stages, p.page.pieces) == sent
    p.show(Stopped(reason=StopReason.REVISIONS, message=""))
    p.watch.now += 7
    await asyncio.sleep(0.05)
    assert p.stage.value + p.time.value + p.text.value == ""


async def test_thoughts_give_way_to_the_text_and_do_not_come_back(
    pane: Callable[..., Pane],
) -> None:
    p = pane()
    p.page.ask()
    p.show(OPENING, DRAFT)
    p.write("hm", kind="thinking")
    assert (p.page.text, "Thinking…" in p.text.value) == ("hm", True)
    p.write("Hello")
    p.write("hm again", kind="thinking", after=1.0)
    assert (p.page.text, "Thinking…" in p.text.value) == ("Hello", False)


async def test_each_stage_begins_with_an_empty_place(pane: Callable[..., Pane]) -> None:
    p = pane()
    p.page.ask()
    p.show(OPENING, DRAFT)
    p.write("a draft")
    p.show(StageStarted(stage="revise", iteration=1))
    assert p.text.value == ""
    p.write("a revision")
    assert p.page.text == "a revision"
    assert "data-stream" in p.text.value


async def test_a_judges_and_a_critics_words_are_counted_and_not_shown(
    pane: Callable[..., Pane],
) -> None:
    p = pane(tick=0.01)
    p.show(OPENING, StageStarted(stage="critique", iteration=0))
    raw = '{"findings": []}' * 5
    p.live.add(TextDelta(stage="critique", iteration=0, text=raw))
    await asyncio.sleep(0.05)
    assert p.text.value == ""
    assert "· 20 tokens" in p.time.value
    p.live.end_call(CallEnded(stage="critique", iteration=0, usage=Usage(completion_tokens=7)))
    await asyncio.sleep(0.05)
    assert "· 7 tokens" in p.time.value


async def test_without_a_listening_page_the_end_of_the_text_is_the_widgets_value(
    pane: Callable[..., Pane],
) -> None:
    p = pane()
    p.show(OPENING, DRAFT)
    p.write(*["x" * 100] * 300, after=1 / 30)  # ten seconds
    assert p.page.pieces == []
    assert TAIL_CHARACTERS <= len(p.text.value) < TAIL_CHARACTERS + 200
    assert len(p.texts) <= 101


async def test_a_hostile_tail_stays_text(pane: Callable[..., Pane]) -> None:
    p = pane()
    p.show(OPENING, DRAFT)
    p.write("</pre><script>alert(1)</script>")
    assert "&lt;script&gt;" in p.text.value
    assert "<script" not in p.text.value


async def test_a_page_that_answers_late_is_sent_what_it_missed_and_then_pieces(
    pane: Callable[..., Pane],
) -> None:
    p = pane()
    p.show(OPENING, DRAFT)
    p.write("Hello, ")
    assert "Hello" in p.text.value
    p.page.ask()
    assert "Hello" not in p.text.value
    p.write("you.", after=1.0)
    assert p.page.text == "Hello, you."


async def test_when_the_page_is_gone_the_end_of_the_text_is_a_widgets_value_again(
    pane: Callable[..., Pane],
) -> None:
    p = pane()
    p.page.ask()
    p.show(OPENING, DRAFT)
    p.write("Hello")
    p.page.hang_up()
    assert "<code>Hello</code>" in p.text.value


async def test_a_closed_pane_shows_nothing_that_was_due(pane: Callable[..., Pane]) -> None:
    p = pane(tick=0.01)
    p.page.ask()
    p.show(OPENING, DRAFT)
    p.write("a", "b")
    p.live.close()
    before = p.time.value
    p.watch.now += 9
    await asyncio.sleep(0.3)
    assert (p.page.text, p.time.value, p.page.closed) == ("a", before, True)
