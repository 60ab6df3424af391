"""`ipyrefine demo`: the loop in a terminal, or a notebook that shows it."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from ipyrefine.errors import Interrupted, NoModel, UsageError
from ipyrefine.providers import weights

DEMO_TASK = """\
Implement a class Stack with push(x), pop() and getMin(), all O(1).

>>> s = Stack(); s.push(2); s.push(1); s.push(3)
>>> s.getMin()
1
>>> s.pop()
3
>>> s.pop()
1
>>> s.getMin()
2
"""
FETCH = """\
The notebooks replay recordings of real runs. A model for cells of your own, on this machine:
`ipyrefine pull {name}` fetches it ({size:.1f} GB)."""
NEXT = """
In JupyterLab:  %load_ext ipyrefine, then a cell that starts with %%refine.
`ipyrefine demo --lab` opens a notebook that shows it.
"""


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of `demo`."""
    parser.add_argument("--lab", action="store_true", help="open the first notebook in JupyterLab")
    parser.add_argument("-m", "--model", help="a model's name (default: the configured one)")
    parser.add_argument("-n", "--max-iterations", type=int, default=2, help="revisions allowed (2)")


def demo(options: argparse.Namespace) -> int:
    """Refine the demonstration's task and print what happens; returns the exit status."""
    name = options.model or os.environ.get("IPYREFINE_MODEL")
    served = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    embedded = name in weights.WEIGHTS or not (name or served)
    if options.lab:
        if embedded and weights.find(name) is None:
            wanted = weights.WEIGHTS[name or weights.DEFAULT]
            print(FETCH.format(name=wanted.name, size=wanted.size / 1e9))
        return _open_lab(name)
    if embedded:
        _fetch(name)
    return asyncio.run(_refine(name, options.max_iterations))


def _fetch(name: str | None) -> None:
    """Make sure that the embedded model is there, before anything is promised."""
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        raise NoModel(
            "The embedded model's engine is not installed: "
            '`pip install "ipyrefine[local]"`, or set OPENAI_API_KEY or OPENAI_BASE_URL.'
        )
    if weights.find(name) is None:
        weights.pull(name or weights.DEFAULT)


async def _refine(name: str | None, rounds: int) -> int:
    from ipyrefine.checks import resolve
    from ipyrefine.compose import compose
    from ipyrefine.core.runs import Limits
    from ipyrefine.journal.recorder import recorder
    from ipyrefine.running import raise_failure
    from ipyrefine.session.session import Session
    from ipyrefine.session.terminal import Transcript

    if rounds < 0:
        raise UsageError("--max-iterations must be 0 or more.")
    limits = Limits(max_iterations=rounds)
    checks = resolve(["examples"], {}, target=limits.target)
    refinement = compose(DEMO_TASK, model=name, checks=checks, limits=limits)
    journal = recorder(name="demo", settings={"check": ["examples"]})
    session = Session(refinement, [Transcript()], journal)
    run = await session.go()
    if session.interrupted:
        raise Interrupted("Interrupted; the best text so far is above.")
    raise_failure(session.refinement)
    print(f"\n{run.text}\n{NEXT}")
    return 0


def _open_lab(model: str | None) -> int:
    """Open the first notebook at once; its recording needs neither the weights nor a server."""
    import subprocess
    from importlib.util import find_spec

    if find_spec("jupyterlab") is None:
        raise UsageError('JupyterLab is not installed: `pip install "ipyrefine[notebooks]"`.')
    notebook = Path(__file__).parents[3] / "notebooks" / "01-first-refine.ipynb"
    if not notebook.exists():
        raise UsageError("The notebooks come with the source: run this from a checkout.")
    env = os.environ | ({"IPYREFINE_MODEL": model} if model else {})
    return subprocess.call([sys.executable, "-m", "jupyterlab", str(notebook)], env=env)
