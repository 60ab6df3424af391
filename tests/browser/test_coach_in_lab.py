"""A student predicts results by keyboard, in JupyterLab and Notebook."""

import json

import pytest
from lab_driver import App, Lab
from openai_server import ScriptedServer

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


def reply(_: object) -> str:
    return CRITIQUE


@pytest.mark.parametrize(("app", "width"), [("lab", 1280), ("notebook", 800)])
async def test_a_student_types_what_comes_of_each_input_before_it_is_shown(
    lab: Lab, model: ScriptedServer, app: App, width: int
) -> None:
    await lab.start(model, CELL, wait=False, app=app, width=width)
    await lab.wait_output(1, "Your code misses the task")
    shown = await lab.outputs_text(1)
    assert "IndexError" not in shown
    assert not await lab.page.locator(".ipyrefine-gone").count(), "the task is no change to take"
    for answer, then in (("IndexError", "median([16, 17])"), ("16", "it gives 17")):
        field = lab.page.locator(".rf-panel [name=result]")
        assert await field.input_value() == "", "the last answer is not in the next field"
        await field.fill(answer)
        await lab.page.keyboard.press("Enter")
        await lab.wait_output(1, then)
    await lab.wait_output(1, "Change your code, and run the cell again.")
    await lab.page.get_by_role("button", name="Close").click()
    await lab.wait_output(1, "You predicted 16; it gives 17.")
