"""A panel in Chromium without a notebook: the page's half, and what a kernel would send it."""

from typing import Any

from ipyrefine.core.run import Run
from ipyrefine.notebook.panel import page_code
from ipyrefine.render.html import View, panel_html, panel_parts

_THEMES = {"light": ("#fff", "#212121", "#1976d2"), "dark": ("#111111", "#e0e0e0", "#42a5f5")}
_PAGE = """<!doctype html><html lang=en><meta charset=utf-8><title>Panel</title>
<style>body{{margin:0;background:{0};color:{1};color-scheme:{theme};--jp-layout-color0:{0};
--jp-layout-color1:{0};--jp-ui-font-color1:{1};--jp-brand-color1:{2}}}{css}</style>
<body data-jp-theme-light={light}><main>{before}<div id=panel></div>{after}</main>"""
_START = """
window.sent = [];
const model = {
  send: (message) => sent.push(message),
  on: (name, hear) => (name === "msg:custom" ? (window.take = hear) : (window.die = hear)),
  off() {},
};
window.end = render({ model, el: document.getElementById("panel") });
"""


def page_html(theme: str = "light", before: str = "", after: str = "") -> str:
    """Return a page in the colours of JupyterLab's themes."""
    css = page_code()[1]
    light = str(theme == "light").lower()
    return _PAGE.format(
        *_THEMES[theme], theme=theme, css=css, light=light, before=before, after=after
    )


async def open_panel(
    browser: Any,
    run: Run,
    view: View | None = None,
    *,
    size: tuple[int, int] = (1000, 800),
    after: str = "",
) -> Any:
    """Return a page with a panel: `sent` is what it sent, `take` hears the kernel."""
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]})
    await page.set_content(page_html(after=after))
    script = page_code()[0].replace("export default { render };", _START)
    await page.add_script_tag(content=script, type="module")
    await page.wait_for_function("Boolean(window.end)")
    await send(page, page=panel_html(panel_parts(run, view or View()), "id"))
    return page


async def send(page: Any, /, **message: Any) -> None:
    """Give the page a message of the kernel's."""
    await page.evaluate("message => take(message)", message)


async def clicked(page: Any) -> list[Any]:
    """Return what the page sent since the last time, as pairs of action and fields."""
    found = await page.evaluate("sent.splice(0)")
    return [(one["action"], one.get("fields", {})) for one in found if one["action"] != "hello"]
