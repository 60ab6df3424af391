"""A student predicts results by keyboard, in JupyterLab and Notebook."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from lab_driver import Lab
from openai_server import ScriptedServer
from stack_task import kernel
from test_panel_in_lab import assert_accessible

OUTPUT = Path(__file__).parents[1] / "output"
CELL = """%%refine --coach
Write median(xs): the middle of the sorted list, the mean of the two middle values for an even
number; raises ValueError for an empty list.

def median(xs):
    return sorted(xs)[len(xs) // 2]
"""
TESTS = '''```python
def test_empty():
    """raises ValueError for an empty list"""
    with pytest.raises(ValueError):
        median([])

def test_even():
    """the mean of the two middle values for an even number"""
    assert median([16, 17]) == 16.5
```
'''
CRITIQUE = TESTS + json.dumps({"findings": [], "ready": False, "because": "Even lengths fail."})


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda _: CRITIQUE) as server:
        yield server


@pytest.mark.parametrize(
    ("app", "theme", "width"), [("lab", "light", 1280), ("notebook", "dark", 800)]
)
async def test_a_student_types_what_comes_of_each_input_before_it_is_shown(
    lab: Lab,
    model: ScriptedServer,
    app: Literal["lab", "notebook"],
    theme: Literal["light", "dark"],
    width: int,
) -> None:
    from axe_playwright_python.async_playwright import Axe

    await lab.open(
        ["%load_ext ipyrefine", CELL], env=kernel(model), app=app, theme=theme, width=width
    )
    await lab.run_and_wait(0)
    await lab.run(1)
    await lab.wait_output(1, "Your code misses the task")
    await lab.screenshot(OUTPUT / f"coach-asks-{app}.png")
    shown = await lab.outputs_text(1)
    assert "IndexError" not in shown
    for answer, then in (("IndexError", "median([16, 17])"), ("16", "it gives 17")):
        await lab.page.locator(".rf-panel [name=result]").fill(answer)
        await lab.page.keyboard.press("Enter")
        await lab.wait_output(1, then)
    await lab.wait_output(1, "Change your code, and run the cell again.")
    await lab.screenshot(OUTPUT / f"coach-said-{app}.png")
    await assert_accessible(Axe(), lab)
    await lab.page.get_by_role("button", name="Close").click()
    await lab.wait_output(1, "You predicted 16; it gives 17.")
    await lab.screenshot(OUTPUT / f"coach-record-{app}.png")
