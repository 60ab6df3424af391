"""A cell that failed: the Fix button below its output, the toolbar, and Accept and run."""

from typing import Any

import pytest
from lab_driver import APPS, App, Lab
from openai_server import ScriptedServer

from ipyrefine.kernel.variables import sandbox_is_closed

SETUP = "prices = {'a': 1, 'b': 41}\ndef total(d): return sum(d.values())"
BROKEN = "answer = total(price)\nprint('total', answer)"
FIXED = BROKEN.replace("(price)", "(prices)")


def reply(_: dict[str, Any]) -> str:
    return f"f1: the name is another\n```python\n{FIXED}\n```"


@pytest.fixture(autouse=True)
def copies() -> None:
    """Skip where checked code gets copies of named variables only."""
    if not sandbox_is_closed():
        pytest.skip("the sandbox is not closed here")


def fix_button(lab: Lab, index: int) -> Any:
    """The Fix button below the outputs of a cell."""
    return lab.page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".ipyrefine-fix button")


async def fix(lab: Lab, index: int) -> None:
    """Press a cell's Fix button and wait for the text."""
    await fix_button(lab, index).click()
    await lab.wait_verdict("NOT JUDGED")
    await lab.wait_idle()


async def run_all(lab: Lab, *cells: int) -> None:
    for cell in cells:
        await lab.run_and_wait(cell)


@APPS
async def test_a_failed_cell_is_fixed_accepted_and_run(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    page = await lab.open([SETUP, BROKEN, "last = 1"], app=app, model=model)
    await run_all(lab, 0, 1)
    await lab.wait_output(1, "NameError")
    await fix_button(lab, 1).wait_for()
    assert await fix_button(lab, 0).count() == 0
    await fix(lab, 1)
    cell_id = (await lab.cell_ids())[1]
    assert await lab.cell_sources() == [
        SETUP, BROKEN, f"%refine fix --set cell={cell_id}", "last = 1",
    ]  # fmt: skip
    assert await lab.evaluate("return panel.content.widgets[2].inputHidden;")
    await lab.unfold("details")
    assert "It runs on copies of total, prices." in await lab.outputs_text(2)
    above = [await lab.panel(f'[data-part="{part}"]').inner_text() for part in ("top", "notices")]
    assert "".join(above).count("nobody checked what it gives") == 1
    assert len(model.requests) == 1
    first = lab.panel(".rf-acts button")
    assert await first.inner_text() == "Accept and run"
    await first.click()
    await lab.wait_source(1, FIXED)
    await lab.wait_output(1, "total 42")
    await lab.wait_output(2, "and the cell runs now; undo brings it back")
    await lab.wait_for("panel.content.activeCellIndex === 3")  # past the cell with the record
    await lab.wait_for("panel.content.activeCell.node.contains(document.activeElement)")
    assert await fix_button(lab, 1).count() == 0
    assert len(await lab.cell_sources()) == 4
    await page.locator(".jp-Notebook .jp-Cell").nth(1).locator(".cm-content").click()
    await page.keyboard.press("Control+z")
    await lab.wait_source(1, BROKEN)


async def test_an_interrupted_cell_and_a_refused_command_offer_no_fix(
    lab: Lab, model: ScriptedServer
) -> None:
    await lab.open(
        ["%load_ext ipyrefine", "raise KeyboardInterrupt", "%refine fix", "1 / 0"], model=model
    )
    await run_all(lab, 0, 1, 2, 3)
    await lab.wait_output(2, "No failed cell is known")
    await fix_button(lab, 3).wait_for()
    assert await lab.page.locator(".ipyrefine-fix").count() == 1
    await lab.set_source(3, "1 / 1")
    await lab.run_and_wait(3)
    await lab.wait_for("!panel.node.querySelector('.ipyrefine-fix')")
