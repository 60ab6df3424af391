"""A server that fails or falls silent: the panel stays, with what was written and a way on."""

from typing import Any

from lab_driver import Lab
from openai_server import Failure, ScriptedServer

CELL = "%%refine -n 1 --critique never\nWrite inc(n), which adds one."
WHOLE = "```python\ndef inc(n):\n    return n + 1\n```"


def reply(body: dict[str, Any]) -> str:
    asked = body["messages"][-1]["content"]
    return "Because the task says one." if "Why not two?" in asked else WHOLE


async def test_a_question_revises_nothing_and_after_a_failure_one_press_tries_again(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await lab.start(model, CELL, "1 + 1", width=800, height=600)
    await lab.panel('[data-action="accept"]').wait_for()
    await lab.panel('textarea[name="words"]').fill("Why not two?")
    await page.keyboard.press("Enter")
    await lab.wait_output(1, "Because the task says one.")
    assert len(model.requests) == 2
    await lab.wait_output(1, "Nothing was revised.")
    assert "Waiting for the answer" not in await lab.outputs_text(1)
    model.then(Failure(401, {"error": {"message": "Bad key."}}))
    await lab.set_source(1, f"{CELL} At once.")
    await lab.run_and_wait(1)
    await lab.panel(".rf-badge", "STOPPED").wait_for()
    shown = await lab.outputs_text(1)
    assert shown.count("Bad key") <= 1
    assert "Traceback" not in shown
    await lab.panel("button", "Try again").click()
    await lab.wait_output(1, "return n + 1")
    await lab.press("accept")
    await lab.wait_cells(4)
