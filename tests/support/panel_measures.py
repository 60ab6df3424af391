"""Measures the panel in JupyterLab and Notebook 7, and takes a picture of each state.

``python tests/support/panel_measures.py FOLDER`` prints a table and writes the pictures. It needs
the extra ``ci`` and a Chromium. The replies are written by hand and served from this machine.
"""

import argparse
import asyncio
import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from judging import criticises, is_critic
from lab_driver import Lab
from lab_server import browsing, serving
from openai_server import Answer, ScriptedServer

TASK = """%%refine
Write `median(xs)`, the middle of the sorted numbers.

median([3, 1, 2]) == 2
median([1, 2]) == 1.5"""
HALF = """def median(xs):
    xs = sorted(xs)
    middle = len(xs) // 2
    return xs[middle]
"""
EVEN = "    if len(xs) % 2 == 0:\n        return (xs[middle - 1] + xs[middle]) / 2\n"
WHOLE = HALF.replace("    return", f"{EVEN}    return")
SLOW = """def has_duplicates(xs):
    for i, x in enumerate(xs):
        if x in xs[:i]:
            return True
    return False"""
FAST = "def has_duplicates(xs):\n    return len(set(xs)) < len(xs)"
SETUP = "prices = {'a': 1, 'b': 41}\ndef total(d): return sum(d.values())"
BROKEN = "answer = total(price)\nprint('total', answer)"
PROSE = (
    "Dear Ms. Ortega, your parcel came late, and we would like to extend our apologies. Call us."
)
BETTER = PROSE.replace("we would like to extend our apologies", "we are sorry")
HEAD = (
    "| app | width | theme | job | clicks and keys | to Accept | words | controls | height "
    "| changes of height | first sign |"
)
EFFORT = {
    "new code": "Shift Enter, 1 click",
    "change as I say": "1 click, the words, Enter, 1 click",
    "fix and run": "2 clicks",
    "polish": "Alt R, the words, Enter, 1 click",
}
FIELD = ".ipyrefine-ask input"
BUTTON = '.jp-Cell.jp-mod-active .jp-cell-toolbar [data-jp-item-name="refine"]'
# What of the panel is seen, and how far Accept is below the text that it is about.
WORDS = """const root = document.querySelector('.jp-OutputArea .rf-panel');
const seen = (one) => one.checkVisibility() && one.getClientRects().length > 0;
const controls = [...root.querySelectorAll('button, summary, input, textarea, select')];
const accept = root.querySelector('[data-action=accept]:not(li *)').getBoundingClientRect();
const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
const above = cells.slice(0, cells.findIndex((cell) => cell.contains(root)) + 1);
const text = '.jp-InputArea-editor, .jp-MarkdownOutput';
const texts = above.flatMap((cell) => [...cell.querySelectorAll(text)]);
return {
  pixels: Math.round(accept.top - texts.filter(seen).at(-1).getBoundingClientRect().bottom),
  words: root.innerText.split(/\\s+/).filter((word) => /\\w/.test(word)).length,
  controls: controls.filter(seen).length,
  height: root.offsetHeight,
};"""
# Keeps each height of the panel, and when the first sign of a run is seen.
WATCH = """window.heights = []; window.painted = null; window.began = performance.now();
const look = () => {
  if (document.querySelector('.jp-OutputArea [role=status]')) painted ??= performance.now() - began;
  const root = document.querySelector('.jp-OutputArea .rf-panel section');
  const height = root && Math.round(root.getBoundingClientRect().height);
  if (height && heights.at(-1) !== height) heights.push(height);
  requestAnimationFrame(look);
};
look();"""


def reply(body: dict[str, Any]) -> Answer:
    """Answer as a model would: a half draft first, then what is asked for."""
    asked = json.dumps(body["messages"])
    if is_critic(body):
        return Answer(criticises(ready=True), delay=0.02)
    if "Ortega" in asked:
        text = f"<text>\n{BETTER}\n</text>"
    elif "total(" in asked:
        text = f"f1: the name\n```python\n{BROKEN.replace('(price)', '(prices)')}\n```"
    elif "duplicates" in asked:
        text = f"f1: a set\n```python\n{FAST}\n```"
    else:
        text = f"f1: even lengths\n```python\n{WHOLE if 'xs[middle]' in asked else HALF}```"
    return Answer(text, delay=0.03)


async def main() -> None:
    """Do the four jobs in each application, width and theme."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--apps", default="lab,notebook")
    parser.add_argument("--widths", default="1440,800")
    parser.add_argument("--themes", default="light,dark")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder)) as server,
        ScriptedServer(reply) as model,
    ):
        async with browsing() as chromium:
            print(HEAD, "|---" * HEAD.count(" | ") + "|---|", sep="\n")
            every = (options.apps, options.widths, options.themes)
            for app, width, theme in itertools.product(*(one.split(",") for one in every)):
                lab = Lab(server, chromium)
                env = {
                    "OPENAI_BASE_URL": model.base_url,
                    "IPYREFINE_MODEL": "by-hand",
                    "IPYREFINE_HOME": f"{folder}/journal-{app}{width}{theme}",
                }
                try:
                    await jobs(lab, options.folder, app, int(width), theme, env)
                finally:
                    await lab.close()


async def jobs(
    lab: Lab, folder: Path, app: Any, width: int, theme: Any, env: dict[str, str]
) -> None:
    """New code, a change as the user says, a fix that is run, and a polished paragraph."""
    number = itertools.count(1)

    async def take(state: str) -> None:
        await asyncio.sleep(0.4)
        found = await lab.evaluate(WORDS)
        watched = await lab.evaluate("return [window.heights.length - 1, window.painted];")
        row = [app, width, theme, state, EFFORT[state], f"{found['pixels']} px", found["words"]]
        row += [found["controls"], f"{found['height']} px", watched[0], f"{watched[1] or 0:.0f} ms"]
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        await shot(state)

    async def shot(state: str) -> None:
        await asyncio.sleep(0.4)
        name = f"{app}-{width}-{theme}-{next(number):02}-{state.replace(' ', '-')}.png"
        await lab.screenshot(folder / name)

    async def watch() -> None:
        await lab.evaluate("heights.length = 0; painted = null; began = performance.now();")

    cells = ["%load_ext ipyrefine", TASK, SLOW, SETUP, BROKEN, PROSE, "last = 1"]
    page = await lab.open(cells, app=app, theme=theme, env=env, width=width, height=900)
    if app == "lab":
        await lab.command("application:toggle-left-area")
    for cell in (0, 3):
        await lab.run_and_wait(cell)
    # New code
    await lab.evaluate(WATCH)
    await lab.run(1)
    await lab.panel("[data-stream=text]").wait_for()
    await asyncio.sleep(0.8)
    await shot("writing")
    await lab.wait_verdict("PASS")
    await take("new code")
    await lab.panel('.rf-menu > summary[aria-label="More"]').click()
    await shot("menu")
    await page.keyboard.press("Escape")
    await lab.press("accept")
    await lab.wait_for("panel.content.widgets[1].outputArea.node.innerText.includes('accepted')")
    await asyncio.sleep(1)
    await shot("receipt")
    await lab.evaluate("document.querySelector('.rf-decided').open = true;")
    await shot("receipt open")
    await lab.evaluate("document.querySelector('.rf-decided').open = false;")
    # Change as I say
    index = (await lab.cell_sources()).index(SLOW)
    await lab.select(index)
    await page.locator(BUTTON).locator("button, jp-button").first.click()
    await page.locator(FIELD).fill("Make it O(n)")
    await shot("ask")
    await watch()
    await page.locator(FIELD).press("Enter")
    await lab.wait_for("document.querySelector('.rf-panel .rf-revert')")
    await lab.wait_idle()
    await take("change as I say")
    await lab.press("accept")
    source = "panel.content.model.sharedModel.cells[arg[0]].getSource()"
    await lab.wait_for(f"{source} === arg[1]", [index, FAST])
    await lab.wait_for("!document.querySelector('.rf-panel')")
    # Fix and run
    index = (await lab.cell_sources()).index(BROKEN)
    await lab.run_and_wait(index)
    await page.locator(".ipyrefine-fix button").first.wait_for()
    await shot("failed")
    await watch()
    await page.locator(".ipyrefine-fix button").first.click()
    await lab.wait_verdict("NOT JUDGED")
    await lab.wait_idle()
    await take("fix and run")
    await lab.press("accept")
    await lab.wait_for("!document.querySelector('.rf-panel')")
    # Polish a paragraph
    index = (await lab.cell_sources()).index(PROSE)
    await lab.select(index)
    await lab.command("notebook:change-cell-to-markdown")
    await lab.command("notebook:run-cell")
    await page.keyboard.press("Alt+r")
    await watch()
    await page.locator(FIELD).fill("Less stiff")
    await page.locator(FIELD).press("Enter")
    await lab.wait_for("document.querySelector('.rf-panel .rf-revert')")
    await lab.wait_idle()
    await take("polish")


if __name__ == "__main__":
    asyncio.run(main())
