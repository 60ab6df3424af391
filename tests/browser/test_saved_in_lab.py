"""A notebook that was saved and opened again: with its kernel, without it, and as an export."""

import json
import re
from html import unescape
from typing import Any

import nbformat
from lab_driver import APPS, App, Lab
from openai_server import ScriptedServer
from test_panel_in_lab import TASK, reply  # noqa: F401 - the model's

LOST = ("Error displaying widget", "model not found", "Loading widget")
CODE = "return (xs[middle - 1] + xs[middle]) / 2"


async def accept(lab: Lab) -> None:
    await lab.press("accept")
    await lab.wait_output(1, "The text is in a new cell below")
    await lab.wait_idle()


@APPS
async def test_with_its_kernel_an_undecided_notebook_has_its_panel_back(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    await lab.start(model, TASK, app=app)
    await lab.wait_verdict("PASS")
    assert not await lab.page.locator(".rf-record").is_visible(), "only the panel is"
    await lab.command("docmanager:save")
    await lab.page.close()
    await lab.open_again(app=app)
    await lab.wait_verdict("PASS")
    record = lab.page.locator(".rf-record")
    await record.wait_for(state="hidden")
    await lab.press("accept")
    await lab.wait_cells(3)
    await record.wait_for(state="visible")


@APPS
async def test_without_its_kernel_a_notebook_shows_the_record_open_and_no_error(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    await lab.start(model, TASK, app=app)
    await lab.wait_verdict("PASS")
    await lab.command("docmanager:save")
    saved = {False: lab.path.read_text("utf-8")}
    await accept(lab)
    await lab.command("docmanager:save")
    saved[True] = lab.path.read_text("utf-8")
    for decided, book in saved.items():
        tags = json.loads(book)["cells"][1]["metadata"].get("tags", [])
        assert tags == ["skip-execution"] * decided
        await lab.page.close()
        for session in lab.server.request("GET", "api/sessions"):
            lab.server.request("DELETE", f"api/sessions/{session['id']}")
        lab.path.write_text(book, "utf-8")
        await lab.open_again(app=app)
        record = lab.page.locator(".rf-record")
        await record.wait_for()
        await lab.wait_for("!panel.node.innerText.includes('Loading widget')")
        if decided:
            folded = await lab.outputs_text(1)
            for words in ("✓ PASS", "2 of 2 examples hold", "accepted", "in a new cell below"):
                assert words in folded
            assert CODE not in folded
            await record.locator("summary").first.click()
        shown = await lab.outputs_text(1)
        assert not any(words in shown for words in LOST)
        for words in ("✓ PASS", "2 of 2 examples hold", CODE, "def describe(xs):"):
            assert words in shown
        assert await lab.page.locator(".rf-panel").count() == 0
        await record.locator(".rf-told > summary").last.click()
        assert await record.locator("ins.rf-add").first.is_visible()


async def test_exports_show_the_record_and_no_trace_of_the_panel(
    lab: Lab, model: ScriptedServer, browser: Any
) -> None:
    from nbconvert import HTMLExporter, MarkdownExporter

    await lab.start(model, TASK)
    await lab.wait_verdict("PASS")
    page = await browser.new_page()
    await page.route("**/*", lambda route: route.abort())
    record = page.locator(".rf-record")
    for decided in (False, True):
        if decided:
            await accept(lab)
        await lab.command("docmanager:save")
        book = nbformat.read(lab.path, as_version=4)
        html, _ = HTMLExporter().from_notebook_node(book)
        markdown, _ = MarkdownExporter().from_notebook_node(book)
        assert not any(words in html + markdown for words in LOST)
        assert CODE in unescape(re.sub("<[^>]*>", "", markdown))
        for style in ("<style>", "<style media=none>"):
            await page.set_content(html.replace("<style>", style), wait_until="domcontentloaded")
            if decided:
                await record.locator("summary").first.click()
            shown = await record.inner_text()
            for words in ("✓ PASS", "2 of 2 examples hold", CODE, "    if len(xs) % 2:\n"):
                assert words in shown
    await page.close()
