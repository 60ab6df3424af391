"""What a person sees of the panel at once, in both applications, sizes and themes."""

from typing import Any

import pytest
from judging import is_critic
from kit import READY
from lab_driver import APPS, App, Lab
from openai_server import Answer, ScriptedServer

TASK = """%%refine -n 2 --critique never
Write median(xs): for an even number of items the mean of the two middle ones, and for none None.

>>> median([3, 1, 2])
2
>>> median([1, 2])
1.5
"""
WRONG = '''```python
def median(xs):
    """Return the median of a list of numbers."""
    xs = sorted(xs)
    if not xs:
        return None
    middle = len(xs) // 2
    return xs[middle]


def spread(xs):
    """Return the distance of the extremes."""
    return max(xs) - min(xs)


def mean(xs):
    """Return the mean."""
    return sum(xs) / len(xs)


def describe(xs):
    """Return what there is to say of a list."""
    return {
        "median": median(xs),
        "mean": mean(xs),
        "spread": spread(xs),
    }
```'''
RIGHT = "f1: the mean of both\n" + WRONG.replace(
    "    return xs[middle]\n",
    "    if len(xs) % 2:\n        return xs[middle]\n"
    "    return (xs[middle - 1] + xs[middle]) / 2\n",
)
# Keeps, of every frame, where the top things of a panel that has a text to accept end below the
# output's top, how high the panel is while a revision is made, and where its text begins.
WATCH = """
window.lowest = []; window.heights = []; window.tops = [];
const look = () => {
  const root = document.querySelector('.rf-panel');
  const at = (s) => root?.querySelector(s)?.getBoundingClientRect();
  const box = root?.getBoundingClientRect();
  if (at('[data-action=accept]'))
    for (const one of ['.rf-badge', '.rf-basis', '[data-action=accept]'])
      lowest.push(at(one).bottom - box.top);
  if (at('.rf-busy-pill') && root.querySelectorAll('.rf-step').length > 1)
    heights.push(Math.round(box.height));
  if (root?.querySelector('.rf-text')?.innerText.trim())
    tops.push(Math.round(at('.rf-text').top));
  window.frame = requestAnimationFrame(look);
};
cancelAnimationFrame(window.frame || 0);
look();
"""


def reply(body: dict[str, Any]) -> Answer:
    asked = body["messages"][-1]["content"]
    if is_critic(body):
        return Answer(READY)
    return Answer(RIGHT if "Here is the text." in asked else WRONG, chunk=40, delay=0.02)


@APPS
@pytest.mark.parametrize("width", [1440, 800])
async def test_verdict_basis_and_accept_come_first_and_stay_in_sight_at_any_width(
    lab: Lab, model: ScriptedServer, app: App, width: int
) -> None:
    cells = ["%load_ext ipyrefine", TASK, "1 + 1"]
    await lab.open(cells, model=model, app=app, width=width)
    await lab.run_and_wait(0)
    await lab.evaluate(WATCH)
    await lab.run_and_wait(1)
    await lab.wait_verdict("PASS")
    await lab.panel(".rf-basis", "2 of 2 examples hold").wait_for()
    lowest = await lab.evaluate("return window.lowest;")
    assert lowest
    assert max(lowest) <= 120
    box = await lab.panel().bounding_box()
    # A text of 30 lines, which is shown whole, five results, and lines that wrap.
    assert box["height"] <= (900 if width > 1000 else 1050)
    for name in ("More ways to accept", "More"):
        await lab.panel(f'.rf-menu > button[aria-label="{name}"]').click()
        await lab.assert_accessible()
    await lab.wait_for("!document.getElementById('jupyterlab-splash')")
    hidden = await lab.evaluate(
        "const items = [...document.querySelectorAll('.rf-menu[open] li button')];"
        "return items.map((one) => { const r = one.getBoundingClientRect();"
        " const at = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);"
        " return at === one ? '' : one.innerText; }).filter(Boolean);"
    )
    assert hidden == []
    await lab.page.keyboard.press("Escape")
    await lab.unfold("details")
    await lab.panel(".rf-guide").evaluate("(foot) => foot.scrollIntoView({block: 'end'})")
    top = "const top = document.querySelector('.rf-panel .rf-top').getBoundingClientRect();"
    await lab.wait_for(
        "(() => { const box = panel.node.getBoundingClientRect();"
        "const first = document.querySelector('.rf-panel').getBoundingClientRect();"
        f"{top} const at = document.elementFromPoint(top.x + 20, top.y + top.height / 2);"
        "return first.top < box.top && top.top >= box.top - 1 && at.closest('.rf-top'); })()"
    )
    for form in ("edit", "finding", "criteria", "keys"):
        await lab.press("open", menu="More", name=form)
        await lab.panel(f'.rf-sheet[data-form="{form}"]').wait_for()
