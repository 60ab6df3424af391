"""`ipyrefine.Panel` in a box of the notebook's own: seen, and hands on what is accepted."""

from typing import Any

from kit import READY
from lab_driver import APPS, App, Lab
from openai_server import ScriptedServer

PAGE = """import ipywidgets as widgets
import ipyrefine

result = widgets.Textarea(description="Taken")

def take(text):
    result.value = text

panel = ipyrefine.Panel("Write inc(n).", profile="code", on_accept=take, journal=False)
panel.start()
widgets.VBox([widgets.HTML("<b>My page</b>"), panel, result])"""


def reply(body: dict[str, Any]) -> str:
    if '\\"ready\\"' in str(body) or '"ready"' in str(body["messages"]):
        return READY
    return "```python\ndef inc(n):\n    return n + 1\n```"


@APPS
async def test_it_stands_among_other_widgets_and_takes_clicks(
    lab: Lab, app: App, model: ScriptedServer
) -> None:
    await lab.open([PAGE, "result.value"], app=app, model=model)
    await lab.run(0)
    await lab.panel(".rf-badge", "NOTHING FOUND").wait_for()
    assert await lab.page.get_by_text("My page", exact=True).is_visible()
    await lab.wait_idle()
    await lab.press("accept")
    await lab.wait_for(
        "[...document.querySelectorAll('.jp-OutputArea textarea')]"
        ".some(one => one.value.startsWith('def inc'))"
    )
    await lab.run_and_wait(1)
    await lab.wait_output(1, "def inc(n)")
