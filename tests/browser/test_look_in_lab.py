"""Look before you run: from a cell's toolbar, for one cell or those that are selected."""

import pytest
from lab_driver import APPS, App, Lab

from ipyrefine.kernel.variables import sandbox_is_closed

SETUP = (
    "import pandas as pd\n"
    'orders = pd.DataFrame({"town": ["Bonn", "Kiel", "Bonn"], "amount": [1, 2, 3]})'
)
CELL = 'sums = orders.groupby("town")["amount"].sum()\nint(sums.max()) * 111'
LOOK = '.jp-Cell.jp-mod-active .jp-cell-toolbar [data-jp-item-name="look"]'


@pytest.fixture(autouse=True)
def copies() -> None:
    """Skip where nothing is run unasked."""
    if not sandbox_is_closed():
        pytest.skip("the sandbox is not closed here")


async def look(lab: Lab, index: int) -> None:
    """Press the button that looks."""
    await lab.select(index)
    await lab.page.locator(LOOK).locator("button, jp-button").first.click()


@APPS
async def test_a_cell_is_looked_at_and_run_as_it_stands(lab: Lab, app: App) -> None:
    await lab.open([SETUP, CELL, "last = 1"], app=app)
    await lab.run_and_wait(0)
    await look(lab, 1)
    await lab.panel(".rf-badge", "LOOKED AT").wait_for()
    await lab.wait_output(2, "444")
    cell_id = (await lab.cell_ids())[1]
    looked = f"%%look --set cell={cell_id}\n{CELL}"
    assert await lab.cell_sources() == [SETUP, CELL, looked, "last = 1"]
    assert await lab.outputs_text(1) == ""
    await lab.wait_idle()
    await lab.press("accept")
    await lab.wait_output(1, "444")
    await lab.wait_closed()
    assert (await lab.cell_sources())[1] == CELL
    await lab.wait_output(2, "ran: both results as shown")
    await lab.evaluate(
        "panel.content.activeCellIndex = 0; panel.content.extendContiguousSelectionTo(1)"
    )
    await lab.command("ipyrefine:look")
    await lab.panel(".rf-badge", "LOOKED AT").wait_for()
    assert (await lab.cell_sources())[2] == f"%%look\n{SETUP}\n\n{CELL}"
