"""Time how long describing variables and taking them for the checks holds up a kernel.

``python bench/context_cost.py [NAME ...]``: a table in milliseconds, with a row for each kind
of kernel. *describe* is what finding and describing variables costs, in processor and wall time.
*held* is the longest time for which the event loop stood still while the snapshot was taken,
*processor* what the kernel itself spent on it, and *until there* when the checks have it. *fork
alone* is a bare fork of that kernel and the end of its child: no snapshot by fork can hold it for
less. Each is the median of five, and each kernel a process of its own.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

_TIMES = 5
_COLUMNS = (
    *("kernel", "MB", "describe, processor", "describe, wall", "characters", "fork alone"),
    *("held", "processor", "until there", "copied"),
)
_BIG = """
import numpy, pandas
numbers = numpy.random.default_rng(0).random(200_000_000)  # 1.6 GB
n = 3_000_000
frame = pandas.DataFrame({
    "city": numpy.array(["Bern", "Basel", "Chur"], dtype=object)[numpy.arange(n) % 3],
    "amount": numpy.random.default_rng(1).random(n),
    "year": numpy.arange(n) % 30 + 1990,
    "number": numpy.arange(n),
})
"""
# Each kernel: what it holds, the request, and the text that is run.
KERNELS = {
    "2 GB: an array, a frame of 3,000,000 × 4": (
        _BIG,
        "What is the total amount per city in `frame`?",
        'frame.groupby("city")["amount"].sum()',
    ),
    "a frame of 10,000 columns": (
        "import numpy, pandas\nwide = pandas.DataFrame(numpy.zeros((100, 10_000)), "
        "columns=[f'c{n}' for n in range(10_000)])",
        "Which columns of `wide` are all zero?",
        "wide.columns[(wide == 0).all()]",
    ),
    "300 names": (
        "import pandas\nfor n in range(100):\n"
        "    globals()[f'frame{n}'] = pandas.DataFrame({'a': range(n + 1), 'b': 'x'})\n"
        "    globals()[f'items{n}'] = list(range(n))\n"
        "    globals()[f'word{n}'] = 'word ' * n",
        "Sum up all of " + ", ".join(f"`frame{n}`, `items{n}`, `word{n}`" for n in range(100)),
        "[" + ", ".join(f"frame{n}, items{n}, word{n}" for n in range(100)) + "]",
    ),
    "a list of 1,000,000 objects": (
        "class Thing:\n    def __init__(self, n): self.n = n\n"
        "things = [Thing(n) for n in range(10**6)]",
        "What is the largest n of `things`?",
        "max(one.n for one in things)",
    ),
}


# HOOKS: what the product calls for this, and nothing else of it. Edit these when it changes.


def describe(space: dict[str, Any], request: str) -> str:
    """Return what a model is shown of the variables for a request."""
    from ipyrefine.kernel import variables

    found = variables.find(space, text=request, bare=True)
    return "\n".join(one.text for one in found.materials(values=False, room=6_000))


async def snapshot(space: dict[str, Any], text: str) -> str:
    """Take what a text uses for the checks; returns what became of it."""
    from ipyrefine.kernel import variables

    copies = variables.Copies(lambda: space, named=space)
    await copies.files(text)
    made = copies._copies.values()
    parts = [f"{sum(one.stop - one.start for one in made) / 2**20:.1f} MB"]
    parts += [f"{one.name}: first {one.rows:,} rows" for one in made if one.rows is not None]
    parts += [f"not {one.name}: {one.reason}" for one in made if one.reason][:3]
    return ", ".join(parts)


# End of the hooks.


def fork_alone() -> None:
    """Fork, and end the child at once."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return the processor and the wall time of some work, in milliseconds, and its result."""
    wall, processor = perf_counter(), process_time()
    result = work()
    return (process_time() - processor) * 1_000, (perf_counter() - wall) * 1_000, result


async def watched(space: dict[str, Any], text: str) -> tuple[float, float, float, str]:
    """Return how a snapshot holds the event loop, and what became of it."""
    wall, processor = perf_counter(), process_time()
    taking, longest, last = asyncio.ensure_future(snapshot(space, text)), 0.0, wall
    while not taking.done():
        await asyncio.sleep(0.0005)
        longest, last = max(longest, perf_counter() - last), perf_counter()
    spent, until = process_time() - processor, perf_counter() - wall
    return longest * 1_000, spent * 1_000, until * 1_000, taking.result()


def measure(name: str) -> dict[str, Any]:
    """Return the row of a kernel."""
    source, request, text = KERNELS[name]
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)
    describe({"a": 1}, "`a`")  # what is imported at first
    described = [timed(lambda: describe(space, request)) for _ in range(_TIMES)]
    forks = [timed(fork_alone)[1] for _ in range(_TIMES)]
    asyncio.run(snapshot({"a": 1}, "a"))
    taken = [asyncio.run(watched(space, text)) for _ in range(_TIMES)]
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    numbers = [
        *(statistics.median(one[n] for one in described) for n in range(2)),
        len(described[0][2]),
        statistics.median(forks),
        *(statistics.median(one[n] for one in taken) for n in range(3)),
    ]
    shown = [f"{number:,.1f}" if number < 100 else f"{number:,.0f}" for number in numbers]
    row = [name, f"{pages * os.sysconf('SC_PAGE_SIZE') / 2**20:,.0f}", *shown, taken[0][3]]
    return dict(zip(_COLUMNS, row, strict=True))


def table(names: list[str]) -> str:
    """Measure kernels, each in a process of its own, and return all of it as a table."""
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|---" * len(_COLUMNS) + "|"]
    for name in names:
        command = [sys.executable, __file__, "--one", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        lost = {"kernel": name, "copied": f"ended with {done.returncode}: {done.stderr[-200:]}"}
        row = json.loads(done.stdout) if done.returncode == 0 else lost
        lines.append("| " + " | ".join(str(row.get(one, "")) for one in _COLUMNS) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        print(table(sys.argv[1:] or list(KERNELS)))
