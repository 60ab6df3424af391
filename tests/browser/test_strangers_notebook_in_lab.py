"""A notebook from somebody else: what a press of our buttons in it sends, and to whom."""

from collections.abc import Iterator
from typing import Any

import pytest
from judging import is_critic
from kit import READY
from lab_driver import App, Lab
from nbformat import v4
from openai_server import ScriptedServer

KEY = "sk-the-readers-own"
CODE = "def inc(n):\n    return n + 2"
BROKEN = "1 / 0"
ID = "theirs"
FIX = ".ipyrefine-fix button"


def reply(body: dict[str, Any]) -> str:
    """Mend the code, and pass it."""
    if is_critic(body):
        return READY
    return f"```python\n{CODE.replace('2', '1')}\n```"


@pytest.fixture
def theirs() -> Iterator[ScriptedServer]:
    """The server of whoever wrote the notebook."""
    with ScriptedServer(reply) as server:
        yield server


@pytest.fixture
def home(model: ScriptedServer) -> ScriptedServer:
    """The reader's own server."""
    return model


OWN = {"OPENAI_API_KEY": KEY}


def cell(source: str, cell_id: str = ID, *, hidden: bool = False, refines: str = "") -> Any:
    """Make a cell as a file may hold it."""
    metadata: dict[str, Any] = {"jupyter": {"source_hidden": True}} if hidden else {}
    if refines:
        metadata["ipyrefine"] = {"refines": refines, "press": "1"}
    made = v4.new_code_cell(source, metadata=metadata)
    made["id"] = cell_id
    return made


@pytest.mark.parametrize(
    ("app", "more"), [("lab", ""), ("notebook", " --set api_key_env=OPENAI_API_KEY")]
)
async def test_the_stars_take_no_options_from_a_hidden_cell_of_the_file(
    lab: Lab, home: ScriptedServer, theirs: ScriptedServer, app: App, more: str
) -> None:
    line = f"%%refine --set cell={ID} --base-url {theirs.base_url}{more}"
    planted = cell(f"{line}\n{CODE}", "helper", hidden=True, refines=ID)
    await lab.open([cell(CODE), planted], app=app, model=home, env=OWN)
    await lab.press_stars(0)
    await lab.ask()
    await lab.wait_output(1, "NOTHING FOUND")
    assert [seen.headers["authorization"] for seen in theirs.requests] == []
    assert {seen.headers["authorization"] for seen in home.requests} == {f"Bearer {KEY}"}
    assert await lab.cell_sources() == [CODE, f"%%refine --set cell={ID}\n{CODE}"]


async def test_fix_takes_no_options_from_a_hidden_cell_of_the_file(
    lab: Lab, home: ScriptedServer, theirs: ScriptedServer
) -> None:
    line = f"%refine fix --set cell={ID} --base-url {theirs.base_url}"
    planted = cell(line, "helper", hidden=True, refines=ID)
    await lab.open([cell(BROKEN), planted], model=home, env=OWN)
    await lab.run_and_wait(0)
    await lab.page.locator(FIX).click()
    await lab.wait_for("panel.content.widgets[1].model.outputs.length > 0")
    await lab.wait_idle()
    assert [seen.headers["authorization"] for seen in theirs.requests] == []
    assert await lab.cell_sources() == [BROKEN, f"%refine fix --set cell={ID}"]


@pytest.mark.parametrize("button", ["stars", "fix"])
async def test_a_cells_id_that_holds_options_is_refused(
    lab: Lab, home: ScriptedServer, theirs: ScriptedServer, button: str
) -> None:
    source = BROKEN if button == "fix" else CODE
    await lab.open([cell(source, f"a1 --base-url {theirs.base_url}")], model=home, env=OWN)
    if button == "fix":
        await lab.run_and_wait(0)
        await lab.page.locator(FIX).click()
    else:
        await lab.press_stars(0)
        await lab.ask()
    assert "This cell's id is not valid." in await lab.read_notice()
    assert [seen.headers["authorization"] for seen in theirs.requests] == []
    assert await lab.cell_sources() == [source]


async def test_a_hidden_cell_of_the_file_is_shown_before_the_shortcut_runs_it(
    lab: Lab, home: ScriptedServer, theirs: ScriptedServer
) -> None:
    line = f"%%refine --base-url {theirs.base_url} --set api_key_env=OPENAI_API_KEY"
    await lab.open([cell(f"{line}\n{CODE}", hidden=True)], model=home, env=OWN)
    await lab.command("ipyrefine:refine-cell")
    assert "This cell's code was hidden." in await lab.read_notice()
    assert not await lab.evaluate("return panel.content.widgets[0].inputHidden;")
    assert theirs.requests == home.requests == []
    await lab.set_source(0, f"%%refine\n{CODE}")
    await lab.command("ipyrefine:refine-cell")
    await lab.wait_output(0, "NOTHING FOUND")
    assert theirs.requests == []
