r"""Refine a notebook cell's text with a language model, with the user in the loop.

In a notebook: ``%load_ext ipyrefine``, then ``%%refine`` on a cell. In Python::

    run = await ipyrefine.refine("Write a limerick about tides.")
    print(run.text)

Outside of a notebook, with a function as the check, and a scripted model in a real one's place:

>>> import asyncio, ipyrefine
>>> from ipyrefine.providers.scripted import ScriptedModel
>>> model = ScriptedModel(["<text>\nTides come and go.\n</text>", "<text>\nThey ebb.\n</text>"])
>>> def short(text):
...     return len(text) < 12
>>> run = asyncio.run(ipyrefine.refine("A sentence on tides.", model=model, checks=[short]))
>>> run.text, run.score_history, run.stop_reason.value
('They ebb.', (0.0, 1.0), 'passed')
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipyrefine.api import build, refine
    from ipyrefine.batch.refine_many import Item, refine_many
    from ipyrefine.batch.texts import table
    from ipyrefine.core.engine import Refinement
    from ipyrefine.core.model import Budget, Limits, Task
    from ipyrefine.core.ports import Delta, Reply, Request
    from ipyrefine.core.run import Run
    from ipyrefine.errors import RefineError
    from ipyrefine.looks import Look, look
    from ipyrefine.notebook.widget import Panel
    from ipyrefine.providers.choose import choose_model
    from ipyrefine.session.record import load

__all__ = [
    "Budget",
    "Delta",
    "Item",
    "Limits",
    "Look",
    "Panel",
    "RefineError",
    "Refinement",
    "Reply",
    "Request",
    "Run",
    "Task",
    "build",
    "choose_model",
    "load",
    "load_ipython_extension",
    "look",
    "refine",
    "refine_many",
    "table",
]

_HOME = {
    "Budget": "ipyrefine.core.model",
    "Delta": "ipyrefine.core.ports",
    "Item": "ipyrefine.batch.refine_many",
    "Limits": "ipyrefine.core.model",
    "Look": "ipyrefine.looks",
    "Panel": "ipyrefine.notebook.widget",
    "RefineError": "ipyrefine.errors",
    "Refinement": "ipyrefine.core.engine",
    "Reply": "ipyrefine.core.ports",
    "Request": "ipyrefine.core.ports",
    "Run": "ipyrefine.core.run",
    "Task": "ipyrefine.core.model",
    "build": "ipyrefine.api",
    "choose_model": "ipyrefine.providers.choose",
    "load": "ipyrefine.session.record",
    "look": "ipyrefine.looks",
    "refine": "ipyrefine.api",
    "refine_many": "ipyrefine.batch.refine_many",
    "table": "ipyrefine.batch.texts",
}


def __getattr__(name: str) -> Any:
    # Lazy, so that `%load_ext ipyrefine` costs next to nothing.
    if name == "__version__":
        return import_module("importlib.metadata").version("ipyrefine")
    if name not in _HOME:
        raise AttributeError(f"module 'ipyrefine' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def load_ipython_extension(shell: Any) -> None:
    """Register `%%refine`, `%%look` and `%refine`; loading again is harmless."""
    from ipyrefine.notebook.magic import load

    load(shell)
