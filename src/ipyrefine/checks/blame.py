"""Whose fault it is where a critic's test raises: the text's, or that of the test's own lines."""

import ast
import builtins
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.util import find_spec

from ipyrefine.core.syntax import DEFINITION, IMPORT, names_at_top, names_bound, names_used, tree_of
from ipyrefine.sandbox.sandbox import Event

_TEXT = "candidate.py"
_CLAIMS = {"AssertionError", "Failed", "ExceptionGroup"}  # of what a text gives
_UNKNOWN = {"NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "ImportError"}
_TOOLS = {"_pytest", "hypothesis"}


def is_own_fault(event: Event, modules: Mapping[str, str], text: str, task: str) -> bool:
    """Return True if what a test raised, or waits for, is a fault of its own lines.

    The text's are what its lines raise, a claim that it misses, a value of its that a line of the
    test trips over, and a name or a file that the task writes and the text lacks.
    """
    frames, raised, why = event.get("frames", []), event.get("raised", ""), event.get("why", "")
    if frames and frames[-1][0] == _TEXT:
        return False
    name = event.get("lacks")
    if name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", task):
        tree = tree_of(text)
        parameters = {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        if name not in parameters | names_at_top(tree.body):
            return False
    if (name and raised != "FileNotFoundError") or raised in _UNKNOWN:
        return True
    if raised in _CLAIMS and frames:
        return "Failed: Fixture " in str(why)  # it was called as a function
    if event.get("origin") in _TOOLS or (raised and not frames):
        return True
    if not frames or any(file == _TEXT for file, *_ in frames):
        return False
    called = re.search(r"TypeError: (\w+)\(\) ", str(why))
    if called and any(f"def {called[1]}(" in source for source in modules.values()):
        return True
    return not any(_uses_text(modules.get(f, ""), *at) for f, *at in frames)


def _uses_text(
    source: str, line: int, end: int | None, start: int | None, stop: int | None
) -> bool:
    found = _names_from_text(source)
    names = [one for one in ast.walk(tree_of(source)) if isinstance(one, ast.Name)]
    if end is not None and start is not None and stop is not None:
        inside = [
            one.id
            for one in names
            if (line, start) <= (one.lineno, one.col_offset)
            and (one.end_lineno or line, one.end_col_offset or 0) <= (end, stop)
        ]
        if inside:
            return bool(found.intersection(inside))
    return any(one.id in found for one in names if line <= one.lineno <= (end or line))


@lru_cache(maxsize=32)
def _names_from_text(source: str) -> frozenset[str]:
    """Return the names in a module of tests that hold what the text gives, or are its own."""
    tree = tree_of(source)
    nodes = [*ast.walk(tree)]
    bound = {one.arg for one in nodes if isinstance(one, ast.arg)} | names_bound(tree)
    bound |= {one.name for one in nodes if isinstance(one, DEFINITION)}
    found = names_used(tree) - bound - vars(builtins).keys() - {"pytest"}
    for node in nodes:
        if isinstance(node, IMPORT):
            first = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
            top = first.partition(".")[0]
            if top in ("", "__main__") or find_spec(top) is None:  # no module is called that
                found |= names_bound(node)
    growing = True
    while growing:
        size = len(found)
        for target, value in _flows(nodes):
            if names_used(value) & found:
                found |= {target} if isinstance(target, str) else names_used(target)
        growing = len(found) > size
    return frozenset(found)


def _flows(nodes: Iterable[ast.AST]) -> Iterable[tuple[ast.AST | str, ast.AST]]:
    """Yield what is bound, with what it gets its value from."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.AsyncFor(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                yield target, value
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
