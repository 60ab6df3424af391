"""Setting up a model: where a cell finds none, from the palette, in the settings."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from lab_driver import APPS, App, Lab, Server
from openai_server import ScriptedServer

NO_MODEL = {"IPYREFINE_MODEL_DIR": "no such folder", "HF_HOME": "no such folder"}
TASK = "%%refine --critique never\nWrite inc(n), which adds one."
CODE = "x = 40 + 2\nx"
SECRET = "sk-the-secret-itself"
LINE = ".ipyrefine-setup"


def reply(body: dict[str, Any]) -> str:
    if "one word: OK" in body["messages"][-1]["content"]:
        return "OK"
    return "```python\ndef inc(n):\n    return n + 1\n```"


@pytest.fixture(autouse=True)
def settings(server: Server) -> Iterator[Any]:
    """Returns our settings as they are stored; none are left behind."""
    folder = server.home / "settings/ipyrefine"

    def read() -> Any:
        lines = (folder / "cells.jupyterlab-settings").read_text().splitlines()
        return json.loads("".join(one for one in lines if not one.strip().startswith("//")))

    yield read
    shutil.rmtree(folder, ignore_errors=True)


async def fill(form: Any, **fields: str) -> None:
    for name, value in fields.items():
        await form.locator(f'[name="{name}"]').fill(value)


@APPS
async def test_a_cell_that_finds_no_model_goes_on_once_one_is_set_up(
    lab: Lab, model: ScriptedServer, settings: Any, app: App
) -> None:
    model.models = ["large", "small"]
    page = await lab.open(
        [TASK, f"%%refine\n{CODE}"], app=app, width=800, env=NO_MODEL, own_window=True
    )
    await lab.run_and_wait(0)
    form = lab.panel(".rf-setup")
    await form.wait_for()
    assert await form.get_by_text("Look before you run").count() == 0  # there is nothing to look at
    await lab.assert_accessible()
    await fill(form, url=model.base_url, key=SECRET)
    await form.locator("[data-step=models]").click()
    await page.get_by_text("2 models. Choose one.").wait_for()
    assert await form.locator("option").count() == 2
    await fill(form, model="small")
    await page.keyboard.press("Enter")
    await lab.wait_output(0, "return n + 1")
    assert await lab.page.locator(".rf-setup").count() == 0
    assert "No model is configured" not in await lab.outputs_text(0)
    assert {one.headers["authorization"] for one in model.requests} == {f"Bearer {SECRET}"}
    await lab.command("docmanager:save")
    assert SECRET not in lab.path.read_text()
    assert settings() == {"model": "small", "server": model.base_url, "critic": ""}
    # A new kernel starts with what the page has kept.
    before = len(model.requests)
    await lab.restart_kernel()
    await lab.run_and_wait(1)
    await lab.panel('[data-action="accept"]').wait_for()
    assert model.requests[before].body["model"] == "small"
    assert SECRET not in str(model.requests[before].headers)  # no keyring is here


async def test_the_form_stands_below_a_cell_from_the_palette_and_looks_at_it(lab: Lab) -> None:
    page = await lab.open([CODE, "last = 1"], env=NO_MODEL, own_window=True)
    await lab.select(0)
    await lab.command("apputils:activate-command-palette")
    await page.keyboard.type("set up a model")
    await page.keyboard.press("Enter")
    await page.locator(f"{LINE} [name=key]").wait_for()
    await page.locator(f"{LINE} [name=key]").press("Escape")
    await page.locator(LINE).wait_for(state="detached")
    await lab.command("ipyrefine:set-up")
    await page.locator(f"{LINE} [data-step=look]").click()
    await lab.wait_output(1, "42")
    assert await page.locator(LINE).count() == 0
    assert len(await lab.cell_sources()) == 3


@pytest.mark.parametrize("place", ["lab", "tree"])
async def test_the_settings_page_reaches_the_kernel_where_nothing_else_is_configured(
    lab: Lab, model: ScriptedServer, place: str
) -> None:
    page = await lab.open(
        [TASK, "%config Refine.judge = 'mine'", TASK], env=NO_MODEL, own_window=True
    )
    if place == "tree":
        page = await page.context.new_page()
        await page.goto(f"{lab.server.url}/tree?token={lab.server.token}")
    await page.wait_for_function("window.jupyterapp?.commands?.hasCommand('settingeditor:open')")
    await page.evaluate(
        "window.jupyterapp.commands.execute('settingeditor:open', {query: 'Refine'})"
    )
    field = '[id="jp-SettingsEditor-ipyrefine:cells_{}"]'
    for name, value in (("model", "small"), ("critic", "large"), ("revisions", "0")):
        await page.locator(field.format(name)).fill(value)
    await page.locator(field.format("server")).fill(model.base_url)
    await page.wait_for_timeout(2500)  # the editor keeps what is typed a second later
    await lab.open_again()
    await lab.run_and_wait(0)
    await lab.wait_output(0, "return n + 1")
    assert model.requests[-1].body["model"] == "small"
    await lab.run_and_wait(1)
    await lab.run_and_wait(2)
    magics = "get_ipython().magics_manager.registry['Refine']"
    await lab.set_source(2, f"print({magics}.judge, {magics}.model, {magics}.set)")
    await lab.run_and_wait(2)
    await lab.wait_output(2, "mine small {'max_revisions': 0}")
