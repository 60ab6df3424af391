"""What the stars leave in a notebook: an ordinary cell, which keeps its record."""

import json

from lab_driver import APPS, App, Lab
from openai_server import ScriptedServer
from test_refine_from_cells_in_lab import (
    RIGHT,
    WRONG,
    accept,
    improve,
    reply,  # noqa: F401 - the model's
)

import ipyrefine


@APPS
async def test_saved_no_command_cell_stays_and_the_record_is_shown_from_the_cell(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    page = await lab.open([WRONG, "last = 1"], app=app, model=model)
    await improve(lab, 0)
    await lab.wait_output(1, "NOTHING FOUND")
    await accept(lab)
    await lab.wait_source(0, RIGHT)
    await lab.wait_idle()
    await lab.run_and_wait(0)
    await lab.command("docmanager:save")
    await lab.wait_cells(2)
    saved = json.loads(lab.path.read_text("utf-8"))
    assert ["".join(one["source"]) for one in saved["cells"]] == [RIGHT, "last = 1"]
    assert [one.text for one in ipyrefine.load(lab.path)] == [RIGHT]
    await lab.select(0)
    await lab.command("ipyrefine:record")
    kept = page.locator(".ipyrefine-kept")
    await kept.get_by_text("accepted").first.wait_for()
    await lab.command("notebook:undo-cell-action")
    await lab.wait_source(0, WRONG)
    await lab.command("ipyrefine:record")
    await lab.command("ipyrefine:record")
    await kept.get_by_text("The cell holds another text now.").wait_for()
    await kept.get_by_role("button", name="Keep the record as a cell").click()
    await lab.wait_cells(3)
    note = page.locator(".jp-MarkdownCell .rf-record")
    await note.get_by_text("accepted").first.wait_for()
    assert (await note.bounding_box())["height"] < 60
    assert len(await lab.cell_sources()) == 3
