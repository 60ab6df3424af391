"""Find the names that a cell uses but does not define: in code by its syntax, in prose by marks."""

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

from ipyrefine.core.model import Task
from ipyrefine.core.scopes import Read, module_names
from ipyrefine.core.stated import fenced_python, read_examples
from ipyrefine.core.syntax import (
    ERRORS,
    free_names,
    names_bound,
    names_used,
    tree_of,
    try_parse,
    unparse,
)
from ipyrefine.kernel.describe import is_array, is_frame
from ipyrefine.kernel.magics import python_part

_MAX_SOURCE = 200_000  # characters of code that are read
_BUILTINS = frozenset(dir(builtins))
IPYTHON = re.compile(r"_+|_i+|_i?\d+|_[iod]h|In|Out|display|get_ipython|exit|quit|__\w+")
# Magics that bind no names.
_HARMLESS = re.compile(r"%%(?:time|timeit|prun)\b|%(?:autoreload|conda|config|matplotlib|pip)\b")
# With one of these, code may bind or test names that it does not write as such.
_BINDS_UNSEEN = re.compile(
    r"\b(?:exec|eval|globals|locals|vars|dir|get_ipython|NameError|(?:Base)?Exception|__builtins__|"
    r"builtins|__main__(?!['\"])|modules|f_globals|f_locals|runpy|sympy|null|true|false)\b|"
    r"\bimport\s*\*|\bexcept\s*:"
)
_FENCES = re.compile(r"```.*?```|^\s*>>>.*$", re.DOTALL | re.MULTILINE)
_CELLS = ("cells", "definitions")
_BACKTICKS = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_WORD = re.compile(r"(?<![\w.'\"])[^\W\d]\w*+(?!['\"])")  # no attribute, no word in quotes
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w{0,100})\((?!e?s\))")  # not the plural of "file(s)"
# What a request asks to write is not there yet; an older one of that name must not stand in for it.
_ASKED = re.compile(
    r"\b(?:write|implement|define|create|build|develop|(?:function|class|method)\s+(?:called|named))"
    r"\s+(?:(?:an?|the|me|us|new|python|function|class|method|called|named)\s+){0,5}"
    r"`?([A-Za-z_]\w{0,100})",
    re.IGNORECASE,
)

# Of what is written for its own sake, in which the notebook's data have no part unless named.
_ANEW = re.compile(
    r"\b(?:write|implement|define|create|build|develop|draft|compose)\s+(?:[\w-]+\s+){0,4}"
    r"(?:function|class|method|e-?mail|mail|letter|message|story|article|poem)\b|\bdef \w+\(",
    re.IGNORECASE,
)


def writes_anew(text: str) -> bool:
    """Return True if a request asks for something new: a function, a class, a mail or the like."""
    calls = {*re.findall(r"(?<![\w.])([a-z_]\w*)\((?:[^\W\d]\w*(?:, ?)?)+\)", text)}
    return bool(calls - _BUILTINS or _ANEW.search(text))


def names_in_code(source: str) -> list[str]:
    """Return the names that code reads before it binds them, in their order; no built-in ones."""
    part = python_part(source[:_MAX_SOURCE])
    tree = tree_of(part.code)
    try:
        reads = module_names(tree)[0]
        names = [one.name for one in reads if not one.bound and one.name[:2] != "__"]
    except ERRORS:  # such as `return` outside of a function
        names = sorted(free_names(tree))
    return [name for name in dict.fromkeys(names) if name not in _BUILTINS | part.names]


def names_in_draft(source: str) -> list[str]:
    """Return the names that a draft is about, also where it is not Python yet.

    They are those that it reads, and those that its lines for IPython bind, which no check runs.
    """
    part = python_part(source[:_MAX_SOURCE])
    names = names_in_code(source)
    if try_parse(part.code) is None:
        names = _WORD.findall(part.code)
    return list(dict.fromkeys([*names, *sorted(part.names)]))


def names_defined(source: str) -> list[str]:
    """Return the names that code leaves to what comes below it, in their order.

    What loops and contexts bind, imports, what is deleted, and names that start with an underscore
    do not count. Of what isn't Python there are none.
    """
    tree, aside = tree_of(python_part(source[:_MAX_SOURCE]).code), set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.For(target=target)
                | ast.AsyncFor(target=target)
                | ast.withitem(optional_vars=ast.expr() as target)
            ):
                aside |= names_bound(target)
            case ast.Import() | ast.ImportFrom():
                aside |= names_bound(node)
            case ast.Delete():
                aside |= names_used(node)
    with suppress(*ERRORS):
        left = (name for name in module_names(tree)[1] - aside if name[:1] != "_")
        return sorted(left, key=source.find)
    return []


def names_behind(
    roots: Iterable[str], space: Mapping[str, Any], cells: Iterable[str], but: Set[str]
) -> set[str]:
    """Return names of the notebook and of all that they are made of, as its cells define it.

    A frame or an array counts only if a function reads it and no cell makes anything else of it.

    Args:
        roots: the names; those that the notebook does not have are left out.
        space: the notebook's variables.
        cells: the sources of the cells that ran.
        but: names that do not count, nor what only they are made of.
    """
    found = [name for name in roots if name in space]
    parts = [part for source in (cells if found else ()) for part in _parts(source)]
    data = {name for name, value in space.items() if is_frame(value) or is_array(value)}
    for name in found:
        reads = set().union(*(r for r, changes in parts if name in changes and name not in data))
        reads |= {*names_in_code(space[name])} if type(space[name]) is str else set()
        held = [space[name], *(space[name].values() if type(space[name]) is dict else ())]
        texts = ((n, v) for n, v in space.items() if type(v) in (str, FunctionType))
        reads |= {n for n, value in texts if any(value is one for one in held)}  # as `import *` has
        reads -= {*found, *but} | (set() if callable(space[name]) else data)
        found += [n for n in reads & space.keys() if type(space[n]) is not ModuleType]
    others = set().union(*(r | changes for r, changes in parts if changes - {*found}))
    return {*found} - (data & others)


def without_names(source: str, names: Set[str]) -> str:
    """Return a cell without the statements that define or only show some names.

    One that is not Python, but has such a name in it, is left out as a whole.
    """
    if not any(name in source for name in names):
        return source
    body = _statements(source)
    parts = zip(body, _parts(source), strict=True)
    kept = [node for node, (reads, changes) in parts if names.isdisjoint(changes or reads)]
    return source if len(kept) == len(body) > 0 else unparse(ast.Module(kept, []))


def _statements(source: str) -> list[ast.stmt]:
    return tree_of(python_part(source[:_MAX_SOURCE]).code).body


@lru_cache(2_000)
def _parts(source: str) -> list[Any]:
    """Return what each statement reads, and what it binds or changes by an item or a method."""
    return [
        (free_names(node), names_bound(node) | {*re.findall(r"(?m)^\s*(\w+)[.\[]", unparse(node))})
        for node in _statements(source)
    ]


def undefined_names(text: str, task: Task, known: Iterable[str]) -> list[Read]:
    """Return where code first reads each name that nothing defines, so that it fails there.

    Nothing: not the code, Python, IPython, this kernel, the task's own code or a cell above. Code
    that may bind or try names unseen (by ``exec``, ``import *``, ``except`` or ``%run``) has none.
    """
    part = python_part(text)
    tree = try_parse(part.code)
    magics = (one for one in part.lines if one.startswith("%"))
    if tree is None or _BINDS_UNSEEN.search(text) or not all(map(_HARMLESS.match, magics)):
        return []
    try:
        reads, binds = module_names(tree)
    except ERRORS:  # it fails in another way
        return []
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    here = {*vars(sys.modules["__main__"]), *(shell.user_ns if shell else ())}
    given = [one.text for one in task.materials if one.kind in _CELLS and not one.computed]
    words = {
        *re.findall(r"\w+|\*$", "\n".join([*_FENCES.findall(task.text), *given]), re.MULTILINE)
    }
    defined = {*known, *part.names, *_BUILTINS, *here, *binds, *words}
    first = dict[str, Read]()
    for one in sorted(reads, key=lambda one: (one.line, one.column)):
        if not (one.name in defined or "*" in words or IPYTHON.fullmatch(one.name)):
            first.setdefault(one.name, one)
    return [*first.values()]


def names_in_prose(text: str) -> list[str]:
    """Return the names that a request in words is about, in their order.

    They stand in backticks, before a parenthesis, or in its doctests and fenced Python. What the
    request asks to write is none of them: what is named after "write", "implement" or the like,
    what its examples call, and what its fenced Python defines.
    """
    examples = read_examples(text)
    fenced = [unparse(tree) for tree in fenced_python(text)]
    prose = _FENCES.sub("", text)
    names = [
        *(name for part in _BACKTICKS.findall(prose) for name in _WORD.findall(part)),
        *_CALLED.findall(prose),
        *(name for example in examples for name in names_in_code(example.code)),
        *(name for source in fenced for name in names_in_code(source)),
    ]
    asked = {
        *_ASKED.findall(prose),
        *(name for example in examples for name in _CALLED.findall(example.call)),
        *(name for source in fenced for name in names_defined(source)),
    }
    return [n for n in dict.fromkeys(names) if n not in asked and n not in _BUILTINS]
