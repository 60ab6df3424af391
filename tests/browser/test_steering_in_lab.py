"""Steering a run with the panel's buttons, while its cell runs and after it."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from lab_driver import Lab
from openai_server import Answer, ScriptedServer
from stack_task import LINEAR, STACK, kernel, reply

REFINE = f"%%refine --check examples -n 2\n{STACK}"
CELLS = ["%load_ext ipyrefine", REFINE, "last = 1"]
APPS = pytest.mark.parametrize("app", ["lab", "notebook"])
App = Literal["lab", "notebook"]


@pytest.fixture
def quick() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as server:
        yield server


@pytest.fixture
def slow() -> Iterator[ScriptedServer]:
    """A server that takes about a minute to write a revision."""

    def answer(body: dict[str, Any]) -> Answer:
        return Answer(reply(body), chunk=2, delay=0.0 if reply(body) is LINEAR else 0.25)

    with ScriptedServer(answer) as server:
        yield server


async def start(lab: Lab, server: ScriptedServer, app: App, *, wait: bool) -> None:
    await lab.open(CELLS, env=kernel(server), app=app, height=1400)
    await lab.run_and_wait(0)
    await (lab.run_and_wait(1) if wait else lab.run(1))


async def is_running(lab: Lab) -> bool:
    return await lab.evaluate(
        "return panel.sessionContext.session.kernel.status === 'busy'"
        " || panel.content.widgets[1].model.executionState === 'running';"
    )


@APPS
async def test_stop_ends_a_cell_that_is_streaming_and_keeps_the_best(
    lab: Lab, slow: ScriptedServer, app: App
) -> None:
    await start(lab, slow, app, wait=False)
    await lab.wait_output(1, "compare with the least")  # streams while the cell runs
    assert await is_running(lab)
    slow.left.clear()
    await lab.press("stop")
    await lab.wait_output(1, "You stopped it.")
    await lab.wait_idle()
    assert slow.left.wait(5), "the server still writes to nobody"
    assert "NEEDS IMPROVEMENT" in await lab.outputs_text(1)


@APPS
async def test_accept_while_the_cell_runs_takes_the_best_text_at_once(
    lab: Lab, slow: ScriptedServer, app: App
) -> None:
    await start(lab, slow, app, wait=False)
    await lab.wait_output(1, "compare with the least")
    await lab.press("accept")
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")
    await lab.wait_idle()
    assert (await lab.cell_sources())[2] == LINEAR.split("python\n")[1].removesuffix("\n```")
    await lab.wait_output(1, "The text is in a new cell below.")


async def test_guidance_reaches_the_writer_when_the_run_is_continued(
    lab: Lab, quick: ScriptedServer
) -> None:
    await start(lab, quick, "lab", wait=True)
    asked = len(quick.requests)
    await lab.panel('[data-focus="words"]').fill("Say min instead of least.")
    await lab.press("continue")
    await lab.panel(".rf-step", "Revision 2").wait_for()
    await lab.wait_idle()
    await lab.unfold("history")
    await lab.wait_output(1, "You allowed 1 more revision: Say min instead of least.")
    prompts = [body["messages"][-1]["content"] for body in quick.bodies[asked:]]
    assert any("Say min instead of least." in prompt for prompt in prompts)


async def test_a_passed_text_is_marked_as_needs_work_and_a_failed_one_as_pass(
    lab: Lab, quick: ScriptedServer
) -> None:
    await start(lab, quick, "lab", wait=True)
    await lab.wait_verdict("PASS")
    await lab.press("needs-work")
    field = lab.panel('[name="words"]:focus')
    await field.wait_for()
    await field.fill("pop must not fail on empty")
    await field.press("Enter")
    await lab.panel(".rf-step", "Revision 2").wait_for()
    await lab.wait_idle()
    await lab.press("show", iteration="0")
    await lab.panel(".rf-badge", "NEEDS IMPROVEMENT").wait_for()
    await lab.press("pass", menu="More")
    await lab.panel(".rf-badge", "PASS (yours)").wait_for()
    await lab.wait_output(1, "marked by you, though examples failed")


async def test_running_the_cell_again_closes_the_panel_it_had(
    lab: Lab, quick: ScriptedServer
) -> None:
    await start(lab, quick, "lab", wait=True)
    await lab.run_and_wait(1)
    await lab.wait_verdict("PASS")
    count = "len(__import__('ipywidgets').widgets.widget._instances)"
    await lab.set_source(2, f"print({count})")
    await lab.run_and_wait(2)
    first = int(await lab.outputs_text(2))
    for _ in range(2):
        await lab.run_and_wait(1)
    await lab.run_and_wait(2)
    assert int(await lab.outputs_text(2)) == first
