"""Every state of panel and record, in both themes: axe finds nothing, and all can be read."""

from types import SimpleNamespace
from typing import Any

import pytest
from panel_page import page_html
from states import AVERAGE, MAIL, STATES

from ipyrefine.core.coach import open_puzzle
from ipyrefine.core.model import Stage, StopReason
from ipyrefine.core.run import Run
from ipyrefine.render.html import NOTHING, View, panel_html, panel_parts, record_html

_SETUP = SimpleNamespace(
    why="Your API key was refused (HTTP 401).", looks=True, size="1.1 GB", id="1", stamp=0,
    url="https://api.openai.com/v1", has_key=False, in_keyring=True, model="", names=["m"],
    word="Use it", note="The server lists 1 model.", kind="good",
)  # fmt: skip
_FORMS = ("edit", "finding", "select", "criteria", "model", "sent", "keys")
_MORE = {
    **NOTHING,
    "can_change_model": True, "can_restart": True, "has_tests": True, "unseen": ("df",),
    "prompts": (("Draft", "Write it."),),
}  # fmt: skip
_DRAWN = "<style>.rf-panel .rf-acts{opacity:1!important}</style>"

# axe passes over single characters, such as a mark, and over what a menu is above.
_FAINT = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], below) =>
    [r, g, b].map((c, n) => (c * a + below[n] * (255 - a)) / 255);
  const ground = (node) => {
    const below = node === document.documentElement ? [255, 255, 255] : ground(node.parentElement);
    return over(read(getComputedStyle(node).backgroundColor), below);
  };
  const light = (colour) => colour.map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const found = new Map();
  for (const node of document.querySelectorAll(".ipyrefine *")) {
    const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.nodeValue.trim());
    if (!own || node.matches("style, .rf-md") || !node.checkVisibility()) continue;
    const below = ground(node);
    let colour = read(getComputedStyle(node).color);
    for (let one = node; one; one = one.parentElement) colour[3] *= getComputedStyle(one).opacity;
    const [dark, bright] = [light(over(colour, below)), light(below)].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.45) found.set(node.className, [node.textContent.slice(0, 40), ratio.toFixed(2)]);
  }
  return [...found].map(([name, rest]) => [name, ...rest]);
}"""


def coached() -> Run:
    """Return the run of a student who has a result to predict."""
    setup = AVERAGE.setup.replace(attempts=(), draft=AVERAGE.iterations[0].text)
    run = AVERAGE.replace(setup=setup, iterations=AVERAGE.iterations[:1], best=0)
    assert open_puzzle(run)
    return run


def pages() -> dict[str, str]:
    """Return the HTML of each state."""
    views: dict[str, tuple[Run | None, View]] = {
        **{name: (run, View(offers=_MORE)) for name, run in STATES.items()},
        **{f"form {name}": (MAIL, View(form=name, offers=_MORE)) for name in _FORMS},
        "dismiss": (MAIL, View(form="dismiss", finding="f3")),
        "details": (AVERAGE, View(folds=frozenset({"details", "texts"}))),
        "running": (
            MAIL.replace(stage=Stage.REVISE, stop_reason=None),
            View(streaming="text"),
        ),
        "accepted": (
            MAIL.replace(stop_reason=StopReason.ACCEPTED),
            View(offers={**NOTHING, "back": ("orders",)}),
        ),
        "coach": (coached(), View()),
        "set up": (None, View(offers={**NOTHING, "setup": _SETUP})),
        "starting": (None, View()),
    }
    return {
        name: panel_html(panel_parts(run, view, "A note."), "id")
        + (record_html(run) if run and run.iterations else "")
        for name, (run, view) in views.items()
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_nothing_in_any_state(browser: Any, theme: str) -> None:
    from axe_playwright_python.async_playwright import Axe

    options: Any = {"rules": {"region": {"enabled": False}}}
    found = list[tuple[Any, ...]]()
    page = await browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme=theme)
    for name, html in pages().items():
        await page.set_content(page_html(theme, before=html + _DRAWN))
        await page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        said = (await Axe().run(page, context=".ipyrefine", options=options)).response
        for one in said["violations"]:
            nodes = [(node["html"][:120], node["failureSummary"]) for node in one["nodes"][:2]]
            found.append((name, one["id"], nodes))
        found += [(name, *one) for one in await page.evaluate(_FAINT)]
    await page.close()
    assert not found, "\n".join(map(str, found))
