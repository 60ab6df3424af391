"""How many tasks a second `refine_many` does, beside a sequential loop: a table, run by hand.

``python tests/bench/many.py [--tasks N]``: a scripted server in a process of its own, replies of
200 ms, four calls a task; ratios within one run, as seconds vary with what else the machine does.
The client alone, with as many calls, shows what that server lets through.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import openai
from greetings import CALLS, options, tasks
from processes import slow_server
from tables import Table

import ipyrefine

REPLY_S = 0.2
AT_ONCE = (4, 8, 16)
SEQUENTIAL = 4  # tasks of the sequential loop: its pace does not depend on their number


async def measured(base_url: str, count: int) -> None:
    given = options(base_url)
    title = f"{count} tasks of {CALLS} calls, {REPLY_S * 1000:.0f} ms a reply"
    table = Table(title, "how", "tasks/s", "x sequential", "x / at once", "CPU ms/task")
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:
        await client_alone(client, 1, 1)
        alone, cpu = await client_alone(client, SEQUENTIAL, 1)
        table.row("the client alone, one call at a time", alone, 1.0, 1.0, cpu)
        for at_once in AT_ONCE:
            rate, cpu = await client_alone(client, count, at_once)
            ratio = rate / alone
            table.row(f"the client alone, {at_once} at once", rate, ratio, ratio / at_once, cpu)
    await ipyrefine.refine("Greet, warming up.", **given)
    began = time.perf_counter()
    for task in tasks(SEQUENTIAL):
        await ipyrefine.refine(task, **given)
    alone = SEQUENTIAL / (time.perf_counter() - began)
    table.row("a loop that awaits refine()", alone, 1.0, 1.0, "")
    for at_once in AT_ONCE:
        rate, cpu = await rated(count, {**given, "at_once": at_once})
        ratio = rate / alone
        table.row(f"refine_many, {at_once} at once", rate, ratio, ratio / at_once, cpu)


async def client_alone(client: openai.AsyncOpenAI, count: int, at_once: int) -> tuple[float, float]:
    """Tasks a second, and milliseconds of the processor a task, of the calls and nothing else."""
    turn = asyncio.Semaphore(at_once)

    async def do(task: str) -> None:
        async with turn:
            for _ in range(CALLS):
                parts = await client.chat.completions.create(
                    model="greeter", messages=[{"role": "user", "content": task}], stream=True
                )
                async for _ in parts:
                    pass

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(do, tasks(count)))
    wall, cpu = time.perf_counter() - began, time.process_time() - used
    return count / wall, 1000 * cpu / count


async def rated(count: int, given: dict[str, Any]) -> tuple[float, float]:
    """Tasks a second, and milliseconds of the processor a task."""
    began, used = time.perf_counter(), time.process_time()
    items = await ipyrefine.refine_many(tasks(count), **given, progress=False)
    assert all(item.passed for item in items)
    wall, cpu = time.perf_counter() - began, time.process_time() - used
    return count / wall, 1000 * cpu / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=96)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, slow_server(REPLY_S) as server:
        os.environ["IPYREFINE_HOME"] = folder
        asyncio.run(measured(server.base_url, chosen.tasks))


if __name__ == "__main__":
    main()
