"""Tell the Python of a cell from its magics and shell lines, which nothing but IPython runs."""

import ast
import re
from typing import NamedTuple

from ipyrefine.core.syntax import ERRORS, parse, try_parse, unparse

_PYTHON_MAGICS = re.compile(r"%%(?:time|timeit|capture|prun)\b[^\n]*")


class PythonPart(NamedTuple):
    """A cell's Python, with ``pass`` or nothing in place of each magic and shell line.

    What ``%time`` runs stays.

    Attributes:
        code: the Python.
        lines: those magics and shell lines, as they are.
        names: the names that they bind.
    """

    code: str
    lines: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()


def python_part(text: str) -> PythonPart:
    """Split a cell into Python and lines that only IPython understands."""
    if not re.search(r"^\s*[%!]|=\s*[%!]|\?\s*$", text, re.MULTILINE) or try_parse(text):
        return PythonPart(text)
    from IPython.core.inputtransformer2 import TransformerManager

    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    head = {first: lines[first]} if _PYTHON_MAGICS.match(lines[first]) else {}
    if lines[first].startswith("%%") and not head:  # a magic for something other than Python
        return PythonPart(text)
    plain = [("" if n in head else line) + "\n" for n, line in enumerate(lines)]
    try:
        source = TransformerManager().do_token_transforms(plain)
        tree = parse("".join(source))
    except ERRORS:
        return PythonPart(text)
    found, names = dict(head), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.Assign) and _is_ipython(node.value):
            number = node.lineno - 1
            found[number] = lines[number] if number < len(lines) else source[number]
            targets = node.targets if isinstance(node, ast.Assign) else []
            bound = "".join(f"{unparse(target)} = " for target in targets)
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            # Nothing where no block becomes empty: a linter would not like the other.
            instead = "pass" * bool(node.col_offset)
            match node.value:
                case ast.Call(args=[ast.Constant("time"), ast.Constant(str(timed))]) if try_parse(
                    timed
                ):
                    instead = f"{bound}{timed}"
            source[number] = f"{' ' * node.col_offset}{instead}\n"
            for other in range(node.lineno, node.end_lineno or node.lineno):
                source[other] = "\n"
    if not found:
        return PythonPart(text)
    ordered = tuple(found[number].strip() for number in sorted(found))
    return PythonPart("".join(source).removesuffix("\n"), ordered, frozenset(names))


def has_python_beside_magics(text: str) -> bool:
    """Return True if a cell has magics or shell lines, and Python as well."""
    part = python_part(text)
    body = parse(part.code).body if part.lines else []
    return any(not isinstance(node, ast.Pass) for node in body)


def _is_ipython(node: ast.expr) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"), args=[]), attr=name)
        ):
            return name in ("run_line_magic", "run_cell_magic", "system", "getoutput")
    return False
