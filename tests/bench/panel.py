"""How quick the panel is in JupyterLab in Chromium: a table, run by hand.

``python tests/bench/panel.py [--runs N]``: the time from a cell's start to the panel's first paint,
and from a click to its painted answer in a run of 1,000 iterations of 100 lines; scripted model, a
server of its own.
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

CELL = "%%refine -p prose --task --criteria tone --min-findings 0 {}\nWrite a greeting."
LINES, ITERATIONS = 100, 1_000
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
  if (document.querySelector('.rf-panel [data-hotkey="?"]')) {
    painted('panel');
    looking.disconnect();
    kernel.iopubMessage.disconnect(onMessage);
  }
});
looking.observe(document.body, {childList: true, subtree: true});
"""
# A run of so many iterations, made at once and shown in a panel of its own.
LONG = f"""
from ipyrefine.core.events import BestChanged, DraftReady, RevisionReady, RunStarted, Stopped
from ipyrefine.core.model import Setup, StopReason, Task
from ipyrefine.core.reducer import replay
from ipyrefine.notebook.panel import Panel
def text(number):
    lines = (f"x{{n}} = {{n if n != number % {LINES} else -number}}" for n in range({LINES}))
    return chr(10).join(lines)
task = Task(text="Write.", form="code")
events = [RunStarted(setup=Setup(task=task)), DraftReady(text=text(0))]
events += [RevisionReady(iteration=n, parent=n - 1, text=text(n)) for n in range(1, {ITERATIONS})]
stop = Stopped(reason=StopReason.REVISIONS, message="")
run = replay([*events, BestChanged(iteration={ITERATIONS - 1}), stop])
long = Panel(decide=print, stop=print, close=print)
long.show(stop, run)
long.widget
"""
# Milliseconds from a click to the frame that shows its answer.
CLICK = """
const shown = () => document.querySelector('.rf-panel .rf-step[aria-current]').dataset.iteration;
const buttons = [...document.querySelectorAll('.rf-panel [data-action=show][data-iteration]')];
const button = buttons.find((one) => one.dataset.iteration !== shown());
const wanted = button.dataset.iteration;
const began = performance.now();
button.click();
while (shown() !== wanted) await new Promise(requestAnimationFrame);
return performance.now() - began;
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


async def clicks(lab: Lab, count: int = 40) -> None:
    """Click through a run of many iterations."""
    await lab.open([LONG], height=1000)
    await lab.run_and_wait(0)
    await lab.panel(".rf-step[aria-current]").wait_for()
    took = [await lab.evaluate(CLICK) for _ in range(count)]
    cuts = statistics.quantiles(took, n=20, method="inclusive")
    what = f"click to painted answer in a run of {ITERATIONS:,} iterations"
    row(f"{what}, median of {count}", f"{statistics.median(took):.0f} ms")
    row(f"{what}, 95 %", f"{cuts[-1]:.0f} ms")
    nodes = await lab.evaluate("return panel.node.querySelectorAll('.rf-panel *').length;")
    row("nodes in the panel", f"{nodes:,}")


async def measure(runs: int) -> None:
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with folder as home, serving(Path(home)) as server:
        async with browsing() as chromium:
            lab = Lab(server, chromium)
            await first_paint(lab, runs)
            await clicks(lab)
            await lab.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=3, help="kernels that the first paint is measured in"
    )
    asyncio.run(measure(parser.parse_args().runs))


if __name__ == "__main__":
    main()
