"""Prompt tokens that a prefix cache cannot serve, iteration by iteration: tables, run by hand.

``python tests/bench/tokens.py [--revisions N]`` (needs the extras ``local`` and ``bench`` and the
light weights, of which one layer is used: the tokens are the same). Ours and the five loops of
`tokens_loops` do one task with scripted texts of 1.5 KB and three findings each; the embedded
server, with one slot and its cache in memory as users have it, reads every prompt and says what
it had. Once with the replies in its cache, as those that it writes itself are, and once without,
as where prompts alone are kept.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import tokens_loops as words
from metered import Metered
from tables import Table
from thin_weights import thin

from ipyrefine.api import build, raise_failure
from ipyrefine.core.events import CallEnded
from ipyrefine.core.model import Evidence, Finding, Limits, Task, Usage
from ipyrefine.core.ports import Check, Request
from ipyrefine.errors import RequestRejected
from ipyrefine.providers import local, weights

# As many tokens as the default model's share of memory holds: a layer of these takes 512 bytes
# a token, that model's 28 layers 28 KB.
KEPT_MIB = 9
Read = AsyncIterator[tuple[int, Usage]]


class Unmet(NamedTuple):
    """A check that settles every verdict: better each time, and never enough."""

    name: str = "requirements"

    async def __call__(self, text: str, task: Task) -> Evidence:
        number = int(text.partition("as version ")[2].split()[0])
        found = [Finding.model_validate({**f, "id": "f0"}) for f in words.problems(number)]
        return Evidence(
            name=self.name, passed=False, score=number / 20, detail=found[0].problem,
            findings=tuple(found),
        )  # fmt: skip


def judgement(request: Request, number: int) -> str:
    """Three findings, those of before mended, and a score that is better each time."""
    parts: dict[str, Any] = (request.json_schema or {})["properties"]
    standing = parts["earlier"]["items"]["properties"]["id"]["enum"] if "earlier" in parts else []
    said = {"quote": "from Monday to Wednesday", "reason": "It says so, in part."}
    return json.dumps(
        {
            "findings": words.problems(number),
            "earlier": [{"id": id_, "fixed": True} for id_ in standing],
            "criteria": [{"name": name, **said, "score": number} for name in words.CRITERIA],
        }
    )


async def ours(path: Path, revisions: int, *, checks: Sequence[Check], remember: bool) -> Read:
    """What our own loop reads."""
    written = -1

    def answer(request: Request) -> str:
        nonlocal written
        if request.purpose == "judge":
            return judgement(request, written)
        written += 1
        before = words.changed(written) if written else words.thoughts(0)
        return f"{before}\n<text>\n{words.text(written)}\n</text>"

    limits = Limits(max_revisions=revisions, patience=99, target=1.0)
    profile = {"name": "message", "form": "prose", "criteria": words.CRITERIA}
    model = Metered(path, answer, remember=remember)
    loop = build(words.TASK, model=model, profile=profile, limits=limits, checks=checks)
    async for event in loop:
        if isinstance(event, CallEnded):
            yield event.iteration, event.usage
    raise_failure(loop)


async def theirs(path: Path, calls: Sequence[words.Call], *, remember: bool) -> Read:
    """What another loop reads."""
    replies = iter(call.reply for call in calls)
    model = Metered(path, lambda _: next(replies), remember=remember)
    for call in calls:
        async for part in model.stream(Request(messages=call.messages)):
            if usage := getattr(part, "usage", None):
                yield call.iteration, usage


async def measured(what: str, table: Table, revisions: int, read: Read) -> None:
    """Print a loop's row; a dash where its prompts no longer fit into the context."""
    anew, whole = Counter[int](), 0
    try:
        async for iteration, usage in read:
            anew[iteration] += usage.prompt_tokens - (usage.cached_tokens or 0)
            whole += usage.prompt_tokens
    except RequestRejected:
        anew.pop(max(anew), None)
    cells = [anew.get(number, "-") for number in range(revisions + 1)]
    complete = "-" not in cells
    table.row(what, *cells, *((sum(anew.values()), whole) if complete else ("-", "-")))
    local.stop_servers()  # the next loop finds nothing in the cache


async def tables(path: Path, revisions: int) -> None:
    """Print both tables."""
    for remember in (True, False):
        kept = "prompts and replies" if remember else "prompts alone"
        title = f"Prompt tokens read anew an iteration, {kept} being cached"
        heads = map(str, range(revisions + 1))
        table = Table(title, "loop", *heads, "read anew", "sent in all")

        def run(checks: Sequence[Check], remember: bool = remember) -> Read:
            return ours(path, revisions, checks=checks, remember=remember)

        await measured("ipyrefine, judged every time", table, revisions, run(()))
        await measured("ipyrefine, checks alone", table, revisions, run((Unmet(),)))
        for name, loop in words.LOOPS.items():
            calls = list(loop(revisions))
            await measured(name, table, revisions, theirs(path, calls, remember=remember))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--revisions", type=int, default=8)
    chosen = parser.parse_args()
    found = weights.find(weights.LIGHT)
    if found is None:
        sys.exit(f"Fetch the weights first: ipyrefine pull {weights.LIGHT}")
    local.CACHE_MIB = KEPT_MIB
    with tempfile.TemporaryDirectory() as folder:
        path = thin(found, Path(folder) / "thin.gguf")
        asyncio.run(tables(path, chosen.revisions))


if __name__ == "__main__":
    main()
