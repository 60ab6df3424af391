"""Records on one page, each with those rules of the style sheet that it needs."""

import re
from typing import Any

import pytest
from states import STATES

from ipyrefine.render.html import record_html, style

PAGE = "<!doctype html><meta charset=utf-8><body style='margin:0;color-scheme:{}'>{}"

LOOKS = """names => [...document.querySelectorAll('body :not(style)')].map(one => {
    const style = getComputedStyle(one);
    return [one.outerHTML.slice(0, 60), ...names.map(name => style[name])].join();
})"""
NAMES = [
    *("display", "position", "width", "height", "margin", "padding", "border", "borderRadius"),
    *("gap", "font", "color", "backgroundColor", "textDecoration", "textAlign", "whiteSpace"),
    *("gridTemplateColumns", "content"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_records_look_as_with_the_whole_style_sheet_whatever_stands_beside_them(
    browser: Any, theme: Any
) -> None:
    page = await browser.new_page(viewport={"width": 800, "height": 600}, color_scheme=theme)
    own = "".join(map(record_html, STATES.values()))
    whole = re.sub(r"(?s)<style>.*?</style>", lambda _: f"<style>{style()}</style>", own)
    assert len(own) < len(whole) - 5_000 * len(STATES)
    looks = []
    for html in (own, whole):
        await page.set_content(PAGE.format(theme, html.replace("<details", "<details open")))
        looks.append(await page.evaluate(LOOKS, NAMES))
    assert [one for one in zip(*looks, strict=True) if one[0] != one[1]] == []
    await page.close()
