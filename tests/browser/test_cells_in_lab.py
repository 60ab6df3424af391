"""A text put into a cell from a real kernel arrives in JupyterLab and in Notebook 7."""

from lab_driver import APPS, App, Lab

IMPORT = "from ipyrefine.notebook.cell_target import put_text, source_cell_id, source_cell_text"
TEXT = "print('in' + 'serted', 6 * 7)"

# An async cell: the front-end's answer must come while the cell is still running.
WHILE_RUNNING = f"""{IMPORT}
placed = await put_text({TEXT!r}, cell_id=source_cell_id())
print(placed.how, placed.reason or "-")
"""

# A button pressed after the cell's end: the answer must come when no cell is running.
BUTTON = f"""{IMPORT}
import asyncio
import ipywidgets
here, before = source_cell_id(), source_cell_text()
button, said = ipywidgets.Button(description="Accept"), ipywidgets.Label("waiting")
tasks = set()
async def accept():
    placed = await put_text(ARGUMENTS)
    said.value = f"answer: {{placed.how}} {{placed.reason or '-'}}"
def on_click(_):
    task = asyncio.get_running_loop().create_task(accept())
    tasks.add(task)
button.on_click(on_click)
ipywidgets.HBox([button, said])
"""
REPLACE = BUTTON.replace("ARGUMENTS", "'x = 2', cell_id=here, op='replace', expected_source=before")
ONCE = BUTTON.replace("ARGUMENTS", "'x = 1', cell_id=here, op_id='once'")


@APPS
async def test_a_running_cell_inserts_a_cell_that_runs_and_undo_takes_it_back_on_any_kernel(
    lab: Lab, app: App
) -> None:
    await lab.open(["first = 1", WHILE_RUNNING, "last = 1"], app=app, env={"OTHER": "1"})
    await lab.run_and_wait(1)
    await lab.wait_output(1, "inserted -")
    assert await lab.cell_sources() == ["first = 1", WHILE_RUNNING, TEXT, "last = 1"]
    assert await lab.active_index() == 2
    await lab.command("notebook:undo-cell-action")
    assert await lab.cell_sources() == ["first = 1", WHILE_RUNNING, "last = 1"]
    await lab.command("notebook:redo-cell-action")
    assert await lab.outputs_text(2) == ""
    await lab.run_and_wait(2)
    assert await lab.outputs_text(2) == "inserted 42"
    await lab.restart_kernel()
    await lab.run_and_wait(1)
    await lab.wait_cells(5)
    await lab.change_kernel("python3")
    await lab.run_and_wait(1)
    await lab.wait_cells(6)


async def test_protected_repeated_lost_and_odd_texts_each_end_in_one_place(lab: Lab) -> None:
    odd = "s = '''<b>\\ttab \\\\ é 漢 🙂\n\n  {x} $y ''' \n"
    gone = f"{IMPORT}\nprint(await put_text('x = 3', cell_id='gone'))"
    characters = f"{IMPORT}\nprint((await put_text({odd!r}, cell_id=source_cell_id())).how)"
    await lab.open([REPLACE, gone, characters])
    await lab.run_and_wait(0)
    await lab.evaluate("panel.content.model.sharedModel.cells[0].setMetadata('editable', false);")
    await lab.click_button("Accept")
    await lab.wait_output(0, "answer: refused read-only")
    await lab.run_and_wait(1)
    await lab.wait_output(1, "how='inserted'")
    assert "reason='no-cell'" in await lab.outputs_text(1)
    await lab.run_and_wait(3)
    await lab.wait_output(3, "inserted")
    assert await lab.cell_sources() == [REPLACE, gone, "x = 3", characters, odd]
    await lab.evaluate("panel.content.model.sharedModel.cells[0].setMetadata('editable', true);")
    await lab.set_source(0, ONCE)
    await lab.run_and_wait(0)
    for answer in ("answer: inserted -", "answer: already -"):
        await lab.click_button("Accept")
        await lab.wait_output(0, answer)
    assert (await lab.cell_sources())[:3] == [ONCE, "x = 1", gone]


async def test_of_two_notebooks_on_one_kernel_the_one_with_the_cell_gets_the_text(lab: Lab) -> None:
    await lab.open(["a = 1"])
    kernel = await lab.evaluate("return panel.sessionContext.session.kernel.id;")
    await lab.open_beside(["b = 1", WHILE_RUNNING])
    await lab.evaluate("await panel.sessionContext.changeKernel({id: arg});", kernel)
    await lab.run_and_wait(1)
    await lab.wait_output(1, "inserted -")
    assert len(await lab.cell_sources()) == 3
