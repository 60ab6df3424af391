"""Tell a fault of code from the want of something that only the notebook has."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress

from ipyrefine.checks.evaluation import Event
from ipyrefine.core.syntax import ERRORS, compile_cell
from ipyrefine.kernel.magics import PythonPart
from ipyrefine.kernel.redaction import redact
from ipyrefine.kernel.variables import UNDEFINED

_MAX_PATH = 100  # characters of a path in a sentence
_AWAITS = re.compile(r"SyntaxError: .*outside (?:async )?function")
_SANDBOX = re.compile(r".*/ipyrefine-\w+/(.+)", re.DOTALL)  # in its temporary folder
# A line that writes a file, which need not be there yet.
_WRITES = re.compile(
    r"""\.to_\w+\(|save|dump|write|mkdir|makedirs|copy|move|touch|,\s*(?:mode=)?['"][wax]"""
)


def explain_lack(fault: str, events: Sequence[Event], part: PythonPart, *, offline: bool) -> str:
    """Return why code cannot be judged that failed for want of what only the notebook has.

    Args:
        fault: how it failed.
        events: what its run reported.
        part: its Python, and its lines for IPython.
        offline: whether the sandbox had no network.

    Returns:
        A sentence; empty if the fault is the code's own.
    """
    if undefined := UNDEFINED.match(fault):
        if undefined[1] in part.names:
            return f"Not run: it needs {undefined[1]}, which only a line for IPython gives."
        if undefined[1] == "get_ipython":
            return "Not run: it uses IPython itself, which checked code does not have."
    if _AWAITS.match(fault) and _runs_in_notebook(part.code):
        return "Not run: it awaits outside a function, which only a notebook does."
    event = next((e for e in events if isinstance(e.get("lack"), dict)), {})
    lack = event.get("lack", {})
    if lack.get("input"):
        return "Not run: it asks for input, which checked code cannot get."
    if lack.get("network") and offline:
        return "Not run: it uses the network, which checked code cannot reach."
    module, paths = lack.get("module"), lack.get("paths")
    if isinstance(module, str) and module.isidentifier() and _lies_here(module):
        return f"Not run: it imports {module} from your folder, which checked code cannot reach."
    line = _line(part.code, event.get("line"))
    for path in paths if isinstance(paths, list) else ():
        if isinstance(path, str) and (verb := _use_of(path, line)):
            name = redact(" ".join(_notebook_path(path).split())[:_MAX_PATH])
            return f"Not run: it {verb} {name}, which checked code cannot reach."
    return ""


def _line(code: str, number: object) -> str:
    lines = code.splitlines()
    return lines[number - 1] if isinstance(number, int) and 0 < number <= len(lines) else ""


def _lies_here(module: str) -> bool:
    """Return whether a module is in the working folder, from which the sandbox imports nothing."""
    return os.path.isfile(f"{module}.py") or os.path.isdir(module)


def _runs_in_notebook(code: str) -> bool:
    """Return whether code compiles where `await` may stand outside a function."""
    try:
        compile_cell(code)
    except ERRORS:
        return False
    return True


def _use_of(path: str, line: str) -> str:
    """Return how the notebook could use a path that the sandbox lacks; empty if it could not.

    Args:
        path: the path.
        line: the line of the code that failed.
    """
    with suppress(ValueError, OSError):  # it is not a path
        path = _notebook_path(path)
        if os.access(path, os.R_OK):
            return "uses" if os.path.isdir(path) else "reads"
        folder = os.path.dirname(path)
        if folder and _WRITES.search(line) and os.access(folder, os.W_OK):
            return "writes"
    return ""


def _notebook_path(path: str) -> str:
    """Return a path as the notebook has it, where the sandbox's folder is its own, or its home."""
    inside = _SANDBOX.match(path)
    here, home = (inside[1], f"~/{inside[1]}") if inside else (path, path)
    return here if os.path.exists(here) else os.path.expanduser(home)
