"""The panel by keyboard: among lines and texts, and what answers a check."""

from typing import Any

import pytest
from panel_page import clicked, open_panel
from states import STATES

FOCUSED = "document.activeElement.innerText || document.activeElement.name"


async def press(page: Any, *keys: str) -> str:
    """Press keys, and return what has the focus then."""
    for key in keys:
        await page.keyboard.press(key)
    return (await page.evaluate(FOCUSED) or "").strip()


ANSWERS = [
    ("one to check", "y", ("dismiss", {"finding": "f1", "row": "f1"})),
    ("one to check", "1", ("dismiss", {"finding": "f1", "row": "f1"})),
    ("one to check", "n", ("act", {"finding": "f1", "row": "f1", "iteration": 0})),
    ("one to check", "2", ("act", {"finding": "f1", "row": "f1", "iteration": 0})),
    ("question", "2", ("answer", {"row": "q1", "finding": "q1", "choice": 2})),
    ("question", "n", ("dismiss", {"finding": "q1", "row": "q1"})),
    ("mail", "y", ("dismiss", {"finding": "f2", "row": "f2"})),
]


@pytest.mark.parametrize("place", [".rf-res[data-row]", "section.rf"])
async def test_a_key_answers_the_line_in_focus_or_what_the_header_asks(
    browser: Any, place: str
) -> None:
    found = []
    for state, key, _ in ANSWERS:
        page = await open_panel(browser, STATES[state])
        await page.keyboard.press(key)
        assert await clicked(page) == [], "the focus is not in the panel"
        await page.locator(place).first.focus()
        await page.keyboard.press(key)
        found.append((state, key, *await clicked(page)))
        await page.close()
    assert found == ANSWERS


async def test_a_key_that_has_no_answer_chooses_none_or_goes_to_the_field(browser: Any) -> None:
    page = await open_panel(browser, STATES["question"])
    await page.locator(".rf-res[data-row]").focus()
    assert await press(page, "y") == "0", "it goes to the first choice"
    await press(page, "9")
    assert await clicked(page) == []
    await page.close()
    for key in ("y", "1", "Enter"):
        page = await open_panel(browser, STATES["example"])
        await page.locator(".rf-res[data-row]").focus()
        assert await press(page, key) == "result"
        await page.keyboard.type("[1.5, 2.5]")
        await page.keyboard.press("Enter")
        [(action, fields)] = await clicked(page)
        assert (action, fields["result"]) == ("expect", "[1.5, 2.5]")
        await page.close()
    page = await open_panel(browser, STATES["function"])
    await page.locator(".rf-res", has_text="average([])").focus()
    await press(page, "n")
    await page.keyboard.type("None")
    assert await press(page, "Escape") == "Should be…"
    await page.locator(".rf-res", has_text="average([])").focus()
    await press(page, "y")
    [(action, fields)] = await clicked(page)
    assert (action, fields["choice"]) == ("expect", 0)
    await page.close()
