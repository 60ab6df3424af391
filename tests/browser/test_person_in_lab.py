"""The person in the loop: findings, edits and criteria in JupyterLab, by mouse and by keyboard."""

import json
from typing import Any

import pytest
from judging import is_critic
from lab_driver import App, Lab
from openai_server import ScriptedServer

CELL = "%%refine -n 1 --min-findings 2\nWrite inc(n), which adds one."
WEAK = [
    {"criterion": "clarity", "place": "n + 1", "problem": "The name says little.",
     "fix": "Call it number.", "blocks": False},
    {"criterion": "unclear code", "place": "", "problem": "It has no docstring.",
     "fix": "Add one.", "blocks": True},
]  # fmt: skip
FIRST = "```python\ndef inc(n):\n    return n + 1\n```"
SECOND = 'f2: a docstring\n```python\ndef inc(n):\n    """Add one."""\n    return n + 1\n```'


def reply(body: dict[str, Any]) -> str:
    """Name two weaknesses once; mend the second."""
    asked = body["messages"][-1]["content"]
    if is_critic(body):
        if "What changed" not in asked:
            return json.dumps({"findings": WEAK, "ready": False})
        return '{"findings": [], "fixed": ["f2"], "ready": true, "because": "It has a docstring."}'
    return SECOND if "Here is the text." in asked else FIRST


MORE = '.rf-menu > button[aria-label="More"]'


async def start(lab: Lab, model: ScriptedServer, cell: str = CELL, **options: Any) -> Any:
    page = await lab.start(model, cell, "1 + 1", height=1700, **options)
    await lab.panel('[data-action="continue"]').wait_for()
    return page


async def test_every_control_menu_and_key_works_without_a_mouse(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model, own_window=True)  # no pointer was used in it
    names = set()
    await lab.panel('[data-action="accept"]').focus()
    for _ in range(40):
        seen = await page.evaluate(
            "() => { const e = document.activeElement; if (!e.closest('.rf-panel')) return '';"
            "const s = getComputedStyle(e); return [e.innerText || e.name || e.ariaLabel,"
            "s.outlineStyle !== 'none' || s.boxShadow !== 'none']; }"
        )
        if seen:
            assert seen[1], f"the focus on {seen[0]!r} cannot be seen"
            names.add(seen[0].strip())
        await page.keyboard.press("Tab")
    missing = {"Accept and run", "▾", "Override ▾", "Continue", "⋯", "Act on it", "Dismiss", "Edit",
               "words", "Details"} - names  # fmt: skip
    assert not missing
    # The keys of the panel leave the notebook alone.
    await lab.panel(MORE).focus()
    await page.keyboard.press("?")
    await lab.wait_output(1, "Go to the guidance")
    await page.keyboard.press("Escape")
    await page.keyboard.press(".")
    await lab.panel(".rf-finding:focus", "The name says little.").wait_for()
    await lab.panel(".rf-sheet").wait_for(state="detached")
    await lab.panel(MORE).focus()
    await page.keyboard.press("g")
    await page.keyboard.type("a b c dd")
    await page.keyboard.press("Enter")
    await lab.panel(".rf-step", "Revision 2").wait_for()
    await lab.panel('[data-action="continue"]').wait_for()
    assert len(await lab.cell_sources()) == 3
    # A menu is open as long as it is used.
    await lab.panel('.rf-menu > button[aria-label="More ways to accept"]').focus()
    for leave in ("Escape", "Enter"):
        await page.keyboard.press("Enter")
        for _ in range(3):
            await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.innerText") == "Keep the variable only"
        await page.keyboard.press(leave)
        if leave == "Escape":
            await lab.panel(".rf-menu[open]").wait_for(state="detached")
    await lab.wait_output(1, "The text is in refined.")
    assert len(await lab.cell_sources()) == 3


@pytest.mark.parametrize(("app", "boxed"), [("lab", True), ("notebook", False)])
async def test_the_panel_keeps_what_is_typed_copies_and_shows_what_was_sent_in_a_box_or_not(
    lab: Lab, model: ScriptedServer, app: App, boxed: bool
) -> None:
    """Notebook puts any tall output into a box, which would leave a panel of a few lines."""
    page = await start(lab, model, app=app)
    await lab.unfold("details")
    await lab.panel('[data-focus="words"]').fill("half a sen")
    latest = "get_ipython().magics_manager.registry['Refine'].latest"
    await lab.evaluate(
        "panel.sessionContext.session.kernel.requestExecute({code: arg});",
        f"{latest}.panel.note('Something new.')",
    )
    await lab.wait_output(1, "Something new.")
    assert await page.locator(":focus").input_value() == "half a sen"
    assert await lab.panel(".rf-body").is_visible()

    await lab.evaluate("panel.content.widgets[1].outputsScrolled = true;")
    area, content = await lab.evaluate(
        "const area = panel.content.widgets[1].outputArea.node;"
        "return [area, area.querySelector('.rf-panel')]"
        ".map((part) => part.getBoundingClientRect().bottom);"
    )
    assert (content > area + 1) is boxed
    await lab.evaluate("panel.content.widgets[1].outputsScrolled = false;")

    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await lab.press("copy", menu="More ways to accept")
    await page.wait_for_function(
        "async () => (await navigator.clipboard.readText()).startsWith('def inc(n):')"
    )
    await lab.press("open", menu="More", name="sent")
    await lab.panel(".rf-sheet summary", "1 · Writing").click()
    await lab.wait_output(1, "Write inc(n), which adds one.")
    assert await lab.panel(".rf-sheet").locator("details").count() == len(model.bodies)
