"""A server that fails or falls silent: the panel stays, with what was written and a way on."""

from pathlib import Path
from typing import Any

import pytest
from lab_driver import Lab
from openai_server import Answer, Failure, ScriptedServer
from stack_task import kernel

OUTPUT = Path(__file__).parents[1] / "output"
CELL = "%%refine -n 1 --critique never\nWrite inc(n), which adds one."
WHOLE = "```python\ndef inc(n):\n    return n + 1\n```"


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 800)])
async def test_a_failed_provider_leaves_the_panel_with_its_sentence_once_and_try_again(
    lab: Lab, theme: Any, width: int
) -> None:
    with ScriptedServer(lambda _: WHOLE) as server:
        server.queue.append(Failure(401, {"error": {"message": "Bad key."}}))
        await lab.open(
            ["%load_ext ipyrefine", CELL, "1 + 1"],
            env=kernel(server), theme=theme, width=width, height=600,
        )  # fmt: skip
        await lab.run_and_wait(0)
        await lab.run_and_wait(1)
        await lab.panel(".rf-badge", "STOPPED").wait_for()
        await lab.screenshot(OUTPUT / f"failed-{theme}.png")
        shown = await lab.outputs_text(1)
        assert shown.count("Bad key") <= 1
        assert "Traceback" not in shown
        await lab.panel("button", "Try again").click()
        await lab.wait_output(1, "return n + 1")
        await lab.panel('[data-action="accept"]').wait_for()


async def test_stop_keeps_what_was_written(lab: Lab) -> None:
    with ScriptedServer(lambda _: Answer(WHOLE, chunk=10, delay=0.1, stall_after=3)) as server:
        await lab.open(["%load_ext ipyrefine", CELL], env=kernel(server), height=600)
        await lab.run_and_wait(0)
        await lab.run(1)
        await lab.panel("[data-stream]", "def inc").wait_for()
        await lab.press("stop")
        await lab.panel(".rf-badge", "STOPPED").wait_for()
        await lab.wait_output(1, "What was written so far is kept.")
        await lab.wait_output(1, "def inc(n)")
        await lab.wait_idle()
        await lab.screenshot(OUTPUT / "stopped-in-the-middle.png")


async def test_why_is_answered_below_the_text_and_revises_nothing(lab: Lab) -> None:
    def answer(body: dict[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        return "Because the task says one." if "Why not two?" in asked else WHOLE

    with ScriptedServer(answer) as server:
        page = await lab.open(["%load_ext ipyrefine", CELL], env=kernel(server), height=600)
        await lab.run_and_wait(0)
        await lab.run_and_wait(1)
        await lab.panel('[data-action="accept"]').wait_for()
        await lab.press("open", menu="More", name="why")
        await lab.panel('[name="question"]:focus').wait_for()
        await page.keyboard.type("Why not two?")
        await page.keyboard.press("Enter")
        await lab.wait_output(1, "Because the task says one.")
        await lab.screenshot(OUTPUT / "why.png")
        assert len(server.requests) == 2
        assert "Waiting for the answer" not in await lab.outputs_text(1)
        await lab.press("accept")
        await lab.wait_for("panel.content.model.cells.length === 3")
