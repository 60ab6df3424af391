"""The person in the loop: findings, edits and rubric in JupyterLab, by mouse and by keyboard."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from judging import judged
from lab_driver import Lab
from openai_server import ScriptedServer
from stack_task import kernel

OUTPUT = Path(__file__).parents[1] / "output"
CELL = "%%refine -n 1 --min-findings 2\nWrite inc(n), which adds one."
WEAK = [
    {"criterion": "clarity", "quote": "n + 1", "problem": "The name says little.",
     "fix": "Call it number.", "severity": "minor"},
    {"criterion": "correctness", "quote": "", "problem": "It has no docstring.",
     "fix": "Add one.", "severity": "blocking"},
]  # fmt: skip
FIRST = "```python\ndef inc(n):\n    return n + 1\n```"
SECOND = 'f2: a docstring\n```python\ndef inc(n):\n    """Add one."""\n    return n + 1\n```'


def reply(body: dict[str, Any]) -> str:
    """Name two weaknesses once; mend the second."""
    asked = body["messages"][-1]["content"]
    if "whole score" in asked:
        return judged(9, 9, 6)
    if "concrete weaknesses" in asked:
        return json.dumps({"findings": WEAK})
    return SECOND if "best text so far" in asked else FIRST


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as server:
        yield server


async def start(
    lab: Lab, model: ScriptedServer, cell: str = CELL, *, width: int = 1280,
    theme: Literal["light", "dark"] = "light", app: Literal["lab", "notebook"] = "lab",
) -> Any:  # fmt: skip
    page = await lab.open(
        ["%load_ext ipyrefine", cell, "1 + 1"],
        env=kernel(model), width=width, height=1700, theme=theme, app=app,
    )  # fmt: skip
    await lab.run_and_wait(0)
    await lab.run_and_wait(1)
    await lab.wait_output(1, "stopped:")
    return page


@pytest.mark.parametrize("app", ["lab", "notebook"])
async def test_a_revision_acts_on_ticked_findings_and_on_the_users_own(
    lab: Lab, model: ScriptedServer, app: Literal["lab", "notebook"]
) -> None:
    page = await start(lab, model, app=app)
    await lab.click_button("Add a finding")
    await page.get_by_label("Problem").fill("It must reject text.")
    await lab.click_button("Save finding")
    await lab.wait_output(1, "You added a finding: It must reject text.")
    await page.locator(".rf-ledger").get_by_label("f1", exact=True).uncheck()
    asked = len(model.requests)
    await lab.click_button("Revise with these")
    await lab.wait_output(1, "You chose f2, f3 to act on")
    await lab.wait_idle()
    prompts = [body["messages"][-1]["content"] for body in model.bodies[asked:]]
    [revision] = [prompt for prompt in prompts if "best text so far" in prompt]
    assert "It must reject text." in revision
    assert "The name says little." not in revision


async def test_a_dismissed_finding_is_shown_with_its_reason(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model)
    await page.get_by_label("Guidance, or the reason").fill("short names are our style")
    await lab.click_button("Dismiss")
    await lab.wait_output(1, "You dismissed f1: short names are our style")


async def test_an_edit_by_hand_is_an_iteration_of_the_users(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model)
    await lab.click_button("Edit text")
    await page.locator(".rf-mono textarea").fill("def inc(number):\n    return number + 1")
    await lab.click_button("Save as an iteration")
    await lab.wait_output(1, "(your text)")


async def test_step_pauses_after_every_verdict_with_the_kernel_free(
    lab: Lab, model: ScriptedServer
) -> None:
    await start(lab, model, CELL.replace("-n 1", "-n 3 --step"))
    await lab.wait_output(1, "stopped: waiting for you")
    await lab.run_and_wait(2)
    assert (await lab.outputs_text(2)).endswith("2")
    await lab.click_button("Continue")
    await lab.wait_output(1, "Iteration 1")


async def test_in_the_background_the_cell_returns_at_once(lab: Lab, model: ScriptedServer) -> None:
    await start(lab, model, CELL.replace("-n 1", "-n 1 --background"))
    await lab.run_and_wait(2)
    assert (await lab.outputs_text(2)).endswith("2")
    await lab.click_button("Accept")
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")


async def test_the_keys_press_the_buttons_and_leave_the_notebook_alone(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model)
    await page.locator(".rf-panel button", has_text="Edit text").first.focus()
    await page.keyboard.press("?")
    await lab.wait_output(1, "Tab goes from control to control.")
    await page.keyboard.press("c")
    await lab.wait_output(1, "You allowed 1 more revision.")
    await lab.wait_output(1, "stopped:")
    await page.locator(".rf-panel button", has_text="Edit text").first.focus()
    await page.keyboard.press("a")
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")
    assert "def inc" in (await lab.cell_sources())[2]


async def test_every_control_is_reached_by_tab_and_shows_its_focus(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model)
    names = set()
    await page.locator(".rf-panel summary").first.focus()
    for _ in range(60):
        await page.keyboard.press("Tab")
        seen = await page.evaluate(
            "() => { const e = document.activeElement; if (!e.closest('.rf-panel')) return '';"
            "const s = getComputedStyle(e); return [e.innerText || e.tagName,"
            "s.outlineStyle !== 'none' || s.boxShadow !== 'none' || e.tagName !== 'BUTTON']; }"
        )
        if seen:
            assert seen[1], f"the focus on {seen[0]!r} cannot be seen"
            names.add(seen[0].strip())
    assert names >= {"Accept", "Continue", "Revise with these", "Edit text", "Rubric", "?"}


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 620)], ids=str
)
async def test_assistive_technology_finds_no_serious_fault(
    lab: Lab, model: ScriptedServer, theme: Literal["light", "dark"], width: int
) -> None:
    from axe_playwright_python.async_playwright import Axe

    page = await start(lab, model, theme=theme, width=width)
    for name in ("Add a finding", "Rubric"):
        await lab.click_button(name)
    await page.wait_for_timeout(300)
    await lab.screenshot(OUTPUT / f"person-{theme}-{width}.png")
    for place in (".rf-panel", ".jp-RenderedHTML .ipyrefine"):
        found = (await Axe().run(page, context=place)).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in serious]
