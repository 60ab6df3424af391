"""The chip that says what a cell was taken for, and starts it again as the other kind of text."""

from typing import Any

from judging import is_critic
from kit import READY
from lab_driver import Lab
from openai_server import Answer, ScriptedServer

TASK = "%%refine -n 1\nHow the museum can win more visitors on weekdays: three ideas"
CODE = "```python\n" + "ideas = ['late opening', 'school visits', 'concerts']\n" * 30 + "```"
PROSE = (
    "<text>\nOpen late on Tuesdays, invite schools in the morning, and play music at noon.\n</text>"
)


def reply(body: dict[str, Any]) -> Answer:
    if is_critic(body):
        return Answer(READY)
    if "```python" in str(body["messages"]):
        return Answer(CODE, chunk=2, delay=0.25)  # takes minutes
    return Answer(PROSE)


async def test_one_press_of_the_chip_stops_the_run_and_starts_it_as_prose_in_the_same_cell(
    lab: Lab, model: ScriptedServer
) -> None:
    ended = "refined_run.task.form, refined_run.stop_reason.value"
    await lab.start(model, TASK, ended, wait=False, width=800)
    await lab.wait_output(1, "late opening")
    chip = lab.panel('[data-action="switch"]')
    assert await chip.inner_text() == "code ▾"
    await lab.run(2)  # waits behind the cell that runs
    await chip.focus()
    await lab.page.keyboard.press("Enter")
    await lab.panel('[data-action="switch"]', "prose ▾").wait_for()
    await lab.wait_verdict("NOTHING FOUND")
    await lab.wait_output(2, "('prose', 'passed')")
    assert "Open late on Tuesdays" in await lab.outputs_text(1)
    assert "late opening" not in await lab.outputs_text(1)
    assert await lab.page.locator(".rf-panel").count() == 1
