"""What the extension holds in memory: a table of a kernel process's size, run by hand.

``python tests/bench/memory.py [--model NAME]``: resident memory (Linux) of one process after each
step; scripted models, a panel whose comms go nowhere. ``--model`` adds the embedded model's server,
beside its file.
"""

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tables import Table

MIB = 2**20


def rss(pid: int | str = "self") -> int:
    """Resident bytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def now() -> int:
    gc.collect()
    return rss()


def measured() -> dict[str, int]:
    """Resident bytes after each step, in this process."""
    from IPython.core.interactiveshell import InteractiveShell

    found = {"bare IPython": 0}
    shell = InteractiveShell.instance()
    found["bare IPython"] = now()
    shell.extension_manager.load_extension("ipyrefine")
    found["%load_ext ipyrefine"] = now()
    for needed in ("ipywidgets", "ipyrefine.notebook.cell", "ipyrefine.notebook.panel"):
        import_module(needed)
    found["all that a cell needs, but a server's client"] = now()
    import_module("ipyrefine.providers.openai")

    found["a server's client (openai)"] = now()
    from counting_comm import Sent

    Sent().install()
    asyncio.run(runs(1, 1))
    found["a first run"] = now()
    shown = asyncio.run(runs(1, 50))
    found["a run of 50 iterations of 4 KB, its panel open"] = now()
    shown.close()
    del shown
    found["the same, closed"] = now()
    asyncio.run(runs(100, 4))
    found["100 finished runs of 4 iterations"] = now()
    return found


async def runs(count: int, iterations: int) -> Any:
    """Runs to their end, in the journal and with a panel each; the last one's, not closed."""
    from kit import finish, greeting
    from overhead import panel, replies

    from ipyrefine.core.model import Limits
    from ipyrefine.journal.schema import default_path
    from ipyrefine.journal.writer import Recorder

    shown = panel()
    for _ in range(count):
        shown.close()
        limits = Limits(max_revisions=iterations - 1, critique="never", patience=iterations)
        shown = panel()
        loop = greeting(limits=limits, replies=replies())
        await finish(loop, shown.show, journal=Recorder(default_path()))
    return shown


def embedded(name: str, table: Table) -> None:
    """The embedded model's server after one reply, beside its file."""
    from ipyrefine.api import choose_model
    from ipyrefine.core.ports import Message, Request
    from ipyrefine.providers import weights

    async def ask() -> None:
        request = Request(messages=(Message(role="user", content="Say hello."),), max_tokens=8)
        async for _ in choose_model(name).stream(request):
            pass

    asyncio.run(ask())
    path = weights.find(name)
    assert path is not None, "the model has just answered"
    found = subprocess.check_output(["pgrep", "-P", str(os.getpid())], text=True).split()
    largest = max(rss(pid) for pid in found if Path(f"/proc/{pid}/status").exists())
    size = path.stat().st_size
    table.row(f"{name}: its file", size / MIB, "")
    table.row(f"{name}: its server", largest / MIB, (largest - size) / MIB)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="an embedded model's name")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        print(json.dumps(measured()))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--inside"]
        env = {**os.environ, "IPYREFINE_HOME": folder}
        out = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    table = Table("Resident memory of one process, step after step", "after", "MiB", "added MiB")
    before = None
    for what, size in json.loads(out.stdout.splitlines()[-1]).items():
        table.row(what, size / MIB, "" if before is None else (size - before) / MIB)
        before = size
    if chosen.model:
        embedded(chosen.model, table)


if __name__ == "__main__":
    main()
