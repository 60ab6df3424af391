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


# Words that are read, without the numbers of lines; what can be pressed; and coloured buttons.
_SHORT = ("runs", "one to check", "question", "example", "figure", "first rows")
_COUNT = """
() => {
  const seen = (selector) => [...document.querySelectorAll(`.rf-panel ${selector}`)].filter((one) =>
    one.checkVisibility({ opacityProperty: true, visibilityProperty: true }));
  for (const one of seen(".rf-n")) one.remove();
  const words = document.querySelector("section.rf").innerText.trim().split(/\\s+/).length;
  const controls = seen(":is(button, summary, input, textarea, select)").length;
  return [words, controls, seen(":is(.rf-go, .rf-check, .rf-next):not(.rf-menu *)").length];
}
"""


@pytest.mark.parametrize("width", [1000, 560, 320])
async def test_nothing_is_wider_than_its_panel_which_is_short_and_has_one_coloured_button(
    browser: Any, width: int
) -> None:
    page = await browser.new_page(viewport={"width": width, "height": 800})
    for name, run in STATES.items():
        panel = panel_html(panel_parts(run, View(offers=_MORE)), "id")
        await page.set_content(page_html(before=panel + record_html(run)))
        assert await page.evaluate(_OUTSIDE) == [], name
        words, controls, coloured = await page.evaluate(_COUNT)
        assert coloured <= 1, name
        assert name not in _SHORT or (words <= 80 and controls <= 12), (name, words, controls)
    await page.close()
