"""Look before you run: from the stars' line, the palette, and where no model is set up."""

import pytest
from lab_driver import APPS, App, Lab
from openai_server import ScriptedServer

from ipyrefine.kernel.variables import sandbox_is_closed

SETUP = (
    "import pandas as pd\n"
    'orders = pd.DataFrame({"town": ["Bonn", "Kiel", "Bonn"], "amount": [1, 2, 3]})'
)
CELL = 'sums = orders.groupby("town")["amount"].sum()\nint(sums.max()) * 111'
OFFER = ".rf-setup [data-step=look]"
LOOK = "--draft -n 0 --critique never"
NO_MODEL = {"IPYREFINE_MODEL_DIR": "no such folder", "HF_HOME": "no such folder"}


@pytest.fixture(autouse=True)
def copies() -> None:
    """Skip where nothing is run unasked."""
    if not sandbox_is_closed():
        pytest.skip("the sandbox is not closed here")


async def look(lab: Lab, index: int) -> None:
    """Press the stars and choose to look."""
    await lab.press_stars(index)
    await lab.page.locator(".ipyrefine-ask button").click()


@APPS
async def test_the_stars_show_what_a_cell_gives_and_run_it_as_it_stands(lab: Lab, app: App) -> None:
    await lab.open([SETUP, CELL, "last = 1"], app=app)
    await lab.run_and_wait(0)
    await look(lab, 1)
    await lab.panel(".rf-badge", "RUNS").wait_for()
    await lab.wait_output(2, "444")
    cell_id = (await lab.cell_ids())[1]
    looked = f"%%refine --set cell={cell_id} {LOOK}\n{CELL}"
    assert await lab.cell_sources() == [SETUP, CELL, looked, "last = 1"]
    assert await lab.outputs_text(1) == ""
    await lab.wait_idle()
    await lab.press("accept")
    await lab.wait_output(1, "444")
    await lab.wait_closed()
    assert (await lab.cell_sources())[1] == CELL
    await lab.wait_output(2, "nobody read it")


@APPS
async def test_code_that_finds_no_model_is_looked_at_where_it_stands(lab: Lab, app: App) -> None:
    await lab.open([SETUP, f"%%refine\n{CELL}", CELL], app=app, env=NO_MODEL)
    await lab.run_and_wait(0)
    await lab.run_and_wait(1)
    await lab.page.locator(OFFER).click()
    await lab.wait_output(1, "444")
    assert await lab.cell_sources() == [SETUP, f"%%refine\n{CELL}", CELL]
    await lab.press_stars(2)
    await lab.ask()
    await lab.page.locator(OFFER).click()
    await lab.wait_output(3, "444")
    await lab.press("accept")
    await lab.wait_output(2, "444")


async def test_the_palette_looks_without_a_model_or_says_why_and_leaves_its_options_behind(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await lab.open([SETUP, CELL, ""], model=model)
    await lab.select(2)
    await lab.command("ipyrefine:look")
    await page.get_by_text("This cell is empty. There is nothing to look at.").first.wait_for()
    await lab.command("notebook:change-cell-to-markdown")
    await lab.command("ipyrefine:look")
    await page.get_by_text("Only code cells can be looked at.").first.wait_for()
    await lab.command("notebook:change-cell-to-code")
    await lab.command("apputils:activate-command-palette")
    await page.keyboard.type("look before")
    item = page.locator(".lm-CommandPalette-item", has_text="Look Before You Run")
    await item.first.wait_for()
    await page.keyboard.press("Escape")
    assert len(await lab.cell_sources()) == 3

    await lab.run_and_wait(0)
    await lab.select(1)
    await lab.command("ipyrefine:look")
    await lab.panel(".rf-badge", "RUNS").wait_for()
    await lab.wait_idle()
    assert not model.requests
    count = "panel.content.widgets[2].model.executionCount"
    before = await lab.evaluate(f"return {count};")
    await lab.select(2)  # of the cell that holds the panel, its source is looked at
    await lab.command("ipyrefine:look")
    await lab.wait_for(f"{count} > arg", before)
    await lab.wait_idle()
    assert len(await lab.cell_sources()) == 4
    await lab.press_stars(1)
    await lab.ask("shorter")
    cell_id = (await lab.cell_ids())[1]
    await lab.wait_source(2, f'%%refine --set cell={cell_id} --change="shorter"\n{CELL}')
