"""The run that is recorded here and replayed in Pyodide."""

import asyncio
import sys
import time
from pathlib import Path

from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Setup
from ipyrefine.profiles import builtin
from ipyrefine.providers.replay import RecordedModel
from ipyrefine.providers.scripted import ScriptedModel


def greeting(model: RecordedModel) -> Refinement:
    """A refinement of a greeting, of one draft and one verdict that cannot be read."""
    return Refinement(
        Setup(
            task=builtin()["microcopy"].task("Write a greeting."), limits=Limits(max_revisions=0)
        ),
        model=model,
        clock=time.monotonic,
    )


async def record(path: Path) -> None:
    """Record it on a scripted model."""
    live = ScriptedModel(["<text>\nHello, you.\n</text>\n", "{}", "{}"])
    await greeting(RecordedModel(path, live=lambda: live, record=True)).run()


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1])))
