"""The person in the loop: findings, edits and rubric in JupyterLab, by mouse and by keyboard."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from judging import all_yes, is_judge
from lab_driver import Lab
from openai_server import ScriptedServer
from stack_task import kernel

OUTPUT = Path(__file__).parents[1] / "output"
CELL = "%%refine -n 1 --min-findings 2\nWrite inc(n), which adds one."
WEAK = [
    {"criterion": "clarity", "quote": "n + 1", "problem": "The name says little.",
     "fix": "Call it number.", "severity": "minor"},
    {"criterion": "unclear code", "quote": "", "problem": "It has no docstring.",
     "fix": "Add one.", "severity": "blocking"},
]  # fmt: skip
FIRST = "```python\ndef inc(n):\n    return n + 1\n```"
SECOND = 'f2: a docstring\n```python\ndef inc(n):\n    """Add one."""\n    return n + 1\n```'


def reply(body: dict[str, Any]) -> str:
    """Name two weaknesses once; mend the second."""
    asked = body["messages"][-1]["content"]
    if is_judge(body):  # the last two, of the revision: f1 still stands, f2 is mended
        words = all_yes(body).split()
        return " ".join(words if len(words) == 6 else [*words[:6], "no", *words[7:]])
    if "concrete weaknesses" in asked:
        return json.dumps({"findings": WEAK})
    return SECOND if "text so far" in asked else FIRST


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as server:
        yield server


async def start(
    lab: Lab, model: ScriptedServer, cell: str = CELL, *, width: int = 1280, height: int = 1700,
    theme: Literal["light", "dark"] = "light", app: Literal["lab", "notebook"] = "lab",
) -> Any:  # fmt: skip
    page = await lab.open(
        ["%load_ext ipyrefine", cell, "1 + 1"],
        env=kernel(model) | {"IPYREFINE_HOME": str(lab.server.home / "kept")},
        width=width, height=height, theme=theme, app=app,
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
    await page.locator(".rf-ledger").get_by_label("f3", exact=True).wait_for()
    await page.locator(".rf-ledger").get_by_label("f1", exact=True).uncheck()
    asked = len(model.requests)
    await lab.click_button("Revise with these")
    await lab.wait_output(1, "You chose f2, f3 to act on")
    await lab.wait_output(1, "Iteration 2")
    prompts = [body["messages"][-1]["content"] for body in model.bodies[asked:]]
    [revision] = [prompt for prompt in prompts if "text so far" in prompt]
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
    await lab.wait_output(1, "Tab moves from control to control.")
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


async def test_the_panel_is_back_after_a_restart_and_resume(
    lab: Lab, model: ScriptedServer
) -> None:
    await start(lab, model)
    await lab.restart_kernel()
    await lab.set_source(2, "%refine resume")
    await lab.run_and_wait(0)
    await lab.run_and_wait(2)
    await lab.wait_output(2, "stopped:")
    await lab.page.locator(".jp-Cell").nth(2).get_by_role("button", name="Accept").click()
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")
    assert "def inc" in (await lab.cell_sources())[3]


@pytest.mark.parametrize("app", ["lab", "notebook"])
async def test_what_was_changed_in_the_inserted_cell_comes_back_with_edit(
    lab: Lab, model: ScriptedServer, app: Literal["lab", "notebook"]
) -> None:
    await start(lab, model, app=app)
    await lab.click_button("Accept")
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")
    await lab.wait_output(1, "The text is in a new cell below.")
    await lab.set_source(2, "def inc(mine):\n    return mine + 1")
    await lab.set_source(3, "%refine edit")
    await lab.run_and_wait(3)
    await lab.wait_output(3, "(your text)")
    await lab.set_source(3, "print(refined_run.iterations[-1].text)")
    await lab.run_and_wait(3)
    assert await lab.outputs_text(3) == "def inc(mine):\n    return mine + 1"


async def test_accept_replaces_the_cell_and_undo_brings_it_back(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model)
    await page.get_by_label("into").select_option(label="this cell")
    await lab.click_button("Accept")
    await lab.wait_output(1, "The text replaced the cell's source; undo brings it back.")
    assert "def inc" in (await lab.cell_sources())[1]
    await page.locator(".jp-Cell .cm-content").nth(1).click()
    await page.keyboard.press("Control+z")
    assert (await lab.cell_sources())[1] == CELL


async def test_a_copy_button_copies_the_text_beside_it(lab: Lab, model: ScriptedServer) -> None:
    page = await start(lab, model)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.locator(".rf-panel details[open] summary", has_text="Full text").first.click()
    shown = page.locator(".rf-panel details[open] details[open] .rf-held").first
    await shown.locator(".rf-copy").click()
    await page.locator(".rf-copy", has_text="Copied").wait_for()
    assert (
        await page.evaluate("navigator.clipboard.readText()")
        == await shown.locator("pre").inner_text()
    )


async def test_pointing_at_a_quote_shows_it_among_its_lines(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model)
    quoted = page.locator(".rf-ledger .rf-quoted").first
    place = quoted.locator("mark")
    assert not await place.is_visible()
    await quoted.hover()
    await place.wait_for(state="visible")
    assert await place.inner_text() == "n + 1"


async def test_the_summary_stays_in_view_while_the_panel_is_scrolled(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await start(lab, model, height=600)
    await page.locator(".rf-panel .rf-actions").last.scroll_into_view_if_needed()
    await page.locator(".rf-panel .rf-words").hover()
    await page.wait_for_timeout(300)
    top, seen = await page.evaluate(
        "() => { const r = document.querySelector('.rf-top').getBoundingClientRect();"
        " const at = document.elementFromPoint(r.x + 20, r.y + r.height / 2);"
        " return [r.top, Boolean(at.closest('.rf-top'))]; }"
    )
    assert top >= 0
    assert seen


@pytest.mark.parametrize(("app", "boxed"), [("lab", True), ("notebook", False)])
async def test_only_the_user_puts_a_panel_into_a_box_that_scrolls(
    lab: Lab, model: ScriptedServer, app: Literal["lab", "notebook"], boxed: bool
) -> None:
    """Notebook does so itself with any tall output, which would leave a panel of a few lines."""
    await start(lab, model, app=app)
    await lab.evaluate("panel.content.widgets[1].outputsScrolled = true;")
    ends = (
        "const area = panel.content.widgets[1].outputArea.node;"
        "return [area, area.querySelector('.rf-panel')]"
        ".map((part) => part.getBoundingClientRect().bottom);"
    )
    area, content = await lab.evaluate(ends)
    assert (content > area + 1) is boxed


async def test_where_no_widget_is_shown_a_sentence_says_what_to_do_instead(
    lab: Lab, model: ScriptedServer
) -> None:
    page = await lab.open(["%load_ext ipyrefine", CELL, "%refine accept"], env=kernel(model))
    await page.route("**/jupyterlab-manager/**", lambda route: route.abort())
    await page.reload()
    await lab.wait_for("panel?.content?.model && panel.content.widgets.length > 0")
    await lab.wait_idle()
    await lab.run_and_wait(0)
    await lab.run_and_wait(1)
    await lab.wait_output(1, "This front-end shows no ipywidgets")
    await lab.wait_output(1, "Run summary")
    await lab.run_and_wait(2)
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 4")
    assert "def inc" in (await lab.cell_sources())[3]


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
