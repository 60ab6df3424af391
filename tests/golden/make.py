"""Play the golden scenarios again and write their events and requests: ``python make.py NAME …``.

The inputs stand in the JSON files and stay as they are. Run this only after a change of behaviour
that is wanted, and read the difference.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
import golden


def main(names: list[str]) -> None:
    for path in sorted(golden.FOLDER.glob("*.json")):
        if names and path.stem not in names:
            continue
        scenario = golden.read(path)
        outcome = asyncio.run(golden.play(scenario))
        inputs = {key: scenario[key] for key in golden.INPUTS if key in scenario}
        events = {"events": outcome.events, "requests": outcome.requests}
        golden.write(path, {**inputs, **events})


if __name__ == "__main__":
    main(sys.argv[1:])
