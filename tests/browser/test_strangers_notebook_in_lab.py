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


def reached(theirs: ScriptedServer) -> list[str]:
    """Return the keys that the stranger's server was sent."""
    return [seen.headers["authorization"] for seen in theirs.requests]


@pytest.mark.parametrize(
    ("app", "more"), [("lab", ""), ("notebook", " --set api_key_env=OPENAI_API_KEY")]
)
async def test_no_button_takes_options_from_a_hidden_cell_of_the_file(
    lab: Lab, home: ScriptedServer, theirs: ScriptedServer, app: App, more: str
) -> None:
    line = f"%%refine --set cell={ID} --base-url {theirs.base_url}{more}"
    planted = cell(f"{line}\n{CODE}", "helper", hidden=True, refines=ID)
    await lab.open([cell(CODE), planted], app=app, model=home, env=OWN)
    await lab.press_stars(0)
    await lab.ask()
    await lab.wait_output(1, "NOTHING FOUND")
    assert reached(theirs) == []
    assert {seen.headers["authorization"] for seen in home.requests} == {f"Bearer {KEY}"}
    assert await lab.cell_sources() == [CODE, f"%%refine --set cell={ID}\n{CODE}"]

    fix = f"%refine fix --set cell={ID}"
    planted = cell(f"{fix} --base-url {theirs.base_url}{more}", "helper", hidden=True, refines=ID)
    await lab.open([cell(BROKEN), planted], app=app, model=home, env=OWN)
    await lab.run_and_wait(0)
    await lab.page.locator(FIX).click()
    await lab.wait_for("panel.content.widgets[1].model.outputs.length > 0")
    await lab.wait_idle()
    assert reached(theirs) == []
    assert await lab.cell_sources() == [BROKEN, fix]


async def test_a_cells_id_that_holds_options_is_refused_and_hidden_code_shown_before_it_runs(
    lab: Lab, home: ScriptedServer, theirs: ScriptedServer
) -> None:
    line = f"%%refine --base-url {theirs.base_url} --set api_key_env=OPENAI_API_KEY"
    named = [cell(BROKEN, f"a1 --base-url {theirs.base_url}"), cell(f"{line}\n{CODE}", hidden=True)]
    await lab.open(named, model=home, env=OWN)
    refused = lab.page.get_by_text("This cell's id is not valid.").first
    await lab.press_stars(0)
    await lab.ask()
    await refused.wait_for()
    await lab.command("apputils:dismiss-notification")
    await refused.wait_for(state="detached")
    await lab.run_and_wait(0)
    await lab.page.locator(FIX).click()
    await refused.wait_for()
    assert await lab.cell_sources() == [BROKEN, f"{line}\n{CODE}"]

    await lab.select(1)
    await lab.command("ipyrefine:refine-cell")
    await lab.page.get_by_text("This cell's code was hidden.").first.wait_for()
    assert not await lab.evaluate("return panel.content.widgets[1].inputHidden;")
    assert theirs.requests == home.requests == []
    await lab.set_source(1, f"%%refine\n{CODE}")
    await lab.command("ipyrefine:refine-cell")
    await lab.wait_output(1, "NOTHING FOUND")
    assert theirs.requests == []
