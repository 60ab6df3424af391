"""What is drawn keeps within its panel, at every width, and stays where it is."""

from typing import Any

import pytest
from panel_page import page_html
from states import PASSES, STATES, make

from ipyrefine.core.run import Iteration
from ipyrefine.core.table import Result
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


@pytest.mark.parametrize("width", [1000, 560])
async def test_a_head_and_a_check_with_its_cross_are_one_line(browser: Any, width: int) -> None:
    counted = Result(
        name="length:<=9 words", passed=True, basis="constraints", shows="It has 4 words."
    )
    failing = counted.replace(name="one", passed=False, shows="f(1)\nf(2)")
    texts = [
        Iteration(number=n, text="x", evidence=(counted, failing), verdict=PASSES) for n in range(3)
    ]
    run = make(*texts, best=1)
    run = run.replace(setup=run.setup.replace(checks=("length:<=9 words", "one")))
    page = await browser.new_page(viewport={"width": width, "height": 800})
    await page.set_content(page_html(before=panel_html(panel_parts(run, View()), "id")))
    assert await page.locator(".rf-drop").count() == 2
    heights = await page.locator(".rf-checks tr").evaluate_all(
        "all => all.map((o) => o.clientHeight)"
    )
    assert len(heights) == 3
    assert max(heights) < 36
    await page.close()
