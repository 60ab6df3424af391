"""Words of any script."""

from typing import Any

from panel_page import page_html
from states import MAIL

from ipyrefine.core.run import Run
from ipyrefine.render.html import View, panel_html, panel_parts, record_html

ARABIC = (
    "\u0627\u0644\u0633\u064a\u062f\u0629 \u0623\u0648\u0631\u062a\u064a\u063a\u0627,\n\n"
    "- \u0648\u0635\u0644 \u0627\u0644\u0637\u0631\u062f 4417 "
    "\u0645\u062a\u0623\u062e\u0631\u0627.\n\nBest regards"
)
DIRECTION = "e => [getComputedStyle(e).direction, getComputedStyle(e).textAlign]"
LEFT = """(root) => {
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.nodeValue.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const { left, right } = range.getBoundingClientRect();
    const { left: start, right: end } = root.getBoundingClientRect();
    found.push(left - start < end - right ? "left" : "right");
  }
  return found;
}"""


def arabic() -> Run:
    """Return a run of one text in Arabic that ends in English, with a remark about it."""
    text = MAIL.iterations[1].replace(number=0, parent=None, text=ARABIC)
    remark = MAIL.points["f3"].replace(words=ARABIC.partition(",")[0], place="")
    return MAIL.replace(iterations=(text,), best=0, points=MAIL.points | {"f3": remark})


async def test_a_text_is_read_from_the_right_line_by_line_in_panel_and_record(browser: Any) -> None:
    run = arabic()
    page = await browser.new_page(viewport={"width": 900, "height": 700})
    for html, prose in (
        (panel_html(panel_parts(run, View()), "x"), ".rf-text .rf-prose"),
        (record_html(run), ".rf-whole .rf-prose"),
    ):
        await page.set_content(page_html(before=html))
        sides = await page.locator(prose).first.evaluate(LEFT)
        assert (sides[0], sides[-1]) == ("right", "left"), html[:80]
        remark = page.locator(".rf-checks [dir=auto]", has_text=ARABIC.partition(",")[0]).first
        assert await remark.evaluate(DIRECTION) == ["rtl", "start"]
        assert await page.locator(".rf-said-whole p, .rf-told span").count()
    await page.close()
