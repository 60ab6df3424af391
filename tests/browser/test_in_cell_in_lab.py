"""What a text changes, in its own cell; and panels in reach."""

import json
from typing import Any

from judging import criticises, is_critic
from lab_driver import APPS, STARS, App, Lab
from openai_server import ScriptedServer

OLD = "import math\n\ndef area(r):\n    # of a circle\n    return math.pi * r\n\nprint(area(2))"
NEW = OLD.replace("* r\n", "* r**2\n").replace("# of a circle\n", "# of a circle, in m²\n")
WORDS, BETTER = "We is glad. It are late.", "We are glad. It is late."
BROKEN = "def scale(x):\n    return x / 0\n\nscale(1)"
FIXED = BROKEN.replace("/ 0", "/ 1")
MINE = f"%%refine --draft\n{OLD}"
ADDED, GONE = (f".jp-Notebook .ipyrefine-{name}" for name in ("added", "gone"))
TRACE = ".ipyrefine-trace"


def reply(body: dict[str, Any]) -> Any:
    """Mend the texts above; judge them by that."""
    asked = json.dumps(body["messages"])
    if is_critic(body):
        return criticises(ready="r**2" in asked or "It is late" in asked)
    if "We is" in asked:
        return f"<text>\n{BETTER}\n</text>"
    text = FIXED if "scale" in asked else NEW
    return f"f1: done\n```python\n{text}\n```"


async def improve(lab: Lab, index: int = 0) -> None:
    """Have a cell's own text refined, to the stop of the run."""
    await lab.page.locator(STARS).first.wait_for(state="attached")
    await lab.evaluate("void window.jupyterapp.commands.execute('ipyrefine:refine-cell');")
    await lab.ask()
    await lab.wait_output(index + 1, "NOTHING FOUND")


def lines(lab: Lab, selector: str) -> Any:
    return lab.page.locator(selector).all_inner_texts()


@APPS
async def test_a_difference_is_read_and_accepted_in_the_cells_own_editor(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    page = await lab.open([OLD, "last = 1"], app=app, model=model, width=800)
    await improve(lab)
    await page.locator(ADDED).wait_for()
    assert not await lab.panel(".rf-text").is_visible(), "one difference on a screen"
    assert await lab.coloured() == ["Accept and run"]
    assert await lines(lab, GONE) == ["    # of a circle", "    return math.pi * r"]
    [added] = await lines(lab, ADDED)
    assert added == "    # of a circle, in m²\n    return math.pi * r**2"
    assert (await lab.cell_sources())[0] == OLD
    if app == "lab":
        await lab.assert_accessible(", ".join((ADDED, GONE)))
    await lab.press("accept", menu="More ways to accept", iteration="1")
    await lab.wait_source(0, NEW)
    await lab.wait_output(1, "accepted")
    where = await page.locator(".rf-where").text_content()
    assert "undo brings it back" in (where or ""), "in a narrow page it is shown once opened"
    assert await page.locator(", ".join((ADDED, GONE))).count() == 0
    await page.locator(".jp-Notebook .cm-content").first.click()
    await page.keyboard.press("Control+z")
    await lab.wait_source(0, OLD)


@APPS
async def test_a_traceback_is_folded_while_its_cell_is_fixed_and_rejecting_leaves_all(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    page = await lab.open([BROKEN, "last = 1"], app=app, model=model)
    await lab.run_and_wait(0)
    button = page.locator(".ipyrefine-fix button").first
    assert (await lab.outputs_text(0)).startswith("Fix"), "it stands above a long traceback"
    await button.click()
    await page.locator(ADDED).wait_for()
    assert not await button.is_visible()
    outputs = "return JSON.stringify(panel.content.model.cells.get(0).outputs.toJSON());"
    saved = await lab.evaluate(outputs)
    assert await lines(lab, TRACE) == ["ZeroDivisionError: division by zero"]
    assert "Traceback" not in await lab.outputs_text(0)
    if app == "lab":
        await lab.assert_accessible(TRACE)
    await page.locator(TRACE).click()
    assert "Traceback" in await lab.outputs_text(0)
    await lab.panel().get_by_role("button", name="Discard").click()
    await lab.wait_closed()
    await page.locator(ADDED).wait_for(state="detached")
    assert (await lab.cell_sources())[0] == BROKEN
    assert await lab.evaluate(outputs) == saved
    await lab.wait_for("panel.content.node.contains(document.activeElement)")


@APPS
async def test_the_shortcut_reaches_the_newest_accept_from_anywhere(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    cells = [MINE, MINE.replace("--draft", "--draft -n 1"), *["x = 1\n" * 20] * 4]
    page = await lab.open(cells, app=app, model=model, height=700)
    for index in (1, 0):
        await lab.run_and_wait(index)
        await lab.wait_output(index, "NOTHING FOUND")
    for index, kept in ((0, 1), (2, 0)):  # a cell is added with the text of the first one
        last = len(await lab.cell_sources()) - 1
        await lab.select(last)
        await page.locator(".jp-Cell").nth(last).locator(".cm-content").click()
        await page.keyboard.press("Alt+p")
        holds = "panel.content.widgets[arg].node.contains(document.activeElement)"
        await lab.wait_for(holds, index)
        assert await page.evaluate("document.activeElement.dataset.action") == "accept"
        place = await page.evaluate("document.activeElement.getBoundingClientRect().top")
        assert 50 < place < 650
        assert (await lab.cell_sources())[last] == cells[-1]
        await page.keyboard.press("Enter")
        await lab.wait_for("document.querySelectorAll('.rf-panel').length === arg", kept)
        await lab.wait_idle()
