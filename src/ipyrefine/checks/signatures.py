"""First calls of a function that a task gives the head of, where it states no example.

The arguments come from the annotations, some plain values for each type.
"""

import ast
from collections.abc import Sequence
from typing import Any

from ipyrefine.checks.stated import Example, fenced_python

_VALUES: dict[str, tuple[Any, ...]] = {
    "int": (7, 12, 3),
    "float": (2.5, 10.0, 0.75),
    "bool": (True, False, True),
    "str": ("hello world", "Abc 12", "zxya"),
}


def first_calls(task_text: str) -> tuple[Example, ...]:
    """Calls of the last function in the task's fenced Python that is still to be written.

    Args:
        task_text: the task.

    Returns:
        Three calls, without a result; none where an argument's type is not told or not plain
        (numbers, texts, and lists, tuples or dicts of these).
    """
    functions = [
        node
        for tree in fenced_python(task_text)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and _open(node)
    ]
    return _calls(functions[-1]) if functions else ()


def _open(function: ast.FunctionDef) -> bool:
    """Whether nothing but a docstring, ``pass`` or ``...`` stands in a function yet."""
    return all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in function.body
    )


def _calls(function: ast.FunctionDef) -> tuple[Example, ...]:
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs:
        return ()
    pools = [_pool(argument.annotation) for argument in (*given.posonlyargs, *given.args)]
    if not pools or not all(pools):
        return ()
    rows = zip(*pools, strict=True)
    sources = [f"{function.name}({', '.join(map(repr, row))})" for row in rows]
    return tuple(Example(source=source, expected="", kind="equals") for source in sources)


def _pool(annotation: ast.expr | None) -> Sequence[Any]:
    """Three values of an annotated type; none where it is not plain."""
    match annotation:
        case ast.Name(id=name) if name in _VALUES:
            return _VALUES[name]
        case ast.Name(id="list" | "List"):
            return _lists(_VALUES["int"])
        case ast.Name(id="dict" | "Dict"):
            return _dicts(_VALUES["str"], _VALUES["int"])
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _pool(inner)
        case ast.Subscript(value=ast.Name(id="list" | "List"), slice=inner):
            return _lists(_pool(inner))
        case ast.Subscript(value=ast.Name(id="dict" | "Dict"), slice=ast.Tuple(elts=[key, value])):
            return _dicts(_pool(key), _pool(value))
        case ast.Subscript(value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=parts)):
            pools = [_pool(part) for part in parts]
            return [*zip(*pools, strict=True)] if all(pools) else ()
    return ()


def _lists(items: Sequence[Any]) -> Sequence[Any]:
    return [list(items), [*items[::-1], items[0]], list(items[:2])] if items else ()


def _dicts(keys: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    try:
        whole = dict(zip(keys, values, strict=False))
    except TypeError:
        return ()  # keys that cannot be any, as lists
    return [whole, dict([*whole.items()][:1]), dict([*whole.items()][1:])] if whole else ()
