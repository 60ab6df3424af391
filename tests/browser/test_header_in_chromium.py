"""The header of a long text: the check that asks can be answered there."""

from typing import Any

import pytest
from panel_page import clicked, open_panel
from states import STATES

from ipyrefine.core.run import Run

ASKED = ".rf-top .rf-asked"


def long(state: str) -> Run:
    """Return a run whose text is longer than a window."""
    run = STATES[state]
    lines = "\n".join(f"x{n} = {n}" for n in range(55))
    texts = [one.replace(text=f"{one.text}\n{lines}", parent=None) for one in run.iterations]
    return run.replace(iterations=tuple(texts))


@pytest.mark.parametrize(
    ("state", "words", "button", "told"),
    [
        ("one to check", "They should go", "They should go", ("dismiss", {})),
        ("question", "What should an empty list give?", "an error", ("answer", {"choice": 2})),
        ("function", "average([5]) →", "5", ("expect", {"choice": 1})),
    ],
)
async def test_a_check_out_of_sight_is_answered_in_the_header_which_keeps_its_height(
    browser: Any, state: str, words: str, button: str, told: Any
) -> None:
    page = await open_panel(browser, long(state), size=(1000, 500), after="<p style=height:900px>")
    await page.locator(ASKED).wait_for()
    assert words in await page.locator(".rf-top").inner_text()
    height = await page.locator(".rf-top").evaluate("e => e.offsetHeight")
    await page.locator(ASKED).get_by_role("button", name=button, exact=True).click()
    [(action, fields)] = await clicked(page)
    assert (action, told[1] | fields) == (told[0], fields)
    await page.locator(f'.rf-res[data-row="{fields["row"]}"]').scroll_into_view_if_needed()
    await page.locator(ASKED).wait_for(state="hidden")
    assert await page.locator(".rf-top").evaluate("e => e.offsetHeight") == height
    await page.close()
