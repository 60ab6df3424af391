"""What a text gives, confirmed and refuted by mouse and by keyboard in JupyterLab and Notebook."""

from typing import Any

from lab_driver import APPS, App, Lab
from openai_server import ScriptedServer

CELL = """%%refine -n 1 --critique never
Write median(xs), the middle of the sorted items; of an even number, the mean of the two.

>>> median([3, 1, 2])
2
>>> median([5])
5
"""
LOWER = "def median(xs):\n    xs = sorted(xs)\n    return xs[(len(xs) - 1) // 2]"
MEAN = """def median(xs):
    xs = sorted(xs)
    n = len(xs)
    return (xs[(n - 1) // 2] + xs[n // 2]) / 2"""
# Clicks a row's button and returns whether it looks taken at once, whether the kernel answered, and
# by how much the panel's height changed.
CLICK = """
const root = document.querySelector('.rf-panel'), row = root.querySelectorAll('.rf-res')[arg[0]];
const height = root.offsetHeight, before = performance.now();
row.querySelector(arg[1]).click();
const taken = Boolean(row.querySelector('.rf-sent'));
while (!row.querySelector(arg[2]) && performance.now() < before + 20000)
  await new Promise(requestAnimationFrame);
return [taken, Boolean(row.querySelector(arg[2])), root.offsetHeight - height];
"""


def reply(body: dict[str, Any]) -> str:
    """Write the lower of two middles; once a result is refuted, their mean."""
    asked = body["messages"][-1]["content"]
    if "Here is the text." in asked:
        return f"f1: mean\n```python\n{MEAN}\n```"
    return f"```python\n{LOWER}\n```"


@APPS
async def test_a_result_is_confirmed_taken_back_and_another_refuted_until_the_text_gives_it(
    lab: Lab, model: ScriptedServer, app: App
) -> None:
    await lab.start(model, CELL, "1 + 1", app=app, width=1000, height=1100)
    await lab.panel(".rf-res").wait_for()
    rows = lab.page.locator(".rf-panel .rf-res")
    calls = [
        await rows.nth(n).locator("code").first.inner_text() for n in range(await rows.count())
    ]
    wrong, right = calls.index("median([3, 1, 2, 3])"), calls.index("median([])")
    assert [await rows.nth(n).is_visible() for n in range(len(calls))].count(True) == 2

    # By mouse.
    for button, then in ((".rf-yes", ".rf-said"), (".rf-said", ".rf-yes")):
        taken, answered, grown = await lab.evaluate(CLICK, [right, button, then])
        assert (taken, answered, grown) == (True, True, 0), f"{button}: nothing below it moves"

    # By keyboard.
    await rows.nth(right).focus()
    await lab.page.keyboard.press("y")
    await rows.nth(right).locator(".rf-said").wait_for()
    await rows.nth(wrong).focus()
    await lab.page.keyboard.press("n")
    await lab.page.keyboard.type("2.5")
    await lab.page.keyboard.press("Enter")
    await lab.panel(".rf-step", "Revision 1").wait_for()
    await lab.wait_verdict("PASS")
    assert await lab.page.locator(".rf-panel .rf-said.rf-good").count() == 2
