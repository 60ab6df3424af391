"""Name the cell of a notebook that defines what code lacks."""

import re
from collections.abc import Sequence
from contextlib import suppress

from ipyrefine.core.scopes import module_names
from ipyrefine.core.syntax import ERRORS
from ipyrefine.kernel.magics import python_part

UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")


def explain(fault: str, cells: Sequence[str]) -> str:
    """Return an exception; of a name that is not defined, with the first cell that defines it."""
    lines = []
    for line in fault.split("\n"):
        name = UNDEFINED.match(line)
        found = [n for n, one in enumerate(cells, start=1) if name and name[1] in _binds(one)]
        lines.append(line + f". Cell {found[0]} defines it: run that first." if found else line)
    return "\n".join(lines)


def _binds(source: str) -> frozenset[str]:
    with suppress(*ERRORS):
        return module_names(python_part(source).code)[1]
    return frozenset()
