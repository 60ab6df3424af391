"""What a decided run leaves in the notebook: one line, which tells what is found afterwards."""

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
RIGHT = "f1: None\n```python\ndef last(xs):\n    return xs[-1] if xs else None\n```"
FAILING = '''```python
def test_of_an_empty_list():
    """None for an empty one"""
    assert last([]) is None
```
{"findings": [], "ready": false, "because": "It fails on an empty list."}'''


class Reader:
    """A model whose first reading waits until a test lets it go on."""

    def __init__(self) -> None:
        self.reading, self.go_on, self.wrote = FAILING, threading.Event(), 0

    def __call__(self, body: dict[str, Any]) -> str:
        if is_critic(body):
            self.go_on.wait(60)
            return self.reading if self.wrote < 2 else READY
        self.wrote += 1
        return WRONG if self.wrote == 1 else RIGHT


@pytest.fixture
def reader(model: ScriptedServer) -> Iterator[Reader]:
    model.default = Reader()
    yield model.default
    model.default.go_on.set()


async def accept_while_it_is_read(lab: Lab, model: ScriptedServer, **options: Any) -> None:
    await lab.start(model, CELL, "1 + 1", wait=False, height=700, **options)
    await lab.panel(".rf-basis", "not read yet").wait_for()
    await lab.press("accept")
    await lab.panel(".rf-receipt", "is reading it").wait_for()
    await lab.wait_idle()
    await lab.wait_cells(4)


RECEIPT = "document.querySelector('.rf-receipt').getBoundingClientRect()"


@pytest.mark.parametrize(("app", "width"), [("lab", 1280), ("notebook", 800)])
async def test_a_test_that_the_accepted_text_fails_turns_the_receipt_amber(
    lab: Lab, model: ScriptedServer, reader: Reader, app: App, width: int
) -> None:
    await accept_while_it_is_read(lab, model, app=app, width=width)
    await lab.run_and_wait(3)  # the kernel is free
    await lab.evaluate(f"const r = {RECEIPT}; window.before = [r.top, r.height];")
    reader.go_on.set()
    await lab.panel(".rf-receipt", "FAILS A TEST").wait_for()
    await lab.panel(".rf-receipt", "last([])").wait_for()
    moved = await lab.evaluate(
        f"const r = {RECEIPT}; return [r.top - before[0], r.height - before[1]];"
    )
    assert max(map(abs, moved)) < 1, moved
    await lab.panel('.rf-receipt [data-action="continue"]').click()
    await lab.wait_verdict("PASS")
    assert "if xs" not in (await lab.cell_sources())[2]
    await lab.press("accept")
    await lab.wait_closed()
    sources = await lab.cell_sources()
    assert len(sources) == 4
    assert sources[2].endswith("return xs[-1] if xs else None")


@APPS
async def test_closing_ends_the_reading_and_the_record_opens_in_place_and_can_be_removed(
    lab: Lab, model: ScriptedServer, reader: Reader, app: App
) -> None:
    await accept_while_it_is_read(lab, model, app=app)
    await lab.panel('.rf-receipt [data-action="close"]').click()
    await lab.wait_closed()
    await lab.wait_output(1, "not read")
    record = lab.page.locator(".rf-record")
    await record.wait_for()
    assert (await record.bounding_box())["height"] < 60
    await lab.wait_output(1, "1 of 1 examples hold · accepted")
    assert "return xs[-1]" not in await lab.outputs_text(1)
    await record.locator("summary").first.click()
    await lab.wait_output(1, "return xs[-1]")
    await record.locator(".rf-remove summary").click()
    await record.get_by_role("button", name="Remove this record").click()
    await lab.wait_for("!document.querySelector('.rf-record')")
    assert await lab.outputs_text(1) == ""
    assert len(await lab.cell_sources()) == 4


async def test_removing_the_record_of_a_refined_cell_takes_the_cell_made_for_it(
    lab: Lab, model: ScriptedServer
) -> None:
    model.default = lambda body: READY if is_critic(body) else WRONG
    await lab.open(["def last(xs):\n    return xs[0]", "1 + 1"], model=model)
    await lab.press_stars(0)
    await lab.ask()
    await lab.panel('[data-action="accept"]').wait_for()
    await lab.wait_idle()
    await lab.press("accept")
    await lab.wait_closed()
    await lab.page.locator(".rf-record .rf-remove summary").click()
    await lab.page.get_by_role("button", name="Remove this record").click()
    await lab.wait_for("panel.content.widgets.length === 2")
    assert (await lab.cell_sources())[1] == "1 + 1"
