"""`ipyrefine demo | pull`: the loop in a terminal, and the embedded model's weights."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from ipyrefine.errors import Interrupted, NoModel, RefineError, UsageError
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
NEXT = """
In JupyterLab:  %load_ext ipyrefine, then a cell that starts with %%refine.
`ipyrefine demo --lab` opens a notebook that shows it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except RefineError as error:
        print(f"ipyrefine: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ipyrefine: interrupted.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ipyrefine", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="refine a task on a real model, here or in JupyterLab")
    demo.add_argument("--lab", action="store_true", help="open the first notebook in JupyterLab")
    demo.add_argument("-m", "--model", help="a model's name (default: the configured one)")
    demo.add_argument("-n", "--max-iterations", type=int, default=2, help="revisions allowed (2)")
    demo.set_defaults(action=_demo)
    pull = commands.add_parser("pull", help="fetch the embedded model's weights and verify them")
    pull.add_argument("name", nargs="?", default=weights.DEFAULT, help=", ".join(weights.WEIGHTS))
    pull.set_defaults(action=_pull)
    return parser


def _pull(options: argparse.Namespace) -> int:
    print(weights.pull(options.name))
    return 0


def _demo(options: argparse.Namespace) -> int:
    name = options.model or os.environ.get("IPYREFINE_MODEL")
    served = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    if name in weights.WEIGHTS or not (name or served):
        _fetch(name)
    if options.lab:
        return _open_lab()
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
    from ipyrefine.compose import compose, raise_failure
    from ipyrefine.loop.runs import Limits
    from ipyrefine.notebook.session import Session
    from ipyrefine.notebook.terminal import Transcript

    if rounds < 0:
        raise UsageError("--max-iterations must be 0 or more.")
    limits = Limits(max_iterations=rounds)
    checks = resolve(["examples"], {}, target=limits.target)
    session = Session(compose(DEMO_TASK, model=name, checks=checks, limits=limits), [Transcript()])
    run = await session.go()
    if session.interrupted:
        raise Interrupted("Interrupted; the best text so far is above.")
    raise_failure(session.refinement)
    print(f"\n{run.text}\n{NEXT}")
    return 0


def _open_lab() -> int:
    import subprocess
    from importlib.util import find_spec

    if find_spec("jupyterlab") is None:
        raise UsageError('JupyterLab is not installed: `pip install "ipyrefine[lab]"`.')
    notebook = Path(__file__).parents[2] / "notebooks" / "01-first-refine.ipynb"
    if not notebook.exists():
        raise UsageError("The notebooks come with the source: run this from a checkout.")
    return subprocess.call([sys.executable, "-m", "jupyterlab", str(notebook)])
