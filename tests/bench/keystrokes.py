"""Keystrokes in one cell while another cell's run streams, in JupyterLab: a table, run by hand.

``python tests/bench/keystrokes.py [--keys N]``: the time from a key's event to the end of the next
painted frame that has its character, in Chromium; idle beside runs of several speeds in the same
page. A frame alone takes up to 17 ms. Scripted model, a server of its own.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

from lab_driver import Lab
from lab_server import browsing, serving
from openai_server import Answer, ScriptedServer
from stack_task import kernel
from tables import Table

CELL = "%%refine -p prose --task -n 0 --background --no-journal\nWrite a long letter."
TYPED, RUN = 1, 2  # the cells
PIECE_S = 1 / 30  # between two pieces of the reply
SPEEDS = (100, 500)  # tokens of four characters a second
PAUSE_S = 0.09  # between two keys: a quick typist's
LINE = "A line of a text that is neither short nor long, as such lines are.\n"
WATCH = """
const typed = panel.content.widgets[arg].node.querySelector('.cm-content');
window.took = [];
document.addEventListener('keydown', (event) => {
  const before = typed.textContent.length;
  const look = () => requestAnimationFrame(() => {
    if (typed.textContent.length === before) return look();
    // A frame's callbacks come before it is painted; a message comes after.
    const {port1, port2} = new MessageChannel();
    port1.onmessage = () => window.took.push(performance.now() - event.timeStamp);
    port2.postMessage(0);
  });
  look();
}, true);
"""
WRITTEN = "return document.querySelector('[data-stream]')?.textContent.length ?? 0;"


def letter(tokens_per_second: int, seconds: float) -> Answer:
    """A reply that streams for so long and then waits for its reader to leave."""
    chunk = round(4 * tokens_per_second * PIECE_S)
    pieces = round(seconds / PIECE_S)
    text = "<text>\n" + LINE * (chunk * (pieces + 2) // len(LINE))
    return Answer(text, chunk=chunk, delay=PIECE_S, stall_after=pieces)


async def type_keys(lab: Lab, count: int) -> list[float]:
    """Type into the first cell; milliseconds of each key."""
    await lab.set_source(TYPED, "")
    await lab.page.locator(".jp-Cell .cm-content").nth(TYPED).click()
    await lab.evaluate("window.took.length = 0;")
    for _ in range(count):
        await lab.page.keyboard.press("x")
        await asyncio.sleep(PAUSE_S)
    await lab.wait_for("window.took.length >= arg", count)
    return await lab.evaluate("return window.took;")


async def measure(lab: Lab, server: ScriptedServer, keys: int) -> None:
    await lab.open(["%load_ext ipyrefine", "", CELL], env=kernel(server), height=1200)
    await lab.run_and_wait(0)
    await lab.evaluate(WATCH, TYPED)
    table = Table(
        "Milliseconds from a key to its painted character", "while", "median", "95 %", "longest",
        "kB written",
    )  # fmt: skip

    def row(what: str, took: list[float], written: int) -> None:
        cuts = statistics.quantiles(took, n=20, method="inclusive")
        table.row(what, statistics.median(took), cuts[-1], max(took), written / 1000)

    await type_keys(lab, 10)
    row("idle", await type_keys(lab, keys), 0)
    for speed in SPEEDS:
        server.queue.append(letter(speed, seconds=60 + keys * PAUSE_S * 4))
        await lab.run_and_wait(RUN)
        await lab.wait_for("document.querySelector('[data-stream]')?.textContent.length > 500")
        before = await lab.evaluate(WRITTEN)
        took = await type_keys(lab, keys)
        row(f"a run streams {speed} tokens a second", took, await lab.evaluate(WRITTEN) - before)
        await lab.press("stop")
        await lab.panel('[data-action="continue"]').wait_for()
    row("idle again, below a finished panel", await type_keys(lab, keys), 0)


async def in_chromium(keys: int) -> None:
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with folder as home, serving(Path(home)) as server, ScriptedServer() as model:
        async with browsing() as chromium:
            lab = Lab(server, chromium)
            await measure(lab, model, keys)
            await lab.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=150, help="keys typed in each state")
    asyncio.run(in_chromium(parser.parse_args().keys))


if __name__ == "__main__":
    main()
