"""Time how long describing and copying variables keeps the kernel from anything else.

``python bench/copies.py [NAME ...]``: a table in milliseconds, with a row for each kind of
value: wide, long, nested and hostile ones. *look* finds the variable and the names of its columns,
*structure* and *values* describe it, all in the kernel's thread: processor time. *copy* is the
wall time of a snapshot, which a forked child makes, and *gap* the longest processor time for which
the kernel's loop stood still meanwhile. Each value is
made and timed in a process of its own, so that one that kills it costs a row. ``--frames`` times,
in the sandbox's program, what keeping the values of frames before and after a cell costs.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tracemalloc
from itertools import pairwise
from time import perf_counter, process_time
from typing import Any

_COLUMNS = ("value", "look", "structure", "values", "copy", "gap", "MB more", "copied")
_OWN = """
calls = []
def own(self, *args): calls.append(1); raise RuntimeError("its own code ran")
class Thing:
    pass
"""
# Each source defines `x`.
VALUES = {
    "int": "x = 1",
    "list of 10^6 ints": "x = list(range(10**6))",
    "list of 10^5 strings": "x = [f'word {n}' for n in range(10**5)]",
    "dict of 10^6 keys": "x = {f'key {n}': n for n in range(10**6)}",
    "dict of 10^5 dicts": "x = {n: {'a': n, 'b': [n]} for n in range(10**5)}",
    "nested 10^5 deep": "x = []\nfor _ in range(10**5): x = [x]",
    "nested 500 deep": "x = []\nfor _ in range(500): x = [x, 'a']",
    "string of 40 MB": "x = 'word ' * (8 * 10**6)",
    "string of 40 MB without spaces": "x = 'A1b2' * 10**7",
    "bytes of 40 MB": "x = bytes(40 * 10**6)",
    "array of 40 MB": "import numpy\nx = numpy.random.default_rng(1).random(5 * 10**6)",
    "memmap of 3 GB": (
        "import numpy, tempfile\nf = tempfile.TemporaryFile()\nf.truncate(3 * 2**30)\n"
        "x = numpy.memmap(f, dtype='uint8', mode='r+')"
    ),
    "array on a map of 3 GB": (
        "import numpy, tempfile\nf = tempfile.TemporaryFile()\nf.truncate(3 * 2**30)\n"
        "x = numpy.asarray(numpy.memmap(f, dtype='uint8', mode='r+'))"
    ),
    "array of 10^6 objects": "import numpy\nx = numpy.array([object() for _ in range(10**6)])",
    "frame of 100,000 columns": (
        "import numpy, pandas\n"
        "x = pandas.DataFrame(numpy.zeros((2, 10**5)), columns=[f'c{n}' for n in range(10**5)])"
    ),
    "frame of 5,000 columns of mixed types": (
        "import pandas\nx = pandas.DataFrame({f'c{n}': [n if n % 2 else 'a'] for n in range(5000)})"
    ),
    "frame of 5 × 10^6 numbers": (
        "import numpy, pandas\nx = pandas.DataFrame({'a': numpy.arange(5 * 10**6)})"
    ),
    "frame of 10^6 strings": (
        "import pandas\nx = pandas.DataFrame({'a': [f'w{n}' for n in range(10**6)]}, dtype=object)"
    ),
    "frame of 10^5 objects": (
        "import pandas\nx = pandas.DataFrame({'a': [Thing() for _ in range(10**5)]})"
    ),
    "frame of 10^5 lists": (
        "import pandas\nx = pandas.DataFrame({'a': [[n] for n in range(10**5)]})"
    ),
    "series with an index of 10^6 strings": (
        "import pandas\nx = pandas.Series(1, index=[f'w{n}' for n in range(10**6)])"
    ),
    "index of 4 levels": (
        "import pandas\nx = pandas.DataFrame({'a': range(10**5)}, index=pandas.MultiIndex."
        "from_product([range(10), range(10), range(100), range(10)]))"
    ),
    "10^5 objects": "x = [Thing() for _ in range(10**5)]",
    "object of 10^5 attributes": "x = Thing()\nvars(x).update({f'a{n}': n for n in range(10**5)})",
    "array of 40 MB of what keys have": (
        "import numpy\nx = numpy.frombuffer(b'sk-:' * 10**7, 'u1')"
    ),
    "own __reduce__": "Thing.__reduce__ = own\nx = [Thing()] * 3",
    "own __getstate__": "Thing.__getstate__ = own\nx = {'a': Thing()}",
    "own __repr__ and __len__": "Thing.__repr__ = Thing.__len__ = own\nx = [Thing()] * 3",
    "own __getattribute__": "Thing.__getattribute__ = own\nx = Thing()",
    "own list": "class L(list):\n    __iter__ = __len__ = __getitem__ = own\nx = L([1])",
    "own frame": (
        "import pandas\nclass F(pandas.DataFrame):\n    __reduce__ = __getstate__ = own\n"
        "    _constructor = property(own)\nx = F({'a': [1]})"
    ),
    "own objects in a frame": (
        "import pandas\nThing.__reduce__ = Thing.__repr__ = Thing.__str__ = own\n"
        "x = pandas.DataFrame({'a': [Thing()]})"
    ),
    "own metaclass": (
        "class M(type):\n    __getattribute__ = __instancecheck__ = own\n"
        "class K(metaclass=M):\n    pass\nx = object.__new__(K)"
    ),
    "function over 10^6 numbers": "data = list(range(10**6))\ndef x(): return data",
}


_TEXTS = "numpy.array([f'w{{n}}' for n in numpy.random.randint(0, 10**6, {})], dtype=object)"
_DATES = "pandas.date_range('2000', periods={}, freq='min')"
FRAMES = {
    "5,000 × 3 texts": f"{{c: {_TEXTS.format(5_000)} for c in 'abc'}}",
    "300,000 × 1 numbers": "{'a': numpy.random.randint(0, 10**6, 300_000)}",
    "300,000 × 1 texts": f"{{'a': {_TEXTS.format(300_000)}}}",
    "15,000 × 20 texts": f"{{f'c{{n}}': {_TEXTS.format(15_000)} for n in range(20)}}",
    "30,000 × 1 dates": f"{{'a': {_DATES.format(30_000)}}}",
    "10^6 × 3 numbers, over the limit": "{c: numpy.random.randint(0, 9, 10**6) for c in 'abc'}",
}


def frames() -> str:
    """Return a table of what `capture` takes for a frame and its half, in processor time."""
    import numpy
    import pandas

    from ipyrefine.sandbox.programs import capture

    lines = ["| frame | ms before | ms after | ms to compare | MB |", "|---" * 5 + "|"]
    for name, source in FRAMES.items():
        df = pandas.DataFrame(eval(source, {"numpy": numpy, "pandas": pandas}))
        values = {"df": df, "half": df.head(len(df) // 2)}
        times = [process_time()]
        tracemalloc.start()
        before = capture.measure({"df": df})
        size = tracemalloc.get_traced_memory()[0] / 2**20
        tracemalloc.stop()
        times[0] = process_time()
        before = capture.measure({"df": df})
        times.append(process_time())
        after = capture.measure(values)
        times.append(process_time())
        capture.account(before, after)
        times.append(process_time())
        spent = " | ".join(f"{(b - a) * 1000:.0f}" for a, b in pairwise(times))
        lines.append(f"| {name} | {spent} | {size:.0f} |")
    return "\n".join(lines)


def measure(name: str) -> dict[str, Any]:
    """Return how long the value of a name takes, in milliseconds, and what became of it."""
    import cloudpickle  # noqa: F401
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    from ipyrefine.kernel import variables

    variables.sandbox_is_closed()  # found out once in a kernel
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(_OWN + VALUES[name], space)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, longest = list[float](), 0.0

    def timed(work: Any, clock: Any = process_time) -> Any:
        start = clock()
        result = work()
        times.append((clock() - start) * 1000)
        return result

    public = {**space, "value": space["x"]}

    async def copy() -> None:
        nonlocal longest
        copying, last = asyncio.ensure_future(used.copies.files("print(value)")), process_time()
        while not copying.done():
            await asyncio.sleep(0)
            longest, last = max(longest, process_time() - last), process_time()
        await copying

    used = timed(lambda: variables.find(public, draft="print(value)"))
    timed(lambda: used.materials(values=False, room=6_000))
    timed(lambda: used.materials(values=True, room=6_000))
    timed(lambda: asyncio.run(copy()), perf_counter)
    copy_ = used.copies._copies["value"]
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    copied = copy_.reason or "yes"
    if copy_.rows is not None:
        copied = f"first {copy_.rows:,} rows"
    row = [name, *(round(one, 1) for one in times), round(longest * 1000, 1), more, copied]
    return {**dict(zip(_COLUMNS, row, strict=True)), "ran": len(space["calls"])}


def table(names: list[str]) -> str:
    """Measure values, each in a process of its own, and return all of it as a table."""
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|---" * len(_COLUMNS) + "|"]
    ran = []
    for name in names:
        command = [sys.executable, __file__, "--one", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        lost = {"value": name, "copied": f"ended with {done.returncode}: {done.stderr[-200:]}"}
        row = json.loads(done.stdout) if done.returncode == 0 else lost
        lines.append("| " + " | ".join(str(row.get(one, "")) for one in _COLUMNS) + " |")
        ran += [name] * bool(row.get("ran"))
    return "\n".join([*lines, f"Code of the values' own ran for: {', '.join(ran) or 'none'}."])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])))
        sys.stdout.flush()
        os._exit(0)
    print(frames() if sys.argv[1:] == ["--frames"] else table(sys.argv[1:] or list(VALUES)))
