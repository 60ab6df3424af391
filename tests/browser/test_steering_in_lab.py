"""Steering a run with the panel's buttons while its cell runs and after it."""

from typing import Any

import pytest
from judging import is_critic
from kit import READY
from lab_driver import APPS, App, Lab
from openai_server import Answer, ScriptedServer

REFINE = """%%refine --check examples -n 2
Implement a Stack with push(x), pop() and getMin(), all O(1).

>>> s = Stack(); s.push(2); s.push(1); s.push(3)
>>> s.getMin()
1
>>> s.pop()
3
>>> s.pop()
1
>>> s.getMin()
2
"""
WRONG = """class Stack:
    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()

    def getMin(self):
        return max(self.items)"""
RIGHT = WRONG.replace("max(", "min(")
LATER = "f1: compare with the least"


def reply(body: dict[str, Any]) -> str:
    """Answer as a model would that mends its mistake once it is shown the failing example."""
    if is_critic(body):
        return READY
    if "Here is the text." in body["messages"][-1]["content"]:
        return f"{LATER}\n```python\n{RIGHT}\n```"
    return f"Plan: keep the items in a list.\n```python\n{WRONG}\n```"


@pytest.fixture
def slow(model: ScriptedServer) -> ScriptedServer:
    """A server that takes about a minute to write a revision."""

    def answer(body: dict[str, Any]) -> Answer:
        return Answer(reply(body), chunk=2, delay=0.25 if LATER in reply(body) else 0.0)

    model.default = answer
    return model


async def is_running(lab: Lab) -> bool:
    return await lab.evaluate(
        "return panel.sessionContext.session.kernel.status === 'busy'"
        " || panel.content.widgets[1].model.executionState === 'running';"
    )


@APPS
async def test_stop_ends_a_cell_that_streams_and_accept_takes_the_best_text_at_once(
    lab: Lab, slow: ScriptedServer, app: App
) -> None:
    await lab.start(slow, REFINE, "last = 1", height=1400, app=app, wait=False)
    await lab.wait_output(1, "compare with the least")  # streams while the cell runs
    assert await is_running(lab)
    slow.left.clear()
    await lab.press("stop")
    await lab.wait_output(1, "You stopped it.")
    await lab.wait_idle()
    assert slow.left.wait(5), "the server still writes to nobody"
    assert "NEEDS IMPROVEMENT" in await lab.outputs_text(1)
    await lab.run(1)
    await lab.panel(".rf-badge", "Revising").wait_for()
    await lab.wait_output(1, "compare with the least")
    await lab.press("accept")
    await lab.wait_cells(4)
    await lab.wait_idle()
    assert (await lab.cell_sources())[2] == WRONG
    await lab.wait_output(1, "The text is in a new cell below")
