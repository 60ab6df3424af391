"""Steering a run with the panel's buttons, while its cell runs, after it and from a new page."""

import threading
import time
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
    await lab.wait_output(1, "The text is in a new cell below.")


async def test_a_run_whose_tab_is_closed_goes_on_and_its_best_text_is_found_again(
    lab: Lab, model: ScriptedServer
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(body: dict[str, Any]) -> str:
        if LATER in reply(body):
            asked.set()
            go_on.wait(60)
        return reply(body)

    model.default = answer
    use = "s = Stack(); s.push(2); s.push(1); (refined_run.stop_reason.value, s.getMin())"
    after = ("%refine show", "%refine accept insert", use)
    page = await lab.start(model, REFINE, *after, wait=False)
    try:
        await lab.panel('[data-action="accept"]').wait_for()
        assert asked.wait(10)
        await page.close()
        model.left.clear()
    finally:
        go_on.set()
    await lab.open_again()
    assert not model.left.is_set(), "the run was given up with the tab"
    await lab.run_and_wait(2)
    assert "min(self.items)" in await lab.outputs_text(2)
    await lab.run_and_wait(3)
    await lab.wait_cells(6)
    await lab.run_and_wait(4)
    await lab.run_and_wait(5)
    assert "('accepted', 1)" in await lab.outputs_text(5)


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
    await lab.press("continue")
    await stop.wait_for()
    await lab.press("accept")  # the first text will do; the loop ends with it
    await lab.wait_cells(4)
    assert "class Stack" in (await lab.cell_sources())[2]
    await lab.run_and_wait(2)
    # The small model may add example calls of its own that fail; the class is there all the same.
    await lab.run_and_wait(3)
    assert "accepted Stack" in await lab.outputs_text(3)
