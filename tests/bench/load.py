"""What loading the extension and a first `%%refine` cost: tables, run by hand.

``python tests/bench/load.py [--jupyter-ai PYTHON]``: seconds on top of bare IPython, each measured
in fresh processes, the least of several; beside them ``%load_ext jupyter_ai_magics`` (of the given
interpreter, else of an environment made for it in a temporary folder) and ``import openai``. Then
the time from running a first and a second cell in a kernel to its request at a scripted server.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from kernel import Kernel
from processes import Slow, output, slow_server
from tables import Table

TIMES = 7
IDLE_S = 8.0  # an idle kernel has loaded by then what a cell needs
TIMED = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
modules, began, used = len(sys.modules), time.perf_counter(), time.process_time()
{}
print(time.perf_counter() - began, time.process_time() - used, len(sys.modules) - modules)
"""
LOAD = "shell.extension_manager.load_extension({!r})"
CELL = "%%refine --task -p prose --criteria tone -m greeter --base-url {} --apply none\nGreet {}."


def loads(other: str) -> None:
    """Print what loading costs, ours and theirs in turn."""
    cases = {
        "bare IPython": (sys.executable, "pass"),
        "%load_ext ipyrefine": (sys.executable, LOAD.format("ipyrefine")),
        "import openai": (sys.executable, "import openai"),
        "%load_ext jupyter_ai_magics": (other, LOAD.format("jupyter_ai_magics")),
    }
    found: dict[str, list[list[float]]] = {what: [] for what in cases}
    for _ in range(TIMES):
        for what, (python, code) in cases.items():
            found[what].append([float(n) for n in output(python, TIMED.format(code))[-1].split()])
    title = f"On top of bare IPython: the least of {TIMES} processes each"
    table = Table(title, "what", "ms", "CPU ms", "modules", "x ours")
    ours = min(wall for wall, _, _ in found["%load_ext ipyrefine"])
    for what, rows in found.items():
        wall, cpu, modules = (min(column) for column in zip(*rows, strict=True))
        table.row(what, 1000 * wall, 1000 * cpu, int(modules), wall / ours)


def firsts(server: Slow, home: str) -> None:
    """Print how long a cell takes to its request, with and without the panel."""
    table = Table("From running a cell to its request, one kernel each", "cell", "ms")
    for ui in ("widgets", "plain"):
        for idle in (0.0, IDLE_S):
            with Kernel({"IPYREFINE_HOME": home, "IPYREFINE_UI": ui}) as kernel:
                kernel.run(f"%load_ext ipyrefine\n%config Refine.ui = {ui!r}")
                time.sleep(idle)
                name = f"{ui}, first, {'after some idle seconds' if idle else 'at once'}"
                table.row(name, 1000 * until_request(kernel, server, 1))
                if idle:
                    table.row(f"{ui}, second", 1000 * until_request(kernel, server, 2))


def until_request(kernel: Kernel, server: Slow, number: int) -> float:
    """Seconds from running a cell to the first request that comes of it."""
    began = time.time()
    request = kernel.start(CELL.format(server.base_url, number))
    while server.latest() < began:
        time.sleep(0.002)
    arrived = server.latest()
    kernel.finish(request)
    return arrived - began


def jupyter_ai(folder: str) -> str:
    """Install jupyter-ai-magics beside nothing else; its interpreter."""
    venv.create(folder, with_pip=True)
    python = str(Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "jupyter-ai-magics"], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jupyter-ai", metavar="PYTHON", help="has jupyter-ai-magics installed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        loads(chosen.jupyter_ai or jupyter_ai(f"{folder}/venv"))
        with slow_server(0.5) as server:
            firsts(server, folder)


if __name__ == "__main__":
    main()
