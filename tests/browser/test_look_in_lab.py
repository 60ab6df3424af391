"""Look before you run: from the stars' line and the palette."""

import pytest
from lab_driver import APPS, App, Lab

from ipyrefine.kernel.variables import sandbox_is_closed

SETUP = (
    "import pandas as pd\n"
    'orders = pd.DataFrame({"town": ["Bonn", "Kiel", "Bonn"], "amount": [1, 2, 3]})'
)
CELL = 'sums = orders.groupby("town")["amount"].sum()\nint(sums.max()) * 111'
LOOK = "--draft -n 0 --critique never"


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
    await lab.wait_output(2, "Nobody read it")
