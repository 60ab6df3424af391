# ruff: noqa: E501, SIM905
"""Check two notebooks of our own, and outputs that were changed by hand, with `ipyrefine check`.

``python bench/check.py --out DIR`` needs no model, but pandas and matplotlib. 40 cells are unstable:
they give something else in each run (order, chance, times, addresses, sets, warnings), as
saved by another kernel on another day. 40 are stable. The table says how many cells of each are
told as saved, as chance, or as differing, which no cell here does.

Then 100 saved outputs of the stable ones are changed by hand: a value, the order, a duration, a
date. The table says how many of these are told as saved.
"""

import argparse
import asyncio
import copy
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from ipyrefine.notebook_check import State, check, compare, run_cells

SETUP = """import datetime, os, random, tempfile, time, uuid, warnings
import numpy as np
import pandas as pd
import matplotlib.pyplot as plt
df = pd.DataFrame({"k": list("abcabc"), "v": [1.5, 2, 3, 4, None, 6]})
class A: pass
def stamp(): return datetime.datetime.now()"""
UNSTABLE = """random.random()
np.random.rand(3)
np.random.default_rng().normal(size=4)
df.sample(3)
df.sample(frac=1)["k"].tolist()
random.sample(range(100), 5)
random.choices(range(1000), k=3)
print({"b", "a", "c", "d"})
print({"x", "y"})
print(set(df["k"]))
list({"red", "green", "blue"})
print(frozenset(["p", "q"]))
sorted({"m", "n"}, key=lambda s: 0)
hash("abc")
print(time.time())
datetime.datetime.now()
datetime.date.today()
print(datetime.date.today().strftime("%A %d %B %Y"))
stamp().year, stamp().hour
t0 = time.perf_counter(); print(f"took {time.perf_counter() - t0:.1f} s")
print("%.3f seconds" % (time.perf_counter() - t0))
%time sum(range(1000))
%timeit -n 10 -r 2 sum(range(100))
A()
object()
print(A())
[A(), A()]
id(A())
uuid.uuid4()
os.getpid()
tempfile.mkdtemp()
warnings.warn("careful"); 3
plt.plot(np.random.rand(5)); plt.show()
next(iter({"one", "two", "three"}))
{k: hash(k) % 7 for k in "abc"}
pd.Timestamp.now()
time.strftime("%H:%M")
random.shuffle(L := list(range(20))); L
np.random.permutation(10)
df.groupby("k")["v"].apply(lambda s: s.sum() + random.random())""".split("\n")
STABLE = """1 + 1
df
df.describe()
df.groupby("k")["v"].mean()
df["v"].sum()
print("hello")
[1, 2, 3]
{"a": 1, "b": [1, 2]}
"text"
0.1 + 0.2
np.arange(6).reshape(2, 3)
np.linspace(0, 1, 5)
np.random.default_rng(0).normal(size=3)
random.Random(1).random()
df.sample(2, random_state=1)
plt.plot([1, 2, 3]); plt.show()
plt.bar(["a", "b"], [3, 4]); plt.title("Bars"); plt.show()
datetime.date(2024, 1, 31)
datetime.timedelta(seconds=90)
pd.Timestamp("2024-03-05 12:00")
pd.date_range("2024-01-01", periods=3)
sorted({"b", "a", "c"})
len({"b", "a"})
print("took 12 s")
print("2024-01-01 is a date")
df.dtypes
df.isna().sum()
df.head(2).to_dict()
True
"%d rows in %.1f s" % (6, 2.5)
(1, "a", None)
b"bytes"
print(*range(30))
print("a"); print("b")
np.pi
1e-12
10 ** 20
df[["k"]].value_counts()
from fractions import Fraction; Fraction(1, 3)
"%.2f" % 3.14159""".split("\n")
# How a text is changed by hand; the first that changes one is taken, for each kind.
CHANGES = {
    "a value": [(r"\d", lambda m: str((int(m[0]) + 1) % 10)), (r"[a-z]", lambda m: "z" if m[0] != "z" else "y")],
    "a digit far behind": [(r"(?<=\.\d\d)\d", lambda m: str((int(m[0]) + 1) % 10))],
    "the order": [(r"(\w+)(\W+)(\w+)", lambda m: m[3] + m[2] + m[1])],
    "a duration": [(r"\d+(?=(?:\.\d)? s\b)", lambda m: str(int(m[0]) + 1))],
    "a date": [(r"(?<=-)\d\d\b", lambda m: f"{int(m[0]) % 28 + 1:02}")],
    "a line more": [(r"\Z", lambda m: "\nmore")],
}  # fmt: skip
_V4: Any = nbformat.v4


def write(path: Path, sources: list[str], *, on_another_day: bool) -> None:
    """Write a notebook with what its cells give in a kernel of their own."""
    cells = [_V4.new_code_cell(one) for one in (SETUP, *sources)]
    notebook = _V4.new_notebook(cells=cells)
    os.environ["PYTHONHASHSEED"] = "99"
    NotebookClient(notebook, allow_errors=True).execute()
    for cell in notebook.cells if on_another_day else ():
        if re.search(r"today|now|stamp\(\)|%H", cell.source):
            for output in cell.outputs:
                _replace(output, r"20\d\d", "2019", 0)
                _replace(output, r"[A-Z][a-z]+day", "Friday", 0)
    nbformat.write(notebook, path)


def _replace(output: Any, pattern: str, change: Any, count: int = 1) -> bool:
    holder, key = (output, "text") if "text" in output else (output.get("data", {}), "text/plain")
    if not isinstance(before := holder.get(key), str) or before.startswith("<"):
        return False
    holder[key] = re.sub(pattern, change, before, count=count)
    return bool(holder[key] != before)


def changed_by_hand(cells: list[Any]) -> list[tuple[str, int, list[Any]]]:
    """Return up to 100 copies of cells, each with one output that was changed: how, and which."""
    found = []
    for kind, rules in CHANGES.items():
        for number, cell in enumerate(cells):
            other = copy.deepcopy(cell)
            if other.outputs and any(_replace(other.outputs[0], *one) for one in rules):
                found.append((kind, number, [*cells[:number], other, *cells[number + 1 :]]))
    return found[:100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    states: list[State] = ["as saved", "chance", "differs", "failed"]
    print("| cells | " + " | ".join(states) + " |")
    print("|---" * (len(states) + 1) + "|")
    for name, sources in (("unstable", UNSTABLE), ("stable", STABLE)):
        path = folder / f"{name}.ipynb"
        if not path.exists():
            write(path, sources, on_another_day=name == "unstable")
        found = asyncio.run(check(path, account=False)).cells[1:]
        counts = Counter(one.state for one in found)
        print(f"| {len(found)} {name} | " + " | ".join(str(counts[one]) for one in states) + " |")
        for one in found:
            if one.state not in ("as saved", "chance"):
                print(one)
    cells = nbformat.read(folder / "stable.ipynb", 4).cells  # type: ignore[no-untyped-call]
    runs = [asyncio.run(run_cells(folder / "stable.ipynb", seed)) for seed in (0, 1)]
    told = Counter[tuple[str, str]]()
    for kind, number, changed in changed_by_hand(cells):
        told[kind, compare(changed, runs)[number].state] += 1
    print("\n| changed by hand | cells | told as saved |\n|---|---|---|")
    for kind in CHANGES:
        of_kind = {state: count for (one, state), count in told.items() if one == kind}
        print(f"| {kind} | {sum(of_kind.values())} | {of_kind.get('as saved', 0)} |")


if __name__ == "__main__":
    main()
