"""`%%refine` in JupyterLab: the panel, its buttons, and the text's way into a cell."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from lab_driver import Lab
from openai_server import Answer, ScriptedServer
from stack_task import STACK, kernel, reply

OUTPUT = Path(__file__).parents[1] / "output"
REFINE = f"%%refine --check examples -n 2\n{STACK}"


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda body: Answer(reply(body))) as server:
        yield server


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 620)], ids=str
)
async def test_a_wrong_draft_is_mended_and_accepted_into_a_cell_that_runs(
    lab: Lab, scripted: ScriptedServer, theme: Literal["light", "dark"], width: int
) -> None:
    await lab.open(
        ["'the page loads the extension'", REFINE, "last = 1"],
        env=kernel(scripted), theme=theme, width=width, height=1400,
    )  # fmt: skip
    await lab.run_and_wait(0)
    await lab.run_and_wait(1)
    await lab.wait_verdict("PASS")
    await lab.screenshot(OUTPUT / f"panel-{theme}-{width}.png")
    await lab.press("accept")
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")
    await lab.screenshot(OUTPUT / f"accepted-{theme}-{width}.png")
    sources = await lab.cell_sources()
    assert "least = min" in sources[2]
    await lab.set_source(3, "s = Stack(); s.push(2); s.push(1); print('least', s.getMin())")
    await lab.run_and_wait(2)
    await lab.run_and_wait(3)
    assert "least 1" in await lab.outputs_text(3)


@pytest.mark.model
async def test_the_embedded_model_refines_and_stop_responds_within_a_second(lab: Lab) -> None:
    await lab.open(
        ["%load_ext ipyrefine", REFINE, "print(refined_run.stop_reason.value, Stack.__name__)"],
        env={"IPYREFINE_MODEL": "qwen2.5-coder-0.5b"},
        height=1400,
    )
    await lab.run_and_wait(0)
    await lab.run(1)
    await lab.wait_output(1, "class Stack")  # it streams, or is there already
    stop = lab.panel('[data-action="stop"]')
    began = time.monotonic()
    if await stop.count():
        await stop.click()
        await lab.wait_idle()
        print(f"stopped after {time.monotonic() - began:.2f} s")
        assert time.monotonic() - began < 5  # the claim is one second; a shared machine gets five
    await lab.wait_idle()
    await lab.screenshot(OUTPUT / "stopped.png")
    await lab.press("continue")
    await stop.wait_for()
    await lab.press("accept")  # the first text will do; the loop ends with it
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")
    assert "class Stack" in (await lab.cell_sources())[2]
    await lab.run_and_wait(2)
    # The small model may add example calls of its own that fail; the class is there all the same.
    await lab.run_and_wait(3)
    assert "accepted Stack" in await lab.outputs_text(3)
