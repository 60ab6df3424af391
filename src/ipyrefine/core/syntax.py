"""Read Python that nobody vouches for: it may be no Python at all, or too deep for a tree."""

import ast
import math
import types
import warnings
from collections.abc import Mapping, MutableMapping
from typing import Any

# What `ast` and `compile` raise for what is not Python, or is too long or too deep for them.
ERRORS = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
_TOLERANCE, _RELATIVE = 1e-9, 1e-12
_EXACT = 2**53  # integers beyond it may have no float of their own
NO_VALUE = object()


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a source.

    Python's warnings about it are not shown: they are for whoever runs it.

    Raises:
        SyntaxError: it is not Python; other faults raise another of `ERRORS`.
    """
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(source)


def try_parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a source; None if it is not Python."""
    try:
        return parse(source)
    except ERRORS:
        return None


def try_parse_expression(source: str) -> ast.expr | None:
    """Return the syntax tree of an expression; None if the source is anything else."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source.strip(), mode="eval").body
    except ERRORS:
        return None


def names_bound(node: ast.AST) -> set[str]:
    """Return the names that code binds: by values, imports and definitions.

    Of a definition that is its own name, not those inside of it.
    """
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    if isinstance(node, definitions):
        return {node.name}
    names = set[str]()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            names.add(one.id)
        elif isinstance(one, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
        elif isinstance(one, definitions):
            names.add(one.name)
    return names


def is_display(source: str) -> bool:
    """Return whether Python only shows something: besides imports, expressions that change nothing.

    What changes something is told by the names of methods, and so not always.
    """
    tree = try_parse(source)
    body = tree.body if tree else []
    shows = any(isinstance(one, ast.Expr) for one in body)
    only = all(isinstance(one, ast.Expr | ast.Import | ast.ImportFrom) for one in body)
    return shows and only and not any(map(_changes_something, ast.walk(ast.Module(body, []))))


_CHANGING = frozenset().union(
    *(set(dir(one)) - set(dir(other)) for one, other in ((list, tuple), (set, frozenset))),
    set(dir(MutableMapping)) - set(dir(Mapping)),
    ("exec", "setattr", "delattr", "shuffle", "heappush", "heapify", "heappop", "put", "fill"),
) - {"copy", *dir(tuple)}


def _changes_something(node: ast.AST) -> bool:
    match node:
        case ast.NamedExpr():
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
            inplace = (ast.unparse(one.value) for one in keywords if one.arg == "inplace")
            return name in _CHANGING or any(one != "False" for one in inplace)
    return False


def names_used(node: ast.AST) -> set[str]:
    """Return every name that stands in code, whether it is read or bound there."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def compile_cell(source: str | ast.Module) -> types.CodeType:
    """Return a notebook's cell compiled: ``await`` may stand outside of a function there.

    Raises:
        SyntaxError: it cannot be compiled; other faults raise another of `ERRORS`.
    """
    with warnings.catch_warnings(action="ignore"):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code: types.CodeType = compile(source, "<cell>", "exec", flags, dont_inherit=True)
        return code


def read_literal(source: str) -> Any:
    """Return the value of a literal, or `NO_VALUE` for anything else."""
    expression = try_parse_expression(source)
    if expression is None:
        return NO_VALUE
    try:
        return ast.literal_eval(expression)
    except ERRORS:
        return NO_VALUE


def is_literal(source: str) -> bool:
    """Return whether a source is a literal, such as ``[1, 2]``."""
    return read_literal(source) is not NO_VALUE


def equal_values(a: Any, b: Any) -> bool:
    """Return whether two values are equal; floats may differ by 1e-9, large ones by 1e-12 of it."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        exact = [
            abs(one) > _EXACT or isinstance(one, bool) for one in (a, b) if type(one) is not float
        ]
        loose = len(exact) < 2 and not any(exact)
        return a == b or (loose and math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=_TOLERANCE))
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal_values, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal_values(a[key], b[key]) for key in a)
    return bool(a == b)
