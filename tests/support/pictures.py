"""Makes the README's moving picture in JupyterLab: a draft that drops rows, and all of them kept.

``python tests/support/pictures.py`` writes ``docs/images/rows.gif``. It needs the extra
``ci`` and a Chromium on PATH. The replies are written by hand and served from this machine.
"""

import asyncio
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from lab_driver import Lab
from lab_server import browsing, serving
from openai_server import Answer, ScriptedServer

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZE = {"width": 900, "height": 640}  # so that the README's first screen holds it
FRAME_MS = 400
HOLD_MS = 3_500  # for what is to be read
COLOURS = 64
FRAMES = """import pandas as pd

orders = pd.DataFrame({"id": range(1, 9), "customer": list("abcazbqa"), "price": 5.0})
customers = pd.DataFrame({"customer": list("abc"), "town": ["Ulm", "Bonn", "Kiel"]})"""
TASK = "%%refine\nJoin orders with customers into `merged`, so that each order has its town."
JOIN = "merged = orders.merge(customers, on='customer'{how})\nmerged"
READY = """{"findings": [], "questions": [], "data": {"d1": "%s"}, "ready": true,
"because": "It joins by customer."}"""


def reply(body: dict[str, Any]) -> Answer:
    """Join the frames as many do first; once all orders are to be kept, do so."""
    asked = str(body["messages"])
    if '\\"ready\\"' in asked or '"ready"' in asked:
        words = "so that each order has its town" if re.search("how=.{1,3}left", asked) else ""
        return Answer(READY % words, delay=0.05)
    how = ", how='left'" if "Here is the text." in asked else ""
    return Answer(f"f1: all orders\n```python\n{JOIN.format(how=how)}\n```", delay=0.1)


async def main() -> None:
    """Refine and accept the task, and write the picture."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder)) as server,
        ScriptedServer(reply) as model,
    ):
        async with browsing() as chromium:
            lab = Lab(server, chromium)
            try:
                await film(lab, model)
            finally:
                await lab.close()


async def film(lab: Lab, model: ScriptedServer) -> None:
    """Take the picture in one notebook."""
    named = {"IPYREFINE_MODEL": "by-hand"}
    await lab.open([FRAMES, TASK], model=model, env=named, **SIZE)
    await lab.command("application:toggle-left-area")
    await lab.run_and_wait(0)
    frames, times = list[Any](), list[int]()

    async def show(milliseconds: int = FRAME_MS) -> None:
        frames.append(await picture(lab))
        times.append(milliseconds)

    async def until(condition: str) -> None:
        while not await lab.evaluate(f"return Boolean({condition})"):
            await show()
            await asyncio.sleep(FRAME_MS / 1_000)
        await show(HOLD_MS)

    await show()
    await lab.run(1)
    badge = "(document.querySelector('.rf-panel .rf-badge') || {}).textContent || ''"
    await until(f"({badge}).includes('TO CHECK')")
    await lab.panel(".rf-amber .rf-no").hover()
    await show()
    await lab.panel(".rf-amber .rf-no").click()
    await until(f"({badge}).includes('NOTHING FOUND')")
    await lab.press("accept", place="run")
    await until("(document.querySelector('.rf-receipt') || {}).textContent?.includes('ran')")
    await lab.page.locator(".rf-receipt").last.scroll_into_view_if_needed()
    await show(HOLD_MS)
    still = [frame.quantize(COLOURS, dither=Image.Dither.NONE) for frame in frames]
    still[0].save(
        IMAGES / "rows.gif", save_all=True, append_images=still[1:], duration=times, loop=0
    )
    print(f"{len(frames)} frames, {(IMAGES / 'rows.gif').stat().st_size / 1e6:.1f} MB")


async def picture(lab: Lab) -> Any:
    """Return a picture of the notebook, without the application around it."""
    data = await lab.page.locator(".jp-NotebookPanel-notebook").screenshot()
    return Image.open(io.BytesIO(data)).convert("RGB")


if __name__ == "__main__":
    asyncio.run(main())
