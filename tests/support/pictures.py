"""Makes the README's moving picture from the demonstration's recorded run, in JupyterLab.

``python tests/support/pictures.py`` writes ``notebooks/images/panel.gif``. It needs the extra
``ci`` and a Chromium on PATH.
"""

import asyncio
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
from lab_driver import Lab
from lab_server import browsing, serving

from ipyrefine.demo import RECORDING, TASK

IMAGES = Path(__file__).parents[2] / "notebooks" / "images"
SIZE = {"width": 900, "height": 580}  # so that the README's first screen holds it
PACE = 3  # times the recorded pace
FRAME_MS = 400
HOLD_MS = 4_000  # for the verdict, and for the accepted text
COLOURS = 64


async def main() -> None:
    """Refine and accept the demonstration's task, and write the picture."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        async with browsing() as chromium:
            lab = Lab(server, chromium)
            try:
                await film(lab)
            finally:
                await lab.close()


async def film(lab: Lab) -> None:
    """Take the picture in one notebook."""
    source = f"%%refine\n{TASK.read_text('utf-8').strip()}"
    env = {
        "IPYREFINE_MODEL": f"recorded:{RECORDING}@{PACE}",
        "IPYREFINE_HOME": str(lab.server.home / "kept"),
    }
    await lab.open(["%load_ext ipyrefine", source], env=env, **SIZE)
    await lab.command("application:toggle-left-area")
    await lab.run_and_wait(0)
    frames = [await picture(lab)]
    await lab.run(1)
    accept = lab.page.get_by_role("button", name="Accept", exact=True)
    while "PASS" not in await lab.outputs_text(1):
        frames.append(await picture(lab))
        await asyncio.sleep(FRAME_MS / 1_000)
    times = [FRAME_MS] * len(frames)
    frames.append(await picture(lab))
    times.append(HOLD_MS)
    await accept.click()
    await lab.wait_for("panel.content.model.sharedModel.cells.length === 3")
    await asyncio.sleep(2)  # the page scrolls to the new cell
    frames.append(await picture(lab))
    times.append(HOLD_MS)
    still = [frame.quantize(COLOURS, dither=Image.Dither.NONE) for frame in frames]
    still[0].save(
        IMAGES / "panel.gif", save_all=True, append_images=still[1:], duration=times, loop=0
    )
    print(f"{len(frames)} frames, {(IMAGES / 'panel.gif').stat().st_size / 1e6:.1f} MB")


async def picture(lab: Lab) -> Any:
    """Return a picture of the notebook, without the application around it."""
    data = await lab.page.locator(".jp-NotebookPanel-notebook").screenshot()
    return Image.open(io.BytesIO(data)).convert("RGB")


if __name__ == "__main__":
    asyncio.run(main())
