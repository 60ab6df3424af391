"""Replay the runs whose replies a person wrote, and print what each takes.

``python bench/by_hand.py`` needs no model, but pandas. ``tests/by_hand`` holds the replies, and
``tests/test_replies_by_hand.py`` how the runs end. Tokens are characters / 4, and hidden reasoning
has none here, so a model that thinks costs more.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

import measure
from kept_runs import RUNS, replay

from ipyrefine.core.model import Price, Usage
from ipyrefine.providers.stream import estimate_usage

_PRICE = Price(prompt=0.25, completion=2.0)  # of gpt-5-mini, listed in November 2026


async def main() -> None:
    """Print the tables."""
    lines, stages, ends = [], dict[str, Usage](), Counter[str]()
    for path in RUNS:
        kept = json.loads(path.read_text("utf-8"))
        run, model = await replay(kept)
        used, final = run.usage, run.chosen
        assert final, "each run has a text"
        drawn = "another draft" if final.parent is None else "an edit"
        ends["first draft" if final.number == 0 else drawn] += 1
        lines.append((path.stem, used.calls, used.prompt_tokens, used.completion_tokens))
        for request, reply in zip(model.requests, kept["replies"], strict=False):
            one = estimate_usage(request, len(reply))
            stages[request.purpose] = stages.get(request.purpose, Usage()) + one
    _, *columns = zip(*lines, strict=True)
    calls, read, wrote = map(sum, columns)
    lines = [(name, count, f"{i:,}", f"{o:,}") for name, count, i, o in lines]
    lines.append(("all", calls, f"{read:,}", f"{wrote:,}"))
    print(measure.table(["run", "calls", "tokens in", "tokens out"], lines))
    rows = [
        (name, one.calls, f"{one.prompt_tokens:,}", f"{one.completion_tokens:,}")
        for name, one in stages.items()
    ]
    print()
    print(measure.table(["stage", "calls", "tokens in", "tokens out"], rows))
    print()
    print(measure.table(["final texts", "runs"], ends.items()))
    print()
    cents = 100 * _PRICE.cost(read, wrote)
    price = f"at ${_PRICE.prompt:g} and ${_PRICE.completion:g} a million tokens"
    print(f"{len(columns[0])} runs {price}: {cents:.2f} cents, {cents / len(columns[0]):.2f} a run")


if __name__ == "__main__":
    asyncio.run(main())
