"""Run scripts in the sandbox for a test, as another user or as in a container.

It reads lines of JSON with the arguments of `run_python` and answers each with a line: the result,
or ``not_run`` with the reason.
"""

import asyncio
import json
import sys

from ipyrefine.errors import CheckNotRun
from ipyrefine.sandbox import sandbox


async def run(request: dict) -> dict:
    sandbox.set_mode(request.pop("mode", None))
    sandbox._WALL_FACTOR = request.pop("wall_factor", 5)
    sandbox._WALL_FLOOR_S = request.pop("wall_floor", 300)
    try:
        result = await sandbox.run_python(**request)
    except CheckNotRun as error:
        return {"not_run": str(error)}
    return {**result.model_dump(), "note": result.protection_note}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(asyncio.run(run(json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
