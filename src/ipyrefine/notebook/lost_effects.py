"""Compare what the failing statement of a cell did with what a text in its place does."""

import ast
import difflib
from collections.abc import Iterator

from ipyrefine.core.syntax import try_parse
from ipyrefine.kernel.magics import python_part

_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


def lost_effects(cell: str, line: int | None, text: str) -> list[str]:
    """Return a sentence for each effect of a failing statement that a text has lost.

    Only the syntax is compared: these are hints for the reader, and prove nothing.

    Args:
        cell: the code that failed.
        line: the line of it that failed, from 1 and without empty lines above; None if unknown.
        text: the code in its place, which runs.
    """
    old, new = try_parse(python_part(cell.lstrip("\n")).code), try_parse(python_part(text).code)
    if new is not None and all(map(_is_inert, new.body)):
        return ["Nothing of the cell's code is left."]
    if old is None or new is None:
        return []
    ignored = _ignored_errors(new) > _ignored_errors(old)
    found = ["It catches an error and ignores it."] if ignored else []
    failed = [
        node
        for node in ast.walk(old)
        if isinstance(node, ast.stmt) and line in range(node.lineno, (node.end_lineno or 0) + 1)
    ]
    return [*found, *_lost(failed[-1], list(ast.walk(new)))] if failed else found


def _lost(failed: ast.stmt, nodes: list[ast.AST]) -> Iterator[str]:
    match failed:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() if _computes(failed):
            for name in _stored(failed):
                values = [n for n in nodes if isinstance(n, _Assignment) and name in _stored(n)]
                stores = [n for n in nodes if isinstance(n, ast.Name) and name in _stored(n)]
                none = all(ast.unparse(n).endswith("= None") for n in values)  # as running it shows
                if len(values) == len(stores) and not (none or any(map(_computes, values))):
                    yield f"`{name}` is no longer computed, but set to a constant."
        case ast.Expr(value=ast.Call(func=called)):
            calls = [ast.unparse(n.func) for n in nodes if isinstance(n, ast.Call)]
            if not difflib.get_close_matches(ast.unparse(called), calls):
                yield f"The call of `{ast.unparse(called)}` that failed is gone."
        case ast.Assert() | ast.Raise():
            if not any(isinstance(n, type(failed)) for n in nodes):
                yield f"The `{type(failed).__name__.lower()}` that failed is gone."


def _stored(node: ast.AST) -> list[str]:
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [n.id for n in names if isinstance(n.ctx, ast.Store)]


def _computes(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> bool:
    read = ast.walk(node.value) if node.value else ()
    return isinstance(node, ast.AugAssign) or any(isinstance(n, ast.Name) for n in read)


def _ignored_errors(tree: ast.Module) -> int:
    """Return in how many places code catches an error and only sets constants, or nothing."""
    nodes = list(ast.walk(tree))
    handlers = [n.body for n in nodes if isinstance(n, ast.ExceptHandler)]
    silent = [all(_is_inert(n) or _is_constant(n) for n in body) for body in handlers]
    return sum(silent) + sum(isinstance(n, ast.Name) and n.id == "suppress" for n in nodes)


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and not _computes(node)


def _is_inert(node: ast.stmt) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass | ast.Continue)
