"""Read Python that nobody vouches for: it may be no Python at all, or too deep for a tree."""

import ast
import math
import re
import sys
import types
import warnings
from collections.abc import Iterable
from typing import Any

# What `ast` and `compile` raise for what is not Python, or is too long or too deep for them.
ERRORS = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
_TOLERANCE, _RELATIVE = 1e-9, 1e-12
_DEEP = 100_000  # calls within calls; a tree that Python itself could make takes fewer
_EXACT = 2**53  # integers beyond it may have no float of their own
NO_VALUE = object()


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a source.

    Python's warnings about it are not shown: they are for whoever runs it.

    Raises:
        SyntaxError: it is not Python; other faults raise another of `ERRORS`.
    """
    tree: ast.Module = _tree(source, "exec")
    return tree


def _tree(source: str, mode: str) -> Any:
    with warnings.catch_warnings(action="ignore"):
        try:
            return ast.parse(source, mode=mode)
        except SystemError:  # before 3.11.8, Python miscounts where two threads parse at once
            return ast.parse(source, mode=mode)


def try_parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a source; None if it is not Python."""
    try:
        return parse(source)
    except ERRORS:
        return None


def tree_of(source: str) -> ast.Module:
    """Return the syntax tree of Python; an empty one for what isn't."""
    return try_parse(source) or ast.Module([], [])


def try_parse_expression(source: str) -> ast.expr | None:
    """Return the syntax tree of an expression; None if the source is anything else."""
    try:
        expression: ast.expr = _tree(source.strip(), "eval").body
        return expression
    except ERRORS:
        return None


def unparse(node: ast.AST) -> str:
    """Return the source of a tree, however deep that is."""
    try:
        return ast.unparse(node)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEEP)
        try:
            return ast.unparse(node)
        finally:
            sys.setrecursionlimit(limit)


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITION = FUNCTION | ast.ClassDef
IMPORT = ast.Import | ast.ImportFrom


def names_bound(node: ast.AST) -> set[str]:
    """Return the names that code binds: by values, imports and definitions.

    Of a definition that is its own name, not those inside of it.
    """
    if isinstance(node, DEFINITION):
        return {node.name}
    names = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            names.add(one.id)
        elif isinstance(one, IMPORT):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
        elif isinstance(one, DEFINITION):
            names.add(one.name)
    return names


def names_at_top(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements bind, as `names_bound` does."""
    return set[str]().union(*map(names_bound, nodes))


_DRAWS = re.compile(
    r"(?:plt|pyplot|sns|seaborn|px|go|axe?s?|fig)\b|.*\.(?:plot|hist|boxplot)\b", re.DOTALL
)
_PREVIEWS = re.compile(r"print|display|.*\.(?:head|tail|sample|describe|info)", re.DOTALL)
_PLAIN = (
    ast.Expr, ast.Assign, ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.keyword,
    ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Slice, ast.USub, ast.expr_context,
)  # fmt: skip


def is_display(source: str) -> bool:
    """Return True if Python only shows what is there and calculates nothing.

    It shows a name, what stands in it, its first rows or a summary, or it draws one.
    """
    body = tree_of(re.sub(r"^%(?:matplotlib|config)\b.*$", "", source, flags=re.MULTILINE)).body
    body = [one for one in body if not isinstance(one, IMPORT)]
    for node in body:
        draws = not isinstance(node, ast.Assign) or _DRAWS.match(unparse(node.value))
        shows = draws and names_used(node) - {"print", "display"}
        if not (shows and all(map(_is_plain, ast.walk(node)))):
            return False
    return bool(body)


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = unparse(node.func)
        return bool(_PREVIEWS.fullmatch(called) or _DRAWS.match(called))
    negates = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    return negates or isinstance(node, _PLAIN)


def has_steps(tree: ast.Module) -> bool:
    """Return True if code does more as it runs than define functions, classes and constants."""

    def is_quiet(node: ast.stmt) -> bool:
        if isinstance(node, ast.If):
            return "__name__" in names_used(node.test)
        if isinstance(node, ast.Assign) and not all(isinstance(t, ast.Name) for t in node.targets):
            return False  # it stores into something
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) else node
        if value is None or isinstance(value, DEFINITION | IMPORT):
            return True
        return is_literal(unparse(value))

    return not all(map(is_quiet, tree.body))


def names_used(node: ast.AST) -> set[str]:
    """Return every name that stands in code, whether it is read or bound there."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def free_names(tree: ast.AST) -> set[str]:
    """Return the names that code reads and does not bind itself."""
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    bound = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    bound |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    return {one.id for one in names if isinstance(one.ctx, ast.Load)} - bound


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
    try:
        expression = try_parse_expression(source)
        return NO_VALUE if expression is None else ast.literal_eval(expression)
    except ERRORS:
        return NO_VALUE


def is_literal(source: str) -> bool:
    """Return True if a source is a literal, such as ``[1, 2]``."""
    return read_literal(source) is not NO_VALUE


def equal_values(a: Any, b: Any) -> bool:
    """Return True if two values are equal; floats may differ by 1e-9, large ones by 1e-12 of it."""
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
