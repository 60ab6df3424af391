"""What each draft printed, returned and drew, as a person sees it in JupyterLab."""

from typing import Any

import pytest
from judging import is_critic
from kit import READY
from lab_driver import Lab
from openai_server import Answer, ScriptedServer

FRAME = (
    "import pandas as pd\n"
    "df = pd.DataFrame({'city': ['Oslo', 'Rome', 'Lima'] * 10, 'sales': range(30)})"
)
TASK = "%%refine -p code -n 1\nPlot the mean of `df.sales` for each city."
DRAFT = "```python\nprint(len(df), 'rows')\ndf.groupby('town').sales.mean().plot.bar()\n```"
REVISION = """f1: the column is city
```python
import matplotlib.pyplot as plt
print(len(df), 'rows')
means = df.groupby('city').sales.mean()
means.plot.bar(ylabel='mean sales')
plt.tight_layout()
means
```"""


def reply(body: dict[str, Any]) -> Answer:
    if is_critic(body):
        return Answer(READY.removesuffix("}") + ', "data": {"d1": "for each city"}}')
    return Answer(REVISION if "Here is the text." in body["messages"][-1]["content"] else DRAFT)


async def test_a_table_and_a_figure_stand_beside_what_the_draft_printed(
    lab: Lab, model: ScriptedServer
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    await lab.open(["%load_ext ipyrefine", FRAME, TASK], model=model, height=1000)
    for index in range(3):
        await lab.run_and_wait(index)
    await lab.wait_verdict("NOTHING FOUND")
    columns = lab.page.locator(".rf-panel .rf-outputs > div")
    await columns.nth(1).wait_for()
    assert await columns.count() == 2
    revision, draft = [await columns.nth(n).inner_text() for n in range(2)]
    assert draft.split() == ["Draft", "Printed:", "30", "rows"]
    assert "The answer: a column of 3 values" in revision
    picture = lab.panel(".rf-outputs img")
    await picture.wait_for()
    drawn = await picture.evaluate("(img) => [img.complete, img.naturalWidth, img.offsetWidth]")
    assert drawn[0]
    assert drawn[1] > 300
    assert drawn[2] <= drawn[1]
    boxes = [await columns.nth(n).bounding_box() for n in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    await lab.page.set_viewport_size({"width": 560, "height": 1000})
    stacked = [await columns.nth(n).bounding_box() for n in range(2)]
    assert stacked[0]["x"] == stacked[1]["x"]
    assert stacked[0]["y"] < stacked[1]["y"]
    await lab.page.set_viewport_size({"width": 1280, "height": 1000})
    await lab.press("accept")
    await lab.page.locator(".rf-record summary").first.click()
    record = lab.page.locator(".rf-record .rf-outputs img")
    await record.wait_for()
    assert await record.evaluate("(img) => img.complete && img.naturalWidth > 300")
