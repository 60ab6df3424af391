"""What a decided run leaves in the notebook: one line."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from judging import is_critic
from kit import READY
from lab_driver import APPS, App, Lab
from openai_server import ScriptedServer

CELL = """%%refine -n 2
Write last(xs), which returns the last item of a list, and None for an empty one.

>>> last([1, 2])
2
"""
WRONG = "```python\ndef last(xs):\n    return xs[-1]\n```"


@pytest.fixture
def let_go(model: ScriptedServer) -> Iterator[None]:
    """Have critics wait until the test is over."""
    go_on = threading.Event()

    def reply(body: dict[str, Any]) -> str:
        if is_critic(body):
            go_on.wait(60)
            return READY
        return WRONG

    model.default = reply
    yield
    go_on.set()


@APPS
@pytest.mark.usefixtures("let_go")
async def test_accept_ends_the_reading_and_the_record_opens_in_place_and_can_be_removed(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    await lab.start(model, CELL, "1 + 1", wait=False, height=700, app=app)
    await lab.panel(".rf-basis", "not read yet").wait_for()
    await lab.press("accept")
    await lab.wait_closed()
    await lab.wait_idle()
    await lab.wait_cells(4)
    await lab.wait_output(1, "accepted before it had a verdict")
    record = lab.page.locator(".rf-record")
    await record.wait_for()
    await lab.wait_for(  # it is drawn anew as its reading ends
        "document.querySelector('.rf-record')?.getBoundingClientRect().height < 60"
    )
    await lab.wait_output(1, "1 of 1 examples hold")
    assert "return xs[-1]" not in await lab.outputs_text(1)
    await record.locator("summary").first.click()
    await lab.wait_output(1, "return xs[-1]")
    await record.locator(".rf-remove summary").click()
    await record.get_by_role("button", name="Remove this record").click()
    await lab.wait_for("!document.querySelector('.rf-record')")
    assert await lab.outputs_text(1) == ""
    assert len(await lab.cell_sources()) == 4
