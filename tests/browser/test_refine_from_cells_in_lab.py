"""A refinement started from a cell: its toolbar, the palette, the shortcuts, and the way back."""

import asyncio
import json
from typing import Any

import pytest
from judging import criticises, is_critic
from lab_driver import APPS, FIELD, App, Lab
from openai_server import Answer, ScriptedServer

WRONG = "def inc(n):\n    return n + 2\n\ndef dec(n):\n    return n - 2"
RIGHT = WRONG.replace("n + 2", "n + 1").replace("n - 2", "n - 1")
HIDDEN = "panel.content.widgets[1].inputHidden"


def reply(body: dict[str, Any]) -> str | Answer:
    """Mend what is wrong with the texts above; judge them by that."""
    asked = json.dumps(body["messages"])
    prose = "the the text" in asked or "It is the text" in asked
    if is_critic(body):
        return criticises(ready="+ 1" in asked or "It is the text." in asked)  # it is mended
    return "<text>\nIt is the text.\n</text>" if prose else f"```python\n{RIGHT}\n```"


async def improve(lab: Lab, index: int) -> None:
    """Press the button, and ask for nothing in particular."""
    await lab.press_stars(index)
    await lab.ask()


async def accept(lab: Lab) -> None:
    await lab.wait_idle()
    await lab.click_button("Accept")


@APPS
async def test_the_button_refines_a_code_cell_accepting_changes_it_and_one_undo_restores_it(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    page = await lab.open([WRONG, "last = 1"], app=app, model=model)
    await improve(lab, 0)
    await lab.wait_output(1, "NOTHING FOUND")
    first = f"%%refine --set cell={(await lab.cell_ids())[0]}"
    assert await lab.cell_sources() == [WRONG, f"{first}\n{WRONG}", "last = 1"]
    assert await lab.evaluate(f"return {HIDDEN};")
    await accept(lab)
    await lab.wait_source(0, RIGHT)
    await lab.wait_output(1, "undo brings it back")
    await page.locator(".jp-Notebook .cm-content").first.click()
    await page.keyboard.press("Control+z")
    await lab.wait_source(0, WRONG)
    assert len(await lab.cell_sources()) == 3
    await lab.wait_idle()
    model.asked.clear()
    await lab.set_source(1, f"{first} -n 1\n{WRONG}")
    await improve(lab, 0)
    assert await asyncio.to_thread(model.asked.wait, 60), "after an undo it asks anew"
    await lab.wait_output(1, "NOTHING FOUND")
    await accept(lab)
    await lab.wait_output(1, "undo brings it back")
    await lab.wait_idle()
    assert (await lab.cell_sources())[0] == RIGHT
    # Pressed again, it refines in the same cell with the options kept.
    await improve(lab, 0)
    await lab.wait_source(1, f"{first} -n 1\n{RIGHT}")
    await lab.wait_idle()
    assert len(await lab.cell_sources()) == 3


@pytest.mark.parametrize(("app", "width"), [("lab", 1280), ("notebook", 800)])
async def test_words_and_selected_lines_say_what_is_to_change_and_the_line_remembers_them(
    lab: Lab, model: ScriptedServer, app: App, width: int
) -> None:
    page = await lab.open([WRONG, "last = 1"], app=app, model=model, width=width)
    await page.locator(".jp-Notebook .cm-content").first.click()
    await page.keyboard.press("Control+Home")
    await page.keyboard.press("Shift+ArrowDown")
    await page.keyboard.press("Shift+ArrowDown")
    await page.keyboard.press("Alt+Shift+r")
    line = page.locator(f'{FIELD}[aria-label^="Lines 1"]')
    await line.wait_for()
    marked = page.locator(".jp-Cell").first.locator(".cm-selectionBackground")
    assert await marked.count() > 0
    await line.press("Enter")
    await lab.wait_output(1, "NOTHING FOUND")
    options = f"%%refine --set cell={(await lab.cell_ids())[0]}"
    assert (await lab.cell_sources())[1] == f"{options} --lines 1-2\n{WRONG}"
    await accept(lab)
    mended = WRONG.replace("n + 2", "n + 1")
    await lab.wait_source(0, mended)
    await lab.wait_idle()

    asked = len(model.requests)
    await page.locator(".jp-Notebook .cm-content").first.click()
    await page.keyboard.press("Alt+r")
    await page.locator(f"{FIELD}:focus").wait_for()
    await page.keyboard.type('Add "one" only')
    await page.keyboard.press("Enter")
    await lab.panel('[data-action="accept"]').wait_for()
    await lab.wait_output(1, "NOTHING FOUND")
    first = (await lab.cell_sources())[1]
    assert first.startswith(options)
    assert first.endswith(f' --change="Add \\"one\\" only"\n{mended}')
    assert [is_critic(body) for body in model.bodies[asked:]] == [False, True]
    assert 'Add "one" only' in model.bodies[asked]["messages"][-1]["content"]
    await lab.wait_idle()
    await lab.press_stars(0)
    await lab.ask("second")
    await lab.wait_output(1, "NOTHING FOUND")
    await lab.wait_idle()
    asked = len(model.requests)
    await lab.press_stars(0)
    seen = []
    for key in ("ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"):
        await page.locator(FIELD).press(key)
        seen.append(await page.locator(FIELD).input_value())
    assert seen == ["second", 'Add "one" only', "second", ""]
    await page.locator(FIELD).press("Escape")
    await page.locator(FIELD).wait_for(state="detached")
    assert len(await lab.cell_sources()) == 3
    assert len(model.requests) == asked
