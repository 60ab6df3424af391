"""A notebook that was saved and opened again: with its kernel, without it, and as an export."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Literal

import nbformat
import pytest
from lab_driver import Lab
from openai_server import ScriptedServer
from stack_task import kernel
from test_panel_in_lab import TASK
from test_panel_in_lab import reply as median_reply

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
OUTPUT = Path(__file__).parents[1] / "output"
APPS = pytest.mark.parametrize("app", ["lab", "notebook"])
App = Literal["lab", "notebook"]
LOST = ("Error displaying widget", "model not found", "Loading widget")
CODE = "return (xs[middle - 1] + xs[middle]) / 2"


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(median_reply) as server:
        yield server


async def run_and_save(lab: Lab, model: ScriptedServer, app: App, *, accept: bool) -> None:
    await lab.open(["%load_ext ipyrefine", TASK], env=kernel(model), app=app)
    await lab.run_and_wait(0)
    await lab.run_and_wait(1)
    await lab.wait_verdict("PASS")
    if accept:
        await lab.press("accept")
        await lab.wait_output(1, "The text is in a new cell below.")
        await lab.wait_idle()
    await lab.command("docmanager:save")
    await lab.page.close()


async def reopen_without_kernel(lab: Lab, app: App) -> None:
    for session in lab.server.request("GET", "api/sessions"):
        lab.server.request("DELETE", f"api/sessions/{session['id']}")
    await lab.open_again(app=app)


@APPS
@pytest.mark.parametrize("accept", [False, True], ids=["undecided", "decided"])
async def test_without_its_kernel_a_notebook_shows_the_record_open_and_no_error(
    lab: Lab, model: ScriptedServer, app: App, accept: bool
) -> None:
    await run_and_save(lab, model, app, accept=accept)
    await reopen_without_kernel(lab, app)
    record = lab.page.locator(".rf-record")
    await record.wait_for()
    await lab.wait_for("!panel.node.innerText.includes('Loading widget')")
    await lab.screenshot(OUTPUT / f"saved-{app}-{'decided' if accept else 'undecided'}.png")
    if accept:
        folded = await lab.outputs_text(1)
        for words in ("✓ PASS", "2 of 2 examples hold", "accepted", "in a new cell below."):
            assert words in folded
        assert CODE not in folded
        await record.locator("summary").first.click()
        await record.get_by_text("The whole text").click()
    shown = await lab.outputs_text(1)
    assert not any(words in shown for words in LOST)
    for words in ("✓ PASS", "2 of 2 examples hold", CODE, "def describe(xs):"):
        assert words in shown
    assert await lab.page.locator(".rf-panel").count() == 0
    assert await record.locator("ins.rf-add").first.is_visible()


@APPS
async def test_in_a_notebook_that_is_not_trusted_a_record_looks_as_in_one_that_is(
    lab: Lab, app: App
) -> None:
    notebook = nbformat.read(NOTEBOOKS / "01-first-refine.ipynb", as_version=4)
    [shown, *_] = [c for c in notebook.cells if "rf-record" in str(c.get("outputs"))]
    await lab.open([shown], app=app)
    outcome = lab.page.get_by_text("PASS").first
    await outcome.wait_for()
    assert await lab.page.locator(".rf-record style").count() == 0, "the page has sanitized it"
    await lab.screenshot(OUTPUT / f"untrusted-{app}.png")
    radius = await outcome.evaluate("one => getComputedStyle(one).borderRadius")
    assert float(radius.removesuffix("px")) > 0


@APPS
async def test_with_its_kernel_an_undecided_notebook_has_its_panel_back(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    await run_and_save(lab, model, app, accept=False)
    await lab.open_again(app=app)
    await lab.wait_verdict("PASS")
    await lab.page.locator(".rf-record").wait_for(state="hidden")
    await lab.press("accept")
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 3")


async def test_the_record_is_hidden_only_while_the_panel_is_there(
    lab: Lab, model: ScriptedServer
) -> None:
    await lab.open(["%load_ext ipyrefine", TASK], env=kernel(model))
    await lab.run_and_wait(0)
    await lab.run_and_wait(1)
    await lab.wait_verdict("PASS")
    record = lab.page.locator(".rf-record")
    await record.wait_for(state="attached")
    assert not await record.is_visible()
    await lab.press("close", menu="More")
    await record.wait_for(state="visible")


@pytest.mark.parametrize("accept", [False, True], ids=["undecided", "decided"])
async def test_exports_show_the_record_and_no_trace_of_the_panel(
    lab: Lab, model: ScriptedServer, accept: bool, browser: object
) -> None:
    from nbconvert import HTMLExporter, MarkdownExporter

    await run_and_save(lab, model, "lab", accept=accept)
    book = nbformat.read(lab.path, as_version=4)
    html, _ = HTMLExporter().from_notebook_node(book)
    markdown, _ = MarkdownExporter().from_notebook_node(book)
    for text in (html, markdown):
        assert not any(words in text for words in LOST)
        assert "PASS" in text
    page = await browser.new_page()
    await page.route("**/*", lambda route: route.abort())
    await page.set_content(html, wait_until="domcontentloaded")
    record = page.locator(".rf-record")
    assert await record.is_visible()
    if accept:
        await record.locator("summary").first.click()
        await record.get_by_text("The whole text").click()
    shown = await record.inner_text()
    for words in ("✓ PASS", "2 of 2 examples hold", CODE, "def describe(xs):"):
        assert words in shown
    without_style = html.replace("<style>", "<style media=none>")
    await page.set_content(without_style, wait_until="domcontentloaded")
    if accept:
        await record.locator("summary").first.click()
    text = await page.locator(".rf-record").inner_text()
    assert "    if len(xs) % 2:\n" in text
    await page.close()
    assert CODE in unescape(re.sub("<[^>]*>", "", markdown))
