"""A growing text on its way to the page, with a page that is played."""

import asyncio
import threading

import pytest
from hostile import texts
from hypothesis import given
from hypothesis import strategies as st
from pages import Page

from ipyrefine.notebook.streaming import Loop, Stream
from ipyrefine.render.escape import plain


class Changes:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def stream(page: Page, changes: Changes) -> Stream:
    return Stream(Loop(), changes, page)


def test_nothing_is_sent_before_a_page_asks_and_all_of_it_then(
    stream: Stream, page: Page, changes: Changes
) -> None:
    stream.add("one ")
    stream.add("two ")
    assert (page.target, page.pieces, stream.has_listener) == ("ipyrefine.live", [], False)
    page.ask()
    stream.add("three")
    assert page.pieces == [{"at": 0, "text": "one two "}, {"at": 8, "text": "three"}]
    assert (stream.has_listener, stream.id, changes.count) == (True, page.comm_id, 1)


def test_a_page_that_asks_later_gets_the_whole_text_and_the_first_one_keeps_its_own(
    stream: Stream, page: Page, changes: Changes
) -> None:
    page.ask()
    stream.add("one ")
    page.ask()
    stream.add("two")
    assert page.pieces[-2:] == [{"at": 0, "text": "one "}, {"at": 4, "text": "two"}]
    assert (page.text, changes.count) == ("one two", 1)


def test_a_new_text_takes_the_place_of_the_one_before(stream: Stream, page: Page) -> None:
    page.ask()
    stream.add("a draft")
    stream.start()
    stream.add("a revision")
    assert page.pieces[-1] == {"at": 0, "text": "a revision"}


@given(pieces=st.lists(texts | st.sampled_from(["\r", "\n", "\r\n", "😀"]), max_size=12))
def test_a_page_shows_what_the_pieces_say_wherever_they_were_cut(pieces: list[str]) -> None:
    page = Page()
    stream = Stream(Loop(), Changes(), page)
    page.ask()
    for piece in pieces:
        stream.add(piece)
    assert page.text == plain("".join(pieces).removesuffix("\r"))


def test_a_page_without_our_half_is_sent_nothing(
    stream: Stream, page: Page, changes: Changes
) -> None:
    page.ask()
    page.hang_up()
    stream.add("one")
    assert page.pieces == [{"at": 0, "text": ""}]
    assert (stream.has_listener, changes.count) == (False, 2)


def test_without_a_kernel_there_is_no_page_to_hear() -> None:
    stream = Stream(Loop(), Changes())  # the comm that stands in where no kernel is
    stream.add("one")
    assert (stream.id, stream.has_listener) == ("", False)
    stream.close()


def test_closing_closes_the_comm_and_changes_nothing_on_screen(
    stream: Stream, page: Page, changes: Changes
) -> None:
    page.ask()
    stream.close()
    assert (page.closed, changes.count) == (True, 1)
    page.ask()  # it was on its way already
    stream.add("more")
    assert page.text == ""


async def test_a_page_heard_on_another_thread_is_answered_on_the_panels(page: Page) -> None:
    threads: list[int] = []
    stream = Stream(Loop(), lambda: threads.append(threading.get_ident()), page)
    await asyncio.to_thread(page.ask)
    await asyncio.sleep(0)
    assert (threads, stream.has_listener) == ([threading.get_ident()], True)
