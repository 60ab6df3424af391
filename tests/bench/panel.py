"""How quick the panel is in JupyterLab in Chromium: a table, run by hand.

``python tests/bench/panel.py [--runs N]``: the time from a cell's start to the panel's first paint,
and how fluid a panel of 50 iterations of 300 lines is; scripted model, a server of its own.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))

from kit import opinion
from lab_driver import Lab
from lab_server import browsing, serving
from openai_server import Answer, ScriptedServer

CELL = "%%refine -p prose --task --criteria tone --min-findings 0 {}\nWrite a greeting."
LINES, ITERATIONS = 300, 50
# Waits as long as a person would who reads the next cell: until the kernel has loaded all it needs.
IDLE = """
import asyncio, sys
while 'ipyrefine.providers.openai' not in sys.modules:
    await asyncio.sleep(0.1)
"""

# Marks when the kernel says that it runs the cell, and when the first line and the panel are there.
WATCH = """
const seen = window.seen = {};
const kernel = panel.sessionContext.session.kernel;
const onMessage = (_, message) => {
  if (message.header.msg_type === 'execute_input') seen.started ??= performance.now();
};
kernel.iopubMessage.connect(onMessage);
const painted = (name) => requestAnimationFrame(() => setTimeout(() => {
  seen[name] ??= performance.now();
}));
const looking = new MutationObserver(() => {
  if (document.querySelector('.jp-OutputArea .ipyrefine [role=status]')) painted('line');
  if (document.querySelector('.rf-panel .rf-key-a')) {
    painted('panel');
    looking.disconnect();
    kernel.iopubMessage.disconnect(onMessage);
  }
});
looking.observe(document.body, {childList: true, subtree: true});
"""
LONG_TASKS = """
window.tasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.tasks.push(entry.duration);
}).observe({type: 'longtask'});
"""
# Seconds a step takes until the frame that shows it is painted, and its longest frame.
TIMED = """
const frames = (count) => new Promise((done) => {
  let last = performance.now(), longest = 0;
  const tick = (now) => {
    longest = Math.max(longest, now - last); last = now;
    count-- ? requestAnimationFrame(tick) : done(longest);
  };
  requestAnimationFrame(tick);
});
const timed = async (step) => {
  const began = performance.now();
  step();
  await frames(1);
  return performance.now() - began;
};
const scroller = panel.content.node.querySelector('.jp-WindowedPanel-outer');
const blocks = [...panel.node.querySelectorAll('.rf-panel details.rf-iteration')];
const out = {blocks: blocks.length, nodes: panel.node.querySelectorAll('.rf-panel *').length};
out.expand = [];
for (const block of blocks.filter((b) => !b.open).slice(0, 10))
  out.expand.push(await timed(() => { block.open = true; }));
out.all = await timed(() => { for (const block of blocks) block.open = true; });
const scrolled = frames(60);
for (let i = 0; i < 60; i++) {
  scroller.scrollTop += 400;
  await new Promise(requestAnimationFrame);
}
out.scroll = await scrolled;
return out;
"""


def row(what: str, value: str) -> None:
    print(f"{what:<72} {value:>22}", flush=True)


def kernel(server: ScriptedServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "IPYREFINE_MODEL": "scripted"}


async def first_paint(lab: Lab, runs: int) -> None:
    """Run a cell right after loading, after a pause, and again; say when something was there."""
    cases = ("right after %load_ext", "some seconds after %load_ext", "when the cell runs again")
    took: dict[str, list[dict[str, float]]] = {name: [] for name in cases}

    async def run(name: str) -> None:
        await lab.command("notebook:clear-cell-output")
        await lab.evaluate(WATCH)
        await lab.run_and_wait(1)
        await lab.wait_for("window.seen.panel")
        took[name].append(await lab.evaluate("return window.seen;"))

    with ScriptedServer(lambda _: Answer("<text>\nHello\n</text>", chunk=2, delay=0.05)) as server:
        for _ in range(runs):
            for wait, name in (("", cases[0]), (IDLE, cases[1])):
                book = ["%load_ext ipyrefine", CELL.format("-n 0"), wait]
                await lab.open(book, env=kernel(server))
                await lab.run_and_wait(0)
                await lab.run_and_wait(2)
                await run(name)
            await run(cases[2])
            await lab.close()
    for name, seen in took.items():
        for end, what in (("line", "first line"), ("panel", "whole panel")):
            spans = [one[end] - one["started"] for one in seen]
            shown = f"{statistics.median(spans):.0f} ({min(spans):.0f} to {max(spans):.0f}) ms"
            row(f"cell's start to {what} painted, {name}", shown)


async def fluidity(lab: Lab) -> None:
    """Write 50 iterations of 300 lines into one panel, then open and scroll them."""
    written = 0

    def reply(body: dict[str, Any]) -> Answer:
        nonlocal written
        if "whole score" in body["messages"][-1]["content"]:
            return Answer(opinion(4))
        written += 1
        lines = (f"Line {n} of a text, in its version {written}." for n in range(LINES))
        return Answer("<text>\n" + "\n".join(lines) + "\n</text>", chunk=200)

    with ScriptedServer(reply) as server:
        cell = CELL.format(f"-n {ITERATIONS - 1} --patience 99 --no-journal")
        await lab.open(["%load_ext ipyrefine", cell], env=kernel(server), height=1000)
        await lab.run_and_wait(0)
        await lab.evaluate(LONG_TASKS)
        began = asyncio.get_running_loop().time()
        await lab.run_and_wait(1)
        await lab.wait_output(1, "stopped:")
        row(
            f"{ITERATIONS} iterations of {LINES} lines run",
            f"{asyncio.get_running_loop().time() - began:.1f} s",
        )
        tasks = await lab.evaluate("return window.tasks;")
        row("  main-thread tasks over 50 ms meanwhile", str(len(tasks)))
        row("  the longest of them", f"{max(tasks, default=0):.0f} ms")
        found = await lab.evaluate(TIMED)
    row("nodes in the panel", f"{found['nodes']:,}")
    row("open one iteration, median of ten", f"{statistics.median(found['expand']):.0f} ms")
    row(f"open all {found['blocks']}", f"{found['all']:.0f} ms")
    row("scroll 60 steps with all open, the longest frame", f"{found['scroll']:.0f} ms")


async def measure(runs: int) -> None:
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with folder as home, serving(Path(home)) as server:
        async with browsing() as chromium:
            lab = Lab(server, chromium)
            await first_paint(lab, runs)
            await fluidity(lab)
            await lab.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=3, help="kernels that the first paint is measured in"
    )
    asyncio.run(measure(parser.parse_args().runs))


if __name__ == "__main__":
    main()
