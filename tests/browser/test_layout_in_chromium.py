"""What is drawn keeps within its panel, at every width, and stays where it is."""

from typing import Any

import pytest
from panel_page import page_html
from states import STATES

from ipyrefine.render.html import NOTHING, View, panel_html, panel_parts, record_html

_MORE = {**NOTHING, "can_change_model": True, "can_restart": True, "unseen": ("orders",)}
# What ends outside of its panel, but where that scrolls or is cut on purpose.
_OUTSIDE = """
() => [...document.querySelectorAll('.ipyrefine .rf')].flatMap((panel) => {
  const box = panel.getBoundingClientRect();
  return [...panel.querySelectorAll('*')].filter((one) => {
    const { left, right, width } = one.getBoundingClientRect();
    return width && one.checkVisibility() && (left < box.left - 1 || right > box.right + 1)
      && !one.closest('.rf-wide, pre, .rf-menu ul, .rf-basis');
  }).map((one) => one.outerHTML.slice(0, 100));
})
"""


@pytest.mark.parametrize("width", [1000, 560, 320])
async def test_nothing_is_wider_than_its_panel(browser: Any, width: int) -> None:
    page = await browser.new_page(viewport={"width": width, "height": 800})
    for name, run in STATES.items():
        panel = panel_html(panel_parts(run, View(offers=_MORE)), "id")
        await page.set_content(page_html(before=panel + record_html(run)))
        assert await page.evaluate(_OUTSIDE) == [], name
    await page.close()
